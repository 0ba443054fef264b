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

_ZERO_LENGTH = 1e-12
"""Largest length [m], and sine of an angle, that counts as a rounding error of zero."""

_MOST_LENGTHS = 24
"""Largest number of lengths: polynomials of more have too many terms, and each takes a regressor."""

_SPARE = 4
"""Number of geometries beyond that of the unknowns: a coefficient that is no polynomial does not fit them."""

_ROUNDING = 1e-6
"""Largest distance of an interpolated factor from a multiple of a half; rounding leaves 1e-12, and 1e-9 where a random
geometry is nearly degenerate."""

_EXACT = 1e-9
"""Largest difference between a polynomial's value and the coefficient that it stands for."""

_MAX_WRITTEN_OUT = 3
"""Largest number of neighbouring parameters that are all written out; of more, the first and the last."""

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
            if abs(value) > _ZERO_LENGTH:
                lengths.append(Length(f"{letter}{i + 1}", i, direction, value))
    return tuple(lengths)


def with_lengths(robot: Robot, lengths: Sequence[Length], values: Array) -> Robot:
    """Return the robot with other values [m], shape (n_lengths,), of its lengths; its angles stay."""
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
    common_normal = np.array([0.0, rotation[2, 2], -rotation[1, 2]])  # to a, and to the joint's z axis
    joint_axis = np.array([0.0, rotation[1, 2], rotation[2, 2]])
    if abs(rotation[0, 2]) < _ZERO_LENGTH and abs(common_normal @ origin) < _ZERO_LENGTH:
        return {"a": np.array([1.0, 0.0, 0.0]), "d": joint_axis}
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
        """True where its first factor is negative."""
        return self.terms[0][0] < 0.0

    @property
    def squares(self) -> tuple[str, ...]:
        """The symbols whose squares add up to it; none where it is anything else."""
        if any(factor != 1.0 or len(symbols) != 2 or symbols[0] != symbols[1] for factor, symbols in self.terms):
            return ()
        return tuple(symbols[0] for _, symbols in self.terms)

    @property
    def is_one(self) -> bool:
        """True where it is the number 1."""
        return self.terms == ((1.0, ()),)

    def value(self, lengths: Mapping[str, float]) -> float:
        """Evaluate it for lengths, by symbol."""
        return math.fsum(factor * math.prod(lengths[symbol] for symbol in symbols) for factor, symbols in self.terms)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((-factor, symbols) for factor, symbols in self.terms))

    def __str__(self) -> str:
        (first, first_symbols), *other_terms = self.terms
        signed = [f"{'-' if factor < 0.0 else '+'} {_product(abs(factor), symbols)}" for factor, symbols in other_terms]
        return " ".join([f"{'-' if first < 0.0 else ''}{_product(abs(first), first_symbols)}", *signed])


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
    monomials = [
        monomial for degree in range(3) for monomial in combinations_with_replacement(range(len(lengths)), degree)
    ]
    draws = np.random.default_rng(0).uniform(0.5, 1.5, (len(monomials) + _SPARE, len(lengths)))
    samples: list[Array] = []
    for values in draws:
        sample = regroup(with_lengths(robot, lengths, values))
        if sample is None:
            return {}  # these lengths are special: with others there would be more base parameters
        samples.append(sample)
    nonzero = np.nonzero(grouping)
    design = _values(monomials, draws)
    targets = np.array([sample[nonzero] for sample in samples])
    factors: Array = np.linalg.lstsq(design, targets, rcond=None)[0].astype(np.float64)
    rounded = np.round(2.0 * factors) / 2.0
    fits = np.abs(factors - rounded).max(axis=0) < _ROUNDING
    fits &= np.abs(design @ rounded - targets).max(axis=0) < _ROUNDING
    own_values = _values(monomials, np.array([[length.value for length in lengths]]))[0]
    fits &= np.any(rounded, axis=0) & (np.abs(own_values @ rounded - grouping[nonzero]) <= _EXACT)
    rows, columns = (indices.tolist() for indices in nonzero)
    return {
        (rows[k], columns[k]): _polynomial(rounded[:, k], monomials, lengths) for k in np.flatnonzero(fits).tolist()
    }


def _values(monomials: list[tuple[int, ...]], lengths: Array) -> Array:
    """Value of each monomial for each set of lengths, shape (n_sets, n_monomials)."""
    return np.column_stack([np.prod(lengths[:, list(monomial)], axis=1) for monomial in monomials])


def _polynomial(factors: Array, monomials: list[tuple[int, ...]], lengths: Sequence[Length]) -> Polynomial:
    symbols = [tuple(lengths[k].symbol for k in monomial) for monomial in monomials]
    return Polynomial(
        tuple(
            (float(factor), monomial_symbols)
            for factor, monomial_symbols in zip(factors, symbols, strict=True)
            if factor
        )
    )


def _product(factor: float, symbols: tuple[str, ...]) -> str:
    if len(symbols) == 2 and symbols[0] == symbols[1]:
        symbols = (f"{symbols[0]}²",)
    factor_text = () if factor == 1.0 and symbols else (f"{factor:.6g}",)
    return " ".join((*factor_text, *symbols))


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
        groups.append(Group(names[leader], terms, formula, _sentence(robot, names[leader], terms)))
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
        f"{length.symbol} = {1e3 * length.value:g} mm (at {joints[length.joint].name})"
        for length in lengths_of(robot)
        if length.symbol in used
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
    return tuple(
        Term(coefficient, quantity, tuple(joined_owners)) for (coefficient, quantity), joined_owners in owners.items()
    )


def _formula(robot: Robot, term: Term) -> str:
    names = [f"{owner}.{term.quantity}" for owner in term.owners]
    joints = [joint.name for joint in robot.joints]
    first = joints.index(term.owners[0]) if term.owners[0] in joints else len(joints)
    if len(names) > _MAX_WRITTEN_OUT and tuple(joints[first : first + len(names)]) == term.owners:
        names = [names[0], "…", names[-1]]
    body = f"({' + '.join(names)})" if len(names) > 1 else names[0]
    return " ".join([_sign(term.coefficient, "+", "-"), *_factor(term.coefficient), body])


def _sentence(robot: Robot, leader: str, terms: Sequence[Term]) -> str:
    owner, quantity = leader.rsplit(".", 1)
    phrases = [f"{_quantity_name(quantity)} of {_owner_names(robot, quantity, (owner,))}{_axis_phrase(quantity)}"]
    for term in terms:
        name = _quantity_name(term.quantity, len(term.owners))
        own = term.owners == (owner,) and term.quantity in PARAMETER_NAMES  # these come first, others' links between
        phrase = f"its {name}" if own else f"the {name} of {_owner_names(robot, term.quantity, term.owners)}"
        phrases.append(
            f"{_conjunction(quantity, term)} {phrase}{_axis_phrase(term.quantity)}{_distance_phrase(quantity, term)}"
        )
    return ", ".join(phrases)


def _conjunction(leader: str, term: Term) -> str:
    """Begin a term: "plus", "less a4 times", or "with" where a distance comes behind it."""
    if _distance_phrase(leader, term):
        return "with"
    return " ".join(
        [_sign(term.coefficient, "plus", "less"), *(f"{factor} times" for factor in _factor(term.coefficient))]
    )


def _distance_phrase(leader: str, term: Term) -> str:
    """Phrase for the distance of a mass, whose square it adds to an inertia."""
    squares = term.coefficient.squares
    if term.quantity != "m" or not leader.startswith("I") or not squares:
        return ""
    return f" at distance {squares[0] if len(squares) == 1 else f'√({term.coefficient})'}"


def _quantity_name(quantity: str, n_owners: int = 1) -> str:
    """Name a quantity, of one owner or of several; the mass of several is one."""
    if quantity not in PARAMETER_NAMES:
        return (_OF_DRIVES | _OF_COMPENSATIONS).get(quantity, quantity.replace("_", " "))
    if quantity == "m":
        return "mass"
    plural = "s" if n_owners > 1 else ""
    if quantity.startswith("mc"):
        return f"first moment{plural}"
    return f"inertia{plural}" if quantity[1] == quantity[2] else f"{quantity[1:]} product{plural} of inertia"


def _axis_phrase(quantity: str) -> str:
    """Name the axis that a first moment is along, or an inertia about."""
    if quantity in ("Ixx", "Iyy", "Izz"):
        return f" about {quantity[2]}"
    return f" along {quantity[2]}" if quantity.startswith("mc") and quantity in PARAMETER_NAMES else ""


def _owner_names(robot: Robot, quantity: str, owners: tuple[str, ...]) -> str:
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
