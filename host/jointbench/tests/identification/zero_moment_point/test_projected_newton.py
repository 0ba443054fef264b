"""The paper's solver and the settings it prints."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import WrongTotalMass
from jointbench.identification.zero_moment_point import ReducedParameters, averaged, mean_distance, projected_newton
from jointbench.identification.zero_moment_point.bounded_least_squares import Objective, Value
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate
from jointbench.tests.identification.zero_moment_point.simulated_stance import TOTAL_MASS, TRUTH, biped, stood

REDUCED = ReducedParameters(biped(), "none")


@pytest.fixture(scope="module")
def visited() -> list[Array]:
    """Every point that the solver looked at."""
    return []


@pytest.fixture(scope="module")
def estimate(visited: list[Array]) -> ZmpEstimate:
    value_of = Objective.__call__

    def watched(self: Objective, phi: Array) -> Value:
        visited.append(phi.copy())
        return value_of(self, phi)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Objective, "__call__", watched)
        return projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS)


def test_it_keeps_the_papers_settings(estimate: ZmpEstimate) -> None:
    steps, objectives, alphas = np.array(estimate.trace).T

    assert set(alphas.tolist()) == {0.02}  # one constant of the whole search
    assert estimate.converged
    assert steps[-1] <= 1e-4 < steps[:-1].min()
    assert objectives[-1] < 2e-3 * objectives[0]
    assert estimate.iterations == len(steps) > 40


def test_all_of_the_gradient_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed: the paper began with 1 and had to come down to 0.02."""
    monkeypatch.setitem(projected_newton.__globals__, "_STEPS", 500)
    whole = projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS, alpha=1.0)
    assert not whole.converged
    assert whole.verdict.word == "refused"


def test_a_step_of_steepest_descent_is_that_of_a_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum's gradient G = [0.1 m at lc_trunk, 1.3 at m_trunk], c = [0 0 0 0 1 2 2 2], H singular.

    c·G/c·c = 1.3/13 = 0.1, so that G on the plane is [0.1, 0, 0, 0, 1.2, -0.2, -0.2, -0.2], and 0.02 of it is taken.
    """
    stance = stood(0, rotary=False)
    gradients = [np.array([0.1, 0.0, 0.0, 0.0, 1.3, 0.0, 0.0, 0.0]), np.zeros(8)]

    def slope(_: Objective, phi: Array) -> Value:
        return Value(1.0, gradients.pop(0) / stance.n_samples, np.zeros((8, 8)))

    monkeypatch.setattr(Objective, "__call__", slope)
    start = TRUTH.copy()
    estimate = projected_newton(stance, REDUCED, TOTAL_MASS, start=start)
    moved = [-0.002, 0.0, 0.0, 0.0, -0.024, 0.004, 0.004, 0.004]
    np.testing.assert_allclose(estimate.values - start, moved, atol=1e-12)
    assert estimate.trace[0][0] == pytest.approx(np.linalg.norm(moved))
    assert estimate.converged


def test_runs_are_averaged_as_the_paper_averages_them(estimate: ZmpEstimate) -> None:
    runs = [replace(estimate, values=TRUTH + k * 0.01) for k in (0.0, 1.0, 5.0)]
    mean = averaged(runs, REDUCED)
    np.testing.assert_allclose(mean.values, TRUTH + 0.02)
    np.testing.assert_allclose(mean.sigma, 0.01 * np.sqrt((4.0 + 1.0 + 9.0) / 2.0))
    np.testing.assert_allclose(mean.standard_parameters, REDUCED.standard(TRUTH + 0.02))
    assert mean.samples == 3 * estimate.samples
    assert averaged(runs[:1], REDUCED) is runs[0]
    assert not averaged([runs[0], replace(runs[1], converged=False)], REDUCED).converged


def test_each_point_weighs_what_the_robot_does_and_keeps_the_bounds(
    estimate: ZmpEstimate, visited: list[Array]
) -> None:
    low, high = REDUCED.bounds.T
    assert len(visited) >= estimate.iterations
    for phi in visited:
        assert REDUCED.mass_row @ phi + REDUCED.held_mass == pytest.approx(TOTAL_MASS, abs=1e-9)
        assert (phi >= low - 1e-12).all()
        assert (phi <= high + 1e-12).all()


def test_it_predicts_a_fresh_motion_far_better_than_the_file(estimate: ZmpEstimate) -> None:
    fresh = stood(1, rotary=False, noise_seed=1)
    nominal = mean_distance(fresh, REDUCED.standard(REDUCED.nominal))

    assert nominal > 0.03
    assert estimate.distance(fresh) < 0.05 * nominal
    assert estimate.method == "paper"


def test_newtons_step_is_taken_whole_where_the_hessian_is_definite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bowl about the truth, which is on the plane: one step there, and one that finds nothing to do."""
    shape = np.diag([30.0, 20.0, 10.0, 40.0, 1.0, 2.0, 3.0, 4.0])

    def bowl(_: Objective, phi: Array) -> Value:
        off = phi - TRUTH
        return Value(float(off @ shape @ off), 2.0 * shape @ off, 2.0 * shape)

    monkeypatch.setattr(Objective, "__call__", bowl)
    estimate = projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS)
    np.testing.assert_allclose(estimate.values, TRUTH, atol=1e-9)
    assert estimate.iterations == 2


def test_a_step_that_a_bound_cuts_short_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bowl about a place beyond the feet's bound, from 10 µm before it: a tenth of what ends the search."""
    shape, bottom = np.diag([30.0, 20.0, 10.0, 40.0, 1.0, 2.0, 3.0, 4.0]), TRUTH.copy()
    farthest = REDUCED.bounds[3, 1]
    bottom[3] = farthest + 0.02

    def bowl(_: Objective, phi: Array) -> Value:
        off = phi - bottom
        return Value(float(off @ shape @ off), 2.0 * shape @ off, 2.0 * shape)

    monkeypatch.setattr(Objective, "__call__", bowl)
    start = REDUCED.nominal.copy()
    start[3] = farthest - 1e-5
    estimate = projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS, start=start)
    np.testing.assert_allclose(estimate.values, np.minimum(bottom, REDUCED.bounds[:, 1]), atol=1e-9)
    assert estimate.parameter_verdicts[3].word == "refused"


def test_a_mass_that_the_links_cannot_have_is_refused() -> None:
    with pytest.raises(WrongTotalMass, match=r"a total mass of 200 kg is not between 6\.8 and 127 kg"):
        projected_newton(stood(0, rotary=False), REDUCED, 200.0)
