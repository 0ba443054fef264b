"""What boards and host are given so that an arm floats: tables, friction, holds, and what is refused."""

from functools import lru_cache

import numpy as np
import pytest

from jointbench.bench import Facts, default_settings, motor_settings
from jointbench.errors import FitError
from jointbench.identification import Model, fit
from jointbench.identification.floating import (
    COULOMB,
    HOLD_RANGE,
    HOLD_SHARE,
    VISCOUS,
    float_tables,
    friction_line,
    holding_current,
    largest_holding_current,
)
from jointbench.model import inverse_dynamics, load_robot
from jointbench.tests.identification.synthetic import synthetic_run, truth
from jointwire import REGISTERS

ROBOT = load_robot("cobot6:2")
POSE = np.array([0.3, -0.9])


@lru_cache(maxsize=1)
def model() -> Model:
    run = synthetic_run(ROBOT, motion_seed=1, noise_seed=2)
    return fit(run, settings={"cutoff_Hz": 20.0, "delay": 0.0}, friction="coulomb_viscous")


@lru_cache(maxsize=1)
def facts() -> tuple[Facts, ...]:
    """Registers of boards that are configured for the robot."""
    motors = motor_settings(default_settings(ROBOT), ROBOT.drive_train)
    own: list[Facts] = []
    for motor, drive in zip(motors, ROBOT.drives, strict=True):
        raw = {register.name: register.default for register in REGISTERS}
        raw |= {"encoder.motor_counts": 4096, "drive.ratio": round(1000 * drive.ratio), "current.range": 20_000}
        own.append(Facts(raw | motor.registers("j", 1, Facts(raw))))
    return tuple(own)


def test_the_holding_current_is_gravity_of_the_true_arm() -> None:
    q = np.random.default_rng(3).uniform(-1.5, 1.5, (20, 2))
    zero = np.zeros_like(q)
    assert ROBOT.standard_parameters is not None
    torque = inverse_dynamics(ROBOT, q, zero, zero, ROBOT.standard_parameters)
    exact = torque / [drive.torque_per_current for drive in ROBOT.drives]
    # Encoder counts and noise of 10 mA leave 2 mA of the fit's 0.85 A; half a percent of it is allowed.
    np.testing.assert_allclose(holding_current(model(), q), exact, atol=5e-3)


def test_tables_and_the_hosts_part_add_up_to_what_holds_the_arm_anywhere() -> None:
    tables, remaining = float_tables(model(), facts(), POSE)
    for q in np.random.default_rng(4).uniform(-1.2, 1.2, (20, 2)):
        current = remaining(q)
        for k, table in enumerate(tables):
            assert table is not None
            counts = q[k] * ROBOT.drives[k].ratio * 4096 / (2.0 * np.pi)
            current[k] += 1e-3 * np.interp(counts, table.positions, table.currents_mA)
        np.testing.assert_allclose(current, holding_current(model(), q[None])[0], atol=1e-9)
    # With the other joint as it was the board alone holds its joint, but for rounding and straight lines between rows.
    alone = remaining(np.array([POSE[0], -0.5]))
    assert abs(alone[1]) <= 2e-3


def test_tables_reach_beyond_the_limits_of_position_in_steps_that_boards_take() -> None:
    for own, table in zip(facts(), float_tables(model(), facts(), POSE)[0], strict=True):
        assert table is not None
        steps = np.unique(np.diff(table.positions))
        assert len(steps) == 1
        assert steps[0] in 1 << np.arange(8, 21)
        assert table.positions[0] <= own.registers["limit.position_min"]
        assert table.positions[-1] > own.registers["limit.position_max"]
        assert np.abs(table.currents_mA).max() <= table.registers["limit.float"] <= own.registers["limit.current"]


def test_friction_is_that_of_the_true_arm_less_what_must_stay() -> None:
    coulomb, viscous = friction_line(model(), POSE)
    true = truth(ROBOT)[-8:].reshape(2, 4)  # rotor_inertia, viscous, coulomb, offset of each joint
    names = [name.split(".")[1] for name in model().base.full_names[-8:-4]]
    np.testing.assert_allclose(coulomb, true[:, names.index("coulomb")], rtol=0.02)
    np.testing.assert_allclose(viscous, true[:, names.index("viscous")], rtol=0.02)
    for k, table in enumerate(float_tables(model(), facts(), POSE)[0]):
        assert table is not None
        ampere = 1.0 / ROBOT.drives[k].torque_per_current
        counts = ROBOT.drives[k].ratio * 4096 / (2.0 * np.pi) * 0.001
        assert table.registers["servo.friction"] == pytest.approx(1e3 * COULOMB * coulomb[k] * ampere, abs=0.5)
        damping = 1e-3 / 16 * table.registers["servo.velocity_feedforward"] * counts
        assert damping == pytest.approx(VISCOUS * viscous[k] * ampere, rel=0.02)


def test_a_joint_at_rest_is_held_by_more_than_a_model_that_is_five_per_cent_off_leaves() -> None:
    largest = largest_holding_current(model())
    for k, table in enumerate(float_tables(model(), facts(), POSE)[0]):
        assert table is not None
        assert 0.05 * largest[k] < table.hold_A
        assert table.hold_A >= HOLD_SHARE * 1e-3 * np.abs(table.currents_mA).max() * (1.0 - 1e-3)
        assert table.hold_range == pytest.approx(HOLD_RANGE * abs(ROBOT.drives[k].ratio))


def test_an_arm_with_more_motors_than_boards_of_joints_does_not_float() -> None:
    with pytest.raises(FitError, match=r"with 2 motors, the bench has 1 boards"):
        float_tables(model(), facts()[:1], POSE)
