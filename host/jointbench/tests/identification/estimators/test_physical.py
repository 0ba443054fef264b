import dataclasses

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import fit
from jointbench.identification.estimators.estimator import WeightedLeastSquares
from jointbench.identification.estimators.physical import Physical, PhysicalLogCholesky
from jointbench.identification.least_squares import Estimate
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia
from jointbench.tests.identification.estimators.exact_problem import (
    NOISE,
    base,
    exact_motion,
    noisy_rows,
    problem_of,
    true_parameters,
)
from jointbench.tests.identification.synthetic import arm, synthetic_run

LOUD = 30.0 * NOISE
"""So much that the estimates of least squares are impossible."""


def is_possible(found: Estimate) -> bool:
    assert found.physical is not None
    full = found.physical.full_parameters
    links = full[: 10 * base().robot.n_links].reshape(-1, 10)
    signed = [not name.endswith(".offset") for name in base().full_names[10 * base().robot.n_links :]]
    least = min(np.linalg.eigvalsh(pseudo_inertia(link))[0] for link in links)
    return least > 0.0 and bool(np.all(full[10 * base().robot.n_links :][signed] >= 0.0))


@pytest.mark.parametrize(
    "estimator", [Physical(), Physical(weight=1.0), Physical("uniform", 0.1), PhysicalLogCholesky()]
)
def test_what_comes_out_is_always_possible(estimator: Physical):
    moved = 0
    for seed in range(6):
        found = estimator(problem_of(noisy_rows(seed, samples=120, noise=LOUD)))
        assert is_possible(found)
        assert found.physical is not None
        np.testing.assert_array_equal(found.parameters, found.physical.base_parameters)
        moved += not found.physical.unchanged
    assert moved  # the case is one where it matters


def test_possible_estimates_stay_as_they_are():
    problem = problem_of(noisy_rows(0, noise=0.01 * NOISE))
    found, plain = Physical()(problem), WeightedLeastSquares()(problem)
    assert found.physical is not None
    assert found.physical.unchanged
    np.testing.assert_allclose(found.covariance, plain.covariance)
    assert np.abs((found.parameters - plain.parameters) / np.sqrt(np.diag(plain.covariance))).max() < 1e-3


def test_both_ways_agree():
    problem = problem_of(noisy_rows(2, samples=120, noise=LOUD))
    cones, numbers = (each(problem) for each in (Physical(weight=1.0), PhysicalLogCholesky(weight=1.0)))
    sigma = np.sqrt(np.diag(cones.covariance))
    # Both are minima of the same convex function, found to 1e-6 of its value; along flat directions that is less.
    assert np.abs((cones.parameters - numbers.parameters) / sigma).max() < 0.02


@pytest.mark.parametrize("weight", [1.0, 100.0, 1e4])
def test_a_motion_that_tells_little_is_filled_by_the_file(weight: float):
    """Two still joints: what only their motion tells is the file's, and said not to be the data's."""
    q, dq, ddq = (each.copy() for each in exact_motion())
    q[:, 1:], dq[:, 1:], ddq[:, 1:] = q[0, 1:], 0.0, 0.0
    rows = dataclasses.replace(noisy_rows(0), q=q, dq=dq, ddq=ddq)
    torque = np.concatenate([block.predict(true_parameters()) for block in rows.blocks()])
    rows = dataclasses.replace(rows, torque=torque + NOISE * np.random.default_rng(0).standard_normal(torque.shape))
    found = Physical(weight=weight)(problem_of(rows))
    names = base().leading_names
    told = found.figures["told_by_prior"]
    assert {"j2.Ixx", "j3.Izz", "j3.mcx"} <= set(told)
    assert not {"j1.coulomb", "j1.viscous", "j1.offset", "j1.Izz"} & set(told)
    sigma = np.sqrt(np.diag(found.covariance))
    assert {name for name, each in zip(names, sigma, strict=True) if np.isinf(each)} >= {"j2.viscous", "j3.coulomb"}
    # The file holds the links' truth, and drives are thought to be zero give or take what would make up the torque.
    assert np.abs((found.parameters - true_parameters()) / sigma).max() < 4.0


def test_the_weight_is_chosen_by_what_is_held_out():
    """The file holds the truth: much weight predicts best where the noise is loud."""
    found = Physical(weight="held_out")(problem_of(noisy_rows(1, samples=200, noise=LOUD)))
    assert found.figures["weight"] >= 1.0
    assert "weight" in found.notes[0]
    assert found.figures["held_out_relative_error"] < 1.0
    assert is_possible(found)


def test_the_weight_is_chosen_by_leaving_each_recording_out():
    recordings = [noisy_rows(seed, samples=150, noise=LOUD) for seed in range(3)]
    observed = dataclasses.make_dataclass("Observed", ["settings"])
    kind = dataclasses.make_dataclass("Kind", ["torque"])
    problem = dataclasses.replace(problem_of(*recordings), observations=(observed(kind("motor")),) * 3)
    found, plain = Physical(weight="held_out")(problem), WeightedLeastSquares()(problem)
    assert is_possible(found)
    # The file holds the truth, so that any weight but the least helps.
    assert found.figures["weight"] > 0.01
    sigma = np.sqrt(np.diag(plain.covariance))
    off, off_plain = (np.linalg.norm((each.parameters - true_parameters()) / sigma) for each in (found, plain))
    assert off < off_plain


def test_a_spike_is_fitted_or_refused_in_words():
    """10⁴ N·m for one sample: joint 2 tells nothing any more, so its parameters are unknown, and no numbers of 1e28."""
    robot = arm(3)
    run = synthetic_run(robot, motion_seed=1, noise_seed=1)
    torque = run.samples.motor_torque
    assert torque is not None
    torque = torque.copy()
    torque[9571, 1] = 1e4
    model = fit(
        dataclasses.replace(run, samples=dataclasses.replace(run.samples, motor_torque=torque)), estimator="physical"
    )
    assert model.verdict.word == "refused"
    assert "j2's current is below its noise" in model.verdict.reason
    assert np.isinf(model.sigma[list(model.base.leading_names).index("j2.mcx")])
    assert np.abs(model.parameters).max() < 100.0  # the largest true one is j1.viscous, 9.0


def test_numbers_that_nobody_measures_are_named():
    run = synthetic_run(arm(2), motion_seed=1, noise_seed=1)
    torque = run.samples.motor_torque
    assert torque is not None
    torque = torque.copy()
    torque[3000, 1] = 1e200
    with pytest.raises(FitError, match=r"the torque of joint 'j2' is 1e\+200 at 3 s, beyond all that is measured"):
        fit(dataclasses.replace(run, samples=dataclasses.replace(run.samples, motor_torque=torque)))


def test_equations_without_a_solution_are_named(monkeypatch):
    def diverges(*_: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr("jointbench.identification.estimators.estimator.WeightedLeastSquares.__call__", diverges)
    with pytest.raises(FitError, match=r"equations of synthetic have no solution: LinAlgError: SVD did not .*doctor"):
        fit(synthetic_run(arm(2), motion_seed=1, noise_seed=1))
