"""System A's own method against cases by hand; its demo's checks go red when a method is broken. No boards."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from jointbench import Model, Validation
from jointbench.arrays import Array
from jointbench.excitation import random_excitation
from jointbench.identification.friction import FrictionData, FrictionFit, SpeedSweep, fit_friction, friction_law
from jointbench.model import Robot, base_parameters, inverse_dynamics, load_robot, model_columns
from tools.demo.friction_experiment import (
    JointFriction,
    PrintedExperiment,
    combined,
    experiment,
    friction_lines,
    mean_friction,
    our_law,
    true_friction,
)
from tools.demo.nursing_arm import verification_lines
from tools.demo.nursing_dual import both_arms_lines, link_difference, mirrored
from tools.demo.printed_nursing import PrintedModel, PrintedRows, fit_printed, joint_inertia, ridge, rms_of

ROBOT, BOTH = load_robot("nursing_arm"), load_robot("nursing_dual")
FEW = SpeedSweep(n_speeds=16, step=np.radians(2.0), pause=0.0)
"""As far as the printed strokes, in fewer steps."""


FRICTION = 4.0
"""What rubs beside the links' torque [N·m]: errors are shares of all that motors give."""


def plant(**more: Any) -> dict[str, Any]:
    """Friction of a joint, as the truth of a bench tells it."""
    beyond = {
        "grease_drag": 1.89,
        "mesh_ripple": 0.04,
        "mesh_second": 0.025,
        "mesh_teeth": 24,
        "mesh_phases": [0.3, 2.0],
    }
    return {"gammas": [1.6, 95.0, 11.0, 6.1, 65.0, 5.39], **beyond, "warming": 0.05, "warming_time": 1200.0, **more}


def test_torques_of_both_ways_are_combined_as_by_hand() -> None:
    """Eq. 20 with T1(+) = 5, T2(+) = 2, T1(-) = -3, T2(-) = -1: rotation (5-2+3-1)/2, pitch (5+2+3+1)/2."""
    first, second = (np.array([5.0]), np.array([-3.0])), (np.array([2.0]), np.array([-1.0]))
    assert combined(first, second, pitch=False).tolist() == [2.5]
    assert combined(first, second, pitch=True).tolist() == [5.5]
    # What does not turn with the direction, their modelling error, goes out.
    assert combined((first[0] + 0.7, first[1] + 0.7), second, pitch=True).tolist() == [5.5]


def test_the_joints_own_inertia_is_that_of_eq_11() -> None:
    """J11 = J22 = J1 + J2 and J12 = J1 - J2, of rotors behind gears of 3060."""
    rotors = [4e-7, 3e-7, 2e-7, 2e-7, 1e-7, 1e-7]
    inertia = joint_inertia(ROBOT, rotors)
    total, difference = 3060.0**2 * 7e-7, 3060.0**2 * 1e-7
    np.testing.assert_allclose(inertia[:2, :2], [[total, difference], [difference, total]], rtol=1e-12)
    assert inertia[0, 2:].tolist() == [0.0] * 4


def test_ridge_is_that_of_a_hand() -> None:
    """ZᵀZ = diag(3, 1), Zᵀt = (4, 6) and strength 1: (4/4, 6/2)."""
    assert ridge(np.diag([3.0, 1.0]), np.array([4.0, 6.0]), 1.0).tolist() == [1.0, 3.0]


@lru_cache(maxsize=4)
def rows(seed: int, gravity: float = 1.0) -> PrintedRows:
    """What links take, rotors and friction off: of the drawn arm, with a hundredth of it as noise."""
    motion = random_excitation(ROBOT, period=10.0, seed=seed)
    q, dq, ddq = motion.evaluate(np.linspace(0.0, 10.0, 400, endpoint=False))
    links = ROBOT.standard_parameters
    assert links is not None
    torque = inverse_dynamics(ROBOT, q, dq, gravity * ddq, links)
    noise = np.random.default_rng(seed).standard_normal(torque.shape)
    torque = torque + 0.01 * np.sqrt(np.mean(torque**2, axis=0)) * noise
    used = np.ones(len(q), dtype=np.bool_)
    size = np.sqrt(np.mean(torque**2, axis=0)) + FRICTION
    return PrintedRows(q, dq, ddq, torque, used, np.ones_like(q, dtype=np.bool_), size)


@lru_cache(maxsize=1)
def fitted() -> PrintedModel:
    return fit_printed(ROBOT, rows(0), 0)


def verification(predicted: Array, of: PrintedRows) -> list[bool]:
    """What the demo's checks say of a model's torque."""
    everywhere, moving = rms_of(predicted - of.torque, of)
    errors = SimpleNamespace(rms=everywhere, relative=everywhere / of.size)
    ours = SimpleNamespace(joint_names=ROBOT.joint_names, error_all=errors, rms=moving, relative=moving / of.size)
    lines = verification_lines(cast(Validation, ours), (everywhere, moving), of.size, np.full(6, 0.01))
    return [line.check.ok for line in lines if line.check is not None]


def test_the_papers_regression_predicts_another_motion() -> None:
    assert fitted().tested < 0.05
    assert len(fitted().parameters) == 36
    assert verification(fitted().predict(ROBOT, rows(1)), rows(1)) == [True] * 6


def test_a_wrong_sign_and_a_dropped_term_are_seen() -> None:
    right = fitted().predict(ROBOT, rows(1))
    assert sum(verification(-right, rows(1))) <= 1  # the palm's own roll needs next to nothing
    still = replace(rows(1), ddq=np.zeros_like(rows(1).ddq))
    assert not all(verification(fitted().predict(ROBOT, still), rows(1)))


def test_another_robot_than_the_one_that_was_fitted_is_seen() -> None:
    """Its forces of acceleration three times as large: beyond what a drawing is off by."""
    assert not all(verification(fitted().predict(ROBOT, rows(2, 3.0)), rows(2, 3.0)))


def friction_checks(found: PrintedExperiment, law: FrictionFit, played: float = 0.01) -> list[bool]:
    """What the demo's checks say, the same of every joint."""
    joints = {
        name: JointFriction(name, law, law, played, played, found, law, law)
        for name in ("j1", "j2", "j3", "j4", "j5", "j6")
    }
    return [line.check.ok for line in friction_lines(joints) if line.check is not None]


def test_the_printed_strokes_tell_the_plants_friction() -> None:
    found = experiment(plant(), pitch=True, noise=0.033, seed=0, sweep=FEW)
    law = our_law(found)
    assert friction_checks(found, law) == [True] * 4
    # The teeth swell within a stroke and not over it.
    assert 0.8 < found.r_squared_of_samples(law) < 0.97
    assert law.r_squared > 0.999
    assert friction_checks(found, law, played=0.03) == [True, False, True, False]


def test_friction_by_a_wrong_sign_is_seen() -> None:
    """T1 - T2 taken of a pitch gives nothing; T(-) taken for T(+) turns it round."""
    found = experiment(plant(), pitch=True, noise=0.033, seed=0, sweep=FEW)
    turned = PrintedExperiment(found.speeds, -found.friction, found.truth)
    means = turned.means
    assert not any(friction_checks(found, fit_friction(means, friction_law("makkar", means)))[::2])


def test_friction_without_the_term_that_grows_with_speed_is_seen() -> None:
    found = experiment(plant(), pitch=True, noise=0.033, seed=0, sweep=FEW)
    flat = FrictionData(found.speeds, np.full_like(found.speeds, found.means.torque.mean()))
    law = fit_friction(flat, friction_law("coulomb_viscous", flat))
    assert not any(friction_checks(found, law)[::2])


@pytest.mark.parametrize("beyond", [{"mesh_ripple": 0.9, "mesh_teeth": 1}, {"warming": 0.9, "warming_time": 3.0}])
def test_a_plant_beyond_all_that_was_assumed_is_seen(beyond: dict[str, Any]) -> None:
    """Strokes over half of a wave do not average it; gears that lose nearly all friction at once have no cold law."""
    found = experiment(plant(**beyond), pitch=True, noise=0.033, seed=0, sweep=FEW)
    cold = PrintedExperiment(found.speeds, found.friction, mean_friction(plant(**beyond), found.speeds))
    assert not any(friction_checks(cold, our_law(found))[::2])


# Both arms


def both_arms(
    robot: Robot = BOTH, late: float = 0.0, difference: float = 1.0, relative: Sequence[float] = 12 * (0.01,)
) -> dict[str, bool]:
    """What the checks of two arms say of a recording whose last board started late, and of a model's errors."""
    runs: Any = [SimpleNamespace(start_skew=0.0), SimpleNamespace(start_skew=late)]
    judged: Any = SimpleNamespace(
        joint_names=BOTH.joint_names,
        relative=np.full(12, 0.001),
        error_all=SimpleNamespace(relative=np.array(relative)),
    )
    lines = both_arms_lines(robot, runs, difference, judged)
    return {line.check.name: line.check.ok for line in lines if line.check is not None}


def test_two_mirrored_arms_that_start_together_keep_all_limits() -> None:
    assert list(both_arms().values()) == 5 * [True]


def test_an_arm_that_is_not_there_is_seen() -> None:
    one = both_arms(ROBOT)
    assert not one["motors"]
    assert not one["base_parameters"]


def test_a_board_that_starts_late_is_seen() -> None:
    assert both_arms(late=1.0)["start_ticks_apart"]
    assert not both_arms(late=2.0)["start_ticks_apart"]


def test_the_worst_of_all_joints_counts() -> None:
    """Over all rows: over moving ones alone it would pass."""
    assert not both_arms(relative=[*(11 * [0.01]), 0.06])["verification_relative"]
    assert not both_arms(relative=[*(11 * [0.01]), np.nan])["verification_relative"]


def test_an_arm_that_is_no_mirror_image_is_seen() -> None:
    """Of the same links on both sides next to nothing is left; of a palm of no mass on one side, its torque is."""
    assert both_arms(difference=mirror_difference(palm=1.0))["mirror_difference"]
    assert not both_arms(difference=mirror_difference(palm=0.0))["mirror_difference"]


def mirror_difference(palm: float) -> float:
    """In %, of the drawn links without friction, the right palm's parameters as a share of what they are."""
    base = base_parameters(BOTH)
    links = BOTH.standard_parameters
    assert links is not None
    share = np.ones((12, 10))
    share[-1] = palm
    values = base.group(np.append(links * share.ravel(), np.zeros(base.n_full - links.size)))  # the drives' come last

    def predict(q: Array, dq: Array, ddq: Array) -> Array:
        return (base.project(model_columns(BOTH, q, dq, ddq)[0]) @ values).reshape(q.shape)

    model: Any = SimpleNamespace(robot=BOTH, base=base, parameters=values, predict=predict)
    return 100.0 * link_difference(model, mirrored(BOTH, random_excitation(ROBOT, period=10.0, seed=0)))


SPEEDS = np.radians(np.arange(1.0, 31.5, 0.5))


def test_friction_of_the_plant_is_the_law_of_the_host() -> None:
    """Both write Makkar's law, one by γ1 … γ6, the other by coefficients and then shapes; grease is the plant's."""
    g = [2.4, 90.0, 10.0, 9.2, 60.0, 11.8]
    data = FrictionData(SPEEDS, SPEEDS)
    host = friction_law("makkar").torque(data, np.array([g[0], g[3], g[5], g[1], g[2], g[4]]))
    told = {"law": "makkar", "gammas": g, "grease_drag": 2.9}
    grease = 2.9 * SPEEDS ** (2.0 / 3.0)
    np.testing.assert_allclose(true_friction(told, SPEEDS), host + grease, rtol=1e-12)
    np.testing.assert_allclose(true_friction(told, -SPEEDS), -host - grease, rtol=1e-12)
    plain = true_friction({"law": "coulomb", "coulomb": 3.0, "viscous": 2.0, "transition": 1e-6}, SPEEDS)
    np.testing.assert_allclose(plain, 3.0 + 2.0 * SPEEDS, rtol=1e-12)


@pytest.mark.slow  # base parameters of twelve joints
def test_mirror_images_need_the_same_torque_and_others_do_not() -> None:
    both = load_robot("nursing_dual")
    motion = mirrored(both, random_excitation(load_robot("nursing_arm"), period=5.0, seed=0))
    assert [margins.joint for margins in motion.margins] == list(both.joint_names)
    base = base_parameters(both)
    links = both.standard_parameters
    assert links is not None

    def model(of_links: Array) -> Model:
        values = np.concatenate([of_links, np.zeros(len(base.full_names) - len(of_links))])
        return cast(
            Model,
            SimpleNamespace(
                robot=both,
                base=base,
                parameters=base.group(values),
                predict=lambda q, dq, ddq: inverse_dynamics(both, q, dq, ddq, of_links),
            ),
        )

    assert link_difference(model(links), motion) < 1e-9
    heavier = links.copy()
    heavier[10 * 7] *= 1.1  # mass of the right upper arm
    # A tenth of one of six bodies: percents of the torque.
    assert 1e-3 < link_difference(model(heavier), motion) < 0.2
