"""The covariance of a sum of terms made of a fit's residuals, where these are not least squares' own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jointbench.arrays import Array
from jointbench.identification.least_squares.newey_west import LongRun, Stretch, windowed_covariance
from jointbench.identification.least_squares.sandwich import LEAST_EXPECTED, expected_share
from jointbench.identification.least_squares.solution import solve
from jointbench.identification.least_squares.triangles import Triangles
from jointbench.identification.rows import Rows


def covariance_of_terms(
    stretches: Callable[[], Iterable[Stretch]], judged: Array, rows: Sequence[Rows], triangles: Triangles,
    weights: Array,
) -> LongRun:  # fmt: skip
    """Long-run covariance of terms, divided by what windows are expected to find of it in residuals.

    What the parameters have taken out of the residuals is counted as if they were those of least squares on `rows`,
    with a regressor that goes nearly the same way.

    Args:
        stretches: the terms; the same ones again each time it is called.
        judged: the window's length is that which suits judged @ terms, shape (q, p).
        rows, triangles: to count by.
        weights: of their groups, shape (n_groups,).

    Source: as `sandwich`.
    """
    found = windowed_covariance(stretches, judged)
    share = expected_share(rows, weights, solve(triangles, weights), found.lags + 1)
    return LongRun(found.covariance / max(share, LEAST_EXPECTED), found.lags)
