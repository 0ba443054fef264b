"""Pushes by the momentum that a model expects: found soon, named right, and none where there is none.

What boards and host are given so that an arm floats: tables, friction, holds, and what is refused.
"""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from jointbench.arrays import IDENTITY, Array
from jointbench.bench import Facts, default_settings, motor_settings
from jointbench.errors import FitError, ShapeError
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
from jointbench.identification.momentum_observer import (
    MomentumObserver,
    Observed,
    Thresholds,
    hand_force,
    observe_run,
    pushes,
    quiet_thresholds,
)
from jointbench.model import Frame, Wrench, drive_columns, external_torques, inverse_dynamics, load_robot
from jointbench.tests.identification.synthetic import PERIOD_S, arm, excitation, synthetic_run, truth
from jointwire import REGISTERS

ARM = dataclasses.replace(arm(3), frames=(Frame("tip", 2, IDENTITY, (-0.3, 0.05, 0.1)),))
NOISE_NM = 0.05
TICKS = 8000
"""Of a motion that begins in its first second's ramp and does not come to rest at its end."""


@lru_cache(maxsize=1)
def model() -> Model:
    return fit(synthetic_run(ARM, motion_seed=1, noise_seed=1), friction="coulomb_viscous")


@lru_cache(maxsize=8)
def motion(seed: int) -> tuple[Array, Array]:
    """Position and torque of a motion that nothing pushes."""
    q, dq, ddq = excitation(ARM, seed).evaluate(0.5 + PERIOD_S * np.arange(TICKS))
    full = truth(ARM)
    columns, _ = drive_columns(ARM, dq, ddq)
    return q, inverse_dynamics(ARM, q, dq, ddq, full[:30]) + (columns @ full[30:]).reshape(q.shape)


def observed(seed: int, extra: Array | float = 0.0, torque_delay: float = 0.0) -> tuple[MomentumObserver, Observed]:
    q, torque = motion(seed)
    noise = NOISE_NM * np.random.default_rng(seed).standard_normal(q.shape)
    observer = MomentumObserver(model(), PERIOD_S, torque_delay=torque_delay)
    return observer, observer.update(q, torque + extra + noise)


@lru_cache(maxsize=1)
def thresholds() -> Thresholds:
    return quiet_thresholds(*observed(2))


def test_a_lasting_push_is_what_is_observed_of_it() -> None:
    extra = np.zeros((TICKS, 3))
    extra[4000:, 1] = 3.0
    _, pushed = observed(3, extra)
    _, quiet = observed(3)
    # 100 ms after it began, ten time constants of the observer.
    np.testing.assert_allclose((pushed.torque - quiet.torque)[4100:], extra[4100:], atol=1e-3)


def test_portions_are_the_whole() -> None:
    q, torque = motion(4)
    whole = MomentumObserver(model(), PERIOD_S, torque_delay=0.0024).update(q[:600], torque[:600])
    observer = MomentumObserver(model(), PERIOD_S, torque_delay=0.0024)
    parts = [observer.update(q[k : k + size], torque[k : k + size]) for k, size in ((0, 1), (1, 250), (251, 349))]
    np.testing.assert_allclose(np.concatenate([part.torque for part in parts]), whole.torque, atol=1e-9)
    np.testing.assert_array_equal(np.concatenate([part.near_rest for part in parts]), whole.near_rest)


def test_positions_wait_for_torques_that_are_late() -> None:
    q, torque = motion(5)
    late = np.vstack([np.repeat(torque[:1], 20, axis=0), torque[:-20]])
    waiting = MomentumObserver(model(), PERIOD_S, torque_delay=0.020).update(q, late).torque[1000:]
    blind = MomentumObserver(model(), PERIOD_S).update(q, late).torque[1000:]
    assert np.std(waiting) < 0.2 * np.std(blind)


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_a_push_of_three_thresholds_is_found_in_20_ms_and_its_joint_named(joint: int) -> None:
    _, quiet = observed(6)
    begin = int(np.flatnonzero(~quiet.near_rest[2000:, joint])[0]) + 2000
    extra = np.zeros((TICKS, 3))
    extra[begin : begin + 300, joint] = -3.0 * thresholds().of(quiet)[begin, joint]
    (push,) = pushes(observed(6, extra)[1], thresholds(), ARM.joint_names)
    assert push.joint == ARM.joint_names[joint]
    assert 0.0 < push.start - begin * PERIOD_S <= 0.020
    assert push.end - begin * PERIOD_S == pytest.approx(0.3, abs=0.05)
    assert push.torque == pytest.approx(extra[begin, joint], rel=0.3)
    assert push.joint in str(push)


def test_nothing_is_no_push() -> None:
    """Half a minute: at 0.1 false alarms an hour one in a thousand such tests would see one."""
    for seed in (7, 8, 9, 10):
        assert not pushes(observed(seed)[1], thresholds(), ARM.joint_names)


def test_a_wrong_model_is_seen_as_a_push() -> None:
    """A payload of 2 kg at the third link that the model does not know."""
    q, _ = motion(11)
    weight = Wrench(ARM.joints[2].link.name, [0.0, 0.0, -2.0 * 9.81])
    assert pushes(observed(11, external_torques(ARM, q, weight))[1], thresholds(), ARM.joint_names)


def test_a_force_at_a_frame_is_within_its_error_bars() -> None:
    """Three joints tell all three directions of a force, as far as they move while it lasts."""
    q, _ = motion(12)
    force = np.array([10.0, -20.0, 15.0])
    extra = external_torques(ARM, q, Wrench("tip", force))
    extra[:3000] = 0.0
    observer, pushed = observed(12, extra)
    estimate = hand_force(observer, pushed, thresholds(), "tip")
    some = np.flatnonzero(~pushed.near_rest.any(axis=1) & (np.arange(TICKS) > 3200))[::100]
    z = (estimate.force[some] - force) / estimate.sigma[some]
    assert np.mean(np.abs(z) < 2.0) > 0.85
    assert np.mean(np.abs(z) < 0.2) < 0.9  # the bars are no wider than they must be


def test_recordings_are_observed_as_late_as_their_filters_make_them() -> None:
    run = synthetic_run(ARM, motion_seed=13, noise_seed=13, repeats=1)
    _, seen = observe_run(model(), run)
    moving = ~seen.near_rest.any(axis=1)
    spread = np.sqrt(np.mean(seen.torque[moving] ** 2, axis=0))
    # 10 mA of 10 N·m/A a sample, fifty of which a low-pass of 15 Hz averages, and what a filter is not a mere delay.
    assert run.samples.motor_torque is not None
    assert np.all(spread < 0.05 * run.samples.motor_torque.std(axis=0))


def test_what_it_cannot_take_is_named() -> None:
    with pytest.raises(FitError, match=r"period = 0\.01 s is too long for an observer of 100 Hz"):
        MomentumObserver(model(), 0.01)
    with pytest.raises(FitError, match=r"torque_delay = -0\.1 s must be 0 or more"):
        MomentumObserver(model(), 0.001, torque_delay=-0.1)
    observer = MomentumObserver(model(), PERIOD_S)
    with pytest.raises(ShapeError, match=r"both must be \(n, 3\)"):
        observer.update(np.zeros((5, 2)), np.zeros((5, 2)))
    with pytest.raises(ShapeError, match="leave out the samples that are missing"):
        observer.update(np.full((5, 3), np.nan), np.zeros((5, 3)))
    short = MomentumObserver(model(), PERIOD_S)
    with pytest.raises(FitError, match="thresholds need at least 5 s"):
        quiet_thresholds(short, short.update(*(part[:2000] for part in motion(2))))
    with pytest.raises(FitError, match="false_alarms_per_hour = 0 must be above 0"):
        quiet_thresholds(*observed(2), false_alarms_per_hour=0.0)


ROBOT = load_robot("cobot6:2")
POSE = np.array([0.3, -0.9])


@lru_cache(maxsize=1)
def floating_model() -> Model:
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
    np.testing.assert_allclose(holding_current(floating_model(), q), exact, atol=5e-3)


def test_tables_and_the_hosts_part_add_up_to_what_holds_the_arm_anywhere() -> None:
    tables, remaining = float_tables(floating_model(), facts(), POSE)
    for q in np.random.default_rng(4).uniform(-1.2, 1.2, (20, 2)):
        current = remaining(q)
        for k, table in enumerate(tables):
            assert table is not None
            counts = q[k] * ROBOT.drives[k].ratio * 4096 / (2.0 * np.pi)
            current[k] += 1e-3 * np.interp(counts, table.positions, table.currents_mA)
        np.testing.assert_allclose(current, holding_current(floating_model(), q[None])[0], atol=1e-9)
    # With the other joint as it was the board alone holds its joint, but for rounding and straight lines between rows.
    alone = remaining(np.array([POSE[0], -0.5]))
    assert abs(alone[1]) <= 2e-3


def test_tables_reach_beyond_the_limits_of_position_in_steps_that_boards_take() -> None:
    for own, table in zip(facts(), float_tables(floating_model(), facts(), POSE)[0], strict=True):
        assert table is not None
        steps = np.unique(np.diff(table.positions))
        assert len(steps) == 1
        assert steps[0] in 1 << np.arange(8, 21)
        assert table.positions[0] <= own.registers["limit.position_min"]
        assert table.positions[-1] > own.registers["limit.position_max"]
        assert np.abs(table.currents_mA).max() <= table.registers["limit.float"] <= own.registers["limit.current"]


def test_friction_is_that_of_the_true_arm_less_what_must_stay() -> None:
    coulomb, viscous = friction_line(floating_model(), POSE)
    true = truth(ROBOT)[-8:].reshape(2, 4)  # rotor_inertia, viscous, coulomb, offset of each joint
    names = [name.split(".")[1] for name in floating_model().base.full_names[-8:-4]]
    np.testing.assert_allclose(coulomb, true[:, names.index("coulomb")], rtol=0.02)
    np.testing.assert_allclose(viscous, true[:, names.index("viscous")], rtol=0.02)
    for k, table in enumerate(float_tables(floating_model(), facts(), POSE)[0]):
        assert table is not None
        ampere = 1.0 / ROBOT.drives[k].torque_per_current
        counts = ROBOT.drives[k].ratio * 4096 / (2.0 * np.pi) * 0.001
        assert table.registers["servo.friction"] == pytest.approx(1e3 * COULOMB * coulomb[k] * ampere, abs=0.5)
        damping = 1e-3 / 16 * table.registers["servo.velocity_feedforward"] * counts
        assert damping == pytest.approx(VISCOUS * viscous[k] * ampere, rel=0.02)


def test_a_joint_at_rest_is_held_by_more_than_a_model_that_is_five_per_cent_off_leaves() -> None:
    largest = largest_holding_current(floating_model())
    for k, table in enumerate(float_tables(floating_model(), facts(), POSE)[0]):
        assert table is not None
        assert 0.05 * largest[k] < table.hold_A
        assert table.hold_A >= HOLD_SHARE * 1e-3 * np.abs(table.currents_mA).max() * (1.0 - 1e-3)
        assert table.hold_range == pytest.approx(HOLD_RANGE * abs(ROBOT.drives[k].ratio))


def test_an_arm_with_more_motors_than_boards_of_joints_does_not_float() -> None:
    with pytest.raises(FitError, match=r"with 2 motors, the bench has 1 boards"):
        float_tables(floating_model(), facts()[:1], POSE)
