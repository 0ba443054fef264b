"""Balance of a played motion: how far the measured zero-moment point is from the planned one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError, RobotError, ShapeError
from jointbench.identification.zero_moment_point.recorded_stance import StanceSettings, planned_stance_of_run
from jointbench.identification.zero_moment_point.reduced_parameters import theoretical_point
from jointbench.model import Foot, floating_standard_parameters
from jointbench.recording import Run


@dataclass(frozen=True)
class BalanceTracking:
    """Measured beside planned zero-moment point of a played motion.

    Attributes:
        error: mean distance of the measured point from the planned one [m].
        largest: largest distance [m].
        offset: distance of their means [m], which `--zmp-offset` could have told.
        planned_distance: of the planned point from the sole's edge at its nearest [m].
        distance: of the measured point from the sole's edge at its nearest [m]; negative outside.
    """

    error: float
    largest: float
    offset: float
    planned_distance: float
    distance: float

    @staticmethod
    def of(sole: Foot, planned: Array, measured: Array) -> BalanceTracking:
        """Compare zero-moment points.

        Args:
            sole: that the robot stands on.
            planned, measured: in the base frame [m], shape (n, 2) each.

        Raises:
            ShapeError: the shapes differ, or are none of points.
        """
        if planned.shape != measured.shape or planned.ndim != 2 or planned.shape[1] != 2 or not len(planned):
            raise ShapeError(
                f"planned and measured have shapes {planned.shape} and {measured.shape}; both must be (n, 2)"
            )
        off = measured - planned
        distance = np.linalg.norm(off, axis=1)
        nearest = (float(sole.distance_to_edge(points - sole.origin[:2]).min()) for points in (planned, measured))
        return BalanceTracking(
            float(distance.mean()), float(distance.max()), float(np.linalg.norm(off.mean(axis=0))), *nearest
        )

    def __str__(self) -> str:
        """Say it in millimetres."""
        return (
            f"the measured zero-moment point is {1e3 * self.error:.1f} mm off the planned one on average, "
            f"{1e3 * self.largest:.1f} mm at most ({1e3 * self.offset:.1f} mm are constant), and stays "
            f"{1e3 * self.distance:.0f} mm from the sole's edge, {1e3 * self.planned_distance:.0f} mm as planned"
        )


def planned_point(run: Run, total_mass: float, foot: str = "r_foot", settings: StanceSettings | None = None) -> Array:
    """Return the planned zero-moment point of a run's motion on one foot, behind the filters of its stance.

    The point is predicted with the masses that the plan was made with, those of an estimate or of the robot's file.

    Args:
        run: of a motion of the family `single_support`.
        total_mass: as weighed [kg].
        foot: name of the support foot.
        settings: as of `stance_of_run`; None: `StanceSettings()`.

    Returns:
        Points in the base frame at the rows of `stance_of_run` [m], shape (n, 2).

    Raises:
        FitError: the run has no plan of a motion on this foot, or is no stance.
        RobotError: the robot's file does not tell all inertias, and the plan neither.
    """
    support = None if run.excitation is None else run.excitation.support
    if support is None or support.foot != foot:
        raise FitError(
            f"run {run.path} has no plan of a motion on foot {foot!r}; give one that plays a plan of "
            f"`jointbench plan --family single_support`"
        )
    given = support.standard_parameters
    parameters = floating_standard_parameters(run.robot) if given is None else np.array(given)
    if parameters is None:
        raise RobotError(f"the file of robot {run.robot.name!r} does not tell all inertias; plan with an estimate")
    sole = run.robot.foot(foot)
    points = theoretical_point(planned_stance_of_run(run, total_mass, foot, settings), parameters)
    return points + np.array(support.zmp_offset) @ sole.axes[:2, :2].T
