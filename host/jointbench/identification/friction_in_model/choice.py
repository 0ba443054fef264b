"""Which friction law a joint gets where that is left open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.fit import FOLDS, compare_laws
from jointbench.identification.friction.terms import SPEED_TERMS, friction_law
from jointbench.identification.friction_in_model.joint_laws import PLAIN
from jointbench.identification.friction_in_model.start import away_from_rest, in_rows

_LEAST_ROWS = 20 * FOLDS
"""Fewer, and a fold held out tells little of any law."""

_MOST_ROWS = 1000
"""Evenly spread: with more, laws that differ by less than matters would be told apart."""


class Choice(NamedTuple):
    """A law's name, and why."""

    law: str
    reason: str


def choose_law(data: FrictionData, excluded: Collection[str] = ()) -> Choice:
    """The simplest law whose error on rows it has not seen is within one standard error of the least.

    First among the laws of speed alone, then whether the load adds to it: see `compare_laws`.

    Args:
        data: friction of one joint with its offset, rows in time.
        excluded: laws that are no candidates.
    """
    if data.n_rows < _LEAST_ROWS or not data.both_directions:
        return Choice(PLAIN, f"{data.n_rows} rows are too few to choose a law by, or go one way only")
    rows = away_from_rest(data)
    rows = rows.part(np.arange(rows.n_rows) % -(-rows.n_rows // _MOST_ROWS) == 0)
    best = _best(rows, [name for name in SPEED_TERMS if name == PLAIN or name not in excluded])
    loaded = f"{best.law}+load"
    if loaded not in excluded and rows.load is not None and np.ptp(np.abs(rows.load)) > 0.0:
        with_load = _best(rows, [best.law, loaded])
        return with_load if with_load.law == loaded else best
    return best


def _best(data: FrictionData, names: Sequence[str]) -> Choice:
    """The best of some laws, the first of which is the simplest."""
    compared = compare_laws(data, [friction_law(in_rows(name)) for name in names])
    errors = dict(zip((fit.law.name for fit in compared.fits), compared.held_out_rms.tolist(), strict=True))
    chosen = next(name for name in names if in_rows(name) == compared.best_fit.law.name)
    simplest = errors[in_rows(names[0])]
    if chosen == names[0]:
        return Choice(chosen, "no other law errs less on unseen rows by more than chance")
    return Choice(chosen, f"its rms error on unseen rows is {errors[in_rows(chosen)] / simplest:.0%} of {names[0]}'s")
