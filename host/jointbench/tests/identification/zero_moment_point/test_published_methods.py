"""Published estimates: by joint torques, and by the projected Newton method."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, WrongTotalMass
from jointbench.identification.observations import OfJoints, observe
from jointbench.identification.settings import FitSettings
from jointbench.identification.zero_moment_point import (
    ReducedParameters,
    averaged,
    mean_distance,
    projected_newton,
    published_methods,
)
from jointbench.identification.zero_moment_point.bounded_least_squares import (
    BoundedSolution,
    ObjectiveValue,
    ZmpObjective,
)
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate
from jointbench.identification.zero_moment_point.published_methods import (
    TorqueRows,
    estimate_of_torques,
    joint_torque_estimate,
)
from jointbench.model import base_parameters, inverse_dynamics
from jointbench.recording import Run, Samples
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    PERIOD_S,
    TOTAL_MASS,
    TRUTH,
    biped,
    simulated_stance,
    stood,
    sway,
)

NOISE_Nm = 0.05
"""Of a sample: 10 mA of motor current."""

COULOMB, VISCOUS, ROTOR, OFFSET = 3.0, 4.0, 0.7, 0.2

Friction = Callable[[Array, Array], Array]


def plain(speed: Array, load: Array) -> Array:
    """The model's own; the load does not matter."""
    return COULOMB * np.sign(speed) + VISCOUS * speed + 0.0 * load


def loaded(speed: Array, load: Array) -> Array:
    """Gears' teeth rub under load, and more where they hold against it than where they give way."""
    return plain(speed, load) + np.abs(load) * (0.15 * np.sign(speed) + 0.05)


@lru_cache(maxsize=1)
def reduced() -> ReducedParameters:
    return ReducedParameters(biped())


@lru_cache(maxsize=1)
def truth() -> Array:
    return reduced().nominal * [1.15, 0.9, 1.1, 1.1, 0.94, 1.1, 1.08, 1.05]


def weighed() -> float:
    return float(reduced().mass_row @ truth()) + reduced().held_mass


@lru_cache(maxsize=4)
def run(friction: Friction = plain, seed: int = 1, duration: float = 30.0) -> Run:
    """A log of motor torques at the rate that boards send, of a robot that stands on its right foot."""
    robot, motion = biped(), sway(biped(), seed, duration)
    load = inverse_dynamics(robot, motion.q, motion.dq, motion.ddq, reduced().standard(truth())[10:])
    torque = load + ROTOR * motion.ddq + OFFSET + friction(motion.dq, load)
    torque += NOISE_Nm * np.random.default_rng(seed).standard_normal(torque.shape)
    samples = Samples(
        time=motion.time, joint_names=robot.joint_names, motor_position=motion.q, link_position=None,
        motor_current=None, motor_torque=torque, joint_torque=None, play_tick=np.full(len(torque), -1),
        valid=np.ones(torque.shape, dtype=np.bool_), board_filters=None, sample_period=PERIOD_S,
    )  # fmt: skip
    return Run(
        path=Path("simulated"), robot=robot, samples=samples, ledger=None, excitation=None, repeats=1, provenance={},
        sha256="0" * 64, warnings=(),
    )  # fmt: skip


@lru_cache(maxsize=4)
def estimate(friction: Friction = plain) -> ZmpEstimate:
    return joint_torque_estimate(run(friction), reduced(), weighed(), settings=FitSettings(delay=0.0))


def test_friction_like_the_model_s_leaves_the_parameters() -> None:
    """All eight within three of their own σ: nothing but noise is in the way, and little motion in half a minute."""
    found = estimate()
    assert (found.method, found.converged) == ("torque", True)
    assert np.abs((found.values - truth()) / found.sigma).max() < 3.0
    assert np.median(found.sigma / truth()) < 0.1
    assert found.verdict.word == "identified"
    fresh = simulated_stance(parameters=reduced().standard(truth()), motion_seed=7, noise=0.0, duration=10.0)
    assert found.distance(fresh) < 0.2 * mean_distance(fresh, reduced().standard(reduced().nominal))


def test_gears_that_rub_more_under_load_spoil_them() -> None:
    """Friction that is not the model's goes into the links: the method's weakness, which error bars do not know."""
    fresh = simulated_stance(parameters=reduced().standard(truth()), motion_seed=7, noise=0.0, duration=10.0)
    assert estimate(loaded).distance(fresh) > 3.0 * estimate().distance(fresh)
    assert np.abs((estimate(loaded).values - truth()) / estimate().sigma).max() > 3.0


def test_the_mass_is_the_one_weighed_and_the_bounds_hold() -> None:
    for friction in (plain, loaded):
        values = estimate(friction).values
        assert reduced().mass_row @ values + reduced().held_mass == pytest.approx(weighed())
        low, high = reduced().bounds.T
        assert (values >= low - 1e-9).all()
        assert (values <= high + 1e-9).all()


def test_two_runs_tell_more_than_one() -> None:
    both = joint_torque_estimate([run(), run(seed=2)], reduced(), weighed(), settings=FitSettings(delay=0.0))
    assert both.samples > 1.9 * estimate().samples
    assert np.median(both.sigma / estimate().sigma) < 0.9


def test_rows_serve_several_estimates() -> None:
    rows = TorqueRows.of(run(), biped(), FitSettings(delay=0.0))
    again = [joint_torque_estimate([rows], reduced(), weighed()) for _ in range(2)]
    assert all(np.array_equal(each.values, estimate().values) for each in again)


def test_a_mass_that_no_links_have_and_no_runs_are_refused() -> None:
    with pytest.raises(WrongTotalMass):
        joint_torque_estimate(run(), reduced(), 500.0, settings=FitSettings(delay=0.0))
    with pytest.raises(FitError, match="no run is given"):
        joint_torque_estimate([], reduced(), weighed())


def test_a_robot_that_hardly_moves_is_refused() -> None:
    """Friction at rest has no model: there is nothing to fit."""
    settings = FitSettings(delay=0.0, velocity_threshold=(10.0,) * biped().n_joints)
    with pytest.raises(FitError, match="gives 0 rows of joints away from rest"):
        joint_torque_estimate(run(), reduced(), weighed(), settings=settings)


def test_a_search_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = published_methods.solve

    def endless(*arguments: Any) -> BoundedSolution:
        return replace(solve(*arguments), converged=False)

    monkeypatch.setattr(published_methods, "solve", endless)
    found = joint_torque_estimate(run(), reduced(), weighed(), settings=FitSettings(delay=0.0))
    assert found.verdict.word == "refused"
    assert "the solver did not converge; " in found.verdict.reason


def test_what_no_torque_tells_has_no_error_bar() -> None:
    """With the yaw joints' torques alone, which bear little, most is not told, and is refused."""
    base = base_parameters(biped())
    observed = observe(run(), biped(), base, FitSettings(delay=0.0))
    yaws = np.array([name in ("r_hip_yaw", "l_hip_yaw") for name in biped().joint_names])
    found = estimate_of_torques([OfJoints(observed, yaws)], base, reduced(), weighed())
    assert found.sigma.max() > 10.0 * estimate().sigma.max()
    assert not np.isnan(found.covariance).any()
    assert "refused" in {verdict.word for verdict in found.parameter_verdicts}


REDUCED = ReducedParameters(biped(), "none")


@pytest.fixture(scope="module")
def visited() -> list[Array]:
    """Every point that the solver looked at."""
    return []


@pytest.fixture(scope="module")
def newton_estimate(visited: list[Array]) -> ZmpEstimate:
    value_of = ZmpObjective.__call__

    def watched(self: ZmpObjective, phi: Array) -> ObjectiveValue:
        visited.append(phi.copy())
        return value_of(self, phi)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ZmpObjective, "__call__", watched)
        return projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS)


def test_it_keeps_the_papers_settings(newton_estimate: ZmpEstimate) -> None:
    steps, objectives, alphas = np.array(newton_estimate.trace).T

    assert set(alphas.tolist()) == {0.02}  # one constant of the whole search
    assert newton_estimate.converged
    assert steps[-1] <= 1e-4 < steps[:-1].min()
    assert objectives[-1] < 2e-3 * objectives[0]
    assert newton_estimate.iterations == len(steps) > 40


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

    def slope(_: ZmpObjective, phi: Array) -> ObjectiveValue:
        return ObjectiveValue(1.0, gradients.pop(0) / stance.n_samples, np.zeros((8, 8)))

    monkeypatch.setattr(ZmpObjective, "__call__", slope)
    start = TRUTH.copy()
    newton_estimate = projected_newton(stance, REDUCED, TOTAL_MASS, start=start)
    moved = [-0.002, 0.0, 0.0, 0.0, -0.024, 0.004, 0.004, 0.004]
    np.testing.assert_allclose(newton_estimate.values - start, moved, atol=1e-12)
    assert newton_estimate.trace[0][0] == pytest.approx(np.linalg.norm(moved))
    assert newton_estimate.converged


def test_runs_are_averaged_as_the_paper_averages_them(newton_estimate: ZmpEstimate) -> None:
    runs = [replace(newton_estimate, values=TRUTH + k * 0.01) for k in (0.0, 1.0, 5.0)]
    mean = averaged(runs, REDUCED)
    np.testing.assert_allclose(mean.values, TRUTH + 0.02)
    np.testing.assert_allclose(mean.sigma, 0.01 * np.sqrt((4.0 + 1.0 + 9.0) / 2.0))
    np.testing.assert_allclose(mean.standard_parameters, REDUCED.standard(TRUTH + 0.02))
    assert mean.samples == 3 * newton_estimate.samples
    assert averaged(runs[:1], REDUCED) is runs[0]
    assert not averaged([runs[0], replace(runs[1], converged=False)], REDUCED).converged


def test_each_point_weighs_what_the_robot_does_and_keeps_the_bounds(
    newton_estimate: ZmpEstimate, visited: list[Array]
) -> None:
    low, high = REDUCED.bounds.T
    assert len(visited) >= newton_estimate.iterations
    for phi in visited:
        assert REDUCED.mass_row @ phi + REDUCED.held_mass == pytest.approx(TOTAL_MASS, abs=1e-9)
        assert (phi >= low - 1e-12).all()
        assert (phi <= high + 1e-12).all()


def test_it_predicts_a_fresh_motion_far_better_than_the_file(newton_estimate: ZmpEstimate) -> None:
    fresh = stood(1, rotary=False, noise_seed=1)
    nominal = mean_distance(fresh, REDUCED.standard(REDUCED.nominal))

    assert nominal > 0.03
    assert newton_estimate.distance(fresh) < 0.05 * nominal
    assert newton_estimate.method == "paper"


def test_newtons_step_is_taken_whole_where_the_hessian_is_definite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bowl about the truth, which is on the plane: one step there, and one that finds nothing to do."""
    shape = np.diag([30.0, 20.0, 10.0, 40.0, 1.0, 2.0, 3.0, 4.0])

    def bowl(_: ZmpObjective, phi: Array) -> ObjectiveValue:
        off = phi - TRUTH
        return ObjectiveValue(float(off @ shape @ off), 2.0 * shape @ off, 2.0 * shape)

    monkeypatch.setattr(ZmpObjective, "__call__", bowl)
    newton_estimate = projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS)
    np.testing.assert_allclose(newton_estimate.values, TRUTH, atol=1e-9)
    assert newton_estimate.iterations == 2


def test_a_step_that_a_bound_cuts_short_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a bowl about a place beyond the feet's bound, from 10 µm before it: a tenth of what ends the search."""
    shape, bottom = np.diag([30.0, 20.0, 10.0, 40.0, 1.0, 2.0, 3.0, 4.0]), TRUTH.copy()
    farthest = REDUCED.bounds[3, 1]
    bottom[3] = farthest + 0.02

    def bowl(_: ZmpObjective, phi: Array) -> ObjectiveValue:
        off = phi - bottom
        return ObjectiveValue(float(off @ shape @ off), 2.0 * shape @ off, 2.0 * shape)

    monkeypatch.setattr(ZmpObjective, "__call__", bowl)
    start = REDUCED.nominal.copy()
    start[3] = farthest - 1e-5
    newton_estimate = projected_newton(stood(0, rotary=False), REDUCED, TOTAL_MASS, start=start)
    np.testing.assert_allclose(newton_estimate.values, np.minimum(bottom, REDUCED.bounds[:, 1]), atol=1e-9)
    assert newton_estimate.parameter_verdicts[3].word == "refused"


def test_a_mass_that_the_links_cannot_have_is_refused() -> None:
    with pytest.raises(WrongTotalMass, match=r"a total mass of 200 kg is not between 6\.8 and 127 kg"):
        projected_newton(stood(0, rotary=False), REDUCED, 200.0)
