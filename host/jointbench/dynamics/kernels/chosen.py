"""Chosen columns of the regressor, their products, and the derivatives of these: of each row only what is not zero.

What a row c has of the chosen parameters are its *slots*, one for each parameter of a body that coordinate c moves; and
behind them slots that others fill. A slot holds all samples, one behind the other.
"""

from __future__ import annotations

import numpy as np

from jointbench.dynamics.chosen_columns import Slots
from jointbench.dynamics.kernels.adjoint import add_pair, move_pairs, pull_motion, pull_twist, put_sums
from jointbench.dynamics.kernels.columns import body_terms, columns
from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import LANES, At, Doubles, load, load_ten, store, store_ten
from jointbench.dynamics.kernels.motion import lift_base, move_body, work_size
from jointbench.dynamics.tree import Tree

_U = np.uint64
_LANES, _NONE = _U(LANES), _U(0)


@kernel
def fill_slots(tree: Tree, slots: Slots, roots: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, out: Doubles) -> None:
    """Fill the slots that belong to links.

    Args:
        tree: of the robot.
        slots: which columns are where.
        roots: what each row is multiplied by, shape (n_coordinates,).
        q, dq, ddq: shape (n_samples, n_coordinates), at least eight samples.
        out: shape (n_slots, n_samples), flat.
    """
    n = len(q)
    work, twists, ten = np.empty(work_size(tree)), np.empty(len(tree.row) * 6 * LANES), np.empty(10 * LANES)
    lift_base(tree, work)
    for start in range(0, n, LANES):
        # The last eight may begin among those before: what is done twice comes out alike.
        at = _U(min(start, n - LANES))
        for body in range(len(tree.parent)):
            move_body(tree, body, work, q, dq, ddq, at)
            terms = body_terms(body, work)
            for pair in range(tree.first[body], tree.first[body + 1]):
                store_ten(ten, _NONE, _LANES, columns(tree, body, pair, terms, work, twists))
                to = _U(slots.of_pair[pair]) * _U(n) + at
                for k in range(slots.of_body[body], slots.of_body[body + 1]):
                    store(out, to, roots[tree.row[pair]] * load(ten, _U(slots.column[k]) * _LANES))
                    to += _U(n)


@kernel
def multiply_slots(slots: Slots, values: Doubles, gram: Doubles) -> None:
    """Set the products of columns, summed over all rows, shape (n_chosen, n_chosen); values (n_slots, n_samples)."""
    gram[:] = 0.0
    for row in range(len(slots.of_row) - 1):
        first, last = slots.of_row[row], slots.of_row[row + 1]
        part = values[first:last]
        products = np.dot(part, part.T)
        for i in range(last - first):
            for j in range(last - first):
                gram[slots.parameter[first + i], slots.parameter[first + j]] += products[i, j]


@kernel
def weigh_slots(slots: Slots, roots: Doubles, values: Doubles, slope: Doubles, out: Doubles) -> None:
    """Set the derivatives by the columns' values of what has the derivative `slope` by their products.

    Args:
        slots: which columns are where.
        roots: what each row was multiplied by.
        values: of the slots, shape (n_slots, n_samples).
        slope: symmetric, shape (n_chosen, n_chosen).
        out: derivatives by the columns before they were multiplied, shape as values.
    """
    for row in range(len(slots.of_row) - 1):
        first, last = slots.of_row[row], slots.of_row[row + 1]
        part = np.empty((last - first, last - first))
        for i in range(last - first):
            for j in range(last - first):
                part[i, j] = 2.0 * roots[row] * slope[slots.parameter[first + i], slots.parameter[first + j]]
        np.dot(part, values[first:last], out[first:last])


@kernel
def fill_slot_slopes(
    tree: Tree, slots: Slots, q: Doubles, dq: Doubles, ddq: Doubles, weights: Doubles, out: Doubles
) -> None:
    """Derivatives of Σ weights * columns by the motion, of the slots that belong to links.

    Args:
        tree, slots, q, dq, ddq: as of `fill_slots`.
        weights: of each column, shape (n_slots, n_samples), flat.
        out: derivatives by q, dq, ddq, shape (n_samples, 3 * n_coordinates).
    """
    n = len(q)
    work, twists = np.empty(work_size(tree)), np.empty(len(tree.row) * 12 * LANES)
    slopes, sums = np.empty(len(tree.parent) * 9 * LANES), np.empty(out.shape[1] * LANES)
    ten = np.empty(10 * LANES)
    lift_base(tree, work)
    for start in range(0, n, LANES):
        at = _U(min(start, n - LANES))
        move_pairs(tree, q, dq, ddq, at, work, twists)
        slopes[:] = 0.0
        sums[:] = 0.0
        for body in range(len(tree.parent) - 1, -1, -1):
            ten[:] = 0.0
            for pair in range(tree.first[body], tree.first[body + 1]):
                _take_weights(slots, body, _U(slots.of_pair[pair]) * _U(n) + at, _U(n), weights, ten)
                add_pair(body, pair, load_ten(ten, _NONE, _LANES), work, twists, slopes)
                pull_twist(tree, body, pair, tree.carried_from[pair], work, twists, sums)
            pull_motion(tree, body, dq, at, work, slopes, sums)
        put_sums(sums, out, at)


@inlined
def _take_weights(slots: Slots, body: int, start: At, step: At, weights: Doubles, ten: Doubles) -> None:
    """Set those of a body's ten parameters that are chosen."""
    at = start
    for k in range(slots.of_body[body], slots.of_body[body + 1]):
        store(ten, _U(slots.column[k]) * _LANES, load(weights, at))
        at += step
