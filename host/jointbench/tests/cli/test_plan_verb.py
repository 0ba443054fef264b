"""`plan` as its user meets it: what it says, writes, draws and refuses."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from jointbench import extras
from jointbench.arrays import Array
from jointbench.cli import plan as verb
from jointbench.cli.console import Console
from jointbench.cli.main import main
from jointbench.cli.parser import build_parser
from jointbench.cli.plan import ALPHABET, Curve, braille, braille_plot
from jointbench.cli.plan_options import stance_prior_of
from jointbench.errors import ExcitationError
from jointbench.excitation import Excitation, Workspace, load_excitation, random_excitation
from jointbench.identification import Verdict, fit
from jointbench.identification.zero_moment_point import ReducedParameters, fit_stance, load_stance_estimate
from jointbench.model import load_robot, robot_digests
from jointbench.results.plan_evidence import SupportEvidence
from jointbench.tests.identification.zero_moment_point.simulated_stance import TRUTH, biped, simulated_stance
from jointbench.tests.results.recordings import PERIOD_S, recorded_run


def planned(tmp_path: Path, *more: str, robot: str = "rehab_arm") -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a random plan."""
    out, result = tmp_path / "plan.json", tmp_path / "result.json"
    code = main(["plan", robot, "--random", "--force", "--out", str(out), "--json", str(result), *more])
    return code, json.loads(result.read_text()) if result.exists() else {}


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a verb says, writes and refuses is the same without the picture, whose drawing takes a second."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)


undrawn = pytest.mark.usefixtures("without_matplotlib")


@undrawn
def test_a_short_search_writes_a_feasible_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plan.json"
    arguments = ["plan", "rehab_arm", "--objective", "e_optimal", "--starts", "1", "--time-limit", "3"]
    assert main([*arguments, "--out", str(out), "--json", str(tmp_path / "r.json")]) == 0

    said, result = capsys.readouterr(), json.loads((tmp_path / "r.json").read_text())
    assert "planning an excitation for rehab_arm: Fourier series of 5 harmonics, period 20 s" in said.out
    assert "least e optimal of the base regressor at 150 samples" in said.out
    assert "feasible at every time, between samples too" in said.out
    assert "\r" not in said.err  # no line is redrawn where there is no terminal
    plan = Excitation.from_dict(json.loads(out.read_text()))
    assert plan.objective == "e_optimal"
    assert result["objective_value"] == plan.objective_value
    assert {check["name"]: check["ok"] for check in result["checks"]} == {
        "limits_broken": True,
        "smallest_margin_between_samples": True,
        "smallest_joint_margin": True,
    }


@pytest.mark.slow  # the picture of twelve joints takes seconds
def test_a_motion_on_one_foot_says_how_it_stands_and_what_the_foot_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, result = tmp_path / "plan.json", tmp_path / "result.json"
    arguments = ["plan", "gorobot2", "--family", "single_support", "--seed", "2", "--period", "9.6", "--pace", "0.25"]
    more = ["--margin", "0.06,0.045", "--zmp-offset", "0.01,-0.002", "--out", str(out), "--json", str(result)]
    assert main([*arguments, *more]) == 0

    said, told = capsys.readouterr().out, json.loads(result.read_text())
    assert "planning a random motion on one foot for gorobot2" in said
    assert "in balance on r_foot: the predicted zero-moment point stays" in said
    told_by_forces = "least σ of each parameter from the foot's forces alone, 192 samples with 1.5 mm of noise"
    assert told_by_forces in " ".join(said.split())  # sentences are wrapped
    plan = Excitation.from_dict(json.loads(out.read_text()))
    assert plan.support is not None
    assert (plan.period, plan.seed) == (9.6, 2)
    assert (plan.support.margin, plan.support.zmp_offset) == ((0.06, 0.045), (0.01, -0.002))
    checks = {check["name"]: check for check in told["checks"]}
    assert all(check["ok"] for check in checks.values())
    assert checks["zmp_from_edge_of_sole"]["value"] == plan.support.distance
    assert set(told["support"]["sigma"]) == {
        f"{what}_{kind}" for what in ("lc", "m") for kind in ("trunk", "thigh", "shank", "foot")
    }
    assert (tmp_path / "plan.png").exists()


@undrawn
def test_the_tables_say_what_the_plan_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, result = planned(tmp_path, "--family", "ramped_fourier", "--harmonics", "1,2,4", "--ramp", "3", "--periods", "2")

    said = capsys.readouterr().out
    assert "Fourier series of harmonics 1, 2, 4, period 20 s, 2 times between ramps of 3 s; 46 s in all" in said
    robot = load_robot("rehab_arm")
    plan = Excitation.from_dict(json.loads((tmp_path / "plan.json").read_text()))
    q, dq, _ = plan.evaluate(np.linspace(0.0, plan.duration, 46_001))
    rows = [line.split() for line in said.splitlines() if line.startswith("  j")]
    for j, name in enumerate(robot.joint_names):
        position, peaks, *_ = (row for row in rows if row[0] == name)
        low, high = np.rad2deg([q[:, j].min(), q[:, j].max()])
        assert [float(word.replace("−", "-")) for word in (position[1], position[3])] == pytest.approx(
            [low, high], abs=0.06
        )  # one decimal is shown
        assert float(peaks[1]) == pytest.approx(np.rad2deg(np.abs(dq[:, j]).max()), rel=0.006)  # three digits are
        assert float(peaks[3]) == pytest.approx(np.rad2deg(robot.velocity_limits[j]))
        assert int(position[-1]) == plan.margins[j].reversals
    assert result["duration_s"] == 46.0


@undrawn
def test_positions_are_drawn_where_the_stream_has_the_dots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(tmp_path)
    assert "┤" in capsys.readouterr().out

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    assert planned(tmp_path)[0] == 0
    stream.seek(0)
    said = stream.read()
    assert "feasible at every time" in said
    assert "positions between" not in said


def test_the_picture_is_beside_the_plan_or_where_it_is_named(tmp_path: Path) -> None:
    _, result = planned(tmp_path, robot="modular7:1")  # a picture of one joint is soon drawn
    assert result["picture"] == str(tmp_path / "plan.png")
    assert matplotlib.image.imread(tmp_path / "plan.png").shape[1] > 1000

    _, result = planned(tmp_path, "--picture", str(tmp_path / "other.svg"), robot="modular7:1")
    assert (tmp_path / "other.svg").read_text().rstrip().endswith("</svg>")


@undrawn
def test_without_matplotlib_the_plan_is_written_and_the_way_to_a_picture_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = planned(tmp_path)

    assert (code, result["picture"]) == (0, None)
    assert "no picture: " in (said := capsys.readouterr().out)
    assert "pip install 'jointbench[report]'" in said
    assert (tmp_path / "plan.json").exists()
    assert planned(tmp_path, "--picture", str(tmp_path / "a.png"))[0] == 2  # asked for, so it is said before planning


@undrawn
def test_a_plan_that_breaks_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_large(*settings: Any, **more: Any) -> Excitation:
        plan = random_excitation(*settings, **more)
        return dataclasses.replace(plan, weights=3.0 * plan.weights)

    monkeypatch.setattr(verb, "random_excitation", too_large)
    code, result = planned(tmp_path)

    assert code == 1
    assert not result["certificate"]["feasible"]
    assert not next(check for check in result["checks"] if check["name"] == "limits_broken")["ok"]
    assert f"not feasible: {result['certificate']['violations'][0]}"[:60] in capsys.readouterr().out


@undrawn
def test_ctrl_c_keeps_the_best_so_far_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(robot: Any, **settings: Any) -> Excitation:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return random_excitation(robot)

    monkeypatch.setattr(verb, "plan_excitation", interrupted)
    result = tmp_path / "r.json"
    arguments = ["plan", "rehab_arm", "--out", str(tmp_path / "plan.json"), "--json", str(result)]
    before = signal.getsignal(signal.SIGINT)
    assert main(arguments) == 0
    assert "stopped by Ctrl-C: this is the best so far" in capsys.readouterr().out
    assert json.loads(result.read_text())["stopped_by_ctrl_c"] is True
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_anything_was_found_leaves_no_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(robot: Any, **settings: Any) -> Excitation:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    monkeypatch.setattr(verb, "plan_excitation", interrupted)
    assert main(["plan", "rehab_arm", "--out", str(tmp_path / "plan.json")]) == 130
    assert "no plan is written" in capsys.readouterr().out
    assert not (tmp_path / "plan.json").exists()


def test_the_progress_line_tells_the_best_and_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Console, "progress", lambda self, text, share=None: said.append(text))
    show = verb.progress_line(Console(), argparse.Namespace(objective=None, starts=None, time_limit=None))
    show(2, 31, 57.123456)
    show(0, 0, float("inf"))
    assert said[0] == "[#####               ] 0 s, start 3 of 8, step 31: best condition number 57.123"
    assert said[1].endswith("none yet")
    timed = verb.progress_line(Console(), argparse.Namespace(objective=None, starts=1000, time_limit=1e-9))
    timed(0, 1, 1.0)
    assert said[2].startswith("[####################] ")
    assert all(len(line) < 100 for line in said)


@undrawn
def test_a_table_and_boxes_are_kept_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = tmp_path / "cell.toml"
    workspace.write_text(
        'version = 1\ntable_mm = 0\nclearance_mm = 5\n[[points]]\nlink = "flange_and_tool"\nhighest_mm = { x = 300 }\n'
    )
    code, result = planned(tmp_path, "--workspace", str(workspace), robot="cobot6")

    assert code == 0
    assert "within its workspace: table at 0 m, 1 point in a box, 7 capsules kept 5 mm apart" in capsys.readouterr().out
    named = "highest x of point 'flange_and_tool'"
    assert result["distances_m"][named] >= 0.0
    assert result["certificate"]["margins"][named] >= 0.0


@undrawn
def test_capsules_are_kept_apart_without_being_asked_for(tmp_path: Path) -> None:
    _, result = planned(tmp_path, robot="cobot6")
    assert min(result["distances_m"].values()) >= 0.0
    assert any("capsules 'forearm'" in name for name in result["certificate"]["margins"])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of cobot6, fitted to a recording."""
    robot = load_robot("cobot6")
    fitted = fit(recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=1), 11, "fit"))
    return fitted.save(tmp_path_factory.mktemp("prior") / "model.json")


@undrawn
def test_noise_and_a_prior_judge_parameters_by_their_size(tmp_path: Path, model: Path) -> None:
    noise = ("--noise", ",".join(["0.1"] * 6))
    alone = planned(tmp_path, *noise, robot="cobot6")[1]["parameters"]
    told = planned(tmp_path, *noise, "--prior", str(model), robot="cobot6")[1]["parameters"]
    assert alone["judged_by"] == told["judged_by"] == "relative_sigma"
    assert any("j1.coulomb" in sentence for sentence in alone["assumptions"])  # the robot's file has no friction
    assert not any("no prior value" in sentence for sentence in told["assumptions"])


@undrawn
def test_torque_is_predicted_from_a_prior(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def share(*options: str) -> float:
        joints = planned(tmp_path, "--random", *options, robot="cobot6")[1]["joints"]
        return 1.0 - float(joints[5]["torque"])

    alone, told = share(), share("--prior", str(model))
    assert f"80% of torque, as {model} predicts it" in capsys.readouterr().out
    assert told > alone  # it knows the friction, which the robot's file does not


def test_a_prior_of_another_robot_is_refused(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(tmp_path, "--noise", "1", "--prior", str(model))[0] == 2
    assert "a model of robot 'cobot6', whose base parameters are not those of 'rehab_arm'" in capsys.readouterr().err


def estimate_file(tmp_path: Path, verdict: Verdict | None = None) -> Path:
    """An estimate of gorobot2 as `stance` writes it."""
    estimate = fit_stance(simulated_stance(duration=8.0), ReducedParameters(biped()), 26.8)
    verdict = verdict or Verdict("stance", "identified", "made up")
    return dataclasses.replace(estimate, verdict=verdict).save(tmp_path / "estimate.json")


def one_foot(*more: str) -> argparse.Namespace:
    return build_parser().parse_args(["plan", "gorobot2", "--family", "single_support", *more])


def test_a_motion_on_one_foot_is_balanced_with_an_estimate(tmp_path: Path) -> None:
    file = estimate_file(tmp_path)
    parameters = stance_prior_of(one_foot("--prior", str(file)), biped())
    np.testing.assert_array_equal(parameters, load_stance_estimate(file).standard_parameters)
    assert stance_prior_of(one_foot(), biped()) is None
    moved = dataclasses.replace(biped().joints[2], origin=(0.31, 0.0, 0.0))
    other = dataclasses.replace(biped(), joints=(*biped().joints[:2], moved, *biped().joints[3:]))
    with pytest.raises(ExcitationError, match="joints or feet are not where those of 'gorobot2' are"):
        stance_prior_of(one_foot("--prior", str(file)), other)


def test_a_refused_estimate_balances_nothing(tmp_path: Path) -> None:
    file = estimate_file(tmp_path, Verdict("stance", "refused", "made up"))
    with pytest.raises(ExcitationError, match=r"was refused \(made up\); record other motions"):
        stance_prior_of(one_foot("--prior", str(file)), biped())


@pytest.mark.slow  # a plan for a robot of twelve joints takes seconds
@undrawn
def test_the_predicted_balance_is_that_of_the_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reduced = ReducedParameters(biped())
    estimate = load_stance_estimate(estimate_file(tmp_path))
    heavier = dataclasses.replace(estimate, standard_parameters=reduced.standard(TRUTH)).save(tmp_path / "other.json")
    out = tmp_path / "plan.json"
    arguments = ["plan", "gorobot2", "--family", "single_support", "--period", "5.12", "--prior", str(heavier)]
    assert main([*arguments, "--out", str(out)]) == 0
    assert f"in balance as the masses of {heavier} predict it" in capsys.readouterr().out
    plan = Excitation.from_dict(json.loads(out.read_text()))
    assert plan.support is not None
    by_estimate, by_file = (
        SupportEvidence.of(biped(), plan, support).balance.room(support.margin).min()
        for support in (plan.support, dataclasses.replace(plan.support, standard_parameters=None))
    )
    assert by_estimate > -1e-3  # as tight as a plan is
    assert by_file < -5e-3  # the file's point is some 35 mm elsewhere


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ramp", "2"], "--ramp has no effect with --family fourier: it is for ramped_fourier"),
        (["--periods", "2"], "--periods has no effect with --family fourier"),
        (["--points", "4"], "it is for point_to_point"),
        (["--family", "point_to_point", "--harmonics", "5"], "it is for fourier and ramped_fourier"),
        (["--random", "--starts", "3"], "--starts has no effect with --random"),
        (["--random", "--time-limit", "3"], "--time-limit has no effect with --random"),
        (["--random", "--objective", "d_optimal"], "--objective has no effect with --random"),
        (["--workers", "2", "--scheduler", "tcp://a:1"], "leave one out"),
        (["--objective", "relative_sigma"], "needs --noise"),
        (["--pace", "0.2"], "--pace has no effect with --family fourier: it is for single_support"),
        (["--family", "single_support", "--random"], "--random has no effect with --family single_support"),
        (["--family", "single_support", "--starts", "3"], "--starts has no effect with --family single_support"),
        (["--family", "single_support", "--points", "3"], "--points has no effect with --family single_support"),
        (["--family", "single_support"], "robot 'rehab_arm' has no foot for a base"),
        (["--noise", "1,2"], "--noise has 2 numbers; give one, or 5, one for each of j1, j2, j3, j4, j5"),
        (["--noise", "-1", "--starts", "1"], "give standard deviations of torque above 0"),
        (["--harmonics", "1"], "at least 2 are needed"),
        (["--picture", "plan.gif"], "must end in .png, .svg or .pdf"),
        (["--out", "plan.png"], "cannot be both the plan"),
        (["--workspace", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["--workers", "0"], "workers = 0"),
        (["--samples", "3"], "samples"),
        (["--seed", "-1"], "--seed is -1; it must be 0 or above"),
        (["--family", "point_to_point", "--points", "-1"], "at least 1 way point is needed"),
        (["--random", "--noise", "-1"], "give standard deviations of torque above 0"),
        (["--random", "--samples", "8"], "at least 10 samples are needed"),
        (["--out", "."], "--out '.' is a folder, or no name"),
        (["--out", ""], "--out '' is a folder, or no name"),
        (["--picture", ""], "--picture '' is a folder, or no name"),
        (["--out", "nowhere/plan.json"], "there is no folder nowhere"),
        (["--picture", "nowhere/plan.png"], "there is no folder nowhere"),
    ],
)
def test_what_says_nothing_or_cannot_be_is_refused_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "rehab_arm", *options]) == 2

    said = capsys.readouterr().err
    assert said.startswith("jointbench plan: ")
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_two_tables_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = tmp_path / "cell.toml"
    cell.write_text("version = 1\ntable_mm = -30\n")
    assert planned(tmp_path, "--workspace", str(cell), "--table-height", "0", robot="cobot6")[0] == 2
    assert "has its table at -0.03 m; leave one out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [["--harmonics", "many"], ["--harmonics", ","], ["--noise", "1,x"], ["--margin", "0.05"]]
)
def test_mistyped_numbers_are_wrong_use(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "cobot6", *option])
    assert ended.value.code == 2
    assert repr(option[1]) in capsys.readouterr().err


@undrawn
def test_chosen_harmonics_reach_the_planner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def remember(plan: Callable[..., Excitation]) -> Callable[..., Excitation]:
        def call(robot: Any, **settings: Any) -> Excitation:
            asked.update(settings)
            return random_excitation(robot)

        return call

    monkeypatch.setattr(verb, "plan_excitation", remember(verb.plan_excitation))
    more = ["--harmonics", "1,3,5", "--noise", "0.5", "--starts", "3", "--workers", "2", "--time-limit", "9"]
    assert main(["plan", "rehab_arm", "--out", str(tmp_path / "p.json"), "--objective", "relative_sigma", *more]) == 0
    assert asked.pop("progress") is not None
    assert asked == {
        "family": "fourier",
        "harmonics": (1, 3, 5),
        "period": 20.0,
        "samples": 150,
        "objective": "relative_sigma",
        "noise": (0.5,) * 5,
        "prior": None,
        "workspace": Workspace(),
        "starts": 3,
        "workers": 2,
        "time_limit": 9.0,
        "seed": 0,
    }


def test_a_first_plan_may_use_a_share_of_speed_and_range(tmp_path: Path) -> None:
    """Within a third of the limits about home, and played on the robot as its file has it."""
    robot = load_robot("cobot6:2")
    assert planned(tmp_path, "--random", "--speed", "0.3", "--range", "0.25", robot="cobot6:2")[0] == 0
    plan = load_excitation(str(tmp_path / "plan.json"))
    q, dq, ddq = plan.evaluate(np.linspace(0.0, plan.duration, 2000))
    assert np.all(np.abs(dq) <= 0.3 * 0.95 * robot.velocity_limits)
    assert np.all(np.abs(ddq) <= 0.3 * 0.95 * robot.acceleration_limits)
    low, high = robot.position_limits.T
    assert np.all(q - plan.home <= 0.25 * 0.95 * (high - plan.home))
    assert np.all(plan.home - q <= 0.25 * 0.95 * (plan.home - low))
    assert plan.digests == robot_digests(robot)


@pytest.mark.parametrize("option", ["--speed", "--range"])
def test_a_share_of_nothing_is_refused(tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(tmp_path, "--random", option, "0", robot="cobot6:2")[0] == 2
    assert f"{option[2:]} = 0 must be a share of the robot's limits, above 0 and at most 1" in capsys.readouterr().err


def test_what_is_not_watched_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(tmp_path, "--random", robot="modular7:2")[0] == 0
    assert "no capsules: self-collision and table NOT checked" in capsys.readouterr().out
    plan = load_excitation(tmp_path / "plan.json")
    assert plan.not_checked == "no capsules: self-collision and table NOT checked"
    assert planned(tmp_path, "--random", robot="cobot6:3")[0] == 0
    said = capsys.readouterr().out
    assert "NOT checked" not in said
    assert "above a floor at its base, 4 capsules kept 20 mm apart" in said


BITS = [(0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)]


def dots(lines: list[str]) -> Array:
    """Which dots are lit, shape (4 * n_lines, 2 * n_characters)."""
    codes = np.array([[0 if c == " " else ord(c) - 0x2800 for c in line] for line in lines])
    return np.block([[np.where(codes[..., None] & BITS[r], 1, 0).reshape(len(lines), -1)] for r in range(4)]).reshape(
        4, len(lines), -1
    ).transpose(1, 0, 2).reshape(4 * len(lines), -1)  # fmt: skip


@pytest.mark.parametrize(("value", "row"), [(1.0, 0), (-1.0, 11), (0.01, 5), (-0.01, 6), (3.0, 0), (-3.0, 11)])
def test_a_level_is_one_row_of_dots_between_its_limits(value: float, row: int) -> None:
    lit = dots(braille(np.full(100, value), -1.0, 1.0, 20, 3))
    assert lit.shape == (12, 40)
    assert lit[row].all()
    assert lit.sum() == 40


def test_a_straight_line_falls_across_the_frame() -> None:
    lit = dots(braille(np.linspace(1.0, -1.0, 4000), -1.0, 1.0, 6, 3))
    # Each column joins on to the one before.
    assert [np.flatnonzero(column).tolist() for column in lit.T] == [[0], *([k - 1, k] for k in range(1, 12))]


@pytest.mark.parametrize("samples", [30, 121, 2000])
def test_the_line_is_whole_however_steep(samples: int) -> None:
    values = np.sign(np.sin(np.linspace(0.0, 20.0, samples)))
    lit = dots(braille(values, -1.0, 1.0, 60, 4)).astype(bool)
    assert lit.any(axis=0).all()
    for left, right in zip(lit.T[:-1], lit.T[1:], strict=True):
        assert (left & right).any()


def test_the_picture_fits_its_width_and_names_its_limits() -> None:
    time = np.linspace(0.0, 1.0, 500)
    curves = [
        Curve("j1", 100.0 * np.sin(7.0 * time), -150.0, 150.0, "°"),
        Curve("left_ankle_pitch", 3.0 * time, -5.0, 1200.0, " mm"),
    ]
    lines = braille_plot(curves, 12.8, width=80, height=3).split("\n")
    assert len(lines) == 7
    assert max(map(len, lines)) == 80
    assert lines[0].lstrip().startswith("j1")
    assert " 150° ┤" in lines[0]
    assert " −150° ┤" in lines[2]
    assert lines[3].startswith("  left_ankle_pitch  1200 mm ┤")
    assert lines[-1].endswith("─ 12.8 s")
    assert lines[-1].index("└") == lines[0].index("┤")


def test_the_alphabet_says_what_a_stream_must_have() -> None:
    drawn = braille_plot([Curve("j1", np.sin(np.linspace(0.0, 9.0, 300)), -1.0, 1.0, "°")], 20.0)
    block = {c for c in drawn if 0x2800 <= ord(c) <= 0x28FF}
    assert block
    assert all(c in ALPHABET or c.isascii() for c in set(drawn) - block)
