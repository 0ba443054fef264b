"""What a report on two models rests on: both, how they compare, and their torques on one motion."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.identification import Model
from jointbench.identification.comparison import Comparison, check_comparable, compare
from jointbench.identification.observations import observe
from jointbench.recording import Run
from jointbench.signals import Motion


@dataclass(frozen=True, eq=False)
class ComparisonEvidence:
    """Two models of one robot, or of two of a kind.

    Attributes:
        models: a and b.
        places: where each is.
        comparison: of b with a.
        run: on whose motion torques are compared; None: on random states within the robot's limits.
        time: of that motion [s], shape (n,); empty without a run.
        torques: of a and of b on it, nan in gaps [N·m or N], shape (2, n, n_joints).
    """

    models: tuple[Model, Model]
    places: tuple[Path, Path]
    comparison: Comparison
    run: Run | None
    time: Array
    torques: Array

    @classmethod
    def of(cls, a: Model, b: Model, places: tuple[Path, Path], run: Run | None = None) -> ComparisonEvidence:
        """Compare two models.

        Args:
            a, b: the models.
            places: where each is.
            run: on whose motion torques are compared, filtered as for the fit of a.

        Raises:
            IncomparableModels: their parameters do not stand for the same.
            FitError: there is no run, and the robot has no limits to stay within; or the run does not suit it.
        """
        check_comparable(a, b)
        if run is None:
            return cls((a, b), places, compare(a, b), None, np.empty(0), np.empty((2, 0, a.robot.n_joints)))
        rows = observe(run, a.robot, a.base, dataclasses.replace(a.settings, interval=None))
        there = np.flatnonzero(rows.complete)
        motion = Motion(*(values[there] for values in (rows.motion.q, rows.motion.dq, rows.motion.ddq)))
        part = slice(int(there[0]), int(there[-1]) + 1)
        torques = np.full((2, rows.n_rows, a.robot.n_joints), np.nan)
        for torque, model in zip(torques, (a, b), strict=True):
            # Of the parameters that are compared; rows are too far apart for friction that remembers.
            torque[there] = model.coulomb_viscous.predict(motion.q, motion.dq, motion.ddq)
        return cls((a, b), places, compare(a, b, motion=motion), run, rows.time[part], torques[:, part])
