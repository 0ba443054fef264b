"""`jointbench validate`: a word a script can act on, with every figure it rests on.

`jointbench watch`: what pushed during a recording, in words and in JSON.

`jointbench residual`: what a model lacks, learnt from one run and judged on others.

`jointbench accept`: until then an edited run goes nowhere, and afterwards everything says that it was edited.
"""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.excitation import random_excitation
from jointbench.identification import fit, load_model, validate
from jointbench.model import Wrench, external_torques, load_robot
from jointbench.recording import Samples, open_run, save_samples
from jointbench.tests.identification.synthetic import run_of, synthetic_run
from jointbench.tests.recording.test_seal import edit
from jointbench.tests.results.recordings import PERIOD_S, recorded_run

PROVENANCE = {"robot": "cobot6"}


def samples_of(seed: int) -> Samples:
    robot = load_robot("cobot6")
    return recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=seed), seed, "run").samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its model, another, and one whose fourth current is only noise around a constant."""
    folder = tmp_path_factory.mktemp("runs")
    save_samples(folder / "fit", samples_of(1), PROVENANCE)
    other = samples_of(2)
    save_samples(folder / "other", other, PROVENANCE)
    assert other.motor_torque is not None
    torque = other.motor_torque.copy()
    torque[:, 3] = 10.0 + 0.05 * np.random.default_rng(0).standard_normal(len(torque))
    save_samples(folder / "deaf", dataclasses.replace(other, motor_torque=torque), PROVENANCE)
    fit(open_run(folder / "fit")).save(folder / "model.json")
    return folder


def judged(capsys: pytest.CaptureFixture[str], folder: Path, run: str) -> tuple[int, dict[str, Any], str]:
    code = main(["validate", str(folder / "model.json"), str(folder / run), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")), said.err


def test_a_good_model_with_its_figures(folder: Path, capsys: pytest.CaptureFixture[str]):
    code, found, said = judged(capsys, folder, "other")
    check = validate(fit(open_run(folder / "fit")), open_run(folder / "other"))
    assert (code, found["verdict"]) == (0, "identified")
    for joint, name in enumerate(check.joint_names):
        assert found["verification_r_squared"][name] == pytest.approx(check.r_squared[joint])
        assert found["verification_r_squared"][name] > 0.999
        assert found["residuals"][name]["word"] == check.whiteness.words[joint]
        assert found["torque_variation"][name] > 20.0 * found["torque_noise"][name]
        assert found["joint_verdicts"][name]["word"] == "identified"
    assert found["verification_total_relative"] == pytest.approx(check.total_relative)
    assert "R²" in said
    assert "follows from the rows before" in said
    assert found["held_out"]
    assert "fitted to samples of this run" not in said


def test_the_run_of_the_fit_is_no_other_motion(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A copy of another name neither: the digest of what was measured counts."""
    shutil.copytree(folder / "fit", tmp_path / "brand-new")
    for place in (folder / "fit", tmp_path / "brand-new"):
        assert main(["validate", str(folder / "model.json"), str(place)]) == 2
        said = capsys.readouterr().err
        digest = open_run(place).sha256[:12]
        for part in (f"model {folder / 'model.json'}", f"run {place}", digest, "another motion", "--in-sample"):
            assert part in said

    assert main(["validate", str(folder / "model.json"), str(folder / "fit"), "--in-sample", "--json", "-"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert not found["held_out"]
    assert found["verdict"] == "in-sample"
    assert {judged["word"] for judged in found["joint_verdicts"].values()} == {"in-sample"}
    assert "in-sample: the model was fitted to samples of this run" in told.err
    assert "identified (" not in told.err


def test_rows_that_the_fit_left_out_are_held_out(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = str(tmp_path / "half.json")
    fit(open_run(folder / "fit"), settings={"interval": (0.0, 6.0)}).save(model)
    assert main(["validate", model, str(folder / "fit"), "--interval", "5,9"]) == 2
    assert "judge rows outside 0 to 6 s" in capsys.readouterr().err
    main(["validate", model, str(folder / "fit"), "--interval", "6,10", "--json", "-"])
    assert json.loads(capsys.readouterr().out)["held_out"]


def test_a_joint_below_its_noise_is_refused_in_words_and_figures(folder: Path, capsys: pytest.CaptureFixture[str]):
    code, found, said = judged(capsys, folder, "deaf")
    assert (code, found["verdict"]) == (1, "refused")
    assert found["joint_verdicts"]["j4"]["reason"].startswith("j4's current is below its noise (")
    assert found["torque_variation"]["j4"] < found["torque_noise"]["j4"]
    assert found["joint_verdicts"]["j1"]["word"] == "identified"
    assert "verdict: refused" in said


def test_a_force_at_a_link_is_taken_off(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """20 N down at the last link of the recording: wrong by it as it is, right once it is said."""
    robot, loaded = load_robot("cobot6"), open_run(folder / "other").samples
    assert loaded.motor_torque is not None
    link = robot.joints[-1].link.name
    weight = external_torques(robot, loaded.motor_position, Wrench(link, [0.0, 0.0, -20.0]))
    samples = dataclasses.replace(loaded, motor_torque=loaded.motor_torque + weight)
    save_samples(tmp_path / "loaded", samples, PROVENANCE)
    shown = []
    for more in ([], ["--external", f"{link}=0,0,-20"]):
        main(["validate", str(folder / "model.json"), str(tmp_path / "loaded"), "--json", "-", *more])
        shown.append(json.loads(capsys.readouterr().out)["verification_total_relative"])
    good = judged(capsys, folder, "other")[1]["verification_total_relative"]
    assert shown[0] > 5.0 * good
    assert shown[1] == pytest.approx(good, rel=0.05)
    with pytest.raises(SystemExit):
        main(["validate", str(folder / "model.json"), str(tmp_path / "loaded"), "--external", "hand=1,2"])
    assert "'hand=1,2' must be FRAME=FX,FY,FZ in N, such as hand=0,0,-29.4" in capsys.readouterr().err


def test_prediction_carries_what_pulls(folder: Path):
    model = fit(open_run(folder / "fit"))
    q, link = np.random.default_rng(0).normal(size=(3, 1, 6)), model.robot.joints[-1].link.name
    pull = Wrench(link, [5.0, -3.0, 8.0], [0.2, 0.1, -0.3])
    plain = model.coulomb_viscous
    more = plain.predict(*q, external=pull) - plain.predict(*q)
    np.testing.assert_allclose(more, external_torques(model.robot, q[0], pull), atol=1e-12)


def test_several_models_are_judged_at_one_cut_off(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = open_run(folder / "fit")
    places = [str(tmp_path / name) for name in ("slow.json", "fast.json")]
    for place, cutoff in zip(places, (10.0, 40.0), strict=True):
        fit(run, settings={"cutoff_Hz": cutoff}, friction="coulomb_viscous").save(place)
    code = main(["validate", *places, str(folder / "other"), "--json", "-"])
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert code == 0
    assert (list(found["models"]), found["cutoff_Hz"]) == (places, 10.0)
    errors = [each["verification_as_measured"]["all"]["total_relative"] for each in found["models"].values()]
    # One noise, two models that know the arm: what is left is the same to a tenth.
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
    assert f"judged at a cut-off of 10 Hz, the lowest of the models' cut-offs; fitted at {places[0]} 10" in said.err
    assert "unfiltered" in said.err


def test_cut_off_and_interval_are_as_asked(folder: Path, capsys: pytest.CaptureFixture[str]):
    places = [str(folder / "model.json"), str(folder / "other")]
    shown = []
    for more in ([], ["--cutoff-Hz", "8"], ["--cutoff-Hz", "8", "--interval", "1,4"]):
        assert main(["validate", *places, "--json", "-", *more]) == 0
        said = capsys.readouterr()
        shown.append((json.loads(said.out), said.err))
    (own, words), (slower, asked), (part, _) = shown
    assert own["cutoff_Hz"] != 8.0
    assert "the model's own" in words
    assert (slower["cutoff_Hz"], part["interval"]) == (8.0, [1.0, 4.0])
    assert "judged at a cut-off of 8 Hz, as asked" in asked
    assert slower["verification_total_relative"] != part["verification_total_relative"]
    assert main(["validate", *places, "--cutoff-Hz", "0"]) == 2


ROBOT = load_robot("cobot6:3")
PUSHED_S = (3.0, 3.3)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A model, a quiet run, and one during which joint 2 was pushed by 25 N·m."""
    folder = tmp_path_factory.mktemp("runs")
    origin = {"robot": "cobot6:3"}
    quiet, other = (synthetic_run(ROBOT, motion_seed=seed, noise_seed=seed, repeats=1) for seed in (1, 2))
    model = fit(quiet, friction="coulomb_viscous").save(folder / "model.json")
    torque = np.array(other.samples.motor_torque)
    torque[slice(*(round(1000 * at) for at in PUSHED_S)), 1] += 25.0
    pushed = dataclasses.replace(other.samples, motor_torque=torque)
    still, moved = (save_samples(folder / name, run, origin) for name, run in (("q", quiet.samples), ("p", pushed)))
    return str(model), str(still), str(moved)


def test_a_push_is_said(places: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *places, "--frame", ROBOT.joints[-1].link.name, "--json", "-"]) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    (push,) = told["pushes"]
    assert push["joint"] == "j2"
    assert push["start"] == pytest.approx(PUSHED_S[0], abs=0.05)
    assert push["end"] == pytest.approx(PUSHED_S[1], abs=0.1)
    assert len(push["force_N"]) == 3
    assert 0.0 < told["thresholds"]["j2"] < 25.0
    assert "1 push\n" in said.err
    assert "j2 feels +2" in said.err


def test_nothing_is_said_of_a_quiet_run(places: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    model, quiet, _ = places
    assert main(["watch", model, quiet, quiet]) == 0
    assert "nothing pushed" in capsys.readouterr().out


def test_a_run_with_gaps_is_refused(places: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model, quiet, _ = places
    samples = open_run(quiet).samples
    position = np.array(samples.motor_position)
    position[500:510] = np.nan
    broken = save_samples(
        tmp_path / "gap", dataclasses.replace(samples, motor_position=position), {"robot": "cobot6:3"}
    )
    assert main(["watch", model, quiet, str(broken)]) == 2
    assert "10 samples are missing, the first at 0.5 s" in capsys.readouterr().err


ARM_OF_TWO = {"robot": "cobot6:2"}


@pytest.fixture(scope="module")
def missions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two motions of the first two joints of an arm, one run in which it stands, and a model of the first motion."""
    missions, robot = tmp_path_factory.mktemp("runs"), load_robot("cobot6:2")
    for name, seed in (("own", 1), ("other", 2)):
        save_samples(missions / name, synthetic_run(robot, motion_seed=seed, noise_seed=seed).samples, ARM_OF_TWO)
    still = np.tile(robot.home, (3000, 1))
    save_samples(missions / "still", run_of(robot, still, 0.0 * still, plan=None, repeats=0).samples, ARM_OF_TWO)
    fit(open_run(missions / "own")).save(missions / "model.json")
    return missions


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any], str]:
    code = main(["residual", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")), said.err


def test_both_residuals_are_told_of_each_run(
    missions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "residuals.png"

    code, found, said = told(capsys, missions / "own", missions / "other", "--picture", picture)

    assert code == 0
    assert found["learnt_from"] == "own"
    other = found["missions"]["other"]
    assert other["state"]["average_gain"] > 0.9
    assert other["state"]["verdict"] == "identified"
    assert other["polynomial"]["verdict"] == "refused"
    assert list(other["error_of_model"]) == ["j1", "j2"]
    assert "gain by time" in said
    assert picture.is_file()


def test_a_model_that_lacks_nothing_has_no_residual(missions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left of the identified model is noise: nothing to learn, and the verdict says so."""
    code, found, _ = told(capsys, missions / "own", missions / "other", "--model", missions / "model.json")

    assert code == 1
    assert found["missions"]["other"]["state"]["average_gain"] < 0.1


def test_a_run_at_rest_and_runs_of_one_name_are_refused(missions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["residual", str(missions / "still")]) == 2
    assert "no joint moves" in capsys.readouterr().err
    assert main(["residual", str(missions / "own"), str(missions / "own")]) == 2
    assert "two runs are named 'own'" in capsys.readouterr().err


TOLD = "robot.toml (joints.j1.link.mass_kg = 3.8, was 3.7)"


@pytest.fixture
def edited_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs, of which "mine" has a model that was fitted before its robot file was edited."""
    robot = load_robot("cobot6:2")
    for seed, name in enumerate(("mine", "other"), 1):
        run = synthetic_run(robot, motion_seed=seed, noise_seed=seed, repeats=1)
        save_samples(tmp_path / name, run.samples, {"robot": "cobot6:2"})
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "mine"]) == 0
    edit(tmp_path / "mine" / "robot.toml", "mass_kg = 3.7", "mass_kg = 3.8")
    return tmp_path


@pytest.mark.slow  # fits, and draws reports
def test_an_edited_run_goes_nowhere_until_it_is_accepted(
    edited_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uses = (
        ["info", "mine"], ["fit", "mine"], ["validate", "mine/model.json", "mine"], ["convert", "mine", "--to", "csv"],
        ["report", "mine/model.json", "mine"], ["report", "mine/model.json", "other"], ["friction", "mine"],
    )  # fmt: skip
    capsys.readouterr()
    for words in uses:
        assert main(words) == 2, words
        said = capsys.readouterr().err
        assert "robot.toml was changed after it was imported: joints.j1.link.mass_kg = 3.8, was 3.7" in said
        assert "note it: `jointbench accept mine --reason" in said
    assert main(["doctor", "mine"]) == 1
    assert "damaged: SHA-256 of robot.toml" in capsys.readouterr().out

    assert main(["accept", "mine", "--reason", "weighed", "--json", "accepted.json"]) == 0
    said = capsys.readouterr().out
    assert "  joints.j1.link.mass_kg: 3.7 → 3.8\n" in said
    (noted,) = json.loads((edited_folder / "accepted.json").read_text())["files"]
    assert noted["values"] == [{"name": "joints.j1.link.mass_kg", "before": 3.7, "after": 3.8}]

    assert main(["doctor", "mine"]) == 0
    assert TOLD in capsys.readouterr().out
    assert main(["report", "mine/model.json", "mine", "--out", "before.html"]) == 0
    assert "The fit run was edited after the model was fitted to it" in (edited_folder / "before.html").read_text()
    assert main(["fit", "mine"]) == 0
    assert TOLD in capsys.readouterr().out
    (sentence,) = load_model("mine/model.json").edits
    assert sentence.startswith("fitted to mine, edited, and accepted on ")
    assert TOLD in sentence
    assert main(["report", "mine/model.json", "mine", "--out", "after.html"]) == 0
    page = (edited_folder / "after.html").read_text()
    assert "joints.j1.link.mass_kg = 3.8, was 3.7" in page
    assert "The fit run was edited after" not in page
    capsys.readouterr()
    for words in (["validate", "mine/model.json", "other"], ["export", "mine/model.json", "--out", "arm.h"]):
        main(words)
        assert f"warning: the model was {sentence}" in capsys.readouterr().out


@pytest.mark.slow  # as its edited_folder is
def test_what_was_measured_is_not_accepted(edited_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((edited_folder / "other" / "samples.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (edited_folder / "other" / "samples.npz").write_bytes(data)
    assert main(["accept", "other"]) == 2
    assert "take samples.npz from a copy: what was measured is never edited" in capsys.readouterr().err
