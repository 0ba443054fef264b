"""Runs that have everything a format must keep: gaps, slow channels, feet, filters, events."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jointbench.recording import Run, Samples, open_run, save_samples
from jointbench.robot import load_robot
from jointbench.signals import BoardFilter
from jointbench.tests.recording import simulated_run

ROWS = 300


def recorded(directory: Path) -> Run:
    """Two boards of cobot6, of which one lost a frame and so 64 samples."""
    streams = simulated_run.boards()
    lost = next(k for k, sent in enumerate(streams[2].sent) if sent.samples and k > 3)
    del streams[2].sent[lost]
    return open_run(simulated_run.record(directory, streams))


def imported(directory: Path) -> Run:
    """A biped with feet, values of every size and missing ones among them, and times that do not begin at 0."""
    robot = load_robot("gorobot2")
    random = np.random.default_rng(5)
    shape = (ROWS, robot.n_joints)
    valid = random.random(shape) > 0.1

    def measured(scale: float) -> np.ndarray:
        return np.where(valid, scale * random.standard_normal(shape) * 10.0 ** random.integers(-9, 9, shape), np.nan)

    slow = np.full(shape, np.nan)
    slow[::64] = 300.0 + random.random((len(slow[::64]), robot.n_joints))
    board = BoardFilter(sections=(((0.1, 0.2, 0.1), (1.0, -0.7, 0.1)),), cic_order=2, window=1e-4, sample_period=1e-3)
    samples = Samples(
        time=17.3 + 1e-3 * np.arange(ROWS, dtype=np.float64),
        joint_names=robot.joint_names,
        motor_position=measured(1.0),
        link_position=None,
        motor_current=measured(2.0),
        motor_torque=measured(3.0),
        joint_torque=measured(4.0),
        play_tick=np.arange(ROWS, dtype=np.int64) - 10,
        valid=valid,
        board_filters=(board,) * robot.n_joints,
        sample_period=1e-3,
        temperature=slow,
        foot_force=random.standard_normal((ROWS, 2, 4)),
        joint_velocity=measured(5.0),
        foot_names=("left_foot", "right_foot"),
    )
    save_samples(directory, samples, {"robot": "gorobot2", "source": "made up", "repeats": 3})
    return open_run(directory)


def assert_same_bits(one: Samples, other: Samples) -> None:
    """Every array has the same bytes, everything else is equal."""
    for name in Samples.__dataclass_fields__:
        here, there = getattr(one, name), getattr(other, name)
        if isinstance(here, np.ndarray):
            assert here.dtype == there.dtype, name
            assert here.tobytes() == there.tobytes(), name
        else:
            assert here == there, name
