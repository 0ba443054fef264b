from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation import RampedFourier, RestToRestFourier
from jointbench.excitation.limits.certificate import certify, motion_at
from jointbench.excitation.limits.motion_limits import JointLimit, Motion, joint_limits
from jointbench.excitation.limits.scaling import check_home_usage, scale_into_limits
from jointbench.excitation.limits.torque_limits import torque_limit, usable_limits
from jointbench.model import Robot, gravity_torques
from jointbench.tests.excitation.random_robots import (
    random_family,
    random_tree,
    random_weights,
    with_torque_limits,
)

BASIS = RestToRestFourier(5, 10.0)


def is_made_feasible(seed: int) -> bool:
    """Scale a random motion of a random robot, and check it; return whether that is possible."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(1, 13)), mimics=seed % 3 == 0)
    basis, home = random_family(rng), np.array(robot.home)
    assert robot.standard_parameters is not None
    held = np.abs(gravity_torques(robot, home[None], robot.standard_parameters)[0])
    largest = held * rng.uniform(1.5, 5.0, len(held)) + 1.0
    impossible = bool(rng.random() < 0.3)
    if impossible:
        largest[np.argmax(held)] = held.max()  # of which 80 % may be used
    limits = usable_limits(with_torque_limits(robot, largest))
    weights = 10.0 ** rng.uniform(-3, 3) * random_weights(rng, robot, basis)
    if impossible:
        with pytest.raises(InfeasibleExcitation, match=r"joint 'j\d+' torque reaches .* choose another home"):
            scale_into_limits(limits, basis, home, weights)
        return False

    scaled = scale_into_limits(limits, basis, home, weights)

    assert certify(limits, basis, home, scaled).feasible
    ratios = np.linalg.norm(scaled, axis=1) / np.linalg.norm(weights, axis=1)
    assert np.all(ratios <= 1.0)
    np.testing.assert_allclose(scaled, weights * ratios[:, None], rtol=1e-12)
    return True


def test_every_motion_is_made_feasible_or_the_limit_is_named() -> None:
    outcomes = [is_made_feasible(seed) for seed in range(60)]

    assert 10 < sum(outcomes) < 50  # the problems are such that either can happen


def test_a_motion_within_its_limits_stays_as_it_is(cobot: Robot) -> None:
    weights = 0.01 * np.random.default_rng(0).standard_normal((6, BASIS.size))

    np.testing.assert_array_equal(
        scale_into_limits(usable_limits(cobot), BASIS, np.array(cobot.home), weights), weights
    )


@pytest.mark.parametrize("fill", [None, 0.7, 1.0])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_each_joint_keeps_999_thousandths_of_what_its_own_limits_allow(
    cobot: Robot, size: float, fill: float | None
) -> None:
    limits, home = joint_limits(cobot), np.array(cobot.home)
    weights = size * np.random.default_rng(1).standard_normal((6, BASIS.size))

    scaled = scale_into_limits(limits, BASIS, home, weights, fill)

    motion = motion_at(BASIS, home, scaled, np.linspace(0.0, 10.0, 20_001))
    usage = np.concatenate([limit.usage(motion).max(axis=0) for limit in limits]).reshape(-1, 6).max(axis=0)
    before = np.concatenate(
        [limit.usage(motion_at(BASIS, home, weights, np.linspace(0.0, 10.0, 20_001))).max(axis=0) for limit in limits]
    )
    wanted = np.minimum(before.reshape(-1, 6).max(axis=0), 1.0) if fill is None else fill
    assert np.all(usage <= wanted + 1e-9)
    # It may give away a thousandth, and 20 001 samples miss less than 1e-5 of a peak.
    assert np.all(usage >= wanted * (1.0 - 1e-3) - 1e-5)


def test_where_torque_binds_all_joints_shrink_alike_and_no_more_than_needed(cobot: Robot) -> None:
    home = np.array(cobot.home)
    weights = np.random.default_rng(2).standard_normal((6, BASIS.size))
    weights = scale_into_limits(joint_limits(cobot), BASIS, home, weights, fill=1.0)
    used = certify(usable_limits(cobot)[3:], BASIS, home, weights).usage.reshape(2, 6).max(axis=0)
    limits = usable_limits(with_torque_limits(cobot, 0.7 * used * cobot.torque_limits))

    scaled = scale_into_limits(limits, BASIS, home, weights)

    ratio = scaled[0, 0] / weights[0, 0]
    assert ratio < 0.9
    np.testing.assert_allclose(scaled, ratio * weights, rtol=1e-12)
    assert certify(limits, BASIS, home, scaled).feasible
    assert not certify(limits, BASIS, home, scaled * 1.002).feasible


def test_a_joint_at_rest_stays_at_rest(cobot: Robot) -> None:
    weights = np.zeros((6, BASIS.size))
    weights[2] = 1.0

    scaled = scale_into_limits(usable_limits(cobot), BASIS, np.array(cobot.home), weights, fill=1.0)

    assert np.all(scaled[[0, 1, 3, 4, 5]] == 0.0)
    assert np.all(scaled[2] > 0.0)


def test_a_home_that_cannot_be_held_is_named_and_by_how_much(cobot: Robot) -> None:
    home = np.array([0.0, np.deg2rad(-30), *cobot.home[2:]])
    assert cobot.standard_parameters is not None
    needed = abs(gravity_torques(cobot, home[None], cobot.standard_parameters)[0, 1])
    robot = with_torque_limits(cobot, np.array([125.0, needed, 125.0, 60.0, 60.0, 60.0]))

    with pytest.raises(
        InfeasibleExcitation,
        match=rf"at home, before anything moves, joint 'j2' torque reaches {needed:.6g} N·m, at most .* N·m of the "
        rf"limit {needed:.6g} N·m is allowed \(25 % beyond\); choose another home, or raise the limit",
    ):
        scale_into_limits(usable_limits(robot, home), BASIS, home, np.ones((6, BASIS.size)))


def test_a_home_that_can_just_be_held_leaves_no_motion(cobot: Robot) -> None:
    home = np.array([0.0, np.deg2rad(-30), *cobot.home[2:]])
    assert cobot.standard_parameters is not None
    needed = abs(gravity_torques(cobot, home[None], cobot.standard_parameters)[0, 1])
    robot = with_torque_limits(cobot, np.array([125.0, needed / 0.8 * (1.0 + 1e-5), 125.0, 60.0, 60.0, 60.0]))

    with pytest.raises(
        InfeasibleExcitation,
        match=r"home is too near a limit to move: with 0\.\d+ % of the motion .* joint 'j2' torque",
    ):
        scale_into_limits(usable_limits(robot, home), BASIS, home, np.ones((6, BASIS.size)))


@pytest.mark.parametrize("above", [True, False])
def test_a_home_next_to_the_end_of_a_range_leaves_no_motion(cobot: Robot, above: bool) -> None:
    low, high = cobot.position_limits[3]
    home = np.array(cobot.home)
    home[3] = high - 1e-6 if above else low + 1e-6

    with pytest.raises(
        InfeasibleExcitation,
        match=r"home is too near a limit to move: joint 'j4' may go only 9.5e-07 rad (up|down) from there, which "
        r"leaves .* % of what it can do; choose another home",
    ):
        scale_into_limits(usable_limits(cobot, home), BASIS, home, np.ones((6, BASIS.size)))


def test_a_home_next_to_the_end_of_a_range_may_be_left_inwards(cobot: Robot) -> None:
    basis = RampedFourier(3, 8.0, 2.0, 1)  # about a centre of its own
    high = cobot.position_limits[3, 1]
    home = np.array(cobot.home)
    home[3] = high - 1e-6
    inwards = np.zeros((6, basis.size))
    time = np.linspace(0.0, basis.duration, 5)
    center = int(np.argmax(np.abs(basis.evaluate(time, 0)[0][2])))
    inwards[3, center] = -1.0 / basis.evaluate(time, 0)[0][2, center]

    scaled = scale_into_limits(usable_limits(cobot, home), basis, home, inwards)

    assert certify(usable_limits(cobot, home), basis, home, scaled).feasible
    assert motion_at(basis, home, scaled, time)[0][2, 3] < home[3] - 0.1


def test_a_slow_motion_is_not_taken_for_none(cobot: Robot) -> None:
    basis = RestToRestFourier(3, 3600.0)

    scaled = scale_into_limits(usable_limits(cobot), basis, np.array(cobot.home), np.ones((6, basis.size)), fill=1.0)

    certificate = certify(usable_limits(cobot), basis, np.array(cobot.home), scaled)
    assert certificate.feasible
    assert "position" in certificate.worst


@dataclass(frozen=True, eq=False)
class Forbidden:
    """A limit that is broken from the beginning."""

    used: float
    names: tuple[str, ...] = ("the room",)

    def usage(self, motion: Motion) -> Array:
        return np.full((len(motion[0]), 1), self.used)

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        still = np.zeros_like(motion[0])
        return still, still, still, still

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        return np.zeros(1)

    def describe(self, scalar: int, usage: float) -> str:
        return f"the room is {100.0 * usage:.0f} % full"


@pytest.mark.parametrize("used", [1.0 - 1e-7, 1.0, 1.5, np.nan, np.inf])
def test_any_limit_that_home_breaks_or_touches_is_named(used: float) -> None:
    how = "no room is left" if used <= 1.0 else ".* % beyond"

    with pytest.raises(InfeasibleExcitation, match=rf"at home, before anything moves, the room is .* full \({how}\)"):
        check_home_usage([Forbidden(used)], np.zeros(2))


def test_limits_of_joints_come_in_any_order(cobot: Robot) -> None:
    home = np.array(cobot.home)
    weights = np.random.default_rng(5).standard_normal((6, BASIS.size))
    torque = torque_limit(cobot)
    assert torque is not None
    own: tuple[JointLimit, ...] = joint_limits(cobot)

    one = scale_into_limits([*own, torque], BASIS, home, weights)
    other = scale_into_limits([torque, *own[::-1]], BASIS, home, weights)

    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_copy_with_wider_limits_moves_more(cobot: Robot) -> None:
    joints = tuple(replace(joint, acceleration_limit=2.0 * joint.acceleration_limit) for joint in cobot.joints)
    wide = replace(cobot, joints=joints)
    basis, home = RestToRestFourier(5, 2.0), np.array(cobot.home)  # so short that acceleration decides
    weights = np.random.default_rng(6).standard_normal((6, basis.size))

    narrow, wider = (scale_into_limits(joint_limits(robot), basis, home, weights, 1.0) for robot in (cobot, wide))

    np.testing.assert_allclose(wider, 2.0 * narrow, rtol=3e-3)
