"""Motors and joints through one matrix: axioms, the differential of a nursing robot, a wrist, and redundant motors."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import RedundantDrives, RobotFileError, UnknownStiffness
from jointbench.robot import Coupling, Drive, DriveTrain, Robot, load_robot

ROUNDING = 1e-12  # of sums of a few products, relative to the largest: conditions of the matrices here are below 100


def redundant() -> Robot:
    """An arm whose first joint two motors drive, and whose next two share three."""
    arm = load_robot("cobot6")
    second = Drive("j1b", "j1", "direct", -80.0, 0.2, 5.0)
    third = Drive("tendon", "j3", "direct", 30.0, 0.1, 5.0)
    return replace(
        arm,
        couplings=(
            Coupling("twins", ("j1",), ((101.0,), (-80.0,)), (second,)),
            Coupling("tendons", ("j2", "j3"), ((50.0, 20.0), (-30.0, 40.0), (-10.0, 30.0)), (third,)),
        ),
    )


def trains() -> dict[str, DriveTrain]:
    return {
        "cobot6": load_robot("cobot6").drive_train,
        "tx40": load_robot("tx40").drive_train,
        "nursing_arm": load_robot("nursing_arm").drive_train,
        "redundant": redundant().drive_train,
    }


@pytest.fixture(params=["cobot6", "tx40", "nursing_arm", "redundant"])
def train(request: pytest.FixtureRequest) -> DriveTrain:
    return trains()[request.param]


def random(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape)


def close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=ROUNDING * np.abs(expected).max())


def test_both_sides_have_the_same_power(train: DriveTrain) -> None:
    motor_torque, dq = random(20, train.n_motors), random(20, train.matrix.shape[1])
    of_joints = np.sum(train.joint_torque(motor_torque) * dq, axis=1)
    close(of_joints, np.sum(motor_torque * train.motor_motion(dq), axis=1))


def test_there_and_back_is_where_it_was(train: DriveTrain) -> None:
    q = random(20, train.matrix.shape[1])
    close(train.joint_motion(train.motor_motion(q)), q)
    close(train.joint_torque(train.motor_torque(q)), q)


def test_any_leading_axes(train: DriveTrain) -> None:
    q = random(3, 4, train.matrix.shape[1])
    close(train.motor_motion(q)[1, 2], train.motor_motion(q[1, 2]))


def test_a_differential_turns_as_the_paper_says() -> None:
    """q1 = (φ1 - φ2)/2 and q2 = (φ1 + φ2)/2 of the bevel gears' input angles; Q1 = T1 - T2, Q2 = T1 + T2."""
    train = load_robot("nursing_arm").drive_train
    gear = 3060.0
    phi, torque = random(10, 6), random(10, 6)
    first, second = phi[:, ::2], phi[:, 1::2]
    q = train.joint_motion(gear * phi)
    close(q[:, ::2], (first - second) / 2.0)
    close(q[:, 1::2], (first + second) / 2.0)
    joint_torque = train.joint_torque(torque / gear)
    close(joint_torque[:, ::2], torque[:, ::2] - torque[:, 1::2])
    close(joint_torque[:, 1::2], torque[:, ::2] + torque[:, 1::2])


def test_the_sixth_motor_of_a_wrist_turns_with_the_fifth_joint() -> None:
    train = load_robot("tx40").drive_train
    only_fifth = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(train.motor_motion(only_fifth), [0.0, 0.0, 0.0, 0.0, 45.0, 32.0])
    only_sixth = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(train.joint_torque(only_sixth), [0.0, 0.0, 0.0, 0.0, 32.0, 32.0])
    close(train.joint_torque_of_current(only_sixth), train.joint_torque(only_sixth))  # its torque constant is 1


def test_more_motors_than_joints() -> None:
    """Positions by least squares; of all torques that do the same, the smallest: none is wasted against another."""
    robot = redundant()
    train = robot.drive_train
    assert [drive.name for drive in train.drives[6:]] == ["j1b", "tendon"]
    assert train.matrix.shape == (8, 6)
    motors, torque = random(5, 8), random(5, 6)
    least_squares: Array = np.linalg.lstsq(train.matrix, motors.T, rcond=None)[0].T.astype(np.float64)
    smallest: Array = np.linalg.lstsq(train.matrix.T, torque.T, rcond=None)[0].T.astype(np.float64)
    close(train.joint_motion(motors), least_squares)
    close(train.motor_torque(torque), smallest)
    with pytest.raises(RedundantDrives, match=r"robot 'cobot6' has 8 motors for 6 joints, and one of each joint"):
        _ = robot.transmission_matrix


def test_friction_of_both_sides_adds_up_at_the_joint() -> None:
    drive = Drive(
        "j", "j1", "harmonic", -100.0, 0.1, 1.0,
        motor_coulomb=0.01, motor_viscous=1e-4, link_coulomb=0.5, link_viscous=0.2,
    )  # fmt: skip
    train = DriveTrain((drive,), np.array([[-100.0]]))
    friction = train.known_friction(np.array([[2.0], [-3.0], [0.0]]))
    # Coulomb 100 * 0.01 + 0.5, viscous 100² * 1e-4 + 0.2.
    np.testing.assert_allclose(friction, [[1.5 + 1.2 * 2.0], [-1.5 - 1.2 * 3.0], [0.0]], rtol=1e-14)


def test_what_is_known_of_a_differential() -> None:
    """Equal motors: inertias and viscous friction of both add up at either joint, and nothing crosses over."""
    motor = replace(
        load_robot("nursing_arm").drives[0],
        rotor_inertia=2e-6,
        motor_viscous=1e-6,
        motor_coulomb=1e-3,
        link_coulomb=0.5,
    )
    train = DriveTrain((motor, motor), np.array([[3060.0, 3060.0], [-3060.0, 3060.0]]))
    close(train.known_inertia, 2 * 2e-6 * 3060**2 * np.eye(2))
    close(train.known_viscous, 2 * 1e-6 * 3060**2 * np.eye(2))
    close(train.known_coulomb, np.full(2, 2 * 1e-3 * 3060 + 0.5))
    speeds = random(50, 2)
    assert np.all(np.abs(train.known_friction(speeds) - speeds @ train.known_viscous) <= train.known_coulomb + 1e-9)


def test_a_flexible_drive_twists_by_its_stiffness() -> None:
    drive = load_robot("cobot6").drives[0]
    assert drive.flexible
    with pytest.raises(UnknownStiffness, match=r"drive 'j1' is harmonic, and its stiffness is not known; give stiff"):
        drive.twist(np.ones(3))
    np.testing.assert_array_equal(replace(drive, stiffness=1e4).twist(np.array([5.0, -1.0])), [5e-4, -1e-4])
    np.testing.assert_array_equal(replace(drive, kind="direct").twist(np.array([5.0])), [0.0])


PART = "position_deg = [-90, 90]\nvelocity_deg_s = 90\nacceleration_deg_s2 = 180\ntorque_Nm = 8\n"
PLACE = "alpha_deg = 90\na_mm = 100\nd_mm = 20\n"
MOTOR = 'kind = "harmonic"\nratio = 100\ntorque_constant_Nm_A = 0.1\ncurrent_limit_A = 1\n'
SIDES = (
    "motor_coulomb_Nm = 0.01\nmotor_viscous_Nms_rad = 1e-4\nlink_coulomb_Nm = 0.5\nlink_viscous_Nms_rad = 0.2\n"
    "stiffness_Nm_rad = 9e3\nlink_encoder = true\ntorque_sensor = true\n"
)
EXTRA = '[[couplings.drives]]\nname = "c"\nkind = "direct"\ntorque_constant_Nm_A = 0.1\ncurrent_limit_A = 1\n'
ARM = (
    'version = 1\nname = "arm"\nsource = "made up"\ndescription = "two joints"\n'
    + "".join(f'[[joints]]\nname = "{name}"\n{PLACE}{PART}[joints.drive]\n{MOTOR}{SIDES}' for name in "ab")
    + '[[couplings]]\nname = "pair"\njoints = ["a", "b"]\nmatrix = [[100, 0], [0, 100], [50, -70]]\n' + EXTRA
)  # fmt: skip


def load(tmp_path: Path, text: str) -> Robot:
    path = tmp_path / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_a_file_says_what_is_on_which_side(tmp_path: Path) -> None:
    robot = load(tmp_path, ARM)
    drive = robot.drives[1]
    assert (drive.motor_coulomb, drive.motor_viscous, drive.link_coulomb, drive.link_viscous) == (0.01, 1e-4, 0.5, 0.2)
    assert (drive.stiffness, drive.motor_encoder, drive.link_encoder, drive.torque_sensor) == (9e3, True, True, True)
    (extra,) = robot.couplings[0].more
    assert (extra.name, extra.joint, extra.ratio) == ("c", "b", -70.0)
    np.testing.assert_array_equal(robot.drive_train.matrix, [[100, 0], [0, 100], [50, -70]])


def test_a_joint_that_slides_rubs_in_newtons(tmp_path: Path) -> None:
    slide = PART.replace("_deg", "_mm").replace("torque_Nm", "force_N")
    friction = SIDES.replace("link_coulomb_Nm", "link_coulomb_N").replace("link_viscous_Nms_rad", "link_viscous_Ns_m")
    sliding = ARM.replace(PART, 'kind = "prismatic"\n' + slide).replace(SIDES, friction)
    drive = load(tmp_path, sliding).drives[0]
    assert (drive.link_coulomb, drive.link_viscous) == (0.5, 0.2)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[50, -70]]", "[0, 0]]", "coupling 'pair': drives[0]: its row of matrix is 0: it drives nothing"),
        (
            ", [50, -70]]",
            "]",
            "coupling 'pair': matrix = [[100, 0], [0, 100]] must be a list of 3 rows: one for each joint's own motor",
        ),
        ("[[100, 0], [0, 100], [50, -70]]", "[[100, 1], [100, 1], [50, 0.5]]", "coupling 'pair': matrix is singular"),
        ('name = "c"', 'name = "a"', "drive 'a' is named 2 times"),
        ("torque_Nm = 8", "torque_Nm = 16", "joint 'a': torque limit 16 is beyond its motors, which reach 15 "),
        (
            "link_encoder = true",
            "motor_encoder = false",
            "motor_encoder and link_encoder are both false; a position must be measured on one side",
        ),
        (EXTRA, EXTRA + "link_coulomb_Nm = 1\n", "drives[0]: unknown key 'link_coulomb_Nm'; did you mean 'motor_coul"),
        ("motor_coulomb_Nm = 0.01", "motor_coulomb_Nm = -0.01", "motor_coulomb_Nm = -0.01 must not be below 0"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in ARM
    with pytest.raises(RobotFileError, match=re.escape(message)):
        load(tmp_path, ARM.replace(before, after, 1))
