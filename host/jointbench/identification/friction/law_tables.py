"""Sums of squares and products of base parameters beside friction laws on grids, so that a law is a subset of columns.

The torque of a law is linear in its coefficients, and nearly so in columns at grid points of its shapes: between these
it is their cubic interpolation. All columns of all joints enter the sums once; each law at each shape is then a few
combinations of them, fitted with all base parameters by what elimination leaves of the sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.variable_projection import solve_bounded_sums
from jointbench.identification.judgement import FOLDS
from jointbench.identification.rows import BaseColumns
from jointbench.model import BaseParameters
from jointbench.signals import Motion

BELLS, TANHS = 16, 14
"""Grid points of a Stribeck speed and of Makkar's shapes, evenly spaced in their logarithms: interpolation between them
is within 0.6 % of the column, over two decades of speed."""

_WIDTH = 5 + BELLS + TANHS

_SIGN, _SPEED, _FORWARD, _FORWARD_SPEED, _LOAD = range(5)
"""Places of a joint's columns: sign(v), v, the same where v > 0, and |load| sign(v); bells and tanh follow."""

_RIDGE = 1e-11
"""On the diagonal of scaled sums: a direction that nothing tells stays where it is."""

_PIECES = 2
"""Stretches of time that a fold is made of: so what is left is no motion of its own, and tells all base parameters."""

_COARSE = {0: 1, 1: 61, 3: 7}
"""Points along each shape at which a search begins, by the number of shapes."""

_ZOOMS = 4
"""Times that the three points along each shape are drawn closer around the best."""


class Grid(NamedTuple):
    """Bounds of a joint's shapes: Stribeck speed and Makkar's, least and largest [SI]; and of Makkar's first height."""

    bell: tuple[float, float]
    tanh: tuple[float, float]
    highest: float

    def bounds(self, law: Law) -> Array:
        """Bounds of a law's parameters, shape (n_parameters, 2)."""
        of_shape = self.bell if law.name.startswith("stribeck") else self.tanh
        largest = [self.highest if parameter.name == "gamma1" else np.inf for parameter in law.coefficients]
        low = [parameter.lower for parameter in law.coefficients]
        return np.array([*zip(low, largest, strict=True), *([of_shape] * len(law.shapes))])

    def columns(self, velocity: Array, load: Array | None) -> Array:
        """All of a joint's columns, shape (35, n).

        Args:
            velocity: [rad/s or m/s], shape (n,).
            load: [N·m or N], shape (n,).
        """
        sign, forward = np.sign(velocity), np.maximum(velocity, 0.0)
        loaded = np.zeros_like(velocity) if load is None else np.abs(load) * sign
        bells = sign * np.exp(-((velocity / np.geomspace(*self.bell, BELLS)[:, None]) ** 2))
        tanhs = np.tanh(np.geomspace(*self.tanh, TANHS)[:, None] * velocity)
        return np.vstack([sign, velocity, np.sign(forward), forward, loaded, bells, tanhs])

    def combinations(self, law: Law, log_shapes: Array) -> Array:
        """Combinations of the columns that are a law's, shape (n, n_coefficients, 35), of shapes (n, n_shapes)."""
        first, *extras = law.name.split("+")
        rows = np.zeros((len(log_shapes), len(law.coefficients), _WIDTH))
        if first == "asymmetric":
            rows[:, 0, _FORWARD] = rows[:, 1, _FORWARD_SPEED] = rows[:, 2, _SIGN] = rows[:, 3, _SPEED] = 1.0
            rows[:, 2, _FORWARD] = rows[:, 3, _FORWARD_SPEED] = -1.0
        elif first == "stribeck":
            rows[:, 0, _SIGN] = rows[:, 2, _SPEED] = 1.0
            rows[:, 1, 5 : 5 + BELLS] = _between(log_shapes[:, 0], self.bell, BELLS)
        elif first == "makkar":
            fast, slow, coulomb = (_between(shape, self.tanh, TANHS) for shape in log_shapes.T)
            rows[:, 0, 5 + BELLS :], rows[:, 1, 5 + BELLS :] = fast - slow, coulomb
            rows[:, 2, _SPEED] = 1.0
        else:
            rows[:, 0, _SIGN] = rows[:, 1, _SPEED] = 1.0
        if extras:
            rows[:, -1, _LOAD] = 1.0
        return rows


def _between(log_shape: Array, bounds: tuple[float, float], count: int) -> Array:
    """Weights of grid points whose cubic interpolates at log shapes (n,), shape (n, count)."""
    low, high = np.log(bounds)
    place = (log_shape - low) * ((count - 1) / max(high - low, 1e-12))
    first = np.clip(np.floor(place).astype(np.intp) - 1, 0, count - 4)
    t = place - first
    weights = np.zeros((len(log_shape), count))
    rows = np.arange(len(log_shape))
    for k in range(4):
        others = [m for m in range(4) if m != k]
        weights[rows, first + k] = np.prod([(t - m) / (k - m) for m in others], axis=0)
    return weights


class JointState(NamedTuple):
    """A law with its shapes' logarithms, shape (n_shapes,)."""

    law: Law
    log_shapes: Array


class Reduced(NamedTuple):
    """Sums of squares and products of a joint's law columns (offset last) and torque, all else eliminated.

    Attributes:
        sums: shape (m + 1, m + 1).
        lift: all values (base parameters, all columns' coefficients, -1) by the joint's, shape (size, m + 1).
    """

    sums: Array
    lift: Array


class LawFitInSums(NamedTuple):
    """Best parameters of a law in sums: coefficients with the offset's behind, logarithms of shapes, sum of squares."""

    coefficients: Array
    log_shapes: Array
    values: Array
    squares: float


class _Sums(NamedTuple):
    """Sums of one joint's rows in one recording, fold by fold."""

    joint: int
    places: NDArray[np.intp]
    products: Array
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, joint: int, places: NDArray[np.intp]) -> _Sums:
        """Sums of no rows yet."""
        return cls(joint, places, np.zeros((FOLDS, len(places), len(places))), np.zeros(FOLDS, dtype=np.intp))

    def add(self, rows: Array, used: NDArray[np.bool_], fold: NDArray[np.intp]) -> None:
        """Add rows, shape (n_places, n), each to its fold."""
        for k in np.unique(fold[used]).tolist():
            picked = rows[:, used & (fold == k)]
            self.products[k] += picked @ picked.T
            self.counts[k] += picked.shape[1]

    def squares(self, values: Array, fold: int) -> float:
        """Sum of squared residuals of a fold at all values, shape (size,)."""
        own = values[self.places]
        return max(float(own @ self.products[fold] @ own), 0.0)


@dataclass(frozen=True, eq=False)
class LawTables:
    """Sums of squares and products of all columns of base parameters and laws, by joint and fold of time.

    Attributes:
        base: base parameters.
        grids: of the joints that may have a law, by name.
        sums: of each joint of each recording.
        prior: rows (regressor | value) known beside the data, shape (n, rank + 1).
    """

    base: BaseParameters
    grids: Mapping[str, Grid]
    sums: tuple[_Sums, ...]
    prior: Array | None

    @classmethod
    def of(cls, problem: Problem, values: Array, grids: Mapping[str, Grid], prior: Array | None) -> LawTables:
        """Sum up the rows of a problem without laws.

        Args:
            problem: the rows.
            values: base parameters whose torque is load to friction, shape (rank,).
            grids: by joint name.
            prior: as the attribute.
        """
        base, sums = problem.base, dict[tuple[int, int], _Sums]()
        joints = {base.robot.joint_index(name): grid for name, grid in grids.items()}
        first = {j: base.rank + _WIDTH * k for k, j in enumerate(joints)}
        friction = np.array([name.endswith((".viscous", ".coulomb")) for name in base.leading_names])
        loading, regressor = np.where(friction, 0.0, values), BaseColumns(base)

        def columns(motion: Motion) -> dict[int, Array]:
            rows = regressor(motion.q, motion.dq, motion.ddq)
            loads = {j: loading[rows[j].parameters] @ rows[j].columns for j in joints}
            return {j: grid.columns(motion.dq[:, j], loads[j]) for j, grid in joints.items()}

        ends = [max((block.stop for block in part.blocks()), default=0) for part in problem.parts]
        total, seen = max(sum(ends), 1), 0
        for number, (part, observations) in enumerate(zip(problem.parts, problem.observations, strict=True)):
            stretches = {stretch.rows.start: stretch for stretch in observations.stretches if stretch.n_rows}
            for block in part.blocks():
                own = observations.filter.of_motion(stretches[block.start], columns)
                fold = _PIECES * FOLDS * (seen + np.arange(block.start, block.stop)) // total % FOLDS
                for j in np.flatnonzero(block.used.any(axis=0)).tolist():
                    which, of_base = block.of_joint(j)
                    of_law = own.get(j, np.zeros((0, len(fold))))
                    places = np.concatenate([which, first.get(j, 0) + np.arange(len(of_law)), [_last(base, grids)]])
                    here = sums.setdefault((number, j), _Sums.of(j, places.astype(np.intp)))
                    here.add(np.vstack([of_base, of_law, block.torque[None, :, j]]), block.used[:, j], fold)
            seen += ends[number]
        return cls(base, grids, tuple(sums.values()), prior)

    @property
    def size(self) -> int:
        """Base parameters, all columns and the torque."""
        return _last(self.base, self.grids) + 1

    def own(self, joint: str) -> NDArray[np.intp]:
        """Places of a joint's columns."""
        return self.base.rank + _WIDTH * list(self.grids).index(joint) + np.arange(_WIDTH)

    def gram(self, spread: Array) -> Array:
        """Sums over all rows of each fold, weighted, shape (FOLDS, size, size).

        Args:
            spread: deviation of the rows of each recording's joints [N·m or N], in the order of `sums`.
        """
        grams = np.zeros((FOLDS, self.size, self.size))
        for own, sigma in zip(self.sums, spread, strict=True):
            grams[:, own.places[:, None], own.places] += own.products / sigma**2
        return grams

    @cached_property
    def of_prior(self) -> Array:
        """Sums of the prior's rows, shape (size, size)."""
        sums = np.zeros((self.size, self.size))
        if self.prior is not None:
            places = np.append(np.arange(self.base.rank), self.size - 1)
            sums[np.ix_(places, places)] = self.prior.T @ self.prior
        return sums

    def spread(self, values: Array) -> Array:
        """Root mean square residual of each recording's joints, at all values, shape (size,)."""
        squares = np.array([values[own.places] @ own.products.sum(axis=0) @ values[own.places] for own in self.sums])
        power = np.array([own.products[:, -1, -1].sum() for own in self.sums])
        counts = np.array([own.counts.sum() for own in self.sums])
        return np.sqrt(np.maximum(squares, 1e-12 * power) / counts)

    def offset(self, joint: str) -> int | None:
        """Place of a joint's offset among the base parameters."""
        name = f"{joint}.offset"
        return self.base.leading_names.index(name) if name in self.base.leading_names else None

    def directions(self, states: Mapping[str, JointState], without: str | None = None) -> Array:
        """Free directions beside laws: base parameters that none stands for, and the laws' coefficients, (size, n).

        Args:
            states: law of each joint.
            without: joint whose friction and offset are left out.
        """
        names, columns = self.base.leading_names, list[Array]()
        taken = {f"{name}.{end}" for name in self.grids for end in ("coulomb", "viscous")}
        for name, state in states.items():
            if name == without or state.law.name.startswith("asymmetric"):
                taken.add(f"{name}.offset")
            if name != without:
                rows = self.grids[name].combinations(state.law, state.log_shapes[None])[0]
                lifted = np.zeros((len(rows), self.size))
                lifted[:, self.own(name)] = rows
                columns.append(lifted.T)
        kept = [k for k, name in enumerate(names) if name not in taken]
        return np.hstack([np.eye(self.size)[:, kept], *columns])

    def reduced(self, gram: Array, directions: Array, joint: str) -> Reduced:
        """Eliminate what is free from sums, but for a joint's columns, offset and torque."""
        offset = self.offset(joint)
        places = np.concatenate([self.own(joint), [] if offset is None else [offset], [self.size - 1]]).astype(np.intp)
        whole = directions.T @ gram @ directions
        across = directions.T @ gram[:, places]
        solved = solve_sums(whole, across)
        lift = -directions @ solved
        lift[places, np.arange(len(places))] += 1.0
        sums = gram[np.ix_(places, places)] - across.T @ solved
        return Reduced(0.5 * (sums + sums.T), lift)

    def best(self, reduced: Reduced, joint: str, law: Law, near: Array | None = None) -> LawFitInSums:
        """Least squares of a law in reduced sums, over its shapes and coefficients within their bounds.

        Args:
            reduced: of the joint.
            joint: its name.
            law: of it.
            near: logarithms of shapes to search around, shape (n_shapes,); None: all of the grid.
        """
        bounds = self.grids[joint].bounds(law)
        log_bounds = np.log(bounds[len(law.coefficients) :])
        span, count = log_bounds[:, 1] - log_bounds[:, 0], _COARSE[len(law.shapes)]
        if near is None or not law.shapes:
            axes = [low + width * _inner(count) for low, width in zip(log_bounds[:, 0], span, strict=True)]
            best = self._at(reduced, joint, law, bounds, _mesh(axes))
            if not law.shapes:
                return best
            step, zooms, near = span / count, _ZOOMS, best.log_shapes
        else:
            best, step, zooms = None, span / TANHS, _ZOOMS - 1
        for _ in range(zooms):
            axes = [
                np.clip(center + width * np.array([-0.5, 0.0, 0.5]), *bound)
                for center, width, bound in zip(near, step, log_bounds, strict=True)
            ]
            best = self._at(reduced, joint, law, bounds, _mesh(axes))
            step, near = 0.5 * step, best.log_shapes
        assert best is not None
        return best

    def _at(self, reduced: Reduced, joint: str, law: Law, bounds: Array, log_shapes: Array) -> LawFitInSums:
        """The best of some shapes, (n, n_shapes)."""
        combined = self.combinations(joint, law, log_shapes)
        sums, n = reduced.sums, combined.shape[1]
        normal = combined @ sums[:-1, :-1] @ np.swapaxes(combined, 1, 2)
        right = combined @ sums[:-1, -1]
        free = np.full((n - len(law.coefficients), 2), [-np.inf, np.inf])
        coefficients, _ = solve_bounded_sums(normal, right, np.vstack([bounds[: len(law.coefficients)], free]))
        squares = np.einsum("nk,nkl,nl->n", coefficients, normal, coefficients) - 2.0 * np.sum(
            coefficients * right, axis=1
        )
        k = int(np.argmin(squares))
        values = np.append(coefficients[k] @ combined[k], -1.0)
        return LawFitInSums(coefficients[k], log_shapes[k], values, float(squares[k] + sums[-1, -1]))

    def combinations(self, joint: str, law: Law, log_shapes: Array) -> Array:
        """Combinations of a joint's columns, offset last, that are a law's coefficients and its offset."""
        own = self.grids[joint].combinations(law, log_shapes)
        if self.offset(joint) is None:
            return own
        whole = np.concatenate([own, np.zeros((*own.shape[:2], 1))], axis=2)
        if law.name.startswith("asymmetric"):
            return whole
        offset = np.zeros((len(own), 1, whole.shape[2]))
        offset[:, 0, -1] = 1.0
        return np.concatenate([whole, offset], axis=1)

    def uncertain(self, reduced: Reduced, joint: str, law: Law, fit: LawFitInSums, spread: Array) -> list[str]:
        """Coefficients of a law that are at most two standard deviations from zero, shapes being free too.

        Args:
            reduced: of the joint's columns over all rows.
            joint, law, fit: what was fitted.
            spread: standard deviations of the coefficients by time left out, which count where they are larger.
        """
        n, step = len(law.coefficients), 1e-4
        rows = [self.combinations(joint, law, fit.log_shapes[None])[0]]
        for k in range(len(law.shapes)):
            moved = np.repeat(fit.log_shapes[None], 2, axis=0)
            moved[:, k] += [step, -step]
            high, low = self.combinations(joint, law, moved)
            rows.append((fit.coefficients @ (high - low) / (2.0 * step))[None])
        jacobian = np.vstack(rows)
        information = jacobian @ reduced.sums[:-1, :-1] @ jacobian.T
        covariance = solve_sums(information, np.eye(len(information)))
        sigma = np.maximum(np.sqrt(np.maximum(np.diag(covariance)[: len(spread)], 0.0)), spread)[:n]
        return [
            parameter.name
            for parameter, value, deviation in zip(law.coefficients, fit.coefficients, sigma, strict=False)
            if not abs(value) > 2.0 * deviation
        ]

    def solution(self, gram: Array, states: Mapping[str, JointState]) -> Array:
        """Base parameters and coefficients of all columns, then -1, of given laws, shape (size,)."""
        directions = self.directions(states)
        free = solve_sums(directions.T @ gram @ directions, directions.T @ gram[:, -1:])[:, 0]
        values = directions @ free
        values[-1] = -1.0
        return values


def _last(base: BaseParameters, grids: Mapping[str, Grid]) -> int:
    """Place of the torque."""
    return base.rank + _WIDTH * len(grids)


def solve_sums(sums: Array, right: Array) -> Array:
    """Solve normal equations scaled to a diagonal of ones, with a slight ridge."""
    scale = np.sqrt(np.diag(sums))
    scale[scale <= 0.0] = 1.0
    scaled = sums / (scale[:, None] * scale) + _RIDGE * np.eye(len(sums))
    return np.asarray(linalg.solve(scaled, right / scale[:, None], assume_a="sym") / scale[:, None])


def _inner(count: int) -> Array:
    """Evenly spaced points strictly between 0 and 1."""
    return (np.arange(count) + 0.5) / count


def _mesh(axes: Sequence[Array]) -> Array:
    """All combinations of points, shape (n, n_axes)."""
    if not axes:
        return np.zeros((1, 0))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
