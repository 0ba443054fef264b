"""Trajectories of all joints: moves and knots, and the gate that each passes before a motor is switched on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench.board import Board
from jointbench.bench.identity import Facts
from jointbench.bench.settings import JointSettings
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation import Certificate, Excitation, Limit, Motion, certify, usable_limits
from jointbench.model import Drive, Robot, robot_digests

_STILL = 1e-6  # [rad]; a joint that is asked to move less is asked to stay
THERE = 0.005  # [rad]; a joint this near to a pose is there: ten times nearer than the boards ask of a start
# Of s(u) = 10 u³ - 15 u⁴ + 6 u⁵ (Flash & Hogan, J. Neuroscience 5(7), 1985): the largest s' and |s''| on [0, 1].
_PEAK_VELOCITY = 15.0 / 8.0
_PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)
MOST_REPEATS = 65535  # 16 bits of a LOAD
_WHOLE = 1e-6  # of a knot step: far below a microsecond, far above rounding of a period in seconds


def _why_undriven(robot: Robot, facts: Sequence[Facts], index: int) -> str:
    """Reason why a joint follows no reference; empty of one that does."""
    if not facts[index].has_motor:
        return "nothing drives it: its board has no motor"
    return "its motor holds no position: it is in torque mode" if robot.drives[index].torque_mode else ""


def check_driven(q: Array, robot: Robot, facts: Sequence[Facts]) -> None:
    """Refuse a motion of a joint that follows no reference: nothing drives it, or it is in torque mode.

    Args:
        q: where joints shall be [rad], shape (n, n_joints).
        robot: their names.
        facts: of each joint's board.

    Raises:
        ExcitationError: names the joint and what it is asked for.
    """
    for index, name in enumerate(robot.joint_names):
        low, high = float(q[:, index].min()), float(q[:, index].max())
        why = _why_undriven(robot, facts, index)
        if why and high - low > _STILL:
            raise ExcitationError(
                f"joint {name!r} is asked to move from {low:g} to {high:g} rad, but {why}. Keep it where it is: plan "
                "with `passive = true` in the robot's file"
            )


def pose_within_reach(robot: Robot, facts: Sequence[Facts], start: Array, pose: Array) -> Array:
    """A pose to go to: joints without a motor or in torque mode stay where they are.

    Args:
        robot: where such joints count as at home.
        facts: of each joint's board.
        start: where the joints are [rad], shape (n_joints,).
        pose: where they shall be; of such a joint its home, or where it is.

    Raises:
        ExcitationError: such a joint is asked elsewhere.
    """
    goal = pose.copy()
    for index, name in enumerate(robot.joint_names):
        if why := _why_undriven(robot, facts, index):
            if min(abs(pose[index] - place) for place in (robot.home[index], start[index])) > THERE:
                raise ExcitationError(
                    f"joint {name!r} is asked to go to {pose[index]:g} rad, but {why}. It is at {start[index]:.4g} "
                    f"rad; give its home, {robot.home[index]:g} rad, and move it by hand"
                )
            goal[index] = start[index]
    return goal


@dataclass(frozen=True, eq=False)
class PointToPoint:
    """A minimum-jerk quintic of all joints together.

    Attributes:
        start, goal: [rad], shape (n_joints,).
        period: [s].
    """

    start: Array
    goal: Array
    period: float

    def evaluate(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at times t [s] within the period, each (len(t), n_joints)."""
        u = (np.asarray(t, dtype=float) / self.period)[:, None]
        way = (self.goal - self.start)[None, :]
        s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        ds = 30.0 * u**2 * (1.0 - u) ** 2 / self.period
        dds = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / self.period**2
        return self.start + way * s, way * ds, way * dds


def plan_move(robot: Robot, start: Array, goal: Array, step: float, speed: float = 0.5) -> PointToPoint:
    """Plan the shortest such motion that keeps within a fraction of the velocity and acceleration limits.

    Args:
        robot: its limits.
        start: [rad], shape (n_joints,).
        goal: the same for the end.
        step: the period is a whole number of these [s].
        speed: fraction of the limits, above 0 to 1.
    """
    way = np.abs(goal - start)
    by_velocity = _PEAK_VELOCITY * way / (speed * robot.velocity_limits)
    by_acceleration = np.sqrt(_PEAK_ACCELERATION * way / (speed * robot.acceleration_limits))
    shortest = max(float(by_velocity.max()), float(by_acceleration.max()))
    # 1e-9: a period that is whole but for rounding must not grow by a step; at least one step for no way at all.
    steps = max(int(np.ceil(shortest / step - 1e-9)), 1)
    return PointToPoint(np.asarray(start, dtype=float), np.asarray(goal, dtype=float), steps * step)


class Trajectory(Protocol):
    """A motion of all joints, from t = 0 to t = period."""

    @property
    def period(self) -> float:
        """[s]."""
        ...

    def evaluate(self, time: Array, /) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration [rad, rad/s, rad/s²] at times [s], each (n, n_joints)."""
        ...


def check_repeats(repeats: int) -> None:
    """Refuse to play a motion never, or more often than the boards count.

    Raises:
        ExcitationError: not a whole number from 1 to 65535.
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise ExcitationError(
            f"repeats = {repeats} must be a whole number from 1 to {MOST_REPEATS}; two show how much of the torque "
            "repeats"
        )


def trajectory_knots(trajectory: Trajectory, robot: Robot, facts: Sequence[Facts]) -> NDArray[np.int32]:
    """Knots of a trajectory for each joint's board.

    Motor position = M q counts / 2 pi, with M the robot's transmission matrix; velocity in counts/tick, Q8.

    Args:
        trajectory: what to play.
        robot: its transmission matrix turns joints into motors.
        facts: of each joint's board, in joint order.

    Returns:
        Position and velocity of each knot, shape (n_joints, n_knots, 2).

    Raises:
        ExcitationError: the period is no whole number of knot steps, a value does not fit the wire, or a joint that
            nothing drives is to move.
    """
    tick_period, knot_ticks = facts[0].tick_period, facts[0].knot_ticks
    step = tick_period * knot_ticks
    steps = round(trajectory.period / step)
    if steps < 1 or abs(trajectory.period / step - steps) > _WHOLE:
        nearest = max(steps, 1) * step
        raise ExcitationError(
            f"period {trajectory.period:g} s is not a whole number of knot steps of {step:g} s; "
            f"the nearest that is: {nearest:g} s"
        )
    q, dq, _ = trajectory.evaluate(np.arange(steps + 1, dtype=np.float64) * step)
    check_driven(q, robot, facts)
    counts = np.array([fact.motor_counts for fact in facts]) / (2.0 * np.pi)
    position = q @ robot.transmission_matrix.T * counts
    velocity = dq @ robot.transmission_matrix.T * (counts * tick_period * 256.0)
    knots = np.round(np.stack([position, velocity], axis=-1))
    if not np.all(np.abs(knots) < 2**31):
        raise ExcitationError("the trajectory leaves the 32-bit range of motor counts; check ratios and units")
    return np.ascontiguousarray(knots.transpose(1, 0, 2)).astype(np.int32)


# Of a motion that is no excitation, and so has no proof: looked at so often between two knots.
_LOOKS = 8
# Shares of the speed that a move is asked for, until it is allowed.
_SLOWER = (1.0, 0.5, 0.25, 0.125)
# Share of a limit by which a motion without a proof may seem beyond it: far below a count, far above rounding.
_ROUNDING = 1e-9
_PARTS = {
    "kinematics": "its joints sit elsewhere, or move another way",
    "drives": "its ratios, torque constants or couplings are others",
}


@dataclass(frozen=True, eq=False)
class Gate:
    """Limits of a bench that hold now, and the check of motions against them.

    Attributes:
        robot: the bench's.
        facts: of each joint's board.
        settings: what the boards are, or will be, set to.
        max_knots: how many each joint's board holds.
        limits: the bench file's `[limits]`: position_rad, velocity_rad_s, current_A.
        stands: where the joints are [rad], shape (n_joints,); None where that is not known.
        stood: what position_rad counts from: where they were before anything moved; `stands` by default.
    """

    robot: Robot
    facts: Sequence[Facts]
    settings: Sequence[JointSettings]
    max_knots: Sequence[int]
    limits: Mapping[str, float]
    stands: Array | None = None
    stood: Array | None = None

    @staticmethod
    def of_boards(
        robot: Robot,
        boards: Sequence[Board],
        settings: Sequence[JointSettings],
        limits: Mapping[str, float],
        stands: Array | None = None,
        stood: Array | None = None,
    ) -> Gate:
        """Make the gate of boards that were greeted and read."""
        facts = [board.facts for board in boards if board.facts]
        max_knots = [board.identity.max_knots if board.identity else 0 for board in boards]
        return Gate(robot, facts, settings, max_knots, limits, stands, stood)

    def check(self, trajectory: Trajectory) -> None:
        """Let a motion pass.

        Raises:
            ExcitationError: says what it would break, by how much, and what to do.
        """
        refusals = list(self.refusals(trajectory))
        if refusals:
            more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
            raise ExcitationError(refusals[0] + more)

    def refusals(self, trajectory: Trajectory) -> tuple[str, ...]:
        """Return the reasons against a motion, a sentence each, of limits the worst first; none where it may pass."""
        if why := self._why_another_robots(trajectory):
            return (why,)
        if why := self._why_out_of_reach(trajectory):
            return (why,)
        try:
            knots = trajectory_knots(trajectory, self.robot, self.facts)
        except ExcitationError as error:
            return (str(error),)
        return (*self._broken_limits(trajectory), *self._too_much_for_boards(knots))

    def fastest_move(self, start: Array, goal: Array, step: float, speed: float) -> PointToPoint:
        """Plan a move to a pose, slower than asked for where the torque or current that it takes would be too much.

        Args:
            start, goal, step, speed: as of `plan_move`.

        Returns:
            The fastest that passes, or the slowest tried: `check` says what it would break.
        """
        motions = [plan_move(self.allowed, start, goal, step, speed * share) for share in _SLOWER]
        return next((motion for motion in motions if not self.refusals(motion)), motions[-1])

    @cached_property
    def allowed(self) -> Robot:
        """The robot with the narrowest of its own limits, the bench file's, and those that its boards are set to."""
        way, stood = self.limits.get("position_rad", np.inf), self.stands if self.stood is None else self.stood
        speed, current = self.limits.get("velocity_rad_s", np.inf), self.limits.get("current_A", np.inf)
        joints = {joint.name: joint for joint in self.robot.independent_joints}
        for index, (name, joint) in enumerate(joints.items()):
            windows, fastest = [joint.position_limits], min(joint.velocity_limit, speed)
            if self.settings and self.facts[index].has_motor:
                windows.append(self.settings[index].position_limits)
                fastest = min(fastest, self.settings[index].velocity_limit)
            if stood is not None and np.isfinite(way):
                windows.append((stood[index] - way, stood[index] + way))
            low, high = (max(low for low, _ in windows), min(high for _, high in windows))
            joints[name] = replace(joint, position_limits=(low, high), velocity_limit=fastest)
        return replace(
            self.robot,
            joints=tuple(joints.get(joint.name, joint) for joint in self.robot.joints),
            drives=tuple(self._limited(drive, index, current) for index, drive in enumerate(self.robot.drives)),
        )

    def _limited(self, drive: Drive, index: int, current: float) -> Drive:
        board_limit = self.settings[index].current_limit if self.settings and self.facts[index].has_motor else np.inf
        return replace(drive, current_limit=min(drive.current_limit, board_limit, current))

    def _why_another_robots(self, trajectory: Trajectory) -> str:
        if isinstance(trajectory, Excitation):
            if trajectory.robot_name != self.robot.name:
                return (
                    f"it is a plan for robot {trajectory.robot_name!r}, the bench's is {self.robot.name!r}; plan for "
                    "that one"
                )
            now = robot_digests(self.robot)
            for part, what in _PARTS.items():
                if trajectory.digests.get(part, now[part]) != now[part]:
                    return (
                        f"robot {self.robot.name!r} is not what it was when this was planned: {what}; plan it anew, "
                        "or give the bench the robot file it was planned with"
                    )
        joints = trajectory.evaluate(np.zeros(1))[0].shape[1]
        if joints != self.robot.n_joints:
            return f"it moves {joints} joints, robot {self.robot.name!r} has {self.robot.n_joints}; plan for this robot"
        return ""

    def _why_out_of_reach(self, trajectory: Trajectory) -> str:
        """Reason why its start, or the joints' position now, is outside the window; empty where both are inside."""
        start = trajectory.evaluate(np.zeros(1))[0][0]
        places = [("the motion starts", start, "plan it from a home inside")]
        if self.stands is not None:
            places.append(("the joint stands", self.stands, "move it there by hand, with its motor off"))
        for index, (name, (low, high)) in enumerate(
            zip(self.allowed.joint_names, self.allowed.position_limits.tolist(), strict=True)
        ):
            for what, place, remedy in places:
                if not low < place[index] < high and self.facts[index].has_motor:
                    return (
                        f"joint {name!r}: {what} at {place[index]:.4g} rad, which is not inside its window now, "
                        f"{low:.4g} to {high:.4g} rad; {remedy}"
                    )
        return ""

    def _broken_limits(self, trajectory: Trajectory) -> tuple[str, ...]:
        """Limits of joints, torques and currents that it breaks at any time, as sentences."""
        start = trajectory.evaluate(np.zeros(1))[0][0]
        try:
            limits = usable_limits(self.allowed, start, motion_share=1.0, torque_share=1.0)
        except InfeasibleExcitation as error:
            return (str(error),)
        now = robot_digests(self.robot)["limits"]
        lowered = isinstance(trajectory, Excitation) and trajectory.digests.get("limits", now) != now
        remedy = "plan with what robot file, bench file and boards allow now"
        if lowered:
            remedy = "the robot's limits have changed since this was planned: plan it anew"
        return tuple(f"{sentence}; {remedy}" for sentence in self._prove(trajectory, limits).violations)

    def _prove(self, trajectory: Trajectory, limits: Sequence[Limit]) -> Certificate:
        if isinstance(trajectory, Excitation):
            return certify(limits, trajectory.basis, trajectory.home, trajectory.weights)
        step = self.facts[0].tick_period * self.facts[0].knot_ticks / _LOOKS
        time = np.linspace(0.0, trajectory.period, max(round(trajectory.period / step), 1) + 1)
        q, dq, ddq = trajectory.evaluate(time)
        motion: Motion = q, dq, ddq, np.gradient(ddq, time, axis=0)
        usage = np.concatenate([limit.usage(motion).max(axis=0) for limit in limits])
        names = tuple(name for limit in limits for name in limit.names)
        return Certificate(tuple(limits), names, usage - _ROUNDING, usage, len(time))

    def _too_much_for_boards(self, knots: NDArray[np.int32]) -> tuple[str, ...]:
        """Reasons of the boards: more knots than one holds, or faster than it guards against."""
        refusals: list[str] = []
        for name, facts, most, joint_knots in zip(
            self.robot.joint_names, self.facts, self.max_knots, knots, strict=True
        ):
            if not facts.has_motor:
                continue
            if len(joint_knots) > most:
                refusals.append(
                    f"it has {len(joint_knots)} knots, and the board of {name} holds {most}; plan a shorter motion"
                )
            if np.abs(joint_knots[:, 1]).max() > facts.registers["hard.velocity"]:
                refusals.append(
                    f"{name} is asked to go faster than hard.velocity of its board allows; plan a slower one"
                )
        return tuple(refusals)
