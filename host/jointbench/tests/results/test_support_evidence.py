"""What a plan on one foot says it will tell is what its motion tells, and the picture shows it."""

import itertools

import numpy as np
import pytest

from jointbench.dynamics import zero_moment_point
from jointbench.excitation import plan_single_support, random_excitation, support_workspace
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.results.plan_evidence import PlanEvidence
from jointbench.results.plan_figure import plan_figure
from jointbench.results.support_evidence import NOISE
from jointbench.results.theme import PALETTE, house_style
from jointbench.robot import load_robot
from jointbench.tests.results.test_plan_picture import shown_texts

ROBOT = load_robot("gorobot2")


@pytest.fixture(scope="module")
def evidence() -> PlanEvidence:
    return PlanEvidence.of(ROBOT, plan_single_support(ROBOT, 9.6, 4), workspace=support_workspace(ROBOT, "r_foot"))


def test_the_least_sigma_is_that_of_the_linear_problem(evidence: PlanEvidence) -> None:
    """From the regressor's columns instead of differences, and the mass as a measurement without noise."""
    support = evidence.support
    assert support is not None
    assert ROBOT.base_link is not None
    assert ROBOT.standard_parameters is not None
    motion = evidence.excitation.evaluate(np.arange(0.0, 9.6, 0.05))
    links = zero_moment_point(ROBOT, *motion, ROBOT.standard_parameters, -0.06)
    mass, center = ROBOT.base_link.mass or 0.0, np.array(ROBOT.base_link.center_of_mass)
    force = links.vertical_force + mass * 9.81
    points = (links.points * links.vertical_force[:, None] + mass * 9.81 * center[:2]) / force[:, None]
    np.testing.assert_allclose(points - [0.02, 0.0], support.balance.points, atol=1e-12)
    foot = np.zeros((len(points), 3, 10))
    foot[:, 0, 1], foot[:, 1, 2], foot[:, 2, 0] = 9.81, 9.81, 9.81
    columns = np.concatenate([foot, links.wrench_columns], axis=2)
    by_pi = (columns[:, :2] - points[:, :, None] * columns[:, 2:]) / force[:, None, None]
    reduced = ReducedParameters(ROBOT)
    slopes = (by_pi @ reduced.jacobian(reduced.nominal)).reshape(-1, 8) / NOISE
    known = np.vstack([slopes, 1e6 * reduced.mass_row])  # to a milligram

    sigma = np.sqrt(np.diag(np.linalg.inv(known.T @ known)))

    np.testing.assert_allclose(support.sigma, sigma, rtol=1e-3)  # differences and the milligram
    assert support.names == reduced.names


@pytest.mark.slow  # twelve joints take seconds to draw
def test_the_picture_shows_the_sole_and_what_it_tells(evidence: PlanEvidence) -> None:
    support = evidence.support
    assert support is not None
    with house_style():
        figure = plan_figure(evidence)
        figure.canvas.draw()
        boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        upwards = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across < 2.0 or upwards < 2.0, (one, other)  # a box is a pixel or two larger than its ink
    sole, told = figure.axes[-4:-2]
    path = next(line for line in sole.lines if line.get_color() == PALETTE.measured)
    np.testing.assert_allclose(np.column_stack([path.get_ydata(), path.get_xdata()]), 1e3 * support.balance.points)
    left, right = sole.get_xlim()
    assert left > right  # what is left of the robot is left in the picture
    widths = [patch.get_width() for patch in told.patches]  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(widths, 100.0 * support.relative_sigma)


def test_a_plan_of_an_arm_has_none() -> None:
    robot = load_robot("rehab_arm")
    assert PlanEvidence.of(robot, random_excitation(robot)).support is None
