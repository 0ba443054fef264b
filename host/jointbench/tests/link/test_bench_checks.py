"""Boards that are not those of the robot are refused by name."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from jointbench.errors import BenchFileError, ConfigurationDiffers
from jointbench.link.bench_checks import check_boards, check_feet, check_joints
from jointbench.link.bench_file import BenchFile, BenchTerms, BoardEntry
from jointbench.link.identity import Facts
from jointbench.robot import load_robot
from jointbench.tests.link.wire import DEFAULTS

BIPED = load_robot("gorobot2")
FOOT = {**DEFAULTS, "board.node": 13, "board.channels": 0b11110000000}
JOINTS = tuple(BoardEntry(node, joint, "/dev/A", 921600) for node, joint in enumerate(BIPED.joint_names, start=1))


@dataclass
class Board:
    joint: str
    node: int


def bench(*feet: str) -> BenchFile:
    entries = (BoardEntry(13 + k, foot, "/dev/A", 921600, on_foot=True) for k, foot in enumerate(feet))
    return BenchFile("lab", "gorobot2", BenchTerms(), None, (*JOINTS, *entries), {}, {}, False, 1, Path("lab.toml"))


@pytest.mark.parametrize("feet", [(), ("r_foot",), ("l_foot", "r_foot")])
def test_feet_may_have_boards(feet: tuple[str, ...]) -> None:
    check_joints(bench(*feet), BIPED)


def test_a_foot_that_is_none_is_refused() -> None:
    with pytest.raises(BenchFileError, match="has a board for foot 'hoof' of 'gorobot2'; its feet: r_foot, l_foot"):
        check_joints(bench("hoof"), BIPED)
    arm = replace(bench(), boards=(BoardEntry(1, "r_foot", "/dev/A", 921600, on_foot=True),))
    with pytest.raises(BenchFileError, match="has a board for foot 'r_foot' of 'cobot6'; it has none"):
        check_joints(arm, load_robot("cobot6"))


def test_a_foot_is_no_joint() -> None:
    with pytest.raises(BenchFileError, match=r"has boards for r_ankle_roll.* needs one each for r_ankle_pitch, "):
        check_joints(replace(bench("r_foot"), boards=bench("r_foot").boards[1:]), BIPED)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"board.channels": 0b11110000001}, "drives a motor .*, the bench file has it read a foot's sensors"),
        ({"board.channels": 0b01110000000}, r"does not measure foot_force_4 \(board\.channels\); a foot's board reads"),
        ({"board.node": 14}, "is node 14 by its own register"),
        ({"board.tick_period": 500}, "board.tick_period = 500, the first board has 1000; they must be equal"),
    ],
)
def test_a_foots_board_must_read_its_sensors(facts: dict[str, int], said: str) -> None:
    boards = (Board("r_foot", 13),)
    check_feet(boards, (Facts(FOOT),), Facts(DEFAULTS))  # type: ignore[arg-type]  # a board as far as it is looked at
    with pytest.raises(ConfigurationDiffers, match=rf"^r_foot \(node 13\): {said}"):
        check_feet(boards, (Facts({**FOOT, **facts}),), Facts(DEFAULTS))  # type: ignore[arg-type]  # a board as far as it is looked at


def test_a_joints_board_must_not() -> None:
    arm = load_robot("cobot6:1")
    boards, facts = (Board("j1", 1),), {**DEFAULTS, "board.node": 1}
    check_boards(arm, boards, (Facts(facts),))  # type: ignore[arg-type]  # a board as far as it is looked at
    with pytest.raises(ConfigurationDiffers, match=r"^j1 \(node 1\): reads a foot's sensors \(board\.channels\)"):
        check_boards(arm, boards, (Facts({**facts, "board.channels": 0x8FF}),))  # type: ignore[arg-type]  # a board as far as it is looked at
