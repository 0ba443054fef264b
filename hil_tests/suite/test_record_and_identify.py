"""A recorded motion, kept and readable, and what it says of a joint that is known."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hil_tests.link_helpers import record, small_wave
from jointbench.bench import Bench
from jointbench.identification import FitSettings, fit
from jointbench.recording import examine
from jointbench.testing import functional, needs, realtime

# What a board with "sim_joint" in its config.json and no values there computes with, at the motor: its torque constant
# [N·m/A], and the gains of firmware/jointboard/sim_joint.py, which are whole numbers.
TORQUE_CONSTANT, PUSH, DRAG, FRICTION = 0.1, 684, 66, 8545
WAY, PERIOD, REPEATS = 0.4, 2.048, 4
SHORT_WAY, SHORT_PERIOD = 0.03, 0.512  # no steeper than the usual small wave
# Its current moves the joint in the tick after the one in which an ADC's samples would have been taken on average.
DELAY_TICKS = -0.5
TURNING = 0.1  # [rad/s], below which friction's sign changes within a tick, and by less than a count


@functional
@needs("motor", "current")
def test_a_recording_says_what_was_played_and_by_whom(bench: Bench, test_folder: Path) -> None:
    run = record(bench, small_wave(bench, SHORT_WAY, SHORT_PERIOD), test_folder / "run", repeats=2)
    assert run.repeats == 2
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    assert [board["uid"] for board in run.provenance["board"]] == [each.uid for each in bench.identities]
    assert run.samples.motor_current is not None
    assert np.ptp(run.samples.motor_current[run.samples.valid.all(axis=1)], axis=0).min() > 0.0
    findings = examine(test_folder / "run").findings
    assert [finding for finding in findings if not finding.ok and finding.name != "clocks"] == []  # test_clock's matter


@realtime
@needs("model_in_firmware", "motor", "current")
def test_the_joint_in_the_firmware_is_identified(
    bench: Bench, test_folder: Path, measured: Callable[..., None]
) -> None:
    """Inertia and friction within their own error bars, from the board's samples alone."""
    robot = bench.robot
    run = record(bench, small_wave(bench, WAY, PERIOD), test_folder / "run", REPEATS)
    settings = FitSettings(delay=DELAY_TICKS * bench.facts[0].tick_period, velocity_threshold=(TURNING,))
    model = fit(run, robot, settings=settings)
    truth = known_parameters(bench)
    found = {name: model.parameters[model.names.index(name)] for name in truth}
    off = {name: abs(found[name] - truth[name]) / model.sigma[model.names.index(name)] for name in truth}
    inertia, *friction = truth
    measured("identify.inertia_relative", abs(found[inertia] / truth[inertia] - 1.0))
    measured("identify.inertia_sigmas", off[inertia])
    measured("identify.friction_sigmas", [off[name] for name in friction])
    for name in truth:
        assert model.is_identified(name), name


def known_parameters(bench: Bench) -> dict[str, float]:
    """Inertia, Coulomb and viscous friction of the joint, at the joint, from the gains of the model."""
    (joint,), (facts,) = bench.robot.joints, bench.facts
    per_tick = facts.motor_counts / (2.0 * math.pi) * facts.tick_period**2 * 2**16  # of an acceleration [1/(rad/s²)]
    inertia = TORQUE_CONSTANT * per_tick * 2**8 * 1e-3 / 16 / PUSH
    viscous = inertia * DRAG / 2**15 / facts.tick_period
    values = {"Izz": inertia, "coulomb": inertia * FRICTION / per_tick, "viscous": viscous}
    power = {"Izz": 2, "coulomb": 1, "viscous": 2}
    return {f"{joint.name}.{name}": value * facts.ratio ** power[name] for name, value in values.items()}
