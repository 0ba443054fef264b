"""What boards would record of a motion: the virtual bench's sensors, then the integer twins of the boards' filters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion
from hil_tests.virtual_bench.sensors import Sensors
from jointbench.arrays import Array
from jointbench.excitation import Excitation
from jointbench.recording import Run, Samples
from jointbench.signals import Biquads, BoardFilter, boxcar, butterworth_sections, dequantise_biquad
from tools.accuracy_bench.arm import Arm
from tools.accuracy_bench.playing import Playing

CUTOFF_HZ = 100.0
"""Of the boards' second-order low-pass on the current, as a bench file without a word on it has it."""

REST_TICKS = 100
"""Before the motion begins, so that the boards' filters have settled: five of their time constants take 4 ms."""

_AIR, _SUPPLY = 22.0, 48.0  # [degC], [V], which nothing here depends on

_SECTIONS = butterworth_sections(2, CUTOFF_HZ, 1.0 / TICK)


@dataclass(frozen=True, eq=False)
class Recording:
    """A run that was never on disk, and the boards it came from.

    Attributes:
        run: as `open_run` would give it.
        sensors: know their own offsets.
    """

    run: Run
    sensors: Sensors


def record(arm: Arm, excitation: Excitation, playing: Playing, repeats: int, seed: int) -> Recording:
    """Record some playings in a row by a set of boards that is drawn from a seed.

    Encoders count, converters have noise and 12 bits, boards decimate and filter in whole numbers, and the host knows
    gain and zero as the boards' calibration does. Positions count from home, where every motion begins.
    """
    sensors = Sensors(arm.robot, arm.truth, "ideal", seed)
    counts, current = _read(sensors, playing, repeats)
    robot, n = arm.robot, len(counts)
    turns = np.array([drive.ratio for drive in robot.drives]) * arm.truth.sensors.motor_encoder_counts
    position = np.array(robot.home) + 2.0 * np.pi / turns * (counts - counts[0])
    pairs = tuple(map(dequantise_biquad, _SECTIONS))
    board_filter = BoardFilter(sections=pairs, cic_order=1, window=TICK, sample_period=TICK)
    samples = Samples(
        time=TICK * np.arange(n, dtype=np.float64), joint_names=robot.joint_names, motor_position=position,
        link_position=None, motor_current=current,
        motor_torque=current * np.array([drive.torque_per_current for drive in robot.drives]), joint_torque=None,
        play_tick=np.maximum(np.arange(n) - REST_TICKS, -1), valid=np.ones(position.shape, dtype=np.bool_),
        board_filters=(board_filter,) * robot.n_joints, sample_period=TICK,
    )  # fmt: skip
    run = Run(
        path=Path(f"simulated-{seed}"), robot=robot, samples=samples, ledger=None, excitation=excitation,
        repeats=repeats, provenance={"seed": seed}, sha256="0" * 64, warnings=(),
    )  # fmt: skip
    return Recording(run, sensors)


def _read(sensors: Sensors, playing: Playing, repeats: int) -> tuple[NDArray[np.int64], Array]:
    """Motor encoder counts that do not wrap, and filtered currents [A], shape (n, n_joints) each."""
    once, joints = playing.position.shape
    rows = np.concatenate([np.zeros(REST_TICKS, np.int64), np.tile(np.arange(once), repeats)])
    none, cool = np.zeros((OVERSAMPLES, joints)), np.full(joints, _AIR)
    counters = np.empty((len(rows), joints), np.uint16)
    converted = np.empty((len(rows), joints, OVERSAMPLES), np.uint16)
    for k, row in enumerate(rows):
        position = playing.position[row]
        readings = sensors.read(Motion(position, position, playing.current[row], none, cool, _SUPPLY))
        counters[k], converted[k] = readings.motor_count, readings.adc[:, 0]
    steps = np.diff(counters, axis=0, prepend=counters[:1]).astype(np.int16)
    current = np.empty((len(rows), joints))
    for joint in range(joints):
        facts = sensors.facts(joint)
        raw = Biquads(_SECTIONS).run(boxcar(converted[:, joint]))
        current[:, joint] = 1e-9 * facts["current.scale"] * (raw - float(facts["current.zero"]))
    return np.cumsum(steps, axis=0, dtype=np.int64), current
