import dataclasses
from functools import cache
from typing import Literal

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.estimators import estimator
from jointbench.identification.estimators.estimator import (
    RobustLeastSquares,
    WeightedLeastSquares,
    _Bisquare,  # pyright: ignore[reportPrivateUsage]
    _Huber,  # pyright: ignore[reportPrivateUsage]
)
from jointbench.identification.least_squares import Estimate
from jointbench.identification.rows import MotionRows
from jointbench.tests.identification.estimators.exact_problem import (
    NOISE,
    bound,
    noisy_rows,
    problem_of,
    true_parameters,
)

SEEDS = range(20)


def with_gross_errors(seed: int, share: float = 0.05) -> MotionRows:
    """Rows of which some are off by up to a hundred σ, all to one side."""
    rows = noisy_rows(seed)
    rng = np.random.default_rng([seed, 1])
    bad = rng.random(rows.torque.shape) < share
    return dataclasses.replace(rows, torque=rows.torque + bad * rng.uniform(20.0, 100.0, bad.shape) * NOISE)


@cache
def found_in_gross_errors(loss: Literal["huber", "bisquare"]) -> list[Estimate]:
    return [RobustLeastSquares(loss)(problem_of(with_gross_errors(seed))) for seed in SEEDS]


@cache
def plain_in_gross_errors() -> Array:
    return np.array([WeightedLeastSquares()(problem_of(with_gross_errors(seed))).parameters for seed in SEEDS])


@pytest.mark.parametrize(("loss", "most"), [("huber", 2.0), ("bisquare", 1.2)])
def test_gross_errors_hardly_matter(loss: Literal["huber", "bisquare"], most: float):
    """Off on one side, they draw even Huber's a little; twenty σ and more, they do not exist for the bisquare."""
    found = np.array([each.parameters for each in found_in_gross_errors(loss)])
    off, off_plain = (
        np.sqrt(np.mean(((each - true_parameters()) / bound(noisy_rows(0))) ** 2))
        for each in (found, plain_in_gross_errors())
    )
    assert off < most
    assert off_plain > 5.0 * off


def test_error_bars_in_gross_errors():
    found = found_in_gross_errors("bisquare")
    over = np.array([(each.parameters - true_parameters()) / np.sqrt(np.diag(each.covariance)) for each in found])
    assert np.sqrt(np.mean(over**2)) == pytest.approx(1.0, abs=0.15)  # 100 independent ones tell it to 7 %


def test_it_says_which_rows_it_left_out():
    found = RobustLeastSquares("bisquare")(problem_of(with_gross_errors(0)))
    shares = found.figures["share_counting_less_than_half"]
    # 5 % spoiled, and of normal noise |u| > 2.53, where the bisquare weighs less than half, another 1.1 %.
    assert shares == pytest.approx([0.061] * 3, abs=0.035)
    assert "j1" in found.notes[0]
    # The median of 95 % good rows and 5 % bad ones is the good ones' 53rd percentile, 6 % more; of 600 rows it is told
    # to 5 %.
    assert found.joint_sigma == pytest.approx(1.06 * NOISE, rel=0.12)


def test_weights_that_have_not_settled_are_told(monkeypatch: pytest.MonkeyPatch):
    problem = problem_of(with_gross_errors(0))
    settled = RobustLeastSquares()(problem)
    assert len(settled.notes) == 1
    assert settled.figures["last_change_sigma"] < 1e-3
    monkeypatch.setattr(estimator, "_STEPS", 1)
    found = RobustLeastSquares()(problem)
    assert "have not settled" in found.notes[1]
    assert found.figures["last_change_sigma"] > 1e-3


@pytest.mark.parametrize("loss", [_Huber(1.345), _Bisquare(4.685)])
def test_slopes_are_those_of_the_scores(loss: _Huber | _Bisquare):
    u = np.linspace(-6.0, 6.0, 241) + 0.007  # not at a corner
    h = 1e-6
    score = [(u + d) * loss.weight(u + d) for d in (-h, h)]
    assert loss.slope(u) == pytest.approx((score[1] - score[0]) / (2.0 * h), abs=1e-6)


def test_without_noise_the_truth_comes_out():
    rows = noisy_rows(0, noise=0.0 * NOISE)
    for loss in ("huber", "bisquare"):
        found = RobustLeastSquares(loss)(problem_of(rows))
        assert found.parameters == pytest.approx(true_parameters(), rel=1e-6, abs=1e-8)
