"""`jointbench fit` as its user meets it: what it takes, what it says, where the model is."""

import json
from pathlib import Path

import numpy as np
import pytest

from jointbench.cli import fit, fit_options
from jointbench.cli.main import main
from jointbench.cli.parser import build_parser
from jointbench.identification import load_model
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run

ARM = arm(2)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of two runs, of folders that are there."""
    runs: dict[str, Run] = {}
    for seed in (1, 2):
        folder = tmp_path / f"run{seed}"
        folder.mkdir()
        runs[str(folder)] = synthetic_run(ARM, motion_seed=seed, noise_seed=seed)
    monkeypatch.setattr(fit, "open_run", lambda name: runs[name])
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
    assert f"the one before is kept as {kept}" in capsys.readouterr().out
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


def test_together_makes_one_model_of_all(recorded: list[str], tmp_path: Path):
    out = tmp_path / "all.json"
    assert main(["fit", "--together", *recorded, "--out", str(out)]) == 0
    assert len(load_model(out).provenance["runs"]) == 2


def test_several_runs_without_together_are_a_fleet(recorded: list[str], monkeypatch: pytest.MonkeyPatch):
    asked = {}

    def many(options, console, chosen):
        asked.update(chosen, runs=options.run)
        return fit.Result("fit")

    monkeypatch.setattr(fit, "fit_many", many)
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
    assert fit_options.fit_options(options) == ("wls", {}, {}, None)
