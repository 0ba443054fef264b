import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.errors import FileError
from jointbench.files import sealed_json
from jointbench.identification import FitSettings, Model, fit, load_model
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.model import load_robot
from jointbench.tests.identification.synthetic import arm, synthetic_run

LIBRARY = sorted(
    path.name.removesuffix(".toml") for path in (resources.files("jointbench.model") / "library").iterdir()
)


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
    assert len(values["provenance"]["sha256"]) == 64
    assert set(values["provenance"]["versions"]) == {"python", "numpy", "scipy", "jointbench"}
    assert len(values["names"]) == len(values["sigma"]) == model.base.rank


@pytest.mark.parametrize("name", LIBRARY)
def test_every_robot_of_the_library_comes_back(name: str):
    robot = load_robot(name)
    assert robot_from(json.loads(json.dumps(plain(robot_values(robot))))) == robot


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("joints", 0, "link", "center_of_mass"), [0.0, 0.0], r"joints\[0\].link.center_of_mass has 2 entries"),
        (("joints", 0, "link", "inertia_about_center_of_mass", 1), 3.0, r"must be of type tuple"),
        (("joints", 0, "link", "mass"), "heavy", "'heavy', and must be of type float"),
        (("joints", 0, "kind"), "spherical", "must be one of 'revolute', 'prismatic'"),
        (("joints", 1, "parent"), 7, "joint 'j2' has the parent 7, and must have one before it"),
        (("joints", 1, "parent"), -2, "joint 'j2' has the parent -2"),
        (("drives", 0, "ratio"), True, "True, and must be of type float"),
        (("gravity",), [0.0], "gravity has 1 entries, and must have 3"),
    ],
)
def test_a_robot_in_a_model_is_one(
    path: tuple[str | int, ...], value: object, words: str, model: Model, tmp_path: Path
):
    values: dict[str, Any] = json.loads(model.save(tmp_path / "model.json").read_text())
    del values["digests"], values["digest"]
    place: Any = values["robot"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (tmp_path / "other.json").write_text(json.dumps(values | {"version": 4}))
    with pytest.raises(FileError, match=f"other.json is damaged: .*{words}"):
        load_model(tmp_path / "other.json")


def test_other_files_are_refused(model: Model, tmp_path: Path):
    path = tmp_path / "other.json"
    with pytest.raises(FileError, match="cannot be read"):
        load_model(path)
    path.write_text("{")
    with pytest.raises(FileError, match="is no JSON"):
        load_model(path)
    path.write_text("[1]")
    with pytest.raises(FileError, match="is no model file"):
        load_model(path)
    values = json.loads(model.save(path).read_text())
    del values["digest"], values["digests"]
    path.write_text(sealed_json(values | {"version": 9}))
    with pytest.raises(FileError, match="version 9; this release reads 2, 3, 4, 5, 6"):
        load_model(path)
    path.write_text(sealed_json({key: value for key, value in values.items() if key != "covariance"}))
    with pytest.raises(FileError, match="damaged: KeyError 'covariance'"):
        load_model(path)
    path.write_text(sealed_json(values | {"parameters": ["a"] * len(values["parameters"])}))
    with pytest.raises(FileError, match="damaged: ValueError could not convert"):
        load_model(path)
    path.write_text(sealed_json(values | {"names": values["names"][:-1]}))
    with pytest.raises(FileError, match="groups its parameters otherwise"):
        load_model(path)


def test_a_file_of_the_release_before_is_read(model: Model, tmp_path: Path):
    """It knew one estimator, nothing of delays, outliers, whiteness and information, and other words of a verdict."""
    path = model.save(tmp_path / "model.json")
    values: dict[str, Any] = json.loads(path.read_text())
    new = ("options", "figures", "notes", "whiteness", "information", "delays", "outliers")
    old: dict[str, Any] = {key: value for key, value in values.items() if key not in new} | {"version": 2}
    for error in (old["error"], old["error_all"]):
        del error["r_squared"]
    for verdict in (*old["verdicts"], *old["joint_verdicts"]):
        verdict["word"] = "weak"
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("covariance", [[1.0]]),
        ("covariance", 1.0),
        ("covariance", "nan"),
        ("covariance", "negative"),
        ("parameters", [1.0]),
        ("parameters", "nan"),
        ("noise_rms", [0.1]),
        ("outliers", [1]),
        ("rows", [1]),
        ("lags", "many"),
        ("information", {"variation": [1.0], "noise": [1.0]}),
        ("error", {"rms": [1.0], "relative": [1.0], "share": [1.0], "total_relative": 0.1}),
        ("condition_number", "a"),
        ("error", {}),
    ],
)
def test_arrays_of_another_shape_and_what_is_no_number_are_damage(
    name: str, value: object, model: Model, tmp_path: Path
):
    """Without digests, as of an older release or of somebody who writes such files."""
    values: dict[str, Any] = json.loads(model.save(tmp_path / "model.json").read_text())
    del values["digests"], values["digest"]
    if value == "nan":
        value = np.full(np.shape(values[name]), np.nan).tolist()
    elif value == "negative":
        value = (-np.eye(len(values[name]))).tolist()
    (tmp_path / "other.json").write_text(json.dumps(values | {"version": 4, name: value}))
    with pytest.raises(FileError, match=r"other\.json is (damaged: |no JSON \(NaN is no number)"):
        load_model(tmp_path / "other.json")
