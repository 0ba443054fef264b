"""`./run papers`: what it runs, writes and says, on stories that are made up; and what docs/papers.md must hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from jointbench.checks import Check
from jointbench.errors import FitError
from tools import papers
from tools.demo.__main__ import ROBOTS
from tools.demo.story import PaperLine, Stage, Story, merged_cell, merged_check
from tools.papers import HEAD, sections_of

LIMITS = {
    "nursing_arm": (*4 * ("<= 2 %",), "== 36", *6 * ("<= 5 %",)),
    "gorobot2": ("<= 0.5", "<= 1.3", ">= 7 parameters"),
    "nursing_dual": ("== 12", "<= 1 ticks", "== 72", "<= 5 %", "<= 5 %"),
    "rehab_arm": ("<= 5 %",),
    "modular7": (">= 90 %", ">= 60 %", ">= 60 %"),
    "cobot6": (*2 * (">= 90 %", ">= 85 %"), ">= 60 %", ">= 50 %", "<= 3 σ", "<= 3 σ"),
}
"""What the papers' quantities are held to, whatever came out."""

MISSED = {"nursing_arm": ("the same, j5, ours",)}
"""Quantities that do not keep theirs; what bounds them stands in the row and under the table."""


def tell(robot: str, stage: Stage) -> Story:
    """A story in no time: modular7 breaks its limit, nursing_dual cannot be told."""
    assert stage.out.name.startswith(robot)
    assert robot in stage.command
    if robot == "nursing_dual":
        raise FitError("no torque was recorded")
    gain = Check("gain", 10.0 if robot == "modular7" else 95.0, ">=", 90.0, "%")
    line = PaperLine("gain", "33.57 %", f"{gain.value:g} % with seed {stage.seed}", gain)
    return Story(f"a paper on {robot}", (line,), (Check("samples_lost", 0, "<=", 0),), {"seen": robot}, refused=False)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page to write, with every robot's story made up."""
    monkeypatch.setattr(papers, "tell", tell)
    return tmp_path / "papers.md"


def run(page: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and what JSON says."""
    result = page.with_suffix(".json")
    code = papers.main([*options, "--page", str(page), "--out", str(page.parent / "out"), "--json", str(result)])
    return code, json.loads(result.read_text(encoding="utf-8"))


def test_every_robot_is_told_though_one_cannot_be(page: Path) -> None:
    code, said = run(page)
    assert code == 1
    assert list(said["robots"]) == list(ROBOTS)
    assert said["robots"]["nursing_dual"] == {"error": "no torque was recorded"}
    assert said["robots"]["cobot6"]["seen"] == "cobot6"
    assert [check["name"] for check in said["checks"] if not check["ok"]] == ["modular7: gain"]
    assert len(said["checks"]) == 2 * (len(ROBOTS) - 1)
    sections = sections_of(page.read_text(encoding="utf-8"))
    assert tuple(sections) == ROBOTS
    assert "NO: no torque was recorded" in sections["nursing_dual"]


def test_only_one_robot_is_run_and_its_section_written_anew(page: Path) -> None:
    run(page)
    before = sections_of(page.read_text(encoding="utf-8"))
    code, said = run(page, "--only", "cobot6", "--seed", "3")
    after = sections_of(page.read_text(encoding="utf-8"))
    assert code == 0
    assert list(said["robots"]) == ["cobot6"]
    assert "with seed 3" in after["cobot6"]
    assert {robot: text for robot, text in after.items() if robot != "cobot6"} == {
        robot: text for robot, text in before.items() if robot != "cobot6"
    }


def test_seeds_are_one_section_with_their_spread_and_the_worst_of_them_counts(page: Path) -> None:
    def of_seed(robot: str, stage: Stage) -> Story:
        assert stage.whole
        gain = Check("gain", 95.0 - 3.0 * stage.seed, ">=", 90.0, "%")
        line = PaperLine("gain", "33.57 %", f"{gain.value:.1f} %", gain, theirs=f"{stage.seed + 0.5:.2f} N·m")
        return Story(robot, (line,), (Check("samples_lost", 0, "<=", 0),), {}, refused=False)

    papers.tell = of_seed  # the fixture puts it back
    code, said = run(page, "--only", "cobot6", "--seeds", "3")
    section = sections_of(page.read_text(encoding="utf-8"))["cobot6"]
    assert code == 1
    assert list(said["robots"]["cobot6"]["seeds"]) == ["0", "1", "2"]
    assert "| 1.50 [0.50 … 2.50] N·m | 92.0 [89.0 … 95.0] %; not kept by 1 of 3 seeds | – | >= 90 % NO |" in section
    assert [check["ok"] for check in said["checks"]] == [False, True]
    assert run(page, "--only", "cobot6", "--seeds", "2")[0] == 0


def test_a_seed_that_cannot_be_told_is_said(page: Path) -> None:
    def second_fails(robot: str, stage: Stage) -> Story:
        if stage.seed == 1:
            raise FitError("no torque was recorded")
        return tell(robot, stage)

    papers.tell = second_fails
    code, _ = run(page, "--only", "cobot6", "--seeds", "2")
    assert code == 1
    assert "NO: seed 1 could not be told: no torque was recorded" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["0", "-1", "two"])
def test_no_seed_is_no_page(page: Path, text: str) -> None:
    with pytest.raises(SystemExit):
        run(page, "--seeds", text)


def test_cells_of_seeds_keep_their_words_and_say_where_these_differ() -> None:
    assert merged_cell(["–", "–"]) == "–"
    assert merged_cell(["0.2 → 0.1 N·m (−50.0 %)", "0.4 → 0.1 N·m (−75.0 %)", "0.3 → 0.1 N·m (−66.7 %)"]) == (
        "0.3 [0.2 … 0.4] → 0.1 N·m (−66.7 [−75.0 … −50.0] %)"
    )
    assert merged_cell(["0.1 refused", "0.1 0.2", "0.1 0.4"]) == (
        "0.1 refused (1 of 3 seeds); 0.1 0.3 [0.2 … 0.4] (2 of 3 seeds)"
    )


@pytest.mark.parametrize(("relation", "worst"), [(">=", 1.0), ("<=", 5.0), ("==", 1.0)])
def test_of_seeds_the_worst_check_stands(relation: Any, worst: float) -> None:
    checks = [Check("c", value, relation, 4.0) for value in (4.0, 1.0, 5.0)]
    assert merged_check(checks).value == worst


def test_a_verdict_of_no_is_exit_code_1(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers, "tell", lambda robot, stage: Story(robot, (), (), {}, refused=True))
    assert run(page, "--only", "cobot6")[0] == 1


def test_page_in_the_repository_has_every_robot_and_keeps_every_limit() -> None:
    text = papers.PAGE.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    sections = sections_of(text)
    assert tuple(sections) == ROBOTS
    for robot, limits in LIMITS.items():
        rows = [line.split(" | ") for line in sections[robot].splitlines() if line.startswith("| ")]
        wanted = [row[-1].removesuffix(" |").strip() for row in rows[2:]]
        missed = [row[0].removeprefix("| ") for row in rows[2:] if row[-1].removesuffix(" |").strip().endswith("NO")]
        assert set(missed) <= set(MISSED.get(robot, ()))
        wanted = [limit.removesuffix(" NO") for limit in wanted]
        for limit in set(limits):
            assert wanted.count(limit) >= limits.count(limit), f"{robot} is to be held to {limit}"
        assert "samples_lost: 0 samples (wanted <= 0 samples)" in sections[robot]
