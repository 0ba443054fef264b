"""Samples sent each few ticks tell what samples at each tick do, as long as none is missing.

Settings of a fit.

Logged velocities: their lag is found, and they are taken where they predict unseen time better, and only there.
"""

import dataclasses

import numpy as np
import pytest

from jointbench import fit
from jointbench.arrays import CHUNK_ROWS, Array
from jointbench.errors import FitError
from jointbench.excitation import RestToRestFourier
from jointbench.identification import validate
from jointbench.identification.logged_velocity import velocity_relation, with_logged_velocity
from jointbench.identification.recorded_signals import bridge_gaps, filled, recorded_signals, spacing
from jointbench.identification.settings import FitSettings
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import PERIOD_S, arm, as_log, run_of, synthetic_run

ALL = np.ones(2, dtype=np.bool_)
# Of the polynomial through six points 8 ms apart of a 3 Hz wave: (2π 3 · 0.008)⁶ / 6! · max |Π (x - k)|, at the ends.
ERROR = (2.0 * np.pi * 3.0 * 0.008) ** 6 / 720.0 * 16.91


def seldom(values: Array, every: int, phase: int = 0) -> Array:
    left = np.full_like(values, np.nan)
    left[phase::every] = values[phase::every]
    return left


def wave(n: int) -> Array:
    time = np.arange(n) * 1e-3
    return np.stack([np.sin(2.0 * np.pi * 2.0 * time), np.cos(2.0 * np.pi * 3.0 * time)], axis=1)


@pytest.mark.parametrize("every", [2, 8])
@pytest.mark.parametrize("phase", [0, 1])
def test_slow_motion_is_filled_in(every: int, phase: int) -> None:
    values = wave(1000)
    left = seldom(values, every, phase)
    assert spacing(left, ALL) == every
    whole = filled(left, every, ALL)
    known = np.flatnonzero(np.isfinite(left[:, 0]))
    inside = slice(known[0], known[-1] + 1)
    np.testing.assert_allclose(whole[inside], values[inside], atol=ERROR)
    np.testing.assert_array_equal(whole[known], values[known])
    assert np.isnan(whole[: known[0]]).all()
    assert np.isnan(whole[known[-1] + 1 :]).all()


def test_nothing_is_filled_in_over_a_gap() -> None:
    left = seldom(wave(1000), 8)
    left[400] = np.nan
    whole = filled(left, 8, ALL)
    assert np.isnan(whole[393:408]).all()
    assert np.isfinite(whole[:393]).all()
    assert np.isfinite(whole[408:993]).all()


def test_a_joint_that_is_not_needed_does_not_matter() -> None:
    left = seldom(wave(400), 8)
    left[:, 1] = np.nan
    assert spacing(left, np.array([True, False])) == 8
    whole = filled(left, 8, np.array([True, False]))
    assert np.isfinite(whole[:393, 0]).all()


def test_the_pieces_of_a_long_log_fit_together() -> None:
    n = CHUNK_ROWS + 4001
    whole = filled(seldom(wave(n), 8), 8, ALL)
    np.testing.assert_allclose(whole[: n - 8], wave(n)[: n - 8], atol=ERROR)


def test_samples_at_each_tick_are_let_be() -> None:
    values = wave(50)
    values[7:9] = np.nan
    assert spacing(values, ALL) == 1


def each_eighth(run: Run) -> Run:
    samples = run.samples
    assert samples.motor_torque is not None
    return dataclasses.replace(
        run,
        samples=dataclasses.replace(
            samples,
            motor_position=seldom(samples.motor_position, 8, 3),
            motor_torque=seldom(samples.motor_torque, 8, 3),
        ),
    )


def test_a_fit_of_each_eighth_sample_is_that_of_all() -> None:
    run = synthetic_run(arm(), motion_seed=1, noise_seed=2)
    settings = FitSettings(cutoff_Hz=15.0)
    whole, thin = fit(run, settings=settings), fit(each_eighth(run), settings=settings)
    apart = np.abs(whole.parameters - thin.parameters)
    # An eighth of the samples tells each with √8 times the deviation.
    assert (apart < 3.0 * np.sqrt(8.0) * whole.sigma).all()
    assert whole.verdict.word == thin.verdict.word


def test_the_cutoff_follows_the_samples() -> None:
    run = each_eighth(synthetic_run(arm(), motion_seed=1, noise_seed=2))
    chosen = fit(run).settings.cutoff_Hz
    assert chosen is not None
    assert chosen <= 0.2 * 125.0 + 1e-9
    with pytest.raises(FitError, match=r"cutoff_Hz = 80 is beyond what run synthetic tells, .* 8 ms: at most 62\.5 Hz"):
        fit(run, settings=FitSettings(cutoff_Hz=80.0))


def log_with_gaps(*gaps: slice) -> Run:
    run = as_log(synthetic_run(arm(2), motion_seed=1, noise_seed=1, repeats=1))
    valid = run.samples.valid.copy()
    torque = run.samples.motor_torque
    assert torque is not None
    torque = torque.copy()
    for gap in gaps:
        valid[gap], torque[gap] = False, np.nan
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, valid=valid, motor_torque=torque))


def test_short_gaps_are_bridged_by_straight_lines_and_long_ones_stay() -> None:
    run = log_with_gaps(slice(0, 3), slice(1000, 1009), slice(2000, 2040), slice(9995, None))
    signals = recorded_signals(run, run.robot, FitSettings())
    bridged = bridge_gaps(signals, 0.025)
    assert bridged.gaps == (1, 1)  # what lies before the first valid sample, or behind the last, is no gap
    assert bridged.valid[1000:1009].all()
    assert not bridged.valid[2000:2040].any()
    ends = signals.torque[[999, 1009]]
    np.testing.assert_allclose(bridged.torque[999:1010], np.linspace(ends[0], ends[1], 11), rtol=1e-12)
    kept = signals.valid
    np.testing.assert_array_equal(bridged.torque[kept], signals.torque[kept])
    assert np.isnan(signals.torque[1000:1009]).all()  # the recording's own stay as they are


def test_a_gap_as_long_as_allowed_is_bridged() -> None:
    signals = recorded_signals(log_with_gaps(slice(1000, 1009)), arm(2), FitSettings())
    assert bridge_gaps(signals, 0.0101).gaps == (1, 0)  # 10 ms from one valid sample to the next
    assert bridge_gaps(signals, 0.0099).gaps == (0, 1)


def test_a_log_in_many_pieces_is_fitted_as_a_whole() -> None:
    """Gaps of 2 to 9 ms all over a log of 10 s split it into pieces too short for any filter, if not bridged."""
    rng = np.random.default_rng(0)
    starts = np.cumsum(rng.integers(120, 230, 57))
    gaps = [slice(int(start), int(start + rng.integers(2, 10))) for start in starts]
    whole, gappy = (
        fit(log, settings={"cutoff_Hz": 20.0, "delay": 0.0}) for log in (log_with_gaps(), log_with_gaps(*gaps))
    )
    assert gappy.rows == pytest.approx(whole.rows, rel=0.02)
    # What is interpolated over 9 ms is off by far less than a period of 20 Hz smears.
    assert np.abs((gappy.parameters - whole.parameters) / whole.sigma).max() < 0.5
    assert any(
        "57 gaps of at most half a period of the cut-off are bridged, 0 longer ones" in note for note in gappy.notes
    )


def test_settings_survive_a_dictionary():
    settings = FitSettings(cutoff_Hz=12.5, velocity_threshold=(0.1, 0.2), interval=(1.0, 2.0), torque="joint")
    assert FitSettings.from_dict(settings.to_dict()) == settings
    assert FitSettings.from_dict({}) == FitSettings()
    for delay in ((0.001, -0.002), "estimate", "estimate_per_joint"):
        assert FitSettings.from_dict(FitSettings(delay=delay).to_dict()).delay == delay


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cutof_Hz": 3}, r"fit setting 'cutof_Hz' is not known; the settings are cutoff_Hz, filter_order"),
        ({"position": "both"}, r"position = 'both' must be one of 'motor', 'link'"),
        ({"torque": "sensor"}, r"torque = 'sensor' must be one of 'motor', 'joint'"),
        ({"rest_guard": -1}, r"rest_guard = -1 s must be 0 or more"),
        ({"velocity_threshold": [0.1, -0.1]}, r"velocity_threshold = \[0.1, -0.1\] must be 0 or more"),
        ({"interval": [2.0, 1.0]}, r"interval = \[2.0, 1.0\] must be \[from, to\] in seconds"),
        ({"motion": "spline"}, r"motion = 'spline' must be one of 'filtered', 'fourier'"),
        ({"delay": "2 ms"}, r"delay = '2 ms' must be a number of seconds, one for each joint, or 'estimate' or"),
        ({"delay": [0.001, "x"]}, r"delay = \(0.001, 'x'\) must be made of numbers"),
        ({"cutoff_Hz": "20 Hz"}, r"cutoff_Hz = '20 Hz' must be made of numbers"),
        ({"cutoff_Hz": float("nan")}, r"cutoff_Hz = nan must be made of numbers"),
        ({"cutoff_Hz": [20.0, 30.0]}, r"cutoff_Hz = \(20.0, 30.0\) must be one number"),
        ({"rest_guard": float("inf")}, r"rest_guard = inf must be made of numbers"),
        ({"delay": float("nan")}, r"delay = nan must be made of numbers"),
        ({"filter_order": 2.5}, r"filter_order = 2.5 must be a whole number"),
        ({"average_periods": "no"}, r"average_periods = 'no' must be true or false"),
        ({"velocity_threshold": 0.1}, r"velocity_threshold = 0.1 must be a list"),
        ({"velocity_threshold": []}, r"velocity_threshold = \(\) must be a list"),
        ({"interval": 5.0}, r"interval = 5.0 must be \[from, to\]"),
        ({"interval": [1.0, 2.0, 3.0]}, r"interval = \(1.0, 2.0, 3.0\) must be \[from, to\]"),
    ],
)
def test_bad_settings_are_named(values: dict[str, object], message: str):
    with pytest.raises(FitError, match=message):
        FitSettings.from_dict(values)


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
