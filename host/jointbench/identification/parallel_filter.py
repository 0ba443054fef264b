"""One filter over torque, positions and the regressor's columns of a log, cut into stretches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, read_rows
from jointbench.errors import FitError
from jointbench.identification.recorded_signals import RecordedSignals, is_still
from jointbench.identification.rows import BaseColumns, JointRows
from jointbench.identification.settings import FitSettings
from jointbench.model import BaseParameters
from jointbench.signals import (
    LowPass,
    Motion,
    bandwidth,
    interpolate_samples,
    moving_mask,
    rest_threshold,
    valid_spans,
)

SAMPLES = 8192
"""Of a stretch, without what it needs of its neighbours: a six-axis arm's columns of them take some 15 MB."""

_MEMORIES = 4
"""A stretch is that many times as long as the filter remembers, or most of the work would be done twice."""


@dataclass(frozen=True)
class Stretch:
    """Some rows of a part of the log that has no gap.

    Attributes:
        part: the samples of the whole part.
        own: those of the stretch; together the stretches of a part are the part.
        rows: the rows among them that are away from the part's ends; sample = row * stride.
        stride: samples from row to row.
    """

    part: slice
    own: slice
    rows: slice
    stride: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.stop - self.rows.start

    def around(self, margin: int) -> slice:
        """Its samples and `margin` more on both sides, as far as the part goes."""
        return slice(max(self.part.start, self.own.start - margin), min(self.part.stop, self.own.stop + margin))

    def places(self, span: slice) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Return the places of its rows among the samples of a span."""
        return self.stride * np.arange(self.rows.start, self.rows.stop) - span.start


def cut(parts: Sequence[slice], low_pass: LowPass, most: int | None = None, stride: int | None = None) -> list[Stretch]:
    """Cut parts without gaps into stretches of whole rows.

    Args:
        parts: samples from..to each.
        low_pass: tells how far from an end rows are, and how many samples lie between them.
        most: samples of a stretch; None: `SAMPLES`, or more where the filter remembers long.
        stride: samples from row to row; None: the low-pass's.
    """
    stride, settling = stride or low_pass.stride, low_pass.settling
    length = max(1, (most or max(SAMPLES, _MEMORIES * low_pass.memory)) // stride)
    stretches: list[Stretch] = []
    for part in parts:
        first, end = -(-(part.start + settling) // stride), -(-(part.stop - settling) // stride)
        starts = range(first, max(end, first + 1), length)
        for start in starts:
            stop = min(start + length, end)
            own = slice(
                part.start if start == first else start * stride, part.stop if start == starts[-1] else stop * stride
            )
            stretches.append(Stretch(part, own, slice(start, max(start, stop)), stride))
    return stretches


def spread(stretches: Sequence[Stretch], rows: int) -> list[Stretch]:
    """Return as many stretches as have so many rows together, at least one, evenly over the log; all if they have not.

    Each has about as many rows as the others, so that their number tells how many to take.
    """
    total = sum(stretch.n_rows for stretch in stretches)
    if total <= rows:
        return list(stretches)
    count = max(1, int(len(stretches) * rows / total))
    return [stretches[int((k + 0.5) * len(stretches) / count)] for k in range(count)]


_UNFILTERED_ROWS_S = 0.01

_BETWEEN = 4
"""Samples beyond a place that interpolation looks at, and one more."""


class TorqueStretch(NamedTuple):
    """Filtered torque around some rows at the full sample rate.

    Attributes:
        places: sample of each row, counted from that of the first value, shape (n_rows,).
        values: shape (n, n_joints).
        first, last: places, maybe beyond the values, that are away from the ends of the log and its gaps.
    """

    places: NDArray[np.intp]
    values: Array
    first: int
    last: int

    def reaches(self, samples: Array) -> NDArray[np.bool_]:
        """Rows whose torque is still away from the ends when each joint's is taken `samples` earlier."""
        earlier = self.places[:, None] - samples
        return np.asarray(((earlier >= self.first) & (earlier <= self.last)).all(axis=1))

    def earlier(self, samples: Array) -> Array:
        """Torque of each joint that many samples before the rows, zero where not reached, shape (n_rows, n_joints)."""
        torque = np.zeros((len(self.places), len(samples)))
        reached = self.reaches(samples)
        places = self.places[reached]
        for joint, late in enumerate(samples):
            if late == np.rint(late):
                torque[reached, joint] = self.values[places - int(late), joint]
                continue
            torque[reached, joint] = interpolate_samples(self.values[:, joint], places - late)
        return torque


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
    """Filters that a log's torque went through on the board and the host, applied to the columns of its motion too.

    A stretch is filtered with as much of its neighbours as the filters remember, so that its rows are the same
    wherever the log is cut.

    Attributes:
        signals: of the log.
        base: base parameters with drives.
        low_pass: zero-phase.
        smooths_torque: whether torque and columns go through the low-pass, too; positions always do.
    """

    signals: RecordedSignals
    base: BaseParameters
    low_pass: LowPass
    smooths_torque: bool = True

    @property
    def n_columns(self) -> int:
        """Columns of all joints together that are not always zero."""
        return sum(map(len, self._columns.parameters))

    @property
    def stride(self) -> int:
        """Samples from row to row: two rows a period of the cut-off; of unfiltered torque a row each 10 ms at least."""
        if self.smooths_torque:
            return self.low_pass.stride
        return max(1, min(self.low_pass.stride, int(_UNFILTERED_ROWS_S / self.low_pass.sample_period + 1e-9)))

    def extremes(self, stretch: Stretch) -> tuple[Array, Array, Array]:
        """Extremes of each joint's motion in a stretch's own samples.

        Returns:
            Largest speed [rad/s or m/s], lowest and highest position [rad or m], shape (n_joints,) each.
        """
        span = stretch.around(self.low_pass.memory + 1)
        own = slice(stretch.own.start - span.start, stretch.own.stop - span.start)
        motion = self.motion(span)
        q = motion.q[own]
        return np.abs(motion.dq[own]).max(axis=0), q.min(axis=0), q.max(axis=0)

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
            values=self.low_pass.apply(values) if self.smooths_torque else values,
            first=part.start + settling - span.start,
            last=part.stop - 1 - settling - span.start,
        )

    def filtered(self, joint: int, values: Array) -> Array:
        """A joint's columns, through its board's filter and the low-pass, shape as they have."""
        if self.signals.board_filters:
            values = self.signals.board_filters[joint].apply(values.T).T
        return self.low_pass.apply(values.T).T if self.smooths_torque else values

    def motion(self, span: slice, low_pass: LowPass | None = None) -> Motion:
        """Motion of a span: from the series through all of it, where there is one, or from filtered positions.

        Args:
            span: samples of a part without gaps.
            low_pass: another one than the torque's.
        """
        if self.signals.series is None:
            return self.signals.smooth_motion(span, low_pass or self.low_pass)
        known = self.signals.series.motion
        return Motion(known.q[span], known.dq[span], known.ddq[span])

    @cached_property
    def _columns(self) -> BaseColumns:
        return BaseColumns(self.base)

    @cached_property
    def board_memory(self) -> int:
        """Memory of the boards' filters, in samples."""
        return max((board_filter.memory for board_filter in self.signals.board_filters), default=0)


_MOTION_HARMONICS = 10.0
LEAST_CUTOFF_HZ = 20.0
HIGHEST_CUTOFF = 0.2  # of the sample rate

_BAND_SAMPLES, _BAND_PIECES = 1 << 17, 8
"""Samples of the longest stretch without a gap up to which all of it tells the motion's band; of a longer one as many,
in so many pieces spread evenly over it."""


def default_cutoff(signals: RecordedSignals) -> float:
    """Ten times the frequency below which 99 % of the motion lies [Hz], but 20 Hz and a fifth of the sample rate."""
    longest = max(valid_spans(signals.valid), key=lambda part: part.stop - part.start)
    samples = longest.stop - longest.start
    highest = HIGHEST_CUTOFF / signals.spacing
    if samples < 3:
        return min(LEAST_CUTOFF_HZ, highest)
    count, length = (1, samples) if samples <= _BAND_SAMPLES else (_BAND_PIECES, _BAND_SAMPLES // _BAND_PIECES)
    starts = np.linspace(longest.start, longest.stop - length, count).astype(np.intp)
    position = np.stack([read_rows(signals.position, slice(int(start), int(start) + length)) for start in starts])
    wanted = _MOTION_HARMONICS * bandwidth(position, signals.sample_period)
    return min(max(wanted, LEAST_CUTOFF_HZ), highest)


def velocity_threshold(
    settings: FitSettings, filtered: ParallelFilter, stretches: Sequence[Stretch]
) -> tuple[float, ...]:
    """Speed below which each joint is near rest [rad/s or m/s]: as set, or 3 % of its largest in all of the log.

    A joint that stands still in all of the log has its largest speed, which is noise: none of its rows is fitted.

    Raises:
        FitError: there is not one for each joint.
    """
    robot, given = filtered.base.robot, settings.velocity_threshold
    if given is None:
        speeds, lowest, highest = (np.array(values) for values in zip(*map(filtered.extremes, stretches), strict=True))
        fastest = speeds.max(axis=0)
        still = is_still(robot, highest.max(axis=0) - lowest.min(axis=0))
        return _floats(np.where(still, fastest, rest_threshold(fastest[None])))
    if len(given) != robot.n_joints:
        raise FitError(
            f"velocity_threshold has {len(given)} values; robot {robot.name!r} needs one for each of its "
            f"{robot.n_joints} joints"
        )
    return given


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
