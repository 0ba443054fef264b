"""A robot and its true inertias as a MuJoCo model: transmission, springs and the floor it stands on included."""

from typing import Any

import mujoco
import numpy as np

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.kinds import PLANT_KINDS as PLANT_KINDS
from hil_tests.virtual_bench.kinds import PlantKind as PlantKind
from hil_tests.virtual_bench.plant_file import TICK as TICK
from hil_tests.virtual_bench.plant_file import PlantFile
from jointbench.arrays import Array
from jointbench.errors import RobotError
from jointbench.model import Joint, Link, Robot


class Transmission:
    """Motions and torques of joints seen at the drives, and back: phi = B q and tau = Bᵀ T.

    A drive's quantities are behind its own gear: at its joint where nothing is coupled, at its input bevel in a
    differential. B is the matrix of motor turns per joint turn with each row divided by its drive's ratio.

    Attributes:
        coupled: whether any joints share drives; B is the identity where not.
        shared: which drives do, shape (n,).
        ratio: motor turns per turn behind the gear, signed, shape (n,).
        matrix: B, shape (n, n).
    """

    def __init__(self, robot: Robot) -> None:
        """Take the robot's drives and couplings.

        Raises:
            BenchFileError: it has more drives than joints.
        """
        try:
            turns = robot.transmission_matrix
        except RobotError as error:
            raise BenchFileError(f"{error}; the virtual bench has one drive for each joint") from error
        self.coupled = bool(robot.couplings)
        joints = {joint for coupling in robot.couplings for joint in coupling.joints}
        self.shared = np.array([name in joints for name in robot.joint_names])
        self.ratio: Array = np.copysign(np.abs(turns).max(axis=1), np.diag(turns))
        self.matrix: Array = turns / self.ratio[:, None]
        self._inverse = np.linalg.inv(self.matrix)

    def at_drives(self, motion: Array) -> Array:
        """Positions or velocities of the drives for those of the joints, shape (n,)."""
        return self.matrix @ motion if self.coupled else motion

    def at_joints(self, torque: Array) -> Array:
        """Torque at the joints [N·m] of that of the drives, shape (n,)."""
        return torque @ self.matrix if self.coupled else torque

    def torque_at_drives(self, torque: Array) -> Array:
        """Torque of the drives [N·m] that balances `torque` at the joints, shape (n,)."""
        return torque @ self._inverse if self.coupled else torque


class Springs:
    """A torsion spring and a sine spring at each joint, either of which may be missing (strength 0).

    tau = -torsion (q - torsion_zero) - sine sin(q - sine_zero), q the position of the link. The sine is the torque of a
    spring of no rest length from a point beyond the joint to one on the link, as balancers are built.

    Args:
        torsion: [N·m/rad], shape (n,).
        sine: largest torque [N·m], shape (n,).
        torsion_zero, sine_zero: positions without torque [rad], shape (n,).
    """

    def __init__(self, torsion: Array, torsion_zero: Array, sine: Array, sine_zero: Array) -> None:
        """Take the strengths and rests of all joints' springs."""
        self._torsion, self._torsion_zero = torsion, torsion_zero
        self._sine, self._sine_zero = sine, sine_zero

    @property
    def any(self) -> bool:
        """Whether there is any spring."""
        return bool(self._torsion.any() or self._sine.any())

    def torque(self, position: Array) -> Array:
        """Torque on the links [N·m], shape (n,)."""
        return -self._torsion * (position - self._torsion_zero) - self._sine * np.sin(position - self._sine_zero)

    def energy(self, position: Array) -> float:
        """Energy in the springs [J], zero where all are at rest."""
        torsion = 0.5 * self._torsion * (position - self._torsion_zero) ** 2
        return float(np.sum(torsion + self._sine * (1.0 - np.cos(position - self._sine_zero))))


_PAD = 1e-3  # radius of what touches the floor at a corner [m]
_BODY = 0.04  # radius of what a fallen robot lands on, at each link's centre of mass [m]
# Contact as rubber has it: a corner gives way by 20 µm under a quarter of 28 kg, critically damped within 5 ms.
_CONTACT = {"solref": (0.005, 1.0), "solimp": (0.97, 0.97, 1e-3, 0.5, 2.0), "condim": 3}
_GRIP = 10.0  # by how much the floor is stiffer along itself than across it, so that feet do not creep


def add_floor(spec: Any, robot: Robot, bodies: list[Any], friction: float) -> None:
    """Add a floor, the robot's soles, the ends of their cables and what it would land on.

    Args:
        spec: of the model.
        robot: with feet.
        bodies: of its links, the base's first.
        friction: coefficient of the floor.
    """
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = _GRIP
    contact = {**_CONTACT, "friction": (friction, 0.0, 0.0)}
    plane, sphere = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_SPHERE
    spec.worldbody.add_geom(type=plane, size=(0.0, 0.0, 1.0), contype=1, conaffinity=0, **contact)
    touching = {"type": sphere, "contype": 0, "conaffinity": 1, "mass": 0.0, **contact}
    for foot in robot.feet:
        body = bodies[foot.joint + 1]
        body.add_body(name=cable_of(foot.name))  # of no mass, at the origin of the link's frame
        for k, corner in enumerate(foot.corners):
            body.add_geom(size=(_PAD, 0.0, 0.0), pos=np.array(corner) + _PAD * foot.axes[:, 2], **touching)
            name = f"{foot.name}.{k + 1}"
            body.add_site(name=name, type=sphere, size=(2.0 * _PAD, 0.0, 0.0), pos=corner)
            spec.add_sensor(
                name=name, type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=name
            )
    soles = {foot.joint + 1 for foot in robot.feet}
    for index in set(range(len(bodies))) - soles:
        bodies[index].add_geom(size=(_BODY, 0.0, 0.0), pos=bodies[index].ipos, **touching)


def lowest_corner(model: Any, data: Any) -> float:
    """Height of the lowest corner of all feet above the floor [m], as the robot is."""
    corners = [data.site(sensor).xpos[2] for sensor in model.sensor_objid]
    return float(min(corners))


def cable_of(foot: str) -> str:
    """Name of the body that a foot's cable pulls at."""
    return f"{foot}.cable"


BASE = "base"
_HELD_INERTIA = 1e6  # of the second hinge of a passive joint [kg·m²]: with its stiffness it stays where it is


def build_model(robot: Robot, truth: PlantFile, kind: PlantKind) -> Any:
    """Compile the robot's tree of links into a MuJoCo model.

    Coordinates are those of the joints in order; with "harmonic" each is a pair, motor then gear. A robot on a free
    base stands on a floor, and the base's coordinates come first.

    Raises:
        BenchFileError: the robot has joints that are not plain hinges, or more drives than joints.
    """
    transmission = Transmission(robot)
    armature = transmission.ratio**2 * [part.rotor_inertia for part in truth.joints]
    spec = mujoco.MjSpec()
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = truth.tick / truth.steps_per_tick
    spec.option.gravity = robot.gravity
    bodies = [spec.worldbody]
    if truth.base_link is None:
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    else:
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        bodies = [_with_inertia(spec.worldbody.add_body(name=BASE), truth.base_link)]
        bodies[0].add_freejoint()
    if any(joint.mimic is not None for joint in robot.joints):
        raise BenchFileError(f"robot {robot.name!r} has joints that follow others; in the plant each has its own motor")
    for index, (joint, drive, part) in enumerate(zip(robot.joints, robot.drives, truth.joints, strict=True)):
        if joint.kind != "revolute":
            raise BenchFileError(f"joint {joint.name!r} of {robot.name!r} is prismatic; the plant has hinges only")
        body = _add_link(bodies[joint.parent + 1], joint, part.link)
        passive = drive.kind == "none"
        body.add_joint(
            name=f"{joint.name}.motor", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
            armature=0.0 if transmission.shared[index] else armature[index], damping=part.viscous,
        )  # fmt: skip
        if kind != "ideal":
            body.add_joint(
                name=f"{joint.name}.gear", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
                armature=_HELD_INERTIA if passive else 0.0, stiffness=part.stiffness, damping=part.damping,
            )  # fmt: skip
        bodies.append(body)
    for index in np.flatnonzero(transmission.shared):
        _add_coupled_rotor(spec, robot, transmission.matrix[index], armature[index])
    if truth.base_link is not None:
        add_floor(spec, robot, bodies, truth.floor_friction)
    return spec.compile()


def _add_coupled_rotor(spec: Any, robot: Robot, row: Array, armature: float) -> None:
    """Add a rotor that turns with several joints and couples their inertia: its energy is armature/2 (row · dq)²."""
    tendon = spec.add_tendon(armature=armature)
    for joint, turns in zip(robot.joints, row, strict=True):
        if turns:
            tendon.wrap_joint(f"{joint.name}.motor", turns)


def _add_link(parent: Any, joint: Joint, link: Link) -> Any:
    """Add the joint's link to its parent's, with the true inertia."""
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ravel(joint.rotation))
    return _with_inertia(parent.add_body(name=joint.name, pos=joint.origin, quat=quaternion), link)


def _with_inertia(body: Any, link: Link) -> Any:
    inertia = np.array(link.inertia_about_center_of_mass)
    body.explicitinertial = True
    body.mass = link.mass
    body.ipos = link.center_of_mass
    body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return body
