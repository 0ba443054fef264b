"""Feed-forward from a model: the motor currents that its torque along a planned motion asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.bench import Facts, Feedforward, Trajectory
from jointbench.errors import FitError, NumericalError
from jointbench.identification.model import Model
from jointbench.identification.momentum_observer import predicted_covariance, rarely_passed
from jointbench.identification.predictor import DriveTorque, leading_parameters
from jointbench.model import Robot
from jointbench.model.model_columns import compensation_columns, model_columns
from jointbench.recording import Run
from jointwire import BY_NAME

FRICTION_WIDTH = 0.01
"""Default velocity over which friction changes its sign [rad/s; m/s], as tanh(planned velocity / width)."""

_BAND_POLE = 7.0 / 8.0  # of the boards' low-pass before limit.unexpected, by the tick
_WATCHED_FROM = 1024  # tick of a motion from which on boards watch; all of the feed-forward is given by then
_BAND_SIGMAS = 2.0  # of the predicted current, within which a model may be off without anything pushing
_TINY = 1e-9  # [rad/s]; far below any speed at which a law bends
_TRACKING_OBSERVER = 0


def planned_torque(
    model: Model,
    trajectory: Trajectory,
    time: Array,
    *,
    friction_width: float = FRICTION_WIDTH,
    with_offset: bool = False,
) -> Array:
    """Joint torque of a model along a planned motion, as a feed-forward needs it.

    τ = model.predict(q, dq, ddq) + s (tanh(v / w) − sign(v)) − offset, with s the step of each friction at rest: half
    of what it changes by from just below to just above zero velocity v. Friction that is smooth as it was fitted has
    s = 0 and stays as it is, and so does friction with memory, which turns by itself.

    Args:
        model: whose torque it is.
        trajectory: the planned motion.
        time: at which [s], ascending and within the trajectory, shape (n,).
        friction_width: w [rad/s; m/s].
        with_offset: whether the constants in the torque of each drive are kept, as of `sensor_offset`; they are mostly
            what the sensor the model was fitted to reads at no torque.

    Returns:
        Torque [N·m or N], shape (n, n_joints).

    Raises:
        FitError: the width is not positive.
    """
    if not friction_width > 0.0:
        raise FitError(f"friction_width = {friction_width:g} rad/s must be above 0; {FRICTION_WIDTH:g} is usual")
    q, dq, ddq = trajectory.evaluate(time)
    torque = model.predict(q, dq, ddq)
    drives = DriveTorque.of(model.robot, leading_parameters(model).drives)
    if not with_offset:
        torque = torque - sensor_offset(model)
    if model.memory is None:
        speeds = dq @ drives.speeds.T
        torque = torque + (np.tanh(speeds / friction_width) - np.sign(speeds)) @ drives.coulomb.T
    if model.memory is None and model.friction is not None:
        columns, _ = model_columns(model.robot, q, dq, ddq)
        projected, tiny = model.base.project(columns), np.full_like(dq, _TINY)
        above = model.friction.torque(projected, model.parameters, tiny)
        below = model.friction.torque(projected, model.parameters, -tiny)
        torque = torque + 0.5 * (above - below) * (np.tanh(dq / friction_width) - np.sign(dq))
    return torque * model.robot.modelled


def sensor_offset(model: Model) -> Array:
    """Constants in the torque of the drives that stand for nothing else.

    A constant that is one base parameter with another, such as the preload of a spring or the weight that a lift
    carries, is left out: the arm needs that torque.

    Args:
        model: whose constants they are.

    Returns:
        Torque [N·m or N], shape (n_joints,).
    """
    drives = leading_parameters(model).drives
    return DriveTorque.of(model.robot, np.where(_shared_constants(model), 0.0, drives)).offset


def _shared_constants(model: Model) -> NDArray[np.bool_]:
    """Which parameters of the drives are constants that are one base parameter with another, shape as they are."""
    names, first = model.base.full_names, 10 * model.robot.n_links
    shared = np.zeros_like(leading_parameters(model).drives, dtype=np.bool_)
    for row, column in zip(model.base.grouping, model.base.columns.tolist(), strict=True):
        if names[column].endswith(".offset") and np.count_nonzero(row) > 1:
            shared[column - first] = True
    return shared


def gear_torque(model: Model, trajectory: Trajectory, time: Array) -> Array:
    """Torque through the gears along a planned motion: of links and compensations, without rotors and friction.

    Friction and rotor inertia act before the gear, whose wind-up is this torque over its stiffness. Where one base
    parameter has a rotor's inertia with the links', the nearest parameters that a robot can have say how it is shared
    (`Model.physical`); where there are none, all of it is the parameter's that leads. Constants that are one base
    parameter with the preload of a spring are the spring's, as in `sensor_offset`.

    Args:
        model: whose torque it is.
        trajectory: the planned motion of the links.
        time: at which [s], within the trajectory, shape (n,).

    Returns:
        Torque [N·m or N], shape (n, n_joints).
    """
    try:
        physical = model.physical
        links, drives, compensations = (
            physical.standard_parameters, physical.drive_parameters, physical.compensation_parameters,
        )  # fmt: skip
    except (FitError, NumericalError):
        links, drives, compensations = leading_parameters(model)
    constants = DriveTorque.of(model.robot, np.where(_shared_constants(model), drives, 0.0)).offset
    return _torque_of(model, trajectory, time, links, compensations) + constants * model.robot.modelled


def _torque_of(model: Model, trajectory: Trajectory, time: Array, links: Array, compensations: Array) -> Array:
    """Torque of links and compensations with these parameters along a motion [N·m or N], shape (n, n_joints)."""
    q, dq, ddq = trajectory.evaluate(time)
    columns, _ = model_columns(model.robot, q, dq, ddq)
    full = np.zeros(columns.shape[-1])
    full[: len(links)] = links
    full[len(full) - len(compensations) :] = compensations
    return (columns @ full).reshape(q.shape) * model.robot.modelled


class TorqueParts(NamedTuple):
    """Parts of a planned torque at the joints [N·m or N], shape (n, n_joints) each; they add up to it.

    Attributes:
        rigid_body: of links and rotors.
        springs: of the compensations, with the constants that are one base parameter with theirs.
        friction: of the drives.
    """

    rigid_body: Array
    springs: Array
    friction: Array


def torque_parts(
    model: Model, trajectory: Trajectory, time: Array, *, friction_width: float = FRICTION_WIDTH
) -> TorqueParts:
    """Split `planned_torque` into rigid body, springs and friction.

    Args:
        model, trajectory, time, friction_width: as of `planned_torque`.

    Raises:
        FitError: the width is not positive.
    """
    whole = planned_torque(model, trajectory, time, friction_width=friction_width)
    full, (q, dq, ddq) = leading_parameters(model), trajectory.evaluate(time)
    drives = DriveTorque.of(model.robot, full.drives)
    springs = np.zeros_like(q)
    if model.robot.compensations:
        columns, _ = compensation_columns(model.robot, q, dq, ddq)
        springs = (columns @ full.compensations).reshape(q.shape) * model.robot.modelled
    kept = (drives.offset - sensor_offset(model)) * model.robot.modelled
    rotors = ddq @ drives.inertia.T * model.robot.modelled
    rigid_body = _torque_of(model, trajectory, time, full.links, np.zeros_like(full.compensations)) + rotors
    return TorqueParts(rigid_body, springs + kept, whole - rigid_body - springs - kept)


@dataclass(frozen=True, eq=False)
class MotorReference:
    """A trajectory of motors that leads another one, of the links, by the wind-up of the gears.

    Attributes:
        links: where the links shall be.
        wind_up: lead of the motors at the joint side, zeros of the encoders included [rad or m], a spline over time.
    """

    links: Trajectory
    wind_up: scipy.interpolate.CubicSpline

    @property
    def period(self) -> float:
        """[s]."""
        return self.links.period

    def evaluate(self, time: Array, /) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration [rad, rad/s, rad/s²] at times [s], each (n, n_joints)."""
        q, dq, ddq = self.links.evaluate(time)
        return q + self.wind_up(time), dq + self.wind_up(time, 1), ddq + self.wind_up(time, 2)


def gear_stiffness(robot: Robot, stiffness: ArrayLike | None = None) -> Array:
    """Stiffness of each gear at the joint side [N·m/rad], inf where it is not known, shape (n_joints,).

    Args:
        robot: its drives.
        stiffness: instead of theirs, inf or NaN where it is not known, shape (n_joints,).

    Raises:
        FitError: a stiffness is not above 0, or there is not one for each joint.
    """
    known = [drive.stiffness or np.inf for drive in robot.drives] if stiffness is None else stiffness
    own = np.nan_to_num(np.asarray(known, dtype=np.float64), nan=np.inf, posinf=np.inf)
    if own.shape != (robot.n_joints,) or not np.all(own > 0.0):
        raise FitError(
            f"stiffness = {known} must be {robot.n_joints} numbers above 0 N·m/rad, one for each joint of "
            f"{robot.name!r}; inf or NaN stands for one that is not known"
        )
    return own


def motor_reference(
    model: Model,
    trajectory: Trajectory,
    knot_period: float,
    stiffness: ArrayLike | None = None,
    zeros: ArrayLike = 0.0,
) -> MotorReference:
    """Reference for the motors with which the links follow a trajectory: q + τ / K + z.

    τ is the torque through the gear (`gear_torque`) and K the stiffness of the drive; joints whose stiffness nobody
    knows have no lead. It is of use where positions are measured at the motors, which servos hold to.

    Args:
        model: of the robot.
        trajectory: of the links.
        knot_period: time between the knots that boards play [s], between which the lead is a cubic.
        stiffness: of each gear [N·m/rad], inf or NaN where it is not known, shape (n_joints,); None: of the robot's
            drives. `fit_stiffness` identifies it from encoders on both sides.
        zeros: z, what the motors' encoders read more than the links' at no torque [rad], shape (n_joints,).

    Raises:
        FitError: no gear has a stiffness, or one is not above 0.
    """
    gears = gear_stiffness(model.robot, stiffness)
    if not np.isfinite(gears).any():
        raise FitError(
            f"no gear of {model.robot.name!r} has a stiffness, so that its wind-up is not known; give stiffness_Nm_rad "
            "in the robot's file, or identify it from encoders on both sides: `jointbench drives`"
        )
    time = np.linspace(0.0, trajectory.period, round(trajectory.period / knot_period) + 1)
    wind_up = gear_torque(model, trajectory, time) / gears + np.asarray(zeros)
    return MotorReference(trajectory, scipy.interpolate.CubicSpline(time, wind_up))


def observer_current(robot: Robot, facts: Sequence[Facts], ddq: Array) -> Array:
    """Motor current that servos give too much because their velocity observer lags: kd (α/β − ½) T M ddq.

    Planned velocity is compared with one that is (α/β − ½) ticks old, 3.5 by default, so that damping pushes against
    an acceleration as an inertia would. Velocity by edge times does not lag by more than half a tick, and has none.

    Args:
        robot: its transmission matrix M.
        facts: of each motor's board, with the servo's gain kd and the observer's α and β.
        ddq: planned joint acceleration [rad/s²], shape (n, n_joints).

    Returns:
        Current [A], shape (n, n_motors).
    """
    acceleration = robot.drive_train.motor_motion(ddq)
    return np.stack([_lag(board) * acceleration[:, k] for k, board in enumerate(facts)], axis=1)


def _lag(facts: Facts) -> float:
    """Current per motor acceleration [A·s²/rad]."""
    if facts.registers["velocity.source"] != _TRACKING_OBSERVER:
        return 0.0
    ticks = facts.si("velocity.alpha") / facts.si("velocity.beta") - 0.5
    counts = facts.motor_counts / (2.0 * np.pi)
    return float(facts.registers["servo.kd"] * BY_NAME["servo.kd"].scale * ticks * counts * facts.tick_period**2)


def feedforward_of_model(
    model: Model,
    trajectory: Trajectory,
    facts: Sequence[Facts],
    *,
    friction_width: float = FRICTION_WIDTH,
    current_lag: float = 0.0,
) -> Feedforward:
    """Feed-forward of a trajectory by a model, less what the servo's velocity observer adds by its lag.

    Current at a knot = M⁻ᵀ τ / torque constant − kd (α/β − ½) T M ddq, both half a tick and the current's lag after
    the knot: in the middle of the time for which a command holds.

    The observer's lag is taken out here and not on the board: there it would cost each tick a delay line of planned
    velocities, and change what every motion without feed-forward does.

    Args:
        model: of the robot.
        trajectory: what is played.
        facts: of each motor's board, as `Bench.facts` has them after `configure`.
        friction_width: velocity over which friction changes its sign [rad/s; m/s].
        current_lag: of the current behind its command [s].

    Raises:
        FitError: the model has not as many joints as the bench has boards, or the width is not positive.
    """
    robot = model.robot
    if robot.drive_train.n_motors != len(facts):
        raise FitError(
            f"the model is of robot {robot.name!r} with {robot.drive_train.n_motors} motors, the bench has "
            f"{len(facts)}; take the model that was fitted on this bench"
        )
    # Tick by tick, for friction with memory goes on from sample to sample.
    time = command_times(trajectory, facts, current_lag)
    torque = planned_torque(model, trajectory, time, friction_width=friction_width)
    return feedforward_of_torque(torque, robot, trajectory, facts, current_lag=current_lag)


def command_times(trajectory: Trajectory, facts: Sequence[Facts], current_lag: float = 0.0) -> Array:
    """Times for whose torque the commands of a motion stand, a tick each: half a tick and the lag after it [s].

    Args:
        trajectory: what is played.
        facts: of each motor's board.
        current_lag: of the current behind its command [s].

    Returns:
        Times, ascending and within the motion, shape (n_ticks + 1,).
    """
    tick, knot_ticks = facts[0].tick_period, facts[0].knot_ticks
    steps = round(trajectory.period / (tick * knot_ticks))
    ticks = np.arange(steps * knot_ticks + 1, dtype=np.float64)
    return np.clip((ticks + 0.5) * tick + current_lag, 0.0, trajectory.period)


def feedforward_of_torque(
    torque: Array, robot: Robot, trajectory: Trajectory, facts: Sequence[Facts], *, current_lag: float = 0.0
) -> Feedforward:
    """Feed-forward of a joint torque along a trajectory, less what the servo's velocity observer adds by its lag.

    Args:
        torque: at `command_times` [N·m or N], shape (n_ticks + 1, n_joints).
        robot: its drives.
        trajectory, facts, current_lag: as of `command_times`.

    Raises:
        ShapeError: the torque is not of this robot's joints.
    """
    knot_ticks = facts[0].knot_ticks
    of_torque = Feedforward.of_joint_torque(torque[::knot_ticks], robot)
    ddq = trajectory.evaluate(command_times(trajectory, facts, current_lag)[::knot_ticks])[2]
    return Feedforward(of_torque.motor_current_A - observer_current(robot, facts, ddq))


def motion_times(run: Run) -> Array:
    """Time of the motion that each joint's board played at each sample [s], shape (n, n_joints).

    Boards with clocks of their own start at their nearest ticks, and go on as fast as their crystals. Of coupled joints
    each has the time of its own board, though the other's motor moves it, too.
    """
    samples, names = run.samples, run.samples.joint_names
    starts = np.array([run.starts.get(name, 0.0) for name in names])
    rates = np.array([1.0 + 1e-6 * run.clocks[name].drift_ppm if name in run.clocks else 1.0 for name in names])
    return samples.sample_period * (samples.play_tick[:, None] - starts) * (rates / rates[0])


def feedback_current(run: Run, feedforward: Feedforward, facts: Sequence[Facts]) -> Array:
    """Current that the servos added to a motion's feed-forward in a recording: measured current − feed-forward.

    The feed-forward is taken as late as the boards' filters make the current, and only samples are taken from the
    1024th tick of the motion on, as boards watch them: all of the feed-forward is given, and START is over by then.

    Args:
        run: in which the motion was played once, with this feed-forward; of one played without it, the feed-forward
            that it will be played with, for what that leaves to the servos.
        feedforward: its currents at the knots.
        facts: of each motor's board.

    Returns:
        Current [A], shape (n, n_motors), one row a tick.

    Raises:
        FitError: the recording has no motor currents, lacks samples, or was not played once with so many knots.
    """
    samples, knot_ticks = run.samples, facts[0].knot_ticks
    fed = np.asarray(feedforward.motor_current_A)
    last = (len(fed) - 1) * knot_ticks
    if samples.motor_current is None or samples.motor_current.shape[1:] != fed.shape[1:]:
        raise FitError(
            f"run {run.path} has no currents of the {fed.shape[1]} motors that the feed-forward is of; record them"
        )
    if samples.play_tick.max() + 1 != last:
        raise FitError(
            f"run {run.path} was played for {samples.play_tick.max() + 1} ticks, the feed-forward is of {last}; give a "
            f"recording of that motion, played once"
        )
    playing = samples.play_tick >= _WATCHED_FROM
    if run.clocks:  # boards with clocks of their own begin and end up to a tick apart
        playing &= samples.play_tick < last - 2
    current = samples.motor_current[playing]
    if not np.isfinite(current).all():
        raise FitError(f"run {run.path} lacks samples of a motor's current; a band needs all, so record it again")
    filters = samples.board_filters or ()
    late = float(np.mean([board_filter.delay for board_filter in filters])) if filters else 0.0
    times = motion_times(run)[playing] - late
    knots = knot_ticks * facts[0].tick_period * np.arange(len(fed))
    given = [np.interp(time, knots, own) for time, own in zip(times.T, fed.T, strict=True)]
    return np.asarray(current - np.stack(given, axis=1))


def feedback_band(
    model: Model, feedback: Array, trajectory: Trajectory, period: float, *, false_alarms_per_hour: float = 0.1
) -> Array:
    """Band on the current that each servo adds to the feed-forward, rarely passed while nothing pushes.

    b = g + 2 σ, with g the level that the largest |feedback| of half-second blocks, behind the boards' low-pass, passes
    by Gumbel's law as rarely as allowed, and σ of the current that the model predicts along the motion: M⁻ᵀ of its
    torque's covariance, over the torque constants. Passive joints' motors are not watched.

    Args:
        model: of the feed-forward.
        feedback: currents of a motion during which nothing pushed, as of `feedback_current` [A], shape (n, n_motors):
            five seconds at least, as lively as what will be watched.
        trajectory: that will be played.
        period: of the boards' ticks, one row of `feedback` each [s].
        false_alarms_per_hour: of all motors together, if the model errs later as it did here.

    Returns:
        Band [A], shape (n_motors,), infinite of motors without torque constant; `Feedforward.unexpected_limit_A`.

    Raises:
        FitError: the currents are not of the model's motors, the motion is too short, or the rate is not above 0.

    Source: Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, ch. 3.
    """
    train = model.robot.drive_train
    if feedback.ndim != 2 or feedback.shape[1] != train.n_motors or not np.isfinite(feedback).all():
        raise FitError(
            f"feedback has shape {feedback.shape}; robot {model.robot.name!r} needs finite currents of shape "
            f"(n, {train.n_motors}); leave out the samples that are missing"
        )
    constants = np.array([drive.torque_constant for drive in train.drives])
    watched = constants != 0.0
    smooth = scipy.signal.lfilter([1.0 - _BAND_POLE], [1.0, -_BAND_POLE], feedback, axis=0)
    rare = rarely_passed(np.abs(smooth), period, false_alarms_per_hour, int(watched.sum()))
    time = np.linspace(0.0, trajectory.period, 500)
    covariance = predicted_covariance(model, *trajectory.evaluate(time))
    variance = np.einsum("ij,kil,lj->kj", train.inverse, covariance, train.inverse)
    sigma = np.sqrt(np.maximum(variance, 0.0).max(axis=0))
    own = np.divide(sigma, np.abs(constants), out=np.zeros_like(sigma), where=watched)
    return np.where(watched, rare + _BAND_SIGMAS * own, np.inf)
