"""Friction of a real arm with torque sensors: told in one motion, it holds in another."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.friction import FrictionData, compare_laws
from jointbench.identification.judgement import POOR_RELATIVE_ERROR
from jointbench.signals import LowPass, moving_mask, rest_threshold

GEN3 = Path(__file__).resolve().parents[6] / "shared" / "data" / "kinova_gen3"
PERIOD_S = 0.001


@cache
def friction_of(name: str) -> list[FrictionData]:
    """Motor torque from current less the sensor's torque, of each joint where it moves."""
    if not GEN3.is_dir():
        reason = "the public recording of a Kinova Gen3 is not in ../shared/data/kinova_gen3"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    path = GEN3 / name
    names = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    low_pass = LowPass(20.0, PERIOD_S)

    def channel(quantity: str) -> Array:
        return low_pass.apply(table[:, [names.index(f"{quantity}{joint}") for joint in range(1, 8)]])

    velocity, motor, sensor = channel("Velocity"), channel("TorqueCur"), channel("TorqueSm")
    acceleration = np.asarray(np.gradient(velocity, PERIOD_S, axis=0))
    rows = slice(low_pass.settling, -low_pass.settling, low_pass.stride)
    moves = moving_mask(velocity, rest_threshold(velocity))[rows]
    return [
        FrictionData(
            velocity[rows, j][moves[:, j]], (motor - sensor)[rows, j][moves[:, j]],
            load=sensor[rows, j][moves[:, j]], acceleration=acceleration[rows, j][moves[:, j]], in_time=True,
        )
        for j in range(7)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "joint", [pytest.param(joint, marks=() if joint in (2, 6) else pytest.mark.slow) for joint in range(1, 8)]
)  # a large joint and a small one quickly
def test_friction_of_one_motion_is_that_of_another(joint: int):
    here, there = (friction_of(f"opti_traj_testing{k}.csv")[joint - 1] for k in (1, 2))
    fit = compare_laws(here).best_fit
    error = fit.torque(there) - there.torque

    assert fit.verdict.word != "refused"
    # What a verdict calls unexplained; without friction, all of it would be.
    assert np.sqrt(np.mean(error**2) / np.mean(there.torque**2)) < POOR_RELATIVE_ERROR
    words = {verdict.name: verdict.word for verdict in fit.parameter_verdicts}
    assert words["coulomb"] == "identified"
