from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation import RampedFourier, RestToRestFourier
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.limits.certificate import RESOLUTION, certify, is_feasible, motion_at
from jointbench.excitation.limits.motion_limits import JointLimit, Limit, joint_limits
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.model import Robot
from jointbench.tests.excitation.random_robots import random_family, random_tree, random_weights

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
