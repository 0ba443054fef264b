"""Residual models of an arm whose links differ from what its file says, and whose drives that does not know."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification import FitSettings
from jointbench.identification.residual import Mission, TimePolynomial, gain_of, mission_of, printed_model
from jointbench.identification.state_residual import StateResidual
from jointbench.model import Link, Robot, chain_of, inverse_dynamics, load_robot, with_passive
from jointbench.tests.identification.synthetic import arm, run_of, synthetic_run, truth

OWN, OTHER = 11, 12


def real_parameters(robot: Robot) -> Array:
    """Full parameters of the arm: links 10 % off the file, drives that it does not know."""
    values = truth(robot)
    links = slice(0, 10 * robot.n_links)
    values[links] *= 1.0 + 0.1 * np.random.default_rng(3).choice([-1.0, 1.0], values[links].shape)
    return values


@lru_cache
def mission(motion_seed: int, n_joints: int = 3) -> Mission:
    robot = arm(n_joints)
    run = synthetic_run(
        robot, motion_seed=motion_seed, noise_seed=motion_seed, repeats=1, full_parameters=real_parameters(robot)
    )
    return mission_of(run, settings=FitSettings(cutoff_Hz=20.0))


@lru_cache
def state_residual() -> StateResidual:
    return StateResidual.fit(mission(OWN))


def test_the_error_is_what_links_and_drives_differ_by() -> None:
    """By the regressor: (true - printed parameters) times the columns, filtered as the torque was."""
    seen = mission(OWN)
    robot, base = seen.robot, seen.observations.filter.base
    assert robot.standard_parameters is not None
    printed = np.concatenate([robot.standard_parameters, np.zeros(base.n_full - 10 * robot.n_links)])

    differ = seen.observations.regressor @ base.group(real_parameters(robot) - printed)

    rows = seen.moving
    # What is left is the current's noise, 10 mA at 12.5 N·m/A through 20 of 500 Hz.
    assert np.sqrt(np.mean((seen.error - differ)[rows] ** 2)) < 0.01 * np.sqrt(np.mean(seen.error[rows] ** 2))


def test_a_residual_of_the_state_holds_on_another_mission() -> None:
    own, other = (gain_of(state_residual(), mission(seed)) for seed in (OWN, OTHER))

    assert own.average > 0.9
    assert other.average > 0.9
    assert own.verdict.word == "identified"
    assert other.verdict.word == "identified"
    assert np.all(other.with_it < 0.1 * other.without)


def test_where_joints_move_nothing_but_noise_is_left() -> None:
    """10 mA a sample at 12.5 N·m/A, of which the low-pass at 20 Hz leaves a fifth: about 0.025 N·m at joint 1."""
    other = mission(OTHER)
    left = (other.error - state_residual().along(other))[other.moving[:, 0], 0]

    assert np.sqrt(np.mean(left**2)) < 0.035


def test_a_polynomial_of_time_holds_on_its_own_mission_alone() -> None:
    polynomial = TimePolynomial.fit(mission(OWN))

    own, other = (gain_of(polynomial, mission(seed)) for seed in (OWN, OTHER))

    assert np.all(own.gain > 0.0)  # least squares of the same rows cannot be worse than zero
    assert other.average < own.average
    assert {verdict.word for verdict in other.joint_verdicts} == {"refused"}
    assert "nothing that it was fitted to is like mission" in other.joint_verdicts[0].reason
    assert not polynomial.distance_along(mission(OWN)).any()


def test_coefficients_of_the_polynomial_are_those_of_time_in_seconds() -> None:
    seen = mission(OWN)
    polynomial = TimePolynomial.fit(seen, order=5)

    powers = seen.time[:, None] ** np.arange(6)

    np.testing.assert_allclose(powers @ polynomial.coefficients.T, polynomial.along(seen), rtol=1e-6, atol=1e-6)
    assert polynomial.coefficients.shape == (3, 6)


def test_a_polynomial_of_higher_order_fits_its_mission_better() -> None:
    errors = [gain_of(TimePolynomial.fit(mission(OWN), order), mission(OWN)).with_it for order in (0, 5, 12)]

    assert np.all(np.diff(errors, axis=0) < 0.0)


@pytest.mark.parametrize("order", [-1, 100_000])
def test_an_order_without_rows_is_refused(order: int) -> None:
    with pytest.raises(FitError, match=rf"order = {order}.* rows"):
        TimePolynomial.fit(mission(OWN), order)


def test_error_bars_hold_on_another_mission() -> None:
    """2 σ hold 95 % of the error of a residual of the right form.

    85 % leaves room for one draw of the parameters, which all rows share, and for rows near rest, where friction's
    sign is a matter of milliseconds.
    """
    other = mission(OTHER)
    motion = other.observations.motion
    sigma = state_residual().sigma(motion.q, motion.dq, motion.ddq)
    left = other.error - state_residual().along(other)

    for joint, rows in enumerate(other.moving.T):
        assert np.mean(np.abs(left[rows, joint]) <= 2.0 * sigma[rows, joint]) > 0.85


def test_a_parameter_that_differs_is_found_with_its_sign() -> None:
    found = dict(zip(state_residual().names, state_residual().estimate.parameters, strict=True))
    words = {verdict.name: verdict.word for verdict in state_residual().parameter_verdicts}

    assert found["j1.viscous"] == pytest.approx(9.0, rel=0.1)  # of `truth`; the printed model has none
    assert found["j2.coulomb"] == pytest.approx(6.0 / 1.4, rel=0.15)
    assert words["j1.viscous"] == words["j2.coulomb"] == "identified"
    assert words["j2.load_friction"] == "refused"  # there is none


def test_states_far_from_those_fitted_are_told() -> None:
    residual, motion = state_residual(), mission(OWN).observations.motion
    rows = mission(OWN).moving.all(axis=1)
    q, dq, ddq = motion.q[rows], motion.dq[rows], motion.ddq[rows]

    own, faster = residual.distance(q, dq, ddq), residual.distance(q, 5.0 * dq, 25.0 * ddq)

    # Sign and filter are taken in another order than in the rows that were fitted: a little outside is inside still.
    assert np.quantile(own, 0.99) < 1.05
    assert np.median(faster) > 2.0
    assert np.all(residual.sigma(q, 5.0 * dq, 25.0 * ddq).mean(axis=0) > residual.sigma(q, dq, ddq).mean(axis=0))


def test_a_mission_unlike_the_own_one_is_told() -> None:
    """The same path in a fifth of the time: speeds and accelerations that the residual has never seen."""
    robot = arm()
    run = synthetic_run(robot, motion_seed=OTHER, noise_seed=1, repeats=1, full_parameters=real_parameters(robot))
    torque = run.samples.motor_torque
    assert torque is not None
    faster = run_of(robot, run.samples.motor_position[::5], torque[::5], plan=None, repeats=0)

    gain = gain_of(state_residual(), mission_of(faster, settings=mission(OWN).settings))

    assert np.all(gain.outside > 0.5)
    assert all("beyond what was fitted, up to" in verdict.reason for verdict in gain.joint_verdicts)


def test_a_residual_of_nothing_gains_nothing() -> None:
    """The judge can say no."""
    nothing = TimePolynomial.fit(replace_error(mission(OWN), 0.0))
    harmful = TimePolynomial.fit(replace_error(mission(OWN), -5.0))

    assert gain_of(nothing, mission(OWN)).average == pytest.approx(0.0, abs=1e-12)
    judged = gain_of(harmful, mission(OWN))
    assert judged.average < 0.0
    assert judged.verdict.word == "refused"


def replace_error(seen: Mission, factor: float) -> Mission:
    """The same mission with an error that is so many times as large."""
    changed = replace(seen)
    changed.__dict__["error"] = factor * seen.error
    return changed


def test_one_upright_joint_has_a_residual_too() -> None:
    """Nothing but inertia and friction: the printed model gives next to no torque."""
    own, other = mission(OWN, n_joints=1), mission(OTHER, n_joints=1)

    gain = gain_of(StateResidual.fit(own), other)

    assert gain.average > 0.9


def test_the_model_may_be_any_function_of_the_motion() -> None:
    run = synthetic_run(arm(), motion_seed=OWN, noise_seed=1, repeats=1)

    exact = mission_of(run, model=lambda q, dq, ddq: 0.0 * q)

    np.testing.assert_allclose(exact.error[exact.complete], exact.observations.torque[exact.complete], atol=1e-12)


def test_passive_joints_have_no_error() -> None:
    robot = with_passive(arm(), "j3")
    run = synthetic_run(arm(), motion_seed=OWN, noise_seed=1, repeats=1)
    seen = mission_of(run, robot)

    gain = gain_of(StateResidual.fit(seen), seen)

    assert not seen.error[:, 2].any()
    assert [verdict.word for verdict in gain.joint_verdicts][2] == "passive"
    assert np.isnan(gain.gain[2])
    assert np.isfinite(gain.average)


def test_a_robot_without_inertias_has_no_printed_model() -> None:
    robot = arm()
    first = replace(robot.joints[0], link=Link("base_link"))
    with pytest.raises(FitError, match=r"gives no inertia of base_link; add it"):
        printed_model(replace(robot, joints=(first, *robot.joints[1:])))


def test_kane_is_what_a_mission_is_compared_with() -> None:
    """The printed model of a chain is Kane's, its links' parameters those of the file, whether possible or not."""
    robot = chain_of(load_robot("modular7"), 4)
    q, dq, ddq = np.random.default_rng(0).standard_normal((3, 10, 4))
    assert robot.standard_parameters is not None

    expected = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)

    np.testing.assert_allclose(printed_model(robot)(q, dq, ddq), expected, rtol=1e-9, atol=1e-9)


def test_a_robot_at_rest_teaches_nothing() -> None:
    robot = arm()
    still = np.tile(robot.home, (3000, 1))
    seen = mission_of(
        run_of(robot, still, np.zeros_like(still), plan=None, repeats=0), settings=FitSettings(cutoff_Hz=20.0)
    )

    with pytest.raises(FitError, match="no joint moves"):
        StateResidual.fit(seen)
