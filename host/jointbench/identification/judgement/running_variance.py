"""Mean and variance of columns that come in parts."""

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array


class RunningVariance:
    """Sum of squares about the mean of each column, over all parts that were added.

    Attributes:
        rows: how many values were counted, shape (n_columns,).
        mean: of them, shape (n_columns,).
        squares: Σ (value - mean)², shape (n_columns,).

    Source: Chan, Golub & LeVeque, The American Statistician 37(3), 1983: no difference of large sums.
    """

    def __init__(self, n_columns: int) -> None:
        """Nothing counted yet."""
        self.rows: NDArray[np.intp] = np.zeros(n_columns, dtype=np.intp)
        self.mean: Array = np.zeros(n_columns)
        self.squares: Array = np.zeros(n_columns)

    def add(self, values: Array, counted: NDArray[np.bool_]) -> None:
        """Count a part; both of shape (n, n_columns)."""
        rows = counted.sum(axis=0)
        mean = np.where(counted, values, 0.0).sum(axis=0) / np.maximum(rows, 1)
        apart, together = mean - self.mean, np.maximum(self.rows + rows, 1)
        self.squares += np.sum(np.where(counted, values - mean, 0.0) ** 2, axis=0)
        self.squares += apart**2 * self.rows * rows / together
        self.mean += apart * rows / together
        self.rows += rows
