"""The swing leg as the mirror image of the support leg."""

import dataclasses

import numpy as np
import pytest

from jointbench.errors import NotMirrored
from jointbench.identification.zero_moment_point.full_estimate import full_bodies, mirror_images
from jointbench.robot import load_robot
from jointbench.tests.identification.zero_moment_point.drawn_bodies import drawn_bodies
from jointbench.tests.identification.zero_moment_point.simulated_stance import biped, nominal, simulated_stance

ROUNDING = 1e-12


def test_the_biped_s_file_is_left_as_right() -> None:
    links = nominal(biped()).reshape(-1, 10)
    images = mirror_images(biped())
    assert sorted(each.link for each in images) == [7, 8, 9, 10, 11, 12]  # all of the swing leg, and not the trunk
    for image in images:
        assert links[image.link] == pytest.approx(image.turn @ links[image.source], abs=ROUNDING)


def test_the_image_of_the_image_is_the_body() -> None:
    for image in mirror_images(biped()):
        assert np.linalg.det(image.turn) != 0.0
        body = np.linalg.solve(image.turn, image.turn @ np.arange(10.0))
        assert body == pytest.approx(np.arange(10.0))
        assert image.turn[0] == pytest.approx(np.eye(10)[0])  # it weighs as much


def test_legs_that_are_no_mirror_images_are_refused_by_the_joint_s_name() -> None:
    robot = biped()
    knee = robot.joint_index("l_knee")
    moved = dataclasses.replace(robot.joints[knee], origin=(0.301, 0.0, 0.0))
    robot = dataclasses.replace(robot, joints=(*robot.joints[:knee], moved, *robot.joints[knee + 1 :]))
    with pytest.raises(NotMirrored, match="'l_knee' is not the mirror image of that of 'r_knee'"):
        mirror_images(robot)
    assert full_bodies(robot, left_is_right=False).base.rank == full_bodies(biped(), left_is_right=False).base.rank


def test_an_arm_has_no_legs_to_compare() -> None:
    with pytest.raises(NotMirrored, match="the axis of"):
        mirror_images(load_robot("cobot6"))
    with pytest.raises(NotMirrored, match="not one chain from foot to foot"):
        mirror_images(load_robot("modular7"))


def test_base_parameters_give_the_forces_of_all_links() -> None:
    """The columns that are left out of ten a link change nothing that the foot feels, with legs alike or not."""
    stance = simulated_stance(duration=2.0)
    same = drawn_bodies(biped(), 3)
    other = same * np.linspace(0.9, 1.1, len(same))
    for left_is_right, parameters in ((True, same), (False, other)):
        bodies = full_bodies(biped(), left_is_right=left_is_right)
        wrench = stance.columns @ parameters
        found = bodies.project(stance.columns) @ bodies.group(parameters)
        assert found == pytest.approx(wrench, abs=1e-9 * np.abs(wrench).max())
        assert bodies.mass_row @ bodies.group(parameters) == pytest.approx(parameters[::10].sum())
