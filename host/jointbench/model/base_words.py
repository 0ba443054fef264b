"""Base parameters for a person: each group as a formula in the robot's lengths, and in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from jointbench.arrays import Array
from jointbench.model.joint import PARAMETER_NAMES, Joint
from jointbench.model.robot import Robot

Regroup = Callable[[Robot], Array | None]
"""Grouping of a robot with other lengths by the same leading columns; None where these are not its base parameters."""

_NOTHING = 1e-12
"""Below this a length [m] or the sine of an angle is what rounding left of zero."""

_MOST_LENGTHS = 24
"""Beyond it the polynomials have too many terms to be worth their time: a regressor for each of them."""

_SPARE = 4
"""Geometries more than there are unknowns: what is no polynomial does not fit them."""

_ROUNDING = 1e-6
"""How far interpolation may leave a factor from a multiple of a half; rounding leaves 1e-12, and 1e-9 where a random
geometry is nearly degenerate."""

_EXACT = 1e-9
"""How far a polynomial's value may be from the coefficient that it stands for."""

_FEW = 3
"""Up to so many neighbouring parameters are written out; of more, the first and the last."""

_WIDTH = 120

_OF_DRIVES = {"viscous": "viscous friction", "coulomb": "Coulomb friction", "offset": "torque offset"}

_OF_COMPENSATIONS = {"sine": "torque by the sine", "cosine": "torque by the cosine"}


@dataclass(frozen=True, eq=False)
class Length:
    """One length of a robot: how far a joint's frame is from its parent's along a fixed direction.

    Attributes:
        symbol: "a3" or "d3" of the modified Denavit-Hartenberg rows, "x3", "y3", "z3" of a placement that is none; the
            number is the joint's place in the robot, from 1.
        joint: index of the joint.
        direction: in the parent's frame, shape (3,).
        value: [m], with its sign.
    """

    symbol: str
    joint: int
    direction: Array
    value: float


def lengths_of(robot: Robot) -> tuple[Length, ...]:
    """All lengths of the robot that are not zero.

    >>> from jointbench.model import load_robot
    >>> [f"{length.symbol} = {length.value:g} m" for length in lengths_of(load_robot("cobot6"))][:4]
    ['d1 = 0.1223 m', 'a3 = -0.27 m', 'a4 = -0.253 m', 'd4 = 0.1233 m']
    """
    lengths: list[Length] = []
    for i, joint in enumerate(robot.joints):
        origin = np.array(joint.origin)
        for letter, direction in _directions(joint).items():
            value = float(direction @ origin)
            if abs(value) > _NOTHING:
                lengths.append(Length(f"{letter}{i + 1}", i, direction, value))
    return tuple(lengths)


def with_lengths(robot: Robot, lengths: Sequence[Length], values: Array) -> Robot:
    """The robot with other values [m], shape (n_lengths,), of its lengths; its angles stay."""
    origins = np.zeros((robot.n_links, 3))
    for length, value in zip(lengths, values, strict=True):
        origins[length.joint] += value * length.direction
    joints = (
        replace(joint, origin=(float(x), float(y), float(z)))
        for joint, (x, y, z) in zip(robot.joints, origins, strict=True)
    )
    return replace(robot, joints=tuple(joints))


def _directions(joint: Joint) -> dict[str, Array]:
    """Directions of the joint's lengths in its parent's frame: a and d where Denavit and Hartenberg can say it."""
    rotation, origin = joint.placement
    across = np.array([0.0, rotation[2, 2], -rotation[1, 2]])  # to a, and to the joint's z axis
    along = np.array([0.0, rotation[1, 2], rotation[2, 2]])
    if abs(rotation[0, 2]) < _NOTHING and abs(across @ origin) < _NOTHING:
        return {"a": np.array([1.0, 0.0, 0.0]), "d": along}
    return dict(zip("xyz", np.eye(3), strict=True))


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


def length_polynomials(robot: Robot, grouping: Array, regroup: Regroup) -> dict[tuple[int, int], Polynomial]:
    """Recognise the coefficients of a grouping as polynomials of second degree in the robot's lengths.

    With the angles kept, the grouping is computed for as many random sets of lengths as such a polynomial has terms,
    and solved for its factors. A coefficient counts as recognised where all factors are multiples of a half and the
    polynomial's value for the robot's own lengths is the coefficient to 1e-9.

    Args:
        robot: the robot.
        grouping: K of base = K @ pi, shape (n_groups, n_full).
        regroup: K of the robot with other lengths.

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
        sample = regroup(with_lengths(robot, lengths, values))
        if sample is None:
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


@dataclass(frozen=True)
class Term:
    """Parameters of one kind that enter a group with the same coefficient.

    Attributes:
        coefficient: what they are multiplied by.
        quantity: which of a link's or a drive's parameters: "m", "Izz", "rotor_inertia".
        owners: the joints (or couplings) whose they are, in order.
    """

    coefficient: Polynomial
    quantity: str
    owners: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """One base parameter: the parameter that leads it, and all that cannot be told from it.

    Attributes:
        name: of the leading parameter, such as "j2.Izz".
        terms: the others.
        formula: "j2.Izz + a3² (j3.m + … + j6.m) + j2.rotor_inertia".
        words: "inertia of upper_arm about z, with the mass of everything from j3 on at distance a3, plus …".
    """

    name: str
    terms: tuple[Term, ...]
    formula: str
    words: str


def groups_of(
    robot: Robot, names: Sequence[str], columns: Sequence[int], grouping: Array, regroup: Regroup
) -> tuple[Group, ...]:
    """Describe each row of a grouping, as a formula and in words.

    Args:
        robot: the robot.
        names: of the full parameters.
        columns: index of each row's leading parameter.
        grouping: K of base = K @ pi, shape (len(columns), len(names)).
        regroup: K of the robot with other lengths.
    """
    known = length_polynomials(robot, grouping, regroup)
    groups: list[Group] = []
    for row, leader in enumerate(columns):
        coefficients = {
            column: known.get((row, column), number(float(grouping[row, column])))
            for column in np.flatnonzero(grouping[row]).tolist()
            if column != leader
        }
        terms = _terms(names, coefficients)
        formula = " ".join([names[leader], *(_formula(robot, term) for term in terms)])
        groups.append(Group(names[leader], terms, formula, _words(robot, names[leader], terms)))
    return tuple(groups)


def group_table(robot: Robot, groups: Sequence[Group]) -> str:
    """Lines of all groups, a formula and below it the words, and of the lengths that stand in them."""
    lines: list[str] = []
    for index, group in enumerate(groups, 1):
        lines += _wrapped(f"{index:4}  ", group.formula)
        lines += _wrapped(" " * 10, group.words)
    terms = [term for group in groups for term in group.terms]
    used = {symbol for term in terms for _, symbols in term.coefficient.terms for symbol in symbols}
    joints = robot.joints
    lengths = [
        f"{each.symbol} = {1e3 * each.value:g} mm (at {joints[each.joint].name})"
        for each in lengths_of(robot)
        if each.symbol in used
    ]
    return "\n".join(lines + (_wrapped("lengths: ", ", ".join(lengths)) if lengths else []))


def _wrapped(first: str, text: str) -> list[str]:
    indent = " " * (len(first) + 2)
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False)


def _terms(names: Sequence[str], coefficients: dict[int, Polynomial]) -> tuple[Term, ...]:
    """Gather parameters of one kind and coefficient, in the order in which they first come."""
    owners: dict[tuple[Polynomial, str], list[str]] = {}
    for column, coefficient in coefficients.items():
        owner, quantity = names[column].rsplit(".", 1)
        owners.setdefault((coefficient, quantity), []).append(owner)
    return tuple(Term(coefficient, quantity, tuple(each)) for (coefficient, quantity), each in owners.items())


def _formula(robot: Robot, term: Term) -> str:
    names = [f"{owner}.{term.quantity}" for owner in term.owners]
    joints = [joint.name for joint in robot.joints]
    first = joints.index(term.owners[0]) if term.owners[0] in joints else len(joints)
    if len(names) > _FEW and tuple(joints[first : first + len(names)]) == term.owners:
        names = [names[0], "…", names[-1]]
    body = f"({' + '.join(names)})" if len(names) > 1 else names[0]
    return " ".join([_sign(term.coefficient, "+", "-"), *_factor(term.coefficient), body])


def _words(robot: Robot, leader: str, terms: Sequence[Term]) -> str:
    owner, quantity = leader.rsplit(".", 1)
    parts = [f"{_what(quantity)} of {_whose(robot, quantity, (owner,))}{_where(quantity)}"]
    for term in terms:
        what = _what(term.quantity, len(term.owners))
        own = term.owners == (owner,) and term.quantity in PARAMETER_NAMES  # these come first, others' links between
        said = f"its {what}" if own else f"the {what} of {_whose(robot, term.quantity, term.owners)}"
        parts.append(f"{_how(quantity, term)} {said}{_where(term.quantity)}{_at(quantity, term)}")
    return ", ".join(parts)


def _how(leader: str, term: Term) -> str:
    """Begin a term: "plus", "less a4 times", or "with" where a distance comes behind it."""
    if _at(leader, term):
        return "with"
    return " ".join([_sign(term.coefficient, "plus", "less"), *(f"{each} times" for each in _factor(term.coefficient))])


def _at(leader: str, term: Term) -> str:
    """Say how far off a mass is that adds its square to an inertia."""
    squares = term.coefficient.squares
    if term.quantity != "m" or not leader.startswith("I") or not squares:
        return ""
    return f" at distance {squares[0] if len(squares) == 1 else f'√({term.coefficient})'}"


def _what(quantity: str, count: int = 1) -> str:
    """Name a quantity, of one owner or of several; the mass of several is one."""
    if quantity not in PARAMETER_NAMES:
        return (_OF_DRIVES | _OF_COMPENSATIONS).get(quantity, quantity.replace("_", " "))
    if quantity == "m":
        return "mass"
    plural = "s" if count > 1 else ""
    if quantity.startswith("mc"):
        return f"first moment{plural}"
    return f"inertia{plural}" if quantity[1] == quantity[2] else f"{quantity[1:]} product{plural} of inertia"


def _where(quantity: str) -> str:
    """Which axis a first moment is along or an inertia about."""
    if quantity in ("Ixx", "Iyy", "Izz"):
        return f" about {quantity[2]}"
    return f" along {quantity[2]}" if quantity.startswith("mc") and quantity in PARAMETER_NAMES else ""


def _whose(robot: Robot, quantity: str, owners: tuple[str, ...]) -> str:
    """Name links by what hangs where, drives by their joints."""
    if quantity not in PARAMETER_NAMES:
        return _listed(owners)
    joints = {joint.name: i for i, joint in enumerate(robot.joints)}
    if len(owners) > 1 and set(owners) == _hanging_from(robot, joints[owners[0]]):
        return f"everything from {owners[0]} on"
    return _listed([robot.joints[joints[owner]].link.name for owner in owners])


def _hanging_from(robot: Robot, index: int) -> set[str]:
    """Names of a joint and of all that its link carries."""
    carried = {index}
    for i, joint in enumerate(robot.joints):
        if joint.parent in carried:
            carried.add(i)
    return {robot.joints[i].name for i in carried}


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _sign(coefficient: Polynomial, plus: str, minus: str) -> str:
    return minus if coefficient.is_negative else plus


def _factor(coefficient: Polynomial) -> tuple[str, ...]:
    """The coefficient without its sign, nothing for one, in brackets where it is a sum."""
    positive = -coefficient if coefficient.is_negative else coefficient
    if positive.is_one:
        return ()
    return (f"({positive})" if len(positive.terms) > 1 else str(positive),)
