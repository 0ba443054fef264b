"""One motor of a bench moved alone about where it stands, within limits of its own; all others are off and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.client import RegisterName
from jointbench.bench.feedforward import Feedforward
from jointbench.bench.identity import Facts
from jointbench.bench.motion_watch import MotionEnded
from jointbench.bench.playback import play
from jointbench.bench.settings import motor_settings
from jointbench.bench.subscribers import ProgressCallback, Sink
from jointbench.errors import BenchLost, BoardError, BoardFault
from jointwire import Frame, State, decode_samples

if TYPE_CHECKING:
    from jointbench.bench.bench import Bench

_ENCODERS = ("motor_position", "link_position")
_MOST_FOLLOWING = 65535  # counts of limit.following
_SERVO: tuple[RegisterName, ...] = ("servo.kp", "servo.kd", "servo.ki", "servo.velocity_feedforward", "servo.friction")


@dataclass(frozen=True)
class OwnLimits:
    """Limits of one motion, about where its joint stands; ways are the joint's, by the ratio of the robot's file.

    Attributes:
        reach: at which the board itself switches the motor off [rad].
        enough: at which the host does, by motor or link encoder [rad]; None: not before the motion's end.
        others: at which the host does when another joint has moved as far [rad].
        velocity: at which the board does [rad/s].
        current: of the motor [A].
    """

    reach: float
    enough: float | None
    others: float
    velocity: float
    current: float


@dataclass(frozen=True)
class JointMotion:
    """A motion of one joint from where it stands, the others standing still.

    Attributes:
        stand: of all joints [rad], shape (n_joints,).
        joint: index of the one that moves.
        period: [s].
        way: position from the stand, velocity and acceleration at times [s], each of shape (n,).
    """

    stand: Array
    joint: int
    period: float
    way: Callable[[Array], tuple[Array, Array, Array]]

    def evaluate(self, time: Array, /) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of all joints at times [s], each (n, n_joints)."""
        own = self.way(np.asarray(time, dtype=np.float64))
        q = np.tile(self.stand, (len(own[0]), 1))
        dq, ddq = np.zeros_like(q), np.zeros_like(q)
        for all_joints, column in zip((q, dq, ddq), own, strict=True):
            all_joints[:, self.joint] += column
        return q, dq, ddq


class _Watcher:
    """Watch over the encoders of all boards, from where they were when the motion began."""

    def __init__(self, bench: Bench, joint: int, limits: OwnLimits) -> None:
        self.joint = bench.robot.joint_names[joint]
        self._own = joint
        self._limits = limits
        self._names = bench.robot.joint_names
        self._radians = [_radians_per_count(facts) for facts in bench.facts]
        self._first: dict[tuple[int, str], int] = {}
        self._newest: dict[tuple[int, str], int] = {}

    def add(self, index: int, frame: Frame) -> None:
        """Take a DATA frame."""
        if index >= len(self._names):
            return
        columns = decode_samples(frame).columns
        for encoder in _ENCODERS:
            counts = columns.get(encoder)
            if counts is not None and len(counts):
                self._first.setdefault((index, encoder), int(counts[0]))
                self._newest[index, encoder] = int(counts[-1])

    def check(self) -> None:
        """End the motion where the joint has moved enough, or another one has moved at all.

        Raises:
            MotionEnded: says what moved, and how far.
        """
        for (index, encoder), first in self._first.items():
            moved = (self._newest[index, encoder] - first) * self._radians[index][encoder]
            limit = self._limits.enough if index == self._own else self._limits.others
            if limit is not None and abs(moved) >= limit:
                raise MotionEnded(f"{self._names[index]} moved by {np.degrees(moved):.2f}° ({encoder})")


def _radians_per_count(facts: Facts) -> dict[str, float]:
    """Joint angle of a count of each encoder [rad]."""
    turn = 2.0 * np.pi
    motor = turn / (facts.motor_counts * abs(facts.ratio)) if facts.has_motor else 0.0
    return {"motor_position": motor, "link_position": turn / facts.si("encoder.link_counts")}


def why_not_alone(bench: Bench, joint: int) -> str:
    """Return why a joint's motor cannot be moved alone, "" where it can."""
    robot, board = bench.robot, bench.boards[joint]
    drive, name = robot.drives[joint], robot.joint_names[joint]
    if drive.kind == "none":
        return "nothing drives it"
    if drive.torque_mode:
        return "its motor is in torque mode"
    if any(name in coupling.joints for coupling in robot.couplings):
        return "it shares motors with other joints"
    if robot.independent_joints[joint].kind == "prismatic":
        return "it slides, and the limits of these motions are angles"
    if any(board.is_same_chip(other) for other in bench.boards if other is not board):
        return "its board has a second motor, which trips when one of the two moves alone"
    return ""


def play_alone(
    bench: Bench,
    motion: JointMotion,
    limits: OwnLimits,
    recorder: Sink | None = None,
    *,
    motor_currents: Sequence[float] | Array | None = None,
    progress: ProgressCallback | None = None,
) -> str:
    """Move one motor alone and switch it off, whatever happens; its board is then set as by `Bench.configure`.

    A trip of the board is no error here: it switched the motor off, as is its task, and is acknowledged.

    Args:
        bench: connected and configured.
        motion: of one joint, from where it stands.
        limits: of this motion.
        recorder: records all boards; it is closed afterwards.
        motor_currents: at each knot [A]: the motor gets these, its servo adds nothing; None: the servo follows the way.
        progress: called some times a second.

    Returns:
        Why the motor was switched off: "" at the motion's end, else in words.

    Raises:
        BoardLost, BoardSilent: a board is gone, or says nothing any more; the motors are off.
        BoardRefused: a limit does not fit the board's registers.
        ExcitationError: the motion cannot be made into knots, or asks for more current than the limit.
    """
    joint = motion.joint
    board, facts = bench.boards[joint], bench.facts[joint]
    usual = motor_settings(bench.settings, bench.robot.drive_train)[joint].registers(
        board.joint, board.node, facts, bench.file.sample_every
    )
    counts = facts.motor_counts / (2.0 * np.pi)
    at = float(motion.stand @ bench.robot.transmission_matrix[joint]) * counts
    per_joint = abs(facts.ratio) * counts
    own: dict[RegisterName, int] = {
        "limit.position_min": round(at - limits.reach * per_joint),
        "limit.position_max": round(at + limits.reach * per_joint),
        "limit.velocity": min(
            round(256.0 * limits.velocity * per_joint * facts.tick_period), facts.registers["hard.velocity"]
        ),
        "limit.current": round(1e3 * limits.current),
        "limit.continuous_current": round(1e3 * limits.current),
    }
    feedforward = None
    if motor_currents is not None:
        own |= dict.fromkeys(_SERVO, 0)
        own["limit.following"] = _MOST_FOLLOWING
        currents = np.zeros((len(motor_currents), len(bench.facts)))
        currents[:, joint] = motor_currents
        feedforward = Feedforward(currents)
    watcher = _Watcher(bench, joint, limits)
    try:
        board.set_registers(usual | own)
        play(bench, motion, 1, recorder, progress, None, feedforward, watcher)
        why = "" if board.state is State.DONE else _ended_by(watcher)
    except BoardFault as fault:
        why = fault.text
    finally:
        with suppress(BoardError, BenchLost):
            bench.clear()
            board.set_registers(usual)
    return why


def _ended_by(watcher: _Watcher) -> str:
    try:
        watcher.check()
    except MotionEnded as ended:
        return str(ended)
    return "stopped"
