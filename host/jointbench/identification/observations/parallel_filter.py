"""One filter over torque, positions and the regressor's columns, stretch by stretch of a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.identification.observations.delay_rows import TorqueStretch
from jointbench.identification.observations.recorded_signals import RecordedSignals
from jointbench.identification.observations.stretches import Stretch
from jointbench.identification.rows import JointRows
from jointbench.identification.rows.motion_rows import BaseColumns
from jointbench.memory_mapping import read_rows
from jointbench.signals import LowPass, Motion, moving_mask, smooth_motion

_BETWEEN = 4
"""Samples beyond a place that interpolation looks at, and one more."""


@dataclass(frozen=True, eq=False)
class FilteredColumns:
    """Rows of a stretch.

    Attributes:
        joints: each joint's columns, filtered as its torque was.
        rates: their derivatives by time, where asked for.
        motion: filtered position and derivatives.
        moving: rows of modelled joints away from rest, shape (n, n_joints).
    """

    joints: tuple[JointRows, ...]
    rates: tuple[JointRows, ...]
    motion: Motion
    moving: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ParallelFilter:
    """What the board and the host do to a log's torque, done to the columns of its motion too.

    A stretch is filtered with as much of its neighbours as the filters remember, so that its rows are the same
    wherever the log is cut.

    Attributes:
        signals: of the log.
        base: base parameters with drives.
        low_pass: zero-phase.
    """

    signals: RecordedSignals
    base: BaseParameters
    low_pass: LowPass

    @property
    def n_columns(self) -> int:
        """Columns of all joints together that are not always zero."""
        return sum(map(len, self._columns.parameters))

    def speed(self, stretch: Stretch) -> Array:
        """Largest speed of each joint in a stretch's own samples [rad/s or m/s], shape (n_joints,)."""
        span = stretch.around(self.low_pass.memory + 1)
        own = slice(stretch.own.start - span.start, stretch.own.stop - span.start)
        return np.abs(self.motion(span).dq[own]).max(axis=0)

    def columns(self, stretch: Stretch, threshold: Array, guard: int, *, rates: bool = False) -> FilteredColumns:
        """Filtered columns of a stretch's rows.

        Args:
            stretch: of the log.
            threshold: speed below which a joint is near rest [rad/s or m/s], shape (n_joints,).
            guard: samples around such a sample that are, too.
            rates: whether to differentiate them by time.
        """
        # The columns are wrong as far as the positions' filter feels the cut, and filtered themselves.
        span = stretch.around(max(2 * self.low_pass.memory + self.board_memory, guard + self.low_pass.memory) + 2)
        motion, rows = self.motion(span), stretch.places(span)
        joints: list[JointRows] = []
        slopes: list[JointRows] = []
        for joint, (parameters, values) in enumerate(self._columns(motion.q, motion.dq, motion.ddq)):
            filtered = self.filtered(joint, values)
            joints.append(JointRows(parameters, np.ascontiguousarray(filtered[:, rows])))
            if rates:
                rate = (filtered[:, rows + 1] - filtered[:, rows - 1]) / (2.0 * self.low_pass.sample_period)
                slopes.append(JointRows(parameters, rate))
        return FilteredColumns(
            joints=tuple(joints),
            rates=tuple(slopes),
            motion=Motion(motion.q[rows], motion.dq[rows], motion.ddq[rows]),
            moving=moving_mask(motion.dq, threshold, guard)[rows] & self.base.robot.modelled,
        )

    def of_motion(self, stretch: Stretch, columns: Callable[[Motion], Mapping[int, Array]]) -> dict[int, Array]:
        """Columns of some joints, computed of a stretch's motion and filtered as these joints' torques were.

        Args:
            stretch: of the log.
            columns: by joint, shape (m, n) each, of the motion of n samples.

        Returns:
            Those of the stretch's rows, by joint, shape (m, n_rows).
        """
        span = stretch.around(2 * self.low_pass.memory + self.board_memory + 2)
        rows = stretch.places(span)
        return {
            joint: np.ascontiguousarray(self.filtered(joint, values)[:, rows])
            for joint, values in columns(self.motion(span)).items()
        }

    def torque(self, stretch: Stretch, latest: float) -> TorqueStretch:
        """Filtered torque around a stretch's rows.

        Args:
            stretch: of the log.
            latest: by how many samples, at most, it will be asked for earlier or later.
        """
        span = stretch.around(self.low_pass.memory + int(np.ceil(latest)) + _BETWEEN)
        values = np.where(self.base.robot.modelled, read_rows(self.signals.torque, span), 0.0)
        settling, part = self.low_pass.settling, stretch.part
        return TorqueStretch(
            places=stretch.places(span),
            values=self.low_pass.apply(values),
            first=part.start + settling - span.start,
            last=part.stop - 1 - settling - span.start,
        )

    def filtered(self, joint: int, values: Array) -> Array:
        """A joint's columns, through its board's filter and the low-pass, shape as they have."""
        if self.signals.board_filters:
            values = self.signals.board_filters[joint].apply(values.T).T
        return self.low_pass.apply(values.T).T

    def motion(self, span: slice, low_pass: LowPass | None = None) -> Motion:
        """Motion of a span: from the series through all of it, where there is one, or from filtered positions.

        Args:
            span: samples of a part without gaps.
            low_pass: another one than the torque's.
        """
        if self.signals.series is None:
            return smooth_motion(read_rows(self.signals.position, span), low_pass or self.low_pass)
        known = self.signals.series.motion
        return Motion(known.q[span], known.dq[span], known.ddq[span])

    @cached_property
    def _columns(self) -> BaseColumns:
        return BaseColumns(self.base)

    @cached_property
    def board_memory(self) -> int:
        """How many samples back the boards' filters feel."""
        return max((each.memory for each in self.signals.board_filters), default=0)
