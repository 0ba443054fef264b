"""A robot and its true inertias as a MuJoCo model."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

from typing import Any

import mujoco
import numpy as np

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.floor import add_floor
from hil_tests.virtual_bench.kinds import PLANT_KINDS as PLANT_KINDS
from hil_tests.virtual_bench.kinds import PlantKind as PlantKind
from hil_tests.virtual_bench.plant_file import TICK as TICK
from hil_tests.virtual_bench.plant_file import PlantFile
from hil_tests.virtual_bench.transmission import Transmission
from jointbench.arrays import Array
from jointbench.robot import Joint, Link, Robot

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
