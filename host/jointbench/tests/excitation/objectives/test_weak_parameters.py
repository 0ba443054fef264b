from dataclasses import replace

import numpy as np
import pytest

from jointbench.errors import ExcitationError
from jointbench.excitation.objectives.information import (
    MIN_TORQUE_SHARE,
    UNKNOWN_TORQUE_SHARE,
    parameter_scales,
    weak_parameters,
)
from jointbench.model import Robot, base_parameters, load_robot, regressor
from jointbench.model.chosen_columns import Motion


def random_motion(robot: Robot, samples: int, seed: int) -> Motion:
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, samples, robot.n_joints))
    return q, dq, ddq


# What standard deviations are relative to.


def test_sizes_are_prior_values_where_there_are_any(cobot: Robot) -> None:
    base = base_parameters(cobot)
    scales = parameter_scales(cobot, base, {"j2.coulomb": -4.0})
    assert cobot.standard_parameters is not None
    full = np.concatenate([cobot.standard_parameters, np.zeros(base.n_full - 60)])
    expected = np.abs(base.group(full))

    plain = scales.known & ~scales.raised & np.array([name != "j2.coulomb" for name in scales.names])
    assert plain.sum() >= 10
    np.testing.assert_allclose(scales.values[plain], expected[plain], rtol=1e-12)
    assert scales.values[scales.names.index("j2.coulomb")] == 4.0
    unknown = {name for name, known in zip(scales.names, scales.known, strict=True) if not known}
    assert "j1.coulomb" in unknown
    assert "j2.coulomb" not in unknown


def test_what_is_not_known_is_relative_to_torque_limits(cobot: Robot) -> None:
    scales = parameter_scales(cobot, base_parameters(cobot))
    sizes = dict(zip(scales.names, scales.values, strict=True))
    for joint in cobot.joints:
        # A Coulomb torque is what it is; of all velocities drawn the largest is close to the limit.
        assert sizes[f"{joint.name}.coulomb"] == pytest.approx(UNKNOWN_TORQUE_SHARE * joint.torque_limit)
        by_speed = UNKNOWN_TORQUE_SHARE * joint.torque_limit / joint.velocity_limit
        assert by_speed <= sizes[f"{joint.name}.viscous"] <= 1.05 * by_speed
    assert any("j1.coulomb has no prior value" in words for words in scales.words)
    assert (scales.values[scales.raised] > 0.0).all()
    assert scales.raised.any()
    assert MIN_TORQUE_SHARE < UNKNOWN_TORQUE_SHARE


def test_known_rotors_are_prior_values_too(cobot: Robot) -> None:
    drives = tuple(replace(drive, rotor_inertia=1e-4) for drive in cobot.drives)
    robot = replace(cobot, drives=drives)
    scales = parameter_scales(robot, base_parameters(robot))

    # Joint 2's rotor is seen from joint 2; its leading parameter may be another joint's.
    at = scales.names.index("j3.rotor_inertia")
    assert scales.known[at]
    assert scales.values[at] >= 1e-4 * robot.drives[2].ratio ** 2 * (1.0 - 1e-12)


# Which parameters are weak.


def test_a_joint_that_does_not_move_leaves_its_friction_weak(cobot: Robot) -> None:
    base = base_parameters(cobot)
    q, dq, ddq = random_motion(cobot, 100, 0)
    assert weak_parameters(cobot, base, (q, dq, ddq)).parameters == ()
    q[:, 4], dq[:, 4], ddq[:, 4] = 0.3, 0.0, 0.0

    weak = weak_parameters(cobot, base, (q, dq, ddq))

    assert {"j5.coulomb", "j5.viscous"} <= set(weak.names)
    assert "j1.coulomb" not in weak.names
    assert weak.judged_by == "inflation"
    assert f"{len(weak.parameters)} of 58 base parameters are poorly excited" in weak.words[0]
    # A rotor inertia that is never felt does not act at all; it cannot be taken for another.
    silent = next(each for each in weak.parameters if each.name == "j5.coulomb")
    assert silent.words == "j5.coulomb: unidentifiable from this motion"


def test_inflation_is_one_over_the_sine_to_the_other_columns() -> None:
    robot = load_robot("tx40")
    base, motion = base_parameters(robot, drives=False), random_motion(robot, 30, 0)
    columns = base.project(regressor(robot, *motion))

    weak = weak_parameters(robot, base, motion, limit=0.5)

    assert len(weak.parameters) == base.rank
    for each in weak.parameters:
        i = base.leading_names.index(each.name)
        others = np.delete(columns, i, axis=1)
        rest = columns[:, i] - others @ np.linalg.lstsq(others, columns[:, i])[0]
        assert each.inflation == pytest.approx(np.linalg.norm(columns[:, i]) / np.linalg.norm(rest), rel=1e-8)


def test_deviations_are_those_of_many_fits(cobot: Robot) -> None:
    """Weighted least squares of simulated torques, over and over."""
    base, motion, noise = base_parameters(cobot, drives=False), random_motion(cobot, 30, 0), np.linspace(0.5, 2.0, 6)
    columns, sigma = base.project(regressor(cobot, *motion)), np.tile(noise, 30)
    errors = sigma * np.random.default_rng(0).normal(size=(4000, len(sigma)))
    estimates = (errors / sigma) @ np.linalg.pinv(columns / sigma[:, None]).T
    sizes = parameter_scales(cobot, base).values
    seen = dict(zip(base.leading_names, estimates.std(axis=0) / sizes, strict=True))

    once = weak_parameters(cobot, base, motion, noise=noise, limit=1e-9)
    often = weak_parameters(cobot, base, motion, noise=noise, limit=1e-9, repeats=4)

    assert len(once.parameters) == base.rank
    for each, fourth in zip(once.parameters, often.parameters, strict=True):
        assert each.relative_sigma is not None
        assert fourth.relative_sigma == pytest.approx(each.relative_sigma / 2.0, rel=1e-12)
        # The deviation of 4000 draws is itself known to 1 / sqrt(8000) = 1.1 %: five of these.
        assert each.relative_sigma == pytest.approx(seen[each.name], rel=0.056)


def test_parameters_that_err_together_are_named() -> None:
    """A joint at constant acceleration and about one pose: gravity and inertia cannot be told apart."""
    robot = load_robot("cobot6")
    base = base_parameters(robot)
    q, dq, ddq = random_motion(robot, 200, 0)
    q[:, 1] = 0.01 * q[:, 1]

    weak = weak_parameters(robot, base, (q, dq, ddq))

    offset = next(each for each in weak.parameters if each.name == "j2.offset")
    assert "j2.mcx" in offset.confused_with or "j2.mcy" in offset.confused_with
    assert "hard to tell from j2." in offset.words


def test_a_report_of_weakness_is_plain_values(cobot: Robot) -> None:
    base, motion = base_parameters(cobot), random_motion(cobot, 30, 0)
    weak = weak_parameters(cobot, base, motion, noise=np.ones(6), limit=1e-9)

    document = weak.to_dict()

    assert document["judged_by"] == "relative_sigma"
    assert [each["name"] for each in document["poorly_excited"]] == list(weak.names)
    assert len(document["poorly_excited"]) == document["n_parameters"] == 58
    assert document["assumptions"] == list(parameter_scales(cobot, base).words)


def test_repeats_below_one_are_refused(cobot: Robot) -> None:
    with pytest.raises(ExcitationError, match="repeats = 0"):
        weak_parameters(cobot, base_parameters(cobot), random_motion(cobot, 30, 0), repeats=0)
