"""`./run bench hindsight FOLDER`: the default cut-off and prior beside the best of a grid, on public recordings."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import JointbenchError
from jointbench.identification import Model, fit
from jointbench.recording import Run
from tools.bench.public import delayed, recordings_folder, refused_joints
from tools.bench.public_recordings import SPLITS, Split, check_digests, import_part
from tools.bench.public_scoring import Trained, geometric_mean, judge

OF = ("KR300 A to B", "TIAGo", "Gen3 1 to 2", "TX40 5.2 s to 8 s")
"""Splits whose test is not what was trained on, one of each arm."""

CUTOFFS_HZ = tuple(np.geomspace(1.0, 100.0, 10).tolist())
STRENGTHS = tuple((10.0 ** np.arange(-2.0, 3.0, 0.5)).tolist())
"""Multiples of the strength that the default takes."""

MOST_LOSS = 0.05


@dataclass(frozen=True)
class Hindsight:
    """Errors on a split's test: geometric mean over the joints that the default does not refuse.

    Attributes:
        split: its name.
        default: error of the default.
        best: the least of the grid.
        cutoff_Hz, strength: that it was reached with, the strength as a multiple of the default's.
        default_Hz: cut-off of the default.
    """

    split: str
    default: float
    best: float
    cutoff_Hz: float
    strength: float
    default_Hz: float

    @property
    def loss(self) -> float:
        """Relative increase of the default's error."""
        return self.default / self.best - 1.0


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Fit the grid on each split's training, and judge all on its test: torque as measured, where the joints move."""
    folder = recordings_folder(options)
    rows: list[Hindsight] = []
    for split in (split for split in SPLITS if split.name in OF):
        check_digests(split.test.source, folder)
        with TemporaryDirectory() as scratch, console.working(split.name):
            training, test = (import_part(part, folder, Path(scratch)) for part in (split.training, split.test))
            rows.append(hindsight(split, training, test))
    heads = ("split", "default [%]", "best [%]", "loss", "default at [Hz]", "best at [Hz]", "strength")
    cells = [
        [
            *(row.split, f"{100.0 * row.default:.2f}", f"{100.0 * row.best:.2f}", f"{row.loss:.1%}"),
            *(f"{row.default_Hz:.3g}", f"{row.cutoff_Hz:.3g}", f"{row.strength:.2g}"),
        ]
        for row in rows
    ]
    console.say(table(heads, cells))
    checks = tuple(Check(f"{row.split}, loss against hindsight", row.loss, "<=", MOST_LOSS) for row in rows)
    return Result("bench", None, checks, {"splits": [vars(row) | {"loss": row.loss} for row in rows]})


def hindsight(split: Split, training: Run, test: Run) -> Hindsight:
    """Return the default's error on a split, and the least of the grid at the delay that the default found."""
    default = fit(training, friction="coulomb_viscous")
    judged = np.array([name not in refused_joints(default) for name in test.robot.joint_names])
    strength, delay = float(default.figures["strength"]), tuple(default.delay.seconds.tolist())
    least = (float("inf"), 0.0, 0.0)
    for cutoff in CUTOFFS_HZ:
        for times in STRENGTHS:
            settings = {"cutoff_Hz": cutoff, "delay": delay, "tolerances": "none"}
            try:
                model = fit(
                    training, estimator="map", options={"strength": times * strength}, settings=settings,
                    friction="coulomb_viscous",
                )  # fmt: skip
            except JointbenchError:
                continue  # too high for the rate, or too low for the rows
            least = min(least, (error(model, split, training, test, judged), cutoff, times))
    assert default.settings.cutoff_Hz is not None
    own = error(default, split, training, test, judged)
    return Hindsight(split.name, own, *least, default.settings.cutoff_Hz)


def error(model: Model, split: Split, training: Run, test: Run, judged: NDArray[np.bool_]) -> float:
    """Relative error on the test, torque as measured, where the joints move: geometric mean over some joints."""
    errors, _ = judge(
        Trained(delayed(model, model.predict)), training, test, split.test.source.torque, split.bandwidth_Hz
    )
    return geometric_mean(errors["moving as measured"].relative[judged])
