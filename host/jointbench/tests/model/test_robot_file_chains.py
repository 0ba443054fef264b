"""Robot files by the standard Denavit-Hartenberg convention, and joints that follow the sum of others.

The catalogue of modules, and the robots that chains of them are.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from jointbench.errors import FileError, RobotError
from jointbench.model import (
    Module,
    Robot,
    assemble,
    energy,
    forward_kinematics,
    inverse_dynamics,
    load_robot,
    module_types,
)
from jointbench.results import export
from jointbench.tests.model.test_link import parameters_of

ROWS = ((90.0, 50.0, 400.0, 10.0), (0.0, 430.0, 0.0, -20.0), (-70.0, 20.0, 150.0, 0.0), (30.0, -10.0, 60.0, 45.0))
"""alpha [deg], a [mm], d [mm], theta [deg]; the third joint slides."""

MASS, CENTER = 2.0, np.array([-0.1, 0.02, 0.03])
INERTIA = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.025]])
BODY = (
    "mass_kg = 2\ncenter_of_mass_mm = [-100, 20, 30]\n"
    "inertia_kg_m2 = { xx = 0.02, yy = 0.03, zz = 0.025, xy = 0.001, yz = 0.002 }\n"
)
DRIVE = '[joints.drive]\nkind = "direct"\nratio = 100\ntorque_constant_Nm_A = 0.1\ncurrent_limit_A = 10\n'
HEAD = 'version = 1\nname = "arm"\nsource = "made up"\ndescription = "an arm"\n'


def placed(row: tuple[float, float, float, float]) -> str:
    return "alpha_deg = {}\na_mm = {}\nd_mm = {}\ntheta_deg = {}\n".format(*row)


def joint(name: str, row: tuple[float, float, float, float], slides: bool = False, extra: str = "") -> str:
    turning = "position_deg = [-170, 170]\nvelocity_deg_s = 90\nacceleration_deg_s2 = 180\ntorque_Nm = 10\n"
    sliding = "position_mm = [-200, 200]\nvelocity_mm_s = 90\nacceleration_mm_s2 = 180\nforce_N = 10\n"
    kind = 'kind = "prismatic"\n' if slides else ""
    moving = "" if "mimic" in extra else sliding if slides else turning
    drive = "" if "mimic" in extra else DRIVE
    return (
        f'[[joints]]\nname = "{name}"\n{kind}{placed(row)}{moving}{extra}[joints.link]\nname = "l{name}"\n{BODY}{drive}'
    )


def load(tmp_path: Path, text: str) -> Robot:
    path = tmp_path / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


STANDARD = (
    HEAD + 'denavit_hartenberg = "standard"\n' + "".join(joint(f"j{k}", row, k == 2) for k, row in enumerate(ROWS))
)


def poses(q: np.ndarray) -> list[np.ndarray]:
    """Link frames by the product of Rz(theta) Tz(d) Tx(a) Rx(alpha), as textbooks have it."""
    whole, frames = np.eye(4), []
    for k, (alpha, a, d, theta) in enumerate(ROWS):
        al, th = np.deg2rad(alpha), np.deg2rad(theta) + (q[k] if k != 2 else 0.0)
        d = 1e-3 * d + (q[k] if k == 2 else 0.0)
        c, s, ca, sa = np.cos(th), np.sin(th), np.cos(al), np.sin(al)
        a = 1e-3 * a
        whole = whole @ np.array(
            [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]
        )
        frames.append(whole)
    return frames


def test_frames_are_the_textbooks(tmp_path: Path) -> None:
    robot = load(tmp_path, STANDARD)
    q = np.array([[0.3, -0.4, 0.05, 0.6], [0.0, 0.0, 0.0, 0.0]])
    rotations, origins = forward_kinematics(robot, q)
    for k, angles in enumerate(q):
        for i, pose in enumerate(poses(angles)):
            frame = robot.frame(f"lj{i}")
            assert frame.joint == i
            rotation = rotations[k, i] @ np.array(frame.rotation)
            np.testing.assert_allclose(rotation, pose[:3, :3], atol=1e-14)
            np.testing.assert_allclose(origins[k, i] + rotations[k, i] @ frame.origin, pose[:3, 3], atol=1e-14)


def test_bodies_move_as_in_the_files_frames(tmp_path: Path) -> None:
    robot = load(tmp_path, STANDARD)
    q, dq = np.random.default_rng(3).uniform(-0.5, 0.5, (2, 5, 4))
    kinetic, potential = energy(robot, q, dq, parameters_of(robot))
    step = 1e-6  # central differences: step² and rounding / step, some 1e-10 each
    for k in range(len(q)):
        expected_kinetic = expected_potential = 0.0
        for here, before, after in zip(
            poses(q[k]), poses(q[k] - step * dq[k]), poses(q[k] + step * dq[k]), strict=True
        ):
            change = (after - before) / (2.0 * step)
            speed = change[:3, :3] @ CENTER + change[:3, 3]
            spin = change[:3, :3] @ here[:3, :3].T
            omega = here[:3, :3].T @ np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            expected_kinetic += 0.5 * MASS * speed @ speed + 0.5 * omega @ INERTIA @ omega
            expected_potential += 9.80665 * MASS * (here[:3, :3] @ CENTER + here[:3, 3])[2]
        assert kinetic[k] == pytest.approx(expected_kinetic, rel=1e-7)
        assert potential[k] == pytest.approx(expected_potential, rel=1e-12)


def test_what_is_fixed_and_carried_is_placed_in_the_files_frames(tmp_path: Path) -> None:
    tool = f'[[fixed]]\nname = "tool"\nparent = "j3"\n{placed((20.0, 10.0, 30.0, 5.0))}'
    capsule = '[[capsules]]\nlink = "lj1"\nfrom_mm = [-430, 0, 0]\nto_mm = [0, 0, 0]\nradius_mm = 50\n'
    robot = load(tmp_path, STANDARD + tool + capsule)
    al, th = np.deg2rad(20.0), np.deg2rad(5.0)
    c, s, ca, sa = np.cos(th), np.sin(th), np.cos(al), np.sin(al)
    expected = np.array([[c, -s * ca, s * sa], [s, c * ca, -c * sa], [0.0, sa, ca]])
    tip, frame = robot.frame("lj3"), robot.frame("tool")
    turn = np.array(tip.rotation)
    np.testing.assert_allclose(frame.rotation, turn @ expected, atol=1e-14)
    np.testing.assert_allclose(frame.origin, tip.origin + turn @ [0.01 * c, 0.01 * s, 0.03], atol=1e-14)
    # From the frame at the link's end back to its joint.
    np.testing.assert_allclose(robot.capsules[0].start, [0.0, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(robot.capsules[0].end, [0.43, 0.0, 0.0], atol=1e-14)


def test_a_convention_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"denavit_hartenberg = 'classic' must be one of 'modified', 'standard'"):
        load(tmp_path, STANDARD.replace('"standard"', '"classic"'))


ARM = HEAD + joint("a", ROWS[0]) + joint("b", ROWS[1]) + joint("c", ROWS[3])
SUM = 'mimic = [{ joint = "b", factor = -1 }, { joint = "c", factor = 0.5, offset_deg = 90 }]\n'
PALLETIZER = ARM + joint("hand", ROWS[1], extra=SUM)
FREE = ARM + joint("hand", ROWS[1])


def test_a_joint_follows_the_sum_of_others(tmp_path: Path) -> None:
    """A hand that a linkage keeps level: the torques of a free hand's joint go to those that it follows."""
    robot, free = load(tmp_path, PALLETIZER), load(tmp_path, FREE)
    assert robot.joint_names == ("a", "b", "c")
    q, dq, ddq = np.random.default_rng(1).standard_normal((3, 6, 3))
    follow = np.array([[0.0, -1.0, 0.5]])
    hand = [values @ follow.T for values in (q, dq, ddq)]
    hand[0] = hand[0] + np.pi / 2.0
    free_q, free_dq, free_ddq = (np.hstack([own, of]) for own, of in zip((q, dq, ddq), hand, strict=True))
    torque = inverse_dynamics(free, free_q, free_dq, free_ddq, parameters_of(free))
    parameters = robot.standard_parameters
    assert parameters is not None
    np.testing.assert_allclose(
        inverse_dynamics(robot, q, dq, ddq, parameters), torque[:, :3] + torque[:, 3:] @ follow, atol=1e-12
    )
    rotations, origins = forward_kinematics(robot, q)
    theirs = forward_kinematics(free, free_q)
    np.testing.assert_allclose(rotations[:, -1], theirs[0][:, -1], atol=1e-14)
    np.testing.assert_allclose(origins[:, -1], theirs[1][:, -1], atol=1e-14)


def test_a_joint_may_follow_one_that_follows(tmp_path: Path) -> None:
    tip = joint("tip", ROWS[3], extra='mimic = { joint = "hand", factor = 2, offset_deg = -10 }\n')
    robot = load(tmp_path, PALLETIZER + tip)
    positions = robot.all_positions(np.array([[0.1, 0.2, 0.4]]))[0]
    names = [joint.name for joint in robot.joints]
    tips = [position for name, position in zip(names, positions.tolist(), strict=True) if name.startswith("tip")]
    hands = [position for name, position in zip(names, positions.tolist(), strict=True) if name.startswith("hand")]
    assert sum(hands) == pytest.approx(-0.2 + 0.5 * 0.4 + np.pi / 2.0)
    assert sum(tips) == pytest.approx(2.0 * sum(hands) - np.deg2rad(10.0))


def test_sums_are_exported(tmp_path: Path) -> None:
    robot = load(tmp_path, PALLETIZER)
    again = load_robot(export(robot, tmp_path / "arm.urdf"))
    q = np.random.default_rng(2).standard_normal((4, 3))
    for ours, theirs in zip(forward_kinematics(robot, q), forward_kinematics(again, q), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)  # digits of a URDF
    model = mujoco.MjModel.from_xml_path(str(export(robot, tmp_path / "arm.xml")))
    assert model.neq == 2


def test_a_joint_that_follows_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"joint 'hand': mimic = \[\] follows nothing; name a joint"):
        load(tmp_path, FREE.replace(joint("hand", ROWS[1]), joint("hand", ROWS[1], extra="mimic = []\n")))


PRINTED = ["type1.turn", "type1.arm", "type2.turn", "type2.fork", "type3.arm", "type3.turn", "type3.end"]


def chain(*types: str, serials: str = "abcdefg") -> str:
    joints = [f"j{i}" for i in range(1, len(types) + 1)]
    return assemble(
        "arm",
        [
            Module(joint, kind, serial, f"{joint} (node {joint[1:]})")
            for joint, kind, serial in zip(joints, types, serials, strict=False)
        ],
    )


def robot_of(text: str, folder: Path) -> Robot:
    (folder / "robot.toml").write_text(text, encoding="utf-8")
    return load_robot(folder / "robot.toml")


def test_the_papers_order_is_the_papers_arm(tmp_path: Path) -> None:
    """Both files were written from the print by themselves; the chain's rows are sums of two flanges."""
    robot, printed = robot_of(chain(*PRINTED), tmp_path), load_robot("modular7")
    assert robot.joint_names == printed.joint_names
    assert robot.standard_parameters is not None
    assert printed.standard_parameters is not None
    np.testing.assert_allclose(robot.standard_parameters, printed.standard_parameters, atol=1e-12)
    for mine, paper in zip(robot.joints, printed.joints, strict=True):
        np.testing.assert_allclose(mine.placement[0], paper.placement[0], atol=1e-15)
        np.testing.assert_allclose(mine.placement[1], paper.placement[1], atol=1e-15)
    for limits in ("position_limits", "velocity_limits", "acceleration_limits", "torque_limits"):
        np.testing.assert_array_equal(getattr(robot, limits), getattr(printed, limits))
    assert robot.drives == printed.drives
    assert robot.gravity == printed.gravity
    assert robot.warnings == ()


def test_every_module_makes_an_arm_on_its_own(tmp_path: Path) -> None:
    for name, kind in module_types().items():
        robot = robot_of(chain(name), tmp_path)
        assert robot.n_joints == 1
        assert robot.joints[0].torque_limit == kind.joint["torque_Nm"]
        assert robot.warnings == ()


def test_a_row_reaches_from_flange_to_flange(tmp_path: Path) -> None:
    """By hand: the fork's axis is turned round 170 mm aside; the next module's frame is 110.5 mm from its flange."""
    turn = robot_of(chain("type2.fork", "type2.turn"), tmp_path).joints[1]
    # alpha 180, a 170, theta -90, d -90.5 + 110.5 = 20: z points the other way.
    np.testing.assert_allclose(turn.placement[1], [0.170, 0.0, -0.020], atol=1e-15)
    np.testing.assert_allclose(turn.placement[0], [[0, 1, 0], [1, 0, 0], [0, 0, -1]], atol=1e-15)


@pytest.mark.parametrize(
    ("types", "serials", "message"),
    [
        (("type1.arm", "type4.arm"), "ab", r"^j2 \(node 2\): module 'b' is of type 'type4.arm', which the catalogue has"
         r" not; it has type1.turn, type1.arm, .*config.json"),
        (("type1.turn", "type1.arm", "type2.fork"), "aba", r"^j3 \(node 3\): module 'a' answers at j1 \(node 1\), too"),
        (("type2.turn", "type1.arm"), "ab", r"^j2 \(node 2\): type1.arm has interface F146, and type2.turn of j1 "
         r"\(node 1\) carries F110, F90"),
        (("type1.arm", "type3.arm"), "ab", "type3.arm has interface F90, and type1.arm .* carries F146, F110"),
        (("type3.end", "type3.arm"), "ab", "type3.end of j1 .* carries no module; put the modules together"),
    ],
)  # fmt: skip
def test_modules_that_make_no_arm_are_named(types: tuple[str, ...], serials: str, message: str) -> None:
    with pytest.raises(RobotError, match=message):
        chain(*types, serials=serials)
