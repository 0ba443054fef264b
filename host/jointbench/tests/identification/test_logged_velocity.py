"""Logged velocities: their lag is found, and they are taken where they predict unseen time better, and only there."""

import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.excitation import RestToRestFourier
from jointbench.identification import FitSettings, fit, validate
from jointbench.identification.logged_velocity import velocity_relation, with_logged_velocity
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import PERIOD_S, arm, as_log, run_of, synthetic_run

ARM = arm(2)
LAG_S = 0.004
FAST = RestToRestFourier(20, 10.0)
"""Up to 2 Hz: a low-pass that takes the steps of an encoder away takes some of this, too."""


def log(*, step: float, tachometer: float, seed: int = 3, lag: float = LAG_S) -> Run:
    """A log with encoders of a step [rad] and velocities with noise [rad/s] that come later than the positions."""
    rng = np.random.default_rng(seed)
    run = synthetic_run(ARM, motion_seed=seed, noise_seed=seed, repeats=1, counts_per_turn=None, basis=FAST)
    position, torque = run.samples.motor_position, run.samples.motor_torque
    assert torque is not None
    rows = np.arange(len(position), dtype=np.float64)
    exact = np.gradient(position, PERIOD_S, axis=0)
    late = np.stack([np.interp(rows - lag / PERIOD_S, rows, own) for own in exact.T], axis=1)
    velocity: Array = late + tachometer * rng.standard_normal(late.shape)
    coarse = as_log(run_of(ARM, step * np.round(position / step), torque, plan=None, repeats=0))
    return dataclasses.replace(coarse, samples=dataclasses.replace(coarse.samples, joint_velocity=velocity))


def notes(run: Run) -> tuple[str, list[str]]:
    model = fit(run, friction="coulomb_viscous")
    return str(model.settings.velocity), [note for note in model.notes if note.startswith("velocities")]


def test_a_clean_tachometer_beside_a_coarse_encoder_is_taken() -> None:
    run = log(step=0.01, tachometer=1e-4)
    chosen = fit(run, friction="coulomb_viscous")
    (note,) = (note for note in chosen.notes if note.startswith("velocities"))
    assert chosen.settings.velocity == "logged"
    assert "logged, in place of differences of the positions; the logged ones, " in note


@pytest.mark.slow
def test_a_model_of_a_clean_tachometer_is_nearer_to_another_log() -> None:
    run = log(step=0.01, tachometer=1e-4)
    chosen = fit(run, friction="coulomb_viscous")
    # Told by exact positions: 25 % here, of which half is asked.
    plain = fit(run, settings={"velocity": "differences"}, friction="coulomb_viscous")
    other = log(step=1e-7, tachometer=1e-4, seed=5)
    # Both with the delay that the board's filter makes, which each estimated.
    changed = {"cutoff_Hz": 20.0, "velocity": "differences", "rest_guard": None, "velocity_threshold": None}
    errors = [
        np.log(validate(model, other, settings=dataclasses.replace(model.settings, **changed)).relative).mean()
        for model in (chosen, plain)
    ]
    assert np.exp(errors[0] - errors[1]) < 0.88


def test_a_noisy_velocity_beside_a_fine_encoder_is_not() -> None:
    velocity, said = notes(log(step=1e-6, tachometer=0.2))
    assert velocity == "differences"
    assert all("differences of the positions;" in note for note in said)


@pytest.mark.parametrize("lag", [-0.006, 0.0, LAG_S, 0.02])
def test_the_lag_is_found_and_taken_out(lag: float) -> None:
    run = log(step=1e-4, tachometer=1e-3, lag=lag)
    signals = recorded_signals(run, ARM, FitSettings())
    shifted = with_logged_velocity(signals, run, [slice(0, len(signals.position))], 20.0)
    assert shifted is not None
    assert shifted.velocity is not None
    # Noise of velocities of 1 mrad/s beside a slope of some rad/s² leaves microseconds; a tenth of a sample is asked.
    assert shifted.velocity.lag == pytest.approx([lag, lag], abs=0.1 * PERIOD_S)


def test_a_velocity_in_degrees_is_not_taken() -> None:
    run = log(step=1e-4, tachometer=1e-3)
    assert run.samples.joint_velocity is not None
    degrees = dataclasses.replace(run.samples, joint_velocity=np.rad2deg(run.samples.joint_velocity))
    signals = recorded_signals(run, ARM, FitSettings())
    parts = [slice(0, len(signals.position))]
    assert with_logged_velocity(signals, dataclasses.replace(run, samples=degrees), parts, 20.0) is None
    none = dataclasses.replace(run, samples=dataclasses.replace(run.samples, joint_velocity=None))
    assert with_logged_velocity(signals, none, parts, 20.0) is None


def test_the_relation_tells_factor_and_lag() -> None:
    time = 1e-3 * np.arange(4000)
    own, late = np.sin(3.0 * time), -2.0 * np.sin(3.0 * (time - 0.01))
    relation = velocity_relation(own, late, 1e-3)
    assert (relation.factor, relation.lag) == (pytest.approx(-2.0, rel=1e-3), pytest.approx(0.01, rel=0.02))


def test_another_word_is_refused() -> None:
    with pytest.raises(FitError, match=r"velocity = 'wheel' must be one of 'differences', 'logged'"):
        FitSettings.from_dict({"velocity": "wheel"})
