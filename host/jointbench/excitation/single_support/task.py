"""What a robot on one foot is to do: where trunk, swing foot and zero-moment point are on their courses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.dynamics import center_of_mass
from jointbench.errors import ExcitationError, InfeasibleExcitation, UnknownInertia
from jointbench.excitation.single_support.balance import Balance, half_lengths, support_sole
from jointbench.excitation.single_support.postures import LEG, Poses, poses_of
from jointbench.excitation.single_support.ranges import Courses, SupportRanges
from jointbench.robot import Foot, Robot

_LEVEL = 1e-4
"""What the swing foot may be tilted at home [rad]: it stays so."""


@dataclass(frozen=True, eq=False)
class SingleSupportTask:
    """A robot on one foot, and what is known of where its zero-moment point may be.

    Attributes:
        robot: a chain of two legs of six joints, from the support foot to the swing foot.
        foot: name of the support foot, which is the base.
        margin: what the zero-moment point keeps free of the sole, lengthwise and sideways [m].
        zmp_offset: measured less predicted point [m].
        parameters: ten of the base's link, then ten per link; the robot's own where None.
        hips_turn: whether the joints that turn the legs about the trunk's upright move.

    Raises:
        ExcitationError: a margin is negative.
        InfeasibleExcitation: the robot is no such chain, or its swing foot is not level at home.
        LosesBalance: the foot is not the base, or the zero-moment point is beyond the margin at home.
        UnknownFoot: the robot has no such foot.
        UnknownInertia: the robot's file does not tell its inertias, and no parameters are given.
    """

    robot: Robot
    foot: str
    margin: tuple[float, float]
    zmp_offset: tuple[float, float] = (0.0, 0.0)
    parameters: Array | None = None
    hips_turn: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot stand so."""
        parents = [joint.parent for joint in self.robot.joints]
        kinds = {joint.kind for joint in self.robot.independent_joints}
        if parents != list(range(-1, 2 * LEG - 1)) or self.robot.n_joints != 2 * LEG or kinds != {"revolute"}:
            raise InfeasibleExcitation(
                f"robot {self.robot.name!r} is no chain of two legs of six joints that turn, from the foot that it "
                f"stands on to the one that swings; motions on one foot are planned for such robots"
            )
        if min(self.margin) < 0.0:
            raise ExcitationError(f"margin = {self.margin} m must be 0 or more, lengthwise and sideways")
        self._standing.refuse_fall(self.margin, np.zeros(1))
        up = self.at_home.rotations[0, 1] @ self.swing.axes[:, 2]
        tilt = float(np.linalg.norm(np.cross(up, self.sole.axes[:, 2])))
        if tilt > _LEVEL:
            raise InfeasibleExcitation(
                f"robot {self.robot.name!r}: foot {self.swing.name!r} is tilted by {tilt:.2g} rad at home; choose a "
                f"home in which it is parallel to the ground"
            )

    @cached_property
    def sole(self) -> Foot:
        """The foot that it stands on."""
        return support_sole(self.robot, self.foot)

    @cached_property
    def swing(self) -> Foot:
        """The foot at the end of the chain.

        Raises:
            InfeasibleExcitation: there is none.
        """
        for foot in self.robot.feet:
            if foot.joint == 2 * LEG - 1:
                return foot
        raise InfeasibleExcitation(f"robot {self.robot.name!r} has no foot at the end of its chain of joints")

    @cached_property
    def home(self) -> Array:
        """Joint positions [rad], shape (12,)."""
        return np.array(self.robot.home, dtype=np.float64)

    @cached_property
    def at_home(self) -> Poses:
        """Where trunk and swing foot are then."""
        return poses_of(self.robot, self.home[None])

    @property
    def home_point(self) -> Array:
        """Its zero-moment point then, forward and left of the sole's middle [m], shape (2,)."""
        return self._standing.points[0]

    @cached_property
    def _standing(self) -> Balance:
        return self.balance(self.home[None], *np.zeros((2, 1, 2 * LEG)))

    @cached_property
    def pendulum(self) -> float:
        """Height over gravity, h / g, of the centre of mass above the ground at home [s²]."""
        links = self.robot.standard_parameters if self.parameters is None else self.parameters[10:]
        if links is None:
            raise UnknownInertia(f"the file of robot {self.robot.name!r} does not tell all inertias; give parameters")
        up = self.sole.axes[:, 2]
        height = (center_of_mass(self.robot, self.home[None], links)[0] - self.sole.origin) @ up
        return float(height / np.linalg.norm(self.robot.gravity))

    def balance(self, q: Array, dq: Array, ddq: Array) -> Balance:
        """How it stands over a motion, shape (n_samples, 12) each."""
        return Balance.of(self.robot, self.foot, q, dq, ddq, self.parameters, self.zmp_offset)

    def ends(self, ranges: SupportRanges) -> Array:
        """The ranges, and behind them those of the zero-moment point [m], from where they are at home, (10, 2)."""
        room, point = half_lengths(self.sole) - self.margin, self.home_point
        # It may stand at the very edge of that, or a hair beyond.
        zmp = np.stack([np.minimum(-room - point, 0.0), np.maximum(room - point, 0.0)], axis=1)
        return np.vstack([ranges.ends, zmp])

    def poses(self, courses: Courses, shift: Array, time: Array) -> Poses:
        """Where trunk and swing foot are at times.

        Args:
            courses: of all ranges, as `ends` has them.
            shift: of the trunk, forward and left [m], shape (n_times, 2).
            time: [s], shape (n_times,).
        """
        up, roll, pitch, yaw, forward, out, foot_up, turn = courses.at(time)[:, :8].T
        axes, home = self.sole.axes, self.at_home
        side = np.sign((home.origins[0, 1] - self.sole.origin) @ axes[:, 1])
        trunk = Rotation.from_euler("ZYX", np.stack([yaw, pitch, roll], axis=1)).as_matrix()
        foot = Rotation.from_euler("Z", (side * turn)[:, None]).as_matrix()
        turns = axes @ np.stack([trunk.reshape(-1, 3, 3), foot.reshape(-1, 3, 3)], axis=1) @ axes.T
        moves = np.stack([np.column_stack([shift, up]), np.column_stack([forward, side * out, foot_up])], axis=1)
        return Poses(turns @ home.rotations, home.origins + moves @ axes.T)

    def reference(self, courses: Courses, time: Array) -> Array:
        """Where the zero-moment point is to be, forward and left of the sole's middle [m], shape (n_times, 2)."""
        return self.home_point + courses.at(time)[:, 8:]
