"""`jointbench fit` as its user meets it: what it takes, what it says, where the model is."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli import fit as verb
from jointbench.cli import fit_options
from jointbench.cli.fit import apart_text, is_fleet
from jointbench.cli.fit_options import asked_friction
from jointbench.cli.main import main
from jointbench.cli.parser import build_parser
from jointbench.errors import FitError
from jointbench.excitation import random_excitation
from jointbench.identification import fit, load_model
from jointbench.identification.random_effects import Family
from jointbench.model import load_robot
from jointbench.recording import Run, save_samples
from jointbench.results.summary import parameter_groups, parameter_note
from jointbench.tests.identification.friction.law_runs import law_run, stribeck
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.results.recordings import PERIOD_S, recorded_run

ARM = arm(2)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of two runs, of folders that are there."""
    runs: dict[str, Run] = {}
    for seed in (1, 2):
        folder = tmp_path / f"run{seed}"
        folder.mkdir()
        runs[str(folder)] = synthetic_run(ARM, motion_seed=seed, noise_seed=seed)
    monkeypatch.setattr(verb, "open_run", lambda name: runs[name])
    return list(runs)


def test_one_run_one_model(recorded: list[str], capsys):
    assert main(["fit", recorded[0], "--json", "-"]) == 0

    said = capsys.readouterr()
    told = json.loads(said.out)
    assert Path(told["model"]) == Path(recorded[0]) / "model.json"
    assert told["estimator"] == {"name": "wls", "options": {}, "figures": {}}
    assert told["physical"]["word"] == "identified"
    assert told["delays"][0]["source"] == "given"
    assert told["rows"]["j1"] > 100
    assert told["parameters"]["j1.coulomb"]["verdict"] == "identified"
    assert "delay: given, the boards' filters are known" in said.err
    assert "physical: identified" in said.err
    assert f"model: {told['model']}" in said.err


def test_of_a_run_s_model_the_one_before_is_kept(recorded: list[str], capsys):
    for estimator in ("wls", "ols"):
        assert main(["fit", recorded[0], "--estimator", estimator]) == 0
    kept = Path(recorded[0]) / "model-1.json"
    assert f"the earlier file is kept as {kept}" in capsys.readouterr().out
    assert load_model(kept).estimator == "wls"
    assert load_model(kept.with_name("model.json")).estimator == "ols"


def test_the_estimator_and_the_rows_by_options(recorded: list[str], tmp_path: Path, capsys):
    out = tmp_path / "robust.json"
    arguments = ["--estimator", "irls", "--option", "loss=bisquare", "--cutoff-Hz", "25", "--delay", "0.001"]
    assert main(["fit", recorded[0], *arguments, "--interval", "0,8", "--out", str(out)]) == 0

    model = load_model(out)
    assert (model.estimator, model.options) == ("irls", {"loss": "bisquare", "tuning": None})
    assert model.settings.cutoff_Hz == 25.0
    assert model.settings.interval == (0.0, 8.0)
    assert np.all(model.delay.seconds == 0.001)
    assert "rows that count less than half" in capsys.readouterr().out


def test_a_tolerance_is_in_the_error_bars_and_said(recorded: list[str], tmp_path: Path, capsys):
    out = tmp_path / "model.json"
    assert main(["fit", recorded[0], "--out", str(out), "--tolerance", "torque_constant_percent=2"]) == 0
    said = capsys.readouterr().out
    assert "calibration: σ contains standard deviations of zero 0.2°, torque constant 2 %" in said
    assert "of σ²: noise/what the model lacks/calibration" in said
    model = load_model(out)
    assert model.calibration is not None
    assert model.calibration.tolerances.torque_constant == 0.02
    assert main(["fit", recorded[0], "--out", str(out), "--force", "--tolerance", "none"]) == 0
    assert "calibration: counts as exact" in capsys.readouterr().out


def test_together_makes_one_model_of_all(recorded: list[str], tmp_path: Path):
    out = tmp_path / "all.json"
    assert main(["fit", "--together", *recorded, "--out", str(out)]) == 0
    assert len(load_model(out).provenance["runs"]) == 2


def test_several_runs_without_together_are_a_fleet(recorded: list[str], monkeypatch: pytest.MonkeyPatch):
    asked = {}

    def many(options, console, chosen):
        asked.update(chosen, runs=options.run)
        return verb.Result("fit")

    monkeypatch.setattr(verb, "fit_many", many)
    assert main(["fit", *recorded, "--estimator", "ols", "--torque", "joint"]) == 0
    wanted = {"runs": recorded, "estimator": "ols", "options": {}, "settings": {"torque": "joint"}, "friction": None}
    assert asked == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--option", "loss"], "'loss' must be NAME=VALUE"),
        (["--delay", "soon"], "'soon' must be seconds, such as 0.002, or estimate or estimate_per_joint"),
        (["--interval", "5,1"], "'5,1' must have FROM below TO"),
        (["--interval", "all"], "'all' must be FROM,TO in seconds"),
        (["--tolerance", "exact"], "'exact' must be KEY=NUMBER, such as zero_deg=0.5, or none"),
        (["--estimator", "magic"], "invalid choice: 'magic'"),
    ],
)
def test_wrong_options_are_named(arguments: list[str], message: str, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["fit", "run", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_option_of_the_estimator_is_one_sentence(recorded: list[str], capsys):
    assert main(["fit", recorded[0], "--estimator", "irls", "--option", "speed=3"]) == 2
    assert "estimator 'irls' has no option 'speed'; its options are loss, tuning" in capsys.readouterr().err


def test_nothing_said_is_nothing_asked():
    options = build_parser().parse_args(["fit", "run"])
    assert fit_options.fit_options(options) == (None, {}, {}, None)


def asked(*arguments: str) -> object:
    return asked_friction(build_parser().parse_args(["fit", "run", *arguments]))


def test_a_law_for_all_or_one_for_each() -> None:
    assert asked() is None
    assert asked("--friction", "choose") == "choose"
    assert asked("--friction", "j1=stribeck", "--friction", "j2=makkar+load") == {"j1": "stribeck", "j2": "makkar+load"}
    with pytest.raises(FitError, match="give one law for all joints, or JOINT=LAW for each"):
        asked("--friction", "stribeck", "--friction", "j2=makkar")


def test_a_fit_with_a_law_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    run = law_run(arm(2), {"j1": stribeck(6.0, 4.0, 9.0, 0.2)}, motion_seed=1, noise_seed=1)
    monkeypatch.setattr(verb, "open_run", lambda name: run)
    assert main(["fit", str(tmp_path), "--friction", "j1=stribeck", "--json", "-"]) == 0

    said = capsys.readouterr()
    law = json.loads(said.out)["friction"]["j1"]
    assert (law["law"], law["verdict"]) == ("stribeck", "identified")
    assert law["parameters"]["stribeck_speed"]["value"] == pytest.approx(0.2, rel=0.02)
    lines = [line.split() for line in said.err.splitlines()]
    assert ["j1.stribeck_speed", "rad/s"] in [line[:2] for line in lines]
    assert sum(line[:1] == ["j1.coulomb"] for line in lines) == 1  # the law's, not the base parameter's
    assert "friction of j1: identified (stribeck; as asked for)" in said.err

    model = load_model(tmp_path / "model.json")
    rows = next(group.rows for group in parameter_groups(model) if group.name == "j1")
    assert [row.lumped for row in rows if row.name == "coulomb"] == ["of friction law stribeck"]
    assert "and the 4 parameters of the joints' friction laws" in parameter_note(model)


def test_an_unknown_law_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    run = law_run(arm(2), {}, motion_seed=1, noise_seed=1, repeats=1)
    monkeypatch.setattr(verb, "open_run", lambda name: run)
    assert main(["fit", str(tmp_path), "--friction", "stiction"]) == 2
    assert "friction law 'stiction' is not known; a law is one of coulomb_viscous" in capsys.readouterr().err


UNITS = ("arm1", "arm2", "arm3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of cobot6, and one that is torn."""
    robot, folder = load_robot("cobot6"), tmp_path_factory.mktemp("runs")
    plan = random_excitation(robot, period=PERIOD_S, seed=1)
    for seed, name in enumerate(UNITS):
        save_samples(folder / name, recorded_run(robot, plan, seed, name).samples, {"robot": "cobot6"})
    (folder / "torn").mkdir()
    (folder / "torn" / "run.toml").write_text("version = ")
    return folder


# Neither the search for a cut-off nor the solution for calibrations says anything of a fleet; they are half of a fit.
PLAIN = ("--cutoff-Hz", "20", "--tolerance", "none")


def fitted(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any], str]:
    code = main(["fit", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {}, said.err


def test_every_run_has_its_model_and_the_torn_one_its_reason(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    options = (*PLAIN, "--out", tmp_path, "--csv", tmp_path / "spread.csv")
    code, found, said = fitted(capsys, f"{folder}/*", *options)

    assert code == 1  # one has no model
    assert "3 of 4 runs fitted" in said
    assert "no model of torn: " in said
    assert "3 units of cobot6" in said
    assert found["runs"]["torn"]["failure"].endswith("(at end of document)")
    assert found["runs"]["torn"]["model"] is None
    for name in UNITS:
        assert found["runs"][name]["verdict"] == "identified"
        assert load_model(found["runs"][name]["model"]).robot.name == "cobot6"
    (family,) = found["families"]
    assert family["units"] == list(UNITS)
    parameter = family["parameters"]["j1.coulomb"]
    assert parameter["mean"] == pytest.approx(5.0, abs=4.0 * parameter["mean_sigma"] + 0.01)
    assert sorted(parameter["values"]) == list(UNITS)
    assert parameter["lowest"] <= parameter["spread"] <= parameter["highest"]
    with (tmp_path / "spread.csv").open(encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert float(rows["j1.coulomb"]["mean"]) == parameter["mean"]
    assert rows["j1.coulomb"]["robot"] == "cobot6"
    assert set(rows) == set(family["parameters"])


def test_all_well_is_exit_code_zero(folder: Path, capsys: pytest.CaptureFixture[str]):
    code, found, _ = fitted(capsys, folder / "arm1", folder / "arm2", *PLAIN)
    assert code == 0
    assert found["runs"]["arm1"]["model"] == str(folder / "arm1" / "model.json")
    assert (folder / "arm2" / "model.json").is_file()


def test_the_settings_reach_every_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    _, found, _ = fitted(capsys, folder / "arm1", folder / "arm2", "--out", tmp_path, "--cutoff", "15")
    assert {load_model(each["model"]).settings.cutoff_Hz for each in found["runs"].values()} == {15.0}


def test_what_is_asked_for_wrongly_is_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    both = ("--jobs", "2", "--scheduler", "tcp://10.0.0.1:8786")
    code, _, said = fitted(capsys, folder / "arm1", folder / "arm2", *both)
    assert code == 2
    assert "--jobs are processes of this machine, --scheduler has its own; leave one out" in said
    code, _, said = fitted(capsys, folder / "arm1", folder / "arm2", "--jobs", "0")
    assert code == 2
    assert "workers = 0 must be at least 1" in said
    code, _, said = fitted(capsys, f"{folder}/none*")
    assert code == 2
    assert "matches no run" in said


def test_why_units_are_not_of_one_family_is_told():
    large, small = (
        Family((name,), (fit(synthetic_run(arm(joints), motion_seed=1, noise_seed=1)),))
        for name, joints in (("large", 3), ("small", 2))
    )
    told = apart_text(large, small)
    assert told.startswith("small not with large: models of robots ")
    assert "the joints differ (only the first has j3; only the second nothing more)" in told
    assert apart_text(large, large) == ""


def test_one_run_by_its_url(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, found, _ = fitted(capsys, f"file://{folder}/arm1", "--out", tmp_path)
    assert code == 0
    assert load_model(found["runs"]["arm1"]["model"]).robot.name == "cobot6"


@pytest.mark.parametrize("place", ["file:///runs/arm1", "arm1.zip"])
def test_where_urls_are_not_read_it_is_said(place: str, capsys: pytest.CaptureFixture[str]):
    code, _, said = fitted(capsys, "--together", place, place)
    assert code == 2
    assert "is no directory; only `jointbench fit`, without --together, reads runs from .zip files and URLs" in said


def test_what_is_a_fleet():
    assert [is_fleet(runs) for runs in (["a"], ["file:///a"], ["a", "b"], ["a*"], ["a.zip"], ["s3://a/b"])] == [
        False, True, True, True, True, True,
    ]  # fmt: skip
