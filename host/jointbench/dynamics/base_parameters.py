"""Base parameters: what of a robot's parameters its joint torques can tell at all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.dynamics.model_columns import model_columns, model_parameter_names
from jointbench.dynamics.regressor import regressor
from jointbench.errors import ShapeError, UnclearRank
from jointbench.robot import PARAMETER_NAMES, Array, Robot

_PREFERENCE = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mcx", "mcy", "mcz", "Iyy", "m")
"""Order in which a link's parameters are offered as base parameters: the ones usually grouped away come last."""

_DEPENDENT = 1e-8
"""Sine of a column's angle to those before it under which it counts as dependent. Rounding leaves about 1e-15 and
true independence about 1e-2, so the exact value hardly matters; that the two stay apart is checked."""

_CLEAR_GAP = 1e4
"""Least ratio between the smallest independent and the largest dependent sine for a rank to be believed."""

_TERMS_SHOWN = 3


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The independent parameters of a robot and how the full ones group into them.

    For every motion, columns @ pi == project(columns) @ group(pi).

    Attributes:
        rank: how many there are.
        gap: ratio of the smallest independent to the largest dependent sine at the rank decision.
        names: one per base parameter, led by the parameter it is named for: "j2.Izz - 0.0729 j3.m + …".
        columns: index of each base parameter's leading column among the full ones, shape (rank,).
        full_names: names of the full parameters, as of `model_columns` (or `regressor`, without drives).
        grouping: K of base = K @ pi, shape (rank, n_full).
    """

    rank: int
    gap: float
    names: tuple[str, ...]
    columns: np.ndarray[tuple[int], np.dtype[np.intp]]
    full_names: tuple[str, ...]
    grouping: Array

    @property
    def n_full(self) -> int:
        """How many full parameters there are."""
        return len(self.full_names)

    @property
    def leading_names(self) -> tuple[str, ...]:
        """Name of the parameter that leads each group."""
        return tuple(self.full_names[column] for column in self.columns)

    def project(self, full_columns: Array) -> Array:
        """Keep of a full regressor (…, n_full) the columns of the base parameters, (…, rank).

        Raises:
            ShapeError: the last axis is not n_full long.
        """
        self._check(full_columns, "the regressor")
        return full_columns[..., self.columns]

    def group(self, full_parameters: ArrayLike) -> Array:
        """Base parameters, shape (rank,), of full parameters, shape (n_full,).

        Raises:
            ShapeError: the vector is not n_full long.
        """
        values = np.asarray(full_parameters, dtype=np.float64)
        self._check(values, "the parameter vector")
        return self.grouping @ values

    def _check(self, array: Array, what: str) -> None:
        if array.shape[-1] != self.n_full:
            raise ShapeError(
                f"{what} has {array.shape[-1]} columns; these base parameters group {self.n_full}: "
                f"{self.full_names[0]} … {self.full_names[-1]}"
            )


def base_parameters(robot: Robot, *, drives: bool = True, seed: int = 0) -> BaseParameters:
    """Find the base parameters of a robot from random motions.

    Columns of the regressor are offered one by one, link by link and the drives last, and kept when independent of
    those kept before. So friction and offsets stay themselves, and a rotor inertia does unless its link's Izz acts
    alike, which then leads the group.

    Args:
        robot: the robot.
        drives: whether the model has the drives' columns, as `model_columns`, or only the links', as `regressor`.
        seed: of the random motions; the result does not depend on it but for rounding.

    Returns:
        The base parameters.

    Raises:
        UnclearRank: no clear gap separates independent from dependent columns, as with a geometry that is
            nearly but not exactly degenerate.

    Source: Gautier, J. Robotic Systems 8(4), 1991 (numerical grouping); the order of preference follows
    Khalil & Dombre, Modeling, Identification and Control of Robots, 2002, ch. 9.
    """
    # Ten rows per column for the chance of a near-dependent sample set to vanish.
    names = model_parameter_names(robot, drives=drives)
    samples = 10 * (len(names) // robot.n_joints + 1)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (samples, robot.n_joints))
    dq, ddq = 2.0 * rng.standard_normal((2, samples, robot.n_joints))
    matrix = model_columns(robot, q, dq, ddq)[0] if drives else regressor(robot, q, dq, ddq)

    columns, gap = _independent(robot, matrix, names)
    grouping: Array = np.linalg.lstsq(matrix[:, columns], matrix, rcond=None)[0].astype(np.float64)
    # Rounding leaves about 1e-14 where a column takes no part in a group; geometry leaves much more where it does.
    grouping[np.abs(grouping) < 1e-10] = 0.0
    grouping[:, columns] = np.eye(len(columns))
    shown = tuple(_group_name(names, column, row) for column, row in zip(columns, grouping, strict=True))
    return BaseParameters(len(columns), gap, shown, np.array(columns, dtype=np.intp), names, grouping)


def _independent(robot: Robot, matrix: Array, names: tuple[str, ...]) -> tuple[list[int], float]:
    """Indices of the first independent columns in the order of preference, and the gap of the decision."""
    lengths = np.linalg.norm(matrix, axis=0)
    scale = lengths.max()
    basis = np.empty((matrix.shape[0], 0))
    kept: list[int] = []
    sines: list[float] = []
    for column in _preferred_order(robot, len(names)):
        rest = matrix[:, column] / max(lengths[column], _DEPENDENT * scale)
        for _ in range(2):  # the second pass removes what rounding of the first leaves (Kahan: twice is enough)
            rest = rest - basis @ (basis.T @ rest)
        sine = float(np.linalg.norm(rest))
        sines.append(sine)
        if sine > _DEPENDENT:
            kept.append(column)
            basis = np.column_stack([basis, rest / sine])
    weakest = min((sine for sine in sines if sine > _DEPENDENT), default=0.0)
    largest_dependent = max((sine for sine in sines if sine <= _DEPENDENT), default=0.0)
    gap = weakest / max(largest_dependent, np.finfo(float).eps)
    if gap < _CLEAR_GAP:
        raise UnclearRank(
            f"robot {robot.name!r}: no clear gap between independent and dependent parameters: the weakest of "
            f"{len(kept)} independent columns has sine {weakest:.2g}, the strongest dependent one "
            f"{largest_dependent:.2g} (ratio {gap:.2g}, needed {_CLEAR_GAP:.0e}); look for angles or lengths that are "
            f"almost but not exactly 0 or 90 degrees"
        )
    return sorted(kept), gap


def _preferred_order(robot: Robot, n_columns: int) -> list[int]:
    """The links' columns base to tip, each link's by _PREFERENCE, then the drives'."""
    in_link = [PARAMETER_NAMES.index(name) for name in _PREFERENCE]
    of_links = [10 * link + k for link in range(robot.n_links) for k in in_link]
    return of_links + list(range(len(of_links), n_columns))


def _group_name(names: tuple[str, ...], leader: int, row: Array) -> str:
    """Short reading of one group: the leading parameter, then the others by the size of their share."""
    row = row.round(9)  # so that order and digits do not hang on the last bits
    by_share = np.argsort(-np.abs(row), kind="stable")
    others = [k for k in by_share if row[k] != 0.0 and k != leader]
    terms = [names[leader]]
    for k in others[:_TERMS_SHOWN]:
        share = abs(row[k])
        factor = "" if share == 1.0 else f"{share:.3g} "
        terms.append(f"{'+' if row[k] > 0 else '-'} {factor}{names[k]}")
    return " ".join(terms) + (" + …" if len(others) > _TERMS_SHOWN else "")
