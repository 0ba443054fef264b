"""Newton-Euler, Kane and Lagrange: three ways to the same torques, and what each form promises by itself."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import energy, equations_of_motion, inverse_dynamics, kane_dynamics
from jointbench.robot import Robot
from jointbench.robot.robot import MOST_JOINTS
from jointbench.tests.dynamics.test_inverse_dynamics import pinocchio_model
from jointbench.tests.dynamics.test_random_trees import kinds_of
from jointbench.tests.robot.inertia import parameters_of

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

AGREEMENT = 1e-10  # relative to the largest torque; rounding alone leaves 1e-14


@pytest.mark.parametrize("trees", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_three_forms_agree_on_random_trees(trees: int, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    rng = np.random.default_rng(0)
    for seed in range(trees):
        robot = random_robot(kinds_of(rng, MOST_JOINTS if seed % 100 == 0 else 8), seed, tree=seed % 2 == 1)
        q, dq, ddq = random_motion(robot, 3, seed)
        parameters = parameters_of(robot)
        torques = inverse_dynamics(robot, q, dq, ddq, parameters)
        by_kane = kane_dynamics(robot, q, dq, ddq, parameters)
        by_lagrange = equations_of_motion(robot, q, dq, parameters).torques(dq, ddq)
        limit = AGREEMENT * np.abs(torques).max()
        np.testing.assert_allclose(by_kane, torques, rtol=0, atol=limit, err_msg=f"Kane, tree {seed}")
        np.testing.assert_allclose(by_lagrange, torques, rtol=0, atol=limit, err_msg=f"Lagrange, tree {seed}")


@pytest.mark.parametrize("kinds", ["R", "PR", "RRRRRR", "RPRPRR"])
def test_matrices_are_pinocchios(kinds: str, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot(kinds, 5, tree=True)
    q, dq, _ = random_motion(robot, 4, 5)
    equations = equations_of_motion(robot, q, dq, parameters_of(robot))
    model = pinocchio_model(robot)
    data = model.createData()
    for k in range(len(q)):
        mass = pinocchio.crba(model, data, q[k])
        upper = np.triu(mass) + np.triu(mass, 1).T
        np.testing.assert_allclose(equations.mass_matrix[k], upper, rtol=0, atol=1e-12 * np.abs(upper).max())
        weight = pinocchio.computeGeneralizedGravity(model, data, q[k])
        np.testing.assert_allclose(equations.gravity_torques[k], weight, rtol=0, atol=1e-11 * np.abs(weight).max())


def test_mass_matrix_is_positive_and_its_rate_less_twice_coriolis_is_skew(
    random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    robot = random_robot("RRPRRR", 2, tree=True)
    q, dq, _ = random_motion(robot, 6, 2)
    parameters, step = parameters_of(robot), 1e-5
    here = equations_of_motion(robot, q, dq, parameters)
    assert np.linalg.eigvalsh(here.mass_matrix).min() > 0
    ahead, behind = (equations_of_motion(robot, q + h * dq, dq, parameters).mass_matrix for h in (step, -step))
    skew = (ahead - behind) / (2 * step) - 2 * here.coriolis_matrix
    # The difference quotient is off by step², and by rounding over step: 1e-10 of numbers of order 100.
    np.testing.assert_allclose(skew, -skew.transpose(0, 2, 1), atol=1e-6)


def test_kinetic_energy_is_that_of_the_mass_matrix(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("RPRRR", 4, tree=True)
    q, dq, _ = random_motion(robot, 5, 4)
    kinetic, _ = energy(robot, q, dq, parameters_of(robot))
    mass = equations_of_motion(robot, q, dq, parameters_of(robot)).mass_matrix
    np.testing.assert_allclose(0.5 * np.einsum("ki,kij,kj->k", dq, mass, dq), kinetic, rtol=1e-12)


def test_energy_balance_along_a_simulated_motion(random_robot: RandomRobot) -> None:
    """Power that torques put in is what kinetic and potential energy gain: Simpson's rule over RK4 steps of 1 ms."""
    robot = random_robot("RRPR", 7)
    parameters, step, steps = parameters_of(robot), 1e-3, 200
    rng = np.random.default_rng(7)
    amplitude = rng.uniform(-5.0, 5.0, robot.n_joints)

    def torque(time: float) -> Array:
        return amplitude * np.cos(3.0 * time)

    def rate(time: float, state: Array) -> Array:
        q, dq = state[None, : robot.n_joints], state[None, robot.n_joints :]
        equations = equations_of_motion(robot, q, dq, parameters)
        against = equations.coriolis_matrix[0] @ dq[0] + equations.gravity_torques[0]
        ddq = np.linalg.solve(equations.mass_matrix[0], torque(time) - against)
        return np.concatenate([dq[0], ddq])

    states = [np.concatenate([rng.uniform(-1.0, 1.0, robot.n_joints), np.zeros(robot.n_joints)])]
    for k in range(steps):
        time, state = k * step, states[-1]
        k1 = rate(time, state)
        k2 = rate(time + step / 2, state + step / 2 * k1)
        k3 = rate(time + step / 2, state + step / 2 * k2)
        k4 = rate(time + step, state + step * k3)
        states.append(state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    q, dq = np.array(states)[:, : robot.n_joints], np.array(states)[:, robot.n_joints :]
    power = np.array([torque(k * step) for k in range(steps + 1)])
    power = np.einsum("kj,kj->k", power, dq)
    work = step / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    kinetic, potential = energy(robot, q, dq, parameters)
    gained = (kinetic + potential)[-1] - (kinetic + potential)[0]
    # Both rules err by step to the fourth, some 1e-10 of joules here; 1e-6 is far above, and far below any wrong term.
    assert work == pytest.approx(gained, abs=1e-6 * np.abs(potential).max())
    assert abs(work) > 0.1
