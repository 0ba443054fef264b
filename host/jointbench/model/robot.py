"""A robot: joints, links, drives, couplings, limits and tolerances; and the digests by which a plan knows it again."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import IDENTITY, Array, Matrix3, Vector3
from jointbench.errors import FileError, RobotError
from jointbench.model.compensation import Compensation
from jointbench.model.drive import Coupling, Drive, DriveTrain
from jointbench.model.joint import Capsule, Foot, Joint, Link, LinkKind, Mimic
from jointbench.model.table import Table

MOST_JOINTS = 40
STANDARD_GRAVITY: Vector3 = (0.0, 0.0, -9.80665)

_DEGREE, _MM, _PERCENT = math.pi / 180.0, 1e-3, 1e-2

_KEYS = {
    "zero_deg": ("zero", _DEGREE),
    "zero_mm": ("sliding_zero", _MM),
    "torque_constant_percent": ("torque_constant", _PERCENT),
    "torque_sensor_percent": ("torque_sensor", _PERCENT),
    "gear_ratio_percent": ("gear_ratio", _PERCENT),
}
"""Keys of a table of tolerances that joints may have of their own: which field, and the factor to SI."""

_COMMON_KEYS = {
    "length_mm": ("length", _MM),
    "axis_deg": ("axis", _DEGREE),
    "mounting_deg": ("mounting", _DEGREE),
    "clock_percent": ("clock", _PERCENT),
}


@dataclass(frozen=True)
class Tolerances:
    """Standard deviations of what a calibration leaves unknown, from data sheets and experience (GUM type B).

    A bound ±b of which no value is likelier than another counts as b/√3. The defaults are those of an arm that was
    put together with care and calibrated by hand, with torques from motor currents and a data sheet's torque constant.

    Attributes:
        zero: of a turning joint's position [rad].
        sliding_zero: of a sliding joint's position [m].
        torque_constant: of torques that come from motor currents, relative.
        torque_sensor: of the gain of torque sensors at joints, relative.
        gear_ratio: relative; 0 where teeth are counted.
        length: of each coordinate of a joint's place on the link before it [m].
        axis: tilt of a joint's axis on the link before it, about each normal of the axis [rad].
        mounting: tilt of the base about each level axis [rad].
        clock: of the recording's time, relative.
        joints: joints with tolerances of their own, by name.

    Source: JCGM 100:2008 (GUM), 4.3.
    """

    zero: float = 0.2 * _DEGREE
    sliding_zero: float = 1.0 * _MM
    torque_constant: float = 5.0 * _PERCENT
    torque_sensor: float = 2.0 * _PERCENT
    gear_ratio: float = 0.0
    length: float = 1.0 * _MM
    axis: float = 0.2 * _DEGREE
    mounting: float = 0.2 * _DEGREE
    clock: float = 0.1 * _PERCENT
    joints: tuple[tuple[str, Tolerances], ...] = ()

    def of(self, joint: str) -> Tolerances:
        """Return those of a joint."""
        return dict(self.joints).get(joint, self)

    def words(self, *without: str) -> str:
        """All that are not exact but some fields, such as "zero 0.2°, length 1 mm"."""
        units = {"deg": "°", "mm": " mm", "percent": " %"}
        parts: list[str] = []
        for key, (name, to_si) in (_KEYS | _COMMON_KEYS).items():
            word, _, unit = key.rpartition("_")
            if getattr(self, name) > 0.0 and name not in without:
                parts.append(f"{word.replace('_', ' ')} {getattr(self, name) / to_si:.3g}{units[unit]}")
        own = f"; of their own: {', '.join(name for name, _ in self.joints)}" if self.joints else ""
        return ", ".join(parts) + own

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Tolerances:
        """Read what `dataclasses.asdict` made of a record."""
        joints = tuple((str(name), Tolerances.from_dict(own)) for name, own in values.get("joints", ()))
        given: dict[str, Any] = {**values, "joints": joints}
        return Tolerances(**given)


def read_tolerances(table: Table, joint_names: tuple[str, ...], default: Tolerances | None = None) -> Tolerances:
    """Read a table of tolerances, such as `[tolerances] zero_deg = 0.5`, with `[tolerances.j3]` for one joint.

    Args:
        table: with units in the names of its keys; what it does not say is as in `default`.
        joint_names: of the robot.
        default: None: those of `Tolerances`.

    Raises:
        FileError: a key is unknown, a value is no number or below 0, or a table is of no joint.
    """
    common = _read(table, _KEYS | _COMMON_KEYS, default or Tolerances())
    joints = dict(common.joints)
    for name in joint_names:
        if table.has(name):
            entry = table.table(name)
            joints[name] = _read(entry, _KEYS, replace(joints.get(name, common), joints=()))
            entry.finish()
    table.finish()
    return replace(common, joints=tuple(joints.items()))


def _read(table: Table, keys: Mapping[str, tuple[str, float]], default: Tolerances) -> Tolerances:
    changed = {name: to_si * table.magnitude(key) for key, (name, to_si) in keys.items() if table.has(key)}
    if not changed:
        return default
    # What is said of all joints holds for those with some of their own, too, but for what these say.
    return replace(default, **changed, joints=tuple((name, replace(own, **changed)) for name, own in default.joints))


@dataclass(frozen=True)
class Frame:
    """A named place on a robot: rotation and origin [m] in the frame of the link of joint `joint`, -1 for the base."""

    name: str
    joint: int
    rotation: Matrix3
    origin: Vector3


@dataclass(frozen=True)
class Robot:
    """A robot: a tree of joints that each carry one link, and the drives that move them.

    Everything that is said joint by joint (positions, limits, drives, torques) is of the independent joints alone, in
    their order; those that mimic others have links, and no position of their own. Passive joints are among the
    independent ones: their positions are measured, while their torques have no model.

    Attributes:
        name: its name.
        joints: all of them, parents before children; joint i carries link i.
        drives: drive i belongs to the independent joint i.
        couplings: joints that share motors.
        gravity: in the base frame [m/s²].
        home: position [rad or m] at which motions start and end.
        source: where the numbers come from.
        description: one sentence.
        frames: places with names, such as links that are fixed to others.
        assumptions: what its file does not say and was taken for granted, a sentence each.
        capsules: volumes that contain its links and its base, as far as they are known.
        base_link: the body that everything hangs on where it is free to move, None where it stands still; its frame is
            the base frame, while `gravity` is in the world's.
        part_faults: links that are part of another one, or of a base that stands still, and why no body can have
            their inertia.
        compensations: torques at joints beside those of links and drives, as springs bring them.
        feet: soles with force sensors.
        link_kinds: which of its links are alike, and where along them their centres of mass are looked for.
        locked: names of joints of its file that are held still and are no joints here, and where [rad or m].
        tolerances: of its calibration, None where its file says nothing of them.

    >>> from jointbench.model import load_robot
    >>> robot = load_robot("cobot6")
    >>> robot.name, robot.joint_names, robot.position_limits.shape
    ('cobot6', ('j1', 'j2', 'j3', 'j4', 'j5', 'j6'), (6, 2))
    """

    name: str
    joints: tuple[Joint, ...]
    drives: tuple[Drive, ...]
    couplings: tuple[Coupling, ...]
    gravity: Vector3
    home: tuple[float, ...]
    source: str
    description: str
    frames: tuple[Frame, ...] = ()
    assumptions: tuple[str, ...] = ()
    capsules: tuple[Capsule, ...] = ()
    base_link: Link | None = None
    part_faults: tuple[tuple[str, str], ...] = ()
    compensations: tuple[Compensation, ...] = ()
    feet: tuple[Foot, ...] = ()
    link_kinds: tuple[LinkKind, ...] = ()
    locked: tuple[tuple[str, float], ...] = ()
    tolerances: Tolerances | None = None

    def __repr__(self) -> str:
        """Return one line: its name and its joints."""
        return f"<Robot {self.name}: {self.n_joints} joints {', '.join(self.joint_names)}>"

    @cached_property
    def independent_joints(self) -> tuple[Joint, ...]:
        """The joints that mimic no other."""
        return tuple(joint for joint in self.joints if joint.mimic is None)

    @cached_property
    def modelled(self) -> NDArray[np.bool_]:
        """Mask of the independent joints whose torque is modelled: all but the passive ones, shape (n_joints,)."""
        return np.array([not joint.passive for joint in self.independent_joints])

    @cached_property
    def modelled_links(self) -> NDArray[np.bool_]:
        """Mask of the links with parameters: all but the neglected ones, shape (n_links,)."""
        return np.array([joint.link.modelled for joint in self.joints])

    @cached_property
    def neglected_links(self) -> tuple[int, ...]:
        """Indices of the links without parameters."""
        return tuple(np.flatnonzero(~self.modelled_links).tolist())

    @property
    def n_joints(self) -> int:
        """Number of independent joints."""
        return len(self.independent_joints)

    @property
    def n_links(self) -> int:
        """Number of moving links."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The independent joints' names in order."""
        return tuple(joint.name for joint in self.independent_joints)

    def joint_index(self, name: str) -> int:
        """Index of the independent joint of this name.

        Raises:
            RobotError: the robot has no such joint.
        """
        if name not in self.joint_names:
            known = ", ".join(self.joint_names)
            raise RobotError(f"robot {self.name!r} has no joint {name!r}; its joints: {known}")
        return self.joint_names.index(name)

    def frame(self, name: str) -> Frame:
        """The frame of this name: one of `frames`, or a link's own.

        Raises:
            FileError: there is none.
        """
        link_frames = (Frame(joint.link.name, i, IDENTITY, (0.0, 0.0, 0.0)) for i, joint in enumerate(self.joints))
        base = () if self.base_link is None else (Frame(self.base_link.name, -1, IDENTITY, (0.0, 0.0, 0.0)),)
        known = {frame.name: frame for frame in (*base, *link_frames, *self.frames)}
        if name not in known:
            raise FileError(f"robot {self.name!r} has no frame {name!r}; there are {', '.join(known)}")
        return known[name]

    @property
    def base_foot(self) -> Foot | None:
        """The foot that is its base, on which it stands; None where there is none."""
        return next((foot for foot in self.feet if foot.joint < 0), None)

    def foot(self, name: str) -> Foot:
        """The foot of this name.

        Raises:
            RobotError: the robot has no such foot.
        """
        feet = {foot.name: foot for foot in self.feet}
        if name not in feet:
            known = f"its feet: {', '.join(feet)}" if feet else "its file has no [[feet]]"
            raise RobotError(f"robot {self.name!r} has no foot {name!r}; {known}")
        return feet[name]

    @property
    def position_limits(self) -> Array:
        """Lowest and highest position [rad or m], shape (n_joints, 2)."""
        return np.array([joint.position_limits for joint in self.independent_joints])

    @property
    def velocity_limits(self) -> Array:
        """Largest speed [rad/s or m/s], shape (n_joints,)."""
        return np.array([joint.velocity_limit for joint in self.independent_joints])

    @property
    def acceleration_limits(self) -> Array:
        """Largest magnitude of the acceleration [rad/s² or m/s²], shape (n_joints,)."""
        return np.array([joint.acceleration_limit for joint in self.independent_joints])

    @property
    def torque_limits(self) -> Array:
        """Largest magnitude of the joint torque [N·m or N], shape (n_joints,)."""
        return np.array([joint.torque_limit for joint in self.independent_joints])

    def all_positions(self, positions: Array) -> Array:
        """Positions of all joints [rad or m], (n_samples, n_links), of those of the independent ones."""
        index, factor, offset = self.coordinates
        return positions[:, index] * factor + offset

    @cached_property
    def coordinates(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Rule of each joint's position: factor * (position of the independent joint `index`) + offset.

        Returns:
            index, factor, offset [rad or m], shape (n_links,) each.
        """
        independent_index = np.cumsum([joint.mimic is None for joint in self.joints]) - 1
        mimics = [joint.mimic or Mimic(i, 1.0, 0.0) for i, joint in enumerate(self.joints)]
        index = np.array([independent_index[mimic.joint] for mimic in mimics], np.int64)
        return index, np.array([mimic.factor for mimic in mimics]), np.array([mimic.offset for mimic in mimics])

    @property
    def standard_parameters(self) -> Array | None:
        """Ten inertial parameters per link in link order, shape (10 * n_links,), or None where any is not given."""
        blocks = [joint.link.standard_parameters for joint in self.joints]
        known = [block for block in blocks if block is not None]
        return np.concatenate(known) if len(known) == len(blocks) else None

    @cached_property
    def drive_train(self) -> DriveTrain:
        """Its motors and their transmission to the joints: one for each joint, then further ones of couplings."""
        extra_drives = tuple(drive for coupling in self.couplings for drive in coupling.more)
        matrix = np.zeros((self.n_joints + len(extra_drives), self.n_joints))
        matrix[: self.n_joints] = np.diag([drive.ratio for drive in self.drives])
        first = self.n_joints
        for coupling in self.couplings:
            joints = [self.joint_index(name) for name in coupling.joints]
            rows = [*joints, *range(first, first + len(coupling.more))]
            matrix[np.ix_(rows, joints)] = coupling.matrix
            first += len(coupling.more)
        return DriveTrain(self.drives + extra_drives, matrix)

    @property
    def transmission_matrix(self) -> Array:
        """M of motor position = M @ joint position and joint torque = Mᵀ @ motor torque, shape (n_joints, n_joints).

        Raises:
            RobotError: it has more motors than joints, so that M is not square.
        """
        train = self.drive_train
        if train.n_motors > self.n_joints:
            raise RobotError(
                f"robot {self.name!r} has {train.n_motors} motors for {self.n_joints} joints, and one of each joint is "
                f"needed here; use joint positions and torques, which its drive train makes of the motors'"
            )
        return train.matrix.copy()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Doubtful numbers: inertias that no body can have, by link name, and assumptions."""
        links = (*((self.base_link,) if self.base_link else ()), *(joint.link for joint in self.joints))
        # Of a link with others fixed to it what the file gave for itself says more than their sum.
        faults = {link.name: link.physical_fault for link in links} | dict(self.part_faults)
        sentences = (f"link {name!r} of {self.name!r}: {fault}" for name, fault in faults.items() if fault)
        return (*sentences, *self.assumptions)


_DIGITS = 9  # significant: a URDF and a TOML file of one robot agree to more, an edited number seldom does
_LENGTH = 16  # hexadecimal digits of a digest: 64 bits


def robot_digests(robot: Robot) -> dict[str, str]:
    """Return digests by which a robot is known again: SHA-256 of its numbers, by part.

    Nominal masses, rotor inertias, friction and stiffness are left out: they are what an identification finds.

    Args:
        robot: the robot.

    Returns:
        "kinematics": joints, where they sit, what they mimic, gravity; "limits": of position, velocity, acceleration,
        jerk, torque and motor current; "drives": ratios, torque constants and couplings.
    """
    joints = robot.joints
    drives = robot.drive_train.drives
    contents: dict[str, Any] = {
        "kinematics": [
            robot.gravity,
            [
                (joint.name, joint.kind, joint.parent, joint.rotation, joint.origin, joint.axis, _mimic(joint.mimic))
                for joint in joints
            ],
        ],
        "limits": [
            [
                (
                    joint.position_limits,
                    joint.velocity_limit,
                    joint.acceleration_limit,
                    joint.jerk_limit,
                    joint.torque_limit,
                )
                for joint in joints
            ],
            [drive.current_limit for drive in drives],
        ],
        "drives": [
            [(drive.joint, drive.kind, drive.ratio, drive.torque_constant) for drive in drives],
            [(coupling.joints, coupling.matrix) for coupling in robot.couplings],
        ],
    }
    return {name: _digest(content) for name, content in contents.items()}


def _mimic(mimic: Mimic | None) -> tuple[Any, ...] | None:
    return None if mimic is None else (mimic.joint, mimic.factor, mimic.offset)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(_rounded(content)).encode()).hexdigest()[:_LENGTH]


def _rounded(content: Any) -> Any:
    """Return numbers as text of so many digits, in lists."""
    if isinstance(content, (int, float)):
        return f"{float(content) + 0.0:.{_DIGITS}g}"  # + 0.0: there is no negative zero
    if isinstance(content, Sequence) and not isinstance(content, str):
        return [_rounded(item) for item in content]
    return content
