"""What `./run prove` holds a robot's proof to."""

from tools.prove import WANTED, checks_of, parser


def test_a_ratio_below_what_is_wanted_and_a_refusal_are_seen() -> None:
    good = {"proven": True, "ratio_pooled": 31.0, "ratio_worst": 21.0}
    assert all(check.ok for robot in WANTED for check in checks_of(robot, good))
    for wrong in ({"proven": False}, {"ratio_pooled": 9.9}, {"ratio_worst": 7.9}):
        for robot in WANTED:
            assert [check.ok for check in checks_of(robot, {**good, **wrong})].count(False) == 1


def test_all_four_robots_are_proven_by_default() -> None:
    assert parser().parse_args([]).only is None
    assert parser().parse_args(["--only", "cobot6"]).only == ["cobot6"]
    assert set(WANTED) == {"cobot6", "nursing_arm", "rehab_arm", "modular7"}
