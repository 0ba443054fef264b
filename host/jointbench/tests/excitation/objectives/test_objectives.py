import pickle
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.objectives.information import parameter_scales, weak_parameters
from jointbench.excitation.objectives.objective import CRITERIA, Objective
from jointbench.model import Coupling, Drive, Joint, Link, Robot, base_parameters, model_columns, modified_dh, regressor
from jointbench.model.chosen_columns import Motion

NAMES = tuple(CRITERIA)
COUPLING = Coupling("shoulder", ("j0", "j1"), ((50.0, 20.0), (-30.0, 40.0)))


def random_tree(kinds: str, seed: int, couplings: tuple[Coupling, ...] = ()) -> Robot:
    """A robot with random geometry and no inertias: one joint per letter, R revolute, P prismatic."""
    rng = np.random.default_rng(seed)
    joints: list[Joint] = []
    for i, kind in enumerate(kinds):
        rotation, origin = modified_dh(*rng.uniform(-1.5, 1.5, 4))
        parent, turns = int(rng.integers(-1, i)), kind == "R"
        moving = "revolute" if turns else "prismatic"
        link = Link(f"link{i}", None, None, None)
        joints.append(Joint(f"j{i}", moving, parent, rotation, origin, (-3.0, 3.0), 2.0, 5.0, 100.0, link))
    drives = tuple(Drive(joint.name, joint.name, "direct", 50.0, 0.1, 10.0) for joint in joints)
    home, gravity = (0.0,) * len(kinds), (1.0, -2.0, -9.0)
    return Robot(f"random {kinds}", tuple(joints), drives, couplings, gravity, home, "random", "random")


def random_motion(robot: Robot, samples: int, seed: int) -> Motion:
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, samples, robot.n_joints))
    return q, dq, ddq


def objective_of(robot: Robot, name: str, *, drives: bool = True, **settings: Any) -> Objective:
    """With noise where it takes one."""
    if name == "relative_sigma":
        settings.setdefault("noise", np.ones(robot.n_joints))
    return Objective.of(robot, base_parameters(robot, drives=drives), name, **settings)


def slope_along(objective: Objective, motion: Motion, direction: Motion) -> tuple[float, float]:
    """Derivative of the objective along a direction: by its gradient, and by central differences."""
    # Five points a step apart that is 6e-3 of the width of the smooth sign: their error is about the fourth power of
    # that. Rounding: 1e-16 times the condition number of G, some 1e6 here, over the step.
    step = 3e-4
    _, gradient = objective.value_and_gradient(motion)
    by_gradient = sum(float(np.sum(slope * way)) for slope, way in zip(gradient, direction, strict=True))

    def at(steps: int) -> float:
        q, dq, ddq = (values + steps * step * way for values, way in zip(motion, direction, strict=True))
        return objective.value_and_gradient((q, dq, ddq))[0]

    return by_gradient, (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)


@pytest.mark.parametrize("sharpness", [np.inf, 6.0])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("kinds", "couplings"), [("RR", ()), ("RRPR", (COUPLING,)), ("RPRRRP", (COUPLING,))])
@pytest.mark.parametrize("drives", [False, True])
def test_the_gradient_is_that_of_the_value(
    kinds: str, couplings: tuple[Coupling, ...], drives: bool, name: str, sharpness: float
) -> None:
    robot = random_tree(kinds, 1, couplings)
    noise = np.linspace(0.5, 2.0, robot.n_joints)
    emphasis = {} if name == "d_optimal" else {"mcx": 3.0, "j0.mcy": 0.2}
    objective = objective_of(robot, name, drives=drives, noise=noise, sharpness=sharpness, emphasis=emphasis)
    motion, direction = random_motion(robot, 60, 0), random_motion(robot, 60, 1)

    by_gradient, by_differences = slope_along(objective, motion, direction)

    assert by_gradient == pytest.approx(by_differences, rel=1e-6, abs=1e-6)
    assert abs(by_gradient) > 1e-3  # or the comparison would say nothing


@pytest.mark.parametrize("name", NAMES)
def test_what_is_reported_is_what_is_minimised_where_no_sign_is_smoothed(name: str) -> None:
    robot = random_tree("RRPR", 2)
    motion = random_motion(robot, 60, 0)
    objective = objective_of(robot, name, drives=False)

    minimised, _ = objective.value_and_gradient(motion)

    # The eigenvalues of the product have half the digits that singular values have.
    assert objective.reported_value(minimised) == pytest.approx(objective.value(motion), rel=1e-8)


def test_the_condition_number_is_that_of_the_columns(cobot: Robot) -> None:
    base, motion = base_parameters(cobot), random_motion(cobot, 60, 0)
    columns = base.project(model_columns(cobot, *motion)[0])
    scaled = columns / np.linalg.norm(columns, axis=0)

    # Two ways through the same decomposition differ by rounding times the condition number.
    assert Objective.of(cobot, base).value(motion) == pytest.approx(np.linalg.cond(columns), rel=1e-9)
    of_scaled = Objective.of(cobot, base, "scaled_condition_number").value(motion)
    assert of_scaled == pytest.approx(np.linalg.cond(scaled), rel=1e-9)


def test_the_other_criteria_are_of_the_covariance() -> None:
    robot = random_tree("RRPR", 3)
    base, motion, noise = base_parameters(robot, drives=False), random_motion(robot, 50, 0), np.array([1.0, 2, 3, 4])
    columns = base.project(regressor(robot, *motion)) / np.tile(noise, 50)[:, None]
    covariance = np.linalg.inv(columns.T @ columns)
    sizes = parameter_scales(robot, base).values

    def value(name: str) -> float:
        return Objective.of(robot, base, name, noise=noise).value(motion)

    assert value("d_optimal") == pytest.approx(np.linalg.slogdet(covariance)[1] / base.rank, rel=1e-9)
    assert value("e_optimal") == pytest.approx(np.log(np.linalg.eigvalsh(covariance)[-1]), rel=1e-9)
    assert value("relative_sigma") == pytest.approx((np.sqrt(np.diag(covariance)) / sizes).max(), rel=1e-9)


@pytest.mark.parametrize("name", [each for each in NAMES if each != "scaled_condition_number"])
def test_what_is_known_counts_as_motion_before(name: str) -> None:
    """Information of one motion, added to that of another, is the information of both in one."""
    robot = random_tree("RRPR", 3)
    first, second = random_motion(robot, 40, 0), random_motion(robot, 50, 1)
    q, dq, ddq = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    alone = objective_of(robot, name)
    columns = alone.information.columns(first)
    after = objective_of(robot, name, known=columns.T @ columns)
    # Twice through the same decomposition, once over a square root: rounding times the condition number.
    assert after.value(second) == pytest.approx(alone.value((q, dq, ddq)), rel=1e-7)
    by_gradient, by_differences = slope_along(after, second, random_motion(robot, 50, 2))
    assert by_gradient == pytest.approx(by_differences, rel=1e-6, abs=1e-6)


def test_sigma_may_be_relative_to_values_of_base_parameters() -> None:
    robot = random_tree("RRPR", 3)
    base, motion = base_parameters(robot), random_motion(robot, 50, 0)
    columns = Objective.of(robot, base).information.columns(motion)
    sigma = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)))
    sizes = np.linspace(1.0, 5.0, base.rank)
    assert objective_of(robot, "relative_sigma", sizes=sizes).value(motion) == pytest.approx((sigma / sizes).max())


@pytest.mark.parametrize("settings", [{"known": np.eye(3)}, {"sizes": np.ones(3)}, {"sizes": np.full(3, np.nan)}])
def test_what_is_known_of_other_parameters_is_refused(settings: dict[str, Array]) -> None:
    with pytest.raises(ExcitationError, match=r"has shape \(3.*these base parameters need \("):
        objective_of(random_tree("RRPR", 3), "relative_sigma", **cast("dict[str, Any]", settings))


def test_an_objective_goes_to_other_processes(cobot: Robot) -> None:
    objective = objective_of(cobot, "relative_sigma", sharpness=4.0)
    motion = random_motion(cobot, 30, 0)
    value, gradient = objective.value_and_gradient(motion)

    there, slopes = pickle.loads(pickle.dumps(objective)).value_and_gradient(motion)

    assert there == value
    np.testing.assert_array_equal(np.stack(slopes), np.stack(gradient))


# On matrices that are diagonal, or scaled, all criteria have closed forms.


def any_objective(name: str) -> Objective:
    return objective_of(random_tree("RR", 0), name, drives=False)


@pytest.mark.parametrize("name", NAMES)
def test_of_orthogonal_columns(name: str) -> None:
    objective = any_objective(name)
    diagonal = np.arange(1.0, objective.column_scale.size + 1.0)

    value, slope = objective.of_gram(np.diag(diagonal))

    n, last = len(diagonal), len(diagonal) - 1
    sigmas = 1.0 / (objective.column_scale * np.sqrt(diagonal))
    worst = int(sigmas.argmax())
    expected_slope = np.zeros(n)
    if name == "condition_number":
        expected = 0.5 * np.log(n)
        expected_slope[[0, last]] = -0.5, 0.5 / n
    elif name == "scaled_condition_number":
        expected = 0.0
    elif name == "d_optimal":
        expected = -np.log(diagonal).mean()
        expected_slope = -1.0 / (n * diagonal)
    elif name == "e_optimal":
        expected = 0.0
        expected_slope[0] = -1.0
    else:
        expected = np.log(sigmas[worst])
        expected_slope[worst] = -0.5 / diagonal[worst]
    assert value == pytest.approx(expected, abs=1e-13)
    np.testing.assert_allclose(np.diag(slope), expected_slope, rtol=0.0, atol=1e-13)


def some_gram(size: int, seed: int) -> Array:
    columns = np.random.default_rng(seed).normal(size=(3 * size, size))
    return columns.T @ columns


def test_longer_columns_do_not_change_the_scaled_condition_number() -> None:
    objective = any_objective("scaled_condition_number")
    size = objective.column_scale.size
    gram, longer = some_gram(size, 0), np.random.default_rng(1).uniform(0.1, 10.0, size)

    value, slope = objective.of_gram(gram)

    assert objective.of_gram(gram * np.outer(longer, longer))[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.einsum("ij,ij->i", slope, gram), 0.0, atol=1e-12)  # derivative by each length


@pytest.mark.parametrize("name", NAMES)
def test_the_stand_in_is_never_better_than_the_criterion_and_nears_it(name: str) -> None:
    objective = any_objective(name)
    gram = some_gram(objective.column_scale.size, 0)
    truth, _ = objective.of_gram(gram)
    size = objective.column_scale.size
    for sharpness in (2.0, 8.0, 32.0, 1e4):
        smooth_objective, _ = objective.with_sharpness(sharpness).of_gram(gram)
        # (Σ x^p)^(1/p) of n numbers is at most n^(1/p) times the largest.
        assert truth - 1e-12 <= smooth_objective <= truth + np.log(size) / sharpness + 1e-12


@pytest.mark.parametrize("name", ["condition_number", "scaled_condition_number", "e_optimal"])
def test_the_stand_in_is_smooth_where_eigenvalues_meet(name: str) -> None:
    """The criterion's own slope is that of one of the two eigenvectors; the stand-in's is half of either."""
    objective = any_objective(name).with_sharpness(4.0)
    gram = np.eye(objective.column_scale.size)

    _, slope = objective.of_gram(gram)

    ways = [some_gram(len(gram), seed) - 2.0 * np.eye(len(gram)) for seed in range(3)]
    for way in ways:
        there, back = (objective.of_gram(gram + step * way)[0] for step in (1e-6, -1e-6))
        # Eigenvalues split by the step: the stand-in's second derivative times 1e-6 is what differences are off by.
        assert np.sum(slope * way) == pytest.approx((there - back) / 2e-6, abs=1e-6)


def test_twice_the_noise_is_twice_the_deviation_and_the_same_condition_number() -> None:
    robot = random_tree("RRR", 4)
    motion = random_motion(robot, 40, 0)

    def value(name: str, noise: float) -> float:
        return objective_of(robot, name, noise=np.full(3, noise)).value(motion)

    assert value("relative_sigma", 2.0) == pytest.approx(2.0 * value("relative_sigma", 1.0), rel=1e-12)
    assert value("condition_number", 2.0) == pytest.approx(value("condition_number", 1.0), rel=1e-12)
    assert value("e_optimal", 2.0) == pytest.approx(value("e_optimal", 1.0) + np.log(4.0), rel=1e-12)


def test_emphasis_is_on_kinds_and_on_names() -> None:
    robot = random_tree("RRR", 4)
    base = base_parameters(robot)
    objective = Objective.of(robot, base, "e_optimal", emphasis={"coulomb": 2.0, "j1.coulomb": 5.0})

    emphasis = dict(zip(base.leading_names, 1.0 / objective.column_scale, strict=True))
    assert [emphasis[f"j{i}.coulomb"] for i in range(3)] == [2.0, 5.0, 2.0]
    assert {value for name, value in emphasis.items() if "coulomb" not in name} == {1.0}


def test_emphasis_is_the_weight_of_a_deviation() -> None:
    robot = random_tree("RRR", 4)
    base, motion = base_parameters(robot), random_motion(robot, 40, 0)
    worst = weak_parameters(robot, base, motion, noise=np.ones(3), limit=1e-9).parameters[0]
    assert worst.relative_sigma is not None
    plain = objective_of(robot, "relative_sigma").value(motion)
    assert plain == pytest.approx(worst.relative_sigma, rel=1e-9)

    emphasised = objective_of(robot, "relative_sigma", emphasis={worst.name: 3.0}).value(motion)

    assert emphasised == pytest.approx(3.0 * plain, rel=1e-9)


# Motions that tell nothing of some parameters, or of any.


@pytest.mark.parametrize("sharpness", [np.inf, 4.0])
@pytest.mark.parametrize("name", NAMES)
def test_a_joint_that_stands_still_gives_a_large_finite_value(cobot: Robot, name: str, sharpness: float) -> None:
    q, dq, ddq = random_motion(cobot, 60, 0)
    for values in (q, dq, ddq):
        values[:, 3] = 0.0
    objective = objective_of(cobot, name, sharpness=sharpness)

    minimised, gradient = objective.value_and_gradient((q, dq, ddq))
    moving = random_motion(cobot, 60, 0)

    assert np.isfinite(minimised)
    assert np.isfinite(np.stack(gradient)).all()
    assert np.isfinite(objective.value((q, dq, ddq)))
    # Rounding leaves about 1e-14 of a square; of d_optimal it is the mean over 58 parameters, of which few are dark.
    least = 1.0 if name == "d_optimal" else 7.0
    assert minimised > objective.value_and_gradient(moving)[0] + least
    if name != "d_optimal":
        assert objective.reported_value(minimised) > objective.reported_value(objective.value_and_gradient(moving)[0])


@pytest.mark.parametrize("name", NAMES)
def test_no_torque_at_all_is_an_error(name: str) -> None:
    robot = replace(random_tree("RR", 0), gravity=(0.0, 0.0, 0.0))
    still = np.zeros((20, 2))
    objective = objective_of(robot, name, drives=False)
    for ask in (objective.value, objective.value_and_gradient):
        with pytest.raises(ExcitationError, match="makes no torque at all"):
            ask((still, still, still))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_motion_that_is_not_finite_is_an_error(cobot: Robot, wrong: float) -> None:
    q, dq, ddq = random_motion(cobot, 60, 0)
    dq[7, 2] = wrong
    objective = Objective.of(cobot, base_parameters(cobot))
    for ask in (objective.value, objective.value_and_gradient):
        with pytest.raises(ExcitationError, match="the motion is not finite"):
            ask((q, dq, ddq))


def test_too_few_samples_are_an_error(cobot: Robot) -> None:
    objective = Objective.of(cobot, base_parameters(cobot))
    with pytest.raises(ExcitationError, match=r"9 samples give 54 equations for 58 base parameters; at least 10"):
        objective.value_and_gradient(random_motion(cobot, 9, 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "log_det"}, r"objective 'log_det' is not known; there is 'condition_number', 'scaled_"),
        ({"sharpness": 0.0}, r"sharpness = 0 must be above 0"),
        ({"name": "relative_sigma"}, r"'relative_sigma' needs the noise"),
        ({"name": "d_optimal", "emphasis": {"Ixx": 2.0}}, r"'d_optimal' has the same optimum whatever the emphasis"),
        (
            {"emphasis": {"friction": 2.0}},
            r"emphasis on 'friction': no .* there are the kinds .*Ixx",
        ),
        ({"emphasis": {"coulomb": 0.0}}, r"emphasis of 0 on 'coulomb' must be a positive number"),
        ({"noise": [1.0, 1.0]}, r"it takes 6 positive standard deviations of torque, one for each of j1, j2"),
        ({"noise": [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]}, r"it takes 6 positive"),
        ({"name": "relative_sigma", "noise": np.ones(6), "prior": {"j1.friction": 1.0}}, r"prior value of 'j1.fric"),
        ({"name": "relative_sigma", "noise": np.ones(6), "prior": {"j1.coulomb": np.nan}}, r"is nan; leave it out"),
    ],
)
def test_impossible_settings_are_named(cobot: Robot, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        Objective.of(cobot, base_parameters(cobot), **settings)
