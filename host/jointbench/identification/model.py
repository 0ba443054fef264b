"""An identified model: parameters with error bars, what they predict, and whether to believe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from jointbench.dynamics import BaseParameters, model_columns
from jointbench.errors import FitError
from jointbench.identification.settings import FitSettings
from jointbench.identification.torque_error import TorqueError
from jointbench.identification.verdict import Verdict, judge_joints, judge_parameter, judge_whole
from jointbench.robot import Array, Robot


@dataclass(frozen=True, eq=False)
class Model:
    """Base parameters of a robot's links and drives, identified from a run.

    Attributes:
        robot: whose model it is.
        base: what the parameters stand for; `base.names` shows each group in full.
        parameters: values of the base parameters [SI], shape (rank,); 0 where `sigma` is infinite.
        covariance: of the parameters, shape (rank, rank).
        condition_number: of the base regressor over the rows that were fitted.
        error: of the fitted torque where the joints move.
        error_all: the same over all complete rows, those near rest included.
        noise_rms: standard deviation between periods of the averaged torque, per joint; nan without repeats.
        lags: for how many rows the residuals count as correlated.
        rows: how many rows were fitted, per joint.
        estimator: "wls".
        settings: as used, nothing left open.
        provenance: the run, its hash, and the versions of what computed this.
    """

    robot: Robot
    base: BaseParameters
    parameters: Array
    covariance: Array
    condition_number: float
    error: TorqueError
    error_all: TorqueError
    noise_rms: Array
    lags: int
    rows: tuple[int, ...]
    estimator: str
    settings: FitSettings
    provenance: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Short name of each parameter: that of the full parameter which leads its group."""
        return self.base.leading_names

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, shape (rank,); infinite where not told."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def fit_rms(self) -> Array:
        """Torque error per joint over the fitted rows, root mean square [N·m or N]."""
        return self.error.rms

    @property
    def fit_relative(self) -> Array:
        """Torque error per joint over the fitted rows as a share of the torque."""
        return self.error.relative

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter, in the order of `names`."""
        values = zip(self.names, self.parameters, self.sigma, strict=True)
        return tuple(judge_parameter(name, float(value), float(sigma)) for name, value, sigma in values)

    @cached_property
    def joint_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each joint's torque over the fitted motion."""
        return judge_joints(self.robot.joint_names, self.error.relative, self.error.share, self.robot.modelled)

    @property
    def verdict(self) -> Verdict:
        """The word on the whole: that on its worst joint."""
        return judge_whole(self.joint_verdicts, self.error.relative)

    def value(self, name: str) -> float:
        """Value of the parameter that leads the group of this name, such as "j3.coulomb" [SI].

        Raises:
            FitError: no base parameter is led by it.
        """
        return float(self.parameters[self._index(name)])

    def confidence_interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Interval that holds the parameter's true value with probability `level`, for a model of the right form."""
        index = self._index(name)
        half = float(stats.norm.ppf(0.5 + 0.5 * level)) * float(self.sigma[index])
        return float(self.parameters[index]) - half, float(self.parameters[index]) + half

    def is_identified(self, name: str) -> bool:
        """Whether the parameter's verdict is "identified"."""
        return self.parameter_verdicts[self._index(name)].word == "identified"

    def deviations(self, full_parameters: ArrayLike) -> Array:
        """(parameters - truth) / sigma for a known truth, given as full parameters in the order of `base.full_names`.

        Within ±2 for about 95 % of them when the error bars are honest; 0 for parameters that are not told.
        """
        return (self.parameters - self.base.group(full_parameters)) / self.sigma

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Joint torque of a motion, drives included.

        Args:
            q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints).

        Returns:
            Torque [N·m or N], zero of passive joints, shape (n, n_joints).

        Raises:
            ShapeError: the arrays differ in shape or do not match the robot.
        """
        columns, _ = model_columns(self.robot, q, dq, ddq)
        return (self.base.project(columns) @ self.parameters).reshape(-1, self.robot.n_joints)

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON; `load_model` reads it."""
        from jointbench.identification.model_file import write_model

        return write_model(self, Path(path))

    def _index(self, name: str) -> int:
        if name not in self.names:
            grouped = [group for group, row in zip(self.base.names, self.base.grouping, strict=True)
                       if name in self.base.full_names and row[self.base.full_names.index(name)] != 0.0]
            where = f"; it is part of {', '.join(map(repr, grouped))}" if grouped else ""
            raise FitError(f"no base parameter is led by {name!r}{where}; the leaders are {', '.join(self.names)}")
        return self.names.index(name)
