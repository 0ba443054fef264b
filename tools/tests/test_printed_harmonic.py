"""The paper's method of system E, against cases that are computed by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.drives import DriveSignals, GearTorque
from jointbench.tests.identification.drives.simulated_joints import arm, link_torque, motion
from tools.demo import printed_harmonic
from tools.demo.printed_harmonic import PrintedModel, columns, fit_printed

NO_TWIST = np.zeros((4, 1))
GEAR = GearTorque(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[2.0], [0.0], [-2.0], [0.0]]), np.ones((4, 1)))
SPEED = np.array([[1.0], [-1.0], [1.0], [2.0]])
MEASURED = np.array([[2.0], [2.0], [4.0], [6.0]])
SIMPLIFIED = np.array([[2.0], [3.0], [3.0], [5.0]])


def signals_of(motor: Array) -> DriveSignals:
    """Four samples of one joint, all of them used, one of them slow."""
    return DriveSignals(np.zeros((4, 1)), SPEED, NO_TWIST, motor, np.ones((4, 1), dtype=bool), 0.01, GEAR)


def model_of(a: list[float]) -> PrintedModel:
    """The paper's model whose linear stages are known: links give GEAR, the simplified model SIMPLIFIED."""
    links: Any = SimpleNamespace(predict=lambda *_: GEAR.value)
    simplified: Any = SimpleNamespace(predict=lambda *_: SIMPLIFIED)
    return PrintedModel(links, simplified, np.array(a)[:, None])


def test_columns_are_those_of_equation_19() -> None:
    """With a3 = 2, a4 = 3 the last one is 2 dτr/dt + 3 d²τr/dt²: 7, 3, -1, 3; the first is signed."""
    table = columns(signals_of(-MEASURED), GEAR, -MEASURED, np.array([[0.0], [0.0], [2.0], [3.0], [0.0]]))
    assert table[:, 0].tolist() == [[-2, 1, 1, 0, 7], [-2, -1, -1, 0, 3], [-4, 1, 1, 0, -1], [-6, 1, 2, 0, 3]]


def test_on_the_excitation_the_measured_torque_stands_in_equation_20() -> None:
    """Δτ = τm / 2 + sgn / 4 + q̇ / 10 = 1.35, 0.65, 2.35, 3.45; τr + Δτ is off τm by .35, .65, 1.35, 1.45."""
    simplified, improved = model_of([0.5, 0.25, 0.1, 0.0, 0.0]).rms(signals_of(MEASURED), measured=True)
    assert improved.all[0] == pytest.approx(np.sqrt(4.47 / 4.0), rel=1e-12)
    assert simplified.all[0] == pytest.approx(np.sqrt(3.0 / 4.0), rel=1e-12)


def test_on_new_motion_the_simplified_models_torque_stands_in_equation_24() -> None:
    """Δτ = 1.35, 1.15, 1.85, 2.95 by τ = 2, 3, 3, 5; τr + Δτ is off τm by .35, 1.15, .85, .95."""
    _, improved = model_of([0.5, 0.25, 0.1, 0.0, 0.0]).rms(signals_of(MEASURED), measured=False)
    assert improved.all[0] == pytest.approx(np.sqrt(3.07 / 4.0), rel=1e-12)


def made_up(a: Array) -> tuple[Any, DriveSignals]:
    """A run of two joints and its signals; τm solves τm - τr = a1 τm + a2 sgn + a3 q̇ + a4 q̈ + a5 (…) exactly."""
    robot = arm(2)
    q, dq, ddq, step = motion(robot, seed=2, n=1000)
    gear = GearTorque.sampled(link_torque(robot, q, dq, ddq), step)
    twist = a[2] * gear.rate + a[3] * gear.acceleration
    motor = (gear.value + a[1] * np.sign(dq) + a[2] * dq + a[3] * ddq + a[4] * twist) / (1.0 - a[0])
    used = np.ones_like(q, dtype=bool)
    return SimpleNamespace(robot=robot), DriveSignals(q, dq, ddq, motor, used, step, gear)


TRUE = np.array([[0.4, 0.8], [1.6, 1.1], [2.9, 7.9], [0.5, 0.48], [0.0, 0.0]])


def test_plain_least_squares_finds_the_numbers_that_made_the_torque() -> None:
    """All rows, rest too: a weight or a threshold would leave them the same, a lost row of signs would not."""
    run, signals = made_up(TRUE)
    np.testing.assert_allclose(fit_printed(run, signals).a, TRUE, rtol=0, atol=1e-8)


def test_the_fit_is_that_of_the_normal_equations() -> None:
    """Where nothing fits: (AᵀA) a = Aᵀ Δτ of the first joint, all rows alike."""
    run, signals = made_up(TRUE)
    noisy = signals.motor_torque + np.random.default_rng(1).standard_normal(signals.motor_torque.shape)
    signals = DriveSignals(
        signals.q, signals.dq, signals.ddq, noisy, signals.used, signals.sample_period, signals.gear_torque
    )
    assert signals.gear_torque is not None
    found = fit_printed(run, signals).a[:, 0]
    table = np.stack([noisy, np.sign(signals.dq), signals.dq, signals.ddq], axis=2)[:, 0]
    missing = (noisy - signals.gear_torque.value)[:, 0]
    first = np.linalg.solve(table.T @ table, table.T @ missing)
    twist = first[2] * signals.gear_torque.rate + first[3] * signals.gear_torque.acceleration
    table = np.column_stack([table, twist[:, 0]])
    scale = np.linalg.norm(table, axis=0)
    expected = np.linalg.solve((table / scale).T @ (table / scale), (table / scale).T @ missing) / scale
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("broken", ["size", "sign", "dropped"])
def test_another_column_than_the_printed_one_is_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = printed_harmonic.columns

    def wrong(signals: DriveSignals, gear: GearTorque, motor_torque: Array, a: Array) -> Array:
        table = right(signals, gear, motor_torque, a)
        if broken == "size":
            table[:, :, 0] = np.abs(table[:, :, 0]) * np.sign(signals.dq)
        elif broken == "sign":
            table[:, :, 1] = np.abs(table[:, :, 1])
        else:
            table[:, :, 2] = 0.0
        return table

    run, signals = made_up(TRUE)
    monkeypatch.setattr(printed_harmonic, "columns", wrong)
    assert np.abs(fit_printed(run, signals).a - TRUE).max() > 0.1
