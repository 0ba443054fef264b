"""The rows of a least-squares problem, block by block, so that no log is too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.robot import Array


class Block(NamedTuple):
    """Consecutive rows on an even grid of times: torque[k, j] ≈ regressor[k, j] @ parameters.

    Attributes:
        start: place of the first row on the grid; a block that starts where the one before ended goes on with it,
            any other place is a gap, across which nothing is correlated.
        regressor: shape (n, n_joints, p).
        torque: [N·m or N], shape (n, n_joints).
        used: rows to fit, shape (n, n_joints).
        complete: rows away from gaps and ends, whether fitted or near rest, shape (n,).
    """

    start: int
    regressor: Array
    torque: Array
    used: NDArray[np.bool_]
    complete: NDArray[np.bool_]

    @property
    def stop(self) -> int:
        """Place after the last row."""
        return self.start + len(self.torque)


class Rows(Protocol):
    """Whatever gives the same blocks each time it is asked; only one need be in memory at a time."""

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        ...

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        ...

    def blocks(self) -> Iterator[Block]:
        """All rows in order of time."""
        ...


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """Rows that are one block.

    Attributes:
        regressor: shape (n, n_joints, p).
        torque: [N·m or N], shape (n, n_joints).
        used: rows to fit, shape (n, n_joints).
    """

    regressor: Array
    torque: Array
    used: NDArray[np.bool_]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.regressor.shape[1]

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.regressor.shape[2]

    def blocks(self) -> Iterator[Block]:
        """The one block."""
        complete: NDArray[np.bool_] = np.asarray(self.used.any(axis=1))
        yield Block(0, self.regressor, self.torque, self.used, complete)
