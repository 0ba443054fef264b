"""Friction laws in one set of sums with all else: equal to least squares of the rows, possible bodies, exported."""

from dataclasses import replace

import numpy as np
import pytest

import jointbench as jb
from jointbench.arrays import Array
from jointbench.identification import FitSettings, Model
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.friction.joint_laws import JointLaws, LawPoint, LawRows
from jointbench.identification.friction.law_tables import BELLS, Grid, JointState, LawTables
from jointbench.identification.friction.terms import friction_law
from jointbench.identification.judgement import FOLDS
from jointbench.identification.observations import observe
from jointbench.model import base_parameters
from jointbench.results import export
from jointbench.tests.identification.friction.law_runs import (
    law_run,
    loaded,
    stribeck,
    truth_without_friction,
)
from jointbench.tests.identification.synthetic import arm, as_log

ROBOT = arm(2)
JOINTS = {"j1": stribeck(6.0, 4.0, 9.0, 0.2), "j2": loaded(5.0, 8.0, 0.08)}
TRUTH = {"j1": [6.0, 4.0, 9.0, 0.2], "j2": [5.0, 8.0, 0.08]}
GRID = Grid((0.05, 2.0), (0.1, 60.0), 50.0)


@pytest.fixture(scope="module")
def problem() -> Problem:
    run = law_run(ROBOT, JOINTS, motion_seed=1, noise_seed=1, repeats=1)
    base = base_parameters(ROBOT)
    rows = observe(run, ROBOT, base, FitSettings())
    return Problem(ROBOT, base, (run,), (rows,), (rows,))


def test_laws_in_sums_are_least_squares_of_the_rows(problem: Problem) -> None:
    """At a grid point of its shape a law's column is exact, so that elimination must give what the rows give."""
    base = problem.base
    node = float(np.geomspace(*GRID.bell, BELLS)[7])
    laws = JointLaws(base, {name: friction_law("stribeck") for name in ROBOT.joint_names})
    tables = LawTables.of(problem, np.zeros(base.rank), dict.fromkeys(ROBOT.joint_names, GRID), None)
    spread = np.array([0.5, 2.0])
    states = {name: JointState(friction_law("stribeck"), np.log([node])) for name in ROBOT.joint_names}
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
    runs = [law_run(ROBOT, JOINTS, motion_seed=1, noise_seed=k) for k in range(2)]
    laws = {"j1": "stribeck", "j2": "coulomb_viscous+load"}
    return [jb.fit(run, friction=laws, estimator="map") for run in runs]


def test_possible_bodies_and_laws_come_back_together(models: list[Model]) -> None:
    in_sigma: list[Array] = []
    for model in models:
        friction = model.friction
        assert friction is not None
        in_sigma.append((friction.parameters - np.concatenate(list(TRUTH.values()))) / friction.sigma)
        told = np.isfinite(np.diag(model.covariance))
        error = model.parameters - model.base.group(truth_without_friction(ROBOT, JOINTS))
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
    run = law_run(ROBOT, JOINTS, motion_seed=1, noise_seed=3, repeats=1)
    model = jb.fit(run, friction={"j1": "stribeck", "j2": "coulomb_viscous+load"}, estimator="physical")
    friction = model.friction
    assert friction is not None
    # Seven errors, all within 4 σ but once in 2000 times.
    assert np.abs((friction.parameters - np.concatenate(list(TRUTH.values()))) / friction.sigma).max() < 4.0
    assert np.nanmin(model.physical.smallest_eigenvalues) > 0.0


def test_laws_of_a_log_are_chosen_beside_possible_bodies_and_calibration() -> None:
    """By default: the prior, possible bodies and tolerances are in one problem with the laws that are chosen."""
    run = as_log(law_run(ROBOT, JOINTS, motion_seed=1, noise_seed=2, repeats=1))
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
