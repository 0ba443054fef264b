import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.errors import ModelFileError
from jointbench.identification import FitSettings, Model, fit, load_model
from jointbench.identification.plain_values import plain
from jointbench.identification.robot_values import robot_from, robot_values
from jointbench.robot import load_robot
from jointbench.tests.identification.synthetic import arm, synthetic_run


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(synthetic_run(arm(2), motion_seed=1, noise_seed=1), settings=FitSettings(velocity_threshold=(0.1, 99.0)))


def test_a_model_comes_back_whole(model: Model, tmp_path: Path):
    loaded = load_model(model.save(tmp_path / "model.json"))
    assert loaded.robot == model.robot
    assert loaded.settings == model.settings
    assert loaded.parameter_verdicts == model.parameter_verdicts
    assert loaded.joint_verdicts == model.joint_verdicts
    assert np.isinf(model.covariance).any()  # the hard case: not JSON by itself
    for name in ("parameters", "covariance", "noise_rms"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name), equal_nan=True)
    q, dq, ddq = np.random.default_rng(0).standard_normal((3, 5, 2))
    assert np.array_equal(loaded.predict(q, dq, ddq), model.predict(q, dq, ddq))


def test_the_file_is_plain_json_with_its_provenance(model: Model, tmp_path: Path):
    text = model.save(tmp_path / "model.json").read_text()
    values = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert values["provenance"]["sha256"] == "0" * 64
    assert set(values["provenance"]["versions"]) == {"python", "numpy", "scipy", "jointbench"}
    assert len(values["names"]) == len(values["sigma"]) == model.base.rank


@pytest.mark.parametrize("name", ["tx40", "gorobot2"])
def test_couplings_and_feet_come_back(name: str):
    robot = load_robot(name)
    assert robot_from(json.loads(json.dumps(plain(robot_values(robot))))) == robot


def test_other_files_are_refused(model: Model, tmp_path: Path):
    path = tmp_path / "other.json"
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(path)
    path.write_text("{")
    with pytest.raises(ModelFileError, match="is no JSON"):
        load_model(path)
    path.write_text("[1]")
    with pytest.raises(ModelFileError, match="is no model file"):
        load_model(path)
    values = json.loads(model.save(path).read_text())
    path.write_text(json.dumps(values | {"version": 9}))
    with pytest.raises(ModelFileError, match="version 9; this release reads 2, 3, 4"):
        load_model(path)
    path.write_text(json.dumps({key: value for key, value in values.items() if key != "covariance"}))
    with pytest.raises(ModelFileError, match="damaged: KeyError 'covariance'"):
        load_model(path)
    path.write_text(json.dumps(values | {"parameters": ["a"] * len(values["parameters"])}))
    with pytest.raises(ModelFileError, match="damaged: ValueError could not convert"):
        load_model(path)
    path.write_text(json.dumps(values | {"names": values["names"][:-1]}))
    with pytest.raises(ModelFileError, match="groups its parameters otherwise"):
        load_model(path)


def test_a_file_of_the_release_before_is_read(model: Model, tmp_path: Path):
    """It knew one estimator and said nothing of delays, outliers, whiteness and information."""
    path = model.save(tmp_path / "model.json")
    values: dict[str, Any] = json.loads(path.read_text())
    new = ("options", "figures", "notes", "whiteness", "information", "delays", "outliers")
    old: dict[str, Any] = {key: value for key, value in values.items() if key not in new} | {"version": 2}
    for error in (old["error"], old["error_all"]):
        del error["r_squared"]
    path.write_text(json.dumps(old))
    loaded = load_model(path)
    assert np.array_equal(loaded.parameters, model.parameters)
    assert [verdict.word for verdict in loaded.joint_verdicts] == [verdict.word for verdict in model.joint_verdicts]
    assert loaded.delay.reason.startswith("as an older release wrote it")
    assert np.array_equal(loaded.delay.seconds, model.delay.seconds)
    assert loaded.whiteness.words == ("unknown", "unknown")
    assert not loaded.uninformative
    assert not loaded.outliers.any()


def test_physical_parameters_of_a_model_are_found_once_and_again_from_its_file(model: Model, tmp_path: Path):
    assert model.physical is model.physical
    loaded = load_model(model.save(tmp_path / "model.json"))
    np.testing.assert_allclose(loaded.physical.base_parameters, model.physical.base_parameters, atol=1e-9)
    assert loaded.physical_verdict == model.physical_verdict
