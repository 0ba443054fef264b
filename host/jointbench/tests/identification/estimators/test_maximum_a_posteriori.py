"""The default for logs: possible bodies, honest where the data say little."""

import dataclasses

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import FitSettings, fit
from jointbench.identification.estimators import make_estimator
from jointbench.identification.estimators.physical import MaximumAPosteriori
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, as_log, synthetic_run, truth

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
