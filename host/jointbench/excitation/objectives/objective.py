"""What a plan minimises: a criterion on what a motion tells of the base parameters, with its gradient by the motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.dynamics.chosen_columns import Motion
from jointbench.errors import ExcitationError
from jointbench.excitation.objectives.criteria import Criterion, condition, d_optimal, e_optimal, worst_sigma
from jointbench.excitation.objectives.emphasis import emphasis_of
from jointbench.excitation.objectives.information import Information
from jointbench.excitation.objectives.parameter_scales import ParameterScales, parameter_scales
from jointbench.robot import Robot

CRITERIA: dict[str, Criterion] = {
    "condition_number": condition,
    "scaled_condition_number": condition,
    "d_optimal": d_optimal,
    "e_optimal": e_optimal,
    "relative_sigma": worst_sigma,
}
"""Criterion of each objective, by its name."""

_LOGS = ("condition_number", "scaled_condition_number", "relative_sigma")
"""Objectives whose logarithm is minimised, and which are reported without it."""


@dataclass(frozen=True, eq=False)
class Objective:
    """A criterion on a sampled motion; the less the better.

    With V the base regressor in units of the noise (`Information`) and S its columns' scale:

    - "condition_number": of V S, S = 1 / emphasis.
    - "scaled_condition_number": of V L⁻¹ S, L the lengths of V's columns, S = 1 / emphasis.
    - "d_optimal": -log det(VᵀV) for each parameter.
    - "e_optimal": -log of the smallest eigenvalue of S VᵀV S, S = 1 / emphasis.
    - "relative_sigma": the largest emphasis_i σ_i / |θ_i|, |θ| being `relative_to`, σ that of these samples alone.

    Eigenvalues under n ε of the largest, n parameters and ε the precision of a double, count as that much: where a
    motion leaves parameters in the dark, the value is finite, large and no more than the truth (a condition number of
    about 1e7 as it is minimised, 1e14 as it is reported), and the gradient is finite. Only what makes no torque at all,
    or is not a number, is refused.

    Attributes:
        information: of the robot, its base parameters and the noise.
        name: one of CRITERIA.
        column_scale: diagonal of S, shape (rank,).
        sharpness: of the smooth stand-in that `value_and_gradient` has (`criteria`); inf for none.
        relative_to: what σ is relative to; None but for "relative_sigma".
    """

    information: Information
    name: str
    column_scale: Array
    sharpness: float = math.inf
    relative_to: ParameterScales | None = None

    @classmethod
    def of(
        cls,
        robot: Robot,
        base: BaseParameters,
        name: str = "condition_number",
        *,
        noise: ArrayLike | None = None,
        prior: Mapping[str, float] | None = None,
        emphasis: Mapping[str, float] | None = None,
        sharpness: float = math.inf,
    ) -> Objective:
        """Make the objective of this name.

        Args:
            robot: the robot.
            base: its base parameters, with drives or without.
            name: one of CRITERIA.
            noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,); 1 where not given.
            prior: values of full parameters that the robot's file does not know, such as {"j1.coulomb": 4.0} (SI).
            emphasis: how much parameters count, such as {"coulomb": 0.5, "j3.Izz": 2.0}; 1 where not given.
            sharpness: as above.

        Raises:
            ExcitationError: an unknown name, a noise that is no noise, an unknown parameter, an emphasis that is not
                positive or that "d_optimal" would not notice, or a "relative_sigma" without noise.
        """
        if name not in CRITERIA:
            raise ExcitationError(f"objective {name!r} is not known; there is {', '.join(map(repr, CRITERIA))}")
        if not sharpness > 0.0:
            raise ExcitationError(f"sharpness = {sharpness:g} must be above 0; inf is the criterion itself")
        if name == "d_optimal" and emphasis:
            raise ExcitationError("objective 'd_optimal' has the same optimum whatever the emphasis; leave it out")
        information = Information.of(robot, base, noise)
        scale = 1.0 / emphasis_of(base, emphasis or {})
        if name != "relative_sigma":
            return cls(information, name, scale, sharpness)
        if noise is None:
            raise ExcitationError(
                "objective 'relative_sigma' needs the noise: the standard deviation of each joint's torque [N·m]"
            )
        scales = parameter_scales(robot, base, prior or {})
        return cls(information, name, scale * scales.values, sharpness, scales)

    def with_sharpness(self, sharpness: float) -> Objective:
        """The same with another stand-in: a search may begin with a smooth one, of 4 or so, and sharpen it."""
        return replace(self, sharpness=sharpness)

    def value(self, motion: Motion) -> float:
        """The criterion itself, with Coulomb's sign as it is: what is reported.

        Raises:
            ExcitationError: the motion makes no torque, or is not finite.
            ShapeError: its arrays differ in shape or do not match the robot.
        """
        columns = self.information.columns(motion)
        scale = self._scale(_above_zero(np.einsum("ri,ri->i", columns, columns)))
        # By singular values, not by eigenvalues of the product: these have twice the digits.
        _, values, rows = np.linalg.svd(columns * scale, full_matrices=False)
        return self.reported(
            CRITERIA[self.name](_above_zero(values) ** 2, rows.T, scale / self.column_scale, math.inf)[0]
        )

    def reported(self, minimised: float) -> float:
        """What a value as of `value_and_gradient` is on the scale of `value`."""
        return math.exp(minimised) if self.name in _LOGS else minimised

    def value_and_gradient(self, motion: Motion) -> tuple[float, Motion]:
        """Log of the criterion, its stand-in with a smooth sign, and the derivatives by q, dq and ddq.

        "d_optimal" and "e_optimal" are logs already.

        Args:
            motion: q, dq, ddq at samples, shape (n_samples, n_joints) each.

        Raises:
            ExcitationError: the motion makes no torque, or is not finite.
            ShapeError: its arrays differ in shape or do not match the robot.
        """
        values = self.information.values(motion)
        value, slope = self.of_gram(self.information.gram(values))
        return value, self.information.pull_back(motion, values, slope)

    def of_gram(self, gram: Array) -> tuple[float, Array]:
        """The criterion of G = VᵀV as it is minimised, and its derivative by G, symmetric, shape (rank, rank)."""
        squares = _above_zero(np.diag(gram))
        scale = self._scale(squares)
        values, vectors = np.linalg.eigh(gram * (scale[:, None] * scale))
        value, slope = CRITERIA[self.name](_above_zero(values), vectors, scale / self.column_scale, self.sharpness)
        slope *= scale[:, None] * scale
        if self.name == "scaled_condition_number":
            # A longer column is shortened: d(1 / L) = -dL² / (2 L³).
            slope[np.diag_indices_from(slope)] -= np.einsum("ij,ij->i", slope, gram) / squares
        return value, slope

    def _scale(self, squares: Array) -> Array:
        """What columns of these lengths squared are multiplied by before they are looked at, shape (rank,)."""
        if self.name in ("condition_number", "e_optimal"):
            return self.column_scale
        # The other criteria do not depend on it, or allow for it; of one length columns lose the fewest digits.
        by_length = 1.0 / np.sqrt(squares)
        return self.column_scale * by_length if self.name == "scaled_condition_number" else by_length


def _above_zero(values: Array) -> Array:
    """The values, but none below n ε of the largest: that much rounding leaves of nothing.

    Raises:
        ExcitationError: the largest is not above zero.
    """
    largest = values.max()
    if not largest > 0.0:
        raise ExcitationError("the motion makes no torque at all: nothing can be told of any parameter")
    return np.maximum(values, len(values) * np.finfo(np.float64).eps * largest)
