"""What `./run bench friction` is made of: the problem, the ways of fitting, and what it says of them."""

from dataclasses import replace

import numpy as np
import pytest

from tools.bench.__main__ import VERBS
from tools.bench.friction import (
    NOISE,
    R_SQUARED,
    ROUNDING,
    Found,
    cases,
    global_search,
    make_checks,
    ours,
    search_table,
    swarm,
    swarm_table,
)

MINE = Found(rms_to_true=0.05, r_squared=0.95, squares=9.0, seconds=0.004)
PEER = Found(rms_to_true=0.05, r_squared=0.94, squares=9.1, seconds=0.8)


def test_the_verb_is_there() -> None:
    assert "friction" in VERBS


def test_the_problem_is_as_described() -> None:
    made, noisy = cases(20, 3), cases(20, 3, like_paper=True)
    for case in made:
        assert case.data.n_rows == 120
        assert case.data.both_directions
    errors = np.concatenate([case.data.torque - case.true for case in made])
    # 2400 samples tell their deviation to 1.5 %, and 40 sets of 120 a mean R² to a few thousandths.
    assert errors.std() == pytest.approx(NOISE, rel=0.06)
    r_squared = [1.0 - np.var(case.data.torque - case.true) / np.var(case.data.torque) for case in noisy]
    assert np.mean(r_squared) == pytest.approx(R_SQUARED, abs=0.01)
    assert not np.allclose(made[0].true, made[1].true)


def test_found_is_held_against_the_true_curve() -> None:
    case = cases(1, 0)[0]
    found = ours(case)
    # Six parameters fitted to 120 rows err by 0.3 √(6/120) = 0.07.
    assert found.rms_to_true < 0.14
    assert found.squares == pytest.approx(120 * NOISE**2, rel=0.4)
    assert ours(replace(case, true=case.true + 1.0)).rms_to_true > 0.9


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_over_many_truths_the_fit_is_as_near_to_the_curve_as_a_global_search(count: int) -> None:
    made = cases(count, 11)
    pairs = [(ours(case, 1), global_search(case, seed)) for seed, case in enumerate(made)]
    error, _, _ = make_checks(pairs, [(MINE, PEER)])
    assert error.ok, str(error)


def test_with_the_papers_noise_it_explains_no_less_than_the_swarm() -> None:
    for seed, case in enumerate(cases(12, 5, like_paper=True)):
        assert ours(case, 1).r_squared >= swarm(case, seed).r_squared - ROUNDING


@pytest.mark.parametrize(
    ("mine", "fails"),
    [
        ({}, []),
        ({"rms_to_true": 0.056}, [0]),
        ({"seconds": 0.011}, [1]),
        ({"r_squared": 0.939}, [2]),
    ],
)
def test_checks_can_fail(mine: dict[str, float], fails: list[int]) -> None:
    pair = (replace(MINE, **mine), PEER)
    checks = make_checks([pair] * 3, [(MINE, PEER), pair])
    assert [k for k, check in enumerate(checks) if not check.ok] == fails


def test_tables_say_what_was_found() -> None:
    said = search_table([(MINE, PEER), (replace(MINE, squares=10.0), PEER)])
    assert "0.9890 to 1.0989, above it for 1 of 2 joints" in said
    assert "particle swarm" in swarm_table([(MINE, PEER)])
