"""What is asked of a model and of a motion before anything moves for a proof."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import Model, fit
from jointbench.identification.prove import check_new_motion, check_same_robot, draw_motion
from jointbench.tests.identification.synthetic import arm, synthetic_run

ROBOT = arm(2)
RUN = synthetic_run(ROBOT, motion_seed=1, noise_seed=2)


@lru_cache(maxsize=1)
def model() -> Model:
    own = fit(RUN, settings={"cutoff_Hz": 20.0, "delay": 0.0}, friction="coulomb_viscous")
    assert RUN.excitation is not None
    recorded = {"excitation": RUN.excitation.to_dict()}
    return replace(own, provenance={"run": "runs/fitted", "sha256": "0" * 64, "recorded": recorded})


def test_a_model_of_another_robot_is_refused_and_other_masses_are_not() -> None:
    check_same_robot(model(), ROBOT)
    joints = ROBOT.joints
    heavier = replace(joints[1], link=replace(joints[1].link, mass=2.0 * (joints[1].link.mass or 1.0)))
    check_same_robot(model(), replace(ROBOT, joints=(joints[0], heavier)))
    longer = replace(joints[1], origin=(*joints[1].origin[:2], joints[1].origin[2] + 0.01))
    with pytest.raises(FitError, match=r"the kinematics of the model's robot"):
        check_same_robot(model(), replace(ROBOT, joints=(joints[0], longer)))
    geared = replace(ROBOT.drives[0], ratio=1.1 * ROBOT.drives[0].ratio)
    with pytest.raises(FitError, match=r"the drives of the model's robot"):
        check_same_robot(model(), replace(ROBOT, drives=(geared, *ROBOT.drives[1:])))


def test_the_fitted_motion_and_one_like_it_are_refused_and_what_to_do_is_said() -> None:
    motion = RUN.excitation
    assert motion is not None
    with pytest.raises(FitError, match=r"is that of run runs/fitted.*give another with --plan"):
        check_new_motion(model(), motion)
    with pytest.raises(FitError, match=r"standard deviations from that of run runs/fitted"):
        check_new_motion(model(), motion.scaled(0.97))


def test_a_motion_is_drawn_that_is_far_enough() -> None:
    motion = draw_motion(model(), 9.6, 1)
    assert check_new_motion(model(), motion) >= 0.1
    time = np.array([0.0, motion.period])
    np.testing.assert_allclose(motion.evaluate(time)[1], 0.0, atol=1e-9)


def test_a_model_of_a_log_is_refused() -> None:
    with pytest.raises(FitError, match=r"the motion of that run is not in its provenance"):
        draw_motion(replace(model(), provenance={"run": "log.csv", "sha256": "0" * 64}), 9.6, 1)
