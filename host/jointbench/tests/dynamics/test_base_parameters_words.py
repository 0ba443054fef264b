"""Base parameters for a person: formulas in the robot's lengths, and words, both of them the grouping and all of it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, base_parameters
from jointbench.dynamics.base_words import Polynomial, length_polynomials, lengths_of, with_lengths
from jointbench.robot import Robot, library_names, load_robot, modified_dh

RandomRobot = Callable[..., Robot]


def chain(rows: list[tuple[float, float, float]], gravity: tuple[float, float, float]) -> Robot:
    """An arm of Denavit-Hartenberg rows (alpha [deg], a [m], d [m])."""
    arm = load_robot("cobot6")
    joints = [
        replace(arm.joints[i], rotation=rotation, origin=origin)
        for i, (alpha, a, d) in enumerate(rows)
        for rotation, origin in [modified_dh(np.deg2rad(alpha), a, d, 0.0)]
    ]
    n = len(rows)
    return replace(arm, joints=tuple(joints), drives=arm.drives[:n], home=arm.home[:n], gravity=gravity, capsules=())


def spelled_out(base: BaseParameters) -> Array:
    """The grouping as its terms say it, with the robot's own lengths."""
    lengths = {length.symbol: length.value for length in lengths_of(base.robot)}
    grouping = np.zeros_like(base.grouping)
    for row, group in enumerate(base.groups):
        grouping[row, base.full_names.index(group.name)] = 1.0
        for term in group.terms:
            for owner in term.owners:
                column = base.full_names.index(f"{owner}.{term.quantity}")
                assert grouping[row, column] == 0.0  # no parameter is said twice
                grouping[row, column] = term.coefficient.value(lengths)
    return grouping


def numbers_in(base: BaseParameters) -> int:
    """How many coefficients stand for nothing but themselves: not for 1, nor for what weighs a spring's torque."""
    known = (1.0, 1.0 / np.linalg.norm(base.robot.gravity))
    factors = [term.coefficient.terms for group in base.groups for term in group.terms]
    numbers = [factor for terms in factors for factor, symbols in terms if not symbols]
    return sum(not np.isclose(abs(number), known, rtol=1e-9).any() for number in numbers)


def test_a_double_pendulum_is_that_of_the_textbook() -> None:
    """Two parallel axes, gravity across: three parameters of each link, the second's mass in the first's.

    Khalil & Dombre, Modeling, Identification and Control of Robots, 2002, sec. 9.4.
    """
    groups = base_parameters(chain([(0, 0, 0), (0, 0.5, 0)], (0.0, -9.81, 0.0)), drives=False).groups

    assert [group.formula for group in groups] == [
        "j1.mcx + a2 j2.m",
        "j1.mcy",
        "j1.Izz + a2² j2.m",
        "j2.mcx",
        "j2.mcy",
        "j2.Izz",
    ]
    assert [group.words for group in groups[:3]] == [
        "first moment of shoulder along x, plus a2 times the mass of upper_arm",
        "first moment of shoulder along y",
        "inertia of shoulder about z, with the mass of upper_arm at distance a2",
    ]


@pytest.mark.parametrize("name", library_names())
@pytest.mark.parametrize("drives", [False, True])
def test_the_library_needs_no_numbers(name: str, drives: bool) -> None:
    """All angles are right ones there, so geometry says it all; to 1e-9, which is what recognition promises."""
    base = base_parameters(load_robot(name), drives=drives)

    np.testing.assert_allclose(spelled_out(base), base.grouping, rtol=0, atol=1e-9)
    assert numbers_in(base) == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", ["RRPR", "rpr", "RmrP"])
def test_what_is_not_geometry_stays_a_number(kinds: str, seed: int, random_robot: RandomRobot) -> None:
    base = base_parameters(random_robot(kinds, seed, tree=True), drives=False)

    np.testing.assert_allclose(spelled_out(base), base.grouping, rtol=0, atol=1e-9)
    assert numbers_in(base) > 0


def test_equal_lengths_are_told_apart() -> None:
    """Thigh and shank are as long as each other: by their numbers a3² could be a4² or a3 a4."""
    groups = {group.name: group.formula for group in base_parameters(load_robot("gorobot2"), drives=False).groups}

    assert groups["r_ankle_roll.mcx"] == "r_ankle_roll.mcx + a3 (r_knee.m + … + l_ankle_pitch.m)"
    assert groups["r_knee.mcx"] == "r_knee.mcx + a4 (r_hip_pitch.m + … + l_ankle_pitch.m)"
    assert "(a3² + a4²) (r_hip_pitch.m + … + l_ankle_pitch.m)" in groups["r_ankle_roll.Izz"]


@pytest.mark.parametrize(("off", "recognised"), [(0.0, True), (1e-10, True), (1e-8, False)])
def test_recognition_is_exact(off: float, recognised: bool) -> None:
    robot = load_robot("cobot6")
    base = base_parameters(robot, drives=False)
    row, column = base.leading_names.index("j3.mcx"), base.full_names.index("j5.m")
    grouping = base.grouping.copy()
    grouping[row, column] += off

    found = length_polynomials(robot, base.columns.tolist(), grouping, drives=False)

    assert found.get((row, column)) == (Polynomial(((1.0, ("a4",)),)) if recognised else None)
    assert found[row, base.full_names.index("j6.m")] == Polynomial(((1.0, ("a4",)),))


def test_columns_that_do_not_span_have_no_polynomials() -> None:
    robot = load_robot("cobot6")
    base = base_parameters(robot, drives=False)

    assert length_polynomials(robot, base.columns.tolist()[1:], base.grouping[1:], drives=False) == {}


def test_words_of_drives() -> None:
    words = {group.name: group.words for group in base_parameters(load_robot("tx40")).groups}

    assert words["j3.viscous"] == "viscous friction of j3"
    assert words["wrist.coulomb"] == "Coulomb friction of wrist"
    assert words["j4.rotor_inertia"] == "rotor inertia of j4"
    assert words["j2.Izz"].endswith(", plus the rotor inertia of j2")


def test_the_table_is_whole_and_fits_a_terminal() -> None:
    base = base_parameters(load_robot("cobot6"))
    text = base.table()
    one_line = " ".join(text.split())

    assert text.startswith(f"58 base parameters of 84 parameters; the rank's gap is {base.gap:.1e}")
    assert all(" ".join(group.formula.split()) in one_line and group.words in one_line for group in base.groups)
    assert "a3 = -270 mm (at j3)" in text
    assert "d1 =" not in text  # it stands in no coefficient
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("kinds", ["R", "RPRR", "rpRm"])
def test_lengths_and_angles_are_the_geometry(kinds: str, random_robot: RandomRobot) -> None:
    robot = random_robot(kinds, 1)
    lengths = lengths_of(robot)
    values = np.array([length.value for length in lengths])

    same, twice = with_lengths(robot, lengths, values), with_lengths(robot, lengths, 2.0 * values)

    for joint, as_before, longer in zip(robot.joints, same.joints, twice.joints, strict=True):
        np.testing.assert_allclose(as_before.origin, joint.origin, rtol=0, atol=1e-12)  # what counts as no length
        np.testing.assert_allclose(longer.origin, 2.0 * np.array(joint.origin), rtol=0, atol=1e-12)
        assert longer.rotation == joint.rotation


def test_a_placement_that_denavit_and_hartenberg_cannot_say_has_three_lengths() -> None:
    robot = load_robot("cobot6")
    joints = list(robot.joints)
    joints[2] = replace(joints[2], origin=(0.1, 0.2, 0.3))

    symbols = [length.symbol for length in lengths_of(replace(robot, joints=tuple(joints)))]

    assert symbols == ["d1", "x3", "y3", "z3", "a4", "d4", "d5", "d6"]


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (((1.0, ()),), "1"),
        (((-1.0, ("a3",)),), "-a3"),
        (((2.0, ("a3", "d4")), (-1.0, ("a3", "a3"))), "2 a3 d4 - a3²"),
        (((0.0729, ()),), "0.0729"),
    ],
)
def test_polynomials_read_well(terms: tuple[tuple[float, tuple[str, ...]], ...], text: str) -> None:
    assert str(Polynomial(terms)) == text
    assert Polynomial(terms).value({"a3": 2.0, "d4": 3.0}) == pytest.approx(
        sum(factor * np.prod([{"a3": 2.0, "d4": 3.0}[symbol] for symbol in by]) for factor, by in terms)
    )
