"""Ratio and stiffness of a gear by one wide motion: what a simulated gear has is found within its standard error."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.identification.commission_readings import read_gear
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run

STIFFNESS, RATIO = 24000.0, 101.3
COUNT = 2.0 * np.pi / 524288  # of a link encoder


@pytest.fixture(scope="module")
def wide() -> Run:
    """Motors' positions are by the file's ratio, 101; the gears have another, and twist by the torque behind them."""
    run = synthetic_run(arm(2), motion_seed=1, noise_seed=1, repeats=1)
    samples, rng = run.samples, np.random.default_rng(0)
    assert samples.motor_torque is not None
    torque = samples.motor_torque
    link = samples.motor_position * 101.0 / RATIO - torque / STIFFNESS
    link = COUNT * np.round(link / COUNT)
    return replace(
        run, samples=replace(samples, link_position=link, joint_torque=torque + 0.05 * rng.standard_normal(link.shape))
    )


def test_ratio_and_stiffness_are_found_where_the_torque_is_sensed(wide: Run) -> None:
    for joint in ("j1", "j2"):
        gear = read_gear(wide, joint)
        assert gear is not None
        (ratio, ratio_sigma), (stiffness, stiffness_sigma) = gear
        # 3.5 σ: noise alone gets there once in 2000 draws, and these are four.
        assert abs(ratio - RATIO) < 3.5 * ratio_sigma
        assert abs(stiffness - STIFFNESS) < 3.5 * stiffness_sigma
        assert ratio_sigma < 1e-4 * RATIO  # a wave of some degrees leaves 2e-3
        assert stiffness_sigma < 0.03 * STIFFNESS


def test_without_sensors_or_motion_nothing_is_said(wide: Run) -> None:
    assert read_gear(replace(wide, samples=replace(wide.samples, joint_torque=None)), "j1") is None
    assert read_gear(replace(wide, samples=replace(wide.samples, link_position=None)), "j1") is None
    assert wide.samples.link_position is not None
    still = np.zeros_like(wide.samples.link_position)
    assert read_gear(replace(wide, samples=replace(wide.samples, link_position=still)), "j1") is None
