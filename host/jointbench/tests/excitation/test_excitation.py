"""The excitation of every family: at rest where it begins and ends, stored and read back, folded, its margins."""

import json
import math
import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation import (
    FAMILIES,
    Basis,
    Excitation,
    PointToPoint,
    RampedFourier,
    RestToRestFourier,
    motion_margins,
    random_excitation,
)
from jointbench.excitation.excitation import JointMargins, space_margins
from jointbench.excitation.limits.motion_limits import Motion
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace, WorkspacePoint
from jointbench.model import Robot
from jointbench.recording import toml_text

SEEDS = range(3)
BASES = (
    RestToRestFourier(5, 20.0),
    RestToRestFourier((1, 2, 5), 8.0),
    RampedFourier((1, 2, 3, 5, 7), 6.0, 1.5, 3),
    PointToPoint(6, 1.7),
)

STORED_EARLIER: dict[str, Any] = {
    "family": "fourier",
    "robot": "cobot6",
    "period_s": 10.0,
    "center": [0.22800024999006235, -1.7767795449021433],
    "sine": [[0.563334704890296, -0.5633347048902961], [-0.3443411757428486, 0.34434117574284867]],
    "cosine": [[0.19100904276944433, -0.09550452138472214], [-0.17256409727160288, 0.08628204863580141]],
    "condition_number": 6439474.325524421,
    "margins": [
        {"joint": "j1", "position": 0.206, "velocity": 0.266, "acceleration": 0.801, "torque": 0.993},
        {"joint": "j2", "position": 0.065, "velocity": 0.54, "acceleration": 0.873},
    ],
    "seed": 4,
}
"""The first two joints of a random motion with two harmonics, as the release before families of motion wrote it."""

EARLIER_AT_7_7_S = ([-0.6617341914383613, -1.2002844600700022], [0.45048919861032977, -0.22693455263031462])
"""Position and velocity that the same release gave for it."""


def steps(of: float, low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(lambda n: n * of)


PLAYED = st.one_of(
    st.builds(RestToRestFourier, st.integers(2, 5), steps(0.1, 10, 80)),
    # A ramp may end between two samples; only the whole motion is a whole number of them.
    st.builds(RampedFourier, st.integers(2, 5), steps(0.1, 10, 60), steps(0.005, 100, 600), st.integers(1, 4)),
    st.builds(PointToPoint, st.integers(1, 5), steps(0.1, 5, 20)),
)


def an_excitation(basis: Basis, n_joints: int = 6, seed: int = 0) -> Excitation:
    rng = np.random.default_rng(seed)
    home, weights = rng.standard_normal(n_joints), rng.standard_normal((n_joints, basis.size))
    return Excitation("some_arm", basis, home, weights, 12.3, (), seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_random_motion_begins_and_ends_at_rest_at_home(cobot: Robot, family: str, seed: int) -> None:
    excitation = random_excitation(cobot, period=8.0, seed=seed, family=family)

    q, dq, ddq = excitation.evaluate([0.0, excitation.duration, 3 * excitation.duration])

    # Sums of a few terms of size 1 to 10, and angles up to 100 rad: rounding stays below 1e-13.
    np.testing.assert_allclose(q, np.tile(cobot.home, (3, 1)), atol=1e-12)
    np.testing.assert_allclose(dq, 0.0, atol=1e-12)
    np.testing.assert_allclose(ddq, 0.0, atol=1e-12)
    assert excitation.family == family
    assert excitation.condition_number < 1e6  # each family tells all parameters apart
    assert 0.0 < excitation.tightest.smallest == min(margins.smallest for margins in excitation.margins)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_random_motion_stays_in_its_workspace(cobot: Robot, family: str) -> None:
    free = random_excitation(cobot, period=8.0, family=family, seed=2)
    flange = WorkspacePoint("flange_and_tool", lowest=(-0.05, -math.inf, -math.inf))  # it is at x = 0 at home
    workspace = Workspace(points=(flange,))

    kept = random_excitation(cobot, period=8.0, family=family, seed=2, workspace=workspace)

    assert min(kept.distances.values()) >= 0.0
    assert not free.distances
    limits = workspace.limits(cobot)
    q, dq, ddq = free.evaluate(np.linspace(0.0, free.duration, 500))
    assert max(limit.usage((q, dq, ddq, 0.0 * q)).max() for limit in limits) > 1.0  # elsewhere it would not


@settings(max_examples=60, deadline=None)
@given(PLAYED, st.integers(0, 2**32 - 1))
def test_cubics_between_knots_are_the_motion_though_its_pieces_meet_between_them(basis: Basis, seed: int) -> None:
    """What boards play: cubics over steps h leave a motion continuous to jerk by h⁴/384 of its fourth derivative."""
    excitation = an_excitation(basis, seed=seed)
    knots = np.linspace(0.0, excitation.duration, int(np.ceil(excitation.duration / 0.032)) + 1)
    q, dq, _ = excitation.evaluate(knots)
    within = (knots[:-1, None] + knots[1] * np.array([0.1, 0.5, 0.8])).ravel()

    cubic = CubicHermiteSpline(knots, q, dq)(within)

    leaves = knots[1] ** 4 / 384.0 * basis.bounds(excitation.weights)[4]
    assert np.all(np.abs(cubic - excitation.evaluate(within)[0]) <= leaves + 1e-12)


@pytest.mark.parametrize("basis", BASES)
def test_is_the_series_that_is_stored_for_others(basis: Basis) -> None:
    """Whoever has only period, centre, sine and cosine, or the way points, has the motion."""
    excitation = an_excitation(basis)
    stored = excitation.to_dict()
    if isinstance(basis, PointToPoint):
        passed = excitation.evaluate(1.7 * np.arange(1, 7))[0]
        np.testing.assert_allclose(stored["way_points"], passed, atol=1e-13)
        return
    time = np.linspace(0.0, stored["period_s"], 9)
    expected = np.tile(stored["center"], (9, 1))
    for column, order in enumerate(stored["harmonics"]):
        w = 2.0 * np.pi / stored["period_s"] * order
        expected += np.outer(np.sin(w * time), np.array(stored["sine"])[:, column] / w)
        expected -= np.outer(np.cos(w * time), np.array(stored["cosine"])[:, column] / w)
    begins = stored.get("ramp_s", 0.0)
    np.testing.assert_allclose(excitation.evaluate(begins + time)[0], expected, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_velocity_and_acceleration_are_derivatives(cobot: Robot, family: str, seed: int) -> None:
    excitation = random_excitation(cobot, period=20.0, seed=seed, family=family)
    time = np.linspace(0.0, excitation.duration, 50)
    h = 1e-4  # difference error h² |q''''| / 6 is about 1e-7 where moves are quickest

    before, after = excitation.evaluate(time - h), excitation.evaluate(time + h)
    _, dq, ddq = excitation.evaluate(time)

    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), dq, atol=1e-6)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), ddq, atol=1e-6)


@pytest.mark.parametrize("through", ["json", "toml"])
@pytest.mark.parametrize("family", FAMILIES)
def test_is_the_very_same_after_storing(cobot: Robot, family: str, through: str) -> None:
    excitation = random_excitation(cobot, (1, 2, 5), 9.0, 3, family=family, ramp=1.0, periods=2, points=4)
    text = json.dumps(excitation.to_dict()) if through == "json" else toml_text(excitation.to_dict())

    read = Excitation.from_dict(json.loads(text) if through == "json" else tomllib.loads(text))

    time = np.linspace(0.0, 20.0, 30)
    np.testing.assert_array_equal(read.evaluate(time), excitation.evaluate(time))
    assert read.basis == excitation.basis
    assert read.to_dict() == excitation.to_dict()
    assert read.margins == excitation.margins


def test_what_was_stored_before_there_were_families_is_read() -> None:
    read = Excitation.from_dict(STORED_EARLIER)

    q, dq, _ = read.evaluate([7.7])
    np.testing.assert_allclose((q[0], dq[0]), EARLIER_AT_7_7_S, atol=1e-13)
    np.testing.assert_allclose(read.home, read.evaluate([0.0, 10.0])[0][1], atol=1e-14)
    assert read.basis == RestToRestFourier(2, 10.0)
    assert (read.condition_number, read.seed, read.objective) == (6439474.325524421, 4, None)
    assert (read.margins[0].torque, read.margins[1].torque) == (0.993, None)
    assert Excitation.from_dict(read.to_dict()).to_dict() == read.to_dict()


def test_what_a_plan_says_of_itself_is_stored(cobot: Robot) -> None:
    plain = an_excitation(BASES[0])
    said = {"objective": "d_optimal", "objective_value": -3.5, "distances_m": {"table under 'tool'": 0.04}}

    read = Excitation.from_dict(plain.to_dict() | said)

    assert (read.objective, read.objective_value, read.distances) == tuple(said.values())
    assert read.to_dict() == plain.to_dict() | said


DAMAGE: list[tuple[Basis, dict[str, Any], str]] = [
    (
        BASES[0],
        {"family": "chirp"},
        "damaged: family is 'chirp'; there is 'fourier', 'ramped_fourier', 'point_to_point'",
    ),
    (BASES[0], {"family": None}, "the stored excitation has no 'family'; it was not written by to_dict"),
    (BASES[0], {"period_s": "long"}, "the stored excitation is damaged: could not convert string to float"),
    (BASES[0], {"period_s": -1.0}, "the stored excitation is damaged: period = -1 s must be a positive number"),
    (BASES[0], {"sine": [[1.0, 2.0]]}, "center (6,), sine (1, 2) and cosine (6, 5) must be"),
    (BASES[0], {"harmonics": [1, 2]}, "center (6,), sine (6, 5) and cosine (6, 5) must be"),
    (BASES[0], {"sine": [[1.0] * 5] * 6}, "damaged: its series is not at rest where a period begins"),
    (BASES[0], {"sine": [[float("nan")] * 5] * 6}, "sine holds a value that is no finite number"),
    (
        BASES[0],
        {"period_s": 21.0},
        "its home does not agree with the rest of the motion: the file was edited; plan the motion again",
    ),
    (BASES[0], {"weights": [[0.0] * 8] * 6}, "its weights does not agree with the rest of the motion"),
    (BASES[0], {"margins": [{"joint": "j1", "snap": 0.1}]}, "the stored excitation is damaged"),
    (BASES[0], {"seed": "seven"}, "the stored excitation is damaged: invalid literal for int()"),
    (BASES[0], {"center": None}, "the stored excitation has no 'center'; it was not written by to_dict"),
    (BASES[0], {"condition_number": None}, "the stored excitation has no 'condition_number'"),
    (BASES[2], {"ramp_s": None}, "the stored excitation has no 'ramp_s'; it was not written by to_dict"),
    (BASES[2], {"home": [0.0]}, "home (1,) and center (6,) should both be (n_joints,)"),
    (BASES[2], {"periods": 0}, "the stored excitation is damaged: periods = 0: the series must be played at least"),
    (BASES[3], {"way_points": [[0.0]]}, "way_points (1, 1) and home (6,) should be (points, n) and (n,)"),
    (BASES[3], {"way_points": [0.0]}, "way_points has shape (1,); 2 dimension(s) are needed"),
    (BASES[3], {"segment_s": None}, "the stored excitation has no 'segment_s'"),
]


@pytest.mark.parametrize(("basis", "damage", "message"), DAMAGE)
def test_a_damaged_excitation_is_refused(basis: Basis, damage: dict[str, Any], message: str) -> None:
    values = {key: value for key, value in (an_excitation(basis).to_dict() | damage).items() if value is not None}

    with pytest.raises(ExcitationError, match=re.escape(message)):
        Excitation.from_dict(values)


def test_times_must_be_one_row(cobot: Robot) -> None:
    with pytest.raises(ExcitationError, match=r"time has shape \(2, 2\); give the times as one row"):
        random_excitation(cobot).evaluate(np.zeros((2, 2)))


def once(basis: Basis) -> Basis:
    """The shortest motion with all that a basis' motions have."""
    return RampedFourier(basis.harmonics, basis.period, basis.ramp) if isinstance(basis, RampedFourier) else basis


@settings(max_examples=60, deadline=None)
@given(PLAYED, st.integers(1, 3))
def test_folded_samples_lie_where_the_motion_is_the_same(basis: Basis, repeats: int) -> None:
    """Playings upon each other and periods upon each other, with what lies between them left in its order."""
    h = 0.01
    excitation, shortest = an_excitation(basis), an_excitation(once(basis))
    ticks = np.arange(-7, round(repeats * excitation.duration / h))

    folded, length = excitation.fold(ticks, h)

    assert length == round(shortest.duration / h)
    np.testing.assert_array_equal(folded[:7], ticks[:7])  # not playing yet
    np.testing.assert_array_equal(np.unique(folded[7:]), np.arange(length))
    played, expected = excitation.evaluate(ticks[7:] * h)[0], shortest.evaluate(folded[7:] * h)[0]
    np.testing.assert_allclose(played, expected, atol=1e-11)  # times up to 90 s are rounded to 1e-14


def test_periods_that_are_no_whole_number_of_samples_are_not_folded() -> None:
    excitation = an_excitation(RampedFourier(3, 1.0005, 1.0, 2))
    ticks = np.arange(4001)

    folded, length = excitation.fold(ticks, 0.001)

    assert length == 4001
    np.testing.assert_array_equal(folded, ticks)


def fold_and_count(basis: Basis) -> NDArray[np.intp]:
    """Counts of equal samples when a motion is played twice."""
    excitation = an_excitation(basis)
    folded, length = excitation.fold(np.arange(2 * round(excitation.duration / 0.01)), 0.01)
    return np.bincount(folded, minlength=length)


def test_each_period_between_ramps_counts() -> None:
    counts = fold_and_count(RampedFourier(3, 2.0, 1.0, 4))

    np.testing.assert_array_equal(counts, [2] * 100 + [8] * 200 + [2] * 100)
    np.testing.assert_array_equal(fold_and_count(PointToPoint(3, 0.5)), [2] * 200)
    np.testing.assert_array_equal(fold_and_count(RestToRestFourier((2, 4), 2.0)), [4] * 100)


def swing(cobot: Robot, samples: int = 1001) -> Motion:
    """Three swings of joint 1 by ±30° about home, the other joints at rest."""
    time = np.linspace(0.0, 3.0, samples)
    q = np.tile(cobot.home, (samples, 1))
    turns = 2.0 * np.pi * time
    amplitude = np.deg2rad(30.0)
    dq, ddq, dddq = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
    q[:, 0] += amplitude * (1.0 - np.cos(turns)) - amplitude
    rate = 2.0 * np.pi
    dq[:, 0] = amplitude * rate * np.sin(turns)
    ddq[:, 0] = amplitude * rate**2 * np.cos(turns)
    dddq[:, 0] = -amplitude * rate**3 * np.sin(turns)
    return q, dq, ddq, dddq


def test_coverage_is_the_share_of_the_ranges_that_is_visited(cobot: Robot) -> None:
    first, second = motion_margins(cobot, *swing(cobot))[:2]

    assert first.position_coverage == pytest.approx(60.0 / 300.0)
    assert first.velocity_coverage == pytest.approx(30.0 * 2.0 * np.pi / 90.0, rel=1e-4)
    assert first.reversals == 5  # three swings to and fro
    assert (second.position_coverage, second.velocity_coverage, second.reversals) == (0.0, 0.0, 0)


def test_jerk_has_a_margin_where_it_is_limited_and_given(cobot: Robot) -> None:
    robot = replace(cobot, joints=(replace(cobot.joints[0], jerk_limit=200.0), *cobot.joints[1:]))
    q, dq, ddq, dddq = swing(robot)
    largest = np.deg2rad(30.0) * (2.0 * np.pi) ** 3

    with_jerk, without = motion_margins(robot, q, dq, ddq, dddq), motion_margins(robot, q, dq, ddq)

    assert with_jerk[0].jerk == pytest.approx(1.0 - largest / 200.0, rel=1e-4)
    assert [margins.jerk for margins in with_jerk[1:]] == [None] * 5
    assert without[0].jerk is None
    assert replace(with_jerk[0], jerk=-3.0).smallest == -3.0


def test_torque_counts_the_rotors_that_are_known(cobot: Robot) -> None:
    rotor = replace(cobot.drives[0], rotor_inertia=1e-3)
    robot = replace(cobot, drives=(rotor, *cobot.drives[1:]))
    q, dq, ddq, _ = swing(robot)

    with_rotor, without = motion_margins(robot, q, dq, ddq)[0], motion_margins(cobot, q, dq, ddq)[0]

    assert with_rotor.torque is not None
    assert without.torque is not None
    added = 1e-3 * 101.0**2 * np.abs(ddq[:, 0]).max() / 125.0
    assert without.torque - with_rotor.torque == pytest.approx(added, rel=1e-2)


def test_margins_of_earlier_plans_are_still_read() -> None:
    stored: dict[str, Any] = {"joint": "j1", "position": 0.1, "velocity": 0.2, "acceleration": 0.3, "torque": 0.4}

    assert JointMargins(**stored).smallest == 0.1
    assert JointMargins(**stored).reversals is None


@dataclass(frozen=True, eq=False)
class Wall:
    """Joint 1 may not go beyond 1 rad: a limit in space of which the distance is easy to tell."""

    names: tuple[str, ...] = ("wall", "far wall")

    def usage(self, motion: Motion) -> Array:
        return motion[0][:, :1] * np.array([1.0, 0.5])

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        by_q, *others = (np.zeros_like(values) for values in motion)
        by_q[:, 0] = np.array([1.0, 0.5])[scalars]
        return by_q, others[0], others[1], others[2]

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        return step**2 / 8.0 * bounds[2, 0] * np.array([1.0, 0.5])

    def describe(self, scalar: int, usage: float) -> str:
        return f"{self.names[scalar]}: {usage:.0%} used"

    def distance(self, scalar: int, usage: float) -> float:
        return (1.0 - usage) * (1.0, 2.0)[scalar]


def test_distances_in_space_are_named_the_nearest_first(cobot: Robot) -> None:
    motion = swing(cobot)

    distances = space_margins([*usable_limits(cobot), Wall()], motion)

    assert list(distances) == ["wall", "far wall"]
    assert distances["wall"] == pytest.approx(1.0 - np.deg2rad(30.0), abs=1e-5)
    assert distances["far wall"] == pytest.approx(2.0 - np.deg2rad(30.0), abs=1e-5)
