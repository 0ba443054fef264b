"""Drives, and motors that joints share.

Values of drives written into a robot file: these alone change, or nothing does.
"""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, RobotError
from jointbench.model import (
    BevelDifferential,
    Coupling,
    Drive,
    DriveTrain,
    Robot,
    load_robot,
    model_columns,
    model_parameter_names,
)
from jointbench.model.catalogue import robot_file_text, with_drive_values

GEAR = BevelDifferential(
    ratio=3060.0, first_bevel=9.0, second_bevel=7.5, third_bevel=0.04, carrier=0.3, third_mass=0.8, third_radius=0.06,
    load_mass=8.0, load_radius=0.25,
)  # fmt: skip
GRAVITY = 9.81


def random_pair(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(-2.0, 2.0, shape)


def kinetic_energy(speeds: Array) -> Array:
    """Body by body, from the bevels' own speeds: nothing of J11, J12, J22 in it."""
    first, second = speeds[..., 0] + speeds[..., 1], speeds[..., 1] - speeds[..., 0]
    bevels = GEAR.first_bevel * first**2 + GEAR.second_bevel * second**2 + GEAR.third_bevel * speeds[..., 0] ** 2
    pitching = (GEAR.carrier + GEAR.third_mass * GEAR.third_radius**2) * speeds[..., 1] ** 2
    return 0.5 * (bevels + pitching)


def potential_energy(pitch: Array) -> Array:
    return -GEAR.load_mass * GRAVITY * GEAR.load_radius * np.cos(pitch) - GEAR.third_mass * GRAVITY * GEAR.third_radius


def test_kinematics_are_as_printed_and_go_both_ways() -> None:
    q = random_pair(20, 2)
    phi = GEAR.bevel_motion(q)
    np.testing.assert_allclose(phi, np.column_stack([q[:, 0] + q[:, 1], -q[:, 0] + q[:, 1]]), atol=1e-15)
    np.testing.assert_allclose(GEAR.output_motion(phi), q, atol=1e-15)
    np.testing.assert_allclose(
        GEAR.output_motion(phi), 0.5 * np.column_stack([phi[:, 0] - phi[:, 1], phi[:, 0] + phi[:, 1]]), atol=1e-15
    )


def test_equation_of_motion_is_lagranges() -> None:
    """d/dt ∂E/∂dq + ∂U/∂q by differences of the energies alone; E is a quadratic form, so central ones are exact."""
    q, ddq, step = random_pair(10, 2), random_pair(10, 2)[::-1], 1e-3
    directions = step * np.eye(2)
    # ∂E/∂dq is linear in dq, and so its rate is ∂E/∂dq taken at ddq.
    momentum_rate = np.stack([(kinetic_energy(ddq + d) - kinetic_energy(ddq - d)) / (2.0 * step) for d in directions])
    slope = (potential_energy(q[:, 1] + step) - potential_energy(q[:, 1] - step)) / (2.0 * step)
    expected = momentum_rate.T + np.column_stack([np.zeros(10), slope])
    # The cosine's third derivative times step²/6 leaves 4e-6 N·m.
    np.testing.assert_allclose(GEAR.required_forces(q[:, 1], ddq, GRAVITY), expected, atol=1e-5)


def test_what_the_bevels_do_is_what_the_outputs_get() -> None:
    """T1 dφ1 + T2 dφ2 + T3 dq1 + TH dq2 is the rate of E + U, with forces that the equation of motion asks for."""
    q, dq, ddq, torques = random_pair(30, 2), random_pair(31, 2)[1:], random_pair(32, 2)[2:], random_pair(30, 4)
    bevels = GEAR.bevel_motion(dq)
    power = (torques[:, :2] * bevels).sum(axis=1) + (torques[:, 2:] * dq).sum(axis=1)
    forces = GEAR.generalised_forces(*torques.T)
    np.testing.assert_allclose((forces * dq).sum(axis=1), power, atol=1e-13)
    needed = (GEAR.required_forces(q[:, 1], ddq, GRAVITY) * dq).sum(axis=1)
    kinetic_rate = np.einsum("ni,ij,nj->n", ddq, GEAR.inertia, dq)
    potential_rate = GEAR.load_mass * GRAVITY * GEAR.load_radius * np.sin(q[:, 1]) * dq[:, 1]
    np.testing.assert_allclose(needed, kinetic_rate + potential_rate, atol=1e-12)


def test_mujoco_moves_alike() -> None:
    """Bevels as armature of tendons that run over both joints, the pitching load as a body; MuJoCo's own J and G."""
    load = f'<inertial pos="0 0 {-GEAR.load_radius}" mass="{GEAR.load_mass}" diaginertia="1e-6 1e-6 1e-6"/>'
    pitching = GEAR.carrier + GEAR.third_mass * GEAR.third_radius**2 - GEAR.load_mass * GEAR.load_radius**2
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option gravity="0 0 {-GRAVITY}"/><worldbody>
        <body><joint name="rotation" axis="0 0 1" armature="{GEAR.third_bevel}"/>
          <inertial pos="0 0 0" mass="1e-6" diaginertia="1e-9 1e-9 1e-9"/>
          <body><joint name="pitch" axis="0 1 0"/>{load}</body></body></worldbody>
      <tendon>
        <fixed name="first" armature="{GEAR.first_bevel}">
          <joint joint="rotation" coef="1"/><joint joint="pitch" coef="1"/></fixed>
        <fixed name="second" armature="{GEAR.second_bevel}">
          <joint joint="rotation" coef="-1"/><joint joint="pitch" coef="1"/></fixed>
      </tendon></mujoco>""")
    data = mujoco.MjData(model)
    for pitch in (0.0, 0.4, -1.1):
        data.qpos[:] = 0.7, pitch
        data.qacc[:] = 1.3, -0.8
        mujoco.mj_inverse(model, data)
        expected = GEAR.required_forces(pitch, data.qacc, GRAVITY)
        expected[1] -= pitching * data.qacc[1]  # what is not among the model's bodies
        # The load swings about the upright axis too, with m r² sin²(pitch): in an arm that is the links' part.
        expected[0] += GEAR.load_mass * (GEAR.load_radius * np.sin(pitch)) ** 2 * data.qacc[0]
        np.testing.assert_allclose(data.qfrc_inverse, expected, atol=1e-4)  # the bodies' own inertia of 1e-6 kg·m²


def test_a_robot_with_it_has_the_same_kinematics_and_rotors() -> None:
    robot = load_robot("nursing_arm")
    matrix = robot.transmission_matrix[:2, :2]
    np.testing.assert_array_equal(matrix, GEAR.matrix)
    rotor = 9.0 / 3060.0**2
    drives = (replace(robot.drives[0], rotor_inertia=rotor), replace(robot.drives[1], rotor_inertia=7.5 / 3060.0**2))
    only_bevels = BevelDifferential(3060.0, 9.0, 7.5)
    np.testing.assert_allclose(DriveTrain(drives, matrix).known_inertia, only_bevels.inertia, rtol=1e-14)


def test_currents_become_joint_torque_as_printed() -> None:
    """T = n η Km I with n = 3060, η = 0.82, Km = 29.3 mN·m/A at each bevel; rotation T1 - T2, pitch T1 + T2."""
    current = random_pair(10, 6)
    bevels = 3060.0 * 0.82 * 29.3e-3 * current
    torque = load_robot("nursing_arm").drive_train.joint_torque_of_current(current)
    np.testing.assert_allclose(torque[:, ::2], bevels[:, ::2] - bevels[:, 1::2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(torque[:, 1::2], bevels[:, ::2] + bevels[:, 1::2], rtol=1e-12, atol=1e-12)


JOINTS = "".join(
    f'[[joints]]\nname = "{name}"\nalpha_deg = 90\na_mm = 0\nd_mm = 0\nposition_deg = [-90, 90]\nvelocity_deg_s = 30\n'
    'acceleration_deg_s2 = 60\ntorque_Nm = 20\n[joints.drive]\nkind = "coupled"\ntorque_constant_Nm_A = 0.1\n'
    "current_limit_A = 1\n"
    for name in ("turn", "tilt")
)
HEAD = 'version = 1\nname = "pair"\nsource = "made up"\ndescription = "a differential"\n'
GEARED = (
    HEAD
    + JOINTS
    + '[[couplings]]\nname = "bevels"\nkind = "bevel_differential"\njoints = ["turn", "tilt"]\nratio = 100\n'
)


def read(tmp_path: Path, text: str):
    path = tmp_path / "pair.toml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_a_robot_file_names_the_mechanism(tmp_path: Path) -> None:
    robot = read(tmp_path, GEARED)
    assert robot.couplings[0].matrix == ((100.0, 100.0), (-100.0, 100.0))
    assert [(drive.kind, drive.ratio, drive.flexible) for drive in robot.drives] == [("coupled", 100.0, False)] * 2


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("ratio = 100", "ratio = 0", "coupling 'bevels': ratio = 0 must be above 0"),
        ("ratio = 100", "matrix = [[1, 1], [-1, 1]]", "coupling 'bevels': 'ratio' is missing"),
        ('joints = ["turn", "tilt"]', 'joints = ["turn"]', "a bevel differential has two motors and two joints"),
        ('"bevel_differential"', '"bevels"', "kind = 'bevels' must be one of 'matrix', 'bevel_differential'"),
        ('kind = "coupled"\n', 'kind = "coupled"\nratio = 5\n', "ratio is said by the coupling"),
        ("[[couplings]]", "[[other]]", "joint 'turn' has a drive of kind \"coupled\", and is in none of [[couplings]]"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(FileError) as error:
        read(tmp_path, GEARED.replace(before, after))
    assert message in str(error.value)


def test_the_regressors_columns_have_the_joints_own_dynamics() -> None:
    """J ddq + G(q2) as a fit's columns have it: bevels are rotors, all else is of the links."""
    arm = load_robot("nursing_arm:2")
    robot = replace(arm, joints=(arm.joints[0], replace(arm.joints[1], origin=(0.0, 0.0, 0.0))))
    both = GEAR.first_bevel + GEAR.second_bevel
    parameters = {
        "j1.rotor_inertia": both,
        "j2.rotor_inertia": both,
        "shoulder_pair.j1.rotor_inertia": GEAR.first_bevel,
        "shoulder_pair.j2.rotor_inertia": GEAR.second_bevel,
        "j1.Izz": GEAR.third_bevel,
        "j2.Izz": GEAR.carrier + GEAR.third_mass * GEAR.third_radius**2,
        "j2.mcy": GEAR.load_mass * GEAR.load_radius,  # y points down while it hangs
    }
    values = np.array([parameters.get(name, 0.0) for name in model_parameter_names(robot)])
    q, dq, ddq = random_pair(3, 20, 2)
    columns, _ = model_columns(robot, q, dq, ddq)
    torque = (columns @ values).reshape(-1, 2)
    np.testing.assert_allclose(torque, GEAR.required_forces(q[:, 1], ddq, GRAVITY), rtol=1e-9, atol=1e-9)


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
    with pytest.raises(RobotError, match=r"robot 'cobot6' has 8 motors for 6 joints, and one of each joint"):
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
    with pytest.raises(RobotError, match=r"drive 'j1' is harmonic, and its stiffness is not known; give stiff"):
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
        (
            "link_encoder = true",
            "torque_mode = true",
            "torque_mode = true lets joint 'a' go with no torque, but it has a torque that is modelled; it is",
        ),
        (EXTRA, EXTRA + "link_coulomb_Nm = 1\n", "drives[0]: unknown key 'link_coulomb_Nm'; did you mean 'motor_coul"),
        ("motor_coulomb_Nm = 0.01", "motor_coulomb_Nm = -0.01", "motor_coulomb_Nm = -0.01 must not be below 0"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in ARM
    with pytest.raises(FileError, match=re.escape(message)):
        load(tmp_path, ARM.replace(before, after, 1))


def test_values_are_replaced_and_added_and_all_else_stays() -> None:
    path, text = robot_file_text("cobot6:2")
    assert path is None
    changed = with_drive_values(text, {"j2": {"ratio": -81.5, "link_coulomb_Nm": 4.3}})
    before, after = tomllib.loads(text), tomllib.loads(changed)
    assert after["joints"][1]["drive"] == {**before["joints"][1]["drive"], "ratio": -81.5, "link_coulomb_Nm": 4.3}
    after["joints"][1]["drive"] = before["joints"][1]["drive"]
    assert after == before
    assert [line for line in text.splitlines() if "#" in line] == [line for line in changed.splitlines() if "#" in line]


def test_the_last_table_of_a_file_is_added_to() -> None:
    text = '[[joints]]\nname = "j1"\n[joints.drive]\nratio = 5 # turns'
    assert with_drive_values(text, {"j1": {"ratio": 6.0, "link_viscous_Nms_rad": 0.1}}) == (
        '[[joints]]\nname = "j1"\n[joints.drive]\nratio = 6.0 # turns\nlink_viscous_Nms_rad = 0.1'
    )


def test_a_drive_written_in_another_way_is_left_to_its_author() -> None:
    with pytest.raises(FileError, match="the drives of j1 are not written as tables"):
        with_drive_values('[[joints]]\nname = "j1"\ndrive = { ratio = 5 }\n', {"j1": {"ratio": 6.0}})
    with pytest.raises(FileError, match="has no place for values of drives"):
        robot_file_text("arm.urdf")


def test_a_torque_limit_is_lowered_with_the_ratio_that_asks_for_it(tmp_path: Path) -> None:
    _, text = robot_file_text("cobot6")
    path = tmp_path / "arm.toml"
    path.write_text(with_drive_values(text, {"j2": {"ratio": -80.9}}, {"j2": 100.2, "j3": 60.5}))
    before, now = load_robot("cobot6"), load_robot(path)
    assert [joint.torque_limit for joint in now.joints[1:3]] == [100.2, 60.5]
    assert [joint.torque_limit for joint in now.joints[3:]] == [joint.torque_limit for joint in before.joints[3:]]
    assert [drive.ratio for drive in now.drives] == [101.0, -80.9, *[101.0] * 4]
