"""What `./run demo` takes and refuses, how it shows a paper beside ours, and the whole way on the ideal plant."""

import json
from pathlib import Path

import pytest

from hil_tests.virtual_bench import virtual_bench
from jointbench.cli.result import Check
from jointbench.recording import open_run
from tools.demo.harmonic_lines import harmonic_lines
from tools.demo.page import HEAD, section, sections_of, write_page
from tools.demo.playing import BENCHES
from tools.demo.stories import ROBOTS
from tools.demo.story import PaperLine, Story, paper_table
from tools.demo.verb import main

KEPT = PaperLine("RMS error", "1.7 N·m", "0.1 N·m", Check("rms", 72.8, ">=", 50.0, "%"))
BROKEN = PaperLine("base parameters", "36", "35", Check("base_parameters", 35, "==", 36))
FREE = PaperLine("friction R²", "0.931", "0.95")
LOST = Check("samples_lost", 0, "<=", 0, "samples")


def test_robot_without_demo_is_named_with_those_that_have_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cobot7", "--out", str(tmp_path / "demo")]) == 2
    said = capsys.readouterr().err
    assert "cobot7" in said
    assert all(robot in said for robot in ROBOTS)
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("robot", [[], ["rehab_arm"]])
def test_modules_of_a_robot_that_has_none_are_refused(robot: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*robot, "--modules", "3"]) == 2
    assert "modular7" in capsys.readouterr().err


def test_a_robot_and_a_bench_of_ones_own_exclude_each_other() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["cobot6", "--bench", "mine.toml"])
    assert stopped.value.code == 2


def test_missing_bench_file_is_told_before_any_planning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bench", "mine.toml"]) == 2
    said = capsys.readouterr()
    assert "mine.toml" in said.err
    assert "planning" not in said.out


def test_table_shows_what_is_wanted_and_marks_what_is_not_kept() -> None:
    kept, broken, free = paper_table([KEPT, BROKEN, FREE]).splitlines()[2:]
    assert kept.endswith(">= 50 %")
    assert broken.endswith("== 36 NO")
    assert free.endswith("0.95")


def test_story_counts_each_check_once() -> None:
    story = Story("A", (KEPT, FREE, BROKEN), (LOST,), {}, refused=False)
    assert [check.name for check in story.all_checks] == ["rms", "base_parameters", "samples_lost"]


def test_page_puts_sections_in_order_and_leaves_those_of_other_robots(tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    story = Story("E · somebody, 2023", (KEPT, FREE), (LOST,), {}, refused=False, assumed=("Link masses.",))
    write_page(page, {"cobot6": section("cobot6", "./run demo cobot6", story)})
    alone = sections_of(page.read_text(encoding="utf-8"))["cobot6"]
    assert "| RMS error | 1.7 N·m | 0.1 N·m | >= 50 % |" in alone
    assert "- Link masses." in alone

    write_page(page, {"nursing_arm": section("nursing_arm", "./run demo nursing_arm", story)})
    both = page.read_text(encoding="utf-8")
    assert both.startswith(HEAD)
    assert list(sections_of(both)) == ["nursing_arm", "cobot6"]
    assert sections_of(both)["cobot6"] == alone

    write_page(page, sections_of(both))
    assert page.read_text(encoding="utf-8") == both


@pytest.mark.slow
def test_demo_on_joints_of_the_models_own_form(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    code = main(["--plant", "ideal", "--seed", "0", "--out", str(tmp_path / "demo"), "--json", str(result)])

    said = json.loads(result.read_text())
    assert {check["name"]: check["ok"] for check in said["checks"]} == {
        "samples_lost": True,
        "parameters_within_2_sigma": True,
        "verification_relative_j1_to_j5": True,
    }
    assert code == 0
    # Six boards, two periods of 20 s and one more, sampled at 1 kHz.
    assert said["samples_received"] >= 6 * 60_000
    assert set(said["fit_rms"]) == set(said["verification_rms"]) == {f"j{k}" for k in range(1, 7)}
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000

    # These gears are stiff and lose nothing with load: there is nothing to gain, and system E must say so.
    runs = [open_run(tmp_path / "demo" / name) for name in ("excitation", "verification")]
    lines, _ = harmonic_lines(runs[0], runs[1], {joint: {"stiffness": 7000.0} for joint in ("j5", "j6")})
    assert {line.check.name for line in lines if line.check and not line.check.ok} >= {
        "rms_reduction_excitation",
        "rms_reduction_verification",
    }


@pytest.mark.slow
def test_demo_on_a_bench_of_ones_own(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    with virtual_bench(BENCHES / "modular7.toml", out=tmp_path / "bench", modules=3) as live:
        code = main(["--bench", str(live), "--out", str(tmp_path / "demo"), "--json", str(result)])
    said = json.loads(result.read_text())
    assert code == 0
    assert said["plant"] == said["board"] == "real"
    assert {check["name"]: check["ok"] for check in said["checks"]} == {"samples_lost": True}
    assert said["samples_received"] >= 3 * 60_000
    assert (tmp_path / "demo" / "report.html").is_file()
