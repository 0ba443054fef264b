"""A torque that is linear in the parameters of links and joints: what a torque sensor sees, or what a motor does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters, compensation_parameter_names, model_columns
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals
from jointbench.identification.judgement.verdict import Verdict, judge_parameter
from jointbench.identification.least_squares import Estimate, weighted_least_squares
from jointbench.robot import Robot

Side = Literal["link", "motor"]


@dataclass(frozen=True, eq=False)
class LinearTorque:
    """tau = W p, fitted.

    Attributes:
        robot: whose.
        side: "link": base parameters of the links, Coulomb and viscous friction behind the sensor, its offset.
            "motor": the same with the rotors, as `fit` does it: all friction counts as the joint's.
        names: of p, each group in full.
        columns: of p among those of `model_columns`, shape (p,).
        estimate: p, its covariance, and what is left over.
    """

    robot: Robot
    side: Side
    names: tuple[str, ...]
    columns: NDArray[np.intp]
    estimate: Estimate

    @property
    def parameters(self) -> Array:
        """Values of p [SI], shape (p,); 0 where not told."""
        return self.estimate.parameters

    @property
    def sigma(self) -> Array:
        """Standard deviation of each, shape (p,); infinite where not told."""
        return np.sqrt(np.diag(self.estimate.covariance))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter."""
        values = zip(self.names, self.parameters, self.sigma, strict=True)
        return tuple(judge_parameter(name, float(value), float(sigma)) for name, value, sigma in values)

    @property
    def offsets(self) -> Array:
        """What the torque is off zero by at each joint, shape (n_joints,); 0 where not told."""
        return self._of_joints("offset", self.parameters)

    @property
    def offset_sigma(self) -> Array:
        """Standard deviation of each of them; 0 where it is no parameter of its own or not told."""
        return self._of_joints("offset", np.where(np.isinf(self.sigma), 0.0, self.sigma))

    def _of_joints(self, quantity: str, values: Array) -> Array:
        named = dict(zip(self.names, values, strict=True))
        return np.array([named.get(f"{name}.{quantity}", 0.0) for name in self.robot.joint_names])

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Torque [N·m or N] of a motion, arrays of shape (n, n_joints) each.

        Raises:
            ShapeError: the arrays differ in shape or do not match the robot.
        """
        full, _ = model_columns(self.robot, q, dq, ddq)
        return (full[:, self.columns] @ self.parameters).reshape(-1, self.robot.n_joints)


def fit_linear_torque(
    robot: Robot, side: Side, signals: DriveSignals, torque: Array, used: NDArray[np.bool_]
) -> LinearTorque:
    """Fit a torque's linear model by weighted least squares, columns filtered as the torque was.

    Args:
        robot: the robot.
        side: which torque it is.
        signals: the motion.
        torque: at the rows [N·m or N], shape (n_rows, n_joints).
        used: rows to use, shape (n_rows, n_joints).

    Raises:
        FitError: not more rows than parameters.
        ShapeError: the arrays differ in shape or do not match the robot.
        UnclearRank: the robot's geometry is nearly degenerate.
    """
    full, full_names = model_columns(robot, signals.q, signals.dq, signals.ddq)
    base = base_parameters(robot, drives=side == "motor")
    columns, names = list(base.columns), list(base.names)
    if side == "link":
        # Of compensations only what neither links nor drives do as well.
        more = set(compensation_parameter_names(robot))
        doubled = more - set(base_parameters(robot).leading_names) if more else more
        for column, name in enumerate(full_names[10 * robot.n_links :], start=10 * robot.n_links):
            if not name.endswith(".rotor_inertia") and name not in doubled:
                columns.append(np.intp(column))
                names.append(name)
    if int(used.sum()) <= len(columns):
        raise FitError(f"{int(used.sum())} rows are too few for {len(columns)} parameters; record more motion")
    regressor = signals.rows(full[:, columns].reshape(*signals.q.shape, len(columns)))
    estimate = weighted_least_squares(regressor, torque, used)
    return LinearTorque(robot, side, tuple(names), np.array(columns, dtype=np.intp), estimate)
