"""What an estimator is given: rows of all recordings, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from jointbench.dynamics import BaseParameters
from jointbench.identification.observations import Observations
from jointbench.identification.rows import Block, Rows
from jointbench.recording.run import Run
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class Problem:
    """Find base parameters of a robot from rows of one or more recordings.

    Attributes:
        robot: whose parameters.
        base: what the columns stand for.
        runs: the recordings.
        observations: of each run, with its settings decided.
        parts: the rows to fit, of each run; its joints have noise levels of their own.
    """

    robot: Robot
    base: BaseParameters
    runs: tuple[Run, ...]
    observations: tuple[Observations, ...]
    parts: tuple[Rows, ...]

    @cached_property
    def rows(self) -> Rows:
        """All parts as one, with gaps between them."""
        return self.parts[0] if len(self.parts) == 1 else JoinedRows(self.parts)


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """Rows of several recordings, one after the other and never adjoining.

    Attributes:
        parts: with the same joints and columns.
    """

    parts: tuple[Rows, ...]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.parts[0].n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.parts[0].n_parameters

    def blocks(self) -> Iterator[Block]:
        """All rows in order of the recordings, each in order of time."""
        free = 0
        for part in self.parts:
            first, stop = free, free
            for block in part.blocks():
                yield replace(block, start=first + block.start)
                stop = first + block.stop
            free = stop + 1
