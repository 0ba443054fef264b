"""A stance's theory and measurement: exact without noise, whatever is filtered, and apart by the nuisance alone."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, RobotError
from jointbench.identification.zero_moment_point.contact import rocking_base
from jointbench.identification.zero_moment_point.measured_point import measured_point, numerators, support_foot
from jointbench.identification.zero_moment_point.reduced_parameters import theoretical_point
from jointbench.identification.zero_moment_point.stance import Calibration, Stance, joined, stance_of
from jointbench.model import floating_inverse_dynamics, load_robot, zero_moment_point
from jointbench.signals import LowPass, Motion
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    PERIOD_S,
    biped,
    drawn_nuisance,
    ground_forces,
    nominal,
    simulated_stance,
    sway,
)

ROBOT = biped()
FOOT = ROBOT.foot("r_foot")
TRUE = nominal(ROBOT)
MASS = float(TRUE[::10].sum())


def theory(stance: Stance, parameters: Array) -> Array:
    values = stance.columns @ parameters
    return values[:, :2] / values[:, 2:]


@pytest.mark.parametrize("low_pass", [None, LowPass(8.0, PERIOD_S)])
def test_filtered_theory_is_the_filtered_measurement(low_pass: LowPass | None) -> None:
    motion = sway(ROBOT, 1, 10.0)
    forces = ground_forces(ROBOT, FOOT, motion, TRUE)
    stance = stance_of(ROBOT, "r_foot", motion.time, motion.q, motion.dq, motion.ddq, forces, MASS, low_pass=low_pass)
    # Both go through the same filters before they are divided: rounding of metres is all that is left.
    np.testing.assert_allclose(theory(stance, TRUE), stance.measured, rtol=0, atol=1e-13)
    np.testing.assert_allclose(stance.columns[:, 2] @ TRUE, stance.vertical_force, rtol=1e-12)
    np.testing.assert_allclose(stance.weight, stance.vertical_force, rtol=1e-12)
    assert stance.sample_period == pytest.approx(0.048)
    np.testing.assert_allclose(np.diff(stance.time), 0.048)


def test_without_a_filter_it_is_the_zero_moment_point() -> None:
    motion = sway(ROBOT, 2, 4.0)
    forces = ground_forces(ROBOT, FOOT, motion, TRUE)
    stance = stance_of(
        ROBOT, "r_foot", motion.time, motion.q, motion.dq, motion.ddq, forces, MASS, filter_time=0.0, sample_period=0.0
    )
    links = zero_moment_point(ROBOT, motion.q, motion.dq, motion.ddq, TRUE[10:], height=FOOT.origin[2])
    base, gravity = TRUE[:4], 9.81
    share = base[0] * gravity / stance.vertical_force[:, None]
    own = base[1:3] / base[0]
    np.testing.assert_allclose(stance.measured, (1.0 - share) * links.points + share * own, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(stance.time, motion.time)
    np.testing.assert_array_equal(stance.q, motion.q)


def test_rows_tell_when_they_happened() -> None:
    """Filtered positions are those of the row's time, but for how the motion curves within the filter's time."""
    motion = sway(ROBOT, 3, 10.0)
    forces = ground_forces(ROBOT, FOOT, motion, TRUE)
    stance = stance_of(ROBOT, "r_foot", motion.time, motion.q, motion.dq, motion.ddq, forces, MASS)
    then = np.stack([np.interp(stance.time, motion.time, each) for each in motion.q.T], axis=1)
    # T² ddq of 0.05 s and up to 0.8 rad/s²; without the delay taken off it would be T dq = 10 mrad.
    np.testing.assert_allclose(stance.q, then, rtol=0, atol=2.5e-3)


def test_nuisance_explains_what_sensors_and_cables_do() -> None:
    wrong = drawn_nuisance(ROBOT, FOOT, 3)
    stance = simulated_stance(nuisance=wrong, noise=0.0, duration=10.0)
    error = stance.measured - theory(stance, TRUE)
    left = error - stance.nuisance_columns @ wrong
    assert np.abs(error).max() > 5e-4
    assert np.abs(left).max() < 0.02 * np.abs(error).max()  # first order: errors of 1 % leave 1 % of themselves
    force = stance.vertical_force - stance.columns[:, 2] @ TRUE
    np.testing.assert_allclose(stance.force_nuisance_columns @ wrong, force, rtol=0, atol=0.02 * np.abs(force).max())


def test_a_sole_that_gives_rocks_what_stands_on_it() -> None:
    """The exact wrench of a base that moves as its corners sink, against the column of the give."""
    give, motion = 5e-7, sway(ROBOT, 4, 20.0)
    level = ground_forces(ROBOT, FOOT, motion, TRUE)
    h = PERIOD_S
    rates = np.gradient(level, h, axis=0)
    pressing = Motion(level, rates, np.gradient(rates, h, axis=0))
    base = rocking_base(ROBOT, FOOT, pressing, give)
    wrench = floating_inverse_dynamics(ROBOT, base, motion.q, motion.dq, motion.ddq, TRUE)[:, :6]
    up = numerators(FOOT, wrench)
    shares = FOOT.points / (FOOT.points**2).sum(axis=0)
    forces = up[:, 2:] * (0.25 + (up[:, :2] / up[:, 2:] - FOOT.origin[:2]) @ shares.T)
    stance = stance_of(
        ROBOT, "r_foot", motion.time, motion.q, motion.dq, motion.ddq, forces, MASS, low_pass=LowPass(3.0, h)
    )
    error, column = stance.measured - theory(stance, TRUE), stance.nuisance_columns[:, :, -2]
    # What rocks once more for having rocked: a share of itself as large as its share of the motion, some percent.
    np.testing.assert_allclose(column * give, error, rtol=0, atol=0.05 * np.abs(error).max())
    assert stance.nuisance_names[-2:] == ("r_foot.give", "r_foot.delay")


def test_forces_that_are_read_late_are_those_of_before() -> None:
    motion, late = sway(ROBOT, 5, 20.0), 2e-3
    forces = ground_forces(ROBOT, FOOT, motion, TRUE)
    before = np.stack([np.interp(motion.time - late, motion.time, each) for each in forces.T], axis=1)
    stance = stance_of(
        ROBOT, "r_foot", motion.time, motion.q, motion.dq, motion.ddq, before, MASS, low_pass=LowPass(3.0, PERIOD_S)
    )
    error, column = stance.measured - theory(stance, TRUE), stance.nuisance_columns[:, :, -1]
    np.testing.assert_allclose(column * late, error, rtol=0, atol=0.02 * np.abs(error).max())
    force = stance.vertical_force - stance.columns[:, 2] @ TRUE
    np.testing.assert_allclose(
        stance.force_nuisance_columns[:, -1] * late, force, rtol=0, atol=0.05 * np.abs(force).max()
    )


def test_joined_stances_have_all_rows() -> None:
    one, two = (simulated_stance(motion_seed=seed, duration=5.0) for seed in (1, 2))
    both = joined([one, two])
    assert both.n_samples == one.n_samples + two.n_samples
    np.testing.assert_array_equal(both.columns[one.n_samples :], two.columns)
    np.testing.assert_array_equal(both.measured[: one.n_samples], one.measured)


def test_periods_that_differ_by_rounding_or_by_clocks_are_the_same() -> None:
    """A period is told from the first and last time of a part, so that each part's is another in its last bits."""
    one = simulated_stance(duration=5.0)
    for other in (np.nextafter(one.sample_period, 1.0), one.sample_period * (1.0 + 5e-5)):
        assert joined([one, replace(one, sample_period=float(other))]).sample_period == one.sample_period


def test_what_does_not_belong_together_is_not_joined() -> None:
    one = simulated_stance(duration=5.0)
    with pytest.raises(FitError, match=r"differ in sample_period: 0\.048 and 0\.1; fit them one by one"):
        joined([one, replace(one, sample_period=0.1)])
    with pytest.raises(FitError, match="of different robots"):
        joined([one, replace(one, robot=replace(ROBOT, name="another"))])
    with pytest.raises(FitError, match="no stances to join"):
        joined([])


def test_the_pressure_acts_between_the_corners() -> None:
    forces = np.array([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.0, 0.0], [0.0, 3.0, 0.0, 1.0]])
    np.testing.assert_allclose(measured_point(FOOT, forces), [[0.02, 0.0], [0.13, 0.0], [0.075, -0.03]], atol=1e-15)


def test_only_a_level_base_can_be_stood_on() -> None:
    with pytest.raises(FitError, match="'l_foot' of robot 'gorobot2' is moved by joint 'l_ankle_pitch'"):
        support_foot(ROBOT, "l_foot")
    with pytest.raises(FitError, match="not level"):
        support_foot(replace(ROBOT, gravity=(0.5, 0.0, -9.8)), "r_foot")
    with pytest.raises(RobotError, match="no foot 'hoof'"):
        support_foot(ROBOT, "hoof")


def test_a_base_that_does_not_move_and_short_motions_are_refused() -> None:
    motion = sway(ROBOT, 1, 0.2)
    forces = ground_forces(ROBOT, FOOT, motion, TRUE)
    with pytest.raises(FitError, match="25 samples in a row are too few for the filters"):
        stance_of(ROBOT, "r_foot", motion.time, motion.q, motion.dq, motion.ddq, forces, MASS)
    uneven = motion.time**2
    with pytest.raises(FitError, match="times must be evenly spaced; steps go from"):
        stance_of(ROBOT, "r_foot", uneven, motion.q, motion.dq, motion.ddq, forces, MASS, filter_time=0.0)
    fixed = replace(ROBOT, base_link=None)
    long = sway(ROBOT, 1, 2.0)
    forces = ground_forces(ROBOT, FOOT, long, TRUE)
    with pytest.raises(RobotError):
        stance_of(fixed, "r_foot", long.time, long.q, long.dq, long.ddq, forces, MASS)
    with pytest.raises(RobotError):
        stance_of(load_robot("cobot6"), "r_foot", long.time, long.q, long.dq, long.ddq, forces, MASS)


def test_true_errors_leave_what_theory_says() -> None:
    """Exactly, and not to first order: gains are three times as wrong as sensors' are."""
    robot = biped()
    nuisance = 3.0 * drawn_nuisance(robot, robot.foot("r_foot"), 1)
    stance = simulated_stance(nuisance=nuisance, noise=0.0, duration=8.0)
    found, _ = Calibration(stance)(nuisance)

    off = np.abs(stance.measured - theoretical_point(stance, nominal(robot))).max()
    assert off > 1e-3
    np.testing.assert_allclose(found[:, :2], theoretical_point(stance, nominal(robot)), atol=1e-12)
    np.testing.assert_allclose(found[:, 2], stance.columns[:, 2] @ nominal(robot), atol=1e-9)


def test_derivatives_are_differences() -> None:
    robot = biped()
    nuisance = drawn_nuisance(robot, robot.foot("r_foot"), 2)
    stance = simulated_stance(nuisance=nuisance, duration=8.0)
    calibration = Calibration(stance)
    _, slopes = calibration(nuisance)
    for i, sigma in enumerate(stance.data_sheet):
        step = 1e-3 * sigma * np.eye(len(nuisance))[i]
        ahead, back = (calibration(nuisance + each)[0] for each in (step, -step))
        expected = (ahead - back) / (2e-3 * sigma)
        assert slopes[:, :, i] == pytest.approx(expected, rel=1e-5, abs=1e-6 * np.abs(expected).max() + 1e-12)
