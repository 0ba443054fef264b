from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation import RampedFourier, RestToRestFourier
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.limits.certificate import RESOLUTION, certify, is_feasible, motion_at
from jointbench.excitation.limits.motion_limits import JointLimit, Limit, Motion, joint_limits
from jointbench.excitation.limits.scaling import check_home_usage, scale_into_limits
from jointbench.excitation.limits.torque_limits import torque_limit, usable_limits
from jointbench.model import Robot, gravity_torques
from jointbench.tests.excitation.random_robots import (
    random_family,
    random_tree,
    random_weights,
    with_torque_limits,
)

ROUNDING = 1e-9
"""Of a motion's derivatives, sums of waves rounded to 1e-11 of their bounds."""


def dense_usage(limits: tuple[Limit, ...], basis: Basis, home: Array, weights: Array, samples: int) -> Array:
    """Largest usage at evenly spaced times, of every scalar."""
    time = np.linspace(0.0, basis.duration, samples)
    motion = motion_at(basis, home, weights, time)
    return np.concatenate([limit.usage(motion).max(axis=0) for limit in limits])


def near_its_limits(rng: np.random.Generator, limits: tuple[Limit, ...], basis: Basis, home: Array, weights: Array):
    """Weights scaled so that the worst usage is about 1."""
    worst = dense_usage(limits, basis, home, weights, 200).max()
    return weights * rng.uniform(0.9, 1.05) / max(worst, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_certificates_against_dense_sampling(hundred: int) -> None:
    verdicts: list[bool] = []
    for seed in range(100 * hundred, 100 * hundred + 100):
        verdicts.append(certificate_holds(seed))
    # The problems must be such that either answer comes up, or agreement would say nothing.
    assert 5 < sum(verdicts) < 95


def certificate_holds(seed: int) -> bool:
    """Compare a certificate with dense sampling; return whether it is feasible."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(1, 13)), mimics=seed % 3 == 0)
    basis, home, limits = random_family(rng), np.array(robot.home), usable_limits(robot)
    weights = near_its_limits(rng, limits, basis, home, random_weights(rng, robot, basis))

    certificate = certify(limits, basis, home, weights)

    largest_sampled = dense_usage(limits, basis, home, weights, 4001)
    assert np.all(largest_sampled <= certificate.usage + ROUNDING), seed
    known = certificate.largest_sampled > 0.5
    tight = (
        certificate.usage - certificate.largest_sampled
        <= RESOLUTION * np.maximum(certificate.largest_sampled, 1.0) + ROUNDING
    )
    assert np.all(tight | ~known), seed
    assert certificate.feasible == is_feasible(limits, basis, home, weights)
    return certificate.feasible


@pytest.mark.parametrize("seed", range(15))
def test_certificates_against_dense_sampling(seed: int) -> None:
    certificate_holds(seed)


class Overlooking(JointLimit):
    """A limit that claims to know nothing of what happens between samples."""

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        return np.zeros(len(self.names))


def test_dense_sampling_convicts_a_limit_that_overlooks_peaks(cobot: Robot) -> None:
    honest = joint_limits(cobot)[2]
    fields = {name: getattr(honest, name) for name in ("order", "joints", "units", "middle", "up", "down")}
    overlooking = Overlooking(**fields)
    basis, home = RestToRestFourier(20, 10.0), np.array(cobot.home)
    weights = np.random.default_rng(3).standard_normal((6, basis.size))

    largest_sampled = dense_usage((honest,), basis, home, weights, 4001)

    assert np.any(certify([overlooking], basis, home, weights).usage < largest_sampled - 0.01)
    assert np.all(certify([honest], basis, home, weights).usage >= largest_sampled - ROUNDING)


def wave(cobot: Robot) -> tuple[RestToRestFourier, Array, Array, float]:
    """A motion of joint 1 alone, and its largest velocity."""
    basis, home = RestToRestFourier(3, 7.0), np.array(cobot.home)
    weights = np.zeros((6, basis.size))
    weights[0] = 0.1, -0.2, 0.15, 0.05
    velocity = motion_at(basis, home, weights, np.linspace(0.0, 7.0, 200_001))[1]
    return basis, home, weights, float(np.abs(velocity).max())


@pytest.mark.parametrize(("excess", "feasible"), [(-1e-6, True), (1e-6, False)])
def test_it_decides_to_a_millionth_of_the_limit(cobot: Robot, excess: float, feasible: bool) -> None:
    basis, home, weights, fastest = wave(cobot)
    robot = replace(cobot, joints=(replace(cobot.joints[0], velocity_limit=fastest), *cobot.joints[1:]))
    limit = joint_limits(robot, share=1.0 / (1.0 + excess))[1]

    certificate = certify([limit], basis, home, weights)

    assert certificate.feasible == feasible
    assert 1.0 + excess - ROUNDING <= certificate.usage.max() <= 1.0 + max(excess, 0.0) + RESOLUTION
    assert certificate.samples < 2000


def test_what_touches_the_limit_counts_as_beyond(cobot: Robot) -> None:
    basis, home, weights, fastest = wave(cobot)
    robot = replace(cobot, joints=(replace(cobot.joints[0], velocity_limit=fastest), *cobot.joints[1:]))

    certificate = certify([joint_limits(robot, share=1.0)[1]], basis, home, weights)

    assert not certificate.feasible
    assert certificate.usage.max() == pytest.approx(1.0, abs=2e-7)


@pytest.mark.parametrize("family", ["ramped", "even harmonics"])
def test_what_a_motion_repeats_is_looked_at_once(cobot: Robot, family: str) -> None:
    home, limits = np.array(cobot.home), usable_limits(cobot)
    if family == "ramped":
        once, often = (RampedFourier(3, 6.0, 1.0, periods) for periods in (1, 8))
    else:
        once, often = RestToRestFourier((1, 2, 3), 6.0), RestToRestFourier((2, 4, 6), 12.0)
    weights = 0.6 * np.random.default_rng(0).standard_normal((6, once.size))

    short, long = (certify(limits, basis, home, weights) for basis in (once, often))

    # Grids differ, and with them what is known within the resolution.
    np.testing.assert_array_less(dense_usage(limits, often, home, weights, 20_001), long.usage + ROUNDING)
    known = np.minimum(short.largest_sampled, long.largest_sampled) > 0.5
    assert np.count_nonzero(known) > 3
    np.testing.assert_allclose(long.usage[known], short.usage[known], atol=2.0 * RESOLUTION * short.usage.max())
    assert long.samples < 2 * short.samples


def test_it_judges_itself(cobot: Robot) -> None:
    basis, home, weights, fastest = wave(cobot)
    robot = replace(cobot, joints=(replace(cobot.joints[0], velocity_limit=0.8 * fastest), *cobot.joints[1:]))

    certificate = certify(usable_limits(robot), basis, home, weights)

    assert not certificate.feasible
    assert certificate.worst.startswith("joint 'j1' velocity")
    assert min(certificate.margins, key=lambda name: certificate.margins[name]) == certificate.worst
    assert certificate.margins[certificate.worst] == pytest.approx(1.0 - 1.0 / (0.8 * 0.95), abs=3e-3)
    assert certificate.nearest == certificate.violations[0]
    assert certificate.violations[0].startswith(certificate.worst[: -len(" (+)")] + " reaches ")
    assert len(certificate.violations) == np.count_nonzero(certificate.usage > 1.0)


def test_a_motion_at_rest_uses_what_holding_still_needs(cobot: Robot) -> None:
    basis, home, limits = RestToRestFourier(5, 10.0), np.array(cobot.home), usable_limits(cobot)

    certificate = certify(limits, basis, home, np.zeros((6, basis.size)))

    assert certificate.feasible
    assert certificate.usage == pytest.approx(dense_usage(limits, basis, home, np.zeros((6, basis.size)), 2), abs=1e-12)


@pytest.mark.parametrize("scale", [1e6, 1e80, 1e300])
def test_absurd_motions_are_decided(cobot: Robot, scale: float) -> None:
    basis, home, limits = RestToRestFourier(5, 10.0), np.array(cobot.home), usable_limits(cobot)
    weights = scale * np.ones((6, basis.size))

    with np.errstate(over="ignore", invalid="ignore"):
        assert not certify(limits[:3], basis, home, weights).feasible
        assert not is_feasible(limits, basis, home, weights)


def test_weights_that_are_no_numbers_are_refused(cobot: Robot) -> None:
    basis, home = RestToRestFourier(5, 10.0), np.array(cobot.home)
    weights = np.zeros((6, basis.size))
    weights[3, 1] = np.nan

    with pytest.raises(ExcitationError, match=r"weights of joints \[3\] are not finite numbers"):
        certify(usable_limits(cobot), basis, home, weights)


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
