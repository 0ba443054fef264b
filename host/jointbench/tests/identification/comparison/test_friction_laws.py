"""Models whose joints have friction laws are compared by the laws' parameters, too."""

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from jointbench.errors import IncomparableModels
from jointbench.identification import Model, fit
from jointbench.identification.comparison import compare
from jointbench.identification.comparison.torque_difference import AllParameters, MotionTorque
from jointbench.identification.fleet import Fleet, Member
from jointbench.signals import Motion
from jointbench.tests.identification.friction_in_model.law_runs import Friction, law_run, loaded, stribeck
from jointbench.tests.identification.synthetic import arm, excitation

ARM = arm(2)
STRIBECK, WORN = stribeck(6.0, 4.0, 9.0, 0.2), stribeck(6.0, 4.4, 9.0, 0.2)
LOADED, DRY = loaded(5.0, 8.0, 0.08), loaded(5.0, 8.0, 0.10)


@cache
def identified(seed: int, law: str = "stribeck", j1: Friction = STRIBECK, j2: Friction = STRIBECK) -> Model:
    run = law_run(ARM, {"j1": j1, "j2": j2}, motion_seed=seed, noise_seed=seed)
    return fit(dataclasses.replace(run, sha256=f"{seed:064x}"), friction=law)


def with_load(seed: int, j1: Friction = LOADED) -> Model:
    return identified(seed, "coulomb_viscous+load", j1, LOADED)


def motion() -> Motion:
    return Motion(*excitation(ARM, 5).evaluate(np.linspace(0.0, 10.0, 700)))


@pytest.mark.slow
def test_equal_robots_are_called_different_as_often_as_it_says() -> None:
    comparisons = [compare(identified(seed), identified(seed + 1)) for seed in range(0, 16, 2)]
    p_values = np.array([each.p_value for each in comparisons])
    # Eight pairs: at most one in a hundred is expected below 1 %, and two of them are seen once in 400 times.
    assert np.sum(p_values < 0.01) <= 1
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.3)  # of a uniform one 0.5 with a standard error of 0.1
    assert all(each.answer == "same" for each in comparisons if each.p_value > 0.01)


def test_a_changed_law_is_named_and_only_it() -> None:
    found = compare(identified(1), identified(2, j2=WORN))
    assert found.answer == "different"
    assert found.different == ("j2.static_rise",)
    k = found.names.index("j2.static_rise")
    assert found.difference[k] == pytest.approx(0.4, abs=4.0 * found.sigma[k])
    assert found.torques["friction"].at_least[1] > 0.0
    for part, joint in (("links", 1), ("drives", 1), ("friction", 0), ("all", 0)):
        assert found.torques[part].rms[joint] < 3.0 * found.torques[part].sigma[joint]


def test_friction_that_grows_with_the_load_is_told_from_the_load() -> None:
    assert compare(with_load(1), with_load(2)).answer == "same"
    found = compare(with_load(1), with_load(3, DRY))
    assert found.different == ("j1.load_share",)


def test_what_laws_stand_for_is_not_compared_and_their_parameters_are() -> None:
    found = compare(identified(1), identified(2))
    assert {"j1.coulomb", "j1.viscous", "j1.static_rise", "j1.stribeck_speed"} <= set(found.names)
    assert len(set(found.names)) == len(found.names)
    assert np.isfinite(found.sigma).all()


def test_difference_of_torque_is_that_of_predictions() -> None:
    """All of it, and not to first order: laws bend."""
    mine, other, there = identified(1), identified(2, j2=WORN), motion()
    found = compare(mine, other, motion=there).torques["all"]
    first, second = (each.predict(there.q, there.dq, there.ddq) for each in (mine, other))
    assert found.rms == pytest.approx(np.sqrt(np.mean((first - second) ** 2, axis=0)))
    assert found.torque == pytest.approx(np.sqrt(np.mean(first**2, axis=0)))


@pytest.mark.parametrize("model", [identified, with_load])
def test_columns_are_the_derivative_of_the_torque(model: Callable[[int], Model]) -> None:
    values, torque = AllParameters.of(model(1)).values, MotionTorque(model(1), motion())
    columns = torque.columns(values)
    for k, value in enumerate(values):
        step = np.zeros_like(values)
        step[k] = 1e-6 * max(1.0, abs(value))
        slope = (torque.at(values + step) - torque.at(values - step)) / (2.0 * step[k])
        # The torque is some tens of N·m and has 16 digits: a difference by 2e-6 keeps 1e-8 of it.
        assert columns[:, :, k] == pytest.approx(slope, abs=1e-7)


def test_other_laws_are_refused_by_name() -> None:
    message = (
        r"friction laws differ \(only the first has j1=stribeck, j2=stribeck; only the second j1=coulomb_viscous\+"
    )
    with pytest.raises(IncomparableModels, match=message + r"load, j2=.*\); fit both with the same laws"):
        compare(identified(1), with_load(1))
    with pytest.raises(IncomparableModels, match=r"only the second nothing more\); fit both with the same laws"):
        compare(identified(1), fit(law_run(ARM, {}, motion_seed=1, noise_seed=1)))


def test_units_with_laws_are_one_family_and_the_worn_one_stands_out() -> None:
    models = [*(identified(seed) for seed in range(6)), identified(20, j2=stribeck(6.0, 8.0, 9.0, 0.2))]
    (family,) = Fleet(tuple(Member(f"unit{k}", "", model) for k, model in enumerate(models))).families
    assert "j2.static_rise" in {spread.name for spread in family.spreads}
    outliers = [outlier for outlier in family.outliers if outlier.parameter == "j2.static_rise"]
    assert [outlier.unit for outlier in outliers] == ["unit6"]
