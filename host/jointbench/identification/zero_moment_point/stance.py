"""A robot standing on one foot: its motion, the zero-moment point measured beside it, and what theory needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import StanceError
from jointbench.robot import Robot

_OF_ROWS = (
    "time", "q", "dq", "ddq", "columns", "measured", "vertical_force", "forces", "weight", "pulled_arms",
    "nuisance_columns", "force_nuisance_columns",
)  # fmt: skip


_SAME_PERIOD = 1e-3
"""Share by which sample periods may differ: clocks run apart by some 1e-5 of it, and sums of steps by rounding."""


@dataclass(frozen=True, eq=False)
class Stance:
    """Rows of a motion on one foot, all filtered alike and late alike.

    Theory: z(pi) = (columns[:, :2] @ pi) / (columns[:, 2] @ pi)[:, None], as numerators and force are filtered before
    they are divided, like the measured ones. Measured: z(pi) + nuisance_columns @ nuisance + noise, to first order.

    Attributes:
        robot: with a base link, the support foot.
        foot: its name.
        time: when it happened, the filters' delay taken off [s], shape (n,).
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints).
        columns: x numerator [N·m], y numerator [N·m] and vertical force [N] by the standard parameters of base link and
            links, shape (n, 3, 10 * (1 + n_links)).
        measured: zero-moment point on the ground by the sensors as calibrated, x and y in the base frame [m], (n, 2).
        vertical_force: sum of the corners' [N], shape (n,).
        forces: of the corners [N], shape (n, 4).
        weight: vertical force that the weighed mass should show in this motion, spread over the links as the robot file
            says [N], shape (n,).
        pulled_arms: where cables may pull each foot, in the base frame, z from the ground [m], shape (n, n_feet, 3).
        nuisance_names: of what lies between theory and measurement: sensors' gains and zeros, cables' pulls, the sole's
            give, the forces' delay.
        nuisance_columns: derivative of the measured point by these, shape (n, 2, k).
        force_nuisance_columns: derivative of the measured vertical force by them, shape (n, k).
        data_sheet: standard deviation of each before anything was recorded, about zero, shape (k,).
        sample_period: from row to row, gaps apart [s].
    """

    robot: Robot
    foot: str
    time: Array
    q: Array
    dq: Array
    ddq: Array
    columns: Array
    measured: Array
    vertical_force: Array
    forces: Array
    weight: Array
    pulled_arms: Array
    nuisance_names: tuple[str, ...]
    nuisance_columns: Array
    force_nuisance_columns: Array
    data_sheet: Array
    sample_period: float

    @property
    def n_samples(self) -> int:
        """Rows."""
        return len(self.time)


def joined(stances: Sequence[Stance]) -> Stance:
    """Rows of several stances of one robot with the same sensors.

    Raises:
        StanceError: there are none, or they are of different robots, feet, rates or data sheets.
    """
    if not stances:
        raise StanceError("there are no stances to join; give at least one")
    first = stances[0]
    for other in stances[1:]:
        for name in ("foot", "nuisance_names", "data_sheet", "sample_period"):
            same = np.array_equal(getattr(other, name), getattr(first, name))
            if name == "sample_period":
                same = bool(np.isclose(other.sample_period, first.sample_period, rtol=_SAME_PERIOD, atol=0.0))
            if not same:
                raise StanceError(
                    f"stances to join differ in {name}: {getattr(first, name)} and {getattr(other, name)}; "
                    f"fit them one by one"
                )
    if any(other.robot != first.robot for other in stances[1:]):
        raise StanceError("stances to join are of different robots; fit them one by one")
    rows: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in stances]) for name in _OF_ROWS}
    return Stance(**{field.name: rows.get(field.name, getattr(first, field.name)) for field in fields(Stance)})
