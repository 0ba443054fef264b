import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.drives import DriveSignals, drive_signals, fit_stiffness
from jointbench.tests.identification.drives.simulated_joints import signals
from jointbench.tests.identification.drives.simulated_run import ARM, LINK, recording

STIFFNESS = np.array([24000.0, 24000.0, 16000.0])
"""As data sheets of strain-wave gears of this class have it: what twist does to torque cannot tell so much."""
ENCODER_NOISE = 2.0 * np.pi / (4096 * 101) / np.sqrt(12.0)
ZERO = np.array([0.01, -0.02, 0.003])
CLEAN = signals(ARM, 1)


def twisted(noise: Array | float = 0.0, stiffness: Array = STIFFNESS) -> DriveSignals:
    assert CLEAN.gear_torque is not None
    return dataclasses.replace(CLEAN, twist=CLEAN.gear_torque.value / stiffness + ZERO + noise)


def test_exact_twist_gives_the_exact_stiffness():
    found = [gear.stiffness for gear in fit_stiffness(ARM, twisted()) if gear is not None]
    assert found == pytest.approx(STIFFNESS, rel=1e-9)


def test_reaches_the_cramer_rao_bound():
    assert CLEAN.gear_torque is not None
    rng = np.random.default_rng(5)
    runs = [fit_stiffness(ARM, twisted(ENCODER_NOISE * rng.standard_normal(CLEAN.q.shape))) for _ in range(60)]
    errors = np.array([[gear.flexibility for gear in run if gear is not None] for run in runs]) - 1.0 / STIFFNESS
    spread = np.array([CLEAN.gear_torque.value[used, j].std() for j, used in enumerate(CLEAN.used.T)])
    bound = ENCODER_NOISE / (spread * np.sqrt(CLEAN.used.sum(axis=0)))
    assert errors.std(axis=0) == pytest.approx(bound, rel=0.27)  # 60 draws: 9 %, three times
    stated = np.array([[gear.sigma for gear in run if gear is not None] for run in runs]).mean(axis=0)
    assert stated == pytest.approx(bound, rel=0.1)


def test_from_a_run_whose_boards_count_both_sides():
    run = recording(1)
    assert run.samples.link_position is not None
    assert run.samples.joint_torque is not None
    step = 2.0 * np.pi / (4096 * 101)
    motor = run.samples.link_position + run.samples.joint_torque / STIFFNESS
    counted = dataclasses.replace(run.samples, motor_position=step * np.round(motor / step))
    found = fit_stiffness(ARM, drive_signals(dataclasses.replace(run, samples=counted), ARM, LINK))
    for gear, truth in zip(found, STIFFNESS, strict=True):
        assert gear is not None
        assert gear.verdict.word == "identified"
        # The boards' filter was not taken off the torque that made this twist: 3 ms of a 10 s motion.
        assert gear.stiffness == pytest.approx(truth, rel=0.02)


def test_what_cannot_be_told_is_refused():
    first, *_ = fit_stiffness(ARM, twisted(stiffness=-STIFFNESS))
    assert first is not None
    assert first.stiffness is None
    assert "not above zero" in first.verdict.reason
    with pytest.raises(FitError, match="without encoders on both sides"):
        fit_stiffness(ARM, CLEAN)
    with pytest.raises(FitError, match="without torque sensors"):
        fit_stiffness(ARM, dataclasses.replace(twisted(), gear_torque=None))
    with pytest.raises(FitError, match="'j1' has 0 rows"):
        fit_stiffness(ARM, dataclasses.replace(twisted(), used=np.zeros_like(CLEAN.used)))
