"""Friction with memory fitted together with the base parameters, to all rows of recordings of motors' torques."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.friction.memory import Carriers, FrictionWithMemory
from jointbench.identification.friction.model_memory import Axis, ModelMemory, axes_of, columns_of, loading
from jointbench.identification.judgement import FOLDS, TwoErrors, simplest_within_one_standard_error
from jointbench.identification.least_squares import Estimate
from jointbench.identification.observations import Observations
from jointbench.identification.rows import Rows
from jointbench.model import BaseParameters

ESTIMATORS = ("map", "wls", "ols", "irls")
"""Beside these it is fitted where nothing else is asked for; the others' parameters are not of the rows alone."""

MEMORY = "memory"
"""What `--friction` calls it."""

_PLAIN = "coulomb and viscous"

_OF_DRIVE = (".rotor_inertia", ".viscous", ".coulomb", ".offset")

_FIRST_LOOK = Carriers(stribeck_speeds=(), load=False)
"""Columns by which it is decided whether memory helps at all: a fifth of all."""

_WORTH, _WORTH_TOGETHER = 0.9, 0.95
"""Error on held-out rows, as a share of that with Coulomb and viscous friction, which friction with memory must reach,
of a joint and of all together: it is not worth its state for less. Of real gears and motors it is 0.4 to 0.85."""

_EXACT = 0.005
"""Of a joint's torque: where Coulomb and viscous friction leave less over all rows, no current sensor tells more."""

_LOOKED_AT = 20000
"""Rows of time by which carriers are chosen, some minutes of motion: more of a long log tell little more."""

_SINGULAR = 1e-13
"""Of products of scaled columns: their rounding is some hundred times less, and nothing smaller is told of a family."""

_ROUNDS = 2
"""Of weighting joints by what is left of their torques."""


class _Table(NamedTuple):
    """All that is asked of one joint's rows.

    Attributes:
        base: base parameters that act on the joint.
        axes: numbers of the axes that do.
        products: of the columns of both, one axis after the other, and torque, [X y]ᵀ [X y] of each fold, shape
            (FOLDS, n + 1, n + 1).
        counts: rows of each fold, shape (FOLDS,).
    """

    base: NDArray[np.intp]
    axes: list[int]
    products: Array
    counts: NDArray[np.intp]

    def spread(self, parameters: Array) -> float:
        """Root mean square of what base parameters leave of the torque, never zero."""
        whole = self.products.sum(axis=0)
        own = np.zeros(len(whole))
        own[: len(self.base)], own[-1] = parameters[self.base], -1.0
        least = max(1e-18 * float(whole[-1, -1]), np.finfo(np.float64).tiny)
        return float(np.sqrt(max(float(own @ whole @ own), least) / self.counts.sum()))


def fit_memory(
    base: BaseParameters,
    recordings: Sequence[Observations],
    parts: Sequence[Rows],
    plain: Estimate,
    errors: TwoErrors,
) -> tuple[ModelMemory | None, str]:
    """Fit base parameters and friction with memory together, to all rows, where that errs less on rows held out.

    1. Of each joint, or joints that share a motor: whether carriers of amplitude 1 err less on held-out fifths of the
       recording than Coulomb and viscous friction by more than chance, what the links do being known but for its size.
    2. Of those where they do: which family of carriers and amplitudes, likewise.
    3. All base parameters and all weights that any fold made use of, in one linear problem, weights >= 0: on all rows,
       and on each four fifths, to tell the held-out errors of the whole. Directions of the base parameters that the
       data leave open stay as they are.

    Args:
        base: what the columns stand for.
        recordings: observations of motors' torques.
        parts: their rows.
        plain: base parameters beside Coulomb and viscous friction.
        errors: with these.

    Returns:
        The friction, or None where Coulomb and viscous friction err no more; and why.
    """
    inexact = np.nan_to_num(errors.all.relative) > _EXACT
    axes = tuple(axis for axis in axes_of(base) if inexact[axis.shares != 0.0].any())
    if not axes:
        return None, f"no friction with memory: Coulomb and viscous friction leave no joint more than {_EXACT:.1%}"
    rows = sum(int(block.complete.sum()) for part in parts for block in part.blocks())
    if rows < FOLDS * (len(_OF_DRIVE) + 2):
        return None, f"no friction with memory: {rows} rows are too few to hold some out"
    look = _FamilySearch(base, recordings, parts, plain, axes, _FIRST_LOOK, None)
    helped = {axis.name for axis, choice in look.chosen if choice.share <= _WORTH}
    if helped:
        theirs = tuple(axis for axis in axes if axis.name in helped)
        search = replace(look, axes=theirs, carriers=Carriers(), load=plain.parameters)
        chosen = [(axis, choice) for axis, choice in search.chosen if choice.share <= _WORTH]
        if chosen:
            return search.together(chosen, errors)
    return None, "no friction with memory: it errs no less than Coulomb and viscous friction on rows held out"


class _Choice(NamedTuple):
    """A family for an axis, which of the grids' columns it made use of, and all families' held-out errors."""

    family: str
    used: NDArray[np.bool_]
    held_out_rms: dict[str, float]

    @property
    def share(self) -> float:
        """Its held-out error as a share of that with Coulomb and viscous friction."""
        return self.held_out_rms[self.family] / self.held_out_rms[_PLAIN]


@dataclass(frozen=True, eq=False)
class _FamilySearch:
    """Rows with columns of some axes.

    Attributes:
        base, recordings, parts, plain: as of `fit_memory`.
        axes: that may have memory.
        carriers: their grids.
        load: base parameters whose torque is load, with all others; None: no grid asks for load.
    """

    base: BaseParameters
    recordings: Sequence[Observations]
    parts: Sequence[Rows]
    plain: Estimate
    axes: tuple[Axis, ...]
    carriers: Carriers
    load: Array | None

    @property
    def chosen(self) -> list[tuple[Axis, _Choice]]:
        """A family for each axis: the simplest whose error on held-out rows is within one standard error of the least.

        Axes that push the same joint have the same.
        """
        tables = self._tables([(axis, self.carriers) for axis in self.axes])
        choices: list[tuple[Axis, _Choice]] = []
        for group in _groups(self.axes, tables):
            choices += zip((self.axes[a] for a in group), self._choice(tables, group), strict=True)
        return choices

    def together(self, chosen: Sequence[tuple[Axis, _Choice]], errors: TwoErrors) -> tuple[ModelMemory | None, str]:
        """All base parameters and the chosen columns in one problem; and whether that errs less on held-out rows."""
        problem = _Together(self, chosen, self.plain.parameters)
        tables = self._tables([(axis, self.carriers) for axis, _ in chosen], problem.of_used)
        memory = problem.solve(tables, errors)
        if self.load is not None and any(friction.carriers.load for _, friction in memory.axes):
            # Load is what the model itself has before friction.
            again = replace(self, load=memory.parameters)
            tables = again._tables([(axis, self.carriers) for axis, _ in chosen], problem.of_used)
            memory = problem.solve(tables, errors)
        ours, plain = problem.held_out(tables)
        by_chance = simplest_within_one_standard_error(np.array([plain.sum(axis=0), ours.sum(axis=0)])) == 0
        if by_chance or ours.sum() > _WORTH_TOGETHER**2 * plain.sum():
            return None, "no friction with memory: with all joints together it errs no less on rows held out"
        rows = np.array([0 if table is None else table.counts.sum() for table in tables])
        scale = np.divide(problem.sigma(tables) ** 2, rows, out=np.full(len(rows), np.nan), where=rows > 0)
        memory = replace(
            memory,
            held_out_rms=np.sqrt(ours.sum(axis=1) * scale),
            plain_held_out_rms=np.sqrt(plain.sum(axis=1) * scale),
        )
        return memory, memory.sentence

    def _tables(
        self, axes: Sequence[tuple[Axis, Carriers]], used: Sequence[NDArray[np.bool_]] | None = None
    ) -> list[_Table | None]:
        """Return the table of each joint, None of those without rows; with columns in use alone, once known."""
        load = loading(self.base, self.plain.parameters if self.load is None else self.load)
        most = _LOOKED_AT // len(self.recordings) if used is None else None
        columns = [replace(columns_of(observations, axes, load), most=most) for observations in self.recordings]
        total = sum(
            int(block.complete.sum())
            for part, friction in zip(self.parts, columns, strict=True)
            for block in part.blocks()
            if block.start in friction.asked
        )
        n, seen = self.base.robot.n_joints, 0
        tables: list[_Table | None] = [None] * n
        for observations, part, friction in zip(self.recordings, self.parts, columns, strict=True):
            informative = observations.information.informative & self.base.robot.modelled
            for block, columns_of_block in zip(part.blocks(), friction.blocks(), strict=True):
                if block.start not in friction.asked:
                    continue
                rows = np.flatnonzero(block.complete)
                fold = FOLDS * (seen + np.arange(len(rows))) // total
                seen += len(rows)
                for j in np.flatnonzero(informative).tolist():
                    base, regressor = block.of_joint(j)
                    own = columns_of_block.get(j, np.zeros((0, len(block.torque))))
                    if used is not None and len(own):
                        own = own[np.concatenate([used[number] for number in friction.on_joint(j)])]
                    # Without memory a joint at rest has no model: such rows would bend what all joints share.
                    modelled = slice(None) if used is None or friction.on_joint(j) else block.used[rows, j]
                    table = np.vstack([regressor, own, block.torque[None, :, j]])[:, rows[modelled]]
                    of_fold = fold[modelled]
                    here = tables[j] or _Table(
                        base,
                        friction.on_joint(j),
                        np.zeros((FOLDS, len(table), len(table))),
                        np.zeros(FOLDS, dtype=np.intp),
                    )
                    tables[j] = here
                    for k in np.unique(of_fold).tolist():
                        here.products[k] += table[:, of_fold == k] @ table[:, of_fold == k].T
                        here.counts[k] += np.count_nonzero(of_fold == k)
        return [table if table is not None and table.counts.all() else None for table in tables]

    def _choice(self, tables: Sequence[_Table | None], group: list[int]) -> Iterator[_Choice]:
        """A family for the axes that push the same joints."""
        joints = [j for j, table in enumerate(tables) if table is not None and {*table.axes} & {*group}]
        own = [table for j in joints if (table := tables[j]) is not None]
        present = np.unique(np.concatenate([table.base for table in own]))
        names, width, values = self.base.leading_names, self.carriers.n_columns, self.plain.parameters
        coulomb = [names.index(f"{self.axes[a].name}.coulomb") for a in group]
        drives = [k for k in present.tolist() if names[k].endswith(_OF_DRIVE) and k not in coulomb]
        links = np.where([name.endswith(_OF_DRIVE) for name in names], 0.0, values)
        count, size = 1 + len(drives), 1 + len(drives) + len(group) * (1 + width) + 1
        grams = np.zeros((FOLDS, size, size))
        for table in own:
            n = len(table.base)
            embedding = np.zeros((n + len(table.axes) * width + 1, size))
            embedding[:n, 0] = links[table.base]
            embedding[:n, 1:count] = table.base[:, None] == drives
            embedding[:n, count : count + len(group)] = table.base[:, None] == coulomb
            for place, a in enumerate(table.axes):
                first = count + len(group) + group.index(a) * width
                embedding[n + place * width : n + (place + 1) * width, first : first + width] = np.eye(width)
            embedding[-1, -1] = 1.0
            grams += embedding.T @ table.products @ embedding / table.spread(values) ** 2
        families = [(_PLAIN, np.repeat([True, False], [len(group), len(group) * width]))]
        families += [
            (name, np.concatenate([np.zeros(len(group), dtype=np.bool_), np.tile(which, len(group))]))
            for name, which in self.carriers.candidates()
        ]
        whole, counts = grams.sum(axis=0), np.sum([table.counts for table in own], axis=0)
        solutions = [[_solved(whole - gram, count, which) for gram in grams] for _, which in families]
        squares = np.array(
            [[v @ gram @ v / n for v, gram, n in zip(solution, grams, counts, strict=True)] for solution in solutions]
        )
        best = simplest_within_one_standard_error(squares)
        rms = {name: float(np.sqrt(square.mean())) for (name, _), square in zip(families, squares, strict=True)}
        every = np.array([*solutions[best], _solved(whole, count, families[best][1])])
        weights = every[:, count + len(group) : -1].reshape(len(every), len(group), width)
        for used in np.any(weights > 0.0, axis=0):
            yield _Choice(families[best][0], used, rms)


@dataclass(frozen=True, eq=False)
class _Together:
    """All base parameters that the data tell, and the weights of columns in use.

    Attributes:
        search: whose rows.
        chosen: axes with memory and what they make use of.
        start: base parameters, which stay where nothing is told.
    """

    search: _FamilySearch
    chosen: Sequence[tuple[Axis, _Choice]]
    start: Array

    @property
    def of_used(self) -> list[NDArray[np.bool_]]:
        """Columns in use, of each axis."""
        return [choice.used for _, choice in self.chosen]

    def solve(self, tables: Sequence[_Table | None], errors: TwoErrors) -> ModelMemory:
        """Solve for all parameters on all rows."""
        parameters, weights = self._solution(tables, range(FOLDS), memory=True)
        carriers, axes, first = self.search.carriers, list[tuple[Axis, FrictionWithMemory]](), 0
        for axis, choice in self.chosen:
            whole = np.zeros(carriers.n_columns)
            count = int(np.count_nonzero(choice.used))
            whole[choice.used] = weights[first : first + count]
            first += count
            axes.append((axis, FrictionWithMemory(carriers, whole, choice.family, choice.held_out_rms).compact))
        unknown = np.full(self.search.base.robot.n_joints, np.nan)
        return ModelMemory(self.search.base, parameters, tuple(axes), errors, unknown, unknown)

    def held_out(self, tables: Sequence[_Table | None]) -> tuple[Array, Array]:
        """Squared error of each joint in each fold that was held out, over σ², with memory and without.

        Shape (n_joints, FOLDS) each.
        """
        sigma = self.sigma(tables)
        both = np.zeros((2, len(tables), FOLDS))
        for way, memory in enumerate((True, False)):
            for k in range(FOLDS):
                parameters, weights = self._solution(tables, [f for f in range(FOLDS) if f != k], memory=memory)
                for j, table in enumerate(tables):
                    if table is not None:
                        of_axes = [self._of_axis(weights, a) for a in table.axes]
                        own = np.concatenate([parameters[table.base], *of_axes, [-1.0]])
                        both[way, j, k] = own @ table.products[k] @ own / sigma[j] ** 2
        return both[0], both[1]

    def sigma(self, tables: Sequence[_Table | None]) -> Array:
        """Return the rms residual of Coulomb and viscous friction of each joint [N·m or N], 1 where it has no rows."""
        return np.array([1.0 if table is None else table.spread(self.start) for table in tables])

    def _of_axis(self, weights: Array, axis: int) -> Array:
        counts = [int(np.count_nonzero(choice.used)) for _, choice in self.chosen]
        return weights[sum(counts[:axis]) : sum(counts[: axis + 1])]

    def _solution(self, tables: Sequence[_Table | None], folds: Iterable[int], *, memory: bool) -> tuple[Array, Array]:
        """Base parameters, shape (rank,), and weights of all columns in use, of some folds' rows."""
        names = self.search.base.leading_names
        counts = [int(np.count_nonzero(choice.used)) for _, choice in self.chosen]
        ends = np.cumsum([0, *counts])
        given = np.isfinite(np.diag(self.search.plain.covariance))
        start = self.start.copy()
        if memory:
            replaced = [names.index(f"{axis.name}.coulomb") for axis, _ in self.chosen]
            start[replaced], given[replaced] = 0.0, False
        free = np.flatnonzero(given)
        picked, sigma, grams, had = list(folds), self.sigma(tables), list[Array](), list[int]()
        size = len(free) + int(ends[-1]) + 1
        for table in tables:
            if table is None:
                continue
            n = len(table.base)
            embedding = np.zeros((table.products.shape[1], size))
            embedding[:n, : len(free)] = table.base[:, None] == free
            embedding[-1, -1] = 1.0
            # The torque that is left beside what the parameters were: what nothing tells stays as it was.
            shift = np.eye(len(embedding))
            shift[:n, -1] = -start[table.base]
            for a in table.axes:
                embedding[n : n + counts[a], len(free) + ends[a] : len(free) + ends[a + 1]] = np.eye(counts[a])
                n += counts[a]
            grams.append(embedding.T @ shift.T @ table.products[picked].sum(axis=0) @ shift @ embedding)
            had.append(int(table.counts[picked].sum()))
        prior = self._prior(start, free, size)
        spread = sigma[[table is not None for table in tables]]
        which, solution = np.full(int(ends[-1]), memory), np.zeros(size)
        for _ in range(_ROUNDS):
            whole = np.sum([g / s**2 for g, s in zip(grams, spread, strict=True)], axis=0)
            solution = _solved(whole + prior, len(free), which)
            mean_squares = [max(float(solution @ gram @ solution), 0.0) / n for gram, n in zip(grams, had, strict=True)]
            spread = np.maximum(np.sqrt(mean_squares), 1e-9 * spread.max())
        parameters = start.copy()
        parameters[free] += solution[: len(free)]
        return parameters, solution[len(free) : -1]

    def _prior(self, start: Array, free: NDArray[np.intp], size: int) -> Array:
        """Products of the rows by which the estimate knows of its parameters beside the data, (size, size)."""
        rows = self.search.plain.prior
        if rows is None:
            return np.zeros((size, size))
        own = np.zeros((len(rows), size))
        own[:, : len(free)] = rows[:, free]
        own[:, -1] = rows[:, -1] - rows[:, :-1] @ start
        return own.T @ own


def _solved(products: Array, n_free: int, which: NDArray[np.bool_]) -> Array:
    """Least squares of y = X p + C w, w >= 0, by the products [X C y]ᵀ [X C y].

    Args:
        products: shape (n + 1, n + 1).
        n_free: columns of X; in directions that nothing tells p is zero.
        which: columns of C that count, shape (n - n_free,); the others' w is zero.

    Returns:
        (p, w, -1), shape (n + 1,), so that v @ products @ v is the sum of squares that is left.
    """
    picked = np.concatenate([np.arange(n_free), n_free + np.flatnonzero(which)])
    scale = np.sqrt(np.diag(products))
    scale[scale == 0.0] = 1.0
    scaled = products / (scale[:, None] * scale)
    free, bounded = scaled[:n_free, :n_free], scaled[np.ix_(picked[n_free:], picked[n_free:])]
    across, right = scaled[:n_free, picked[n_free:]], scaled[:, -1]
    values, vectors = np.linalg.eigh(free)
    kept = values > _SINGULAR * max(float(values[-1]), np.finfo(np.float64).tiny)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    solution = np.zeros(len(products))
    solution[-1] = -1.0
    weights = np.zeros(len(bounded))
    if len(weights):
        values, vectors = np.linalg.eigh(bounded - across.T @ inverse @ across)
        roots = np.sqrt(np.maximum(values, 0.0) + _SINGULAR)  # rounding leaves less than 0
        rest = right[picked[n_free:]] - across.T @ (inverse @ right[:n_free])
        limit = 100 * len(rest)
        weights, _ = scipy.optimize.nnls(roots[:, None] * vectors.T, (vectors.T @ rest) / roots, maxiter=limit)
    solution[:n_free] = inverse @ (right[:n_free] - across @ weights) * scale[-1] / scale[:n_free]
    solution[picked[n_free:]] = weights * scale[-1] / scale[picked[n_free:]]
    return solution


def _groups(axes: Sequence[Axis], tables: Sequence[_Table | None]) -> list[list[int]]:
    """Axes that push the same joints, directly or by way of others; none whose joints have no rows."""
    groups: list[set[int]] = []
    for table in tables:
        if table is None or not table.axes:
            continue
        own = {*table.axes}
        own = own.union(*(group for group in groups if group & own))
        groups = [group for group in groups if not group & own] + [own]
    whole = [sorted(group) for group in groups]
    bare = {j for j, table in enumerate(tables) if table is None}
    return [group for group in whole if not any(axes[a].shares[j] for a in group for j in bare)]
