"""A robot and its true inertias as a MuJoCo model."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

from typing import Any, Literal, get_args

import mujoco
import numpy as np

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile
from jointbench.robot import Joint, Robot

PlantKind = Literal["harmonic", "ideal"]
PLANT_KINDS: tuple[PlantKind, ...] = get_args(PlantKind)
TICK = 1e-3


def build_model(robot: Robot, truth: PlantFile, kind: PlantKind) -> Any:
    """Compile the robot's tree of links into a MuJoCo model.

    Coordinates are those of the joints in order; with "harmonic" each is a pair, motor then gear.

    Raises:
        BenchFileError: the robot has joints that are not plain hinges.
    """
    if robot.couplings:
        raise BenchFileError(f"robot {robot.name!r} has coupled joints, which the virtual bench cannot emulate yet")
    spec = mujoco.MjSpec()
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = TICK / truth.steps_per_tick
    spec.option.gravity = robot.gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    bodies = [spec.worldbody]
    for joint, drive, part in zip(robot.joints, robot.drives, truth.joints, strict=True):
        if joint.kind != "revolute":
            raise BenchFileError(f"joint {joint.name!r} of {robot.name!r} is prismatic; the plant has hinges only")
        body = _add_link(bodies[joint.parent + 1], joint, part)
        armature = part.rotor_inertia * drive.ratio**2
        body.add_joint(
            name=f"{joint.name}.motor", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
            armature=armature, damping=part.viscous,
        )  # fmt: skip
        if kind == "harmonic":
            body.add_joint(
                name=f"{joint.name}.gear", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
                stiffness=part.stiffness, damping=part.damping,
            )  # fmt: skip
        bodies.append(body)
    return spec.compile()


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
