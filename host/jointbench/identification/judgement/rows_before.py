"""What a block of rows goes on from, for sums over neighbouring rows."""

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array


class RowsBefore:
    """The last rows of the blocks so far, not used where there is a gap."""

    def __init__(self, length: int, n_columns: int) -> None:
        """Keep this many rows; before the first block none is used."""
        self._length = length
        self._values, self._used = np.zeros((length, n_columns)), np.zeros((length, n_columns), dtype=np.bool_)
        self._stop = 0

    def join(self, start: int, values: Array, used: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Put the rows before in front of a block, and keep its last ones for the next.

        Args:
            start: place of its first row on the grid of times; blocks come in order.
            values: shape (n, n_columns).
            used: which of them count, shape (n, n_columns).

        Returns:
            Values, 0 where not used, and which are used, shape (length + n, n_columns).
        """
        if start != self._stop:
            self._values[:], self._used[:] = 0.0, False
        self._stop = start + len(values)
        values = np.concatenate([self._values, np.where(used, values, 0.0)])
        used = np.concatenate([self._used, used])
        self._values, self._used = values[len(values) - self._length :], used[len(used) - self._length :]
        return values, used
