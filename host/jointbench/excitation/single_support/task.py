"""Task of a robot on one foot: ranges and random courses of trunk and swing foot, and the postures that follow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import radians

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation, RobotError
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.single_support.balance import Balance, sole_half_lengths, support_sole
from jointbench.model import Foot, Robot, center_of_mass
from jointbench.model.kinematics import Jacobians

LEG = 6
"""Joints of a leg."""

_END_LINKS = (LEG - 1, 2 * LEG - 1)
"""Links that are the trunk and the swing foot."""

_HIPS = (LEG - 1, LEG)
"""Joints that turn a leg about the trunk's upright."""

_POSE_SIZE, _UPRIGHT = 6, 5
"""Numbers of a pose's error, place and turn, and which of them is the turn about the upright."""

_ITERATIONS = 40
_POSE_TOLERANCE = 1e-10
"""Metres and radians: what rounding leaves of a solved pose is 1e-15."""

_MAX_JOINT_STEP = 0.4
"""Largest step of a joint in one iteration [rad]: from afar Newton's step overshoots."""

Range = tuple[float, float]
"""Least and largest way from home; 0 is between them."""

_MAX_TILT = 1e-4
"""Largest tilt of the swing foot at home [rad]: it stays so."""


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of trunk and swing foot over samples, in the base frame: that of the support foot.

    Attributes:
        rotations: of the trunk and of the swing foot, shape (n_samples, 2, 3, 3).
        origins: of their frames [m], shape (n_samples, 2, 3).
    """

    rotations: Array
    origins: Array


def trunk_and_foot_poses(robot: Robot, q: Array) -> Poses:
    """Poses of trunk and swing foot at joint positions [rad], shape (n_samples, 12)."""
    frames = Jacobians.of(robot, q)
    return Poses(frames.rotations[:, _END_LINKS], frames.origins[:, _END_LINKS])


def inverse_kinematics(robot: Robot, poses: Poses, start: Array, *, hips_turn: bool = True) -> Array:
    """Joint positions [rad] at poses, by Newton's method for all samples at once, shape (n_samples, 12).

    Args:
        robot: a chain of twelve joints: one leg up to the trunk, another one down to the swing foot.
        poses: where they shall be.
        start: joint positions that are near, shape (n_samples, 12).
        hips_turn: whether the joints next to the trunk move. Where they do not, trunk and swing foot are turned about
            the upright as comes of it, and all else is where it shall be.

    Raises:
        InfeasibleExcitation: a leg does not reach that far.
    """
    q = start.copy()
    joints = np.array([j for j in range(2 * LEG) if hips_turn or j not in _HIPS])
    rows = np.array([k for k in range(2 * _POSE_SIZE) if hips_turn or k % _POSE_SIZE != _UPRIGHT])
    for _ in range(_ITERATIONS):
        frames = Jacobians.of(robot, q)
        errors, jacobians = zip(*(_error(frames, poses, end) for end in range(2)), strict=True)
        error = np.concatenate(errors, axis=1)[:, rows]
        if np.abs(error).max() < _POSE_TOLERANCE:
            return q
        jacobian = np.concatenate(jacobians, axis=1)[:, rows][:, :, joints]
        joint_step = np.linalg.solve(jacobian, error[..., None])[..., 0]
        largest_step = np.abs(joint_step).max(axis=1, keepdims=True)
        q[:, joints] += joint_step * np.minimum(1.0, _MAX_JOINT_STEP / np.maximum(largest_step, _POSE_TOLERANCE))
    raise InfeasibleExcitation(
        f"robot {robot.name!r}: its legs do not reach where trunk and swing foot are to be; plan a smaller motion"
    )


def _error(frames: Jacobians, poses: Poses, end: int) -> tuple[Array, Array]:
    """Error of a pose, position [m] and rotation [rad], shape (n_samples, 6), and its Jacobian (n_samples, 6, 12)."""
    link = _END_LINKS[end]
    link_origin = frames.origins[:, link]
    rotation_error = poses.rotations[:, end] @ frames.rotations[:, link].transpose(0, 2, 1)
    # 1/2 (R - Rᵀ)ᵛ is the rotation vector up to its third order.
    rotation_vector = 0.5 * np.stack(
        [
            rotation_error[:, 2, 1] - rotation_error[:, 1, 2],
            rotation_error[:, 0, 2] - rotation_error[:, 2, 0],
            rotation_error[:, 1, 0] - rotation_error[:, 0, 1],
        ],
        -1,
    )
    jacobian = np.concatenate([frames.linear(link, link_origin), frames.angular(link)], axis=2)
    return np.concatenate([poses.origins[:, end] - link_origin, rotation_vector], axis=1), jacobian.transpose(0, 2, 1)


@dataclass(frozen=True)
class SupportRanges:
    """Ranges of motion on one foot; the trunk's horizontal position is not among them, as balance decides it.

    The defaults suit a biped of 0.6 m long legs from a crouch; what is out and in is to the swing foot's side.

    Attributes:
        trunk_up: height of the trunk [m]: how deep it crouches.
        trunk_roll, trunk_pitch, trunk_yaw: turns of the trunk about the axes of the foot on the ground [rad].
        foot_forward, foot_out, foot_up: the swing foot [m], which stays parallel to the ground.
        foot_turn: its turn about the upright, toes out [rad].

    Raises:
        ExcitationError: a range does not have home, 0, in it; one from 0 to 0 leaves its quantity as it is at home.
    """

    trunk_up: Range = (-0.05, 0.05)
    trunk_roll: Range = (-radians(12.0), radians(12.0))
    trunk_pitch: Range = (-radians(18.0), radians(22.0))
    trunk_yaw: Range = (-radians(15.0), radians(15.0))
    foot_forward: Range = (-0.14, 0.16)
    foot_out: Range = (-0.005, 0.09)
    foot_up: Range = (-0.015, 0.08)
    foot_turn: Range = (-radians(10.0), radians(22.0))

    def __post_init__(self) -> None:
        """Refuse what is no range about home."""
        for name, (low, high) in zip(self.names, self.ends.tolist(), strict=True):
            if not low <= 0.0 <= high:
                raise ExcitationError(f"{name} from {low:g} to {high:g}: the range must have home, 0, in it")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ranges, in their order."""
        return tuple(field.name for field in fields(self))

    @property
    def ends(self) -> Array:
        """Least and largest, shape (8, 2)."""
        return np.array([getattr(self, name) for name in self.names], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Courses:
    """Random courses of several quantities that rest at 0, then go anywhere in their ranges, and come to rest at 0.

    Splines whose control points are drawn evenly from the ranges: they stay within them, and are smooth to the fourth
    derivative.

    Attributes:
        spline: from the end of the rest at the beginning to the beginning of that at the end.
        weights: control points, shape (n_courses, spline.size).
        rest: at either end [s].
    """

    spline: UniformSpline
    weights: Array
    rest: float

    @staticmethod
    def random(rng: np.random.Generator, ends: Array, duration: float, rest: float, pace: float) -> Courses:
        """Draw them.

        Args:
            rng: what is random.
            ends: of the ranges, shape (n_courses, 2).
            duration: of all, rests included [s].
            rest: at either end [s].
            pace: from control point to control point [s].

        Raises:
            ExcitationError: the duration leaves no room for a motion.
        """
        motion_duration = duration - 2.0 * rest
        if motion_duration < 6.0 * pace:
            raise ExcitationError(
                f"duration = {duration:g} s with {rest:g} s of rest at either end leaves {motion_duration:g} s; a "
                f"motion at a pace of {pace:g} s needs {6.0 * pace:g} s at least"
            )
        spline = UniformSpline(int(motion_duration / pace), motion_duration)
        low, high = ends.T[..., None]
        return Courses(spline, rng.uniform(low, high, (len(ends), spline.size)), rest)

    def scaled(self, share: float) -> Courses:
        """Return the task with all distances from 0 multiplied by a share."""
        return replace(self, weights=share * self.weights)

    def at(self, time: Array) -> Array:
        """Values of the courses at times [s], shape (n_times, n_courses)."""
        course_time = np.clip(np.asarray(time) - self.rest, 0.0, self.spline.duration)
        return self.spline.displacement(self.weights, course_time, 0)[0]


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
        InfeasibleExcitation: the robot is no such chain, or its swing foot is not level at home; or the foot is not the
            base, or the zero-moment point is beyond the margin at home.
        RobotError: the robot has no such foot; or the robot's file does not tell its inertias, and no parameters are
            given.
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
        self._home_balance.refuse_fall(self.margin, np.zeros(1))
        up = self.at_home.rotations[0, 1] @ self.swing.axes[:, 2]
        tilt = float(np.linalg.norm(np.cross(up, self.sole.axes[:, 2])))
        if tilt > _MAX_TILT:
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
        """Poses of trunk and swing foot at home."""
        return trunk_and_foot_poses(self.robot, self.home[None])

    @property
    def home_point(self) -> Array:
        """Its zero-moment point then, forward and left of the sole's middle [m], shape (2,)."""
        return self._home_balance.points[0]

    @cached_property
    def _home_balance(self) -> Balance:
        return self.balance(self.home[None], *np.zeros((2, 1, 2 * LEG)))

    @cached_property
    def pendulum(self) -> float:
        """Height over gravity, h / g, of the centre of mass above the ground at home [s²]."""
        links = self.robot.standard_parameters if self.parameters is None else self.parameters[10:]
        if links is None:
            raise RobotError(f"the file of robot {self.robot.name!r} does not tell all inertias; give parameters")
        up = self.sole.axes[:, 2]
        height = (center_of_mass(self.robot, self.home[None], links)[0] - self.sole.origin) @ up
        return float(height / np.linalg.norm(self.robot.gravity))

    def balance(self, q: Array, dq: Array, ddq: Array) -> Balance:
        """Balance over a motion, shape (n_samples, 12) each."""
        return Balance.of(self.robot, self.foot, q, dq, ddq, self.parameters, self.zmp_offset)

    def ends(self, ranges: SupportRanges) -> Array:
        """The ranges, and behind them those of the zero-moment point [m], from where they are at home, (10, 2)."""
        half_range, point = sole_half_lengths(self.sole) - self.margin, self.home_point
        # It may stand at the very edge of that, or a hair beyond.
        zmp = np.stack([np.minimum(-half_range - point, 0.0), np.maximum(half_range - point, 0.0)], axis=1)
        return np.vstack([ranges.ends, zmp])

    def poses(self, courses: Courses, shift: Array, time: Array) -> Poses:
        """Poses of trunk and swing foot at times.

        Args:
            courses: of all ranges, as `ends` has them.
            shift: of the trunk, forward and left [m], shape (n_times, 2).
            time: [s], shape (n_times,).
        """
        up, roll, pitch, yaw, forward, out, foot_up, foot_turn = courses.at(time)[:, :8].T
        axes, home = self.sole.axes, self.at_home
        side = np.sign((home.origins[0, 1] - self.sole.origin) @ axes[:, 1])
        trunk = scipy.spatial.transform.Rotation.from_euler("ZYX", np.stack([yaw, pitch, roll], axis=1)).as_matrix()
        foot = scipy.spatial.transform.Rotation.from_euler("Z", (side * foot_turn)[:, None]).as_matrix()
        rotations = axes @ np.stack([trunk.reshape(-1, 3, 3), foot.reshape(-1, 3, 3)], axis=1) @ axes.T
        moves = np.stack([np.column_stack([shift, up]), np.column_stack([forward, side * out, foot_up])], axis=1)
        return Poses(rotations @ home.rotations, home.origins + moves @ axes.T)

    def reference(self, courses: Courses, time: Array) -> Array:
        """Reference zero-moment point, forward and left of the sole's middle [m], shape (n_times, 2)."""
        return self.home_point + courses.at(time)[:, 8:]
