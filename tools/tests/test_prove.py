"""What `./run prove` holds a robot's proof to, and an arm of modules from its boards' words to its proof."""

from pathlib import Path

import pytest

from jointbench.cli.console import Console
from tools.prove import PRESLIDING, WANTED, checks_of, parser, prove_modules, same_verdict, wanted_of


def test_a_ratio_below_what_is_wanted_and_a_refusal_are_seen() -> None:
    good = {"proven": True, "ratio_pooled": 31.0, "ratio_worst": 21.0}
    assert all(check.ok for robot in WANTED for check in checks_of(robot, good, WANTED[robot]))
    for wrong in ({"proven": False}, {"ratio_pooled": 9.9}, {"ratio_worst": 7.9}):
        for robot in WANTED:
            assert [check.ok for check in checks_of(robot, {**good, **wrong}, WANTED[robot])].count(False) == 1


def test_all_robots_are_proven_by_default() -> None:
    assert parser().parse_args([]).only is None
    assert parser().parse_args(["--only", "cobot6"]).only == ["cobot6"]
    assert set(WANTED) == {"cobot6", "nursing_arm", "rehab_arm", "modular7", "modules"}


def test_less_is_wanted_where_friction_turns_its_sign_over_distance() -> None:
    assert wanted_of("cobot6", "presliding") == PRESLIDING
    assert wanted_of("cobot6", "harmonic") == WANTED["cobot6"]


@pytest.mark.parametrize(
    ("proven", "fails", "wrong"),
    [(True, True, []), (True, False, [1]), (False, True, [0, 2]), (False, False, [0, 1, 2])],
)
def test_verdicts_on_chips_that_differ_are_seen(proven: bool, fails: bool, wrong: list[int]) -> None:
    beside = {"proven": True, "controls": {"torque": {"fails": True}, "sign": {"fails": True}}}
    chips = {"proven": proven, "controls": {"torque": {"fails": True}, "sign": {"fails": fails}}}
    assert [k for k, check in enumerate(same_verdict(beside, chips)) if not check.ok] == wrong


@pytest.mark.slow
def test_modules_are_assembled_identified_and_proven_in_one_go(tmp_path: Path) -> None:
    """Five short runs after the fitted one, and no wrong feed-forward, which `./run prove --only modules` has."""
    proof = prove_modules(tmp_path, Console(), plant="ideal", seed=0, period=4.0, controls=False)
    assert proof["ratio_worst"] > 10.0  # 21; 0.8 of the torque reaches 5
    # So short a motion is fast: linear between knots, a feed-forward leaves up to 5 % of its torque, which may be more
    # than is allowed. 0.8 of the torque would leave 20 %.
    assert all(joint["share"] < 0.08 for joint in proof["joints"].values())
    assert (tmp_path / "robot.toml").read_text(encoding="utf-8").count("[[joints]]") == 4
    assert (tmp_path / "proof.html").is_file()
