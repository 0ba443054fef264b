"""The default for logs: possible bodies, honest where the data say little."""

import dataclasses

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import FitSettings, fit
from jointbench.identification.estimators import make_estimator
from jointbench.identification.estimators.estimator import WeightedLeastSquares
from jointbench.identification.estimators.physical import MaximumAPosteriori, Physical, PhysicalLogCholesky
from jointbench.identification.least_squares import Estimate
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia
from jointbench.recording import Run
from jointbench.tests.identification.estimators.exact_problem import (
    NOISE,
    base,
    exact_motion,
    noisy_rows,
    problem_of,
    true_parameters,
)
from jointbench.tests.identification.synthetic import arm, as_log, synthetic_run, truth

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


ARM = arm(3)
SETTINGS = FitSettings(cutoff_Hz=20.0, delay=0.0, tolerances="none")
"""The simulated arms are as their file says."""


def log(seed: int, noise: float = 0.01) -> Run:
    return as_log(synthetic_run(ARM, motion_seed=seed, noise_seed=seed, repeats=1, noise=noise))


def test_it_is_the_default_of_logs_alone() -> None:
    assert fit(log(1), settings=SETTINGS).estimator == "map"
    assert fit(synthetic_run(ARM, motion_seed=1, noise_seed=1), settings=SETTINGS).estimator == "wls"


def test_error_bars_hold_the_truth() -> None:
    """The board filtered the torque, and the log does not say so: a bias of some per mille, inside the bars."""
    z = np.concatenate([fit(log(seed, noise=0.3), settings=SETTINGS).deviations(truth(ARM)) for seed in range(4)])
    # Four fits of some 20 parameters that share their errors: 2 σ hold 95 ± 5 %.
    assert np.mean(np.abs(z) < 2.0) > 0.85
    assert np.sqrt(np.mean(z**2)) < 1.5


def test_its_parameters_are_those_of_bodies() -> None:
    model = fit(log(2, noise=3.0), settings=SETTINGS, friction="coulomb_viscous")
    assert model.made_physical is not None
    assert np.nanmin(model.made_physical.smallest_eigenvalues) > 0.0
    np.testing.assert_allclose(model.made_physical.base_parameters, model.parameters, rtol=1e-9, atol=1e-9)


def test_few_rows_are_not_called_identified() -> None:
    """Two seconds of motion: joint 1 is fitted to 5 % of its torque, and time left out is predicted much worse."""
    run = log(3, noise=0.3)
    short = {"interval": (1.0, 3.0), "cutoff_Hz": 20.0, "delay": 0.0}
    free = fit(run, estimator="wls", settings=short, friction="coulomb_viscous")
    model = fit(run, settings=short, friction="coulomb_viscous")
    assert free.joint_verdicts[0].word == "identified"
    assert model.fit_relative[0] < 0.1
    assert model.held_out is not None
    assert model.held_out.optimism[0] > 1.5
    assert model.joint_verdicts[0].word == "poor fit"
    assert "on time left out of the fit" in model.joint_verdicts[0].reason


def test_what_the_data_do_not_tell_is_not_observable_whatever_the_prior_says() -> None:
    run = log(4)
    position = run.samples.motor_position.copy()
    position[:, 0] = position[0, 0]
    still = dataclasses.replace(run, samples=dataclasses.replace(run.samples, motor_position=position))
    model = fit(still, settings=SETTINGS, friction="coulomb_viscous")
    verdict = next(verdict for verdict in model.parameter_verdicts if verdict.name == "j1.viscous")
    assert verdict.word == "not observable"


def test_without_links_in_the_file_the_parameters_are_free() -> None:
    bare = dataclasses.replace(
        ARM,
        joints=tuple(
            dataclasses.replace(joint, link=dataclasses.replace(joint.link, **NOTHING)) for joint in ARM.joints
        ),
    )
    model = fit(log(5, noise=0.3), bare, settings=SETTINGS, friction="coulomb_viscous")
    assert model.made_physical is None
    assert any("bodies of the links' size" in note for note in model.notes)
    # The prior's pull is small beside the noise of a lively motion.
    assert np.sqrt(np.mean(model.deviations(truth(ARM)) ** 2)) < 1.5


NOTHING = {"mass": None, "center_of_mass": None, "inertia_about_center_of_mass": None}


@pytest.mark.parametrize("strength", [0.0, -1.0, float("nan")])
def test_a_strength_that_is_none_is_named(strength: float) -> None:
    with pytest.raises(FitError, match=r"strength = .* must be a number above 0, or None to have it chosen"):
        make_estimator("map", {"strength": strength})


def test_a_strong_prior_keeps_the_file() -> None:
    model = fit(log(6), estimator=MaximumAPosteriori(1e12), settings=SETTINGS, friction="coulomb_viscous")
    links = [
        k for k, name in enumerate(model.names) if name.split(".")[1] in ("mcx", "mcy", "Ixx", "Ixy", "Ixz", "Iyz")
    ]
    file = model.base.group(truth(ARM))
    np.testing.assert_allclose(model.parameters[links], file[links], rtol=0.05, atol=0.02)
