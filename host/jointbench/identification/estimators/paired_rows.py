"""Rows of one recording with two regressors: that of the motion as measured, and another one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.rows import Block, Rows


class Chosen:
    """Which rows are used, by their place on the grid, as it was when they were first asked for.

    Shared by the passes of one estimate, so that rows do not come and go between them.
    """

    def __init__(self) -> None:
        """Nothing is chosen yet."""
        self._used = np.zeros((0, 0), dtype=np.bool_)
        self._known = np.zeros(0, dtype=np.bool_)

    def of(self, start: int, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows that are used from a place on, shape (n, n_joints); those asked for the first time are `used`'s."""
        stop, length = start + len(used), len(self._known)
        if stop > length:
            more = max(stop, 2 * length) - length
            self._used = np.vstack([self._used.reshape(length, used.shape[1]), np.zeros((more, used.shape[1]), bool)])
            self._known = np.append(self._known, np.zeros(more, bool))
        new = ~self._known[start:stop]
        self._used[start:stop][new] = used[new]
        self._known[start:stop] = True
        return self._used[start:stop].copy()


@dataclass(frozen=True, eq=False)
class Pair:
    """Consecutive rows with both regressors, only those that both sides have.

    Attributes:
        start: place of the first row on the grid.
        measured, other: regressors, shape (n, n_joints, p); a zero of the measured one is zero in the other, too, so
            that a column which the fit leaves out of a joint's rows is left out of both.
        torque, other_torque: shape (n, n_joints) each.
        used: rows that both sides use, shape (n, n_joints).
        complete: shape (n,).
    """

    start: int
    measured: Array
    other: Array
    torque: Array
    other_torque: Array
    used: NDArray[np.bool_]
    complete: NDArray[np.bool_]


class Pairs(Protocol):
    """Whatever gives the same pairs each time it is asked."""

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        ...

    @property
    def n_parameters(self) -> int:
        """Columns of each regressor."""
        ...

    def pairs(self) -> Iterator[Pair]:
        """All rows that both sides have, in order of time."""
        ...


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Two rows on the same grid side by side.

    Attributes:
        measured: the recording's.
        other: of another motion at the same times, block by block as it likes.
        chosen: which rows are used; None: those that both sides use.
    """

    measured: Rows
    other: Rows
    chosen: Chosen | None = None

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.measured.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of each regressor."""
        return self.measured.n_parameters

    def pairs(self) -> Iterator[Pair]:
        """All rows that both sides have, in order."""
        others = self.other.blocks()
        other = next(others, None)
        for block in self.measured.blocks():
            start = block.start
            while other is not None and start < block.stop:
                first, last = max(start, other.start), min(block.stop, other.stop)
                if first < last:
                    pair = _pair(block, other, first, last)
                    used = pair.used if self.chosen is None else self.chosen.of(first, pair.used)
                    yield replace(pair, used=used)
                start = max(start, last)
                if other.stop <= block.stop:
                    other = next(others, None)
                else:
                    break


@dataclass(frozen=True, eq=False)
class OtherRegressor:
    """The other regressor with the recording's torques, or with its own.

    Attributes:
        pair: both sides.
        own_torque: whether the torques are of the other side, too.
    """

    pair: Pairs
    own_torque: bool = False

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.pair.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.pair.n_parameters

    def blocks(self) -> Iterator[Block]:
        """All rows that both sides have."""
        for pair in self.pair.pairs():
            torque = pair.other_torque if self.own_torque else pair.torque
            yield Block.of(pair.start, pair.other, torque, pair.used, pair.complete)


def _pair(block: Block, other: Block, first: int, last: int) -> Pair:
    one, two = slice(first - block.start, last - block.start), slice(first - other.start, last - other.start)
    measured = block.regressor[one]
    return Pair(
        start=first,
        measured=measured,
        other=np.where(measured != 0.0, other.regressor[two], 0.0),
        torque=block.torque[one],
        other_torque=other.torque[two],
        used=block.used[one] & other.used[two],
        complete=block.complete[one] & other.complete[two],
    )
