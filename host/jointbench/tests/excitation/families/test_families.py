"""Families of motions: axioms that each must keep whatever its settings, and uniform splines.

The stair of speeds: every speed held in both directions over the same positions, within reach and limits.
"""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation, RobotError
from jointbench.excitation import (
    FAMILIES,
    Excitation,
    PointToPoint,
    RampedFourier,
    RestToRestFourier,
    SpeedStairs,
    make_basis,
    plan_speed_sweep,
    usable_limits,
)
from jointbench.excitation.families.basis import Basis, LocalBasis, displacement, fine_times, phases
from jointbench.excitation.families.catalogue import family_name, motion_from_dict, motion_to_dict
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.limits.certificate import motion_at
from jointbench.model import load_robot

Family = RestToRestFourier | RampedFourier | PointToPoint

seconds = st.floats(0.3, 60.0)
chosen = st.sets(st.integers(1, 20), min_size=2, max_size=8).map(lambda orders: tuple(sorted(orders)))
harmonics = st.integers(2, 20) | chosen
bases: st.SearchStrategy[Family] = st.one_of(
    st.builds(RestToRestFourier, harmonics, seconds),
    st.builds(RampedFourier, harmonics, seconds, seconds, st.integers(1, 4)),
    st.builds(PointToPoint, st.integers(1, 20), seconds),
)
quick = settings(max_examples=60, deadline=None)

NODES, GAUSS = np.polynomial.legendre.leggauss(8)
ROUNDING = 1e-11
"""Share of a derivative's bound: sums of up to 40 terms of angles up to 800 rad, each rounded to 1e-16."""


def unit_bounds(basis: Family) -> Array:
    """Bounds of phi and its derivatives, shape (6, size)."""
    return basis.bounds(np.eye(basis.size))


def change(basis: Family, start: Array, stop: Array, order: int) -> tuple[Array, Array]:
    """phi's derivative of an order at `stop` less that at `start`, and the integral of the next one between them."""
    there, here = basis.evaluate(stop, order)[order], basis.evaluate(start, order)[order]
    half = 0.5 * (stop - start)
    times = 0.5 * (start + stop)[:, None] + half[:, None] * NODES
    slopes = basis.evaluate(times.ravel(), order + 1)[order + 1].reshape(*times.shape, -1)
    return there - here, half[:, None] * np.einsum("g,tgs->ts", GAUSS, slopes)


@quick
@given(bases, st.integers(0, 3))
def test_begins_and_ends_at_rest_at_home(basis: Family, playing: int) -> None:
    values = basis.evaluate(np.array([0.0, playing * basis.duration]), 2)

    for value, bound in zip(values, unit_bounds(basis)[:3], strict=True):
        assert value.shape == (2, basis.size)
        assert np.all(np.abs(value) <= ROUNDING * bound)


@settings(max_examples=30, deadline=None)
@given(bases)
def test_derivatives_belong_together_and_position_to_jerk_go_on_across_breaks(basis: Family) -> None:
    grid = basis.grid(basis.fastest_cycle / 8.0)  # Gauss' rule of 8 nodes is exact to 1e-16 on an eighth of a cycle
    inset = 0.2 * np.diff(grid)
    for order in range(5):
        # The fourth derivative jumps where two pieces meet: it is compared within them.
        within = inset if order == 4 else 0.0
        found, expected = change(basis, grid[:-1] + within, grid[1:] - within, order)
        assert np.all(np.abs(found - expected) <= ROUNDING * unit_bounds(basis)[order])


@quick
@given(bases, st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_bounds_are_never_too_low_and_not_much_too_high(basis: Family, n_joints: int, seed: int) -> None:
    weights = np.random.default_rng(seed).standard_normal((n_joints, basis.size))
    time = basis.grid(basis.fastest_cycle / 60.0)
    reached = np.stack([np.abs(phi @ weights.T).max(axis=0) for phi in basis.evaluate(time, 5)])

    bounds = basis.bounds(weights)

    assert bounds.shape == (6, n_joints)
    assert np.all(reached <= (1.0 + ROUNDING) * bounds)
    # Of n waves the largest value is at least the root of their mean square, which is at least their amplitudes' sum
    # over √(2n); their centre is at most the largest value. A polynomial of degree 7 in 16 parts leaves its
    # coefficients by a quarter of its largest value at most (Markov's inequality). The grid misses 0.5 %.
    waves = 0 if isinstance(basis, PointToPoint) else len(basis.orders)
    assert np.all(bounds <= 1.005 * max(1.0 + np.sqrt(2.0 * waves), 1.25) * reached)


@quick
@given(bases, st.floats(0.01, 100.0))
def test_grid_covers_the_motion_and_has_all_breaks(basis: Family, share: float) -> None:
    step = share * basis.fastest_cycle

    grid = basis.grid(step)

    assert (grid[0], grid[-1]) == (0.0, basis.duration)
    assert np.all(np.diff(grid) > 0.0)
    assert np.all(np.diff(grid) <= step * (1.0 + 1e-9))
    match basis:
        case RampedFourier():
            breaks = np.array([basis.ramp, basis.ramp + basis.periods * basis.period])
        case PointToPoint():
            breaks = basis.segment * np.arange(basis.points + 2)
        case _:
            breaks = np.zeros(0)
    assert np.all(np.isin(breaks, grid))


@quick
@given(bases, st.integers(1, 300))
def test_samples_are_taken_where_it_moves(basis: Family, samples: int) -> None:
    time = basis.sample_times(samples)

    assert time.shape == (samples,)
    assert np.all(np.diff(time) > 0.0)
    assert time[0] > 0.0
    assert time[-1] < basis.duration
    fastest = np.abs(basis.evaluate(time, 1)[1] / unit_bounds(basis)[1]).max(axis=1)
    # At rest this would be rounding, 1e-13; one of 150 samples of a move is 1/300 of it away from its end: 2e-6.
    assert np.all(fastest > 1e-9)
    if isinstance(basis, RampedFourier):
        assert np.all((time > basis.ramp) & (time < basis.ramp + basis.period))


@quick
@given(bases, st.integers(2, 3))
def test_what_repeats_is_the_same_each_time(basis: Family, playing: int) -> None:
    repeated = basis.repetition
    time = basis.sample_times(20)
    again = time + (repeated.times - 1) * repeated.period

    first, bounds = basis.evaluate(time), unit_bounds(basis)[:3]

    for later in (basis.evaluate(again), basis.evaluate(time + playing * basis.duration)):
        for here, there, bound in zip(first, later, bounds, strict=True):
            np.testing.assert_allclose(here, there, atol=ROUNDING * bound.max())


@quick
@given(st.builds(RestToRestFourier, harmonics, seconds), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_coefficients_satisfy_the_boundary_conditions(basis: RestToRestFourier, n_joints: int, seed: int) -> None:
    weights = np.random.default_rng(seed).standard_normal((n_joints, basis.size))

    sine, cosine = basis.coefficients(weights)

    np.testing.assert_allclose(sine.sum(axis=1), 0.0, atol=1e-13)
    np.testing.assert_allclose(cosine @ basis.orders, 0.0, atol=1e-11)  # orders up to 20
    np.testing.assert_allclose(basis.weights_of(sine, cosine), weights, atol=1e-13)


def test_ramped_series_is_the_papers_between_its_ramps() -> None:
    basis = RampedFourier((1, 3), period=4.0, ramp=1.5, periods=2)
    weights = np.array([[0.3, 0.4, -0.2, 0.1, 0.7]])
    time = np.linspace(1.5, 9.5, 17)
    w, s = np.pi / 2.0, np.linspace(0.0, 8.0, 17)

    center, sine, cosine = basis.coefficients(weights)

    assert basis.duration == 11.0
    np.testing.assert_allclose(center, [0.3 / w])
    np.testing.assert_array_equal((sine, cosine), ([[0.4, -0.2]], [[0.1, 0.7]]))
    expected = 0.3 / w + 0.4 / w * np.sin(w * s) - 0.2 / (3 * w) * np.sin(3 * w * s)
    expected += -0.1 / w * np.cos(w * s) - 0.7 / (3 * w) * np.cos(3 * w * s)
    np.testing.assert_allclose(basis.evaluate(time)[0] @ weights[0], expected, atol=1e-14)
    np.testing.assert_allclose(basis.weights_of(center, sine, cosine), weights)


def test_moves_pass_the_way_points_at_rest_by_the_least_polynomial() -> None:
    basis = PointToPoint(points=2, segment=2.0)
    way = np.array([0.5, -1.0])
    x = np.linspace(0.0, 1.0, 11)
    s = 35 * x**4 - 84 * x**5 + 70 * x**6 - 20 * x**7

    q, *rest = basis.evaluate(np.array([0.0, 2.0, 4.0, 6.0]), 3)
    second = basis.evaluate(2.0 + 2.0 * x)[0] @ way

    np.testing.assert_allclose(q @ way, [0.0, 0.5, -1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(rest, 0.0, atol=1e-14)
    np.testing.assert_allclose(second, 0.5 - 1.5 * s, atol=1e-14)
    # Its greatest speed is 35/16 of the mean one; the bound is within a hundredth of it.
    speed = 1.5 / 2.0 * 35.0 / 16.0
    assert speed <= basis.bounds(way[None])[1, 0] <= 1.01 * speed


def test_a_number_of_harmonics_means_the_first_ones() -> None:
    number, listed = RestToRestFourier(3, 10.0), RestToRestFourier((1, 2, 3), 10.0)
    time = np.linspace(0.0, 10.0, 7)

    np.testing.assert_array_equal(number.evaluate(time), listed.evaluate(time))
    assert number.description == "Fourier series of 3 harmonics, period 10 s"
    assert listed.description == "Fourier series of harmonics 1, 2, 3, period 10 s"


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_made_by_name(family: str) -> None:
    basis = make_basis(family, harmonics=[1, 2, 5], period=12.0, ramp=1.0, periods=3, points=5)

    assert family_name(basis) == family
    expected = {"fourier": 12.0, "ramped_fourier": 2.0 + 36.0, "point_to_point": 12.0}
    assert basis.duration == pytest.approx(expected[family])


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("chirp", {}, r"family is 'chirp'; there is 'fourier', 'ramped_fourier', 'point_to_point'"),
        ("fourier", {"harmonics": 1}, r"harmonics = 1: at least 2 are needed, as the motion must start and end at"),
        ("fourier", {"harmonics": (3,)}, r"harmonics = \(3,\): at least 2 are needed"),
        ("fourier", {"harmonics": (1, 2, 2)}, r"harmonics = \(1, 2, 2\): chosen harmonics are whole numbers from 1 on"),
        ("ramped_fourier", {"harmonics": (0, 1)}, r"harmonics = \(0, 1\): chosen harmonics are whole numbers from 1"),
        ("ramped_fourier", {"harmonics": (1, 2.5)}, r"harmonics = \(1, 2.5\): chosen harmonics are whole numbers"),
        ("ramped_fourier", {"harmonics": 0}, r"harmonics = 0: at least 1 are needed; 5 is usual"),
        ("ramped_fourier", {"period": -2.0}, r"period = -2 s must be a positive number of seconds"),
        ("ramped_fourier", {"ramp": 0.0}, r"ramp = 0 s must be a positive number of seconds"),
        ("ramped_fourier", {"periods": 0}, r"periods = 0: the series must be played at least once"),
        ("point_to_point", {"points": 0}, r"points = 0: at least 1 way point is needed"),
        ("point_to_point", {"points": -1}, r"points = -1: at least 1 way point is needed"),
        ("point_to_point", {"points": 201}, r"points = 201: at least 1 way point is needed, and at most 200"),
        ("fourier", {"harmonics": 201}, r"harmonics = 201: the highest may be number 200"),
        ("ramped_fourier", {"harmonics": (1, 10**9)}, r"harmonics = \(1, 1000000000\): the highest may be number 200"),
        (
            "fourier",
            {"period": 1e300},
            r"period = 1e\+300 s must be a positive number of seconds, from 0.001 to 100000",
        ),
        ("ramped_fourier", {"ramp": float("nan")}, r"ramp = nan s must be a positive number of seconds"),
        ("point_to_point", {"period": float("inf")}, r"segment = inf s must be a positive number of seconds"),
    ],
)
def test_impossible_families_are_named(family: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        make_basis(family, **changes)


@pytest.mark.parametrize("ramp", [1e-3, 2.0])
def test_stretches_are_the_ramps_and_one_period(ramp: float) -> None:
    basis = RampedFourier((2, 6), 10.0, ramp, 3)

    into, series, back = phases(basis)

    assert into == (0.0, ramp, ramp)
    assert series == pytest.approx((ramp, ramp + 5.0, 10.0 / 6.0))
    assert back == pytest.approx((ramp + 30.0, 2.0 * ramp + 30.0, ramp))
    assert phases(RestToRestFourier((2, 4), 10.0)) == [(0.0, 5.0, 2.5)]
    assert phases(PointToPoint(3, 0.5)) == [(0.0, 2.0, 0.5)]


@pytest.mark.parametrize(
    "basis",
    [RestToRestFourier(5, 1e-3), RestToRestFourier(5, 1e5), RampedFourier(3, 10.0, 1e-3, 2), PointToPoint(200, 1e-3)],
)
def test_fine_times_resolve_short_motions_and_end_for_long_ones(basis: Basis) -> None:
    step = np.diff(fine_times(basis)).max()

    cycle = min(stretch.cycle for stretch in phases(basis))
    assert step <= max(min(1e-3, cycle / 100.0), basis.duration / 200_000) * (1.0 + 1e-6)  # of rounding of times
    assert len(fine_times(basis)) <= 200_003  # each break between pieces may add one


@pytest.mark.parametrize("order", [-1, 6])
@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_go_from_0_to_5(family: str, order: int) -> None:
    with pytest.raises(ExcitationError, match=f"order = {order}: a motion has derivatives of order 0 to 5"):
        make_basis(family).evaluate(np.zeros(1), order)


def test_a_grid_needs_a_step() -> None:
    with pytest.raises(ExcitationError, match=r"step = 0 s between times must be above 0"):
        make_basis().grid(0.0)


SPLINE = UniformSpline(30, 4.5)
WEIGHTS = np.random.default_rng(5).standard_normal((3, SPLINE.size))


def test_each_derivative_is_that_of_the_one_before() -> None:
    time, h = SPLINE.step * (np.arange(30, dtype=np.float64) + 0.37), 1e-5  # the fourth bends where steps meet
    before, at, after = (SPLINE.displacement(WEIGHTS, time + step, 4) for step in (-h, 0.0, h))
    for k in range(4):
        slope = (after[k] - before[k]) / (2.0 * h)
        # The difference errs by h² / 6 of the third derivative from there, and rounding / h.
        np.testing.assert_allclose(slope, at[k + 1], atol=1e-6 * np.abs(at[k + 1]).max())


def test_it_begins_and_ends_at_rest_up_to_the_fourth_derivative() -> None:
    for t in (0.0, np.nextafter(SPLINE.duration, 0.0)):
        for k, value in enumerate(SPLINE.displacement(WEIGHTS, np.array([t]), 4)):
            np.testing.assert_allclose(value, 0.0, atol=1e-9 / SPLINE.step**k)


def test_what_few_splines_give_is_what_all_of_them_give() -> None:
    time = np.linspace(0.0, 2.0 * SPLINE.duration, 61)
    assert isinstance(SPLINE, LocalBasis)
    for few, phi in zip(displacement(SPLINE, WEIGHTS, time, 5), SPLINE.evaluate(time, 5), strict=True):
        np.testing.assert_allclose(few, phi @ WEIGHTS.T, atol=1e-9 * np.abs(few).max())


def test_it_goes_through_values_at_its_nodes() -> None:
    values = np.random.default_rng(1).standard_normal((SPLINE.size, 2))
    (at_nodes,) = SPLINE.displacement(SPLINE.through(values), SPLINE.nodes, 0)
    np.testing.assert_allclose(at_nodes, values, atol=1e-13)


def test_it_solves_the_pendulum_at_its_nodes() -> None:
    values, pendulum = np.random.default_rng(2).standard_normal((SPLINE.size, 2)), 0.05
    x, _, ddx = SPLINE.displacement(SPLINE.through(values, pendulum), SPLINE.nodes)
    np.testing.assert_allclose(x - pendulum * ddx, values, atol=1e-12)


def test_bounds_are_never_too_low() -> None:
    time = SPLINE.grid(1e-3)
    for bound, values in zip(SPLINE.bounds(WEIGHTS), SPLINE.displacement(WEIGHTS, time, 5), strict=True):
        assert np.all(np.abs(values).max(axis=0) <= bound * (1.0 + 1e-12))


def test_the_grid_has_all_ends_of_steps() -> None:
    time = SPLINE.grid(0.04)
    assert np.diff(time).max() <= 0.04 + 1e-12
    ends = SPLINE.step * np.arange(SPLINE.steps + 1)
    np.testing.assert_allclose(time[:: (len(time) - 1) // SPLINE.steps], ends, atol=1e-12)


def test_it_is_the_very_same_after_storing() -> None:
    home = np.array([0.1, 0.2, 0.3])
    basis, start, weights = motion_from_dict(json.loads(json.dumps(motion_to_dict(SPLINE, home, WEIGHTS))))
    time = np.linspace(0.0, 4.0, 17)
    np.testing.assert_array_equal(motion_at(basis, start, weights, time), motion_at(SPLINE, home, WEIGHTS, time))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"weights": [[0.0] * 24] * 3}, r"weights \(3, 24\) should be \(3, 25\)"),
        ({"steps": 5}, "steps = 5: a spline needs at least 6"),
        ({"duration_s": -1.0}, "duration = -1 s must be a positive number"),
    ],
)
def test_a_damaged_one_is_refused(damage: dict[str, object], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        motion_from_dict(motion_to_dict(SPLINE, np.zeros(3), WEIGHTS) | damage)


def test_a_grid_of_a_spline_needs_a_step() -> None:
    with pytest.raises(ExcitationError, match="step = 0 s between times must be above 0"):
        SPLINE.grid(0.0)


STAIRS = SpeedStairs(n_speeds=9, first=0.05, step=0.06, reach=0.45, acceleration=2.5)


def test_the_paper_speeds_are_the_defaults() -> None:
    speeds = np.degrees(SpeedStairs().speeds)
    assert speeds[[0, 1, -1]] == pytest.approx([1.0, 1.5, 31.0])
    assert len(speeds) > 60


def test_each_speed_is_held_twice_at_the_same_positions() -> None:
    assert len(STAIRS.ways) == 3
    assert [speed for _, _, speed in STAIRS.holds] == pytest.approx(STAIRS.speeds)
    part = np.linspace(0.0, STAIRS.hold, 20)
    for there, back, speed in STAIRS.holds:
        up, up_speed, up_bend = (value[:, 0] for value in STAIRS.evaluate(there + part))
        down, down_speed, down_bend = (value[:, 0] for value in STAIRS.evaluate(back + part))
        np.testing.assert_allclose(up_speed[:-1], speed, rtol=1e-12)
        np.testing.assert_allclose(down_speed[:-1], -speed, rtol=1e-12)
        np.testing.assert_allclose(up, down[::-1], atol=1e-12)
        # Between pieces it has the value of one side: the last instant may be the next piece's, at rest too.
        np.testing.assert_allclose([up_bend, down_bend], 0.0, atol=1e-9)


def test_it_leaves_home_and_returns_at_rest_within_its_reach_and_acceleration() -> None:
    time = STAIRS.grid(1e-3)
    q, dq, ddq, dddq = (value[:, 0] for value in STAIRS.evaluate(time, 3))
    np.testing.assert_allclose([q[0], dq[0], ddq[0], dddq[0]], 0.0, atol=1e-12)
    last = STAIRS.evaluate(np.nextafter(time[-1:], 0.0), 2)
    np.testing.assert_allclose(np.concatenate(last), 0.0, atol=1e-9)
    assert q.min() >= 0.0
    assert 0.5 * STAIRS.reach < q.max() <= STAIRS.reach
    assert 0.9 * STAIRS.acceleration < np.abs(ddq).max() <= STAIRS.acceleration
    # The trapezoidal rule over milliseconds.
    np.testing.assert_allclose(
        np.concatenate([[0.0], np.cumsum(0.5 * (dq[1:] + dq[:-1]) * np.diff(time))]), q, atol=1e-5
    )
    steps = STAIRS.duration / STAIRS.change
    assert steps == pytest.approx(round(steps), abs=1e-9)


def test_bounds_of_stairs_are_never_too_low() -> None:
    weights = np.array([[1.0], [-0.5]])
    bounds = STAIRS.bounds(weights)
    for values, bound in zip(STAIRS.evaluate(STAIRS.grid(1e-3), 5), bounds, strict=True):
        assert np.all(np.abs(values @ weights.T).max(axis=0) <= bound * (1.0 + 1e-9))
    assert np.all(bounds[:4] > 0.0)


def test_samples_lie_where_a_speed_is_held() -> None:
    times = STAIRS.sample_times(40)
    assert len(np.unique(times)) == 40
    speeds = np.abs(STAIRS.evaluate(times)[1][:, 0])
    assert np.all(np.min(np.abs(speeds[:, None] - STAIRS.speeds), axis=1) < 1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_speeds": 0}, "at least 1 speed"),
        ({"first": 0.0}, "first = 0 must be above 0"),
        ({"step": -0.1}, "step = -0.1 must be above 0"),
        ({"hold": 0.1}, "hold = 0.1 s is no whole multiple of change = 0.032 s"),
        ({"reach": 0.05}, "give more reach or acceleration"),
        ({"hold": math.inf}, "hold = inf s must be a positive number of seconds"),
    ],
)
def test_what_is_no_stair_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        SpeedStairs(**settings)


def test_a_sweep_of_a_differential_keeps_the_limits_and_can_be_stored() -> None:
    robot = load_robot("nursing_arm")
    sweep = plan_speed_sweep(robot, ("j2", "j4", "j6"), hold=0.16)
    np.testing.assert_array_equal(sweep.weights[:, 0], [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(sweep.home[::2], 0.0)
    motion = motion_at(sweep.basis, sweep.home, sweep.weights, sweep.basis.grid(0.004))
    assert max(float(limit.usage(motion).max()) for limit in usable_limits(robot, sweep.home)) <= 1.0 + 1e-9
    again = Excitation.from_dict(json.loads(json.dumps(sweep.to_dict())))
    assert again.basis == sweep.basis
    np.testing.assert_array_equal(again.weights, sweep.weights)
    np.testing.assert_array_equal(again.home, sweep.home)


def test_an_impossible_sweep_is_refused() -> None:
    robot = load_robot("nursing_arm")
    with pytest.raises(InfeasibleExcitation, match=r"joint 'j1' velocity .* sweep fewer speeds, or slower ones"):
        plan_speed_sweep(robot, ["j1"], n_speeds=100)
    with pytest.raises(RobotError, match="elbow"):
        plan_speed_sweep(robot, ["elbow"])
    with pytest.raises(ExcitationError, match="no joint is named to sweep; the joints are j1, j2"):
        plan_speed_sweep(robot, [])
