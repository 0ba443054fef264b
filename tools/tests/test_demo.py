"""What `./run demo` takes and refuses, how it shows a paper beside ours, and the whole way on the ideal plant."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from hil_tests.link_helpers import record_wave, wave
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.kinds import UNIX
from jointbench import Model, Validation
from jointbench.bench import open_bench
from jointbench.checks import Check
from jointbench.cli import main as cli_main
from jointbench.cli.residual import gain_table
from jointbench.identification import Verdict, fit
from jointbench.identification.comparison import Comparison, compare
from jointbench.identification.residual import ResidualGain
from jointbench.identification.zero_moment_point import ReducedParameters, ZmpEstimate
from jointbench.model import load_robot
from jointbench.recording import open_run
from tools.demo import __main__ as verb
from tools.demo import chips
from tools.demo.__main__ import ROBOTS, main
from tools.demo.friction_experiment import JointFriction, friction_table
from tools.demo.gorobot2 import told_table
from tools.demo.harmonic_lines import harmonic_lines
from tools.demo.modular7 import JUDGED, OWN
from tools.demo.own_bench import joint_table
from tools.demo.playing import BENCHES
from tools.demo.story import WIDTH, PaperLine, Plant, Stage, Story, paper_text
from tools.papers import HEAD, section, sections_of, write_page

KEPT = PaperLine("RMS error", "1.7 N·m", "0.1 N·m", Check("rms", 72.8, ">=", 50.0, "%"))
BROKEN = PaperLine("base parameters", "36", "35", Check("base_parameters", 35, "==", 36))
FREE = PaperLine("friction R²", "0.931", "0.95")
LOST = Check("samples_lost", 0, "<=", 0, "samples")
IDENTIFIED = Verdict("model", "identified", "worst joint j2: torque error 4.1%")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "papers.md"


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


@pytest.mark.parametrize(
    "asked",
    [
        ["cobot6", "--bench", "mine.toml"],
        ["modular7", "--bench", "rp2040"],
        ["cobot6", "--bench", "rp2040", "--board", "qemu:"],
    ],
)
def test_with_a_robot_a_bench_is_of_chips_that_it_is_played_on(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked) == 2
    said = capsys.readouterr()
    assert "--bench rp2040, of cobot6" in said.err
    assert "planning" not in said.out


def test_missing_bench_file_is_told_before_any_planning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bench", "mine.toml"]) == 2
    said = capsys.readouterr()
    assert "mine.toml" in said.err
    assert "planning" not in said.out


def test_text_shows_what_is_wanted_and_marks_what_is_not_kept() -> None:
    text = paper_text([KEPT, BROKEN, FREE])
    assert text.splitlines()[:3] == ["  RMS error", "    paper  1.7 N·m", "    ours   0.1 N·m; wanted >= 50 %"]
    assert "    ours   35; wanted == 36 NO\n" in text
    assert text.endswith("    ours   0.95")


@pytest.mark.parametrize("robot", ROBOTS)
def test_what_each_paper_prints_fits_beside_ours_on_a_terminal(robot: str) -> None:
    """The lines are those of the last `./run papers`."""
    rows = [line.split(" | ") for line in sections_of(PAGE.read_text(encoding="utf-8"))[robot].splitlines()]
    lines = [
        PaperLine(row[0].removeprefix("| "), row[1], f"{row[-3]}; wanted {row[-1].removesuffix(' |')}", theirs=row[2])
        for row in [row if len(row) != 4 else [*row[:2], "–", row[2], "–", row[3]] for row in rows]
        if len(row) == 6
    ]
    assert len(lines) > 5
    widths = [len(line) for line in paper_text(lines).splitlines()]
    assert max(widths) <= WIDTH
    assert all(" ".join(line.ours.split()) in " ".join(paper_text([line]).split()) for line in lines)


def test_tables_of_the_demos_fit_on_a_terminal() -> None:
    """With figures as wide as they become."""
    tables: list[str] = []
    for robot in map(load_robot, ROBOTS):
        wide = np.full(robot.n_joints, 123.456)
        verdicts = [Verdict(name, "identified", "") for name in robot.joint_names]
        error = SimpleNamespace(rms=wide, relative=wide)
        judged: Any = SimpleNamespace(
            joint_names=robot.joint_names, error_all=error, relative=wide, joint_verdicts=verdicts
        )
        tables.append(joint_table(cast(Model, SimpleNamespace(error_all=error)), cast(Validation, judged)))
    law: Any = SimpleNamespace(law=SimpleNamespace(name="makkar+load"), r_squared=0.99)
    tables.append(friction_table({"j1": JointFriction("j1", law, law, 1.2345, 1.2345, law, law, law)}))
    gain: Any = SimpleNamespace(average=-12.345, verdict=SimpleNamespace(word="identified"))
    gains = {name: cast(ResidualGain, gain) for name in (OWN, JUDGED, "waypoints_long", "series_ramped")}
    tables.append(gain_table(gains, gains))
    reduced = ReducedParameters(load_robot("gorobot2"))
    values = np.where([name.startswith("lc_") for name in reduced.names], 0.27946, 12.3456)
    verdicts = [Verdict(name, "identified", "") for name in reduced.names]
    estimate: Any = SimpleNamespace(
        robot=reduced.robot, names=reduced.names, values=values, sigma=values, parameter_verdicts=verdicts
    )
    tables.append(told_table(dict.fromkeys(("torque", "paper", "ours"), cast(ZmpEstimate, estimate))))
    assert max(len(line) for table in tables for line in table.splitlines()) <= WIDTH


def said_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], story: Story, *arguments: str
) -> list[str]:
    """The last lines of a demo whose story is made up and took 53 s."""

    def told(_: str | Path, stage: Stage) -> Story:
        stage.console.say("picture: torques.png")
        return story

    times = iter((0.0, 53.0))
    monkeypatch.setattr(cli_main, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(verb, "tell", told)
    monkeypatch.setattr(verb, "tell_own", told)
    main([*arguments, "--out", "runs/mine"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4] == "53 s in all"
    return lines[-3:]


@pytest.mark.parametrize(
    ("arguments", "following"),
    [
        ([], "./run demo nursing_arm, or your own robot: docs/add_robot.md"),
        (["modular7", "--modules", "3"], "./run demo cobot6, or your own robot: docs/add_robot.md"),
        (["gorobot2"], "./run demo modular7, or your own biped: docs/biped.md"),
        (["--bench", "mine.toml"], "./run export runs/mine/model.json --out robot.urdf"),
    ],
)
def test_last_are_verdict_report_and_what_is_next(
    arguments: list[str], following: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = {"report": "runs/mine/report.html", "picture": "runs/mine/stance.png"}
    story = Story("E", (KEPT,), (LOST,), fields, refused=False, verdict=IDENTIFIED)
    assert said_last(monkeypatch, capsys, story, *arguments) == [
        "verdict: identified (worst joint j2: torque error 4.1%)",
        "report: runs/mine/report.html",
        f"next: {following}",
    ]
    for page in (word for word in following.split() if word.startswith("docs/")):
        assert (PAGE.parents[1] / page).is_file()


def test_a_verdict_is_not_said_without_what_speaks_against_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story("E", (BROKEN,), (LOST,), {"picture": "stance.png"}, refused=True, verdict=IDENTIFIED)
    verdict, picture, following = said_last(monkeypatch, capsys, story)
    assert verdict.endswith("4.1%), but NO: something was refused, see above, base_parameters")
    assert picture == "picture: stance.png"
    assert following.startswith("next: docs/troubleshooting.md")


def test_story_counts_each_check_once() -> None:
    story = Story("A", (KEPT, FREE, BROKEN), (LOST,), {}, refused=False)
    assert [check.name for check in story.all_checks] == ["rms", "base_parameters", "samples_lost"]


def test_page_puts_sections_in_order_and_leaves_those_of_other_robots(tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    story = Story("E · somebody, 2023", (KEPT, FREE), (LOST,), {}, refused=False, assumed=("Link masses.",))
    write_page(page, {"cobot6": section("cobot6", "./run demo cobot6", story)})
    alone = sections_of(page.read_text(encoding="utf-8"))["cobot6"]
    assert "| RMS error | 1.7 N·m | – | 0.1 N·m | – | >= 50 % |" in alone
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

    # These gears are stiff and lose nothing with load: there is nothing for the published model to gain, and system E
    # must say so. What friction with memory gains is how sharply the plant's Coulomb friction turns: that is rest's.
    runs = [open_run(tmp_path / "demo" / name) for name in ("excitation", "verification")]
    friction = {"coulomb": 1.0, "viscous": 1.0, "load": 0.0}
    truth = {"stiffness": 7000.0, "rotor_inertia": 0.2, "current_noise": 0.1, "friction": friction}
    _, fields = harmonic_lines(runs[0], runs[1], dict.fromkeys(runs[0].robot.joint_names, truth))
    for errors in fields["harmonic_rms"].values():
        rms = {
            (way, rows): np.sqrt(np.mean(np.square(list(errors[way][rows].values()))))
            for way in ("simplified", "exact", "memory")
            for rows in ("all", "moving")
        }
        assert rms["exact", "all"] > 0.95 * rms["simplified", "all"]
        assert rms["memory", "moving"] > 0.4 * rms["simplified", "moving"]
        assert rms["memory", "all"] < 0.2 * rms["simplified", "all"]


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


def compared(*in_sigma: float) -> Comparison:
    """A comparison with these differences; infinite: not told by both."""
    told = np.isfinite(in_sigma)
    values, sigma = np.where(told, in_sigma, 0.0), np.where(told, 1.0, np.inf)
    return cast(Comparison, SimpleNamespace(sigma=sigma, in_sigma=values))


def arm(folder: Path, joints: int) -> Path:
    """A bench of the first joints of an arm."""
    path = write_bench_file(folder, *joints * [None])
    path.write_text(path.read_text().replace('"cobot6"', f'"cobot6:{joints}"'))
    return path


@pytest.mark.parametrize(("plant", "far"), [("harmonic", 1), ("ideal", 3)])
def test_too_many_parameters_that_are_far_or_told_by_one_alone_are_a_no(plant: Plant, far: int) -> None:
    """Of 20, one may be far where noise alone makes the error bars."""
    near = (20 - far) * [-1.99]
    told, within = chips.comparison_checks(compared(*near, *(far - 1) * [2.01], 0.0, np.inf), plant)
    assert (told.ok, within.ok) == (True, True)
    told, within = chips.comparison_checks(compared(*near, *far * [2.01], *21 * [np.inf]), plant)
    assert (told.ok, within.ok) == (True, False)
    told, within = chips.comparison_checks(compared(0.0, *3 * [np.inf]), plant)
    assert (told.ok, within.ok) == (False, True)


@pytest.mark.slow
def test_models_of_boards_with_other_zeros_are_compared_at_the_same(tmp_path: Path) -> None:
    with (
        virtual_bench(arm(tmp_path, 1), "ideal", seed=3, out=tmp_path / "sim") as live,
        open_bench(live) as bench,
    ):
        bench.connect()
        bench.configure()
        (board,) = bench.boards
        motion = wave(bench, way=0.3)
        first = record_wave(bench, tmp_path / "first", motion=motion)
        assert board.facts is not None
        board.write_register("current.zero", board.facts.registers["current.zero"] + 300)
        other = record_wave(bench, tmp_path / "other", motion=motion)
    models = fit(first), fit(other)
    apart = compare(*models)
    at = apart.names.index("j1.offset")
    per_count = models[0].robot.drives[0].torque_per_current * 1e-9 * board.facts.registers["current.scale"]
    assert apart.difference[at] == pytest.approx(-300 * per_count, abs=4.0 * apart.sigma[at])
    assert abs(apart.in_sigma[at]) > 10.0
    at_one_zero = compare(chips.with_zeros_of(models[0], first, other), models[1])
    assert abs(at_one_zero.in_sigma[at]) < 4.0


@pytest.mark.slow
def test_boards_of_one_kind_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(chips.KINDS, "rp2040", UNIX)
    monkeypatch.setattr(chips, "PERIOD", 3.2)
    monkeypatch.setattr(chips, "BENCH", arm(tmp_path, 2))
    result = tmp_path / "result.json"
    out = tmp_path / "demo"
    assert verb.main(["cobot6", "--bench", "rp2040", "--out", str(out), "--json", str(result)]) == 0
    said = json.loads(result.read_text(encoding="utf-8"))
    checks = {check["name"]: check for check in said["checks"]}
    assert all(check["ok"] for check in checks.values())
    assert checks["parameters_within_2_sigma"]["limit"] == 1.0
    assert checks["parameters_told_by_both"]["value"] == len(said["in_sigma"])
    assert 0.01 < said["largest_in_sigma"] <= 2.0  # their noise differs
    assert (out / "rp2040" / "excitation").is_dir()
    assert (out / "unix" / "verification").is_dir()
