"""Supply and windings: their closed forms, and what a board reads of them."""

import dataclasses
import math

import numpy as np
import pytest

from hil_tests.pendulum import COBOT6_PLANT, RATIO, TORQUE_CONSTANT, drive_open, pendulum_robot, pendulum_truth, seconds
from hil_tests.test_plant_sensors import still
from hil_tests.virtual_bench.drive import Windings
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_file import PlantFile, PowerTruth, read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from jointbench.robot import load_robot
from jointwire import JOINT_BOARD_CHANNELS

COBOT6 = load_robot("cobot6")
TRUTH = read_plant_file(COBOT6_PLANT, COBOT6)
POWER = PowerTruth(
    supply=48.0,
    source_resistance=0.1,
    winding_resistance=0.5,
    winding_thermal_resistance=2.0,
    winding_time_constant=60.0,
    ambient=22.0,
)


def pendulum(**joint: float) -> tuple[Plant, PlantFile]:
    truth = dataclasses.replace(pendulum_truth(joint=joint), power=POWER)
    return Plant(pendulum_robot(gravity=False), truth, "ideal"), truth


def test_windings_warm_up_exponentially_to_their_steady_temperature() -> None:
    windings = Windings(POWER, 2)
    loss = np.array([10.0, 0.0])
    currents = np.tile(np.sqrt(loss / POWER.winding_resistance), (4, 1))
    for _ in range(seconds(60.0)):
        assert windings.advance(currents) == pytest.approx(10.0, rel=1e-12)
    # After one time constant 1 - 1/e of 20 K; the recurrence is exact but for rounding in 60 000 steps.
    np.testing.assert_allclose(windings.temperature, [22.0 + 20.0 * (1.0 - math.exp(-1.0)), 22.0], rtol=1e-10)


def test_a_current_heats_by_its_square() -> None:
    plant, _ = pendulum(viscous=5.0)
    motions = drive_open(plant, np.full((seconds(0.5), 1), -3.0))
    rise = motions[-1].temperature[0] - POWER.ambient
    loss = POWER.winding_resistance * 3.0**2
    expected = POWER.winding_thermal_resistance * loss * (1.0 - math.exp(-0.5 / POWER.winding_time_constant))
    # The current reaches its command with a lag of 0.3 ms: a loss of 1.5 lags (twice one, less half of one) of 500 ms.
    assert rise == pytest.approx(expected, rel=1.5 * 0.3 / 500 + 1e-4)
    assert rise < expected


def test_a_running_motor_draws_its_losses_and_its_work_from_the_supply() -> None:
    viscous, current = 4.0, 1.0
    plant, _ = pendulum(viscous=viscous)
    motion = drive_open(plant, np.full((seconds(3.0), 1), current))[-1]
    speed = RATIO * TORQUE_CONSTANT * current / viscous
    power = POWER.winding_resistance * current**2 + viscous * speed**2
    # At a steady speed all work goes into friction.
    sag = POWER.source_resistance * power / POWER.supply
    assert POWER.supply - motion.bus_voltage == pytest.approx(sag, rel=1e-4)


def test_a_braking_motor_gives_back() -> None:
    plant, _ = pendulum(viscous=4.0)
    drive_open(plant, np.full((seconds(1.0), 1), 1.0))
    braking = drive_open(plant, np.full((3, 1), -1.0))[-1]
    assert braking.bus_voltage > POWER.supply


def test_a_standing_robot_draws_nothing_and_has_the_temperature_of_the_air() -> None:
    motion = Plant(COBOT6, TRUTH, "harmonic").standing()
    assert motion.bus_voltage == TRUTH.power.supply
    np.testing.assert_array_equal(motion.temperature, TRUTH.power.ambient)


def test_facts_read_voltage_and_temperature() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=2)
    facts = sensors.facts(0)
    readings = [sensors.read(still(temperature=61.25, bus_voltage=47.3)) for _ in range(4000)]
    volts = np.array([reading.bus_voltage for reading in readings]) * facts["voltage.scale"] * 1e-6
    kelvin = np.array([reading.temperature for reading in readings]) - facts["temperature.zero"]
    kelvin = kelvin * facts["temperature.scale"] * 1e-6
    # Five standard errors of 4000 readings.
    np.testing.assert_allclose(volts.mean(axis=0), 47.3, rtol=0, atol=5 * TRUTH.sensors.bus_voltage_noise / 63)
    np.testing.assert_allclose(
        kelvin.mean(axis=0), 61.25 + 273.15, rtol=0, atol=5 * TRUTH.sensors.temperature_noise / 63
    )
    # The rms of 4000 readings is known to 1.1 %; each board has noise of its own.
    np.testing.assert_allclose(volts.std(axis=0), TRUTH.sensors.bus_voltage_noise, rtol=0.06)
    np.testing.assert_allclose(kelvin.std(axis=0), TRUTH.sensors.temperature_noise, rtol=0.06)
    assert abs(np.corrcoef(volts[:, 0], volts[:, 1])[0, 1]) < 5 / 63
    assert facts["board.channels"] == JOINT_BOARD_CHANNELS


@pytest.mark.parametrize("supply", [12.0, 24.0, 48.0, 80.0])
def test_a_supply_a_quarter_higher_still_fits_sixteen_bits(supply: float) -> None:
    truth = dataclasses.replace(TRUTH, power=dataclasses.replace(TRUTH.power, supply=supply))
    sensors = Sensors(COBOT6, truth, "harmonic", seed=2)
    counts = sensors.read(still(bus_voltage=1.25 * supply)).bus_voltage
    assert counts.max() < 2**15 + 5 * truth.sensors.bus_voltage_noise / (sensors.facts(0)["voltage.scale"] * 1e-6)
    assert sensors.facts(0)["voltage.scale"] * 1e-6 < 1.25 * supply / (2**15 - 1) + 1e-3  # in whole millivolts


def test_one_tick_of_the_plant_is_one_of_the_windings() -> None:
    plant, _ = pendulum()
    before = plant.standing().temperature[0]
    (motion,) = drive_open(plant, np.full((1, 1), 5.0))
    loss = POWER.winding_resistance * float((motion.current**2).mean())
    part = 1.0 - math.exp(-TICK / POWER.winding_time_constant)
    assert motion.temperature[0] - before == pytest.approx(part * POWER.winding_thermal_resistance * loss, rel=1e-9)
