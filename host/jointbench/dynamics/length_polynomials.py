"""Coefficients of base parameters as polynomials in the robot's lengths, such as a3² + d4²."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics.grouping import grouping_matrix, random_columns
from jointbench.dynamics.lengths import Length, lengths_of, with_lengths
from jointbench.robot import Robot

_MOST_LENGTHS = 24
"""Beyond it the polynomials have too many terms to be worth their time: a regressor for each of them."""

_SPARE = 4
"""Geometries more than there are unknowns: what is no polynomial does not fit them."""

_ROUNDING = 1e-6
"""How far interpolation may leave a factor from a multiple of a half; rounding leaves 1e-12, and 1e-9 where a random
geometry is nearly degenerate."""

_EXACT = 1e-9
"""How far a polynomial's value may be from the coefficient that it stands for."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of numbers times lengths.

    Attributes:
        terms: factor and the symbols that it multiplies, for each term.

    >>> str(Polynomial(((1.0, ("a3", "a3")), (-2.0, ("a3", "d4")))))
    'a3² - 2 a3 d4'
    """

    terms: tuple[tuple[float, tuple[str, ...]], ...]

    @property
    def is_negative(self) -> bool:
        """Whether its first factor is."""
        return self.terms[0][0] < 0.0

    @property
    def squares(self) -> tuple[str, ...]:
        """The symbols whose squares add up to it; none where it is anything else."""
        if any(factor != 1.0 or len(by) != 2 or by[0] != by[1] for factor, by in self.terms):
            return ()
        return tuple(by[0] for _, by in self.terms)

    @property
    def is_one(self) -> bool:
        """Whether it is the number 1."""
        return self.terms == ((1.0, ()),)

    def value(self, lengths: Mapping[str, float]) -> float:
        """The number that it is for these lengths, by symbol."""
        return math.fsum(factor * math.prod(lengths[symbol] for symbol in by) for factor, by in self.terms)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((-factor, symbols) for factor, symbols in self.terms))

    def __str__(self) -> str:
        (first, by), *others = self.terms
        signed = [f"{'-' if factor < 0.0 else '+'} {_product(abs(factor), symbols)}" for factor, symbols in others]
        return " ".join([f"{'-' if first < 0.0 else ''}{_product(abs(first), by)}", *signed])


def number(value: float) -> Polynomial:
    """The number as a polynomial."""
    return Polynomial(((value, ()),))


def length_polynomials(
    robot: Robot, columns: Sequence[int], grouping: Array, *, drives: bool
) -> dict[tuple[int, int], Polynomial]:
    """Recognise the coefficients of a grouping as polynomials of second degree in the robot's lengths.

    With the angles kept, the grouping is computed for as many random sets of lengths as such a polynomial has terms,
    and solved for its factors. A coefficient counts as recognised where all factors are multiples of a half and the
    polynomial's value for the robot's own lengths is the coefficient to 1e-9.

    Args:
        robot: the robot.
        columns: leading column of each group.
        grouping: K of base = K @ pi, shape (n_columns, n_full).
        drives: whether the full parameters are those of the drives too.

    Returns:
        Polynomials by row and column of K, for the coefficients that are not zero and were recognised.
    """
    lengths = lengths_of(robot)
    if len(lengths) > _MOST_LENGTHS:
        return {}
    monomials = [each for degree in range(3) for each in combinations_with_replacement(range(len(lengths)), degree)]
    draws = np.random.default_rng(0).uniform(0.5, 1.5, (len(monomials) + _SPARE, len(lengths)))
    samples: list[Array] = []
    for values in draws:
        matrix = random_columns(with_lengths(robot, lengths, values), drives=drives, seed=0, rows_per_column=2)
        sample = grouping_matrix(matrix, columns)
        if not np.allclose(matrix[:, columns] @ sample, matrix, rtol=0.0, atol=_EXACT * np.abs(matrix).max()):
            return {}  # these lengths are special: with others there would be more base parameters
        samples.append(sample)
    taken = np.nonzero(grouping)
    design = _values(monomials, draws)
    wanted = np.array([sample[taken] for sample in samples])
    factors: Array = np.linalg.lstsq(design, wanted, rcond=None)[0].astype(np.float64)
    rounded = np.round(2.0 * factors) / 2.0
    fits = np.abs(factors - rounded).max(axis=0) < _ROUNDING
    fits &= np.abs(design @ rounded - wanted).max(axis=0) < _ROUNDING
    own = _values(monomials, np.array([[length.value for length in lengths]]))[0]
    fits &= np.any(rounded, axis=0) & (np.abs(own @ rounded - grouping[taken]) <= _EXACT)
    rows, of_columns = (indices.tolist() for indices in taken)
    return {
        (rows[k], of_columns[k]): _polynomial(rounded[:, k], monomials, lengths) for k in np.flatnonzero(fits).tolist()
    }


def _values(monomials: list[tuple[int, ...]], lengths: Array) -> Array:
    """Value of each monomial for each set of lengths, shape (n_sets, n_monomials)."""
    return np.column_stack([np.prod(lengths[:, list(each)], axis=1) for each in monomials])


def _polynomial(factors: Array, monomials: list[tuple[int, ...]], lengths: Sequence[Length]) -> Polynomial:
    by = [tuple(lengths[k].symbol for k in each) for each in monomials]
    return Polynomial(tuple((float(factor), each) for factor, each in zip(factors, by, strict=True) if factor))


def _product(factor: float, symbols: tuple[str, ...]) -> str:
    if len(symbols) == 2 and symbols[0] == symbols[1]:
        symbols = (f"{symbols[0]}²",)
    shown = () if factor == 1.0 and symbols else (f"{factor:.6g}",)
    return " ".join((*shown, *symbols))
