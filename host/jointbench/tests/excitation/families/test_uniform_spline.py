"""Splines over equal steps: smooth, at rest at both ends, through given values, bounded."""

import json

import numpy as np
import pytest

from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import LocalBasis, displacement
from jointbench.excitation.families.catalogue import motion_from_dict, motion_to_dict
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.limits.certificate import motion_at

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


def test_a_grid_needs_a_step() -> None:
    with pytest.raises(ExcitationError, match="step = 0 s between times must be above 0"):
        SPLINE.grid(0.0)
