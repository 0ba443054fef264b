"""A stance's theory and measurement: exact without noise, whatever is filtered, and apart by the nuisance alone.

Eight numbers that all standard parameters of a biped follow from.
"""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, FitError, RobotError
from jointbench.files import sealed_json
from jointbench.identification.judgement import Verdict
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.identification.zero_moment_point.contact import rocking_base
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, judge_reduced, load_stance_estimate
from jointbench.identification.zero_moment_point.measured_point import measured_point, numerators, support_foot
from jointbench.identification.zero_moment_point.reduced_parameters import theoretical_point
from jointbench.identification.zero_moment_point.stance import Calibration, Stance, joined, stance_of
from jointbench.model import (
    Link,
    floating_inverse_dynamics,
    floating_standard_parameters,
    load_robot,
    zero_moment_point,
)
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


BIPED = load_robot("gorobot2")
REDUCED = ReducedParameters(BIPED)
OTHER = np.array([0.25, 0.2, 0.1, 0.03, 9.0, 3.9, 3.1, 1.5])


def test_the_files_own_values_give_the_files_own_parameters() -> None:
    assert REDUCED.names == (
        "lc_trunk", "lc_thigh", "lc_shank", "lc_foot", "m_trunk", "m_thigh", "m_shank", "m_foot",
    )  # fmt: skip
    np.testing.assert_allclose(
        REDUCED.standard(REDUCED.nominal), np.asarray(floating_standard_parameters(BIPED)), atol=1e-15
    )


def test_a_thigh_is_a_body_on_its_axis() -> None:
    """Of the left one, whose axis starts at the origin of its frame: parallel axes by hand."""
    thigh = next(i for i, joint in enumerate(BIPED.joints) if joint.link.name == "l_thigh")
    block = REDUCED.standard(OTHER).reshape(-1, 10)[1 + thigh]
    lc, m = OTHER[1], OTHER[5]
    inertia = np.array(BIPED.joints[thigh].link.inertia_about_center_of_mass)

    np.testing.assert_allclose(block[:4], [m, m * lc, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(block[[4, 7, 9]], np.diag(inertia) + m * lc**2 * np.array([0.0, 1.0, 1.0]), atol=1e-15)


def test_derivatives_are_those_of_complex_steps() -> None:
    """Polynomials of complex numbers: their imaginary parts are derivatives to rounding."""
    step = 1e-30
    for i, each in enumerate(np.eye(8)):
        moved = OTHER + 1j * step * each
        np.testing.assert_allclose(
            REDUCED.jacobian(OTHER)[:, i], (REDUCED.terms @ _coefficients(moved)).imag / step, atol=1e-12
        )
        back, ahead = (REDUCED.jacobian(OTHER + sign * 1e-5 * each) for sign in (-1.0, 1.0))
        np.testing.assert_allclose(REDUCED.hessian(OTHER)[:, i], (ahead - back) / 2e-5, atol=1e-8)  # quadratic at most


def _coefficients(phi: np.ndarray) -> np.ndarray:
    lc, m = np.split(phi, 2)
    return np.concatenate([[1.0], m, m * lc, m * lc**2])


def test_the_mass_row_weighs_the_robot() -> None:
    weighed = REDUCED.standard(OTHER)[::10].sum()
    assert REDUCED.mass_row @ OTHER + REDUCED.held_mass == pytest.approx(weighed, abs=1e-12)


def test_parameters_tell_what_they_were_made_of() -> None:
    np.testing.assert_allclose(REDUCED.of_parameters(REDUCED.standard(OTHER)), OTHER, atol=1e-12)
    np.testing.assert_allclose(REDUCED.of(BIPED), REDUCED.nominal)


def test_parameters_of_another_make_are_refused() -> None:
    parameters = REDUCED.standard(OTHER).reshape(-1, 10)
    aside, unlike = parameters.copy(), parameters.copy()
    aside[0, 2] += 1e-3  # the right foot's m cy
    unlike[0, :4] *= 1.01
    with pytest.raises(RobotError, match=r"centre of mass of link 'r_foot' is 0\.667 mm off its axis"):
        REDUCED.of_parameters(aside.ravel())
    with pytest.raises(RobotError, match=r"links of kind 'foot' are not alike: r_foot 0\.03 m 1\.515 kg"):
        REDUCED.of_parameters(unlike.ravel())


def test_without_rotary_inertia_every_link_is_a_point() -> None:
    points = ReducedParameters(BIPED, rotary="none").standard(OTHER).reshape(-1, 10)
    for m, _, my, mz, ixx, *_ in points:
        assert ixx == pytest.approx((my**2 + mz**2) / m, abs=1e-15)


def test_what_cad_says_of_rotary_inertia_may_be_doubted_moment_by_moment() -> None:
    point, body = (ReducedParameters(BIPED, rotary=each).standard(OTHER) for each in ("none", "cad"))
    doubted = REDUCED.rotary_terms.sum(axis=1)
    moved = np.flatnonzero(doubted)

    assert REDUCED.rotary_names[:4] == ("trunk.Ixx", "trunk.Iyy", "trunk.Izz", "r_thigh.Ixx")
    assert len(moved) == len(REDUCED.rotary_names) == 21
    np.testing.assert_allclose(doubted[moved], (body - point)[moved], atol=1e-15)
    covariance = REDUCED.rotary_covariance(0.1)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0
    assert covariance[0, 0] > covariance[0, 1] > covariance[0, -1] > 0.0  # itself, its kind, another kind


def test_bounds_hold_the_nominal_and_no_mass_beyond_a_link() -> None:
    low, high = REDUCED.bounds.T
    assert (low < REDUCED.nominal).all()
    assert (REDUCED.nominal < high).all()
    np.testing.assert_allclose(high[:3], [0.4, 0.3, 0.3])


def test_robots_of_which_too_little_is_known_are_refused() -> None:
    with pytest.raises(RobotError, match=r"has no \[\[link_kinds\]\]"):
        ReducedParameters(load_robot("cobot6"))
    with pytest.raises(RobotError, match="floating_base = true"):
        ReducedParameters(replace(BIPED, base_link=None))
    with pytest.raises(RobotError, match="link 'r_foot' of 'gorobot2' has no mass"):
        ReducedParameters(replace(BIPED, base_link=Link("r_foot")))


def estimate() -> ZmpEstimate:
    """The robot file's own values; the last one has no error bar, which JSON has no number for."""
    covariance = np.diag([1e-4] * 7 + [np.inf])
    return ZmpEstimate(
        robot=biped(),
        method="ours",
        names=REDUCED.names,
        values=REDUCED.nominal,
        covariance=covariance,
        standard_parameters=REDUCED.standard(REDUCED.nominal),
        parameter_verdicts=judge_reduced(REDUCED, REDUCED.nominal, covariance),
        verdict=Verdict("stance", "poor fit", "made up"),
        total_mass=26.8,
        samples=1900,
        iterations=2,
        converged=True,
        trace=((0.5, 1e-3, 1.0), (1e-5, 1e-6, 0.5)),
        nuisance_names=("r_foot.front_left.gain",),
        nuisance_values=(0.004,),
        nuisance_sigma=(0.002,),
        notes=("a note",),
    )


def test_an_estimate_comes_back_whole(tmp_path: Path) -> None:
    saved = estimate()

    loaded = load_stance_estimate(saved.save(tmp_path / "estimate.json"))

    for field in dataclasses.fields(saved):
        before, after = getattr(saved, field.name), getattr(loaded, field.name)
        if isinstance(before, np.ndarray):
            assert np.array_equal(before, after), field.name
        else:
            assert before == after, field.name
    stance = simulated_stance(duration=8.0)
    assert loaded.distance(stance) == saved.distance(stance)


@pytest.mark.parametrize(
    ("reason", "word"),
    [("2.10 mm off, above 10%", "poor fit"), ("1.10 mm off, but it does not tell m_foot", "poorly excited")],
)
def test_an_estimate_with_the_words_of_the_release_before_is_read(tmp_path: Path, reason: str, word: str) -> None:
    path = tmp_path / "estimate.json"
    values = json.loads(estimate().save(path).read_text())
    del values["digest"], values["digests"]
    values["verdict"] |= {"word": "weak", "reason": reason}
    values["parameter_verdicts"][0]["word"] = "weak"
    values["parameter_verdicts"][-1]["word"] = "refused"
    path.write_text(sealed_json(values))

    loaded = load_stance_estimate(path)

    assert (loaded.verdict.word, loaded.verdict.reason) == (word, reason)
    assert [verdict.word for verdict in loaded.parameter_verdicts][:: len(loaded.names) - 1] == [
        "poorly excited",
        "refused",
    ]
    again = load_stance_estimate(loaded.save(path))
    assert again.parameter_verdicts == loaded.parameter_verdicts
    assert again.verdict == loaded.verdict


def test_what_is_no_estimate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "estimate.json"
    with pytest.raises(FileError, match=r"estimate\.json cannot be read"):
        load_stance_estimate(path)
    path.write_text("{")
    with pytest.raises(FileError, match="is no JSON"):
        load_stance_estimate(path)
    values = json.loads(estimate().save(path).read_text())
    del values["digest"], values["digests"]
    for broken, message in (
        ({"format": "jointbench model"}, "is no estimate of a stance"),
        ({"version": 9}, "version 9; this release reads 1, 2"),
        ({"values": [1.0]}, "damaged: TypeError values and covariance are not of its 8 names"),
        ({"values": ["a"] * 8}, "damaged: ValueError could not convert string to float"),
    ):
        path.write_text(sealed_json(values | broken))
        with pytest.raises(FileError, match=message):
            load_stance_estimate(path)
    path.write_text(sealed_json({key: value for key, value in values.items() if key != "trace"}))
    with pytest.raises(FileError, match="damaged: KeyError 'trace'"):
        load_stance_estimate(path)
