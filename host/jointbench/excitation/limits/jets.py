"""Bounds of magnitudes and of their time derivatives, carried through sums, products and turns.

A *jet* is (|a|, |a'|, |a''|, …), or anything larger. By the triangle inequality jets of sums add, and by Leibniz' rule
|(a b)^(k)| <= Σ_j C(k, j) |a^(j)| |b^(k-j)| for the product of numbers, of a number and a vector, of a matrix and a
vector, and for the dot and cross product of vectors. Directions are forgotten.

Source: Leibniz' rule; Moore, Kearfott & Cloud, Introduction to Interval Analysis, 2009, ch. 9.
"""

from math import comb

Jet = tuple[float, ...]
"""Bounds of a magnitude and of its first derivatives by time."""


def total(*jets: Jet) -> Jet:
    """Jet of a sum, as long as the shortest."""
    return tuple(map(sum, zip(*jets, strict=False)))


def scaled(factor: float, jet: Jet) -> Jet:
    """Jet of a multiple by a number that does not change."""
    return tuple(factor * bound for bound in jet)


def product(a: Jet, b: Jet) -> Jet:
    """Jet of a product of any kind, as long as the shorter."""
    length = min(len(a), len(b))
    return tuple(sum(comb(k, j) * a[j] * b[k - j] for j in range(k + 1)) for k in range(length))


def turning(length: float, spin: Jet) -> Jet:
    """Jet of a vector of constant length that turns, one longer than that of its angular velocity.

    v' = ω × v, and so |v^(k+1)| <= Σ_j C(k, j) |ω^(j)| |v^(k-j)|. With length 1 it is the jet of the rotation itself.
    """
    jet = [length]
    for k in range(len(spin)):
        jet.append(sum(comb(k, j) * spin[j] * jet[k - j] for j in range(k + 1)))
    return tuple(jet)
