"""One sample at a time: the same torque as the regressor's, for any robot."""

import numpy as np
import pytest

from jointbench.errors import ShapeError
from jointbench.identification.predictor import Predictor
from jointbench.model import model_columns
from jointbench.tests.results.peers import ROBOTS, full_model, motion


@pytest.mark.parametrize("name", ROBOTS)
def test_torque_is_that_of_the_regressor(name: str) -> None:
    full = full_model(name)
    moves = motion(full.robot, samples=30)
    columns, _ = model_columns(full.robot, *moves)
    expected = (columns @ full.full_parameters).reshape(moves[0].shape)
    predict = Predictor(full.robot, full.standard_parameters, full.drive_parameters, full.compensation_parameters)
    found = np.array([predict(*each) for each in zip(*moves, strict=True)])
    # Sums of some hundred products in double precision.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * float(np.abs(expected).max()))


def test_nothing_rubs_at_rest() -> None:
    full = full_model("cobot6")
    rest = np.zeros(6)
    without = np.where([name == 2 for name in np.arange(24) % 4], 0.0, full.drive_parameters)
    still = Predictor(full.robot, full.standard_parameters, full.drive_parameters)(rest, rest, rest)
    smooth = Predictor(full.robot, full.standard_parameters, without)(rest, rest, rest)
    np.testing.assert_array_equal(still, smooth)


def test_each_call_has_an_array_of_its_own() -> None:
    full = full_model("cobot6")
    predict = Predictor(full.robot, full.standard_parameters, full.drive_parameters)
    first = predict([0.1] * 6, [0.2] * 6, [0.3] * 6)
    kept = first.copy()
    predict(np.ones(6), np.ones(6), np.ones(6))
    np.testing.assert_array_equal(first, kept)


def test_other_shapes_are_refused() -> None:
    full = full_model("cobot6")
    predict = Predictor(full.robot, full.standard_parameters, full.drive_parameters)
    with pytest.raises(ShapeError, match=r"dq has shape \(5,\); one sample of 'cobot6' is \(6,\)"):
        predict(np.zeros(6), np.zeros(5), np.zeros(6))
    with pytest.raises(ShapeError, match=r"standard_parameters has shape \(59,\)"):
        Predictor(full.robot, full.standard_parameters[1:], full.drive_parameters)
    with pytest.raises(ShapeError, match=r"drive_parameters has shape \(23,\); robot 'cobot6' needs \(24,\)"):
        Predictor(full.robot, full.standard_parameters, full.drive_parameters[1:])
