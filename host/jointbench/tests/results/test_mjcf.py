"""MJCF: MuJoCo's inverse dynamics are ours, drives included."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from jointbench.dynamics import FreeBaseMotion, drive_columns, floating_inverse_dynamics, inverse_dynamics
from jointbench.errors import ExportError
from jointbench.results.mjcf import mjcf_text
from jointbench.tests.results.peers import (
    ROBOTS,
    assert_same,
    full_model,
    motion,
    mujoco,
    mujoco_torques,
    robot_of,
    smooth_mujoco,
)


def named(model: Any, kind: str, name: str) -> int:
    return int(mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name))


@pytest.mark.parametrize("name", ROBOTS)
def test_torques_are_ours(name: str) -> None:
    full = full_model(name)
    robot, (q, dq, ddq) = full.robot, motion(full.robot)
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    # Rotor inertia and viscous friction; MuJoCo counts Coulomb friction among the constraints, and knows no offsets.
    columns, names = drive_columns(robot, dq, ddq)
    smooth = [each.endswith(("rotor_inertia", "viscous")) for each in names]
    expected += (columns[:, smooth] @ full.drive_parameters[smooth]).reshape(expected.shape)
    model = smooth_mujoco(mjcf_text(full))
    found = mujoco_torques(model, robot, q, dq, ddq)
    if name == "rehab_arm":
        # Its hand has no body of its own, and MuJoCo's is of 1 mg, 0.6 m from the shoulder, below 30 m/s².
        passive = ~robot.modelled
        np.testing.assert_allclose(found[:, ~passive], expected[:, ~passive], rtol=0, atol=1e-6 * 0.6 * 30)
    else:
        assert_same(found, expected)


def test_coulomb_friction_is_where_it_rubs() -> None:
    full = full_model("nursing_arm")
    model = mujoco.MjModel.from_xml_string(mjcf_text(full))
    for joint, drive in zip(full.robot.joint_names, full.drives, strict=True):
        assert model.dof_frictionloss[model.jnt_dofadr[named(model, "joint", joint)]] == drive.coulomb
    assert len(full.shared_motors) == model.ntendon == 6
    for motor in full.shared_motors:
        assert model.tendon_frictionloss[named(model, "tendon", motor.name)] == motor.coulomb


def test_a_joint_that_follows_is_held_where_it_must_be() -> None:
    full = full_model("tree")
    robot = full.robot
    model = mujoco.MjModel.from_xml_string(mjcf_text(full))
    data = mujoco.MjData(model)
    assert model.neq == 1
    at = robot.all_positions(np.array([[0.3, 0.7, -0.2]]))[0]
    places = [model.jnt_qposadr[named(model, "joint", joint.name)] for joint in robot.joints]
    data.qpos[places] = at
    mujoco.mj_forward(model, data)
    equal = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    np.testing.assert_allclose(data.efc_pos[equal], 0.0, atol=1e-15)
    data.qpos[places[2]] += 0.1
    mujoco.mj_forward(model, data)
    assert abs(data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY][0]) == pytest.approx(0.1)


def test_a_free_base_moves_as_ours() -> None:
    full = full_model("gorobot2")
    robot, (q, dq, ddq) = full.robot, motion(full.robot)
    assert robot.base_link is not None
    base = robot.base_link.standard_parameters
    assert base is not None
    rng = np.random.default_rng(5)
    model = smooth_mujoco(mjcf_text(full))
    model.dof_armature[:] = 0.0
    model.dof_damping[:] = 0.0
    data = mujoco.MjData(model)
    assert model.nv == 6 + robot.n_joints
    for at, speed, speedup in zip(q, dq, ddq, strict=True):
        quaternion = rng.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        velocity, omega, acceleration, alpha = rng.normal(size=(4, 3))
        data.qpos[:] = [0.1, 0.2, 0.3, *quaternion, *at]
        # MuJoCo has the base's line of motion in the world's axes, and its turning in the base's.
        data.qvel[:], data.qacc[:] = [*velocity, *omega, *speed], [*acceleration, *alpha, *speedup]
        mujoco.mj_inverse(model, data)
        turn = data.xmat[named(model, "body", robot.base_link.name)].reshape(3, 3)
        felt = turn.T @ (acceleration - np.array(robot.gravity))
        moving = FreeBaseMotion(omega[None], alpha[None], felt[None])
        expected = floating_inverse_dynamics(
            robot, moving, at[None], speed[None], speedup[None], np.concatenate([base, full.standard_parameters])
        )[0]
        found = np.concatenate([turn.T @ data.qfrc_inverse[:3], data.qfrc_inverse[3:]])
        assert_same(found, expected)


def test_limits_motors_and_room_come_along() -> None:
    robot = robot_of("cobot6")
    model = mujoco.MjModel.from_xml_string(mjcf_text(full_model("cobot6")))
    np.testing.assert_allclose(model.jnt_range, robot.position_limits, rtol=0, atol=0)
    np.testing.assert_allclose(model.actuator_ctrlrange[:, 1], robot.torque_limits, rtol=0, atol=0)
    assert model.ngeom == len(robot.capsules)


def test_less_friction_than_what_is_shared_is_refused() -> None:
    full = full_model("nursing_arm")
    assert full.shared_motors
    drives = full.drive_parameters.copy()
    drives[1] = 1e-3
    with pytest.raises(ExportError, match=r"j1.viscous = 0.001 is less than the .* that the motor it shares brings"):
        mjcf_text(dataclasses.replace(full, drive_parameters=drives))
