"""Normal equations of the regressor without the regressor: its columns live for one slice of samples only."""

from __future__ import annotations

import numpy as np

from jointbench.dynamics.kernels.columns import Ten, body_terms, columns
from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import (
    LANES,
    At,
    Doubles,
    Number,
    load,
    load_strided,
    load_ten,
    store,
    store_ten,
)
from jointbench.dynamics.kernels.motion import lift_base, move_body, work_size
from jointbench.dynamics.kernels.sharing import Counters, finish, take
from jointbench.dynamics.tree import Tree

_U = np.uint64
_LANES, _TEN = _U(LANES), _U(10)

# Samples of a piece, whose columns are kept at a time: of six joints 215 kB, which a processor's second cache holds.
PIECE = 128
_PIECE = _U(PIECE)


@kernel
def add_gram(
    tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, tau: Doubles, roots: Doubles, sums: Doubles, counters: Counters
) -> None:
    """Add up products of columns and torques over pieces of the samples, as long as there are any.

    Args:
        tree: of the robot.
        q, dq, ddq, tau: shape (n_samples, n_coordinates), a whole number of eights.
        roots: what rows and torques are multiplied by before, shape (n_samples, n_coordinates), or one row for all.
        sums: of column i with column j, by i and j, zero where i's body comes after j's; then of each column with the
            torque; then of the torque with itself. Each is in eight parts: shape (n_columns² + n_columns + 1, 8), flat.
        counters: of pieces of PIECE samples.
    """
    n = len(q)
    work, twists = np.empty(work_size(tree)), np.empty(len(tree.row) * 6 * LANES)
    kept = np.empty((10 * len(tree.row) + len(tree.pair_of)) * PIECE)
    lift_base(tree, work)
    piece = take(counters)
    while piece * PIECE < n:
        start = _U(piece * PIECE)
        used = min(_PIECE, _U(n) - start)
        for k in range(_U(0), used, _LANES):
            _keep_torques(tree, tau, roots, start + k, kept, k)
            _keep_columns(tree, q, dq, ddq, roots, start + k, kept, k, work, twists)
        for row in range(len(tree.pair_of)):
            _add_row(tree, row, kept, used, sums)
        finish(counters)
        piece = take(counters)


@inlined
def _keep_columns(
    tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, roots: Doubles, start: At, kept: Doubles, to: At, work: Doubles,
    twists: Doubles,
) -> None:  # fmt: skip
    """Columns of eight samples: ten for each pair."""
    for body in range(len(tree.parent)):
        move_body(tree, body, work, q, dq, ddq, start)
        terms = body_terms(body, work)
        for pair in range(tree.first[body], tree.first[body + 1]):
            root = _root(roots, start, _U(tree.row[pair]))
            column = _scale(root, columns(tree, body, pair, terms, work, twists))
            store_ten(kept, _TEN * _U(pair) * _PIECE + to, _PIECE, column)


@inlined
def _keep_torques(tree: Tree, tau: Doubles, roots: Doubles, start: At, kept: Doubles, to: At) -> None:
    """Torques of eight samples, behind the columns."""
    rows = _U(len(tree.pair_of))
    for row in range(rows):
        torque = load_strided(tau, start * rows + row, rows)
        store(kept, (_TEN * _U(len(tree.row)) + row) * _PIECE + to, _root(roots, start, row) * torque)


@inlined
def _root(roots: Doubles, start: At, row: At) -> Number:
    """What a row of eight samples is multiplied by."""
    rows = _U(roots.shape[1])
    step = rows if len(roots) > 1 else _U(0)
    return load_strided(roots, start * step + row, step)


@inlined
def _add_row(tree: Tree, row: int, kept: Doubles, used: At, sums: Doubles) -> None:
    """Add products of all columns of a coordinate's row, and of its torque."""
    bodies = len(tree.parent)
    width = _TEN * _U(bodies)
    torque = (_TEN * _U(len(tree.row)) + _U(row)) * _PIECE
    for body in range(bodies):
        if tree.pair_of[row, body] < 0:
            continue
        column = _TEN * _U(tree.pair_of[row, body]) * _PIECE
        _add_products(kept, torque, column, used, sums, width * width + _TEN * _U(body))
        for k in range(_TEN):
            at = (_TEN * _U(body) + k) * width
            for other in range(body, bodies):
                if tree.pair_of[row, other] >= 0:
                    others = _TEN * _U(tree.pair_of[row, other]) * _PIECE
                    _add_products(kept, column + k * _PIECE, others, used, sums, at + _TEN * _U(other))
    squares = (width * width + width) * _LANES
    for k in range(_U(0), used, _LANES):
        value = load(kept, torque + k)
        store(sums, squares, load(sums, squares) + value * value)


@inlined
def _add_products(kept: Doubles, one: At, ten: At, used: At, sums: Doubles, at: At) -> None:
    """Add products of one column with ten."""
    total = load_ten(sums, at * _LANES, _LANES)
    for k in range(_U(0), used, _LANES):
        total = _add_scaled(total, load(kept, one + k), load_ten(kept, ten + k, _PIECE))
    store_ten(sums, at * _LANES, _LANES, total)


@inlined
def _scale(factor: Number, ten: Ten) -> Ten:
    return (
        factor * ten[0], factor * ten[1], factor * ten[2], factor * ten[3], factor * ten[4],
        factor * ten[5], factor * ten[6], factor * ten[7], factor * ten[8], factor * ten[9],
    )  # fmt: skip


@inlined
def _add_scaled(ten: Ten, factor: Number, more: Ten) -> Ten:
    return (
        ten[0] + factor * more[0], ten[1] + factor * more[1], ten[2] + factor * more[2], ten[3] + factor * more[3],
        ten[4] + factor * more[4], ten[5] + factor * more[5], ten[6] + factor * more[6], ten[7] + factor * more[7],
        ten[8] + factor * more[8], ten[9] + factor * more[9],
    )  # fmt: skip
