"""URDF: what is written is what Pinocchio, MuJoCo and our own reader find in it; what was there stays."""

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.model import (
    FreeBaseMotion,
    Link,
    compensation_parameter_names,
    drive_columns,
    energy,
    floating_inverse_dynamics,
    inverse_dynamics,
    load_robot,
    modified_dh,
)
from jointbench.model.joint import as_matrix
from jointbench.results import FullModel
from jointbench.results import export as write
from jointbench.results.mjcf import left_out, mjcf_text
from jointbench.results.robot_description import roll_pitch_yaw
from jointbench.results.urdf import urdf_text
from jointbench.tests.model.conftest import _random_robot
from jointbench.tests.model.test_urdf import TREE
from jointbench.tests.results.recordings import (
    ROBOTS,
    assert_same,
    full_model,
    motion,
    mujoco,
    mujoco_torques,
    pinocchio,
    pinocchio_torques,
    rates,
    robot_of,
    smooth_mujoco,
    with_other_bodies,
)

DATA = Path(__file__).resolve().parents[5] / "shared/data"

# An inertia moves to the mass centre and back: a few roundings of terms of its own size.
BACK = 1e-13

INERTIAL = re.compile(rb"\s*<inertial.*?</inertial>", re.DOTALL)

SHAPES = (
    '<!-- a  comment,\t<inertial> and all -->\n    <visual><geometry><mesh filename="package://x/a.dae"/></geometry></visual>'
    "\n    <collision><geometry><box size='1 2 3' /></geometry></collision>"
)
WRITTEN = (
    TREE.replace('<link name="arm">', f'<link   name="arm" >\n    {SHAPES}\n    ')
    .replace('<link name="slide">', '<link name="slide">\n    ')
    .replace("</robot>", "  <transmission name='t'><type>any</type></transmission>\n</robot>\n<!-- end -->\n")
)


def standard(link: Link) -> Array:
    assert link.standard_parameters is not None
    return link.standard_parameters


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "written.urdf"
    path.write_text(WRITTEN, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_from_scratch_comes_back(name: str, tmp_path: Path) -> None:
    full = full_model(name)
    path = write(full, tmp_path / "robot.urdf")
    robot = full.robot
    back = load_robot(path, floating_base=robot.base_link is not None)
    assert back.joint_names == robot.joint_names
    assert {frame.name for frame in robot.frames} <= {frame.name for frame in back.frames}
    np.testing.assert_allclose(back.position_limits, robot.position_limits, rtol=0, atol=0)
    np.testing.assert_allclose(back.acceleration_limits, robot.acceleration_limits, rtol=0, atol=0)
    for link, mine, row in zip(back.joints, robot.joints, full.standard_parameters.reshape(-1, 10), strict=True):
        if mine.link.modelled:
            np.testing.assert_allclose(standard(link.link), row, rtol=0, atol=BACK)
        else:  # a URDF cannot say that what has no inertia is neglected
            assert link.link.mass is None
    if robot.base_link is not None:
        assert back.base_link is not None
        np.testing.assert_allclose(standard(back.base_link), standard(robot.base_link), rtol=0, atol=BACK)


@pytest.mark.parametrize("name", ROBOTS)
def test_pinocchio_and_mujoco_agree(name: str) -> None:
    full = full_model(name)
    robot, (q, dq, ddq) = full.robot, motion(full.robot)
    text = urdf_text(full)
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    assert_same(pinocchio_torques(text, robot, q, dq, ddq), expected)
    if name == "rehab_arm":
        return  # its hand has no body of its own, which MuJoCo wants of what moves
    model = smooth_mujoco(text)
    model.dof_damping[:] = 0.0
    assert_same(mujoco_torques(model, robot, q, dq, ddq), expected)


@pytest.mark.parametrize(("kinds", "seed"), [("RPr", 1), ("rpmR", 2), ("RRmrmP", 3), ("rrrrrrm", 4)])
def test_any_tree_is_read_alike(kinds: str, seed: int) -> None:
    """Axes, gravity and placements in any direction, branches, joints that follow others."""
    robot = _random_robot(kinds, seed, tree=True)
    full, (q, dq, ddq) = FullModel.of_robot(robot), motion(robot)
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    assert_same(pinocchio_torques(urdf_text(full), robot, q, dq, ddq), expected)
    assert_same(mujoco_torques(smooth_mujoco(urdf_text(full)), robot, q, dq, ddq), expected)
    assert_same(mujoco_torques(smooth_mujoco(mjcf_text(full)), robot, q, dq, ddq), expected)


def test_friction_is_where_urdfs_have_it() -> None:
    full = full_model("cobot6")
    model = pinocchio.buildModelFromXML(urdf_text(full))
    assert full.drives[2].viscous is not None
    found = model.joints[model.getJointId("j3")].idx_v
    assert model.damping[found] == full.drives[2].viscous
    assert model.friction[found] == full.drives[2].coulomb


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_inertials_change(written: Path, tmp_path: Path, newline: str) -> None:
    before = WRITTEN.replace("\n", newline).encode()
    written.write_bytes(before)
    after = write(full_model("tree"), tmp_path / "out.urdf", source=written).read_bytes()
    assert after != before
    assert INERTIAL.sub(b"", after) == INERTIAL.sub(b"", before)
    assert after.count(b"\n") == after.count(newline.encode())
    # The base stands still, and keeps what it has.
    assert after.startswith(before[: before.index(b'<link name="mount"')])


def test_the_file_that_is_kept_is_not_written_over(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FitError, match=r"written.urdf is the file whose text is kept, and would be lost"):
        write(full_model("tree"), written, source=written)
    # A robot that was read from a URDF keeps that one's text by itself.
    monkeypatch.chdir(written.parent)
    full = FullModel.of_robot(load_robot(written))
    with pytest.raises(FitError, match="would be lost"):
        write(full, "written.urdf")
    assert b"<!-- a  comment" in write(full, "other.urdf").read_bytes()


@pytest.mark.parametrize("wheel", ["<link name='wheel'/>", '<link name="wheel"  />', '<link name="wheel">\n  </link>'])
def test_a_link_without_inertial_gets_one(written: Path, tmp_path: Path, wheel: str) -> None:
    text = re.sub('<link name="wheel">.*?</link>', wheel, WRITTEN)
    written.write_text(text, encoding="utf-8")
    path = write(full_model("tree"), tmp_path / "out.urdf", source=written)
    found, wanted = load_robot(path).standard_parameters, full_model("tree").standard_parameters
    assert found is not None
    np.testing.assert_allclose(found, wanted, rtol=0, atol=BACK)
    behind = text[text.index(wheel) + len(wheel) :]
    assert path.read_text(encoding="utf-8").endswith(behind)


def test_welded_links_are_part_of_what_carries_them(written: Path, tmp_path: Path) -> None:
    full = full_model("tree")
    robot, (q, dq, ddq) = full.robot, motion(full.robot)
    path = write(full, tmp_path / "out.urdf", source=written)
    back = load_robot(path)
    assert back.standard_parameters is not None
    np.testing.assert_allclose(back.standard_parameters, full.standard_parameters, rtol=0, atol=BACK)
    text = path.read_text(encoding="utf-8")
    # "box" and "lid" are fixed to "arm", which now has the inertia of all three.
    for fixed in ("box", "lid"):
        body = text[text.index(f'<link name="{fixed}"') :]
        assert "<inertial" not in body[: body.index("</link>")]
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    assert_same(pinocchio_torques(text, robot, q, dq, ddq), expected)
    _assert_same_energy(text, full)


def _assert_same_energy(text: str, full: FullModel) -> None:
    robot, (q, dq, _) = full.robot, motion(full.robot)
    kinetic, _ = energy(robot, q, dq, full.standard_parameters)
    model = pinocchio.buildModelFromXML(text.replace("<mimic", "<was_mimic"))
    across, data = rates(robot), model.createData()
    for k, (at, speed) in enumerate(zip(robot.all_positions(q), dq @ across.T, strict=True)):
        there, moving = pinocchio.neutral(model), np.zeros(model.nv)
        for i, joint in enumerate(robot.joints):
            found = model.joints[model.getJointId(joint.name)]
            there[found.idx_q : found.idx_q + found.nq] = at[i] if found.nq == 1 else [np.cos(at[i]), np.sin(at[i])]
            moving[found.idx_v] = speed[i]
        assert pinocchio.computeKineticEnergy(model, data, there, moving) == pytest.approx(kinetic[k], rel=1e-9)


def test_odd_inertials_are_found(written: Path, tmp_path: Path) -> None:
    odd = WRITTEN.replace("</inertial>", "<!-- > </inertial> < -->\n</inertial\t>", 3)
    odd = odd.replace('<link name="tip"/>', '<link name="tip"><a><inertial/></a></link>')
    written.write_text(odd, encoding="utf-8")
    path = write(full_model("tree"), tmp_path / "out.urdf", source=written)
    found = load_robot(path).standard_parameters
    assert found is not None
    np.testing.assert_allclose(found, full_model("tree").standard_parameters, rtol=0, atol=BACK)
    assert "<a><inertial/></a>" in path.read_text(encoding="utf-8")  # no link's own


def test_a_base_that_moves_gets_its_body(written: Path, tmp_path: Path) -> None:
    robot = load_robot(written, floating_base=True)
    full = dataclasses.replace(full_model("tree"), robot=robot)
    back = load_robot(write(full, tmp_path / "out.urdf", source=written), floating_base=True)
    assert robot.base_link is not None
    assert back.base_link is not None
    np.testing.assert_allclose(standard(back.base_link), standard(robot.base_link), rtol=0, atol=BACK)


def shared(path: str) -> Path:
    file = DATA / path
    if not file.is_file():
        if os.environ.get("CI"):
            pytest.fail(f"{file} is missing, and CI must not pass without it")
        pytest.skip(f"no real recordings beside the checkout ({file.parent})")
    return file


def test_a_manufacturers_file(tmp_path: Path) -> None:
    source = shared("kinova_gen3/gen3.urdf")
    robot = load_robot(source)
    full = with_other_bodies(robot)
    path = write(full, tmp_path / "gen3.urdf", source=source)
    assert INERTIAL.sub(b"", path.read_bytes()) == INERTIAL.sub(b"", source.read_bytes())
    q, dq, ddq = motion(robot)
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    assert_same(pinocchio_torques(path.read_text(encoding="utf-8"), robot, q, dq, ddq), expected)


def test_a_file_with_other_zeros(tmp_path: Path) -> None:
    """The library's TX40 has its motors' zeros, upright; its published model stretches the arm forward."""
    source = shared("staubli_tx40/tx40_mdh_modified.urdf")
    full = full_model("tx40")
    zeros = np.radians([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
    path = write(full, tmp_path / "tx40.urdf", source=source, zeros=zeros)
    back = dataclasses.replace(load_robot(path), gravity=full.robot.gravity)  # of which a URDF says nothing
    assert back.standard_parameters is not None
    q, dq, ddq = motion(back)
    expected = inverse_dynamics(full.robot, q, dq, ddq, full.standard_parameters)
    found = inverse_dynamics(back, q + zeros, dq, ddq, back.standard_parameters)
    # Its right angles have 12 digits.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * float(np.abs(expected).max()))


def test_what_cannot_exist_is_named() -> None:
    full = full_model("cobot6")
    flat = full.standard_parameters.copy()
    flat[24:30] = [2.0, 0.0, 0.0, 0.1, 0.0, 0.1]
    with pytest.raises(FitError, match=r"link 'forearm' cannot exist: .* break the triangle inequality"):
        urdf_text(dataclasses.replace(full, standard_parameters=flat))
    light = full.standard_parameters.copy()
    light[50] = -0.2
    with pytest.raises(FitError, match=r"link 'flange_and_tool' cannot exist: mass -0.2 kg is not positive"):
        urdf_text(dataclasses.replace(full, standard_parameters=light))
    drives = full.drive_parameters.copy()
    drives[5] = -0.5
    with pytest.raises(FitError, match=r"j2.viscous = -0.5 of robot 'cobot6' is below zero"):
        urdf_text(dataclasses.replace(full, drive_parameters=drives))


def test_a_urdf_of_another_robot_is_refused(written: Path, tmp_path: Path) -> None:
    with pytest.raises(FitError, match="has 4 moving joints, and the model of 'cobot6' has 6"):
        write(full_model("cobot6"), tmp_path / "out.urdf", source=written)
    written.write_text(WRITTEN.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 -1 0"/>'), encoding="utf-8")
    with pytest.raises(FitError, match="joint 'turn' does not move as 'turn' of 'tree' does"):
        write(full_model("tree"), tmp_path / "out.urdf", source=written)
    written.write_text(WRITTEN, encoding="utf-16")
    with pytest.raises(FitError, match="save it as UTF-8"):
        write(full_model("tree"), tmp_path / "out.urdf", source=written)
    with pytest.raises(FitError, match=r"out.xml keeps nothing of written.urdf; only a .urdf"):
        write(full_model("tree"), tmp_path / "out.xml", source=written)


def test_frames_may_lie_otherwise_on_the_links(tmp_path: Path) -> None:
    """Every link's frame of cobot6 is turned and shifted, and its zero another; the joints have other names."""
    full = full_model("cobot6")
    robot, (q, dq, ddq) = full.robot, motion(full.robot)
    rng = np.random.default_rng(4)
    before, joints, zeros = (np.eye(3), np.zeros(3)), [], []
    for joint in robot.joints:
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        turn *= np.linalg.det(turn)
        # Along the axis is where the origin of a joint's frame may be.
        shift, zero = np.array(joint.axis) * rng.uniform(-0.2, 0.2), float(rng.uniform(-3.0, 3.0))
        back = Rotation.from_rotvec(-zero * np.array(joint.axis)).as_matrix()
        zeros.append(zero)
        rotation, origin = joint.placement
        there = before[0].T @ (origin + rotation @ shift - before[1])
        x, y, z = there.tolist()
        a, b, c = (turn.T @ joint.axis).tolist()
        moved = {"rotation": as_matrix(before[0].T @ rotation @ back @ turn), "origin": (x, y, z), "axis": (a, b, c)}
        joints.append(dataclasses.replace(joint, name=f"motor_{joint.name}", **moved))
        before = (turn, shift)
    other = dataclasses.replace(robot, joints=tuple(joints))
    source = write(dataclasses.replace(with_other_bodies(other, seed=9), robot=other), tmp_path / "other.urdf")
    text = write(full, tmp_path / "out.urdf", source=source, zeros=zeros).read_text(encoding="utf-8")
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    assert_same(pinocchio_torques(text, other, q + zeros, dq, ddq), expected)
    assert text != source.read_text(encoding="utf-8")
    with pytest.raises(FitError, match=r"'motor_j2' does not move as 'j2' .* its zeros where they are others"):
        write(full, tmp_path / "out.urdf", source=source)
    with pytest.raises(ShapeError, match=r"zeros has shape \(5,\); robot 'cobot6' needs \(6,\)"):
        write(full, tmp_path / "out.urdf", source=source, zeros=zeros[1:])


@pytest.mark.parametrize("alpha", [0.0, 0.3, np.pi / 2, -np.pi / 2, np.pi, 1.5707963])
@pytest.mark.parametrize("theta", [0.0, -1.1, np.pi / 2, np.pi])
def test_angles_give_the_rotation_back(alpha: float, theta: float) -> None:
    for rotation in (np.array(modified_dh(alpha, 0.0, 0.0, theta)[0]), np.array(modified_dh(alpha, 0, 0, theta)[0]).T):
        for turned in (rotation, rotation @ np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])):
            found = pinocchio.rpy.rpyToMatrix(*roll_pitch_yaw(turned))
            np.testing.assert_allclose(found, turned, atol=1e-15 * 4)  # a few roundings of numbers up to one


def test_the_urdf_of_a_chain_has_a_name_that_is_read_back(tmp_path: Path) -> None:
    """A chain is called "cobot6:2", which is no robot's name in a file."""
    back = load_robot(write(load_robot("cobot6:2"), tmp_path / "arm.urdf"))
    assert (back.name, back.joint_names) == ("cobot6-2", ("j1", "j2"))


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


@pytest.mark.parametrize("name", ["cobot6", "nursing_arm", "modular7"])
def test_all_friction_is_ours_where_joints_move(name: str) -> None:
    """MuJoCo's inverse dynamics of a random motion are rigid body, rotors, viscous and Coulomb friction together."""
    full = full_model(name)
    robot, (q, dq, ddq) = full.robot, motion(full.robot, samples=20)
    dq = np.sign(dq) * np.maximum(np.abs(dq), 0.2)
    columns, names = drive_columns(robot, dq, ddq)
    here = [not each.endswith("offset") for each in names]
    expected = inverse_dynamics(robot, q, dq, ddq, full.standard_parameters)
    expected += (columns[:, here] @ full.drive_parameters[here]).reshape(expected.shape)
    model = mujoco.MjModel.from_xml_string(mjcf_text(full))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    # MuJoCo's Coulomb friction is a soft constraint, full above about 0.01 rad/s: to rounding the model's at 0.2 rad/s.
    assert_same(mujoco_torques(model, robot, q, dq, ddq), expected)


@pytest.mark.parametrize("name", ["cobot6", "nursing_arm"])
def test_a_dc_motor_turns_voltage_into_the_drives_torque(name: str) -> None:
    full = full_model(name)
    robot, train, (q, dq, _) = full.robot, full.robot.drive_train, motion(full.robot, samples=5)
    model = mujoco.MjModel.from_xml_string(mjcf_text(full, resistance := np.linspace(0.5, 2.0, train.n_motors)))
    model.jnt_actfrclimited[:] = 0
    constants = np.array([drive.torque_constant for drive in train.drives])
    limits = np.array([drive.current_limit for drive in train.drives])
    actuators = [named(model, "actuator", drive.name) for drive in train.drives]
    rows = [model.jnt_dofadr[named(model, "joint", joint)] for joint in robot.joint_names]
    data, clipped = mujoco.MjData(model), 0
    for at, speed in zip(q, dq, strict=True):
        back = constants * (train.matrix @ speed)
        for voltage in (back + 0.5 * limits * resistance, back - 3.0 * limits * resistance):
            data.qpos[:], data.qvel[rows], data.ctrl[actuators] = at, speed, voltage
            mujoco.mj_forward(model, data)
            current = np.clip((voltage - back) / resistance, -limits, limits)
            clipped += int(np.any(np.abs(current) == limits))
            assert_same(data.qfrc_actuator[rows], train.joint_torque(constants * current))
    assert clipped == 5


def test_what_mjcf_cannot_represent_is_named() -> None:
    full = full_model("rehab_arm")
    names = compensation_parameter_names(full.robot)
    assert names  # its springs are what MJCF has no place for here
    text = mjcf_text(full)
    for line in left_out(full):
        assert f"<!-- not in this file: {line} -->" in text
    named_there = " ".join(left_out(full))
    assert all(compensation.name in named_there for compensation in full.robot.compensations)
    assert "torque offset of j1, " in named_there
    assert "resistance of the windings" in named_there
    assert "resistance" not in " ".join(left_out(full, 1.0))


@pytest.mark.parametrize("resistance", [0.0, -1.0, np.nan, [1.0, 2.0]])
def test_resistances_that_no_windings_have_are_refused(resistance: float | list[float]) -> None:
    with pytest.raises(FitError, match=r"must be positive, one for all or one for each of the 6 motors .*: j1, j2"):
        mjcf_text(full_model("cobot6"), resistance)


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
    with pytest.raises(FitError, match=r"j1.viscous = 0.001 is less than the .* that the motor it shares brings"):
        mjcf_text(dataclasses.replace(full, drive_parameters=drives))
