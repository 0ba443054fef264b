"""The same few parameters from motor torques: what friction like the model's leaves of them, and what other does."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters, inverse_dynamics
from jointbench.errors import FitError, WrongTotalMass
from jointbench.identification.observations import OfJoints, observe
from jointbench.identification.settings import FitSettings
from jointbench.identification.zero_moment_point import joint_torque_method
from jointbench.identification.zero_moment_point.bounded_least_squares import Solution
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate
from jointbench.identification.zero_moment_point.joint_torque_method import (
    TorqueRows,
    estimate_of_torques,
    joint_torque_estimate,
)
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters, mean_distance
from jointbench.recording import Run, Samples
from jointbench.tests.identification.zero_moment_point.simulated_stance import PERIOD_S, biped, simulated_stance, sway

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
    solve = joint_torque_method.solve

    def endless(*arguments: Any) -> Solution:
        return replace(solve(*arguments), converged=False)

    monkeypatch.setattr(joint_torque_method, "solve", endless)
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
