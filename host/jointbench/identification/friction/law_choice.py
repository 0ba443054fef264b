"""Choice of friction laws by time left out, among nested models in one set of sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.joint_laws import ALLOWED, CHOOSE, PLAIN, JointLaws, LawPoint
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.law_tables import Grid, JointState, LawFitInSums, LawTables
from jointbench.identification.friction.terms import SPEED_TERMS, Makkar, Stribeck, friction_law
from jointbench.identification.judgement import FOLDS, simplest_within_one_standard_error

_LEAST_ROWS = 20 * FOLDS
"""Fewer, and a fold left out tells little of any law."""

_FEW = f"its rows are fewer than {_LEAST_ROWS}, too few to choose a law by, or go one way only"

_ROUNDS = 5
"""Of choosing the law of each joint beside those of the others; two or three suffice."""

_GAINS = 0.01
"""Share of the squared error by which a law must fit better than all simpler ones to be tried on time left out."""

_STAYS = 0.2
"""Change of a shape's logarithm between rounds that changes no other joint's law."""

CANDIDATES = tuple(
    sorted(
        (friction_law(name + extra) for name in SPEED_TERMS for extra in ("", *(f"+{extra}" for extra in ALLOWED))),
        key=lambda law: len(law.names),
    )
)
"""Laws to choose from, the simplest first."""


class Choice(NamedTuple):
    """A law's name, why, and why simpler or better ones are not it."""

    law: str
    reason: str
    refused: tuple[str, ...] = ()


class Decision(NamedTuple):
    """A joint's law, its parameters, and the names of all joints' laws beside which it was chosen."""

    choice: Choice
    fit: LawFitInSums
    beside: tuple[str, ...]

    @property
    def state(self) -> JointState:
        """The law with its shapes."""
        return JointState(friction_law(self.choice.law), self.fit.log_shapes)


class Selection(NamedTuple):
    """Law of each joint, and where a search for the best parameters of all together begins.

    Attributes:
        picks: by joint.
        laws: of those joints that have one.
        start: base parameters and laws' parameters.
        bounds: of the laws' parameters, shape (n_parameters, 2).
        decisions: of all joints that sums were made for.
    """

    picks: Mapping[str, Choice]
    laws: JointLaws
    start: LawPoint
    bounds: Array
    decisions: Mapping[str, Decision]


def grids_of(data: Mapping[str, FrictionData], asked: Mapping[str, str]) -> dict[str, Grid]:
    """Grids that suit the speeds of each joint's rows.

    Args:
        data: friction of each joint, as `friction_left` gives it.
        asked: law of each joint, or "choose"; joints with too few rows to choose by are left out.

    Raises:
        FitError: a joint has too few rows for the law it is asked to have.
    """
    grids: dict[str, Grid] = {}
    for name, law in asked.items():
        rows, needed = data[name], _LEAST_ROWS if law == CHOOSE else len(friction_law(law).names) + 2
        if rows.n_rows < needed:
            if law == CHOOSE:
                continue
            raise FitError(
                f"joint {name!r} has {rows.n_rows} rows away from rest, and its friction law {law!r} needs "
                f"{needed} or more; record more motion of it, or give it no law"
            )
        if law == CHOOSE and not rows.both_directions:
            continue
        makkar = Makkar()
        (bell,), tanh = Stribeck().shape_bounds(rows), makkar.shape_bounds(rows)[0]
        highest = float(makkar.coefficient_bounds(rows)[0, 1])
        grids[name] = Grid((float(bell[0]), float(bell[1])), (float(tanh[0]), float(tanh[1])), highest)
    return grids


def select_laws(
    tables: LawTables,
    asked: Mapping[str, str],
    values: Array,
    excluded: Mapping[str, Mapping[str, str]],
    before: Selection | None = None,
) -> Selection:
    """Choose a law for each joint: the simplest whose error on time left out is within one standard error of the least.

    The time is left out fold by fold, and base parameters and all laws are fitted to the rest by what elimination
    leaves of the sums. Joints are gone through until all laws stay, as each is chosen beside those of the others.

    Args:
        tables: sums of all columns.
        asked: law of each joint, or "choose".
        values: of the base parameters with Coulomb and viscous friction, shape (rank,).
        excluded: laws by joint that are no candidates, and why.
        before: a selection to begin with, of which some laws are excluded now.
    """
    states, decisions = dict[str, JointState](), dict[str, Decision]()
    for name, grid in tables.grids.items():
        law = friction_law(PLAIN if asked[name] == CHOOSE else asked[name])
        states[name] = JointState(law, np.log(grid.bounds(law)[len(law.coefficients) :]).mean(axis=1))
    grams = tables.gram(tables.spread(np.concatenate([values, np.zeros(tables.size - len(values) - 1), [-1.0]])))
    if before is not None:
        decisions |= {name: of for name, of in before.decisions.items() if of.choice.law not in excluded[name]}
        states |= {name: of.state for name, of in decisions.items()}
        grams = tables.gram(tables.spread(tables.solution(grams.sum(axis=0) + tables.of_prior, states)))
    for number in range(_ROUNDS):
        is_settled = True
        for name in states:
            beside = tuple(state.law.name for other, state in states.items() if other != name)
            # The first round has weighed joints by what Coulomb and viscous friction leaves: the second is for all.
            if name in decisions and decisions[name].beside == beside and (number != 1 or before is not None):
                continue
            law = None if asked[name] == CHOOSE else states[name].law.name
            choice, fit = _pick(tables, grams, states, name, law, excluded.get(name, {}))
            decisions[name] = Decision(choice, fit, beside)
            is_settled = is_settled and _same(states[name], decisions[name].state)
            states[name] = decisions[name].state
        solution = tables.solution(grams.sum(axis=0) + tables.of_prior, states)
        grams = tables.gram(tables.spread(solution))
        if is_settled:
            break
    picks = {name: decisions[name].choice if name in decisions else Choice(PLAIN, _FEW) for name in asked}
    laws = JointLaws(tables.base, {name: friction_law(pick.law) for name, pick in picks.items() if pick.law != PLAIN})
    bounds, values_of_laws = [np.zeros((0, 2))], [np.zeros(0)]
    for name, law in laws.laws.items():
        fit = decisions[name].fit
        bounds.append(tables.grids[name].bounds(law))
        values_of_laws.append(np.concatenate([fit.coefficients[: len(law.coefficients)], np.exp(fit.log_shapes)]))
    low, high = np.concatenate(bounds).T
    solution = tables.solution(grams.sum(axis=0) + tables.of_prior, states)
    start = LawPoint(solution[: tables.base.rank][laws.kept], np.clip(np.concatenate(values_of_laws), low, high))
    return Selection(picks, laws, start, np.concatenate(bounds), decisions)


def _same(before: JointState, after: JointState) -> bool:
    return before.law.name == after.law.name and bool(np.all(np.abs(before.log_shapes - after.log_shapes) < _STAYS))


def _pick(
    tables: LawTables,
    grams: Array,
    states: Mapping[str, JointState],
    name: str,
    asked: str | None,
    excluded: Mapping[str, str],
) -> tuple[Choice, LawFitInSums]:
    """The law of a joint beside those of the others, with its parameters."""
    directions, whole = tables.directions(states, name), grams.sum(axis=0) + tables.of_prior
    reduced = tables.reduced(whole, directions, name)
    if asked is not None:
        return Choice(asked, "as asked for"), tables.best(reduced, name, friction_law(asked))
    left_out = [tables.reduced(whole - gram, directions, name) for gram in grams]
    j = tables.base.robot.joint_index(name)
    own = [sums for sums in tables.sums if sums.joint == j]
    counts = np.sum([sums.counts for sums in own], axis=0)
    laws, fits = list[Law](), list[LawFitInSums]()
    for law in CANDIDATES:
        if law.name == PLAIN or law.name not in excluded:
            fit = tables.best(reduced, name, law)
            if law.name == PLAIN or fit.squares < min(each.squares for each in fits) - _GAINS * counts.sum():
                laws.append(law)
                fits.append(fit)
    errors, spread = np.zeros((len(laws), FOLDS)), list[Array]()
    for k, (law, fit) in enumerate(zip(laws, fits, strict=True)):
        coefficients = np.zeros((FOLDS, len(fit.coefficients)))
        for fold, rest in enumerate(left_out):
            of_rest = tables.best(rest, name, law, fit.log_shapes)
            values, coefficients[fold] = rest.lift @ of_rest.values, of_rest.coefficients
            errors[k, fold] = sum(sums.squares(values, fold) for sums in own) / max(counts[fold], 1)
        # Jackknife: rows next to each other err alike, so that their number says too much.
        spread.append(np.sqrt(FOLDS - 1.0) * coefficients.std(axis=0))
    refused = dict(excluded)
    candidates = list(range(len(laws)))
    while True:
        k = candidates[simplest_within_one_standard_error(errors[candidates])]
        doubtful = [] if k == 0 else tables.uncertain(reduced, name, laws[k], fits[k], spread[k])
        if not doubtful:
            break
        told = ", ".join(f"{name}.{each}" for each in doubtful)
        refused[laws[k].name] = f"not {laws[k].name}, as the motion does not tell {told}"
        candidates.remove(k)
    share = float(np.sqrt(errors[k].mean() / errors[0].mean()))
    reason = (
        "no other law errs less on unseen rows by more than chance"
        if k == 0
        else f"its rms error on unseen rows is {share:.0%} of {PLAIN}'s"
    )
    return Choice(laws[k].name, reason, tuple(refused.values())), fits[k]
