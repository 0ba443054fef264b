"""QR decomposition of a matrix that comes in pieces and is never whole."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError


class StreamingQR:
    """R of the QR decomposition of rows [A | b], as they come; memory does not grow with them.

    |A x - b|² = |R x - z|² + residual for every x, so that least squares need R, z and residual only; unlike normal
    equations they have A's condition number, not its square.

    Attributes:
        n_columns: columns of A.
        rows: how many rows have come.

    Source: Golub & Van Loan, Matrix Computations, 4th ed. 2013, sec. 5.3 and 6.5.
    """

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.rows: int = 0
        self._triangle: Array = np.zeros((n_columns + 1, n_columns + 1))

    def add(self, matrix: Array, right: ArrayLike) -> None:
        """Take rows.

        Args:
            matrix: of A, shape (n_rows, n_columns), as `regressor` makes them; any number of rows.
            right: of b, shape (n_rows,) or any that has as many elements, such as (n_samples, n_joints).

        Raises:
            ShapeError: the matrix has another number of columns, or not as many rows as `right` has elements.
        """
        values = np.asarray(right, dtype=np.float64).reshape(-1, 1)
        if matrix.ndim != 2 or matrix.shape != (len(values), self.n_columns):
            raise ShapeError(
                f"rows of shape {matrix.shape} with {len(values)} values on the right; "
                f"needed are ({len(values)}, {self.n_columns})"
            )
        self.rows += len(values)
        below = np.hstack([matrix, values])
        self._triangle = cast(Array, np.linalg.qr(np.vstack([self._triangle, below]), mode="r"))

    @property
    def triangle(self) -> Array:
        """R, upper triangular, shape (n_columns, n_columns); RᵀR = AᵀA. Its rows' signs are arbitrary."""
        return self._triangle[:-1, :-1].copy()

    @property
    def right(self) -> Array:
        """The vector z = Qᵀ b, shape (n_columns,)."""
        return self._triangle[:-1, -1].copy()

    @property
    def residual(self) -> float:
        """Least |A x - b|² that any x reaches, where A's columns are independent."""
        return float(self._triangle[-1, -1]) ** 2
