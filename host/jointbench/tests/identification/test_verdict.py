"""The one verdict on a model: no good word above a contradiction, whichever part it lies in.

What is left unexplained is noise, or follows from what was left unexplained before.

Models judged at one cut-off, against filtered and unfiltered torque.
"""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest
from scipy import signal, stats

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification import Model, fit, load_model, validate, validate_models
from jointbench.identification.settings import FitSettings
from jointbench.identification.validation import common_cutoff, judging_settings
from jointbench.identification.verdict import Part, WholeVerdict, condition, impossible_signs
from jointbench.identification.whiteness import (
    STRUCTURED_SHARE,
    WHITE_SHARE,
    Whiteness,
    WhitenessSums,
    whiteness,
)
from jointbench.model import model_parameter_names
from jointbench.recording import Run
from jointbench.signals import BoardFilter, LowPass
from jointbench.tests.identification.synthetic import FILTER, arm, run_of, synthetic_run, truth
from jointbench.tests.results.recordings import whole_ledger

ARM = arm(2)
PARTS = ["recording", "log check", "physical consistency", "parameters", "joints"]


@lru_cache(maxsize=8)
def recorded(motion: int = 1, parameter: str = "", value: float = 0.0) -> Run:
    """A recording of an arm, one of whose true parameters is this one."""
    values = truth(ARM)
    if parameter:
        values[model_parameter_names(ARM).index(parameter)] = value
    return synthetic_run(ARM, motion_seed=motion, noise_seed=motion, full_parameters=values)


@lru_cache(maxsize=8)
def model(parameter: str = "", value: float = 0.0) -> Model:
    return fit(recorded(1, parameter, value))


def word_of(verdict: WholeVerdict, name: str) -> str:
    return next(part.word for part in verdict.parts if part.name == name)


def test_of_a_good_fit_every_part_is_named_and_the_condition() -> None:
    verdict = model().verdict
    assert [part.name for part in verdict.parts] == PARTS
    assert {part.word for part in verdict.parts} == {"identified"}
    assert (verdict.word, verdict.is_refused, verdict.advice) == ("identified", False, "")
    assert verdict.reason.startswith("worst joint")
    assert "if the " in verdict.lines()[-1]


@pytest.mark.parametrize("name", ["j1.coulomb", "j2.coulomb", "j1.viscous"])
def test_friction_that_drives_refuses_the_model(name: str) -> None:
    made = model(name, -4.0)
    own = made.parameter_verdicts[made.names.index(name)]
    assert own.word == "refused"
    assert "below zero, and friction cannot be" in own.reason
    # The torque itself is explained as well as ever: only the sign speaks against it.
    assert {verdict.word for verdict in made.joint_verdicts} == {"identified"}
    assert made.verdict.is_refused
    assert word_of(made.verdict, "parameters") == "refused"
    assert name.partition(".")[0] in next(part.advice for part in made.verdict.parts if part.name == "parameters")


def test_friction_of_nothing_is_no_contradiction() -> None:
    made = model("j2.viscous", 0.0)
    assert made.impossible == {}
    assert not made.verdict.is_refused


def test_a_sign_counts_from_three_sigma_on() -> None:
    made, name = model(), "j1.coulomb"
    index = made.names.index(name)
    values = made.parameters.copy()
    for times, refused in ((2.9, False), (3.1, True)):
        values[index] = -times * made.sigma[index]
        assert (name in impossible_signs(made.base, values, made.sigma)) is refused
        changed = dataclasses.replace(made, parameters=values.copy())
        assert changed.parameter_verdicts[index].word != "identified"
    values[index] = -10.0
    unknown = np.full(len(values), np.inf)
    assert impossible_signs(made.base, values, unknown) == {}


def test_an_inertia_may_be_below_zero_where_it_is_a_difference() -> None:
    made = model()
    grouped = next(k for k, row in enumerate(made.base.grouping) if np.count_nonzero(row) > 1)
    values = made.parameters.copy()
    values[grouped] = -1e3 * abs(values[grouped])
    assert made.names[grouped] not in impossible_signs(made.base, values, made.sigma)


def test_a_body_that_cannot_be_refuses_the_model() -> None:
    """A rotor and its link that turn the less the more they are pushed: -5 kg·m² together."""
    made = model("j1.rotor_inertia", -5.0)
    assert word_of(made.verdict, "physical consistency") == "refused"
    assert {verdict.word for verdict in made.joint_verdicts} == {"identified"}
    assert made.verdict.is_refused


@pytest.mark.parametrize("joint", [0, 1])
def test_a_torque_of_the_other_sign_refuses_the_model(joint: int) -> None:
    samples = recorded().samples
    assert samples.motor_torque is not None
    torque = samples.motor_torque.copy()
    torque[:, joint] *= -1.0
    made = fit(dataclasses.replace(recorded(), samples=dataclasses.replace(samples, motor_torque=torque)))
    assert made.verdict.is_refused
    assert made.verdict.advice


def test_a_log_that_looks_wrong_refuses_a_model_that_fits() -> None:
    """Positions in degrees, taken for radians, are outside any limits; the same error refuses a validation."""
    narrow = dataclasses.replace(
        ARM, joints=tuple(dataclasses.replace(joint, position_limits=(-0.1, 0.1)) for joint in ARM.joints)
    )
    made = fit(recorded(), narrow)
    assert {verdict.word for verdict in made.joint_verdicts} == {"identified"}
    assert word_of(made.verdict, "log check") == "refused"
    assert made.verdict.is_refused
    assert made.verdict.reason.startswith("log check: wrong: limits")
    assert made.verdict.advice
    assert validate(made, recorded(2)).verdict.is_refused


def test_a_recording_that_lost_too_much_refuses_the_model() -> None:
    run = dataclasses.replace(recorded(), ledger=whole_ledger(ARM, samples=2000, lost=100))
    verdict = fit(run).verdict
    assert verdict.is_refused
    assert verdict.reason.startswith("recording: run synthetic is invalid")


def test_validation_carries_what_speaks_against_the_model() -> None:
    wrong = model("j1.coulomb", -4.0)
    check = validate(wrong, recorded(2, "j1.coulomb", -4.0))
    assert {verdict.word for verdict in check.joint_verdicts} == {"identified"}
    assert check.verdict.is_refused
    assert "parameters of the fit" in check.verdict.reason
    good = validate(model(), recorded(2)).verdict
    assert (good.word, good.parts[-1].name) == ("identified", "held-out error")


def test_the_model_file_keeps_the_verdict(tmp_path) -> None:
    made = dataclasses.replace(model(), run_parts=(Part("log check", "refused", "wrong: limits", "check the unit"),))
    read = load_model(made.save(tmp_path / "model.json"))
    assert read.verdict == made.verdict
    assert read.verdict.is_refused
    assert read.verdict.advice == "check the unit"


@pytest.mark.parametrize(
    ("torque", "is_log", "said"),
    [
        ("joint", True, "torque sensors are right"),
        ("motor", True, "the log's torques are right"),
        ("motor", False, "the torque constants and gear ratios are right"),
    ],
)
def test_the_condition_names_where_the_torque_is_from(torque: str, is_log: bool, said: str) -> None:
    text = condition(torque, is_log)
    assert said in text
    assert "5 %" in text
    assert "the robot's file on zeros, link lengths and axes" in text


def test_the_condition_of_a_model_with_tolerances_are_these() -> None:
    made = fit(recorded(), settings={"tolerances": {"torque_constant_percent": 7.0}})
    assert made.calibration is not None
    assert made.verdict.condition.startswith("the calibration is within its tolerances")
    assert "torque constant 7 %" in made.verdict.condition
    doubted = dataclasses.replace(
        made.calibration, contradictions=("the recording contradicts the tolerance of zeros",)
    )
    verdict = dataclasses.replace(made, calibration=doubted).verdict
    assert (verdict.word, verdict.is_refused) == ("suspicious", False)
    assert verdict.reason.startswith("calibration: the recording contradicts")
    assert "--tolerance" in verdict.advice


def test_5_percent_of_a_torque_constant_are_5_percent_of_its_parameters() -> None:
    """What the condition says, on a recording whose currents are all 5 % too large."""
    samples = recorded().samples
    assert samples.motor_torque is not None
    more = dataclasses.replace(samples, motor_torque=1.05 * samples.motor_torque)
    off = fit(dataclasses.replace(recorded(), samples=more))
    seen = model().sigma < 0.01 * np.abs(model().parameters)
    np.testing.assert_allclose(off.parameters[seen] / model().parameters[seen], 1.05, rtol=1e-3)
    assert off.verdict.word == "identified"


N = 2000


def everywhere(values: Array) -> np.ndarray:
    return np.ones(values.shape, dtype=np.bool_)


def autoregressive(correlation: float, seed: int = 0, n: int = N) -> Array:
    noise = np.random.default_rng(seed).standard_normal((n + 500, 1))
    return signal.lfilter([1.0], [1.0, -correlation], noise, axis=0)[500:]


@pytest.mark.parametrize("correlation", [0.0, 0.3, -0.5, 0.9])
def test_share_and_correlation_of_a_known_process(correlation: float):
    """Of an autoregression of first order ρ² follows from the row before, and neighbours correlate by ρ."""
    residual = autoregressive(correlation)
    found = whiteness(residual, everywhere(residual))
    # 2000 rows tell a correlation to 0.022 and ρ² to 2 ρ of that; five fitted coefficients add 5/2000.
    assert found.predictable[0] == pytest.approx(correlation**2, abs=0.01 + 0.1 * abs(correlation))
    np.testing.assert_allclose(found.correlation[0, :3], [correlation, correlation**2, correlation**3], atol=0.1)


def test_white_noise_is_called_coloured_as_often_as_it_says():
    """Noise of any changing size: that is what an ordinary portmanteau is fooled by."""
    rng = np.random.default_rng(0)
    size = np.exp(1.5 * np.sin(np.arange(N) / 30.0))[:, None]
    p_values = np.array(
        [whiteness(size * rng.standard_normal((N, 6)), np.ones((N, 6), bool)).p_value for _ in range(60)]
    )
    # 360 draws: 5 % with a standard error of 1.2 %.
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.04)
    ordinary = np.array([_ljung_box(size[:, 0] * rng.standard_normal(N)) for _ in range(60)])
    assert np.mean(ordinary < 0.05) > 0.2


def _ljung_box(residual: Array) -> float:
    lags = np.arange(1, 21)
    correlation = np.array([residual[lag:] @ residual[:-lag] for lag in lags]) / (residual @ residual)
    return float(stats.chi2.sf(N * (N + 2) * np.sum(correlation**2 / (N - lags)), 20))


def test_correlation_is_found():
    residual = autoregressive(0.2)
    assert whiteness(residual, everywhere(residual)).p_value[0] < 1e-6


def test_words_and_what_they_advise():
    residual = np.hstack([autoregressive(rho, seed) for seed, rho in enumerate((0.0, 0.5, 0.9))])
    found = whiteness(residual, everywhere(residual))
    assert found.words == ("white", "coloured", "structured")
    assert WHITE_SHARE < found.predictable[1] <= STRUCTURED_SHARE < found.predictable[2]
    assert "j2 2" in found.sentence(("j1", "j2", "j3"))
    assert "j1" not in found.sentence(("j1", "j2", "j3"))
    assert "trust the held-out error" in found.sentence(("j1", "j2", "j3"))
    assert "most often friction: try `jointbench fit RUN --friction choose`" in found.sentence(("j1", "j2", "j3"))
    alone = whiteness(residual[:, :1], everywhere(residual[:, :1]))
    assert alone.sentence(("j1",)).startswith("The residuals are noise: at most 0% of their power")


def test_the_low_pass_alone_stays_white():
    low_pass = LowPass(20.0, 0.001)
    rows = low_pass.apply(np.random.default_rng(0).standard_normal((100_000, 1)))[:: low_pass.stride]
    found = whiteness(rows, everywhere(rows))
    assert 0.01 < found.predictable[0] < 0.05
    assert found.words == ("white",)


def test_blocks_gaps_and_rows_left_out():
    residual, used = autoregressive(0.6), np.random.default_rng(1).random((N, 1)) > 0.05
    whole = whiteness(residual, used)
    for size in (3, 19, 500):
        sums = WhitenessSums(1)
        for start in range(0, N, size):
            sums.add(start, residual[start : start + size], used[start : start + size])
        parts = sums.result()
        np.testing.assert_allclose(parts.correlation, whole.correlation, rtol=1e-9)  # sums in another order
        np.testing.assert_allclose(parts.p_value, whole.p_value, rtol=1e-6)
    apart = WhitenessSums(1)
    for start in range(0, N, 100):  # the same rows in pieces of 100, with gaps between
        apart.add(2 * start, residual[start : start + 100], used[start : start + 100])
    np.testing.assert_allclose(apart.result().correlation[0, :3], whole.correlation[0, :3], atol=0.05)


def test_too_few_rows_tell_nothing():
    few = whiteness(np.ones((50, 2)), np.ones((50, 2), dtype=np.bool_))
    assert few.words == ("unknown", "unknown")
    assert few.sentence(("a", "b")) == "There are too few rows to tell whether the residuals are noise."
    read = Whiteness.from_dict(Whiteness.unknown(2).to_dict())
    np.testing.assert_array_equal(read.correlation, few.correlation)


def test_a_constant_residual_is_no_noise():
    found = whiteness(np.ones((500, 1)), np.ones((500, 1), dtype=np.bool_))
    assert found.predictable[0] > 0.99


def test_a_model_without_what_its_robot_has_leaves_structure():
    """Noise is left of a right model; of one that lacks friction, friction."""
    robot = arm(3)
    run = synthetic_run(robot, motion_seed=1, noise_seed=1)
    model = fit(run)
    assert set(model.whiteness.words) == {"white"}
    other = synthetic_run(robot, motion_seed=2, noise_seed=2)
    # On another motion the parameters' own errors are left over as well, which are no noise.
    assert set(validate(model, other).whiteness.words) <= {"white", "coloured"}
    lacking = model.parameters.copy()
    lacking[model.names.index("j2.coulomb")] = 0.0
    check = validate(dataclasses.replace(model, parameters=lacking), other)
    assert check.whiteness.words[1] == "structured"
    assert "structured" not in (check.whiteness.words[0], check.whiteness.words[2])


ARM_OF_THREE = arm(3)
NOISE_A = 0.1
LOW_HZ, HIGH_HZ = 10.0, 50.0


@lru_cache(maxsize=4)
def recorded_with(seed: int, board_filter: BoardFilter = FILTER) -> Run:
    """One period of a motion, much noisier than boards are, not averaged."""
    made = synthetic_run(
        ARM_OF_THREE,
        motion_seed=seed,
        noise_seed=seed,
        repeats=1,
        noise=NOISE_A,
        counts_per_turn=None,
        board_filter=board_filter,
    ).samples
    assert made.motor_torque is not None
    return run_of(ARM_OF_THREE, made.motor_position, made.motor_torque, plan=None, repeats=0, board_filter=board_filter)


@lru_cache(maxsize=2)
def model_at(cutoff_Hz: float) -> Model:
    return fit(recorded_with(1), settings={"cutoff_Hz": cutoff_Hz}, friction="coulomb_viscous")


def test_models_of_other_cut_offs_are_judged_at_the_lowest_over_the_same_rows():
    own = [validate(each, recorded_with(2)) for each in (model_at(LOW_HZ), model_at(HIGH_HZ))]
    low, high = validate_models((model_at(LOW_HZ), model_at(HIGH_HZ)), recorded_with(2))
    # White noise leaves the square root of the bandwidth: √5 times as much at five times the cut-off.
    assert own[1].error.rms.mean() > 1.8 * own[0].error.rms.mean()
    assert low.cutoff_Hz == high.cutoff_Hz == LOW_HZ == common_cutoff((model_at(LOW_HZ), model_at(HIGH_HZ)))
    np.testing.assert_array_equal(low.moving, high.moving)
    np.testing.assert_array_equal(low.measured, high.measured)
    # Both know the arm to a few percent of the noise: judged alike, they are alike.
    np.testing.assert_allclose(low.error.rms, high.error.rms, rtol=0.1)


def test_a_model_alone_is_judged_at_its_own_cut_off_and_speeds():
    (alone,) = validate_models((model_at(HIGH_HZ),), recorded_with(2))
    own = validate(model_at(HIGH_HZ), recorded_with(2))
    assert alone.cutoff_Hz == HIGH_HZ
    np.testing.assert_array_equal(alone.predicted, own.predicted)
    assert judging_settings(model_at(HIGH_HZ)) == dataclasses.replace(model_at(HIGH_HZ).settings, interval=None)
    asked = judging_settings(model_at(HIGH_HZ), LOW_HZ)
    assert (asked.cutoff_Hz, asked.velocity_threshold, asked.rest_guard) == (LOW_HZ, None, None)
    assert asked.delay == model_at(HIGH_HZ).settings.delay


def test_unfiltered_errors_hold_the_noise_that_the_low_pass_takes():
    check = validate(model_at(LOW_HZ), recorded_with(2))
    torque = np.array([drive.torque_per_current for drive in ARM_OF_THREE.drives]) * NOISE_A
    # The board's second-order filter of 100 Hz passes π/2 · 100/√2 of 500 Hz of white noise: a third of its deviation².
    passed = FILTER.apply(np.random.default_rng(0).standard_normal((20000, 1))).std()
    np.testing.assert_allclose(check.as_measured.all.rms, passed * torque, rtol=0.1)
    assert (check.as_measured.moving.rms > 2.0 * check.error.rms).all()
    assert (check.as_measured.all.share == 1.0).all()


def test_unfiltered_errors_do_not_depend_on_the_cut_off_of_the_judge():
    low, high = (validate(model_at(LOW_HZ), recorded_with(2), cutoff_Hz=cutoff) for cutoff in (20.0, HIGH_HZ))
    assert high.error.rms.mean() > 1.3 * low.error.rms.mean()
    # The same thousand rows but for the ends, and motions to 1 % of the torque: its noise is most of what is left.
    np.testing.assert_allclose(low.as_measured.all.rms, high.as_measured.all.rms, rtol=0.08)


def test_an_interval_leaves_the_rest_of_the_run_out():
    check = validate(model_at(LOW_HZ), recorded_with(2), interval=(2.0, 6.0))
    time = check.time[check.complete]
    # The low-pass is left a period and a half of its cut-off at either end, up to a row.
    assert 2.0 < time[0] < 2.3
    assert 5.7 < time[-1] < 6.0


def test_what_cannot_be_judged_alike_is_refused():
    other = dataclasses.replace(
        model_at(LOW_HZ), settings=dataclasses.replace(model_at(LOW_HZ).settings, torque="joint")
    )
    with pytest.raises(FitError, match=r"of different sides \(motor, joint\)"):
        validate_models((model_at(LOW_HZ), other), recorded_with(2))
    with pytest.raises(FitError, match="give these two in the settings"):
        validate(model_at(LOW_HZ), recorded_with(2), settings=FitSettings(), cutoff_Hz=5.0)
