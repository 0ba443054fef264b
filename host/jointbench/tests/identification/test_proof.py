"""Figures of a proof: distance of motions, share of feedback, what half a feed-forward tells, and the verdict.

What is asked of a model and of a motion before anything moves for a proof.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from jointbench.bench import BoardClock
from jointbench.errors import FitError
from jointbench.excitation import random_excitation
from jointbench.identification import Model, fit
from jointbench.identification.feedforward import MotorReference
from jointbench.identification.proof import (
    LEAST_DISTANCE,
    Control,
    PredictedShare,
    Proof,
    Tracking,
    check_half,
    explained_wind_up,
    motion_distance,
    tracking,
)
from jointbench.identification.prove import check_new_motion, check_same_robot, draw_motion
from jointbench.model import load_robot
from jointbench.signals import BoardFilter
from jointbench.tests.identification.synthetic import arm, run_of, synthetic_run

NAMES = ("j1", "j2")
BOTH = np.array([True, True])
TIME = np.arange(0.0, 4.0, 1e-3)
TORQUE = np.stack([10.0 * np.sin(2.0 * np.pi * TIME), 4.0 * np.cos(3.0 * np.pi * TIME)], axis=1)


def played(error: float, model: float) -> Tracking:
    """A motion of that tracking error [rad], whose feed-forward is this share of the torque."""
    errors = np.full_like(TORQUE, error)
    return Tracking(errors, None, None, TIME, TORQUE, model * TORQUE, 1e-3)


def proof(model: float = 0.97) -> Proof:
    predicted = PredictedShare(np.full(2, 0.03), np.full(2, 0.01), np.full(2, 0.05))
    without, fed = played(2e-3, 0.0), played(1e-4, model)
    return Proof(
        NAMES, BOTH, (without, without), (fed, fed), played(1e-3, 0.5 * model), predicted, np.full(2, 0.03), 0.5
    )


def test_a_motion_again_is_at_no_distance_and_random_ones_are_far() -> None:
    robot = load_robot("cobot6")
    motions = [random_excitation(robot, period=4.0, seed=seed) for seed in (1, 2)]
    assert motion_distance(motions[0], motions[0]) == pytest.approx(0.0, abs=1e-9)
    assert motion_distance(motions[0].scaled(0.97), motions[0]) < LEAST_DISTANCE
    assert motion_distance(motions[1], motions[0]) > 2.0 * LEAST_DISTANCE


def test_the_share_is_what_the_feed_forward_leaves() -> None:
    # What is left is in proportion to the torque, so that filters and ends change nothing but rounding.
    assert played(1e-4, 0.97).share == pytest.approx([0.03, 0.03], rel=1e-6)
    assert played(1e-4, 0.0).share == pytest.approx([1.0, 1.0], rel=1e-6)


def test_the_share_does_not_know_what_is_above_its_band() -> None:
    noise = 5.0 * np.sin(2.0 * np.pi * 200.0 * TIME)[:, None]  # the low-pass at 10 Hz takes this to below 1e-9
    own = played(1e-4, 0.97)
    assert replace(own, torque=own.torque + noise).share == pytest.approx([0.03, 0.03], rel=1e-3)


def test_a_model_as_predicted_is_proven() -> None:
    good = proof()
    assert good.is_proven
    assert good.ratio == pytest.approx([20.0, 20.0])
    assert (good.pooled_ratio, good.worst_ratio) == pytest.approx((20.0, 20.0))
    assert good.half_ratio == pytest.approx([0.5, 0.5])


def test_torque_that_is_a_fifth_too_small_is_refused() -> None:
    assert not proof(0.8).is_proven
    assert "j1: feedback supplies 20.0 %, allowed are 7.0 %" in proof(0.8).against


def test_a_share_outside_its_prediction_is_refused() -> None:
    assert proof(0.94).against == (
        "j1: its share of 6.0 % was predicted as 1.0 to 5.0 %",
        "j2: its share of 6.0 % was predicted as 1.0 to 5.0 %",
    )


def test_a_control_that_passes_is_seen_and_a_trip_is_a_failure() -> None:
    controls = (Control("torque × 0.8", played(1e-3, 0.8)), Control("sign of j1", None, "FOLLOWING"))
    assert replace(proof(), controls=controls).is_proven
    passing = replace(proof(), controls=(Control("rigid body alone", played(1e-4, 0.97)),))
    assert passing.against == ("control passes: rigid body alone",)


@pytest.mark.parametrize(
    ("ratio", "cause"), [(1.5, "sign"), (1.0, "order"), (0.75, "scale is likely 0.5 of"), (0.2, "too large")]
)
def test_half_a_feed_forward_tells_the_joint_and_the_likely_cause(ratio: float, cause: str) -> None:
    with pytest.raises(FitError, match=rf"j2's tracking error.*{cause}"):
        check_half(np.array([0.55, ratio]), NAMES, BOTH)
    check_half(np.array([0.55, ratio]), NAMES, np.array([True, False]))  # a joint without a model is not judged
    check_half(np.array([0.41, 0.59]), NAMES, BOTH)


def wound_up(stiffness: float, zero: float = 0.02) -> Tracking:
    """A motion without feed-forward whose first gear has this stiffness [N·m/rad], the second one none to speak of."""
    twist = TORQUE / np.array([stiffness, np.inf]) + zero
    return replace(played(2e-3, 0.0), link_error=np.full_like(TORQUE, 2e-3) + twist, wind_up=twist)


def leading(stiffness: float) -> MotorReference:
    """A reference whose first motor leads by the torque over this stiffness."""
    motion = random_excitation(load_robot("cobot6:2"), period=4.0, seed=1)
    return MotorReference(motion, CubicSpline(TIME, TORQUE / np.array([stiffness, np.inf])))


@pytest.mark.parametrize("off", [0.6, 1.0, 10.0])  # leaves 0.67, none and 0.9 of the wind-up
def test_motors_lead_by_a_stiffness_that_explains_the_wind_up(off: float) -> None:
    gears = np.array([5000.0 * off, np.inf])
    kept, zeros, sentences = explained_wind_up(wound_up(5000.0), leading(5000.0 * off), NAMES, gears)
    assert kept == pytest.approx(gears)
    assert zeros == pytest.approx([0.02, 0.0], abs=1e-6)  # the torque has no mean; only of gears that lead
    assert not sentences


def test_motors_do_not_lead_by_a_stiffness_that_does_not_explain_the_wind_up() -> None:
    for true, given in ((5000.0, 2500.0), (-5000.0, 5000.0)):  # half of it; an encoder of the wrong sign
        gears = np.array([given, np.inf])
        kept, zeros, (sentence,) = explained_wind_up(wound_up(true), leading(given), NAMES, gears)
        assert not np.isfinite(kept).any()
        assert not zeros.any()
        assert f"the motor of j1 does not lead: a stiffness of {given:g} N·m/rad leaves" in sentence
    assert "leaves 2.83 mrad of the 1.41 mrad" in sentence  # 10 N·m / 5000 N·m/rad / √2, twice of it left


def test_links_without_encoders_are_taken_on_trust() -> None:
    blind = replace(wound_up(5000.0), wind_up=None)
    kept, zeros, sentences = explained_wind_up(blind, leading(50.0), NAMES, np.array([50.0, np.inf]))
    assert kept[0] == pytest.approx(50.0)
    assert not zeros.any()
    assert not sentences


def test_links_have_ratios_of_their_own_where_they_have_encoders() -> None:
    own = proof()
    assert (own.link_ratio, own.pooled_link_ratio, own.worst_link_ratio) == (None, None, None)
    without, fed = (
        replace(run, link_error=np.full_like(TORQUE, 1.0) * size)
        for run, size in ((own.without[0], [4e-3, 3e-3]), (own.fed[0], [1e-3, 1e-4]))
    )
    linked = replace(own, without=(without, without), fed=(fed, fed), stiffness=np.array([5000.0, np.inf]))
    assert linked.link_ratio == pytest.approx([4.0, 30.0])
    assert linked.pooled_link_ratio == pytest.approx(5e-3 / np.sqrt(1.01e-6))
    assert linked.worst_link_ratio == pytest.approx(4.0)
    assert linked.leads.tolist() == [True, False]
    assert not own.leads.any()


ROBOT = arm(2)
RUN = synthetic_run(ROBOT, motion_seed=1, noise_seed=2)


@lru_cache(maxsize=1)
def model() -> Model:
    own = fit(RUN, settings={"cutoff_Hz": 20.0, "delay": 0.0}, friction="coulomb_viscous")
    assert RUN.excitation is not None
    recorded = {"excitation": RUN.excitation.to_dict()}
    return replace(own, provenance={"run": "runs/fitted", "sha256": "0" * 64, "recorded": recorded})


def test_each_joint_is_held_against_what_its_own_board_played() -> None:
    """Boards that start half a tick apart, one of them by a fast crystal: an arm that follows exactly has no error."""
    robot = arm()
    starts = dict(zip(robot.joint_names, np.linspace(-0.4, 0.4, robot.n_joints).tolist(), strict=True))
    fast = robot.joint_names[1]
    motion = random_excitation(robot, period=8.0, seed=4)
    ticks = np.arange(8000)
    rates = np.where(np.array(robot.joint_names) == fast, 1.0 + 50e-6, 1.0)
    own = 1e-3 * (ticks[:, None] - np.array(list(starts.values()))) * rates
    places = [motion.evaluate(np.clip(time, 0.0, 8.0)) for time in own.T]
    position = np.stack([place[0][:, j] for j, place in enumerate(places)], axis=1)
    current = np.stack([place[2][:, j] for j, place in enumerate(places)], axis=1)  # in proportion to the acceleration
    torque = robot.drive_train.joint_torque_of_current(current)
    knots = motion.evaluate(0.008 * np.arange(1001))[2]
    clock = BoardClock(0.0, 0.0, 50.0, 1000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10)
    clocks = {name: clock if name == fast else replace(clock, drift_ppm=0.0) for name in robot.joint_names}
    none = BoardFilter(sections=(), cic_order=1, window=0.0, sample_period=1e-3)
    plain = run_of(robot, position, torque, plan=motion, repeats=1, board_filter=none)
    own_clocks = replace(plain, starts=starts, clocks=clocks)
    seen = [tracking(run, motion, motion, robot, knots, 0.008) for run in (plain, own_clocks)]
    assert np.abs(seen[1].error).max() < 1e-12 < 1e-4 < np.abs(seen[0].error).max()
    # Straight lines between knots 8 ms apart leave some 1e-4 of a motion below 10 Hz.
    assert seen[1].share.max() < 1e-3
    assert seen[0].share.max() > 2.0 * seen[1].share.max()


def test_a_model_of_another_robot_is_refused_and_other_masses_are_not() -> None:
    check_same_robot(model(), ROBOT)
    joints = ROBOT.joints
    heavier = replace(joints[1], link=replace(joints[1].link, mass=2.0 * (joints[1].link.mass or 1.0)))
    check_same_robot(model(), replace(ROBOT, joints=(joints[0], heavier)))
    longer = replace(joints[1], origin=(*joints[1].origin[:2], joints[1].origin[2] + 0.01))
    with pytest.raises(FitError, match=r"the kinematics of the model's robot"):
        check_same_robot(model(), replace(ROBOT, joints=(joints[0], longer)))
    geared = replace(ROBOT.drives[0], ratio=1.1 * ROBOT.drives[0].ratio)
    with pytest.raises(FitError, match=r"the drives of the model's robot"):
        check_same_robot(model(), replace(ROBOT, drives=(geared, *ROBOT.drives[1:])))


def test_the_fitted_motion_and_one_like_it_are_refused_and_what_to_do_is_said() -> None:
    motion = RUN.excitation
    assert motion is not None
    with pytest.raises(FitError, match=r"is that of run runs/fitted.*give another with --plan"):
        check_new_motion(model(), motion)
    with pytest.raises(FitError, match=r"standard deviations from that of run runs/fitted"):
        check_new_motion(model(), motion.scaled(0.97))


def test_a_motion_is_drawn_that_is_far_enough() -> None:
    motion = draw_motion(model(), 9.6, 1)
    assert check_new_motion(model(), motion) >= 0.1
    time = np.array([0.0, motion.period])
    np.testing.assert_allclose(motion.evaluate(time)[1], 0.0, atol=1e-9)


def test_a_model_of_a_log_is_refused() -> None:
    with pytest.raises(FitError, match=r"the motion of that run is not in its provenance"):
        draw_motion(replace(model(), provenance={"run": "log.csv", "sha256": "0" * 64}), 9.6, 1)
