"""The cut-off of a log: near the best in hindsight, and where motion meets noise.

Delays planted between torque and motion, found again as well as the noise allows.

Wherever a log is cut into stretches, its rows are the same: nothing feels the cuts.
"""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification import FitSettings, fit, validate
from jointbench.identification import observations as observing
from jointbench.identification import parallel_filter as cutting
from jointbench.identification.cutoff import CutoffChoice, TriedCutoff, choose_cutoff, motion_knee
from jointbench.identification.observations import Observations, observe
from jointbench.identification.parallel_filter import cut, default_cutoff, spread
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.model import base_parameters, model_columns, model_parameter_names
from jointbench.recording import Run
from jointbench.signals import LowPass, valid_spans
from jointbench.tests.identification.synthetic import (
    FILTER,
    PERIOD_S,
    arm,
    as_log,
    butterworth_filter,
    excitation,
    run_of,
    synthetic_run,
    truth,
)

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


STEP_S = 1e-3
NOISE = 0.03  # N·m: the delay's least deviation is then a twelfth of a sample, so that fractions of one count
SECONDS = 10.0
TIME = STEP_S * np.arange(round(SECONDS / STEP_S))


TRUTH = truth(ARM) * [not name.endswith(".coulomb") for name in model_parameter_names(ARM)]
"""Without Coulomb friction, of which samples tell only to half a sample when it turns over."""


@lru_cache(maxsize=8)
def torque_of(delay: float) -> Array:
    """Torque at times of which the motion is recorded `delay` later, of each sample of TIME."""
    columns, _ = model_columns(ARM, *excitation(ARM, 1).evaluate(TIME + delay))
    return (columns @ TRUTH).reshape(-1, 2)


def delayed_run(delay: float | tuple[float, float], seed: int, noise: float = NOISE) -> Run:
    """An import, of which nothing is known of what delayed it."""
    position = excitation(ARM, 1).evaluate(TIME)[0]
    each = delay if isinstance(delay, tuple) else (delay, delay)
    torque = np.column_stack([torque_of(late)[:, joint] for joint, late in enumerate(each)])
    torque = torque + noise * np.random.default_rng(seed).standard_normal(torque.shape)
    run = run_of(ARM, position, torque, plan=None, repeats=0)
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))


def observed(run: Run, settings: FitSettings | None = None) -> Observations:
    return observe(run, ARM, BASE, settings or FitSettings(delay="estimate"))


@pytest.mark.parametrize("samples", [0.0, 3.0, 2.37, -4.6, -20.0, 31.5])
def test_without_noise_the_delay_comes_out(samples: float):
    found = observed(delayed_run(samples * STEP_S, 0, noise=0.0)).delay
    assert found.source == "estimated"
    # Differences and the low-pass lack (2 pi f h)² of what is known here, 1e-5 at the motion's 0.5 Hz.
    assert found.seconds / STEP_S == pytest.approx([samples, samples], abs=1e-3)


@pytest.mark.parametrize("draws", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_spread_is_that_of_cramer_and_rao_and_as_stated(draws: int):
    delay = 2.37 * STEP_S
    found = [observed(delayed_run(delay, seed)).delay for seed in range(draws)]
    errors = np.array([each.seconds[0] for each in found]) - delay
    stated = np.array([each.sigma[0] for each in found])
    bound = cramer_rao(delay)
    # 40 draws tell a deviation to 11 %; the bound lets every sample away from rest count, ends of the record too.
    wider = np.sqrt(40 / draws)
    assert (1.0 - 0.2 * wider) * bound < np.sqrt(np.mean(errors**2)) < (1.0 + 0.35 * wider) * bound
    assert np.sqrt(np.mean((errors / stated) ** 2)) == pytest.approx(1.0, abs=0.3 * wider)
    assert np.abs(np.mean(errors)) < 3.0 * bound / np.sqrt(draws)


def cramer_rao(delay: float) -> float:
    """Least deviation of an unbiased delay, base parameters unknown, from the samples away from rest."""
    motion = excitation(ARM, 1).evaluate(TIME + delay)
    columns, _ = model_columns(ARM, *motion)
    rate = (torque_of(delay + 1e-6) - torque_of(delay - 1e-6)) / 2e-6
    speed = np.abs(motion[1])
    used = (speed > 0.03 * speed.max(axis=0)).ravel()
    jacobian = np.column_stack([BASE.project(columns), rate.ravel()])[used]
    scale = np.linalg.norm(jacobian, axis=0)
    information = (jacobian / scale).T @ (jacobian / scale) / NOISE**2
    return float(np.sqrt(np.linalg.inv(information)[-1, -1]) / scale[-1])


def test_each_joint_can_have_its_own():
    run = delayed_run((1.5 * STEP_S, -3.25 * STEP_S), 3, noise=0.03)
    found = observed(run, FitSettings(delay="estimate_per_joint"))
    error = found.delay.seconds - STEP_S * np.array([1.5, -3.25])
    assert np.all(np.abs(error) < 4.0 * found.delay.sigma)
    assert np.all(found.delay.sigma < 0.4 * STEP_S)
    assert found.settings.delay == tuple(found.delay.seconds)


def test_taken_out_it_spoils_no_parameter():
    run = delayed_run(6.3 * STEP_S, 5, noise=0.03)
    exact = FitSettings(tolerances="none")  # as the simulated arm is
    # The error bars are those of a known delay: a bit too small.
    assert np.abs(fit(run, settings=exact).deviations(TRUTH)).max() < 4.5
    blind = fit(run, settings=dataclasses.replace(exact, delay=0.0))
    assert np.abs(blind.deviations(TRUTH)).max() > 8.0


def test_a_boards_filter_is_a_delay_to_who_does_not_know_it():
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, noise=0.0, counts_per_turn=None)
    assert observe(run, ARM, BASE, FitSettings()).delay.source == "given"
    assert fit(run).settings.delay == 0.0
    unaware = dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))
    found = observe(unaware, ARM, BASE, FitSettings())
    # The torque is the later one. When friction turns over is told to half a sample at each of some ten reversals.
    assert -found.delay.seconds[0] == pytest.approx(FILTER.delay, abs=0.15 * STEP_S)


def test_what_is_given_is_used_and_kept():
    run = delayed_run(4.0 * STEP_S, 2, noise=0.0)
    model = fit(run, settings=FitSettings(delay=4.0 * STEP_S))
    assert model.settings.delay == 4.0 * STEP_S
    assert np.isnan(observed(run, model.settings).delay.sigma).all()
    assert model.error.total_relative < 1e-3
    assert (
        validate(model, run, in_sample=True).total_relative < 1e-3
    )  # judged with the model's delay, not with one of its own
    wrong = validate(model, run, in_sample=True, settings=dataclasses.replace(model.settings, delay=0.0))
    assert wrong.total_relative > 0.005


def test_rows_whose_torque_lies_beyond_an_end_are_left_out():
    run = delayed_run(0.0, 1)
    late, none = (observed(run, FitSettings(delay=seconds, cutoff_Hz=20.0)) for seconds in (0.5, 0.0))
    lost = none.complete.sum() - late.complete.sum()
    assert lost == pytest.approx(0.5 / (STEP_S * 25), abs=1)  # two rows per period of the cut-off
    assert late.time[late.complete][0] >= none.time[none.complete][0] + 0.5 - 1e-9


def test_a_motion_that_tells_nothing():
    still = np.tile(ARM.home, (len(TIME), 1))
    noise = np.random.default_rng(0).standard_normal(still.shape)
    run = run_of(ARM, still, noise, plan=None, repeats=0)
    run = dataclasses.replace(run, samples=dataclasses.replace(run.samples, board_filters=None))
    left_open = observe(run, ARM, BASE, FitSettings())
    assert left_open.delay.source == "not told"
    assert left_open.settings.delay == 0.0
    with pytest.raises(FitError, match=r"run synthetic: 0 rows are too few to tell a delay; give delay in seconds"):
        observed(run)


def test_left_open_only_a_delay_that_explains_much_is_taken_out():
    noisy = delayed_run(2.0 * STEP_S, 1, noise=3.0)  # 2 ms are a small part of this error
    asked, left_open = observed(noisy), observed(noisy, FitSettings())
    assert asked.delay.source == "estimated"
    assert asked.delay.explained < 0.2
    assert left_open.delay.source == "not told"
    assert left_open.settings.delay == 0.0
    assert "of the torque's squared error: friction unlike the model's can do that too" in left_open.delay.reason
    clear = observed(delayed_run(5.0 * STEP_S, 1, noise=0.03), FitSettings()).delay
    assert clear.source == "estimated"
    assert clear.explained > 0.2


def test_left_open_a_long_delay_is_doubted():
    run = delayed_run(0.03, 1, noise=0.03)
    found = observed(run, FitSettings(cutoff_Hz=20.0)).delay
    assert found.source == "not told"
    assert "a quarter of the cut-off's period, 12.5 ms: so long a shift may fit swings by chance" in found.reason
    asked = observed(run, FitSettings(cutoff_Hz=20.0, delay="estimate")).delay
    assert asked.seconds[0] == pytest.approx(0.03, abs=1e-3)


def test_a_delay_beyond_the_range_is_not_made_up():
    run = delayed_run(0.4, 1, noise=0.0)
    with pytest.raises(FitError, match=r"no clear minimum over delays up to ±\d+(\.\d+)? ms"):
        observed(run)


def test_one_for_each_joint_or_one_for_all():
    with pytest.raises(FitError, match=r"delay has 3 values; robot 'cobot6' needs one for all joints, or one for each"):
        observed(delayed_run(0.0, 1), FitSettings(delay=(0.0, 0.0, 0.0)))


LONGER_ARM = arm(3)
ITS_BASE = base_parameters(LONGER_ARM)
SLOW = butterworth_filter(4, 8.0, cic_order=2)  # remembers for a second


def run_with_a_gap(*, known_filter: bool) -> Run:
    run = synthetic_run(LONGER_ARM, motion_seed=1, noise_seed=1, repeats=1, board_filter=SLOW)
    valid = run.samples.valid.copy()
    valid[3100:3160] = False
    position, torque = run.samples.motor_position, run.samples.motor_torque
    assert torque is not None
    samples = dataclasses.replace(
        run.samples, valid=valid, motor_position=np.where(valid, position, np.nan),
        motor_torque=np.where(valid, torque, np.nan), board_filters=run.samples.board_filters if known_filter else None,
    )  # fmt: skip
    return dataclasses.replace(run, samples=samples)


def stretched_observations(
    monkeypatch: pytest.MonkeyPatch, run: Run, samples: int, settings: FitSettings
) -> Observations:
    monkeypatch.setattr(cutting, "SAMPLES", samples)
    monkeypatch.setattr(cutting, "_MEMORIES", 0)
    return observe(run, LONGER_ARM, ITS_BASE, settings)


SETTINGS = (
    (True, FitSettings()),
    (False, FitSettings(delay=(0.031, -0.017, 0.2))),
    (False, FitSettings(delay="estimate")),
    (False, FitSettings(cutoff_Hz=60.0, rest_guard=0.3, filter_order=8, delay=0.0)),
)


@pytest.mark.parametrize(("known_filter", "settings"), SETTINGS)
@pytest.mark.parametrize("samples", [400, 1234])
def test_any_cut_gives_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, known_filter: bool, settings: FitSettings, samples: int
):
    run = run_with_a_gap(known_filter=known_filter)
    whole = stretched_observations(monkeypatch, run, 10**6, settings)
    pieces = stretched_observations(monkeypatch, run, samples, settings)
    assert len(whole.stretches) == 2
    assert len(pieces.stretches) > 8_000 // samples
    np.testing.assert_array_equal(pieces.complete, whole.complete)
    np.testing.assert_array_equal(pieces.moving, whole.moving)
    assert whole.settings.velocity_threshold is not None
    assert pieces.settings.velocity_threshold == pytest.approx(whole.settings.velocity_threshold, rel=1e-9)
    # Second differences of positions divide by h² = 1e-6: their rounding, 1e-16 of some radians, becomes 1e-9.
    for name in ("regressor", "torque"):
        one, other = getattr(pieces, name), getattr(whole, name)
        np.testing.assert_allclose(one, other, atol=3e-9 * np.abs(other).max(), err_msg=name)
    for name in ("q", "dq", "ddq"):
        one, other = getattr(pieces.motion, name), getattr(whole.motion, name)
        np.testing.assert_allclose(one, other, atol=3e-9 * max(1.0, np.abs(other).max()), err_msg=name)


def test_a_cut_is_felt_by_who_takes_too_little_of_the_neighbours(monkeypatch: pytest.MonkeyPatch):
    run, settings = run_with_a_gap(known_filter=False), FitSettings(delay=0.0)
    whole = stretched_observations(monkeypatch, run, 10**6, settings)
    monkeypatch.setattr(LowPass, "memory", property(lambda self: self.settling))
    pieces = stretched_observations(monkeypatch, run, 1234, settings)
    assert np.abs(pieces.regressor - whole.regressor).max() > 1e-4 * np.abs(whole.regressor).max()


def no_room(_: object) -> None:
    raise OSError("no space left on device")


@pytest.mark.parametrize("room", [True, False])
def test_blocks_of_a_long_log_are_read_or_computed_again_and_the_same(monkeypatch: pytest.MonkeyPatch, room: bool):
    run = run_with_a_gap(known_filter=True)
    kept = observe(run, LONGER_ARM, ITS_BASE, FitSettings())
    assert [a is b for a, b in zip(kept.blocks(), kept.blocks(), strict=True)] == [True, True]
    monkeypatch.setattr(observing, "_IN_MEMORY", 0.0)
    if not room:
        monkeypatch.setattr(observing, "BlocksInFile", no_room)
    again = observe(run, LONGER_ARM, ITS_BASE, FitSettings())
    for _ in range(2):
        for found, wanted in zip(again.blocks(), kept.blocks(), strict=True):
            assert found is not wanted
            assert found.start == wanted.start
            for name in ("regressor", "torque", "used", "complete"):
                np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
            for name in ("q", "dq", "ddq"):
                np.testing.assert_array_equal(getattr(found.motion, name), getattr(wanted.motion, name))


def test_every_sample_and_every_row_is_in_one_stretch():
    low_pass = LowPass(20.0, 1e-3)
    parts = [slice(7, 5003), slice(5100, 5100 + 2 * low_pass.settling + 27)]
    stretches = cut(parts, low_pass, most=600)
    samples = np.concatenate([np.arange(stretch.own.start, stretch.own.stop) for stretch in stretches])
    np.testing.assert_array_equal(samples, np.concatenate([np.arange(part.start, part.stop) for part in parts]))
    rows = np.concatenate([np.arange(stretch.rows.start, stretch.rows.stop) for stretch in stretches])
    grid = np.arange(0, parts[-1].stop, low_pass.stride)
    away = [(grid >= part.start + low_pass.settling) & (grid < part.stop - low_pass.settling) for part in parts]
    np.testing.assert_array_equal(rows, np.flatnonzero(away[0] | away[1]))
    for stretch in stretches:
        span = stretch.around(50)
        assert stretch.part.start <= span.start <= stretch.own.start
        rows = np.arange(stretch.rows.start, stretch.rows.stop)
        np.testing.assert_array_equal(stretch.places(span) + span.start, stretch.stride * rows)


def test_chosen_stretches_lie_evenly():
    stretches = cut([slice(0, 1_000_000)], LowPass(20.0, 1e-3), most=5000)
    chosen = spread(stretches, 4000)
    assert sum(each.n_rows for each in chosen) == pytest.approx(4000, rel=0.1)
    middles = [0.5 * (each.own.start + each.own.stop) for each in chosen]
    apart = np.diff([-middles[0], *middles, 2_000_000 - middles[-1]])
    assert apart == pytest.approx(1_000_000 / len(chosen), abs=6000)  # whole stretches of 5000 samples are chosen
    assert spread(stretches, 10**9) == stretches
    assert len(spread(stretches, 1)) == 1
