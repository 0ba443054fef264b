"""A model with friction laws, wherever models go: files, feed-forward, C, URDF, MJCF, judgement of other runs.

Friction laws in one set of sums with all else: equal to least squares of the rows, possible bodies, exported.
"""

import dataclasses
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from jointbench.arrays import Array
from jointbench.cli.fit_options import friction_fields, friction_table
from jointbench.errors import FitError
from jointbench.identification import FitSettings, Model, compare, load_model
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.friction import FrictionData, JointLaws, ModelFriction, friction_law
from jointbench.identification.friction.joint_laws import LawPoint, LawRows
from jointbench.identification.friction.law_tables import BELLS, Grid, JointState, LawTables
from jointbench.identification.judgement import FOLDS
from jointbench.identification.observations import observe
from jointbench.identification.predictor import Predictor
from jointbench.model import base_parameters
from jointbench.recording import Run
from jointbench.results import export
from jointbench.tests.identification.friction.law_runs import (
    law_run,
    law_torque,
    loaded,
    stribeck,
    truth_without_friction,
)
from jointbench.tests.identification.synthetic import arm, as_log
from jointbench.tests.results.test_c_header import assert_same_currents, in_c, needs_compiler

ROBOT = arm(3)
JOINTS = {"j1": stribeck(6.0, 4.0, 9.0, 0.2), "j3": loaded(5.0, 8.0, 0.08)}
ASKED = {"j1": "stribeck", "j3": "coulomb_viscous+load"}

ALL_LAWS = {
    "coulomb_viscous": [5.0, 8.0],
    "asymmetric": [5.0, 8.0, 6.0, 7.0],
    "stribeck": [5.0, 3.0, 8.0, 0.2],
    "makkar": [4.0, 6.0, 9.0, 30.0, 5.0, 12.0],
    "makkar+load": [4.0, 6.0, 9.0, 0.05, 30.0, 5.0, 12.0],
}


@pytest.fixture(scope="module")
def run() -> Run:
    return law_run(ROBOT, JOINTS, motion_seed=1, noise_seed=1)


@pytest.fixture(scope="module")
def model(run: Run) -> Model:
    return jb.fit(run, friction=ASKED)


def with_laws(model: Model, name: str, parameters: list[float]) -> Model:
    """The model with another law for all its joints."""
    laws = JointLaws(model.base, dict.fromkeys(ROBOT.joint_names, friction_law(name)))
    n = laws.n_parameters
    friction = ModelFriction(
        laws=laws,
        parameters=np.tile(parameters, 3),
        covariance=1e-4 * np.eye(n),
        with_base=np.zeros((model.base.rank, n)),
        at_bound=np.zeros(n, dtype=np.bool_),
        speeds=dict.fromkeys(ROBOT.joint_names, (0.05, 2.0)),
        reasons=dict.fromkeys(ROBOT.joint_names, "for this test"),
    )
    return dataclasses.replace(model, friction=friction)


def motion(samples: int = 40) -> tuple[Array, Array, Array]:
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, samples, 3))
    dq[0] = 0.0
    return q, dq, ddq


def test_torque_is_that_of_the_laws_written_out(model: Model) -> None:
    moves = motion(200)
    expected = law_torque(ROBOT, JOINTS, *moves)
    error = model.predict(*moves) - expected
    assert np.sqrt(np.mean(error**2)) < 0.01 * np.sqrt(np.mean(expected**2))


def test_a_model_comes_back_whole(model: Model, tmp_path: Path) -> None:
    loaded_ = load_model(model.save(tmp_path / "model.json"))
    assert loaded_.friction is not None
    assert model.friction is not None
    assert loaded_.friction.parameter_verdicts == model.friction.parameter_verdicts
    assert loaded_.friction.law_verdicts == model.friction.law_verdicts
    assert loaded_.parameter_verdicts == model.parameter_verdicts
    for name in ("parameters", "covariance", "with_base", "at_bound"):
        assert np.array_equal(getattr(loaded_.friction, name), getattr(model.friction, name))
    assert np.array_equal(loaded_.predict(*motion()), model.predict(*motion()))


@pytest.mark.parametrize(("law", "parameters"), ALL_LAWS.items())
def test_elements_add_up_to_the_law(law: str, parameters: list[float]) -> None:
    rng = np.random.default_rng(1)
    velocity, load = rng.normal(size=(2, 50))
    data = FrictionData(velocity, np.zeros(50), load=load)
    total = np.zeros(50)
    for form, coefficient, shape, direction in friction_law(law).elements(np.array(parameters)):
        sign = np.sign(velocity)
        forms = [sign, velocity, sign * np.exp(-((velocity / shape) ** 2)), np.tanh(shape * velocity), sign * abs(load)]
        total += coefficient * forms[form] * (direction * velocity >= 0.0)
    # Sums of a handful of terms below 100 N·m in double precision.
    np.testing.assert_allclose(friction_law(law).torque(data, np.array(parameters)), total, rtol=0, atol=1e-13 * 100)


@pytest.mark.parametrize(("law", "parameters"), ALL_LAWS.items())
def test_one_sample_at_a_time_is_the_same(model: Model, law: str, parameters: list[float]) -> None:
    other = with_laws(model, law, parameters)
    expected = other.predict(*motion())
    predict = Predictor.of(other)
    found = np.array([predict(*each) for each in zip(*motion(), strict=True)])
    # Rounding of some hundred operations, as a share of the largest torque: the requirement's figure.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * float(np.abs(expected).max()))


@needs_compiler
@pytest.mark.parametrize("law", ["asymmetric", "stribeck", "makkar+load"])
def test_c_smooths_the_step_at_rest_as_the_host_does(model: Model, law: str, tmp_path: Path) -> None:
    assert_same_currents(with_laws(model, law, ALL_LAWS[law]), tmp_path, 0.02)


@needs_compiler
@pytest.mark.parametrize("law", ["asymmetric", "stribeck", "makkar+load"])
def test_c_computes_the_same(model: Model, law: str, tmp_path: Path) -> None:
    other = with_laws(model, law, ALL_LAWS[law])
    torque = in_c(other, tmp_path)
    expected = other.predict(*motion())
    found = np.array([torque(*each) for each in zip(*motion(), strict=True)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * float(np.abs(expected).max()))


def test_friction_takes_power_and_never_gives_it(model: Model) -> None:
    assert model.friction is not None
    speeds = np.linspace(-3.0, 3.0, 401)[:, None] * np.ones(3)
    load = np.random.default_rng(2).normal(scale=50.0, size=speeds.shape)
    torque = model.friction.laws.torque(speeds, load, model.friction.parameters)
    assert np.all(torque * speeds >= 0.0)
    assert np.all(torque[:, 0][speeds[:, 0] != 0.0] != 0.0)


def test_a_law_that_drives_is_refused(model: Model) -> None:
    """γ3 above γ2 turns the Stribeck rise into a dip, here below zero."""
    driving = with_laws(model, "makkar", [9.0, 1.0, 0.1, 2.0, 30.0, 12.0]).friction
    assert driving is not None
    assert all(verdict.word == "refused" for verdict in driving.law_verdicts)
    assert "makkar would drive the joint at" in driving.law_verdicts[0].reason


def test_files_of_bodies_have_the_friction_next_to_it_and_say_so(model: Model, tmp_path: Path) -> None:
    assert model.friction is not None
    plain = model.friction.nearest_plain["j1"]
    # Within the law's own limits: coulomb to coulomb + rise.
    assert 6.0 < plain.coulomb < 10.0
    for name, joint in (("arm.urdf", r'friction="(.+?)"'), ("arm.xml", r'name="j1".*frictionloss="(.+?)"')):
        text = export(model, tmp_path / name).read_text(encoding="utf-8")
        first = re.search(joint, text)
        assert first is not None
        assert float(first[1]) == pytest.approx(plain.coulomb, rel=1e-6)
        notes = re.findall(r"(j\d): friction law (.+?) with (\w+) ([\d.]+).*?next to it", text)
        assert [note[:3] for note in notes] == [(*law, "coulomb") for law in ASKED.items()]
        assert [float(note[3]) for note in notes] == pytest.approx([6.0, 5.0], abs=0.05)


def test_plain_files_have_the_law(model: Model, tmp_path: Path) -> None:
    values = json.loads(export(model, tmp_path / "arm.json").read_text(encoding="utf-8"))
    assert [(law["joint"], law["law"]) for law in values["friction"]] == list(ASKED.items())
    assert values["friction"][0]["parameters"][3]["name"] == "stribeck_speed"
    assert values["friction"][0]["parameters"][3]["unit"] == "rad/s"
    by_name = {each["name"]: each["value"] for each in values["drive_parameters"]}
    assert by_name["j1.coulomb"] is None
    assert by_name["j2.coulomb"] > 0.0
    assert tomllib.loads(export(model, tmp_path / "arm.toml").read_text(encoding="utf-8"))["friction"]


def test_another_run_is_judged_with_the_law(model: Model) -> None:
    other = law_run(ROBOT, JOINTS, motion_seed=7, noise_seed=7)
    check = jb.validate(model, other)
    assert check.error.total_relative < 0.005
    without = jb.validate(dataclasses.replace(model, friction=None), other)
    assert without.error.total_relative > 0.05


def test_a_model_with_laws_is_not_compared_with_one_without(model: Model, run: Run) -> None:
    plain = jb.fit(run)
    for pair in ((model, plain), (plain, model)):
        with pytest.raises(FitError, match=r"laws differ .* j1=stribeck, j3=.*; fit both with the same"):
            compare(*pair)
    assert compare(model, model).answer == "same"


def test_words_and_fields_name_every_parameter(model: Model) -> None:
    assert model.friction is not None
    table = friction_table(model.friction)
    for words in ("j1.stribeck_speed", "j3.load_share", "friction of j1: identified (stribeck; as asked for)"):
        assert words in table
    fields = json.loads(json.dumps(friction_fields(model.friction)))
    assert fields["j1"]["parameters"]["stribeck_speed"]["value"] == pytest.approx(0.2, rel=0.02)
    assert friction_fields(None) == {}


def test_laws_of_a_coupled_robot_stand_beside_its_shared_motors() -> None:
    robot = jb.load_robot("tx40")
    base = base_parameters(robot)
    laws = JointLaws(base, {name: friction_law("stribeck") for name in robot.joint_names})
    shared = {name for name in base.leading_names if name.endswith((".viscous", ".coulomb"))} - set(laws.replaced)
    assert shared
    assert all(name.rpartition(".")[0] not in robot.joint_names for name in shared)


CHOICE_ROBOT = arm(2)
ALL_JOINTS = {"j1": stribeck(6.0, 4.0, 9.0, 0.2), "j2": loaded(5.0, 8.0, 0.08)}
TRUTH = {"j1": [6.0, 4.0, 9.0, 0.2], "j2": [5.0, 8.0, 0.08]}
GRID = Grid((0.05, 2.0), (0.1, 60.0), 50.0)


@pytest.fixture(scope="module")
def problem() -> Problem:
    run = law_run(CHOICE_ROBOT, ALL_JOINTS, motion_seed=1, noise_seed=1, repeats=1)
    base = base_parameters(CHOICE_ROBOT)
    rows = observe(run, CHOICE_ROBOT, base, FitSettings())
    return Problem(CHOICE_ROBOT, base, (run,), (rows,), (rows,))


def test_laws_in_sums_are_least_squares_of_the_rows(problem: Problem) -> None:
    """At a grid point of its shape a law's column is exact, so that elimination must give what the rows give."""
    base = problem.base
    node = float(np.geomspace(*GRID.bell, BELLS)[7])
    laws = JointLaws(base, {name: friction_law("stribeck") for name in CHOICE_ROBOT.joint_names})
    tables = LawTables.of(problem, np.zeros(base.rank), dict.fromkeys(CHOICE_ROBOT.joint_names, GRID), None)
    spread = np.array([0.5, 2.0])
    states = {name: JointState(friction_law("stribeck"), np.log([node])) for name in CHOICE_ROBOT.joint_names}
    grams = tables.gram(spread)
    reduced = tables.reduced(grams.sum(axis=0), tables.directions(states, "j1"), "j1")
    fit = tables.best(reduced, "j1", friction_law("stribeck"))
    combined = tables.combinations("j1", friction_law("stribeck"), np.log([[node]]))[0]
    normal, right = combined @ reduced.sums[:-1, :-1] @ combined.T, combined @ reduced.sums[:-1, -1]
    coefficients = np.linalg.solve(normal, right)

    at = LawPoint(np.zeros(int(laws.kept.sum())), np.tile([1.0, 1.0, 1.0, node], 2))
    blocks = list(LawRows(problem.parts[0], problem.observations[0], laws, at, laws.is_shape).blocks())
    scaled = [(block.regressor / spread[:, None], block.torque / spread, block.used) for block in blocks]
    matrix = np.concatenate([regressor[used] for regressor, _, used in scaled])
    torque = np.concatenate([values[used] for _, values, used in scaled])
    direct = np.linalg.lstsq(matrix, torque)[0]
    own = len(at.base) + np.arange(3)
    # Sums square the condition number: 1e4 squared times rounding, and the ridge of 1e-11 as much.
    np.testing.assert_allclose(coefficients[:3], direct[own], rtol=1e-5)
    values = reduced.lift @ np.append(coefficients @ combined, -1.0)
    squares = sum(
        own.squares(values, fold) / sigma**2
        for own, sigma in zip(tables.sums, spread, strict=True)
        for fold in range(FOLDS)
    )
    assert squares == pytest.approx(float(np.sum((torque - matrix @ direct) ** 2)), rel=1e-6)
    # The search over shapes can only be better than one of them.
    assert fit.squares < squares


def test_columns_between_grid_points_are_nearly_exact() -> None:
    velocity = np.linspace(-2.0, 2.0, 401)
    for speed in np.geomspace(*GRID.bell, 60):
        rows = GRID.combinations(friction_law("stribeck"), np.log([[speed]]))[0]
        bell = np.sign(velocity) * np.exp(-((velocity / speed) ** 2))
        # What the description of the grid says.
        assert np.abs(rows[1] @ GRID.columns(velocity, None) - bell).max() < 0.006
    for shape in np.geomspace(*GRID.tanh, 60):
        rows = GRID.combinations(friction_law("makkar"), np.log([[shape, shape, shape]]))[0]
        assert np.abs(rows[1] @ GRID.columns(velocity, None) - np.tanh(shape * velocity)).max() < 0.006


@pytest.fixture(scope="module")
def models() -> list[Model]:
    runs = [law_run(CHOICE_ROBOT, ALL_JOINTS, motion_seed=1, noise_seed=k) for k in range(2)]
    laws = {"j1": "stribeck", "j2": "coulomb_viscous+load"}
    return [jb.fit(run, friction=laws, estimator="map") for run in runs]


def test_possible_bodies_and_laws_come_back_together(models: list[Model]) -> None:
    in_sigma: list[Array] = []
    for model in models:
        friction = model.friction
        assert friction is not None
        in_sigma.append((friction.parameters - np.concatenate(list(TRUTH.values()))) / friction.sigma)
        told = np.isfinite(np.diag(model.covariance))
        error = model.parameters - model.base.group(truth_without_friction(CHOICE_ROBOT, ALL_JOINTS))
        in_sigma.append((error / model.sigma)[told])
        # They are the parameters of bodies, not next to some: to rounding.
        bodies = model.base.group(jb_full(model))
        np.testing.assert_allclose(bodies[told], model.parameters[told], rtol=1e-9, atol=1e-9)
        assert np.nanmin(model.physical.smallest_eigenvalues) > 0.0
    # Some 30 errors of which half are independent, by error bars of time left out, which err by a fifth: 1 ± 0.3.
    assert 0.4 < float(np.sqrt(np.mean(np.concatenate(in_sigma) ** 2))) < 1.8


def jb_full(model: Model) -> Array:
    """Full parameters of links and drives; what laws stand for has no value of its own."""
    physical = model.physical
    return np.concatenate([physical.standard_parameters, physical.drive_parameters, physical.compensation_parameters])


def test_a_model_with_laws_is_exported_with_its_bodies(models: list[Model], tmp_path) -> None:
    model = models[0]
    assert model.friction is not None
    text = export(model, tmp_path / "arm.urdf") and (tmp_path / "arm.urdf").read_text(encoding="utf-8")
    assert "friction law stribeck with" in text
    plain = model.friction.nearest_plain["j1"]
    assert f'damping="{plain.viscous!r}" friction="{plain.coulomb!r}"' in text
    robot = jb.load_robot(tmp_path / "arm.urdf")
    masses = [joint.link.mass for joint in robot.joints]
    assert all(mass is not None and mass > 0.0 for mass in masses)


def test_the_nearest_possible_parameters_have_laws_too() -> None:
    run = law_run(CHOICE_ROBOT, ALL_JOINTS, motion_seed=1, noise_seed=3, repeats=1)
    model = jb.fit(run, friction={"j1": "stribeck", "j2": "coulomb_viscous+load"}, estimator="physical")
    friction = model.friction
    assert friction is not None
    # Seven errors, all within 4 σ but once in 2000 times.
    assert np.abs((friction.parameters - np.concatenate(list(TRUTH.values()))) / friction.sigma).max() < 4.0
    assert np.nanmin(model.physical.smallest_eigenvalues) > 0.0


def test_laws_of_a_log_are_chosen_beside_possible_bodies_and_calibration() -> None:
    """By default: the prior, possible bodies and tolerances are in one problem with the laws that are chosen."""
    run = as_log(law_run(CHOICE_ROBOT, ALL_JOINTS, motion_seed=1, noise_seed=2, repeats=1))
    settings = FitSettings(cutoff_Hz=40.0, delay=0.0)
    model = jb.fit(run, settings=settings, friction="choose")
    friction = model.friction
    assert model.estimator == "map"
    assert friction is not None
    assert [law.name for law in friction.laws.laws.values()] == ["stribeck", "coulomb_viscous+load"]
    assert np.nanmin(model.physical.smallest_eigenvalues) > 0.0
    assert model.calibration is not None
    assert model.calibration.covariance.shape == (model.base.rank, model.base.rank)
    exact = jb.fit(run, settings=replace(settings, tolerances="none"), friction="choose").friction
    assert exact is not None
    # Seven errors, all within 4 σ but once in 2000 times.
    assert np.abs((exact.parameters - np.concatenate(list(TRUTH.values()))) / exact.sigma).max() < 4.0
    # Torque constants that may be 5 % off are in the friction's error bars, as Coulomb friction is a torque.
    coulomb = friction.names.index("j1.coulomb")
    assert friction.sigma[coulomb] > max(0.03 * friction.parameters[coulomb], 3.0 * exact.sigma[coulomb])
