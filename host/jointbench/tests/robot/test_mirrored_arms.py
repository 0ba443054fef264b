"""The dual-arm robot: the same positions are mirrored poses, and mirrored motions take the same torques."""

import numpy as np

from jointbench.dynamics import base_parameters, forward_kinematics, inverse_dynamics
from jointbench.robot import load_robot
from jointbench.tests.robot.inertia import parameters_of

DUAL = load_robot("nursing_dual")
ARM = load_robot("nursing_arm")
MIRROR = np.diag([-1.0, 1.0, 1.0])  # of the base: left and right change places
FLIP = np.diag([1.0, 1.0, -1.0])  # of a link's frame, whose image it makes right-handed again


def motion(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations of one arm, anywhere within its limits."""
    chance = np.random.default_rng(seed)
    low, high = ARM.position_limits.T
    return chance.uniform(low, high, (20, 6)), chance.normal(size=(20, 6)), chance.normal(size=(20, 6))


def test_the_same_positions_are_mirrored_poses() -> None:
    q, _, _ = motion(1)
    rotation, origin = forward_kinematics(DUAL, np.hstack([q, q]))
    left, right = rotation[:, :6], rotation[:, 6:]

    np.testing.assert_allclose(origin[:, :6], origin[:, 6:] @ MIRROR, atol=1e-12)
    np.testing.assert_allclose(left, MIRROR @ right @ FLIP, atol=1e-12)
    assert np.abs(origin[:, :6] - origin[:, 6:]).max() > 0.5  # they are two arms


def test_mirrored_motions_take_the_torques_of_the_single_arm() -> None:
    q, dq, ddq = motion(2)
    q2, dq2, ddq2 = (np.hstack([values, values]) for values in (q, dq, ddq))
    both = inverse_dynamics(DUAL, q2, dq2, ddq2, parameters_of(DUAL))
    single = inverse_dynamics(ARM, q, dq, ddq, parameters_of(ARM))

    np.testing.assert_allclose(both[:, :6], single, atol=1e-11)
    np.testing.assert_allclose(both[:, 6:], single, atol=1e-11)
    assert np.abs(single).max() > 10.0


def test_both_arms_are_the_single_one_but_for_their_place() -> None:
    assert base_parameters(DUAL, drives=False).rank == 2 * base_parameters(ARM, drives=False).rank
    np.testing.assert_array_equal(DUAL.position_limits, np.vstack([ARM.position_limits, ARM.position_limits]))
    np.testing.assert_array_equal(DUAL.home, ARM.home * 2)
    assert [drive.torque_constant for drive in DUAL.drives] == [drive.torque_constant for drive in ARM.drives] * 2
    np.testing.assert_array_equal(DUAL.transmission_matrix, np.kron(np.eye(2), ARM.transmission_matrix))
