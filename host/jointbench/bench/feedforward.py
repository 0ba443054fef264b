"""Feed-forward of a motion: motor currents at its knots that the boards add to what their servos ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.bench.client import RegisterName
from jointbench.bench.identity import Facts
from jointbench.errors import ExcitationError, ShapeError
from jointbench.model import Robot
from jointwire import BY_NAME

LIMIT_OVER_PEAK = 1.5  # limit.feedforward over the largest current of the motion
_MILLI = 1e3


class BoardFeedforward(NamedTuple):
    """The feed-forward of one board.

    Attributes:
        currents_mA: at each knot, shape (n_knots,).
        registers: raw values that hold while the motion is played.
    """

    currents_mA: NDArray[np.int16]
    registers: dict[RegisterName, int]


@dataclass(frozen=True, eq=False)
class Feedforward:
    """Motor currents at the knots of a trajectory, linear between them.

    The boards add them to the servo's command before it is clamped to `limit.current`. They come in from ARM on within
    256 ticks, and no motor that was stopped, has tripped or has played to its end gets any.

    Attributes:
        motor_current_A: of each motor at each knot [A], shape (n_knots, n_motors).
        following_limit_rad: of each motor [rad of the motor], shape (n_motors,): difference of reference and position
            that trips while this motion is played, where it is tighter than the board's; None: the board's own.
        unexpected_limit_A: of each motor [A], shape (n_motors,), as `feedback_band` of identification/feedforward.py
            makes them: current that the servo adds to the feed-forward beyond which a board trips UNEXPECTED; infinite:
            that motor is not watched; None: none is.
    """

    motor_current_A: Array
    following_limit_rad: Array | None = None
    unexpected_limit_A: Array | None = None

    @classmethod
    def of_joint_torque(cls, joint_torque_Nm: ArrayLike, robot: Robot) -> Feedforward:
        """Feed-forward of torques at the joints: motor current = (M⁻ᵀ torque) / torque constant.

        Args:
            joint_torque_Nm: at each knot [N·m, N for prismatic joints], shape (n_knots, n_joints).
            robot: its drives; motors of coupled joints get theirs through the coupling.

        Raises:
            ShapeError: the torques are not of this robot's joints.
        """
        torque = np.asarray(joint_torque_Nm, dtype=np.float64)
        if torque.ndim != 2 or torque.shape[1] != robot.n_joints:
            raise ShapeError(
                f"joint_torque_Nm has shape {torque.shape}; robot {robot.name!r} needs (n_knots, {robot.n_joints})"
            )
        train = robot.drive_train
        constants = np.array([drive.torque_constant for drive in train.drives])
        motor = train.motor_torque(torque)
        return cls(np.divide(motor, constants, out=np.zeros_like(motor), where=constants != 0.0))

    def scaled(self, share: float) -> Feedforward:
        """Multiply all currents by a share, such as 0.5 for a first run that shows sign, scale and order of the motors.

        No motor of it is watched for the unexpected: the servos have the rest of the torque to give.
        """
        return Feedforward(share * self.motor_current_A, self.following_limit_rad)

    def watch_text(self, joint_names: Sequence[str]) -> str:
        """Sentence on the boards that trip UNEXPECTED, their limits, and the boards that do not watch."""
        limits = self.unexpected_limit_A
        if limits is None or not np.isfinite(limits).any():
            return "no board watches for pushes: limit.unexpected is 0, off"
        parts = [
            f"{joint} {limit:.3g} A" if np.isfinite(limit) else f"{joint} off"
            for joint, limit in zip(joint_names, limits, strict=True)
        ]
        return f"boards trip UNEXPECTED where the servo adds more to the feed-forward than: {', '.join(parts)}"

    def for_boards(self, robot: Robot, facts: Sequence[Facts], n_knots: int) -> list[BoardFeedforward]:
        """Feed-forward of each board, in the order of the boards.

        Args:
            robot: names of the joints.
            facts: of each joint's board.
            n_knots: of the trajectory.

        Raises:
            ExcitationError: not a current for each knot and board, a current that is not finite, or one beyond the
                board's limit.current.
        """
        currents = np.asarray(self.motor_current_A, dtype=np.float64)
        if currents.shape != (n_knots, len(facts)):
            raise ExcitationError(
                f"the feed-forward has shape {currents.shape}; the trajectory has {n_knots} knots and the bench "
                f"{len(facts)} motors, so it must be ({n_knots}, {len(facts)}); make it of this trajectory"
            )
        names = robot.joint_names
        return [self._for_board(names[k], k, currents[:, k], board) for k, board in enumerate(facts)]

    def _for_board(self, joint: str, index: int, currents: Array, facts: Facts) -> BoardFeedforward:
        most = facts.registers["limit.current"]
        if not np.all(np.isfinite(currents)):
            knot = int(np.flatnonzero(~np.isfinite(currents))[0])
            raise ExcitationError(f"the feed-forward of {joint!r} at knot {knot} is {currents[knot]} A; give a number")
        rounded = np.round(_MILLI * currents)
        peak = int(np.abs(rounded).max())
        if peak > most:
            raise ExcitationError(
                f"the feed-forward of {joint!r} reaches {peak / _MILLI:g} A, its limit.current is {most / _MILLI:g} A; "
                "plan a gentler motion, or look for a wrong model or torque constant"
            )
        registers: dict[RegisterName, int] = {"limit.feedforward": min(int(np.ceil(LIMIT_OVER_PEAK * peak)), most)}
        if self.following_limit_rad is not None:
            counts = round(float(self.following_limit_rad[index]) * facts.motor_counts / (2.0 * np.pi))
            allowed = BY_NAME["limit.following"].minimum
            registers["limit.following"] = max(allowed, min(counts, facts.registers["limit.following"]))
        registers["limit.unexpected"] = self._unexpected_raw(joint, index)
        return BoardFeedforward(rounded.astype(np.int16), registers)

    def _unexpected_raw(self, joint: str, index: int) -> int:
        """Raw limit.unexpected of a motor; 0: it is not watched."""
        limit = np.inf if self.unexpected_limit_A is None else float(self.unexpected_limit_A[index])
        if not limit > 0.0:
            raise ExcitationError(
                f"unexpected_limit_A of {joint!r} is {limit:g} A; give a current above 0, or inf not to watch it"
            )
        most = BY_NAME["limit.unexpected"].maximum
        return 0 if np.isinf(limit) else int(min(np.ceil(_MILLI * limit), most))
