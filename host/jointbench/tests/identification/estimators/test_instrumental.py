"""Instrumental variables, the fit with instruments, and pairs of rows."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import signal

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.instrumental import (
    InstrumentalVariables,
    InstrumentedEstimate,
    instrumented_fit,
)
from jointbench.identification.estimators.paired_rows import Chosen, OtherRegressor, PairedRows
from jointbench.identification.least_squares import Estimate, least_squares, weighted_least_squares
from jointbench.identification.rows import Block, RowsInMemory
from jointbench.recording import Run
from jointbench.tests.identification.estimators.exact_problem import (
    BASE,
    TRUTH,
    cramer_rao,
    noisy_run,
    problem_of_runs,
    z_of_mean,
)

NOISE = 6e-5
"""Of positions [rad]: its second derivative after the low-pass is as large as the motion's own."""


def imported(run: Run) -> Run:
    """The run as somebody's log: nothing is known of what was planned."""
    still = np.full_like(run.samples.play_tick, -1)
    return dataclasses.replace(
        run, excitation=None, repeats=0, samples=dataclasses.replace(run.samples, play_tick=still)
    )


def errors(estimate: Estimate) -> Array:
    return (estimate.parameters - TRUTH) / np.sqrt(np.diag(estimate.covariance))


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [problem_of_runs(noisy_run(NOISE, seed)) for seed in range(40)]


@pytest.mark.slow
@pytest.mark.parametrize("instruments", ["simulated", "planned", "periods"])
def test_noise_of_positions_biases_least_squares_and_not_this(problems: list[Problem], instruments: str) -> None:
    estimates = [InstrumentalVariables(instruments)(problem) for problem in problems]
    found = np.array([estimate.parameters for estimate in estimates])
    plain = np.array([least_squares(problem.parts).parameters for problem in problems])
    # Of 14 means in units of their own deviation, of 40 draws, the largest is below 3.7 in 99 % of all cases.
    assert np.abs(z_of_mean(found, TRUTH)).max() < 3.7
    assert np.abs(z_of_mean(plain, TRUTH)).max() > 15.0
    # The bound knows nothing of the noise of positions; half as much again is its price, and that of coloured noise.
    bound = cramer_rao(problems[0], estimates[0].joint_sigma)
    assert np.median(found.std(axis=0, ddof=1) / bound) < 1.5
    # 560 intervals, those of a draw correlated: a share of 95 % is told to about 2 %.
    within = np.abs([errors(estimate) for estimate in estimates]) < 1.96
    assert 0.89 < within.mean() < 0.99


def test_it_says_what_it_did() -> None:
    problem = problem_of_runs(noisy_run(NOISE, 0))
    estimate = InstrumentalVariables()(problem)
    assert estimate.figures["instruments"] == "simulated"
    assert 2 <= estimate.figures["passes"] <= 6
    assert "follows the planned motion" in estimate.notes[0]
    assert "passes until the parameters settled" in estimate.notes[0]
    assert 0.5 < estimate.figures["canonical_correlation"] < 1.0
    assert estimate.figures["largest_difference_from_wls_sigma"] > 2.0
    assert "largest difference from wls" in estimate.notes[2]
    halves = InstrumentalVariables("periods")(problem)
    assert "the other half's rows" in halves.notes[0]
    assert halves.joint_sigma.shape == (2,)


def test_the_same_motion_without_noise_needs_no_instruments() -> None:
    problem = problem_of_runs(noisy_run(0.0, 0))
    plain = least_squares(problem.parts)
    for instruments in ("simulated", "planned", "periods"):
        found = InstrumentalVariables(instruments)(problem)
        apart = (found.parameters - plain.parameters) / np.sqrt(np.diag(plain.covariance))
        # "simulated" weighs rows by another motion, and halves leave a row out that wls has: as much as noise at most.
        assert np.abs(apart).max() < 1.0
        assert found.figures["canonical_correlation"] > 0.9


def test_without_a_plan_the_measured_motion_is_followed() -> None:
    run = imported(noisy_run(0.0, 0))
    estimate = InstrumentalVariables()(problem_of_runs(run))
    assert "follows the measured motion" in estimate.notes[0]
    assert np.abs(errors(estimate)).max() < 4.0
    with pytest.raises(FitError, match=r'holds no planned motion.*Choose instruments = "simulated"'):
        InstrumentalVariables("planned")(problem_of_runs(run))
    with pytest.raises(FitError, match="no periods of a played motion"):
        InstrumentalVariables("periods")(problem_of_runs(run))


def test_halves_need_repeats() -> None:
    with pytest.raises(FitError, match="plays its motion once; its periods can be halved from two on"):
        InstrumentalVariables("periods")(problem_of_runs(noisy_run(0.0, 0, repeats=1)))


def test_two_recordings_make_one_estimate() -> None:
    one, two = noisy_run(NOISE, 0), noisy_run(NOISE, 1)
    alone = InstrumentalVariables("planned")(problem_of_runs(one))
    both = InstrumentalVariables("planned")(problem_of_runs(one, two))
    shrunk = np.sqrt(np.diag(both.covariance) / np.diag(alone.covariance))
    assert np.median(shrunk) == pytest.approx(np.sqrt(0.5), rel=0.2)  # σ itself is told to 10 % or so
    assert both.parameters.shape == (BASE.rank,)


def test_instruments_that_know_next_to_nothing_are_said_to_be_weak() -> None:
    estimate = InstrumentalVariables("periods")(problem_of_runs(noisy_run(3e-4, 0)))
    assert estimate.figures["canonical_correlation"] < 0.5
    assert any("the instruments are weak" in note for note in estimate.notes)


def test_parameters_that_do_not_settle_are_no_result() -> None:
    with pytest.raises(FitError, match=r"iv: after 1 passes .* still changes by"):
        InstrumentalVariables(passes=1)(problem_of_runs(noisy_run(NOISE, 0)))


def test_options_that_nobody_can_mean() -> None:
    with pytest.raises(FitError, match="instruments = 'lagged' must be one of 'simulated', 'planned', 'periods'"):
        InstrumentalVariables("lagged")
    with pytest.raises(FitError, match="passes = 0 must be 1 or more"):
        InstrumentalVariables(passes=0)
    with pytest.raises(FitError, match="bandwidth_Hz = -1 must be a number above 0"):
        InstrumentalVariables(bandwidth_Hz=-1.0)


def test_passive_joints_need_instruments_that_are_not_simulated() -> None:
    run = noisy_run(NOISE, 0)
    robot = run.robot
    passive = dataclasses.replace(robot, joints=(robot.joints[0], dataclasses.replace(robot.joints[1], passive=True)))
    problem = problem_of_runs(dataclasses.replace(run, robot=passive), robot=passive)
    with pytest.raises(FitError, match=r"joint j2 is passive.*\"planned\" or \"periods\""):
        InstrumentalVariables()(problem)
    for instruments in ("planned", "periods"):
        estimate = InstrumentalVariables(instruments)(problem)
        assert np.isfinite(np.diag(estimate.covariance)).any()
        assert np.isnan(estimate.joint_sigma[1])


N, JOINTS, P = 600, 2, 4
TRUE_PARAMETERS = np.array([3.0, -1.0, 0.5, 20.0])
SIGMA = np.array([0.1, 2.0])
COLUMN_NOISE = np.array([0.3, 0.2, 0.0, 0.1])
"""Of the regressor's columns, whose own deviation is 1."""
ALL = np.ones((N, JOINTS), dtype=np.bool_)


def smooth_columns(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    slow = signal.lfilter(*signal.butter(2, 0.05), rng.standard_normal((N, JOINTS, P)), axis=0)
    return slow / slow.std(axis=0)


def solved(measured: Array, instruments: Array, torque: Array) -> InstrumentedEstimate:
    return instrumented_fit([PairedRows(RowsInMemory(measured, torque, ALL), RowsInMemory(instruments, torque, ALL))])


def test_with_the_regressor_for_its_own_instruments_it_is_least_squares() -> None:
    x = smooth_columns(0)
    torque = x @ TRUE_PARAMETERS + SIGMA * np.random.default_rng(1).standard_normal((N, JOINTS))
    found, plain = solved(x, x, torque), weighted_least_squares(x, torque, ALL)
    # Weights differ by how the freedom of 1200 rows is shared between the joints.
    assert found.estimate.parameters == pytest.approx(plain.parameters, abs=1e-3)
    assert np.sqrt(np.diag(found.estimate.covariance)) == pytest.approx(np.sqrt(np.diag(plain.covariance)), rel=0.02)
    assert found.estimate.condition_number == pytest.approx(plain.condition_number, rel=1e-9)
    assert found.estimate.joint_sigma == pytest.approx(plain.joint_sigma, rel=1e-2)
    assert found.correlation == pytest.approx(1.0, abs=1e-9)


def test_what_the_instruments_are_mixed_of_does_not_matter() -> None:
    x = smooth_columns(0)
    rng = np.random.default_rng(2)
    z, torque = x + 0.3 * rng.standard_normal(x.shape), x @ TRUE_PARAMETERS + SIGMA * rng.standard_normal((N, JOINTS))
    mixed = z @ (np.eye(P) + 0.2 * rng.standard_normal((P, P)))
    one, two = solved(x, z, torque), solved(x, mixed, torque)
    assert two.estimate.parameters == pytest.approx(one.estimate.parameters, rel=1e-9)
    assert two.estimate.covariance == pytest.approx(one.estimate.covariance, rel=1e-6)
    assert two.correlation == pytest.approx(one.correlation, rel=1e-9)


@pytest.mark.parametrize("draws", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_it_is_right_where_least_squares_are_not_and_its_error_bars_hold(draws: int) -> None:
    x = smooth_columns(0)
    rng = np.random.default_rng(3)
    found, stated, plain = [], [], []
    for _ in range(draws):
        torque = x @ TRUE_PARAMETERS + SIGMA * rng.standard_normal((N, JOINTS))
        noisy = x + COLUMN_NOISE * rng.standard_normal(x.shape)
        instruments = x + 0.5 * rng.standard_normal(x.shape)
        estimate = solved(noisy, instruments, torque).estimate
        found.append(estimate.parameters)
        stated.append(np.diag(estimate.covariance))
        plain.append(weighted_least_squares(noisy, torque, ALL).parameters)
    errors = np.array(found) - TRUE_PARAMETERS
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(draws)
    # Of four independent errors of a mean in units of their own deviation the largest is below 3.5 in 99.8 %.
    assert np.abs(errors.mean(axis=0) / standard_error).max() < 3.5
    assert np.abs((np.mean(plain, axis=0) - TRUE_PARAMETERS) / standard_error).max() > 20.0 * np.sqrt(draws / 200)
    # A share of 95 % of 800 intervals is told to 0.8 %; the four of a draw are nearly independent.
    inside = np.abs(errors) < 1.96 * np.sqrt(stated)
    assert inside.mean() == pytest.approx(0.95, abs=0.025 * np.sqrt(200 / draws))


def test_exact_rows_give_exact_parameters_whatever_the_instruments() -> None:
    x, z = smooth_columns(0), smooth_columns(0) + 0.5 * smooth_columns(1)
    assert solved(x, z, x @ TRUE_PARAMETERS).estimate.parameters == pytest.approx(TRUE_PARAMETERS, rel=1e-9)


def test_several_recordings_and_rows_that_are_not_used() -> None:
    x = smooth_columns(0)
    rng = np.random.default_rng(4)
    torque = x @ TRUE_PARAMETERS + 0.1 * rng.standard_normal((N, JOINTS))
    used = rng.random((N, JOINTS)) < 0.8
    spoiled = np.where(used, torque, 1e6)
    parts = [
        PairedRows(RowsInMemory(x[part], spoiled[part], used[part]), RowsInMemory(x[part], spoiled[part], ALL[part]))
        for part in (slice(0, 250), slice(250, N))
    ]
    estimate = instrumented_fit(parts).estimate
    assert estimate.parameters == pytest.approx(TRUE_PARAMETERS, abs=0.05)
    assert estimate.joint_sigma == pytest.approx([0.1, 0.1], rel=0.15)  # 480 rows each: 3 %


def test_what_the_instruments_know_nothing_of_is_not_told() -> None:
    x = smooth_columns(0)
    z = x.copy()
    z[..., 2] = 0.0
    torque = x @ TRUE_PARAMETERS + SIGMA * np.random.default_rng(5).standard_normal((N, JOINTS))
    estimate = solved(x, z, torque).estimate
    assert np.isinf(estimate.covariance[2, 2])
    assert estimate.parameters[2] == 0.0
    unrelated = solved(x, smooth_columns(7), torque)
    assert unrelated.correlation < 0.3


def test_too_few_rows_are_refused() -> None:
    x = smooth_columns(0)
    none = RowsInMemory(x, x @ TRUE_PARAMETERS, np.zeros_like(ALL))
    with pytest.raises(FitError, match="0 rows have instruments, for 4 parameters"):
        instrumented_fit([PairedRows(none, none)])


N_PAIRS, N_JOINTS, N_COLUMNS = 40, 2, 3


@dataclass(frozen=True, eq=False)
class Cut:
    """Rows in stretches (from, to)."""

    regressor: Array
    torque: Array
    stretches: tuple[tuple[int, int], ...]
    n_joints: int = N_JOINTS
    n_parameters: int = N_COLUMNS

    def blocks(self) -> Iterator[Block]:
        for start, stop in self.stretches:
            part = slice(start, stop)
            used = np.ones((stop - start, N_JOINTS), dtype=np.bool_)
            yield Block.of(start, self.regressor[part], self.torque[part], used, np.asarray(used.all(axis=1)))


def rows(seed: int, *stretches: tuple[int, int]) -> Cut:
    rng = np.random.default_rng(seed)
    return Cut(rng.standard_normal((N_PAIRS, N_JOINTS, N_COLUMNS)), rng.standard_normal((N_PAIRS, N_JOINTS)), stretches)


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (((0, 40),), ((0, 40),), [(0, 40)]),
        (((0, 40),), ((0, 10), (10, 25), (30, 40)), [(0, 10), (10, 25), (30, 40)]),
        (((0, 10), (10, 25), (30, 40)), ((5, 35),), [(5, 10), (10, 25), (30, 35)]),
        (((0, 10), (20, 30)), ((10, 20), (30, 40)), []),
        (((0, 10), (20, 40)), ((0, 15), (18, 22), (22, 38)), [(0, 10), (20, 22), (22, 38)]),
    ],
)
def test_they_meet(
    one: tuple[tuple[int, int], ...], two: tuple[tuple[int, int], ...], both: list[tuple[int, int]]
) -> None:
    measured, other = rows(0, *one), rows(1, *two)
    pairs = list(PairedRows(measured, other).pairs())
    assert [(pair.start, pair.start + len(pair.torque)) for pair in pairs] == both
    for pair in pairs:
        part = slice(pair.start, pair.start + len(pair.torque))
        assert np.array_equal(pair.measured, measured.regressor[part])
        assert np.array_equal(pair.other, other.regressor[part])
        assert np.array_equal(pair.torque, measured.torque[part])
        assert np.array_equal(pair.other_torque, other.torque[part])


def test_a_column_that_the_fit_leaves_out_is_left_out_of_both() -> None:
    measured, other = rows(0, (0, N_PAIRS)), rows(1, (0, N_PAIRS))
    measured.regressor[:, 1, 2] = 0.0
    (pair,) = PairedRows(measured, other).pairs()
    assert not pair.other[:, 1, 2].any()
    assert pair.other[:, 0].all()


def test_rows_once_chosen_stay_however_they_are_cut() -> None:
    chosen = Chosen()
    first = np.zeros((10, N_JOINTS), dtype=np.bool_)
    first[4] = True
    assert np.array_equal(chosen.of(5, first), first)
    everything = np.ones((N_PAIRS, N_JOINTS), dtype=np.bool_)
    (pair,) = PairedRows(rows(0, (0, N_PAIRS)), rows(1, (0, N_PAIRS)), chosen).pairs()
    expected = everything.copy()
    expected[5:15] = first
    assert np.array_equal(pair.used, expected)
    cut = PairedRows(rows(0, (0, 12), (12, N_PAIRS)), rows(1, (3, N_PAIRS)), chosen).pairs()
    assert np.array_equal(np.vstack([pair.used for pair in cut]), expected[3:])
    (again,) = PairedRows(rows(0, (0, N_PAIRS)), rows(1, (0, N_PAIRS))).pairs()
    assert again.used.all()


def test_the_other_regressor_goes_with_either_torque() -> None:
    pair = PairedRows(rows(0, (0, N_PAIRS)), rows(1, (0, N_PAIRS)))
    (measured,) = OtherRegressor(pair).blocks()
    (own,) = OtherRegressor(pair, own_torque=True).blocks()
    assert np.array_equal(measured.regressor, own.regressor)
    assert np.array_equal(measured.torque, rows(0).torque)
    assert np.array_equal(own.torque, rows(1).torque)
