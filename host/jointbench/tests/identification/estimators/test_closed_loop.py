"""Simulated robots move as mechanics says they must."""

import dataclasses

import numpy as np
import pinocchio
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.closed_loop import Servo, SimulatedMotion, SimulatedPlant
from jointbench.model import Drive, Robot, base_parameters, drive_parameter_names, energy, load_robot
from jointbench.tests.identification.synthetic import arm
from jointbench.tests.model.test_inverse_dynamics import pinocchio_model

SECONDS = 0.5
A_FALL = 0.2
"""Seconds in which no joint falls by a whole radian."""


def full_parameters(robot: Robot, **drive: float) -> Array:
    """The robot's own links, and the same drive at each joint; what is not given is 0."""
    assert robot.standard_parameters is not None
    kinds = [name.split(".")[1] for name in drive_parameter_names(robot)]
    return np.concatenate([robot.standard_parameters, [drive.get(kind, 0.0) for kind in kinds]])


def plant(robot: Robot, **drive: float) -> SimulatedPlant:
    base = base_parameters(robot)
    return SimulatedPlant(robot, base, base.group(full_parameters(robot, **drive)))


def free(robot: Robot) -> Servo:
    """A servo that does nothing."""
    return Servo.second_order(np.zeros(robot.n_joints), 1.0)


def let_go(
    plant: SimulatedPlant, start: Array, step: float, torque: Array | None = None, seconds: float = SECONDS
) -> SimulatedMotion:
    """What happens under a constant torque, from rest."""
    n = round(seconds / step)
    rest = np.tile(start, (n, 1))
    forward = None if torque is None else np.tile(torque, (n, 1))
    return plant.follow(free(plant.robot), rest, 0.0 * rest, step, start=start, feedforward=forward)


def test_a_falling_arm_keeps_its_energy_to_second_order() -> None:
    robot = arm(3)
    assert robot.standard_parameters is not None
    start = np.array([0.1, -1.2, 0.3])
    drift: list[float] = []
    for step in (2e-3, 1e-3):
        motion = let_go(plant(robot), start, step, seconds=A_FALL)
        kinetic, potential = energy(robot, motion.q, motion.dq, robot.standard_parameters)
        total = kinetic + potential
        drift.append(float(np.abs(total - total[0]).max() / kinetic.max()))
    assert drift[1] < 1e-4
    # Half the step, a quarter of the error; some of it is of third order.
    assert drift[0] / drift[1] == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize("name", ["cobot6", "modular7"])
def test_it_falls_as_in_pinocchio(name: str) -> None:
    robot = load_robot(name)
    model = pinocchio_model(robot)
    model.armature[:] = 0.7  # rotor inertia, as is that of the drives here
    data = model.createData()
    start = np.linspace(-0.5, 0.4, robot.n_joints)
    torque = np.linspace(-3.0, 5.0, robot.n_joints)
    q, dq, step = start.copy(), np.zeros(robot.n_joints), 1e-3
    for _ in range(round(A_FALL / step) - 1):  # the classical method of fourth order

        def acceleration(q: Array, dq: Array) -> Array:
            return pinocchio.aba(model, data, q, dq, torque)

        k1 = acceleration(q, dq)
        k2 = acceleration(q + 0.5 * step * dq, dq + 0.5 * step * k1)
        k3 = acceleration(q + 0.5 * step * dq + 0.25 * step**2 * k1, dq + 0.5 * step * k2)
        k4 = acceleration(q + step * dq + 0.5 * step**2 * k2, dq + step * k3)
        q = q + step * dq + step**2 / 6.0 * (k1 + k2 + k3)
        dq = dq + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    motion = let_go(plant(robot, rotor_inertia=0.7), start, step, torque, A_FALL)
    # Second order against fourth: (w h)² of motion at some 5 rad/s.
    assert motion.q[-1] == pytest.approx(q, abs=1e-4)
    assert motion.dq[-1] == pytest.approx(dq, abs=1e-3)
    assert np.abs(q - start).max() > 0.1


def test_a_rubbing_joint_speeds_up_as_the_closed_form_says() -> None:
    robot, step = arm(1), 1e-3
    drive = {"rotor_inertia": 0.5, "viscous": 4.0, "coulomb": 6.0, "offset": 0.5}
    turning = plant(robot, **drive)
    inertia = float(turning.inertia(np.zeros((1, 1)))[0])
    torque = np.array([16.5])
    motion = let_go(turning, np.zeros(1), step, torque)
    time = step * np.arange(len(motion.q))
    final = (16.5 - 6.0 - 0.5) / 4.0
    expected = final * (1.0 - np.exp(-4.0 / inertia * time))
    # When in the first step it breaks loose is not told: what the torque does in a step.
    assert motion.dq[:, 0] == pytest.approx(expected, abs=16.5 / inertia * step)
    assert motion.dq[-1, 0] > 0.9 * final


def test_a_joint_sticks_until_its_torque_beats_friction() -> None:
    stuck = let_go(plant(arm(1), rotor_inertia=0.5, coulomb=6.0), np.zeros(1), 1e-3, np.array([5.9]))
    loose = let_go(plant(arm(1), rotor_inertia=0.5, coulomb=6.0), np.zeros(1), 1e-3, np.array([6.5]))
    # It creeps at a few times the speed up to which friction grows, here 1 mrad/s, and does not speed up.
    assert np.abs(stuck.dq).max() < 5e-3
    assert loose.dq[-1, 0] > 0.05


def test_a_servo_of_second_order_answers_as_one() -> None:
    robot, bandwidth, step = arm(1), 5.0, 1e-3
    turning = plant(robot, rotor_inertia=0.5)
    servo = Servo.second_order(turning.inertia(np.zeros((1, 1))), bandwidth)
    n = round(SECONDS / step)
    reference = np.full((n, 1), 0.2)
    motion = turning.follow(servo, reference, 0.0 * reference, step, start=np.zeros(1))
    w, time = 2.0 * np.pi * bandwidth, step * np.arange(n)
    # Torque is held for a step, which is a delay of half of it: w h / 2 = 1.6 % of the way.
    assert motion.q[:, 0] == pytest.approx(0.2 * (1.0 - (1.0 + w * time) * np.exp(-w * time)), abs=0.016 * 0.2)
    assert motion.q[-1, 0] == pytest.approx(0.2, rel=1e-3)


def test_the_servos_torque_has_integral_and_limit() -> None:
    robot, step = arm(1), 1e-3
    loaded = plant(robot, rotor_inertia=0.5, viscous=1.0, offset=3.0)
    plain = Servo.second_order(loaded.inertia(np.zeros((1, 1))), 5.0)
    held = dataclasses.replace(plain, integral=5.0 * plain.stiffness)
    weak = dataclasses.replace(held, limit=np.array([2.5]))
    still = np.zeros((3000, 1))

    def rest(servo: Servo) -> float:
        return float(loaded.follow(servo, still, still, step, start=np.zeros(1)).q[-1, 0])

    assert rest(plain) == pytest.approx(-3.0 / plain.stiffness[0], rel=1e-6)
    assert rest(held) == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(FitError, match="leaves its reference"):
        rest(weak)  # the load wins


def test_the_servos_torque_has_what_it_expects_of_the_planned_velocity() -> None:
    robot, step = arm(1), 1e-3
    rubbing = plant(robot, rotor_inertia=0.5, viscous=9.0, coulomb=6.0)
    plain = Servo.second_order(rubbing.inertia(np.zeros((1, 1))), 5.0)
    expecting = dataclasses.replace(
        plain, friction=np.array([6.0]), friction_band=np.array([0.01]), velocity_feedforward=np.array([9.0])
    )
    moving = 0.1 * step * np.arange(2000, dtype=np.float64)[:, None]
    speed = np.full((2000, 1), 0.1)
    lags = [
        float((moving - rubbing.follow(servo, moving, speed, step, start=np.zeros(1)).q)[-1, 0])
        for servo in (plain, expecting)
    ]
    assert lags[0] == pytest.approx((6.0 + 9.0 * 0.1) / plain.stiffness[0], rel=1e-3)
    assert lags[1] == pytest.approx(0.0, abs=1e-3 * lags[0])


def test_what_cannot_be_simulated_is_refused_with_the_reason() -> None:
    robot = arm(3)
    base = base_parameters(robot)
    passive = dataclasses.replace(robot, joints=(*robot.joints[:2], dataclasses.replace(robot.joints[2], passive=True)))
    with pytest.raises(FitError, match=r"joint j3 is passive.*\"planned\" or \"periods\""):
        plant(passive)
    undriven = dataclasses.replace(robot, drives=(*robot.drives[:2], Drive.none("j3")))
    with pytest.raises(FitError, match="nothing drives joint j3"):
        plant(undriven)
    floating = dataclasses.replace(robot, base_link=robot.joints[0].link)
    with pytest.raises(FitError, match="its base is free to move"):
        SimulatedPlant(floating, base, np.zeros(base.rank))
    negative = SimulatedPlant(robot, base, -base.group(full_parameters(robot, rotor_inertia=0.1)))
    with pytest.raises(FitError, match=r"joint j\d has the inertia -"):
        negative.inertia(np.zeros((1, 3)))
    with pytest.raises(FitError, match="mass matrix is not positive"):
        let_go(negative, np.zeros(3), 1e-3)
    with pytest.raises(FitError, match="leaves its reference by more than 1 rad"):
        let_go(plant(robot), np.array([0.1, -1.2, 0.3]), 1e-3, np.full(3, 1e3))
