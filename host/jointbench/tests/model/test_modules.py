"""The catalogue of modules, and the robots that chains of them are."""

from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import RobotError
from jointbench.model import Module, Robot, assemble, load_robot, module_types

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
