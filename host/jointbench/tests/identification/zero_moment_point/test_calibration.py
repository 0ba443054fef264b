"""What sensors tell when their errors are known."""

import numpy as np
import pytest

from jointbench.identification.zero_moment_point.reduced_parameters import theoretical_point
from jointbench.identification.zero_moment_point.stance import Calibration
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    biped,
    drawn_nuisance,
    nominal,
    simulated_stance,
)


def test_true_errors_leave_what_theory_says() -> None:
    """Exactly, and not to first order: gains are three times as wrong as sensors' are."""
    robot = biped()
    nuisance = 3.0 * drawn_nuisance(robot, robot.foot("r_foot"), 1)
    stance = simulated_stance(nuisance=nuisance, noise=0.0, duration=8.0)
    found, _ = Calibration(stance)(nuisance)

    off = np.abs(stance.measured - theoretical_point(stance, nominal(robot))).max()
    assert off > 1e-3
    np.testing.assert_allclose(found[:, :2], theoretical_point(stance, nominal(robot)), atol=1e-12)
    np.testing.assert_allclose(found[:, 2], stance.columns[:, 2] @ nominal(robot), atol=1e-9)


def test_derivatives_are_differences() -> None:
    robot = biped()
    nuisance = drawn_nuisance(robot, robot.foot("r_foot"), 2)
    stance = simulated_stance(nuisance=nuisance, duration=8.0)
    calibration = Calibration(stance)
    _, slopes = calibration(nuisance)
    for i, sigma in enumerate(stance.data_sheet):
        step = 1e-3 * sigma * np.eye(len(nuisance))[i]
        ahead, back = (calibration(nuisance + each)[0] for each in (step, -step))
        expected = (ahead - back) / (2e-3 * sigma)
        assert slopes[:, :, i] == pytest.approx(expected, rel=1e-5, abs=1e-6 * np.abs(expected).max() + 1e-12)
