"""Samples watched while a robot moves: its joints' largest torques, one motor alone, the forces under its foot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench.board import Board
from jointbench.bench.identity import FOOT_CHANNELS, Facts
from jointbench.errors import FootOffGround, RobotFell, StuckFootSensor
from jointbench.model import CORNERS, Foot, Robot
from jointwire import ChannelKind, Frame, decode_samples, divider, stack_samples

# Before it moves: samples of which it is told how the robot stands, and the share of its weight by the robot's file
# that its foot must carry. Files are off by what they are to be corrected by; a foot in the air carries nothing.
STANDING_SAMPLES = 24
LEAST_CARRIED, MOST_CARRIED = 0.5, 1.5
# While it moves: a robot that tips stands on an edge of its sole, where only tipping ends; one that jumps, slips off or
# is held carries little. A foot that knocks on the ground does either for some hundredths of a second.
SOLE_EDGE = 0.05  # of the sole's shorter side
LEAST_FOOT_FORCE = 0.5  # of the forces' sum before it moved
TIPPING_TIME = 0.1  # [s]
_NEGATIVE = -0.02  # of that sum: no ground pulls, but zeros may be off
_RANGE = 1 << 15  # counts of a sensor
_VARIES = 4  # counts by which a corner must vary for another that does not vary at all to be stuck


class MotionEnded(Exception):
    """Raised by a watch when a motion has gone on for long enough; says why. It is no error."""


class MotorWatch(Protocol):
    """Looks on while one motor of a bench moves alone, the others off, and ends the motion."""

    @property
    def joint(self) -> str:
        """Joint whose motor is driven."""
        ...

    def add(self, index: int, frame: Frame) -> None:
        """Take a DATA frame of a board, by its place in `bench.all_boards`."""
        ...

    def check(self) -> None:
        """Look at what came.

        Raises:
            MotionEnded: the motor is to be switched off.
        """
        ...


class Peaks:
    """Collects the DATA of a bench's boards, and says what was largest in it.

    A joint with a motor of its own needs that one's samples alone; of joints that share motors the samples of the same
    tick of the trajectory belong together.
    """

    def __init__(self, robot: Robot, facts: Sequence[Facts]) -> None:
        """`facts`: of each joint's board."""
        self._names = robot.joint_names
        self._facts = facts
        self._constants = [drive.torque_constant for drive in robot.drives]
        self._matrix = robot.transmission_matrix
        self._blocks: dict[int, list[Frame]] = {}

    def add(self, index: int, frame: Frame) -> None:
        """Take a DATA frame of a joint's board."""
        self._blocks.setdefault(index, []).append(frame)

    def take(self) -> dict[str, float]:
        """Largest magnitude of the torque at each joint since the last time, by joint [N·m or N]."""
        torques = {index: self._torque(index, frames) for index, frames in self._blocks.items()}
        torques = {index: torque for index, torque in torques.items() if len(torque[1])}
        self._blocks.clear()
        peaks: dict[str, float] = {}
        for joint, name in enumerate(self._names):
            motors = np.flatnonzero(self._matrix[:, joint])
            if all(motor in torques for motor in motors):
                torque = self._at_joint(joint, {int(motor): torques[int(motor)] for motor in motors})
                peaks |= {name: float(np.abs(torque).max())} if len(torque) else {}
        return peaks

    def _at_joint(self, joint: int, motors: dict[int, tuple[NDArray[np.int64], Array]]) -> Array:
        if len(motors) == 1:
            ((motor, (_, torque)),) = motors.items()
            return self._matrix[motor, joint] * torque
        common = reduce(np.intersect1d, (ticks[ticks >= 0] for ticks, _ in motors.values()))
        total = np.zeros(len(common))
        for motor, (ticks, torque) in motors.items():
            at = np.intersect1d(ticks, common, return_indices=True)[1]
            total += self._matrix[motor, joint] * torque[at]
        return total

    def _torque(self, index: int, frames: Sequence[Frame]) -> tuple[NDArray[np.int64], Array]:
        """Ticks of the trajectory, -1 while nothing plays, and the motor's torque at them [N·m]."""
        facts = self._facts[index]
        currents = stack_samples(frames).get("motor_current")
        if currents is None or not facts.has_motor:
            return np.empty(0, dtype=np.int64), np.empty(0)
        every = 1 << facts.registers["stream.every_motor_current"]
        ticks = np.concatenate([_due(frame, every) for frame in frames])
        scale, zero = facts.si("current.scale"), facts.registers["current.zero"]
        return ticks, np.asarray((currents - float(zero)) * (scale * self._constants[index]), dtype=np.float64)


def _due(frame: Frame, every: int) -> NDArray[np.int64]:
    within = np.arange(frame.body.count)
    within = within[(frame.body.first_tick + within) % every == 0]
    return within + frame.body.play_tick if frame.body.play_tick >= 0 else np.full(len(within), -1)


class FallWatch:
    """Watch over the support foot's forces: the robot stands, or it falls.

    It falls when for TIPPING_TIME the pressure point has been at the sole's edge, or the foot has carried too little.
    A sole's edge is never reached by a motion that was planned with a margin.

    Attributes:
        foot: that the robot stands on.
        board: the foot's.
    """

    def __init__(self, robot: Robot, foot: Foot, board: Board, facts: Facts) -> None:
        """Hear of nothing yet; `facts` are the board's."""
        self.foot = foot
        self.board = board
        self._facts = facts
        self._zeros = np.array([facts.registers[f"force.zero_{k}"] for k in range(1, len(CORNERS) + 1)], dtype=float)
        self._weight = _weight(robot)
        sides = np.roll(foot.points, -1, axis=0) - foot.points
        self._edge = SOLE_EDGE * float(np.linalg.norm(sides, axis=1).min())
        self._counts = np.empty((0, len(CORNERS)))
        self._stood = 0.0
        self._bad = 0.0
        self._newest = np.zeros(len(CORNERS))
        self._nearest = np.inf

    @property
    def heard(self) -> int:
        """Samples that came before `begin`."""
        return len(self._counts)

    def add(self, frame: Frame) -> None:
        """Take a DATA frame of the foot's board."""
        block = decode_samples(frame)
        counts = np.stack([block.columns[name] for name in FOOT_CHANNELS], axis=1).astype(np.float64)
        if not self._stood:
            self._counts = np.concatenate([self._counts, counts])
            return
        spacing = divider(block.dividers, ChannelKind.FOOT_FORCE) * self._facts.tick_period
        forces = self._forces(counts)
        inside = self.foot.distance_to_edge(self.foot.pressure_point(forces))
        standing = (inside >= self._edge) & (forces.sum(axis=1) >= LEAST_FOOT_FORCE * self._stood)
        for stands, force in zip(standing, forces, strict=True):
            if self._bad >= TIPPING_TIME:  # what came first is told
                break
            self._bad, self._newest = 0.0 if stands else self._bad + spacing, force
        self._nearest = float(np.fmin(self._nearest, np.nanmin(inside, initial=np.inf)))

    def begin(self) -> None:
        """Judge how the robot stands by what came until now, and take that as its weight from now on.

        Raises:
            StuckFootSensor: a sensor is at its end, pulls, or does not change while others do.
            FootOffGround: the foot does not carry the robot.
        """
        counts = self._counts
        spread = np.ptp(counts, axis=0)
        means = self._forces(counts).mean(axis=0)
        total = float(means.sum())
        for corner in range(len(CORNERS)):
            if np.abs(counts[:, corner]).max() >= _RANGE - 1:
                raise self._stuck(corner, means, "is at the end of its range")
            if spread[corner] == 0.0 and spread.max() >= _VARIES:
                raise self._stuck(corner, means, f"says the same {len(counts)} times while others vary")
        least, most = (share * self._weight for share in (LEAST_CARRIED, MOST_CARRIED))
        if total <= 0.0 or (self._weight and not least <= total <= most):
            allowed = f"; by the robot's file it must be from {least:.0f} to {most:.0f} N" if self._weight else ""
            raise FootOffGround(
                f"{self._named} does not carry the robot: its corners carry {total:.1f} N in all{allowed}. Set the "
                "robot down on it before it moves; one that hangs is moved with standing=False"
            )
        if means.min() < _NEGATIVE * total:
            raise self._stuck(int(np.argmin(means)), means, "is pulled, which no ground does")
        self._stood = total

    def check(self, elapsed: float) -> None:
        """Raise an error when it falls.

        Args:
            elapsed: since the motion began [s], for the message.

        Raises:
            RobotFell: it does; all motors must be switched off.
        """
        if self._bad < TIPPING_TIME:
            return
        total, (x, y) = float(self._newest.sum()), 1e3 * self.foot.pressure_point(self._newest)
        place = f" with the pressure at ({x:+.0f}, {y:+.0f}) mm of the sole's middle" if np.isfinite(x) else ""
        raise RobotFell(
            f"{self._named}: the robot falls, {max(elapsed, 0.0):.1f} s into its motion: for {1e3 * self._bad:.0f} ms "
            f"it has carried {total:.0f} N{place}, and not {LEAST_FOOT_FORCE * self._stood:.0f} N at least, "
            f"{1e3 * self._edge:.0f} mm inside the sole's edge. Its motors are off: set it up again, look for what it "
            "ran against, and plan with a wider margin"
        )

    def take_nearest(self) -> float | None:
        """Smallest distance of the pressure point to the sole's edge since the last call [m], None without samples."""
        nearest, self._nearest = self._nearest, np.inf
        return nearest if np.isfinite(nearest) else None

    @property
    def _named(self) -> str:
        return f"{self.board.joint} (node {self.board.node})"

    def _stuck(self, corner: int, means: Array, what: str) -> StuckFootSensor:
        return StuckFootSensor(
            f"{self._named}: its {CORNERS[corner]} sensor {what}: {means[corner]:.1f} N of {means.sum():.1f} N in all; "
            "look at its cable, or calibrate its zero with the foot in the air, and begin again"
        )

    def _forces(self, counts: Array) -> Array:
        return (counts - self._zeros) * self._facts.si("force.scale")


def fall_watch(robot: Robot, boards: Sequence[Board], facts: Sequence[Facts]) -> FallWatch | None:
    """A watch over the foot that is the robot's base; None where there is none, or no board reads its sensors.

    Args:
        robot: whose base may be a foot.
        boards, facts: of its feet.
    """
    foot = robot.base_foot
    for board, board_facts in zip(boards, facts, strict=True):
        if foot is not None and board.joint == foot.name:
            return FallWatch(robot, foot, board, board_facts)
    return None


def _weight(robot: Robot) -> float:
    """Weight by the robot's file [N]; 0 where that does not say all masses."""
    links = [joint.link for joint in robot.joints] + ([robot.base_link] if robot.base_link else [])
    masses = [link.mass for link in links]
    return sum(mass or 0.0 for mass in masses) * float(np.linalg.norm(robot.gravity)) if None not in masses else 0.0
