"""Motions that any bench can make from where its joints are, and their recording."""

from pathlib import Path

import numpy as np

from hil_tests.link_helpers import Wave, widest_way
from jointbench.bench import Bench
from jointbench.recording import Recorder, Run, open_run

WAY = 0.1  # [rad], of each joint, or what the bench allows
PERIOD = 1.024  # [s], a whole number of knot steps


def at_rest(bench: Bench, period: float) -> Wave:
    """Every joint held where it is."""
    return Wave(bench.positions(), np.zeros(bench.robot.n_joints), period)


def small_wave(bench: Bench, way: float = WAY, period: float = PERIOD) -> Wave:
    """Every joint there and back by `way` [rad], or as far as bench and robot allow, towards its window's middle."""
    start, way = bench.positions(), min(way, 0.9 * bench.file.terms.limits.get("position_rad", way))
    middle = bench.robot.position_limits.mean(axis=1)
    return Wave(start, np.where(start > middle, -1.0, 1.0) * np.minimum(way, widest_way(bench, period)), period)


def record(bench: Bench, motion: Wave, folder: Path, repeats: int = 1) -> Run:
    """Play a motion and record it."""
    bench.play(motion, repeats, Recorder(folder, bench.provenance(repeats=repeats)))
    return open_run(folder)
