"""The cut-off of a log: near the best in hindsight, and where motion meets noise."""

import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification import FitSettings, fit, validate
from jointbench.identification.cutoff import CutoffChoice, TriedCutoff, choose_cutoff, motion_knee
from jointbench.identification.parallel_filter import default_cutoff
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.model import base_parameters
from jointbench.recording import Run
from jointbench.signals import LowPass, valid_spans
from jointbench.tests.identification.synthetic import PERIOD_S, arm, as_log, run_of, synthetic_run

ARM = arm(2)
BASE = base_parameters(ARM)
COARSE = 3e-4
"""Step of an encoder [rad]: 12 bits with a gear of 5."""


def rough_log(seed: int) -> Run:
    """Somebody's log: coarse positions, times that jitter, torque with slow and quick noise."""
    rng = np.random.default_rng(seed)
    run = synthetic_run(ARM, motion_seed=seed, noise_seed=seed, repeats=1, counts_per_turn=None)
    position, torque = run.samples.motor_position, run.samples.motor_torque
    assert torque is not None
    rows = np.arange(len(position))
    jitter = rows + 0.4 * rng.uniform(-1.0, 1.0, len(rows))
    late = np.stack([np.interp(jitter, rows, joint) for joint in position.T], axis=1)
    noise = LowPass(8.0, PERIOD_S).apply(rng.standard_normal(torque.shape))
    scale = torque.std(axis=0)
    rough = torque + scale * (0.5 * noise + 0.02 * rng.standard_normal(torque.shape))
    return as_log(run_of(ARM, COARSE * np.round(late / COARSE), rough, plan=None, repeats=0))


def chosen(run: Run) -> CutoffChoice:
    signals = recorded_signals(run, run.robot, FitSettings())
    parts = list(valid_spans(signals.valid))
    base = base_parameters(run.robot)
    choice = choose_cutoff(signals, base, parts, np.zeros(run.robot.n_joints), motion_knee(signals, parts))
    assert choice is not None
    return choice


def error(cutoff: float, training: Run, other: Run) -> float:
    """Error of a model of this cut-off on another log, by the torque as measured: geometric mean over the joints."""
    model = fit(training, settings={"cutoff_Hz": cutoff, "delay": 0.0}, friction="coulomb_viscous")
    wide = dataclasses.replace(model.settings, cutoff_Hz=40.0, rest_guard=None)
    return float(np.exp(np.log(validate(dataclasses.replace(model, settings=wide), other).relative).mean()))


def test_the_cutoff_is_near_the_best_in_hindsight() -> None:
    training, other = rough_log(3), rough_log(4)
    tried = [error(cutoff, training, other) for cutoff in (3.0, 6.0, 12.0, 24.0, 48.0)]
    ours = error(chosen(training).cutoff_Hz, training, other)
    # Within 4 % on eight recordings of real arms; of one short log, whose quarters are 2.5 s, a tenth is asked.
    assert ours <= 1.1 * min(tried)


def test_jitter_and_coarse_positions_are_not_taken_for_motion() -> None:
    run = rough_log(5)
    assert chosen(run).cutoff_Hz < 0.6 * default_cutoff(recorded_signals(run, ARM, FitSettings()))


@pytest.mark.parametrize("noise", [1e-5, 1e-3])
def test_the_knee_lies_where_motion_meets_noise(noise: float) -> None:
    """Of a spectrum that falls with f⁻⁶ in power, by the frequency at which it is as high as white noise."""
    rng, n, h = np.random.default_rng(0), 20_000, 0.001
    walk = np.cumsum(np.cumsum(np.cumsum(rng.standard_normal((n, 4)), axis=0), axis=0), axis=0)
    position = noise * rng.standard_normal((n, 4)) + 1e-9 * walk
    # The sum of a sum of a sum has the gain (2 π f h)⁻³.
    expected = (1e-9 / noise) ** (1.0 / 3.0) / (2.0 * np.pi * h)
    signals = recorded_signals(rough_log(1), ARM, FitSettings())
    knee = motion_knee(dataclasses.replace(signals, position=position, sample_period=h), [slice(0, n)])
    # 12 % between candidates, and one realisation of a walk; cut-offs that are tried are half an octave apart.
    assert knee == pytest.approx(expected, rel=0.3)


def test_still_joints_leave_the_choice_to_the_default() -> None:
    still: Array = np.zeros((2000, 2))
    run = as_log(run_of(ARM, still, np.ones((2000, 2)), plan=None, repeats=0))
    signals = recorded_signals(run, ARM, FitSettings())
    assert choose_cutoff(signals, BASE, [slice(0, 2000)], np.zeros(2), 5.0) is None


def test_a_choice_says_what_others_cost() -> None:
    tried = tuple(TriedCutoff(f, e) for f, e in ((5.0, 1.10), (10.0, 1.0), (20.0, 1.25)))
    choice = CutoffChoice(10.0, 8.0, tried)
    assert "cut-off 10 Hz" in choice.reason
    assert "2 × lower costs 10 %, 2 × higher costs 25 %" in choice.reason
    assert "last of those tried" not in choice.reason
    end = dataclasses.replace(choice, cutoff_Hz=20.0)
    assert end.at_end
    assert "last of those tried" in end.reason


def test_a_fit_tells_its_cutoff() -> None:
    model = fit(rough_log(6))
    assert any(note.startswith(f"cut-off {model.settings.cutoff_Hz:.3g} Hz") for note in model.notes)
    (tried,) = model.figures["cutoffs_tried"]
    assert min(error for _, error in tried) == 1.0
