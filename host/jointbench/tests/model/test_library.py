"""The robots of the library."""

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.excitation import Balance
from jointbench.model import (
    Link,
    Robot,
    base_parameters,
    forward_kinematics,
    gravity_torques,
    inverse_dynamics,
    library_names,
    load_robot,
)
from jointbench.model.floating_base import floating_base_parameters
from jointbench.tests.model.test_link import parameters_of

LIBRARY = Path(__file__).parents[2] / "model" / "library"
DOCUMENT = Path(__file__).parents[4] / "docs" / "robots.md"
IMPOSSIBLE = {"tx40": ["link_6"]}  # as printed; all others are bodies
USABLE_TORQUE = 0.8  # of the limit, for motion and weight


def geometry(robot: Robot) -> list[tuple[float, float, float, float]]:
    """Modified Denavit-Hartenberg rows, alpha [deg], a [mm], d [mm], theta [deg], read back from the placements."""
    rows: list[tuple[float, float, float, float]] = []
    for joint in robot.joints:
        rotation, origin = joint.placement
        alpha = np.arctan2(-rotation[1, 2], rotation[2, 2])
        theta = np.arctan2(-rotation[0, 1], rotation[0, 0])
        rows.append((np.rad2deg(alpha), 1e3 * origin[0], 1e3 * float(origin @ rotation[:, 2]), np.rad2deg(theta)))
    return rows


def mirrored(link: Link) -> list[float]:
    """What a mirror leaves of a link: mass and principal inertias."""
    assert link.mass is not None
    return [link.mass, *np.linalg.eigvalsh(np.array(link.inertia_about_center_of_mass)).tolist()]


def test_the_five_systems_are_there() -> None:
    assert {"nursing_arm", "rehab_arm", "gorobot2", "modular7", "cobot6"} <= set(library_names())


@pytest.mark.parametrize("name", library_names())
def test_the_document_has_every_robot_and_counts_right(name: str) -> None:
    robot = load_robot(name)
    (row,) = (line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}`"))
    _, _, joints, counted = (cell.strip() for cell in row.strip("|").split("|"))

    assert int(joints) == robot.n_joints
    assert int(counted.split()[0]) == base_parameters(robot, drives=False).rank
    if robot.base_link is not None:
        assert f" {floating_base_parameters(robot).rank} with its wrench" in counted


def test_the_document_shows_base_parameters_as_they_are_printed() -> None:
    shown = DOCUMENT.read_text(encoding="utf-8").split("```\n")[1].removesuffix(" …\n")
    *groups, lengths = shown.splitlines()
    table = base_parameters(load_robot("cobot6")).table()

    assert "\n".join(groups) in table
    assert lengths in table


@pytest.mark.parametrize("name", library_names())
def test_home_holds_itself(name: str) -> None:
    """Weight alone must leave something of the usable torque for motion."""
    robot = load_robot(name)
    weight = gravity_torques(robot, np.array([robot.home]), parameters_of(robot))[0]

    assert np.all(np.abs(weight) < USABLE_TORQUE * robot.torque_limits)


@pytest.mark.parametrize("name", library_names())
def test_what_no_body_can_be_is_told_by_name(name: str) -> None:
    warnings = load_robot(name).warnings

    assert len(warnings) == len(IMPOSSIBLE.get(name, []))
    for warning, link in zip(warnings, IMPOSSIBLE.get(name, []), strict=True):
        assert warning.startswith(f"link {link!r} of {name!r}: ")


def test_the_modular_robots_fourth_link_with_the_printed_decimal_point_is_told(tmp_path: Path) -> None:
    file = tmp_path / "printed.toml"
    text = (LIBRARY / "modular7.toml").read_text(encoding="utf-8")
    assert "xx = 0.085427" in text
    file.write_text(text.replace("xx = 0.085427", "xx = 0.85427"), encoding="utf-8")
    (warning,) = load_robot(file).warnings

    assert warning.startswith("link 'link_4' of 'modular7': principal inertias")
    assert "break the triangle inequality" in warning


def test_the_modular_robot_is_as_printed() -> None:
    robot = load_robot("modular7")

    expected = [
        (0, 0, 420, 0),
        (90, 0, 147, 0),
        (-90, 0, 535, 0),
        (-90, 0, 0, -90),
        (180, 170, 0, -90),
        (-90, 0, 401, 0),
        (-90, 0, 91, 0),
    ]
    np.testing.assert_allclose(geometry(robot), expected, rtol=0, atol=1e-9)
    assert [joint.link.mass for joint in robot.joints] == [13.6, 13.6, 9.79, 5.95, 4.64, 3.33, 1.52]
    centers = 1e3 * np.array([joint.link.center_of_mass for joint in robot.joints])
    np.testing.assert_allclose(centers[:, 0], [0, 0, 0, 85, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(centers[:, 1], [0, 100, 0, 0, 58.43, 0, 0], atol=1e-9)
    np.testing.assert_allclose(centers[:, 2], [-100, 0, -129.533, 111, 0, -75, 0], atol=1e-9)
    fourth = robot.joints[3].link
    # About the frame: Ixx, Ixy, Ixz, Iyy, Iyz, Izz. Its xz is that of its mass centre, so about that there is none.
    about_frame = fourth.standard_parameters
    assert about_frame is not None
    np.testing.assert_allclose(1e3 * about_frame[4:], [85.427, 0, -56.14, 168.32, 0, 95.01], atol=1e-9)
    about_center = np.array(fourth.inertia_about_center_of_mass)
    np.testing.assert_allclose(about_center, np.diag([0.0121, 0.0520, 0.0520]), rtol=0, atol=5e-5)
    assert robot.torque_limits.tolist() == [500, 500, 200, 200, 110, 110, 110]
    rpm = robot.velocity_limits * 60 / (2 * np.pi)
    np.testing.assert_allclose(rpm, [35, 35, 75, 75, 80, 80, 80])
    peak = [drive.ratio * drive.torque_constant * drive.current_limit for drive in robot.drives]
    np.testing.assert_allclose(peak, [1400, 1400, 800, 800, 400, 400, 400], rtol=2e-3)  # constants have three digits


def test_the_nursing_arm_is_as_printed() -> None:
    robot = load_robot("nursing_arm")
    rows = np.array(geometry(robot))

    assert rows[1, 2] == pytest.approx(242)  # d2
    assert rows[2, 1] == pytest.approx(110)  # a2, from axis 2 to axis 3
    assert rows[3, 2] == pytest.approx(28)  # d4
    np.testing.assert_allclose(np.abs(rows[1:, 0]), 90)  # every axis is at right angles to the one before it
    for coupled in (0, 2, 4):
        assert rows[coupled + 1, 1] == 0  # the two axes of a differential meet
        # q1 = (φ1 - φ2) / 2 and q2 = (φ1 + φ2) / 2, of the motors' turns over the ratio.
        back = np.linalg.inv(robot.transmission_matrix[coupled : coupled + 2, coupled : coupled + 2])
        np.testing.assert_allclose(3060 * back, [[0.5, -0.5], [0.5, 0.5]], atol=1e-12)
    joint_torque_per_current = robot.transmission_matrix.T @ [drive.torque_constant for drive in robot.drives]
    # T = n η Km I; two motors with one ampere each add up in pitch and cancel in rotation.
    np.testing.assert_allclose(joint_torque_per_current, [0, 2 * 3060 * 0.82 * 29.3e-3] * 3, rtol=1e-12, atol=1e-12)


def test_the_nursing_arm_hangs_at_zero() -> None:
    """Upright first axis, pitch at its rest: no weight turns the rotations, and the arm's end is straight below."""
    robot = load_robot("nursing_arm")
    weight = gravity_torques(robot, np.zeros((1, 6)), parameters_of(robot))[0]
    _, origins = forward_kinematics(robot, np.zeros((1, 6)))

    np.testing.assert_allclose(weight[[0, 2, 4]], 0.0, atol=1e-12)
    assert origins[0, 5, 2] == pytest.approx(-0.55)


def test_the_rehabilitation_arm_has_a_model_of_four_joints() -> None:
    robot = load_robot("rehab_arm")

    assert robot.n_joints == 5
    assert robot.modelled.tolist() == [True] * 4 + [False]
    assert not robot.joints[4].link.modelled


def test_the_biped_is_the_same_on_both_sides() -> None:
    links = {joint.link.name: joint.link for joint in load_robot("gorobot2").joints}
    base = load_robot("gorobot2").base_link

    assert base is not None
    assert mirrored(base) == mirrored(links["l_foot"])
    for part in ("hip_inner", "hip_outer", "thigh", "shank", "ankle"):
        assert mirrored(links[f"l_{part}"]) == mirrored(links[f"r_{part}"])
    thighs = (links["l_thigh"].center_of_mass, links["r_thigh"].center_of_mass)
    shanks = (links["l_shank"].center_of_mass, links["r_shank"].center_of_mass)
    for left, right in (thighs, shanks):  # the right leg's frames are at its lower ends, 300 mm away
        assert left is not None
        assert right is not None
        assert left[0] + right[0] == pytest.approx(0.3)


def test_the_biped_stands_upright_at_zero() -> None:
    """Ankles side by side, hips above them, feet flat."""
    robot = load_robot("gorobot2")
    rotations, origins = forward_kinematics(robot, np.zeros((1, 12)))
    names = [joint.link.name for joint in robot.joints]
    at = dict(zip(names, origins[0], strict=True))

    np.testing.assert_allclose(at["trunk"], [0, 0, 0.6], atol=1e-12)
    np.testing.assert_allclose(at["l_foot"], [0, 0.16, 0], atol=1e-12)
    # The left foot's frame has x down, y back, z to the left.
    np.testing.assert_allclose(rotations[0, -1], np.array([[0, -1, 0], [0, 0, 1], [-1, 0, 0]]), atol=1e-12)


def test_the_biped_balances_at_home() -> None:
    """Feet parallel, the left one in the air, trunk 12° forwards, the ground pressing on the right sole's middle."""
    robot = load_robot("gorobot2")
    home = np.array([robot.home])
    rotations, origins = forward_kinematics(robot, home)
    at_zero, _ = forward_kinematics(robot, np.zeros((1, 12)))
    turned = Rotation.from_matrix(rotations[0, [5, 11]] @ at_zero[0, [5, 11]].transpose(0, 2, 1))

    assert turned[1].magnitude() < 1e-5  # home is given to a ten-thousandth of a degree
    np.testing.assert_allclose(turned[0].as_rotvec(degrees=True), [0.0, 12.0, 0.0], atol=1e-3)
    assert origins[0, 11, 2] == pytest.approx(0.04, abs=1e-5)
    still = np.zeros((1, 12))
    middle = Balance.of(robot, "r_foot", home, still, still).points
    np.testing.assert_allclose(middle, 0.0, atol=1e-5)


DUAL = load_robot("nursing_dual")
ARM = load_robot("nursing_arm")
MIRROR = np.diag([-1.0, 1.0, 1.0])  # of the base: left and right change places
FLIP = np.diag([1.0, 1.0, -1.0])  # of a link's frame, whose image it makes right-handed again


def motion(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations of one arm, anywhere within its limits."""
    chance = np.random.default_rng(seed)
    low, high = ARM.position_limits.T
    return chance.uniform(low, high, (20, 6)), chance.normal(size=(20, 6)), chance.normal(size=(20, 6))


def test_the_same_positions_are_mirrored_poses() -> None:
    q, _, _ = motion(1)
    rotation, origin = forward_kinematics(DUAL, np.hstack([q, q]))
    left, right = rotation[:, :6], rotation[:, 6:]

    np.testing.assert_allclose(origin[:, :6], origin[:, 6:] @ MIRROR, atol=1e-12)
    np.testing.assert_allclose(left, MIRROR @ right @ FLIP, atol=1e-12)
    assert np.abs(origin[:, :6] - origin[:, 6:]).max() > 0.5  # they are two arms


def test_mirrored_motions_take_the_torques_of_the_single_arm() -> None:
    q, dq, ddq = motion(2)
    q2, dq2, ddq2 = (np.hstack([values, values]) for values in (q, dq, ddq))
    both = inverse_dynamics(DUAL, q2, dq2, ddq2, parameters_of(DUAL))
    single = inverse_dynamics(ARM, q, dq, ddq, parameters_of(ARM))

    np.testing.assert_allclose(both[:, :6], single, atol=1e-11)
    np.testing.assert_allclose(both[:, 6:], single, atol=1e-11)
    assert np.abs(single).max() > 10.0


def test_both_arms_are_the_single_one_but_for_their_place() -> None:
    assert base_parameters(DUAL, drives=False).rank == 2 * base_parameters(ARM, drives=False).rank
    np.testing.assert_array_equal(DUAL.position_limits, np.vstack([ARM.position_limits, ARM.position_limits]))
    np.testing.assert_array_equal(DUAL.home, ARM.home * 2)
    assert [drive.torque_constant for drive in DUAL.drives] == [drive.torque_constant for drive in ARM.drives] * 2
    np.testing.assert_array_equal(DUAL.transmission_matrix, np.kron(np.eye(2), ARM.transmission_matrix))


pinocchio: Any = importlib.import_module("pinocchio")

URDF = Path(__file__).resolve().parents[5] / "shared/data/staubli_tx40/tx40_mdh_modified.urdf"

# The model's zero has the upper arm and the forearm horizontal; ours is the motors' own, upright.
OFFSET = np.array([0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0])

# The URDF writes right angles with 12 digits, so its geometry is off by about 1e-11.
DIGITS = 1e-10


@pytest.fixture
def model() -> Any:
    if not URDF.is_file():
        if os.environ.get("CI"):
            pytest.fail(f"{URDF} is missing, and CI must not pass without it")
        pytest.skip(f"no real recordings beside the checkout ({URDF.parent})")
    return pinocchio.buildModelFromUrdf(str(URDF))


def test_frames_are_those_of_the_urdf(model: Any) -> None:
    robot = load_robot("tx40")
    data = model.createData()
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 6))

    rotations, origins = forward_kinematics(robot, q)

    # Our base frame is the URDF's.
    for k in range(len(q)):
        pinocchio.forwardKinematics(model, data, q[k] + OFFSET)
        for i in range(6):
            np.testing.assert_allclose(rotations[k, i], data.oMi[i + 1].rotation, atol=DIGITS)
            np.testing.assert_allclose(origins[k, i], data.oMi[i + 1].translation, atol=DIGITS)


def test_torques_are_those_of_the_urdf(model: Any) -> None:
    robot = load_robot("tx40")
    assert robot.standard_parameters is not None
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 20, 6))

    torques = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)

    for k in range(len(q)):
        expected = pinocchio.rnea(model, model.createData(), q[k] + OFFSET, dq[k], ddq[k])
        np.testing.assert_allclose(torques[k], expected, atol=10 * DIGITS)  # arms of about 10 kg m²


def test_limits_are_those_of_the_urdf(model: Any) -> None:
    robot = load_robot("tx40")

    # We round to whole degrees per second, and two position limits to the controller's.
    np.testing.assert_allclose(robot.velocity_limits, model.velocityLimit, rtol=0.01)
    np.testing.assert_allclose(robot.torque_limits, model.effortLimit)
    np.testing.assert_allclose(robot.position_limits[:, 0], model.lowerPositionLimit, atol=0.02)
    np.testing.assert_allclose(robot.position_limits[:, 1], model.upperPositionLimit, atol=0.02)
