"""From a fitted model to every kind of file, and the verb that does it."""

import argparse
import dataclasses
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from jointbench.cli import export as verb
from jointbench.cli.main import carry_out
from jointbench.errors import FitError, NumericalError
from jointbench.identification import Model, fit
from jointbench.identification.predictor import Predictor, leading_parameters
from jointbench.model import PARAMETER_NAMES, drive_columns, inverse_dynamics, load_robot
from jointbench.results import FullModel
from jointbench.results.c_header import c_header_text
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.results.peers import assert_same, motion, pinocchio_torques


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(synthetic_run(arm(3), motion_seed=1, noise_seed=1))


@pytest.fixture(scope="module")
def full(model: Model) -> FullModel:
    return FullModel.of_model(model)


def test_the_urdf_has_the_rigid_part_of_what_is_predicted(model: Model, full: FullModel, tmp_path: Path) -> None:
    """Of an estimate that is possible as it is: all the rest of the prediction is the drives'."""
    assert full.physical is not None
    assert full.physical.word == "identified"
    q, dq, ddq = motion(model.robot, samples=20)
    columns, _ = drive_columns(model.robot, dq, ddq)
    rigid = model.predict(q, dq, ddq) - (columns @ full.drive_parameters).reshape(q.shape)
    text = jb.export(full, tmp_path / "arm.urdf").read_text(encoding="utf-8")
    found = pinocchio_torques(text, model.robot, q, dq, ddq)
    assert_same(found, rigid)
    assert_same(found, inverse_dynamics(model.robot, q, dq, ddq, full.standard_parameters))


def test_the_header_and_the_predictor_need_no_possible_bodies(model: Model) -> None:
    q, dq, ddq = motion(model.robot, samples=20)
    predict = Predictor.of(model)
    found = np.array([predict(*each) for each in zip(q, dq, ddq, strict=True)])
    expected = model.predict(q, dq, ddq)
    # Sums of some hundred products in double precision.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * float(np.abs(expected).max()))
    # The header has the same: test_c_header compares it with the predictor's parameters.
    links, drives, _ = leading_parameters(model)
    assert np.count_nonzero(np.concatenate([links, drives])) == np.count_nonzero(model.parameters)
    assert "are zero" in c_header_text(model.robot, links, drives)


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_tables_hold_everything(model: Model, full: FullModel, suffix: str, tmp_path: Path) -> None:
    text = jb.export(full, tmp_path / f"arm{suffix}").read_text(encoding="utf-8")
    if suffix == ".json":
        values = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    else:
        values = tomllib.loads(text)
    assert [each["name"] for each in values["base_parameters"]] == list(model.names)
    assert [each["value"] for each in values["base_parameters"]] == model.parameters.tolist()
    assert [each["verdict"] for each in values["base_parameters"]] == [each.word for each in model.parameter_verdicts]
    rows = [[link[name] for name in PARAMETER_NAMES] for link in values["standard_parameters"]]
    assert np.ravel(rows).tolist() == full.standard_parameters.tolist()
    assert values["standard_parameters"][0]["units"]["mcx"] == "kg·m"
    units = {each["name"]: each["unit"] for each in values["drive_parameters"]}
    assert units["j2.viscous"] == "N·m·s/rad"
    covariance = np.array(values["covariance"], dtype=np.float64)
    finite = np.isfinite(model.covariance)
    assert np.array_equal(covariance[finite], model.covariance[finite])
    assert len(values["provenance"]["sha256"]) == 64
    assert values["verdict"]["word"] == model.verdict.word


def test_what_is_not_possible_is_told_and_its_tables_written(model: Model, tmp_path: Path) -> None:
    values = model.parameters.copy()
    values[model.names.index("j3.Izz")] = -1.0
    wrong = dataclasses.replace(model, parameters=values)
    with pytest.raises((FitError, NumericalError)) as caught:
        jb.export(wrong, tmp_path / "arm.urdf")
    assert not (tmp_path / "arm.urdf").exists()
    written = json.loads(jb.export(wrong, tmp_path / "arm.json").read_text(encoding="utf-8"))
    assert written["no_standard_parameters"] == str(caught.value)
    assert "standard_parameters" not in written
    assert len(written["base_parameters"]) == model.base.rank


def test_an_unknown_suffix_is_refused(model: Model, tmp_path: Path) -> None:
    with pytest.raises(FitError, match=r"arm.sdf: nothing is exported as .sdf; use .urdf \("):
        jb.export(model, tmp_path / "arm.sdf")


def test_a_robot_without_inertias_is_refused(tmp_path: Path) -> None:
    text = Path(jb.export(load_robot("cobot6"), tmp_path / "arm.urdf")).read_text(encoding="utf-8")
    start, end = text.index("<inertial>"), text.index("</inertial>") + len("</inertial>")
    bare = tmp_path / "bare.urdf"
    bare.write_text(text[:start] + text[end:], encoding="utf-8")
    with pytest.raises(FitError, match="no inertia is given for link shoulder"):
        jb.export(load_robot(bare), tmp_path / "out.xml")


def _verb(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    parser.add_argument("--json")
    return carry_out("jointbench export", parser.parse_args(arguments), verb.run)


def test_the_verb_writes_what_is_asked_for(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = model.save(tmp_path / "model.json")
    files = [str(tmp_path / f"arm{suffix}") for suffix in (".urdf", ".xml", ".h", ".toml")]
    assert _verb(str(saved), "--out", *files) == 0
    said = capsys.readouterr().out
    assert all(Path(name).stat().st_size > 0 for name in files)
    assert said.count("physical: identified") == 1
    assert "arm.urdf: written from scratch, without meshes; --from keeps those of a URDF" in said
    assert _verb(str(saved), "--out", str(tmp_path / "kept.urdf"), "--from", files[0]) == 0
    assert f"{files[0]} with new inertias" in capsys.readouterr().out
    assert _verb(str(saved), "--out", str(tmp_path / "no.urdf"), "--from", files[0], "--zeros", "0", "90") == 2
    assert "--zeros has 2 numbers; give 3, one for each joint of robot 'cobot6'" in capsys.readouterr().err
    assert (tmp_path / "kept.urdf").read_bytes() == Path(files[0]).read_bytes()


def test_the_verb_names_what_mjcf_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.xml"
    assert _verb("cobot6", "--out", str(file)) == 0
    assert f"not in {file}: torque constants and current limits; `dcmotor` actuators need" in capsys.readouterr().out
    assert _verb("cobot6", "--out", str(file), "--resistance", "1.2") == 0
    assert "not in" not in capsys.readouterr().out
    assert file.read_text(encoding="utf-8").count("<dcmotor ") == 6
    assert _verb("cobot6", "--out", str(tmp_path / "arm.h"), "--resistance", "1.2") == 2
    assert "--resistance is for MJCF" in capsys.readouterr().err


def test_the_verb_says_in_a_sentence_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verb("tx40", "--out", str(tmp_path / "robot.urdf")) == 2
    said = capsys.readouterr().err
    assert said.startswith("jointbench export: link 'link_6' cannot exist")
    assert "Traceback" not in said
