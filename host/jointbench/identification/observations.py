"""Observations of a run: rows of a least-squares problem, torque and regressor filtered alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import AppendBuffer, Array, read_rows
from jointbench.errors import FitError
from jointbench.identification.cutoff import CutoffChoice, choose_cutoff, motion_knee
from jointbench.identification.delay import Delay, DelayRows, estimate_delay, given_delay
from jointbench.identification.judgement import InformationSums, TorqueInformation, noise_in_band
from jointbench.identification.log_sampling import steps_hide_motion
from jointbench.identification.logged_velocity import better_states, with_logged_velocity
from jointbench.identification.parallel_filter import (
    ParallelFilter,
    Stretch,
    cut,
    default_cutoff,
    spread,
    velocity_threshold,
)
from jointbench.identification.recorded_signals import RecordedSignals, bridge_gaps, recorded_signals
from jointbench.identification.rows import AtSensor, Block, ChangedRows, JointRows, Rows, WithoutMotorSide
from jointbench.identification.settings import FitSettings
from jointbench.model import BaseParameters, Robot
from jointbench.recording import Run
from jointbench.signals import LowPass, Motion, valid_spans


class BlocksInFile:
    """Blocks whose numbers lie in a file without a name; each time they are asked for they are read again."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        """Write them.

        Raises:
            OSError: the disk takes no more.
        """
        buffer = AppendBuffer(np.float64)
        self._heads: list[tuple[Block, list[tuple[int, ...]]]] = []
        for block in blocks:
            arrays = _arrays(block)
            for array in arrays:
                buffer.append(array)
            empty_joints = tuple(JointRows(which, np.empty((len(which), 0))) for which, _ in block.joints)
            head = replace(block, joints=empty_joints, torque=np.empty((0, block.torque.shape[1])), motion=None)
            self._heads.append((head, [array.shape for array in arrays]))
        self._numbers = buffer.to_array()

    def __iter__(self) -> Iterator[Block]:
        start = 0
        for head, shapes in self._heads:
            arrays: list[Array] = []
            for shape in shapes:
                stop = start + int(np.prod(shape))
                arrays.append(read_rows(self._numbers, slice(start, stop)).reshape(shape))
                start = stop
            torque, q, dq, ddq, *columns = arrays
            joints = tuple(JointRows(which, values) for (which, _), values in zip(head.joints, columns, strict=True))
            yield replace(head, joints=joints, torque=torque, motion=Motion(q, dq, ddq))


def _arrays(block: Block) -> list[Array]:
    motion = block.motion
    assert motion is not None
    return [block.torque, motion.q, motion.dq, motion.ddq, *(columns for _, columns in block.joints)]


_IN_MEMORY = 24e6
"""Bytes of columns up to which blocks are kept in memory: some minutes of motion. Those of longer logs go to a file."""

_COARSE_GAP = 0.025
"""Gap that is bridged while a cut-off is looked for [s]: half a period of 20 Hz."""

_DELAY_CUTOFF_HZ = 20.0
"""Cut-off, at most, by which a log's delay is estimated before its own is chosen: delays up to 12 ms can be told."""

_FEWEST = 16
"""Samples of a part that says anything of the motion's band."""

_DELAY_ROWS = 4096
"""Rows that a delay is estimated from, stretches spread evenly over the log: it needs them all in memory at once."""

_DELAY_STRETCHES = 8
"""Over how many stretches, at least, where the log has more rows than that."""


@dataclass(frozen=True)
class Observations:
    """Torque rows and their regressor on an even grid of times, gaps included; a log of any length, block by block.

    torque[k, j] ≈ regressor[k, j] @ base parameters, where complete[k]. Blocks are computed when they are first asked
    for, and kept; a long log's in a file. All rows at once (`regressor`, `torque`, …) are for short logs.

    Attributes:
        filter: what torque and columns went through, with the log's signals.
        stretches: that the log is cut into.
        noise: standard deviation of the torque's mean between periods before filtering, or nan, shape (n_joints,).
        settings: with everything that was left open decided.
        delay: between torque and motion, taken out of the torque here.
        outliers: samples that the average over periods left out, by each joint's position, then each one's torque,
            shape (2 n_joints,).
        choice: of the cut-off, where it was chosen by prediction.
    """

    filter: ParallelFilter
    stretches: tuple[Stretch, ...]
    noise: Array
    settings: FitSettings
    delay: Delay
    outliers: NDArray[np.intp]
    choice: CutoffChoice | None = None

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.filter.base.robot.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.filter.base.rank

    @property
    def n_rows(self) -> int:
        """Rows of time, those in gaps too."""
        return -(-len(self.filter.signals.valid) // self.filter.stride)

    def blocks(self) -> Iterator[Block]:
        """All rows away from gaps and ends in order of time, each block with its motion."""
        return iter(self._kept or self._computed())

    @cached_property
    def _kept(self) -> Sequence[Block] | BlocksInFile | None:
        """The blocks, computed once; None where no disk has room for them."""
        if 8 * self.filter.n_columns * sum(stretch.n_rows for stretch in self.stretches) <= _IN_MEMORY:
            return list(self._computed())
        try:
            return BlocksInFile(self._computed())
        except OSError:
            return None

    def _computed(self) -> Iterator[Block]:
        samples = self.delay.seconds / self.filter.low_pass.sample_period
        threshold, guard = _rest(self.settings, self.filter.low_pass)
        for stretch in self.stretches:
            if not stretch.n_rows:
                continue
            columns = self.filter.columns(stretch, threshold, guard)
            torque = self.filter.torque(stretch, float(np.abs(samples).max()))
            complete = torque.reaches(samples)
            yield Block(
                start=stretch.rows.start,
                joints=columns.joints,
                n_parameters=self.n_parameters,
                torque=torque.earlier(samples),
                used=columns.moving & complete[:, None],
                complete=complete,
                motion=columns.motion,
            )

    @cached_property
    def time(self) -> Array:
        """Time of all rows [s], shape (n,)."""
        return np.asarray(self.filter.signals.time[:: self.filter.stride])

    @cached_property
    def regressor(self) -> Array:
        """Regressor of all rows, filtered as the torque was by board and host, shape (n, n_joints, rank)."""
        return self._whole((self.n_joints, self.n_parameters), lambda block: block.regressor)

    @cached_property
    def torque(self) -> Array:
        """Filtered torque of all rows [N·m or N], zero of passive joints and where not complete, (n, n_joints)."""
        return self._whole((self.n_joints,), lambda block: block.torque)

    @cached_property
    def motion(self) -> Motion:
        """Motion of all rows, filtered position and derivatives, shape (n, n_joints) each."""
        q, dq, ddq = (
            self._whole((self.n_joints,), lambda block, name=name: getattr(block.motion, name))
            for name in ("q", "dq", "ddq")
        )
        return Motion(q, dq, ddq)

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """All rows away from gaps and ends, shape (n,)."""
        return self._whole((), lambda block: block.complete).astype(np.bool_)

    @cached_property
    def moving(self) -> NDArray[np.bool_]:
        """Rows of modelled joints away from rest, shape (n, n_joints); False where not complete."""
        return self._whole((self.n_joints,), lambda block: block.used).astype(np.bool_)

    @property
    def information(self) -> TorqueInformation:
        """Information in each joint's torque: its variation beside its noise."""
        return self._judged_torque[0]

    @property
    def n_fitted(self) -> tuple[int, ...]:
        """Number of rows of each joint that are fitted."""
        return tuple(int(n) for n in np.where(self.information.informative, self._judged_torque[1], 0))

    @property
    def unfiltered(self) -> Observations:
        """Rows of the motion with the torque as measured, their columns through the boards' filters alone."""
        raw = replace(self.filter, smooths_torque=False)
        parts = [stretch.part for k, stretch in enumerate(self.stretches) if stretch.part != self.stretches[k - 1].part]
        stretches = cut(parts or [self.stretches[0].part], raw.low_pass, stride=raw.stride)
        return replace(self, filter=raw, stretches=tuple(stretches))

    def measured(self, base: BaseParameters) -> Rows:
        """All rows, as the sensor feels them: a torque sensor at the joint does not feel the rotor before it."""
        return AtSensor(self, base) if self.settings.torque == "joint" else self

    @cached_property
    def _judged_torque(self) -> tuple[TorqueInformation, NDArray[np.intp]]:
        """Information in the torques and rows of each joint away from rest, in one pass."""
        sums, moving = InformationSums(self.n_joints), np.zeros(self.n_joints, dtype=np.intp)
        for block in self.blocks():
            sums.add(block.start, block.torque, block.used)
            moving += block.used.sum(axis=0)
        return sums.result(noise_in_band(self.noise, self.filter.low_pass)), moving

    def _whole(self, shape: tuple[int, ...], of: Callable[[Block], NDArray[Any]]) -> Array:
        """Something of all blocks in its place among all rows, zero where there is no block."""
        whole = np.zeros((self.n_rows, *shape))
        for block in self.blocks():
            whole[block.start : block.stop] = of(block)
        return whole


def observe(
    run: Run, robot: Robot, base: BaseParameters, settings: FitSettings, *, by_prediction: bool = True
) -> Observations:
    """Turn a run into observations of the robot's base parameters.

    The same zero-phase low-pass goes over torque and over each column of the regressor ("parallel filtering"), and
    the columns also go through what the board did to the current; so no filter biases the parameters. Then two samples
    per period of the cut-off are kept. Where motion was recorded later than torque, each row has the torque of its own
    motion, taken between the samples before it.

    A log of any length takes the memory of a stretch of some seconds. Of what is decided from the recording, speeds
    come from all of it; the motion's band and the delay, where it is longer than a minute or two, from stretches spread
    evenly over it.

    Args:
        run: the recording.
        robot: its robot.
        base: base parameters with drives.
        settings: what is None in it is decided from the recording.
        by_prediction: whether a log's cut-off is the one that predicts best, or that of recordings of boards.

    Raises:
        FitError: the run cannot give what the settings ask for.
        SignalError: the cut-off does not suit the sample rate.
    """
    signals = recorded_signals(run, robot, settings)
    delay, choice = _known_delay(robot, settings, signals), None
    cutoff = settings.cutoff_Hz
    if cutoff is None and by_prediction and (is_unknown(signals) or _is_hidden(signals, robot)):
        coarse = bridge_gaps(signals, _COARSE_GAP)
        parts = list(valid_spans(coarse.valid, _FEWEST))
        if parts:
            knee = motion_knee(coarse, parts)
            if delay is None:
                delay = _delay_at(run, coarse, base, settings, min(knee, _DELAY_CUTOFF_HZ, 0.2 / coarse.spacing))
            choice = choose_cutoff(coarse, base, parts, delay.seconds, knee)
            if choice is not None and settings.delay is None and not delay.seconds.any():
                # A short delay shows at the frequencies that a low cut-off takes away, and hides what these tell.
                again = _delay_at(run, coarse, base, settings, choice.cutoff_Hz)
                if again.seconds.any():
                    delay = again
                    choice = choose_cutoff(coarse, base, parts, delay.seconds, knee)
            if choice is not None and settings.velocity is None:
                choice, logged = better_states(run, coarse, base, parts, delay.seconds, choice)
                settings = dataclasses.replace(settings, velocity="logged" if logged else "differences")
    if cutoff is None:
        cutoff = default_cutoff(signals) if choice is None else choice.cutoff_Hz
    if signals.spacing > signals.sample_period and cutoff > 0.5 / signals.spacing:
        raise FitError(
            f"cutoff_Hz = {cutoff:g} is beyond what run {run.path} tells, whose boards sent a sample each "
            f"{1e3 * signals.spacing:g} ms: at most {0.5 / signals.spacing:g} Hz, better {0.2 / signals.spacing:g}"
        )
    low_pass = LowPass(cutoff, signals.sample_period, settings.filter_order)
    if settings.velocity == "logged":
        signals = with_logged_velocity(signals, run, list(valid_spans(signals.valid)), cutoff) or signals
    signals = bridge_gaps(signals, 0.5 / low_pass.cutoff_Hz)
    filtered, stretches, settings = _filtered(run, signals, base, settings, low_pass)
    if delay is None:
        delay = _estimated_delay(run, filtered, _parts(run, signals, filtered.low_pass), settings)
    common = bool(np.all(delay.seconds == delay.seconds[0]))
    seconds = float(delay.seconds[0]) if common else tuple(float(value) for value in delay.seconds)
    settings = dataclasses.replace(settings, delay=seconds)
    return Observations(filtered, stretches, signals.noise, settings, delay, signals.outliers, choice)


def _filtered(
    run: Run, signals: RecordedSignals, base: BaseParameters, settings: FitSettings, low_pass: LowPass
) -> tuple[ParallelFilter, tuple[Stretch, ...], FitSettings]:
    """Signals behind a low-pass, cut into stretches, and the settings with what follows from its cut-off."""
    filtered = ParallelFilter(signals, base, low_pass)
    stretches = tuple(cut(_parts(run, signals, low_pass), low_pass))
    decided = dataclasses.replace(
        settings,
        cutoff_Hz=low_pass.cutoff_Hz,
        velocity_threshold=velocity_threshold(settings, filtered, stretches),
        rest_guard=0.5 / low_pass.cutoff_Hz if settings.rest_guard is None else settings.rest_guard,
    )
    return filtered, stretches, decided


def _delay_at(run: Run, signals: RecordedSignals, base: BaseParameters, settings: FitSettings, cutoff: float) -> Delay:
    """Estimate the delay behind a low-pass that is low enough for long ones."""
    low_pass = LowPass(cutoff, signals.sample_period, settings.filter_order)
    filtered, _, decided = _filtered(run, signals, base, settings, low_pass)
    return _estimated_delay(run, filtered, _parts(run, signals, filtered.low_pass), decided)


def is_unknown(signals: RecordedSignals) -> bool:
    """Return whether neither repeats nor boards' filters tell of a recording's noise, as of somebody's log."""
    return not signals.board_filters and not np.isfinite(signals.noise).any() and signals.series is None


def _is_hidden(signals: RecordedSignals, robot: Robot) -> bool:
    """Whether steps of positions hide a motion that nothing else tells: a series through them needs no cut-off."""
    return signals.series is None and steps_hide_motion(signals, robot)


def _parts(run: Run, signals: RecordedSignals, low_pass: LowPass) -> list[slice]:
    """Parts of the log that are long enough for the filter."""
    least = 2 * low_pass.settling + low_pass.stride + 2
    parts = list(valid_spans(signals.valid, least))
    if not parts:
        longest = max(part.stop - part.start for part in valid_spans(signals.valid))
        raise FitError(
            f"run {run.path}: its longest stretch without a gap has {longest} samples, and a low-pass at "
            f"{low_pass.cutoff_Hz:.3g} Hz needs more than {least - 1}; record longer, with position and torque in each "
            f"sample, or raise cutoff_Hz"
        )
    return parts


def _rest(settings: FitSettings, low_pass: LowPass) -> tuple[Array, int]:
    """Speed below which each joint is near rest, and for how many samples around that it counts as such."""
    assert settings.velocity_threshold is not None
    assert settings.rest_guard is not None
    return np.array(settings.velocity_threshold), round(settings.rest_guard / low_pass.sample_period)


def _known_delay(robot: Robot, settings: FitSettings, signals: RecordedSignals) -> Delay | None:
    """The delay that the settings or the boards' filters tell; None where it must be estimated."""
    given = settings.delay
    if given is None and signals.board_filters:
        return given_delay(np.zeros(robot.n_joints), "the boards' filters are known, and part of the regressor")
    if given is None or isinstance(given, str):
        return None
    if isinstance(given, tuple) and len(given) != robot.n_joints:
        raise FitError(
            f"delay has {len(given)} values; robot {robot.name!r} needs one for all joints, or one for each of its "
            f"{robot.n_joints}"
        )
    return given_delay(np.broadcast_to(np.asarray(given, dtype=np.float64), (robot.n_joints,)).copy(), "as set")


def _estimated_delay(run: Run, filtered: ParallelFilter, parts: Sequence[slice], settings: FitSettings) -> Delay:
    """Estimate the delay from rows that know their torque within the filter's memory before and after."""
    low_pass = filtered.low_pass
    h, limit, (threshold, guard) = low_pass.sample_period, float(low_pass.settling), _rest(settings, low_pass)
    few = max(_DELAY_ROWS // _DELAY_STRETCHES, 1) * low_pass.stride
    chosen = spread(cut(parts, low_pass, most=few), _DELAY_ROWS)
    rows: list[DelayRows] = []
    for stretch in chosen:
        columns, torque = filtered.columns(stretch, threshold, guard, rates=True), filtered.torque(stretch, limit)
        within = torque.reaches(np.array([limit])) & torque.reaches(np.array([-limit]))
        rows.append(DelayRows(columns.joints, columns.rates, torque, columns.moving & within[:, None]))
    per_joint = settings.delay == "estimate_per_joint"
    delay = estimate_delay(rows, filtered.base.rank, limit=limit * h, step=h, per_joint=per_joint)
    if settings.delay is None:
        return delay.if_clear(low_pass.cutoff_Hz)
    if delay.source == "not told":
        raise FitError(f"run {run.path}: {delay.reason}; give delay in seconds, or record livelier motion")
    return delay


@dataclass(frozen=True, eq=False)
class OfJoints(ChangedRows):
    """Rows of some joints only.

    Attributes:
        rows: of all joints.
        joints: whose are fitted, shape (n_joints,).
    """

    joints: NDArray[np.bool_]

    def blocks(self) -> Iterator[Block]:
        """The rows, of the other joints none used."""
        for block in self.rows.blocks():
            yield replace(block, used=block.used & self.joints)


def modelled_torque(recordings: Sequence[Observations]) -> str:
    """Return the side whose torque is modelled: "joint", at the sensors, where any recording has them, or "motor"."""
    return "joint" if any(observations.settings.torque == "joint" for observations in recordings) else "motor"


def fitted_rows(recordings: Sequence[Observations], base: BaseParameters) -> tuple[Rows, ...]:
    """Return the rows to fit, recording by recording.

    Joints whose torque does not vary more than its noise have none. Where some recordings have torque sensors at the
    joints, what motors add before these is taken out of the others, which then tell of the links alone.

    Args:
        recordings: observations of each.
        base: what the columns stand for at the motors, rotors included.
    """
    at_joint = modelled_torque(recordings) == "joint"
    parts: list[Rows] = []
    for observations in recordings:
        informative = observations.information.informative
        rows = observations.measured(base)
        if not informative.all():
            rows = OfJoints(rows, informative)
        parts.append(WithoutMotorSide(rows, base) if at_joint and observations.settings.torque == "motor" else rows)
    return tuple(parts)


def best_information(recordings: Sequence[Observations]) -> TorqueInformation:
    """Return of each joint the information of the recording in which its torque varies most beside its noise."""
    variation = np.array([observations.information.variation for observations in recordings])
    noise = np.array([observations.information.noise for observations in recordings])
    best = np.argmax(np.nan_to_num(variation) - np.nan_to_num(noise), axis=0)
    joints = np.arange(len(best))
    return TorqueInformation(variation[best, joints], noise[best, joints])
