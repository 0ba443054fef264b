"""Base parameters, and their words."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import NumericalError, ShapeError
from jointbench.model import (
    BaseParameters,
    Robot,
    base_parameters,
    library_names,
    load_robot,
    model_columns,
    modified_dh,
    regressor,
)
from jointbench.model.base_parameters import regrouping
from jointbench.model.base_words import Polynomial, length_polynomials, lengths_of, with_lengths
from jointbench.tests.model.test_three_forms import Peer

Geometry = list[tuple[float, float, float]]
RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]


def with_geometry(robot: Robot, rows: Geometry) -> Robot:
    """The robot with other Denavit-Hartenberg rows (alpha [deg], a [m], d [m])."""
    placements = [modified_dh(np.deg2rad(alpha), a, d, 0.0) for alpha, a, d in rows]
    joints = (
        replace(joint, rotation=rotation, origin=origin)
        for joint, (rotation, origin) in zip(robot.joints, placements, strict=True)
    )
    return replace(robot, joints=tuple(joints))


GENERIC: Geometry = [
    (0, 0, 0.3),
    (70, 0.1, 0.05),
    (-50, 0.4, 0.02),
    (80, 0.05, 0.4),
    (-65, 0.07, 0.1),
    (75, 0.03, 0.1),
]
UR10: Geometry = [
    (0, 0, 0.128),
    (90, 0, 0),
    (0, -0.612, 0),
    (0, -0.572, 0.164),
    (90, 0, 0.116),
    (-90, 0, 0.092),
]
PANDA: Geometry = [
    (0, 0, 0.333),
    (-90, 0, 0),
    (90, 0, 0.316),
    (90, 0.0825, 0),
    (-90, -0.0825, 0.384),
    (90, 0, 0),
    (90, 0.088, 0),
]


def rank_by_pinocchio(robot: Robot) -> int:
    """Rank of Pinocchio's regressor of the torques and links that have a model, by its singular values."""
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 20 * robot.n_links, robot.n_joints))
    rows = Peer(robot).regressor(q, dq, ddq).reshape(-1, robot.n_joints, robot.n_links, 10)
    columns = rows[:, robot.modelled][:, :, robot.modelled_links].reshape(-1, 10 * robot.modelled_links.sum())
    lengths = np.linalg.norm(columns, axis=0)
    felt = columns[:, lengths > 1e-12 * lengths.max()]  # a right angle in double precision leaves 1e-16 for nothing
    values = np.linalg.svd(felt / np.linalg.norm(felt, axis=0), compute_uv=False)
    # Relative to the largest, rounding leaves 1e-15 and geometry 1e-4: the rank is where they part, and must be clear.
    rank = int(np.sum(values > 1e-9 * values[0]))
    assert values[rank - 1] > 1e4 * values[rank:].max(initial=1e-16 * values[0])
    return rank


@pytest.mark.parametrize("name", library_names())
def test_the_library_counts_as_pinocchio(name: str) -> None:
    robot = load_robot(name)

    assert base_parameters(robot, drives=False).rank == rank_by_pinocchio(robot)


@pytest.mark.parametrize(
    ("robot", "rank"),
    [
        pytest.param(load_robot("nursing_arm"), 36, id="the nursing arm, as its paper"),
        pytest.param(with_geometry(load_robot("cobot6"), UR10), 36, id="UR10"),
        pytest.param(with_geometry(load_robot("modular7"), PANDA), 43, id="Panda, its fingers locked"),
    ],
)
def test_published_counts(robot: Robot, rank: int) -> None:
    assert base_parameters(robot, drives=False).rank == rank_by_pinocchio(robot) == rank


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kinds", ["rRpPm", "rmrm", "pPRr"])
@pytest.mark.parametrize("tree", [False, True])
def test_random_trees_count_as_pinocchio(kinds: str, seed: int, tree: bool, random_robot: RandomRobot) -> None:
    robot = random_robot(kinds, seed, tree=tree)

    assert base_parameters(robot, drives=False).rank == rank_by_pinocchio(robot)


@pytest.mark.parametrize("geometry", [GENERIC, UR10], ids=["generic", "UR10"])
def test_a_six_axis_arm_on_a_vertical_axis_has_36(geometry: Geometry) -> None:
    """Seven per joint, but the first about the vertical one: 7 * 5 + 1 (Khalil & Dombre, 2002, ch. 9)."""
    robot = with_geometry(load_robot("cobot6"), geometry)

    assert base_parameters(robot, drives=False).rank == 36


def test_a_tilted_base_shows_two_more() -> None:
    """Gravity across the first axis makes its first moments felt."""
    robot = replace(with_geometry(load_robot("cobot6"), GENERIC), gravity=(3.0, 0.0, -9.0))

    assert base_parameters(robot, drives=False).rank == 38


@pytest.mark.parametrize(("name", "rank"), [("cobot6", 36 + 24 - 2), ("tx40", 36 + 24 - 2 + 3)])
def test_drives_add_four_each_but_two_rotors(name: str, rank: int) -> None:
    """The rotors of joints 1 and 2 act as their links' Izz; the wrist adds its three."""
    base = base_parameters(load_robot(name))

    assert base.rank == rank
    assert base.gap > 1e6  # seen: 3e8; what is asked for a decision is 1e4


@pytest.mark.parametrize("drives", [False, True])
@pytest.mark.parametrize("kinds", ["RRRRRR", "RPR", "PRRP", "RRRRRRR"])
@pytest.mark.parametrize("seed", range(3))
def test_grouping_holds_on_motion_it_was_not_found_from(
    kinds: str,
    seed: int,
    drives: bool,
    random_robot: RandomRobot,
    random_motion: RandomMotion,
) -> None:
    robot = random_robot(kinds, seed)
    base = base_parameters(robot, drives=drives)
    q, dq, ddq = random_motion(robot, 200, 100 + seed)
    columns = model_columns(robot, q, dq, ddq)[0] if drives else regressor(robot, q, dq, ddq)
    parameters = np.random.default_rng(seed).normal(size=base.n_full)

    full = columns @ parameters

    grouped = base.project(columns) @ base.group(parameters)
    np.testing.assert_allclose(grouped, full, atol=1e-9 * np.abs(full).max())


def test_base_columns_are_independent(random_motion: RandomMotion) -> None:
    robot = load_robot("tx40")
    base = base_parameters(robot)
    columns = base.project(model_columns(robot, *random_motion(robot, 200, 5))[0])

    assert np.linalg.matrix_rank(columns) == base.rank


@pytest.mark.parametrize("name", ["cobot6", "tx40"])
def test_friction_and_offset_come_out_as_themselves(name: str) -> None:
    base = base_parameters(load_robot(name))

    for joint in range(1, 7):
        for quantity in ("viscous", "coulomb", "offset"):
            assert f"j{joint}.{quantity}" in base.names
    for joint in range(3, 7):
        assert f"j{joint}.rotor_inertia" in base.names


def test_names_read_as_the_grouping(random_robot: RandomRobot) -> None:
    base = base_parameters(load_robot("cobot6"), drives=False)
    name = "j3.mcx - 0.253 j4.m - 0.253 j5.m - 0.253 j6.m"
    row = base.grouping[base.names.index(name)]
    terms = {base.full_names[k]: row[k] for k in np.flatnonzero(row)}

    assert terms == pytest.approx({"j3.mcx": 1.0, "j4.m": -0.253, "j5.m": -0.253, "j6.m": -0.253})
    assert base.leading_names[base.names.index(name)] == "j3.mcx"


def test_the_seed_chooses_the_motion_but_not_the_result() -> None:
    robot = load_robot("tx40")
    one, same, other = (base_parameters(robot, seed=seed) for seed in (0, 0, 1))

    np.testing.assert_array_equal(one.grouping, same.grouping)
    np.testing.assert_array_equal(one.columns, other.columns)
    assert one.names == other.names
    np.testing.assert_allclose(one.grouping, other.grouping, atol=1e-10)


def test_an_almost_right_angle_leaves_no_clear_rank() -> None:
    """An angle off by 1e-6 degrees makes parameters that differ by 1e-8: neither equal nor told apart."""
    rows = [(alpha + 1e-6 * (i == 1), a, d) for i, (alpha, a, d) in enumerate(UR10)]

    with pytest.raises(NumericalError, match=r"no clear gap.*almost but not exactly 0 or 90"):
        base_parameters(with_geometry(load_robot("cobot6"), rows))


def test_columns_of_another_robot_are_refused() -> None:
    base = base_parameters(load_robot("cobot6"))

    with pytest.raises(ShapeError, match=r"the regressor has 87 columns; these base parameters group 84: j1\.m"):
        base.project(np.zeros((6, 87)))
    with pytest.raises(ShapeError, match=r"the parameter vector has 60 columns"):
        base.group(np.zeros(60))


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

    polynomials = length_polynomials(robot, grouping, regrouping(base.columns.tolist(), drives=False))

    assert polynomials.get((row, column)) == (Polynomial(((1.0, ("a4",)),)) if recognised else None)
    assert polynomials[row, base.full_names.index("j6.m")] == Polynomial(((1.0, ("a4",)),))


def test_columns_that_do_not_span_have_no_polynomials() -> None:
    robot = load_robot("cobot6")
    base = base_parameters(robot, drives=False)

    regroup = regrouping(base.columns.tolist()[1:], drives=False)

    assert length_polynomials(robot, base.grouping[1:], regroup) == {}


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
