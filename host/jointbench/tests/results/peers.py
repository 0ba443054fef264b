"""Robots to export, and what Pinocchio and MuJoCo make of the files."""

import dataclasses
import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.model import Link, Robot, compensation_parameter_names, drive_parameter_names, load_robot
from jointbench.model.joint import as_matrix
from jointbench.results import FullModel
from jointbench.tests.model.test_urdf import TREE

# They have no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")
mujoco: Any = importlib.import_module("mujoco")

# All digits are written; what the programs make of them is rounded in some hundred operations. The requirement.
AGREE = 1e-9

ROBOTS = ("cobot6", "nursing_arm", "rehab_arm", "gorobot2", "tree")


def robot_of(name: str) -> Robot:
    """One of the library; "tree" has welded links, slides, a mimic and axes in any direction."""
    if name != "tree":
        return load_robot(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.urdf"
        path.write_text(TREE, encoding="utf-8")
        return load_robot(path)


def full_model(name: str, seed: int = 1) -> FullModel:
    """One of the robots with other bodies than in its file, all possible, and random drives and springs."""
    return with_other_bodies(robot_of(name), seed)


def with_other_bodies(robot: Robot, seed: int = 1) -> FullModel:
    rng = np.random.default_rng(seed)
    joints = tuple(
        dataclasses.replace(joint, link=_other_body(joint.link.name, rng)) if joint.link.modelled else joint
        for joint in robot.joints
    )
    changed = dataclasses.replace(robot, joints=joints)
    assert changed.standard_parameters is not None
    drives, springs = _drives(robot, rng), rng.uniform(-9.0, 9.0, len(compensation_parameter_names(robot)))
    return FullModel(robot, changed.standard_parameters, drives, compensation_parameters=springs)


def _other_body(name: str, rng: np.random.Generator) -> Link:
    spread = rng.normal(size=(3, 3))
    moments = 0.01 * (spread @ spread.T + 0.1 * np.eye(3))
    inertia = as_matrix(np.trace(moments) * np.eye(3) - moments)
    x, y, z = rng.uniform(-0.2, 0.2, 3).tolist()
    return Link(name, float(rng.uniform(0.5, 5.0)), (x, y, z), inertia)


def _drives(robot: Robot, rng: np.random.Generator) -> Array:
    """Of joints more than of motors that they share, as it must be: these are parts of those."""
    names = drive_parameter_names(robot)
    own = [name.rpartition(".")[0] in robot.joint_names for name in names]
    return np.where(own, rng.uniform(3.0, 4.0, len(names)), rng.uniform(0.1, 0.4, len(names)))


def rates(robot: Robot) -> Array:
    """Positions of all joints by those of the independent ones."""
    index, factor, _ = robot.coordinates
    return factor[:, None] * np.eye(robot.n_joints)[index]


def motion(robot: Robot, samples: int = 6, seed: int = 2) -> tuple[Array, Array, Array]:
    q, dq, ddq = np.random.default_rng(seed).uniform(-1.5, 1.5, (3, samples, robot.n_joints))
    return q, dq, ddq


def pinocchio_torques(text: str, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Inverse dynamics of a URDF, joints found by name."""
    model = pinocchio.buildModelFromXML(text.replace("<mimic", "<was_mimic"))
    model.gravity.linear = np.array(robot.gravity)
    data, across = model.createData(), rates(robot)
    found = [model.joints[model.getJointId(joint.name)] for joint in robot.joints]
    torques: list[Array] = []
    for at, speed, speedup in zip(robot.all_positions(q), dq @ across.T, ddq @ across.T, strict=True):
        there, moving, faster = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for i, joint in enumerate(found):
            there[joint.idx_q : joint.idx_q + joint.nq] = at[i] if joint.nq == 1 else [np.cos(at[i]), np.sin(at[i])]
            moving[joint.idx_v], faster[joint.idx_v] = speed[i], speedup[i]
        effort = pinocchio.rnea(model, data, there, moving, faster)
        torques.append(effort[[joint.idx_v for joint in found]] @ across)
    return np.array(torques)


def smooth_mujoco(text: str) -> Any:
    """A MuJoCo model without constraints: Coulomb friction, limits and joints that follow are such."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def mujoco_torques(model: Any, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Inverse dynamics of a base at rest, joints found by name."""
    model.opt.gravity = robot.gravity
    data, across = mujoco.MjData(model), rates(robot)
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name) for joint in robot.joints]
    places, rows = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    torques: list[Array] = []
    for at, speed, speedup in zip(robot.all_positions(q), dq @ across.T, ddq @ across.T, strict=True):
        data.qpos[places], data.qvel[rows], data.qacc[rows] = at, speed, speedup
        mujoco.mj_inverse(model, data)
        torques.append(data.qfrc_inverse[rows] @ across)
    return np.array(torques)


def assert_same(found: Array, expected: Array) -> None:
    """To AGREE of the largest."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREE * float(np.abs(expected).max()))
