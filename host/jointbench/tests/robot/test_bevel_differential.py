"""The bevel differential against Lagrange's equation and MuJoCo, its power, and as a coupling in robot files."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import model_columns, model_parameter_names
from jointbench.errors import RobotFileError
from jointbench.robot import BevelDifferential, DriveTrain, load_robot

GEAR = BevelDifferential(
    ratio=3060.0, first_bevel=9.0, second_bevel=7.5, third_bevel=0.04, carrier=0.3, third_mass=0.8, third_radius=0.06,
    load_mass=8.0, load_radius=0.25,
)  # fmt: skip
GRAVITY = 9.81


def random(*shape: int) -> Array:
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
    q = random(20, 2)
    phi = GEAR.bevel_motion(q)
    np.testing.assert_allclose(phi, np.column_stack([q[:, 0] + q[:, 1], -q[:, 0] + q[:, 1]]), atol=1e-15)
    np.testing.assert_allclose(GEAR.output_motion(phi), q, atol=1e-15)
    np.testing.assert_allclose(
        GEAR.output_motion(phi), 0.5 * np.column_stack([phi[:, 0] - phi[:, 1], phi[:, 0] + phi[:, 1]]), atol=1e-15
    )


def test_equation_of_motion_is_lagranges() -> None:
    """d/dt ∂E/∂dq + ∂U/∂q by differences of the energies alone; E is a quadratic form, so central ones are exact."""
    q, ddq, step = random(10, 2), random(10, 2)[::-1], 1e-3
    directions = step * np.eye(2)
    # ∂E/∂dq is linear in dq, and so its rate is ∂E/∂dq taken at ddq.
    momentum_rate = np.stack([(kinetic_energy(ddq + d) - kinetic_energy(ddq - d)) / (2.0 * step) for d in directions])
    slope = (potential_energy(q[:, 1] + step) - potential_energy(q[:, 1] - step)) / (2.0 * step)
    expected = momentum_rate.T + np.column_stack([np.zeros(10), slope])
    # The cosine's third derivative times step²/6 leaves 4e-6 N·m.
    np.testing.assert_allclose(GEAR.required_forces(q[:, 1], ddq, GRAVITY), expected, atol=1e-5)


def test_what_the_bevels_do_is_what_the_outputs_get() -> None:
    """T1 dφ1 + T2 dφ2 + T3 dq1 + TH dq2 is the rate of E + U, with forces that the equation of motion asks for."""
    q, dq, ddq, torques = random(30, 2), random(31, 2)[1:], random(32, 2)[2:], random(30, 4)
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
    current = random(10, 6)
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
    with pytest.raises(RobotFileError) as error:
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
    q, dq, ddq = random(3, 20, 2)
    columns, _ = model_columns(robot, q, dq, ddq)
    torque = (columns @ values).reshape(-1, 2)
    np.testing.assert_allclose(torque, GEAR.required_forces(q[:, 1], ddq, GRAVITY), rtol=1e-9, atol=1e-9)
