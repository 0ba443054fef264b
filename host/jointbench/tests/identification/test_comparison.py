"""Two models beside each other: which differences of parameters, torques and friction laws are real."""

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import stats

from jointbench.errors import FitError
from jointbench.identification import Model, fit
from jointbench.identification.comparison import compare, effective_rows
from jointbench.identification.fleet import Fleet, FleetMember
from jointbench.identification.torque_difference import AllParameters, MotionTorque, holm, joint_test, single_tests
from jointbench.model import Coupling, model_parameter_names
from jointbench.signals import Motion
from jointbench.tests.identification.friction.law_runs import Friction, law_run, loaded, stribeck
from jointbench.tests.identification.synthetic import arm, excitation, synthetic_run, truth

ARM = arm(3)
NAMES = model_parameter_names(ARM)


def identified(seed: int, motion: int | None = None, **changes: float) -> Model:
    """A model of the arm with some true parameters scaled, such as j2_viscous=1.1."""
    parameters = truth(ARM).copy()
    for name, factor in changes.items():
        parameters[NAMES.index(name.replace("_", ".", 1))] *= factor
    run = synthetic_run(
        ARM, motion_seed=seed if motion is None else motion, noise_seed=seed, full_parameters=parameters
    )
    return fit(dataclasses.replace(run, sha256=f"{seed:064x}"))


@pytest.fixture(scope="module")
def model() -> Model:
    return identified(1)


def test_equal_robots_on_other_motions_are_the_same(model: Model):
    for seed in (2, 3, 4):
        found = compare(model, identified(seed))
        assert (found.answer, found.different) == ("same", ())
        assert found.p_value > 0.01  # which equal robots keep to 99 times in 100


@pytest.mark.slow
def test_equal_robots_are_called_different_as_often_as_it_says():
    """Pairs of runs of one robot on different motions."""
    models = [identified(seed) for seed in range(40)]
    comparisons = [compare(*pair) for pair in zip(models[::2], models[1::2], strict=True)]
    p_values = np.array([comparison.p_value for comparison in comparisons])
    # 20 pairs: at most one in a hundred is expected below 1 %, and three of them are seen once in a thousand times.
    assert np.sum(p_values < 0.01) <= 2
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.2)  # of a uniform one 0.5 with a standard error of 0.065
    assert all(comparison.answer == "same" for comparison in comparisons if comparison.p_value > 0.01)


def test_a_changed_friction_is_named_and_only_it(model: Model):
    found = compare(model, identified(2, j2_viscous=1.05))
    assert found.answer == "different"
    assert found.different == ("j2.viscous",)
    k = found.names.index("j2.viscous")
    expected = 0.05 * truth(ARM)[NAMES.index("j2.viscous")]
    assert found.difference[k] == pytest.approx(expected, abs=4.0 * found.sigma[k])
    assert "j2.viscous +5." in found.reason
    assert "the torque of j2 by" in found.reason


def test_the_torque_it_makes_is_put_where_it_belongs(model: Model):
    torques = compare(model, identified(2, j2_viscous=1.05)).torques
    assert torques["friction"].at_least[1] > 0.0
    # What is no friction, or not of this joint, differs by no more than three times what chance makes of it.
    for part, joint in (("links", 1), ("drives", 1), ("friction", 0), ("friction", 2), ("all", 0)):
        assert torques[part].rms[joint] < 3.0 * torques[part].sigma[joint]


def test_difference_of_torque_is_that_of_predictions(model: Model):
    other = identified(2, j2_viscous=1.2)
    plan = excitation(ARM, 5)
    motion = Motion(*plan.evaluate(np.linspace(0.0, 10.0, 700)))
    found = compare(model, other, motion=motion).torques["all"]
    mine, theirs = (each.predict(motion.q, motion.dq, motion.ddq) for each in (model, other))
    assert found.rms == pytest.approx(np.sqrt(np.mean((mine - theirs) ** 2, axis=0)))
    assert found.torque == pytest.approx(np.sqrt(np.mean(mine**2, axis=0)))


def test_sigma_of_the_torque_is_its_spread_over_noises(model: Model):
    """What equal models differ by, over draws of their parameters."""
    found = compare(model, identified(2)).torques["all"]
    other = identified(2)
    rng = np.random.default_rng(0)
    draws = [
        dataclasses.replace(
            each, parameters=rng.multivariate_normal(model.parameters, each.covariance, method="cholesky")
        )
        for each in [model, other] * 100
    ]
    rms = np.array([compare(*pair).torques["all"].rms for pair in zip(draws[::2], draws[1::2], strict=True)])
    # 100 draws of a mean square that is mostly in a few directions: known to about 15 %, its root to 8 %.
    assert np.sqrt(np.mean(rms**2, axis=0)) == pytest.approx(found.sigma, rel=0.2)
    assert np.mean(rms <= 1.96 * found.sigma) >= 0.95


def test_a_poor_model_cannot_be_told(model: Model):
    poor = dataclasses.replace(identified(2), covariance=1e5 * model.covariance)
    found = compare(model, poor)
    assert found.answer == "cannot tell"
    assert "may differ by" in found.reason
    assert "record longer or livelier motion" in found.reason
    k = found.names.index("j1.coulomb")
    # Seen nine times in ten: 2.58 σ for 1 %, and 1.28 σ more.
    assert found.detectable[k] == pytest.approx(3.86 * found.sigma[k], rel=0.01)


def test_detectable_difference_is_detected_nine_times_in_ten():
    """The promise of a power holds for one parameter tested by itself."""
    rng = np.random.default_rng(0)
    found = compare(identified(1), identified(2))
    k = found.names.index("j1.coulomb")
    z = (found.detectable[k] + found.sigma[k] * rng.standard_normal(4000)) / found.sigma[k]
    assert np.mean(np.abs(z) > stats.norm.isf(0.5 * found.level)) == pytest.approx(0.9, abs=0.02)


def test_a_parameter_that_only_one_model_tells(model: Model):
    k = model.names.index("j3.viscous")
    covariance, parameters = model.covariance.copy(), model.parameters.copy()
    covariance[k, :] = covariance[:, k] = 0.0
    covariance[k, k], parameters[k] = np.inf, 0.0
    other = dataclasses.replace(model, covariance=covariance, parameters=parameters, provenance={"sha256": "1"})
    found = compare(model, other)
    assert np.isinf(found.sigma[k])
    assert np.isnan(found.p_values[k])
    assert found.answer == "cannot tell"
    assert "of j3 only one of the models tells all" in found.reason
    assert not compare(model, identified(2, j1_coulomb=1.3)).one_sided.any()
    assert compare(other, identified(2, j1_coulomb=1.3)).answer == "different"
    neither = dataclasses.replace(other, provenance={"sha256": "2"})
    assert compare(other, neither).answer == "same"  # what no model has, they cannot differ in


def test_the_same_recording_is_never_different_by_mistake(model: Model):
    """Their errors go together in an unknown way: the largest covariance possible is taken."""
    again = dataclasses.replace(model, parameters=model.parameters + 1.5 * model.sigma)
    apart = compare(model, dataclasses.replace(again, provenance={"sha256": "other"}))
    shared = compare(model, again)
    assert shared.same_data
    assert not apart.same_data
    assert shared.sigma == pytest.approx(np.sqrt(2.0) * apart.sigma)
    assert shared.test.chi_square == pytest.approx(0.5 * apart.test.chi_square)
    several = dataclasses.replace(model, provenance={"runs": [{"sha256": "x"}, dict(model.provenance)]})
    assert compare(model, several).same_data


def test_exchanging_the_models_changes_signs_alone(model: Model):
    other = identified(2, j2_viscous=1.05)
    there, back = compare(model, other), compare(other, model)
    assert back.difference == pytest.approx(-there.difference)
    assert back.p_value == pytest.approx(there.p_value)
    assert back.different == there.different


def test_rows_that_a_covariance_is_worth(model: Model):
    n = max(model.rows)
    assert effective_rows(dataclasses.replace(model, lags=0)) == n
    assert effective_rows(dataclasses.replace(model, lags=9)) == pytest.approx(0.15 * n)


def test_models_that_stand_for_other_things_are_refused_by_name(model: Model):
    small = fit(synthetic_run(arm(2), motion_seed=1, noise_seed=1))
    with pytest.raises(FitError, match=r"the joints differ \(only the first has j3; only the second nothing"):
        compare(model, small)
    wrist = dataclasses.replace(ARM, couplings=(Coupling("wrist", ("j2", "j3"), ((101.0, 0.0), (101.0, 101.0))),))
    coupled = fit(dataclasses.replace(synthetic_run(ARM, motion_seed=1, noise_seed=1), robot=wrist))
    with pytest.raises(FitError, match=r"the parameters differ \(only the first has .*; only the second .*wrist"):
        compare(model, coupled)
    longer = dataclasses.replace(model, base=dataclasses.replace(model.base, grouping=1.01 * model.base.grouping))
    with pytest.raises(FitError, match=r"holds .* of .* in the first and .* in the second, so their lengths"):
        compare(model, longer)


def test_bad_wishes_are_named(model: Model):
    with pytest.raises(FitError, match=r"level = 0 must be between 0 and 1, and margin = 0.1 above 0"):
        compare(model, model, level=0.0)
    joints = tuple(dataclasses.replace(joint, acceleration_limit=np.inf) for joint in ARM.joints)
    free = dataclasses.replace(model, robot=dataclasses.replace(ARM, joints=joints))
    with pytest.raises(FitError, match=r"has no acceleration limit for joint j1, so it is not known which motions"):
        compare(free, free)


R, ROWS = 8, 60


def covariances(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two covariances, each estimated from `ROWS` rows, and a difference whose covariance they estimate."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).standard_normal((R, R))
    rows = rng.standard_normal((2, ROWS, R)) @ mixing
    difference = (rng.standard_normal((2, R)) @ mixing).sum(axis=0)
    return difference, np.einsum("knp,knr->kpr", rows, rows) / ROWS


def test_equal_parameters_are_called_different_as_often_as_it_says():
    """χ² alone calls them so far too often when σ rests on few rows."""
    p_values, of_chi_square = np.empty((2, 400))
    for seed in range(400):
        difference, (a, b) = covariances(seed)
        test = joint_test(difference, (a, b), (ROWS, ROWS))
        p_values[seed], of_chi_square[seed] = test.p_value, stats.chi2.sf(test.chi_square, test.freedom)
    # 400 draws: 5 % with a standard error of 1.1 %.
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(of_chi_square < 0.05) > np.mean(p_values < 0.05) + 0.02


def test_one_covariance_is_hotellings_test():
    difference, (a, _) = covariances(3)
    test = joint_test(difference, (a,), (ROWS,))
    t2 = difference @ np.linalg.solve(a, difference)
    assert test.chi_square == pytest.approx(t2)
    assert test.p_value == pytest.approx(stats.f.sf(t2 * (ROWS - R + 1) / (ROWS * R), R, ROWS - R + 1))


def test_units_do_not_matter():
    difference, (a, b) = covariances(4)
    units = np.logspace(-4.0, 3.0, R)
    scaled = joint_test(
        difference * units, (a * np.outer(units, units), b * np.outer(units, units)), (ROWS, 2.0 * ROWS)
    )
    plain = joint_test(difference, (a, b), (ROWS, 2.0 * ROWS))
    assert scaled.chi_square == pytest.approx(plain.chi_square, rel=1e-6)
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-6)


def test_a_combination_that_nobody_knows_is_not_tested():
    difference, (a, _) = covariances(5)
    twice = np.ix_([*range(R), 0], [*range(R), 0])
    test = joint_test(np.append(difference, difference[0]), (a[twice],), (ROWS,))
    assert test.freedom == R
    assert test.chi_square == pytest.approx(joint_test(difference, (a,), (ROWS,)).chi_square, rel=1e-6)


def test_too_few_rows_are_no_test():
    difference, (a, _) = covariances(6)
    assert np.isnan(joint_test(difference, (a,), (float(R - 2),)).p_value)
    assert np.isnan(joint_test(np.zeros(0), (np.zeros((0, 0)),), (10.0,)).p_value)


def test_each_for_itself_is_welchs_test():
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal(12), 3.0 * rng.standard_normal(7) + 1.0
    difference = np.array([other.mean() - one.mean(), 1.0])
    variances = (np.array([one.var(ddof=1) / 12, np.inf]), np.array([other.var(ddof=1) / 7, 1.0]))
    found = single_tests(difference, variances, (11.0, 6.0))
    assert found[0] == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)
    assert np.isnan(found[1])


def test_holm_names_something_wrongly_as_often_as_it_says():
    rng = np.random.default_rng(0)
    wrong = [np.min(holm(rng.random(30))) <= 0.05 for _ in range(1000)]
    # 1000 draws: 5 % with a standard error of 0.7 %.
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.02)


def test_holm_finds_more_than_bonferroni():
    assert holm(np.array([0.001, 0.011, 0.012])).tolist() == pytest.approx([0.003, 0.022, 0.022])


TWO_JOINTS = arm(2)
STRIBECK, WORN = stribeck(6.0, 4.0, 9.0, 0.2), stribeck(6.0, 4.4, 9.0, 0.2)
LOADED, DRY = loaded(5.0, 8.0, 0.08), loaded(5.0, 8.0, 0.10)


@cache
def identified_with_law(seed: int, law: str = "stribeck", j1: Friction = STRIBECK, j2: Friction = STRIBECK) -> Model:
    run = law_run(TWO_JOINTS, {"j1": j1, "j2": j2}, motion_seed=seed, noise_seed=seed)
    return fit(dataclasses.replace(run, sha256=f"{seed:064x}"), friction=law)


def with_load(seed: int, j1: Friction = LOADED) -> Model:
    return identified_with_law(seed, "coulomb_viscous+load", j1, LOADED)


def motion() -> Motion:
    return Motion(*excitation(TWO_JOINTS, 5).evaluate(np.linspace(0.0, 10.0, 700)))


@pytest.mark.slow
def test_equal_laws_are_called_different_as_often_as_it_says() -> None:
    comparisons = [compare(identified_with_law(seed), identified_with_law(seed + 1)) for seed in range(0, 16, 2)]
    p_values = np.array([comparison.p_value for comparison in comparisons])
    # Eight pairs: at most one in a hundred is expected below 1 %, and two of them are seen once in 400 times.
    assert np.sum(p_values < 0.01) <= 1
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.3)  # of a uniform one 0.5 with a standard error of 0.1
    assert all(comparison.answer == "same" for comparison in comparisons if comparison.p_value > 0.01)


def test_a_changed_law_is_named_and_only_it() -> None:
    found = compare(identified_with_law(1), identified_with_law(2, j2=WORN))
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
    found = compare(identified_with_law(1), identified_with_law(2))
    assert {"j1.coulomb", "j1.viscous", "j1.static_rise", "j1.stribeck_speed"} <= set(found.names)
    assert len(set(found.names)) == len(found.names)
    assert np.isfinite(found.sigma).all()


def test_difference_of_torque_with_laws_is_that_of_predictions() -> None:
    """All of it, and not to first order: laws bend."""
    mine, other, there = identified_with_law(1), identified_with_law(2, j2=WORN), motion()
    found = compare(mine, other, motion=there).torques["all"]
    first, second = (each.predict(there.q, there.dq, there.ddq) for each in (mine, other))
    assert found.rms == pytest.approx(np.sqrt(np.mean((first - second) ** 2, axis=0)))
    assert found.torque == pytest.approx(np.sqrt(np.mean(first**2, axis=0)))


@pytest.mark.parametrize("model", [identified_with_law, with_load])
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
    with pytest.raises(FitError, match=message + r"load, j2=.*\); fit both with the same laws"):
        compare(identified_with_law(1), with_load(1))
    with pytest.raises(FitError, match=r"only the second nothing more\); fit both with the same laws"):
        compare(identified_with_law(1), fit(law_run(TWO_JOINTS, {}, motion_seed=1, noise_seed=1)))


def test_units_with_laws_are_one_family_and_the_worn_one_stands_out() -> None:
    models = [
        *(identified_with_law(seed) for seed in range(6)),
        identified_with_law(20, j2=stribeck(6.0, 8.0, 9.0, 0.2)),
    ]
    (family,) = Fleet(tuple(FleetMember(f"unit{k}", "", model) for k, model in enumerate(models))).families
    assert "j2.static_rise" in {spread.name for spread in family.spreads}
    outliers = [outlier for outlier in family.outliers if outlier.parameter == "j2.static_rise"]
    assert [outlier.unit for outlier in outliers] == ["unit6"]
