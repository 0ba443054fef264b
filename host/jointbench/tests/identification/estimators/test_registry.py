import dataclasses

import pytest

from jointbench.errors import FitError
from jointbench.identification.estimators import estimator_help, make_estimator
from jointbench.identification.estimators.estimator import DEFAULT, ESTIMATORS, RobustLeastSquares, estimator_options


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_name_is_that_of_a_frozen_record(name: str):
    estimator = make_estimator(name)
    assert estimator.name == name
    assert type(estimator)(**estimator_options(estimator)) == estimator
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(estimator, "name", "other")  # noqa: B010 - an assignment to a frozen field is what is tried


def test_the_default_and_the_help():
    assert make_estimator().name == DEFAULT == "wls"
    assert [line.split(":")[0] for line in estimator_help().splitlines()] == list(ESTIMATORS)


def test_options_by_name():
    assert make_estimator("irls", {"loss": "bisquare"}) == RobustLeastSquares("bisquare")
    given = RobustLeastSquares(tuning=2.0)
    assert make_estimator(given) is given


@pytest.mark.parametrize("name", ESTIMATORS)
def test_defaults_are_of_the_kinds_that_options_may_be(name: str):
    options = estimator_options(make_estimator(name))
    assert make_estimator(name, options) == make_estimator(name)


def test_what_is_not_known_is_named():
    with pytest.raises(FitError, match=r"estimator 'lasso' is not known; the estimators are wls, ols"):
        make_estimator("lasso")
    with pytest.raises(FitError, match=r"'irls' has no option 'loos'; its options are loss, tuning"):
        make_estimator("irls", {"loos": "huber"})
    with pytest.raises(FitError, match="give them to the record itself"):
        make_estimator(RobustLeastSquares(), {"loss": "huber"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("irls", {"loss": "cauchy"}, r"loss 'cauchy' is not known; the losses are huber, bisquare"),
        ("irls", {"tuning": 0.0}, r"tuning = 0.0 must be above 0 σ"),
        ("ridge", {"strength": -1.0}, r"strength = -1.0 must be a number from 0"),
        ("bayes", {"mass": 0.0}, r"mass = 0.0 must be above 0"),
        ("physical", {"weight": "much"}, r"weight = 'much' must be a number above 0, 'held_out', or None"),
        ("physical", {"weight": 0.0}, r"weight = 0.0 must be a number above 0"),
        ("iv", {"bandwidth_Hz": float("inf")}, r"bandwidth_Hz = inf must be a number above 0"),
        ("irls", {"tuning": "wide"}, r"option tuning = 'wide' of estimator 'irls' must be a number or None"),
        ("irls", {"loss": 3}, r"option loss = 3 of estimator 'irls' must be a word"),
        ("bayes", {"mass": None}, r"option mass = None of estimator 'bayes' must be a number$"),
        ("iv", {"passes": 2.5}, r"option passes = 2.5 of estimator 'iv' must be a whole number"),
        ("physical", {"weight": True}, r"option weight = True of estimator 'physical' must be a number or a word"),
    ],
)
def test_options_that_nobody_can_mean(name: str, options: dict[str, object], message: str):
    with pytest.raises(FitError, match=message):
        make_estimator(name, options)
