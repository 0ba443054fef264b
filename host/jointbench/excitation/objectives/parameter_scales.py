"""What a parameter's standard deviation is relative to: its value, where one is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, drive_parameter_names, model_columns, regressor
from jointbench.dynamics.drive_columns import known_drive_parameters
from jointbench.excitation.limits.torque_limits import check_prior
from jointbench.robot import PARAMETER_NAMES, Robot

UNKNOWN_TORQUE_SHARE = 0.05
"""A parameter without a prior value is taken for as large as asks for this share of a joint's torque limit: what
friction usually takes. The choice only weighs such parameters against the others."""

LEAST_TORQUE_SHARE = 0.001
"""A value that asks for less than this share of a torque limit, as one that is zero by symmetry, counts as one that
does: below it sensors tell nothing, and a relative deviation would have no meaning."""

_MOTIONS = 200
"""Random motions that say what a parameter can ask for: of so many the largest is found within some tenths."""


@dataclass(frozen=True, eq=False)
class ParameterScales:
    """Sizes of base parameters.

    Attributes:
        names: of the parameters that lead them.
        values: |θ| of each, above zero, shape (rank,), SI.
        known: which are prior values; the others' are an assumption.
        raised: which prior values are so small that LEAST_TORQUE_SHARE stands for them.
    """

    names: tuple[str, ...]
    values: Array
    known: NDArray[np.bool_]
    raised: NDArray[np.bool_]

    @property
    def words(self) -> tuple[str, ...]:
        """A sentence on each parameter that is not taken relative to its own value."""
        said: list[str] = []
        for name, value, known, raised in zip(self.names, self.values, self.known, self.raised, strict=True):
            if not known:
                share = f"{100.0 * UNKNOWN_TORQUE_SHARE:g} % of a joint's torque limit"
                said.append(f"{name} has no prior value: taken relative to {value:.3g}, which can ask for {share}")
            elif raised:
                share = f"{100.0 * LEAST_TORQUE_SHARE:g} % of a joint's torque limit"
                said.append(f"{name} is nearly zero: taken relative to {value:.3g}, which can ask for {share}")
        return tuple(said)


def parameter_scales(robot: Robot, base: BaseParameters, prior: Mapping[str, float] | None = None) -> ParameterScales:
    """Sizes of base parameters: from the robot's file, from `prior`, and from what joints can bear.

    Args:
        robot: the robot; what its file gives of links and drives is known.
        base: its base parameters.
        prior: values of other full parameters by name, or better ones, such as {"j1.coulomb": 4.0} (SI).

    Raises:
        ExcitationError: `prior` has an unknown name, or a value that is not a number.
    """
    full = _known_parameters(robot, base, prior or {})
    known = np.isfinite(full[base.columns])
    # What is not known of a group is left out of its size.
    sizes = np.abs(base.group(np.nan_to_num(full)))
    unit = _one_torque_limit(robot, base)
    least = LEAST_TORQUE_SHARE * unit
    values = np.where(known, np.maximum(sizes, least), UNKNOWN_TORQUE_SHARE * unit)
    return ParameterScales(base.leading_names, values, known, known & (sizes < least))


def _known_parameters(robot: Robot, base: BaseParameters, prior: Mapping[str, float]) -> Array:
    """Full parameters, not a number where unknown, shape (n_full,)."""
    check_prior(robot, prior)
    known = dict(zip(drive_parameter_names(robot), known_drive_parameters(robot).tolist(), strict=True))
    for joint in robot.joints:
        if joint.link.standard_parameters is not None:
            of_link = zip(PARAMETER_NAMES, joint.link.standard_parameters.tolist(), strict=True)
            known |= {f"{joint.name}.{parameter}": value for parameter, value in of_link}
    known |= prior
    return np.array([known.get(name, np.nan) for name in base.full_names])


def _one_torque_limit(robot: Robot, base: BaseParameters) -> Array:
    """The value of each base parameter that by itself can ask for all of a joint's torque limit, shape (rank,)."""
    rng = np.random.default_rng(0)
    low, high = robot.position_limits.T
    q = rng.uniform(low, high, (_MOTIONS, robot.n_joints))
    dq, ddq = (
        rng.uniform(-1.0, 1.0, (2, *q.shape)) * np.stack([robot.velocity_limits, robot.acceleration_limits])[:, None]
    )
    of_links_only = base.n_full == 10 * robot.n_links
    columns = regressor(robot, q, dq, ddq) if of_links_only else model_columns(robot, q, dq, ddq)[0]
    shares = np.abs(base.project(columns)).reshape(_MOTIONS, robot.n_joints, -1) / robot.torque_limits[:, None]
    return 1.0 / shares.max(axis=(0, 1))
