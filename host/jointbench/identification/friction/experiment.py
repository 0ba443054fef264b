"""The friction experiment: steady speeds both ways, their motion on a bench, and friction read off a run of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData, combine_directions, steady_strokes
from jointbench.identification.model import Model
from jointbench.model import inverse_dynamics, model_columns
from jointbench.recording import Run
from jointbench.signals import LowPass, Motion, moving_mask, rest_threshold, smooth_motion, valid_spans

if TYPE_CHECKING:
    from jointbench.excitation import SpeedStairs


@dataclass(frozen=True)
class SpeedSweep:
    """Motion to and fro between two positions, once per speed, with pauses; constant acceleration at the ends.

    Attributes:
        lower, upper: positions between which the joint moves [rad or m].
        first: the lowest speed [rad/s or m/s].
        step: by how much each speed is above the one before.
        n_speeds: how many there are.
        pause: rest after each stroke [s].
        acceleration: of the ramps [rad/s² or m/s²].

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024, whose ±90°, 1 °/s, 0.5 °/s, more than 60
    speeds and 5 s are the defaults; their ramps are not printed, 60 °/s² is assumed.
    """

    lower: float = -0.5 * math.pi
    upper: float = 0.5 * math.pi
    first: float = math.radians(1.0)
    step: float = math.radians(0.5)
    n_speeds: int = 61
    pause: float = 5.0
    acceleration: float = math.radians(60.0)

    def __post_init__(self) -> None:
        """Refuse a sweep that no joint can do.

        Raises:
            FitError: positions, speeds or acceleration leave no stroke of steady speed.
        """
        if not (self.first > 0.0 and self.step >= 0.0 and self.n_speeds >= 1 and self.pause >= 0.0):
            raise FitError(
                f"a speed sweep of {self.n_speeds} speeds from {self.first:g} in steps of {self.step:g} with pauses of "
                f"{self.pause:g} s is impossible; give at least one speed, above 0, and no step or pause below 0"
            )
        fastest = float(self.speeds[-1])
        if not (self.acceleration > 0.0 and fastest**2 / self.acceleration < self.upper - self.lower):
            raise FitError(
                f"a sweep up to {fastest:.3g} between {self.lower:.3g} and {self.upper:.3g} has no room for ramps of "
                f"{self.acceleration:.3g}; use a longer way, fewer speeds or more acceleration"
            )

    @property
    def speeds(self) -> Array:
        """All speeds, shape (n_speeds,)."""
        return self.first + self.step * np.arange(self.n_speeds, dtype=np.float64)

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(2.0 * np.sum(self._stroke_times + self.pause))

    def position(self, time: Array) -> Array:
        """Position at these times [s], shape (n,); the joint begins and ends at `lower`."""
        lengths = np.repeat(self._stroke_times + self.pause, 2)
        begins = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
        stroke = np.clip(np.searchsorted(begins, time, side="right") - 1, 0, len(begins) - 1)
        speed, whole = self.speeds[stroke // 2], self._stroke_times[stroke // 2]
        since = np.clip(time - begins[stroke], 0.0, whole)
        ramp = speed / self.acceleration
        # Both ramps have the same shape: what is travelled until now, or what is left to travel.
        near = np.minimum(since, whole - since)
        travelled = np.where(near < ramp, 0.5 * self.acceleration * near**2, speed * (near - 0.5 * ramp))
        travelled = np.where(since <= 0.5 * whole, travelled, self.upper - self.lower - travelled)
        return np.where(stroke % 2 == 0, self.lower + travelled, self.upper - travelled)

    @property
    def _stroke_times(self) -> Array:
        return (self.upper - self.lower) / self.speeds + self.speeds / self.acceleration


_UNSETTLED = 0.25
"""Share of a hold that is left out at either end: the same positions are left in both directions."""

_LEAST_LOAD = 0.25
"""Share of the largest friction that the load must reach for its part in friction to be told: what a small load seems
to add would be carried far beyond it."""


def played_stairs(run: Run) -> SpeedStairs | None:
    """The stair of speeds that a run played, None where it played something else."""
    from jointbench.excitation import SpeedStairs  # the optimiser beside it is slow to import

    basis = run.excitation.basis if run.excitation is not None else None
    return basis if isinstance(basis, SpeedStairs) and bool((run.samples.play_tick >= 0).any()) else None


def stairs_friction(run: Run, stairs: SpeedStairs, torque: Array, valid: NDArray[np.bool_]) -> dict[str, FrictionData]:
    """Friction of the joints that went up and down the stair: a row for each speed and playing.

    torque(v) = (mean torque one way - mean torque back) / 2; half their sum is the load, which does not turn with the
    direction: gravity above all. A joint that hardly carries any has no load among its data.

    Args:
        run: that played it.
        stairs: as `played_stairs` gives it.
        torque: joint torque [N·m or N], shape (n_samples, n_joints).
        valid: samples to use, shape (n_samples,).

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024.
    """
    assert run.excitation is not None  # it played the stair
    samples, period = run.samples, run.samples.sample_period
    place, rows = _places(samples.play_tick), list[tuple[Array, Array, Array]]()
    length, margin = round(stairs.hold / period), round(_UNSETTLED * stairs.hold / period)
    part = np.arange(margin, length - margin)
    for playing in range(max(run.repeats, 1)):
        begin = playing * round(stairs.duration / period)
        for there, back, _ in stairs.holds:
            ticks = [begin + round(start / period) + part for start in (there, back)]
            if ticks[0][-1] >= len(place) or ticks[1][-1] >= len(place):
                continue  # cut off
            up, down = (place[tick] for tick in ticks)
            both = np.concatenate([up, down])
            if (both >= 0).all() and valid[both].all():
                speeds = (_slope(samples.motor_position[up], period), _slope(samples.motor_position[down], period))
                torques = (torque[up].mean(axis=0), torque[down].mean(axis=0))
                halves = 0.5 * (torques[0] - torques[1]), 0.5 * (torques[0] + torques[1])
                rows.append((0.5 * (speeds[0] - speeds[1]), *halves))
    if not rows:
        return {}
    speed, friction, load = (np.array(column) for column in zip(*rows, strict=True))
    turns = np.sign(run.excitation.weights[:, 0])
    loaded = np.abs(load).max(axis=0) >= _LEAST_LOAD * np.abs(friction).max(axis=0)
    return {
        name: FrictionData(speed[:, j] * turns[j], friction[:, j] * turns[j], load[:, j] if loaded[j] else None)
        for j, name in enumerate(samples.joint_names)
        if turns[j]
    }


def _places(play_tick: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each tick of the motion, -1 where it is in none, shape (n_ticks,)."""
    place = np.full(int(play_tick.max()) + 1, -1, dtype=np.int64)
    playing = np.flatnonzero(play_tick >= 0)
    place[play_tick[playing]] = playing
    return place


def _slope(position: Array, period: float) -> Array:
    """Velocity of each column by the straight line through it, shape (n_joints,)."""
    time = period * (np.arange(len(position)) - 0.5 * (len(position) - 1))
    return time @ position / (time @ time)


_FRICTION = (".viscous", ".coulomb")
"""How the parameters end that are friction."""

Rest = Callable[[Run, slice, Motion, Model | None], Array]
"""Torque behind the friction, of a stretch and its motion, not yet filtered [N·m or N], shape (n, n_joints)."""


@dataclass(frozen=True, eq=False)
class SweepRows:
    """All joints' friction, two rows per period of the low-pass's cut-off.

    Attributes:
        motion: filtered, shape (n, n_joints) each; its acceleration twice, as torque is.
        friction: [N·m or N], shape (n, n_joints).
        load: [N·m or N], shape (n, n_joints).
        temperature: [K], or None where not measured, shape (n, n_joints).
    """

    motion: Motion
    friction: Array
    load: Array
    temperature: Array | None

    def of_joint(self, j: int, rows: NDArray[np.bool_], with_acceleration: bool) -> FrictionData:
        """One joint's rows, picked by a mask."""
        return FrictionData(
            velocity=self.motion.dq[rows, j],
            torque=self.friction[rows, j],
            load=self.load[rows, j],
            temperature=None if self.temperature is None else self.temperature[rows, j],
            acceleration=self.motion.ddq[rows, j] if with_acceleration else None,
            in_time=True,
        )


def subtracted(run: Run, part: slice, torque: Array, low_pass: LowPass, rest: Rest, model: Model | None) -> SweepRows:
    """Friction over one stretch without a gap, its ends left out as far as they feel the edge.

    friction = motor torque - torque of all else - known rotor inertia x acceleration, all through one low-pass.
    """
    motion = smooth_motion(run.samples.motor_position[part], low_pass)
    load = low_pass.apply(rest(run, part, motion, model))
    acceleration = low_pass.apply(motion.ddq)
    friction = low_pass.apply(np.where(run.robot.modelled, torque, 0.0)) - load
    if model is None:
        friction = friction - acceleration @ run.robot.drive_train.known_inertia.T
    warm = _temperature(run)
    rows = slice(low_pass.settling, len(torque) - low_pass.settling, low_pass.stride)
    kept = Motion(motion.q[rows], motion.dq[rows], acceleration[rows])
    return SweepRows(kept, friction[rows], load[rows], None if warm is None else warm[part][rows])


def concatenate(stretches: list[SweepRows]) -> SweepRows:
    """One stretch after the other."""
    warm = [rows.temperature for rows in stretches if rows.temperature is not None]
    return SweepRows(
        motion=Motion(*(np.vstack([getattr(rows.motion, name) for rows in stretches]) for name in ("q", "dq", "ddq"))),
        friction=np.vstack([rows.friction for rows in stretches]),
        load=np.vstack([rows.load for rows in stretches]),
        temperature=np.vstack(warm) if warm else None,
    )


def sensor_torque(run: Run, part: slice, motion: Motion, model: Model | None) -> Array:
    """Return the torque that the joints' sensors measured.

    Raises:
        FitError: there are none.
    """
    if run.samples.joint_torque is None:
        raise FitError(f"run {run.path} has no joint_torque; take friction from a model, or from a sweep of speeds")
    return run.samples.joint_torque[part]


def rigid_torque(run: Run, part: slice, motion: Motion, model: Model | None) -> Array:
    """Return the torque of a fitted model without its friction, or of the nominal inertias without the rotors.

    Raises:
        FitError: there is neither, or the model is of another robot.
    """
    robot = run.robot
    if model is not None:
        if model.robot.joint_names != robot.joint_names:
            raise FitError(
                f"the model is of joints {', '.join(model.robot.joint_names)}, and run {run.path} of "
                f"{', '.join(robot.joint_names)}; fit one of the same robot"
            )
        columns, names = model_columns(model.robot, motion.q, motion.dq, motion.ddq)
        columns[:, [name.endswith(_FRICTION) for name in names]] = 0.0
        return (model.base.project(columns) @ model.parameters).reshape(-1, robot.n_joints)
    if robot.standard_parameters is None:
        raise FitError(
            f"robot {robot.name!r} has no nominal inertias, so the rest of the torque is not known; give a fitted "
            f"model, or record a sweep of steady speeds in both directions"
        )
    return inverse_dynamics(robot, motion.q, motion.dq, motion.ddq, robot.standard_parameters)


def _temperature(run: Run) -> Array | None:
    """Motor temperatures at every sample, between those that were measured; None where a joint has none."""
    measured = run.samples.temperature
    if measured is None or not np.isfinite(measured).any(axis=0).all():
        return None
    time = run.samples.time
    known = np.isfinite(measured)
    return np.column_stack(
        [np.interp(time, time[known[:, j]], measured[known[:, j], j]) for j in range(measured.shape[1])]
    )


Way = Literal["sweep", "sensor", "model"]
WAYS: tuple[Way, ...] = ("sweep", "sensor", "model")

LEAST_PAIRS = 5
"""Pairs of steady strokes, each to and fro, from which on a motion counts as a sweep of speeds."""


@dataclass(frozen=True)
class RunFriction:
    """Friction of the joints of a run.

    Attributes:
        way: how it was told from all else: "sweep", "sensor" or "model".
        joints: data of each joint it could be told of, by name.
        left_out: why it could not, by name of the other joints.
    """

    way: Way
    joints: Mapping[str, FrictionData]
    left_out: Mapping[str, str]


def friction_of_run(
    run: Run, *, way: Way | None = None, model: Model | None = None, cutoff_Hz: float = 20.0
) -> RunFriction:
    """Tell friction from the other torques of a run.

    "sweep": steady strokes in both directions, or a stair of speeds that was played; half their difference. "sensor":
    motor torque less that of the joint's torque sensor, which is also the load. "model": motor torque less the rigid
    bodies', of a fitted model without its friction, or of the robot's nominal inertias; that is also the load. Rows
    near rest are left out of the last two.

    Args:
        run: with motor torque, that is current.
        way: None: the first of the three that the run can give.
        model: for "model".
        cutoff_Hz: of the zero-phase low-pass on position and torques.

    Raises:
        FitError: the run cannot give friction in this way, or in any.
        SignalError: the cut-off does not suit the sample rate.
    """
    samples = run.samples
    if samples.motor_torque is None:
        raise FitError(f"run {run.path} has no motor_torque, and friction lies between motor and joint; record current")
    if way not in (None, *WAYS):
        raise FitError(f"friction cannot be told by {way!r}; the ways are {', '.join(WAYS)}")
    low_pass = LowPass(cutoff_Hz, samples.sample_period)
    valid = np.asarray(samples.valid.all(axis=1))
    parts = list(valid_spans(valid, min_length=2 * low_pass.settling + low_pass.stride + 2))
    if not parts:
        raise FitError(f"run {run.path} has no stretch long enough for a low-pass at {cutoff_Hz:g} Hz; record longer")
    if way in (None, "sweep"):
        friction = _by_stairs(run, samples.motor_torque, valid) or _by_sweep(run, samples.motor_torque, parts, low_pass)
        if friction.joints or way == "sweep":
            return _not_empty(run, friction)
    if way is None:
        way = "sensor" if samples.joint_torque is not None and model is None else "model"
    return _not_empty(run, _by_subtraction(run, samples.motor_torque, parts, low_pass, way, model))


def _not_empty(run: Run, friction: RunFriction) -> RunFriction:
    if not friction.joints:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in friction.left_out.items())
        raise FitError(f"run {run.path} shows no joint's friction by {friction.way} ({reasons}); record other motion")
    return friction


def _by_stairs(run: Run, torque: Array, valid: NDArray[np.bool_]) -> RunFriction | None:
    """None where no stair of speeds was played, or cut off too early."""
    stairs = played_stairs(run)
    joints = {} if stairs is None else stairs_friction(run, stairs, torque, valid)
    if not joints or any(data.n_rows < LEAST_PAIRS for data in joints.values()):
        return None
    still = {name: "it stands still" for name in run.samples.joint_names if name not in joints}
    return RunFriction("sweep", joints, still)


def _by_sweep(run: Run, torque: Array, parts: list[slice], low_pass: LowPass) -> RunFriction:
    joints: dict[str, FrictionData] = {}
    left_out: dict[str, str] = {}
    motions = [smooth_motion(run.samples.motor_position[part], low_pass) for part in parts]
    for j, name in enumerate(run.samples.joint_names):
        strokes = [
            stroke
            for part, motion in zip(parts, motions, strict=True)
            for stroke in steady_strokes(motion.q[:, j], motion.dq[:, j], torque[part, j])
        ]
        data = combine_directions(strokes)
        if data.n_rows >= LEAST_PAIRS:
            joints[name] = data
        else:
            left_out[name] = f"{data.n_rows} speeds steady in both directions, {LEAST_PAIRS} are needed"
    return RunFriction("sweep", joints, left_out)


def _by_subtraction(
    run: Run, torque: Array, parts: list[slice], low_pass: LowPass, way: Way, model: Model | None
) -> RunFriction:
    rest = sensor_torque if way == "sensor" else rigid_torque
    rows = concatenate([subtracted(run, part, torque[part], low_pass, rest, model) for part in parts])
    joints: dict[str, FrictionData] = {}
    left_out: dict[str, str] = {}
    moves = moving_mask(rows.motion.dq, rest_threshold(rows.motion.dq), guard=1)
    for j, name in enumerate(run.samples.joint_names):
        if not run.robot.modelled[j]:
            left_out[name] = "it is passive"
        elif not moves[:, j].any():
            left_out[name] = "it never moves"
        else:
            inertia_unknown = model is None and run.robot.drives[j].rotor_inertia is None
            joints[name] = rows.of_joint(j, moves[:, j], inertia_unknown)
    return RunFriction(way, joints, left_out)
