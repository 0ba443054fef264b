"""Motors that are given a voltage: their currents and speeds in closed form, and drives with a current loop beside."""

import dataclasses
import math

import numpy as np
import pytest

from hil_tests.pendulum import RATIO, TORQUE_CONSTANT, pendulum_robot, pendulum_truth, seconds
from hil_tests.virtual_bench.drive import Bridges, Drives
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion, Plant
from hil_tests.virtual_bench.plant_file import PowerTruth

ON = np.array([True])
POWER = PowerTruth(
    supply=48.0, source_resistance=0.0, winding_resistance=0.5, winding_thermal_resistance=2.0,
    winding_time_constant=60.0, ambient=22.0, winding_inductance=1e-3,
)  # fmt: skip
LAG = 1e-3 / 0.5
INSTANTS = TICK * (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES


def driven(duty: float, ticks: int, **joint: float) -> tuple[Plant, list[Motion]]:
    """A pendulum without gravity after ticks at one duty."""
    truth = dataclasses.replace(pendulum_truth(joint=joint), power=POWER)
    plant = Plant(pendulum_robot(gravity=False), truth, "ideal", ON)
    return plant, [plant.advance(ON, np.array([duty])) for _ in range(ticks)]


def test_the_current_of_a_motor_that_cannot_turn_rises_exactly_with_its_winding() -> None:
    _, motions = driven(0.01, 5, rotor_inertia=1e6)
    currents = np.concatenate([motion.current[:, 0] for motion in motions])
    times = np.concatenate([k * TICK + INSTANTS for k in range(5)])
    np.testing.assert_allclose(currents, 0.48 / 0.5 * -np.expm1(-times / LAG), rtol=1e-9)


def test_a_free_motor_runs_at_the_speed_whose_back_emf_is_its_voltage() -> None:
    plant, motions = driven(0.05, seconds(1.0))
    speed = (plant.motor_position[0] - motions[-101].motor_position[0]) / (100 * TICK)
    assert speed == pytest.approx(0.05 * 48.0 / (RATIO * TORQUE_CONSTANT), rel=1e-3)
    assert abs(motions[-1].current).max() < 0.05


def test_a_motor_starts_as_winding_and_inertia_let_it() -> None:
    """J dw/dt = k i, L di/dt = u - R i - k w: the plant holds w for a tick, so it is late by half of one."""
    inertia, back_emf, voltage = 50.0, RATIO * TORQUE_CONSTANT, 2.4
    plant, motions = driven(0.05, seconds(0.5), rotor_inertia=(inertia - arm_inertia()) / RATIO**2)
    # Far slower than the winding: w goes to u / k with the time constant J R / k².
    constant = inertia * POWER.winding_resistance / back_emf**2
    velocity = (plant.motor_position[0] - motions[-2].motor_position[0]) / TICK
    expected = voltage / back_emf * -math.expm1(-(0.5 - LAG - TICK / 2) / constant)
    assert velocity == pytest.approx(expected, rel=5e-3)


def arm_inertia() -> float:
    """What turns besides the rotor."""
    robot = pendulum_robot()
    link = robot.joints[0].link
    assert link.mass is not None
    assert link.center_of_mass is not None
    assert link.inertia_about_center_of_mass is not None
    return link.inertia_about_center_of_mass[1][1] + link.mass * link.center_of_mass[0] ** 2


def test_a_drive_with_a_current_loop_beside_a_bridge_does_what_it_did_alone() -> None:
    back_emf, limit = np.array([10.0, 10.0]), np.array([8.0, 8.0])
    bridges = Bridges(np.array([False, True]), back_emf, POWER)
    both = Drives(back_emf, limit, np.ones(2), bridges.lags(3e-4), 300.0, bridges.by_voltage)
    alone = Drives(back_emf[:1], limit[:1], np.ones(1), 3e-4, 300.0)
    position = np.zeros(2)
    for tick, command in enumerate((3.0, 20.0, -1.0)):
        steady = bridges.steady_currents(np.array([command, 0.5]), 48.0, np.zeros(2))
        both.begin_tick(tick * TICK, np.array([True, True]), steady, position)
        alone.begin_tick(tick * TICK, ON, np.array([command]), position[:1])
        times = tick * TICK + INSTANTS
        np.testing.assert_allclose(both.currents_at(times)[:, :1], alone.currents_at(times), rtol=1e-14)
        for time in times:
            assert both.torque_at(time)[0] == pytest.approx(alone.torque_at(time)[0], rel=1e-14)
        mean, mean_alone = both.mean_torque(times[0], 4e-4), alone.mean_torque(times[0], 4e-4)
        assert mean[0] == pytest.approx(mean_alone[0], rel=1e-14)
    # The bridge has no limit of its own: 48 A it would be, with a lag of 2 ms after 3 ms.
    assert both.currents_at(np.array([3 * TICK]))[0, 1] == pytest.approx(-48.0 * math.expm1(-3 * TICK / LAG))


def test_a_bridge_that_is_not_enabled_gives_no_current() -> None:
    plant, _ = driven(0.05, 20)
    motion = plant.advance(np.array([False]), np.array([0.05]))
    assert not motion.current.any()
