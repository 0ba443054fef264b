"""Zero force by a model: tables of current for the boards, friction for their servos, and the rest for the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench import Bench, Facts, Feedforward
from jointbench.bench.floating import FloatTable, RemainingCurrent, float_boards
from jointbench.errors import FitError
from jointbench.identification.feedforward import planned_torque, torque_parts
from jointbench.identification.model import Model
from jointbench.identification.prove import check_same_robot
from jointbench.model import Robot
from jointbench.recording import Recorder, Run, open_run

COULOMB, VISCOUS = 0.95, 0.95
"""Shares of friction that are compensated: with all of it, and a little more, an arm would go on by itself."""

HOLD_SHARE = 0.06
"""Current that holds a joint at rest over the largest that gravity and springs ask of its motor.

A model whose torque is 5 % off leaves 0.05 of it. Friction does not hold that where it is small beside gravity, and
joints in strain-wave gears creep under any load.
"""

HOLD_RANGE = np.radians(0.3)
"""Distance from the place of rest at which that current is reached [rad of the joint]."""

FRICTION_SPEEDS = 0.15, 0.6
"""Speeds between which friction is taken as a straight line [rad/s]."""

DEAD_BAND, FRICTION_BAND = 0.002, 0.01
"""Speed up to which no friction is compensated, and further speed until all of its share is [rad/s of the joint]."""

_SPEED_CAP = 0.8  # of the velocity limit, from which on the servo brakes
_WALL = 0.02  # [rad of the joint], before a limit of position
_MOST_ROWS = 1000  # of a table
_POSES = 1000  # at which the largest holding current is looked for
_LIMIT_OVER_HOLDING = 1.5  # limit.float over the largest current that holds the arm
_SPARE_CURRENT = 0.1  # of limit.current, in limit.float for a motor without gravity
_TIMEOUT_TICKS = 200  # ten updates of the host
_BLOCK_TICKS = 16  # so that the host knows positions of the last 20 ms


@dataclass(frozen=True)
class _ConstantVelocity:
    """A motion of all joints at constant velocity."""

    start: Array
    velocity: Array
    period: float = 1.0

    def evaluate(self, time: Array, /) -> tuple[Array, Array, Array]:
        q = self.start + time[:, None] * self.velocity
        return q, np.tile(self.velocity, (len(time), 1)), np.zeros_like(q)


@dataclass(frozen=True)
class _Poses:
    """A sequence of poses, one a second, at rest."""

    q: Array

    @property
    def period(self) -> float:
        return float(len(self.q))

    def evaluate(self, time: Array, /) -> tuple[Array, Array, Array]:
        q = self.q[np.round(time).astype(int)]
        return q, np.zeros_like(q), np.zeros_like(q)


def holding_current(model: Model, q: Array) -> Array:
    """Motor currents that hold the arm at rest against gravity and springs.

    Args:
        model: of the arm.
        q: joint positions [rad], shape (n, n_joints).

    Returns:
        Current [A], shape (n, n_motors).
    """
    parts = torque_parts(model, _Poses(q), np.arange(float(len(q))))
    return Feedforward.of_joint_torque(parts.rigid_body + parts.springs, model.robot).motor_current_A


def friction_line(model: Model, q: Array) -> tuple[Array, Array]:
    """Friction of the joints about a pose as Coulomb and viscous friction, by a line through two speeds.

    Args:
        model: of the arm; its friction may be of any law, or have memory.
        q: the pose [rad], shape (n_joints,).

    Returns:
        Coulomb friction [N·m] and viscous friction [N·m·s/rad], both at least 0, shape (n_joints,) each.
    """
    slow, fast = FRICTION_SPEEDS
    at_slow, at_fast = (_friction(model, q, speed) for speed in FRICTION_SPEEDS)
    viscous = (at_fast - at_slow) / (fast - slow)
    return np.maximum(at_slow - slow * viscous, 0.0), np.maximum(viscous, 0.0)


def _friction(model: Model, q: Array, speed: float) -> Array:
    """Half the difference of the torques up and down through a pose at a constant speed [N·m], shape (n_joints,)."""
    velocity = np.full_like(q, speed)
    time = np.linspace(0.0, 0.2, 201)  # friction with memory has turned after a way of it
    last = time > 0.15
    up, down = (
        planned_torque(model, _ConstantVelocity(q - time[last].mean() * moved, moved), time)[last].mean(axis=0)
        for moved in (velocity, -velocity)
    )
    return 0.5 * (up - down)


def largest_holding_current(model: Model) -> Array:
    """Largest of the currents that hold the arm in poses drawn within its limits [A], shape (n_motors,)."""
    low, high = model.robot.position_limits.T
    poses = np.random.default_rng(0).uniform(low, high, size=(_POSES, model.robot.n_joints))
    return np.abs(holding_current(model, poses)).max(axis=0)


def float_tables(model: Model, facts: Sequence[Facts], pose: Array) -> tuple[list[FloatTable | None], RemainingCurrent]:
    """Tables of the boards, and what the host adds to them.

    A board knows the position of its own motor alone: its table is the current that holds the arm with all other motors
    at `pose`. The host adds the difference to the current that holds the arm where it is. Currents of a table are cut
    at `limit.current`: where the motor cannot hold the arm, the arm sinks.

    Args:
        model: of the arm.
        facts: of each motor's board, as `Bench.facts` has them after `configure`.
        pose: where the arm is when it begins to float [rad], shape (n_joints,).

    Returns:
        A table for each motor, None for one without model or servo; and the currents that the tables do not contain.

    Raises:
        FitError: the robot has not one motor for each board.
    """
    robot = model.robot
    train = robot.drive_train
    if train.n_motors != len(facts):
        raise FitError(
            f"the model is of robot {robot.name!r} with {train.n_motors} motors, the bench has {len(facts)} boards of "
            "joints; only an arm with one motor to a joint can float"
        )
    largest, friction = largest_holding_current(model), friction_line(model, pose)
    motors_at_pose = train.motor_motion(pose)
    tables: list[FloatTable | None] = []
    for k, own in enumerate(facts):
        if not own.has_motor or not robot.modelled[k] or robot.drives[k].torque_mode:
            tables.append(None)
            continue
        positions = _table_positions(own)
        motors = np.tile(motors_at_pose, (len(positions), 1))
        motors[:, k] = 2.0 * np.pi * positions / own.motor_counts
        currents = holding_current(model, train.joint_motion(motors))[:, k]
        most = own.registers["limit.current"]
        holding = max(float(largest[k]), float(np.abs(currents).max()))
        limit = _LIMIT_OVER_HOLDING * 1e3 * holding + _SPARE_CURRENT * most
        registers = _registers(robot, k, own, (float(friction[0][k]), float(friction[1][k])))
        ratio = 1.0 / float(train.inverse[k, k])
        tables.append(
            FloatTable(
                positions, np.clip(np.round(1e3 * currents), -most, most).astype(np.int16),
                {**registers, "limit.float": min(most, round(limit))}, HOLD_SHARE * holding, HOLD_RANGE * abs(ratio),
            )
        )  # fmt: skip

    def remaining(q: Array) -> Array:
        motors, current = train.motor_motion(q), holding_current(model, q[None])[0]
        for k, table in enumerate(tables):
            if table is not None:
                count = float(motors[k]) * facts[k].motor_counts / (2.0 * np.pi)
                current[k] -= 1e-3 * np.interp(count, table.positions, table.currents_mA)
        return current

    return tables, remaining


def _table_positions(facts: Facts) -> Any:
    """Positions of a table, evenly spaced by a power of two and beyond both limits [counts], shape (n,)."""
    low, high = facts.registers["limit.position_min"], facts.registers["limit.position_max"]
    step = 1 << max(8, int(np.ceil(np.log2((high - low) / _MOST_ROWS))))
    first = low // step * step
    return (first + step * np.arange((high - first) // step + 2)).astype(np.int32)


def _registers(robot: Robot, k: int, facts: Facts, friction: tuple[float, float]) -> dict[Any, int]:
    """Raw registers of a floating motor, with its joint's Coulomb [N·m] and viscous [N·m·s/rad] friction."""
    train, (coulomb, viscous) = robot.drive_train, friction
    ratio = abs(1.0 / float(train.inverse[k, k]))
    counts = facts.motor_counts / (2.0 * np.pi) * ratio  # a radian of the joint
    per_tick = counts * facts.tick_period  # [counts/tick] for 1 rad/s of the joint
    ampere = 1.0 / (ratio * train.drives[k].torque_constant)  # for 1 N·m
    return {
        "float.velocity": int(_SPEED_CAP * facts.registers["limit.velocity"]),
        "float.wall": min(65535, round(_WALL * counts)),
        "float.dead_band": max(1, round(256 * DEAD_BAND * per_tick)),
        "float.hold": 0,  # the host's, which encoder counts do not shake off
        "float.inertia": 0,  # 0.3 of rehab_arm's doubled the force of a soft hand: the acceleration is 8 ms late
        "float.timeout": _TIMEOUT_TICKS,
        "servo.friction": round(1e3 * COULOMB * coulomb * ampere),
        "servo.friction_band": max(1, round(256 * FRICTION_BAND * per_tick)),
        "servo.velocity_feedforward": round(16e3 * VISCOUS * viscous * ampere / per_tick),
        "stream.block": _BLOCK_TICKS,
    }


def float_arm(
    model: Model,
    bench: Bench,
    directory: str | Path,
    seconds: float,
    *,
    is_held: Callable[[], bool] = lambda: True,
    on_update: Callable[[Array], None] | None = None,
    **provenance: Any,
) -> Run:
    """Let an arm float by its model, so that a hand leads it, and record where it is led.

    Gravity, springs and friction are compensated. The boards brake and switch off when the time is over, when `is_held`
    says no, and by themselves when they hear nothing from this program for 0.2 s.

    Args:
        model: of the bench's robot.
        bench: connected and configured, with the arm at rest where it shall begin.
        directory: of the run, to create.
        seconds: how long it floats at most.
        is_held: whether somebody holds the dead-man's switch, asked 50 times a second.
        on_update: called with the joints' positions [rad], shape (n_joints,), 50 times a second.
        provenance: what else run.toml shall hold.

    Returns:
        The run, as `open_run` gives it.

    Raises:
        FitError: the model is of another robot, or not with one motor to a joint; or `seconds` is not above 0.
        ExcitationError: the robot stands on a foot.
        BoardFault, BoardLost, BoardSilent, BoardRefused: it was stopped; what was recorded until then is in the
            directory.
        RunError: the directory exists already.
    """
    if not seconds > 0.0:
        raise FitError(f"seconds = {seconds:g} must be above 0; 60 is usual")
    check_same_robot(model, bench.robot)
    tables, remaining = float_tables(model, bench.facts, bench.positions())
    with Recorder(directory, bench.provenance(floats=True, **provenance)) as recorder:
        float_boards(
            bench, tables, remaining, seconds, recorder=recorder, is_held=is_held, on_update=on_update
        )  # fmt: skip
    return open_run(directory)
