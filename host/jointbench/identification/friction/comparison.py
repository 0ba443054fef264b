"""Which law explains a joint's friction best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.fit import Method, fit_friction
from jointbench.identification.friction.friction_fit import FrictionFit
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.laws import laws_for

FOLDS = 5


@dataclass(frozen=True)
class Comparison:
    """Several laws fitted to the same friction.

    Attributes:
        fits: one per law, the simplest first.
        held_out_rms: error on rows that a fit did not see, root mean square over all rows [N·m or N], shape (n_laws,).
        by: "bic" where each row is its own measurement; else "held_out", as rows in time err alike and BIC would
            count every one of them as evidence.
        best: which of the fits explains best.
    """

    fits: tuple[FrictionFit, ...]
    held_out_rms: Array
    by: Literal["bic", "held_out"]
    best: int

    @property
    def best_fit(self) -> FrictionFit:
        """The fit of the law that explains best."""
        return self.fits[self.best]

    @property
    def sentence(self) -> str:
        """What was chosen, and why."""
        chosen = self.best_fit.law.name
        if len(self.fits) == 1:
            return f"{chosen} is the only law that was fitted"
        if self.by == "bic":
            other = min((fit for fit in self.fits if fit is not self.best_fit), key=lambda fit: fit.bic)
            margin = other.bic - self.best_fit.bic
            return f"{chosen} explains best: its BIC is {margin:.3g} below that of {other.law.name}"
        least = int(np.argmin(self.held_out_rms))
        if least == self.best:
            return f"{chosen} explains best: no other law errs less on rows it has not seen"
        return (
            f"{chosen} explains best: it is the simplest law whose error on unseen rows is within one standard error "
            f"of that of {self.fits[least].law.name}, which errs least"
        )


def compare_laws(
    data: FrictionData, laws: Sequence[Law] | None = None, *, method: Method = "variable_projection", seed: int = 0
) -> Comparison:
    """Fit several laws and choose one.

    Rows that are their own measurements: the least BIC. Rows in time: five stretches are held out in turn, and the
    simplest law whose error on them is within one standard error of the least is chosen.

    Args:
        data: rows away from rest.
        laws: None: all that the data can be asked about.
        method, seed: as for `fit_friction`.

    Returns:
        All fits, and the best of them.

    Raises:
        FitError: too few rows.

    Source: the one-standard-error rule of Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984.
    """
    laws = laws_for(data) if laws is None else tuple(sorted(laws, key=lambda law: len(law.names)))
    seen = data.n_rows - -(-data.n_rows // FOLDS)
    laws = tuple(law for law in laws if len(law.names) < seen)
    if data.n_rows < FOLDS or not laws:
        raise FitError(f"{data.n_rows} rows are too few to compare friction laws; record more speeds")
    fits = tuple(fit_friction(data, law, method=method, seed=seed) for law in laws)
    held_out = np.array([_held_out_squares(data, law, method, seed) for law in laws])
    rms = np.sqrt(held_out.mean(axis=1))
    if not data.in_time:
        return Comparison(fits, rms, "bic", int(np.argmin([fit.bic for fit in fits])))
    return Comparison(fits, rms, "held_out", simplest_near_the_least(held_out))


def simplest_near_the_least(held_out: Array) -> int:
    """Return the first candidate whose mean error is within one standard error of the least.

    Args:
        held_out: mean square error of each candidate on each fold, the simplest first, shape (n, n_folds).
    """
    means = held_out.mean(axis=1)
    least = int(np.argmin(means))
    apart = held_out - held_out[least]
    standard_error = apart.std(axis=1, ddof=1) / held_out.shape[1] ** 0.5
    return int(np.flatnonzero(means - means[least] <= standard_error)[0])


def _held_out_squares(data: FrictionData, law: Law, method: Method, seed: int) -> Array:
    """Mean square error on each fold when it was not fitted, shape (FOLDS,)."""
    fold = _folds(data)
    errors = np.empty(FOLDS)
    for k in range(FOLDS):
        unseen = data.part(fold == k)
        fit = fit_friction(data.part(fold != k), law, method=method, seed=seed)
        errors[k] = np.mean((fit.torque(unseen) - unseen.torque) ** 2)
    return errors


def _folds(data: FrictionData) -> NDArray[np.intp]:
    """Stretches of time, or every fifth row in the order of speeds, so that no fold lacks a range of them."""
    n = data.n_rows
    if data.in_time:
        return np.arange(n) * FOLDS // n
    fold = np.empty(n, dtype=np.intp)
    fold[np.argsort(data.velocity, kind="stable")] = np.arange(n) % FOLDS
    return fold
