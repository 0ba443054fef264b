"""Base parameters for a person: each group as a formula in the robot's lengths, and in words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics.length_polynomials import Polynomial, length_polynomials, number
from jointbench.dynamics.lengths import lengths_of
from jointbench.robot import PARAMETER_NAMES, Robot

_FEW = 3
"""Up to so many neighbouring parameters are written out; of more, the first and the last."""

_WIDTH = 120

_OF_DRIVES = {"viscous": "viscous friction", "coulomb": "Coulomb friction", "offset": "torque offset"}
_OF_COMPENSATIONS = {"sine": "torque by the sine", "cosine": "torque by the cosine"}


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


def groups_of(robot: Robot, names: Sequence[str], columns: Sequence[int], grouping: Array) -> tuple[Group, ...]:
    """Say each row of a grouping.

    Args:
        robot: the robot.
        names: of the full parameters.
        columns: index of each row's leading parameter.
        grouping: K of base = K @ pi, shape (len(columns), len(names)).
    """
    drives = any(name.rsplit(".", 1)[1] not in PARAMETER_NAMES for name in names)
    known = length_polynomials(robot, columns, grouping, drives=drives)
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
