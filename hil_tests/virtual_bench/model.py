"""A robot and its true inertias as a MuJoCo model."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

from typing import Any, Literal, get_args

import mujoco
import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile
from hil_tests.virtual_bench.transmission import Transmission
from jointbench.robot import Joint, Robot

Array = NDArray[np.float64]
PlantKind = Literal["harmonic", "ideal"]
PLANT_KINDS: tuple[PlantKind, ...] = get_args(PlantKind)
TICK = 1e-3
_HELD_INERTIA = 1e6  # of the second hinge of a passive joint [kg·m²]: with its stiffness it stays where it is


def build_model(robot: Robot, truth: PlantFile, kind: PlantKind) -> Any:
    """Compile the robot's tree of links into a MuJoCo model.

    Coordinates are those of the joints in order; with "harmonic" each is a pair, motor then gear.

    Raises:
        BenchFileError: the robot has joints that are not plain hinges, or more drives than joints.
    """
    transmission = Transmission(robot)
    armature = transmission.ratio**2 * [part.rotor_inertia for part in truth.joints]
    spec = mujoco.MjSpec()
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = TICK / truth.steps_per_tick
    spec.option.gravity = robot.gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    bodies = [spec.worldbody]
    for index, (joint, drive, part) in enumerate(zip(robot.joints, robot.drives, truth.joints, strict=True)):
        if joint.kind != "revolute":
            raise BenchFileError(f"joint {joint.name!r} of {robot.name!r} is prismatic; the plant has hinges only")
        body = _add_link(bodies[joint.parent + 1], joint, part)
        passive = drive.kind == "none"
        body.add_joint(
            name=f"{joint.name}.motor", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
            armature=0.0 if transmission.shared[index] else armature[index], damping=part.viscous,
        )  # fmt: skip
        if kind == "harmonic":
            body.add_joint(
                name=f"{joint.name}.gear", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
                armature=_HELD_INERTIA if passive else 0.0, stiffness=part.stiffness, damping=part.damping,
            )  # fmt: skip
        bodies.append(body)
    for index in np.flatnonzero(transmission.shared):
        _add_coupled_rotor(spec, robot, transmission.matrix[index], armature[index])
    return spec.compile()


def _add_coupled_rotor(spec: Any, robot: Robot, row: Array, armature: float) -> None:
    """Add a rotor that turns with several joints and couples their inertia: its energy is armature/2 (row · dq)²."""
    tendon = spec.add_tendon(armature=armature)
    for joint, turns in zip(robot.joints, row, strict=True):
        if turns:
            tendon.wrap_joint(f"{joint.name}.motor", turns)


def _add_link(parent: Any, joint: Joint, part: JointTruth) -> Any:
    """Add the joint's link to its parent's, with the true inertia."""
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ravel(joint.rotation))
    body = parent.add_body(name=joint.name, pos=joint.origin, quat=quaternion)
    inertia = np.array(part.link.inertia_about_center_of_mass)
    body.explicitinertial = True
    body.mass = part.link.mass
    body.ipos = part.link.center_of_mass
    body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return body
