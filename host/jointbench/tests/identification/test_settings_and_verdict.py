import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import FitSettings
from jointbench.identification.judgement.torque_error import torque_error
from jointbench.identification.judgement.verdict import judge_joint, judge_joints, judge_parameter, judge_whole


def test_settings_survive_a_dictionary():
    settings = FitSettings(cutoff_Hz=12.5, velocity_threshold=(0.1, 0.2), interval=(1.0, 2.0), torque="joint")
    assert FitSettings.from_dict(settings.to_dict()) == settings
    assert FitSettings.from_dict({}) == FitSettings()
    for delay in ((0.001, -0.002), "estimate", "estimate_per_joint"):
        assert FitSettings.from_dict(FitSettings(delay=delay).to_dict()).delay == delay


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cutof_Hz": 3}, r"fit setting 'cutof_Hz' is not known; the settings are cutoff_Hz, filter_order"),
        ({"position": "both"}, r"position = 'both' must be one of 'motor', 'link'"),
        ({"torque": "sensor"}, r"torque = 'sensor' must be one of 'motor', 'joint'"),
        ({"rest_guard": -1}, r"rest_guard = -1 s must be 0 or more"),
        ({"velocity_threshold": [0.1, -0.1]}, r"velocity_threshold = \[0.1, -0.1\] must be 0 or more"),
        ({"interval": [2.0, 1.0]}, r"interval = \[2.0, 1.0\] must be \[from, to\] in seconds"),
        ({"motion": "spline"}, r"motion = 'spline' must be one of 'filtered', 'fourier'"),
        ({"delay": "2 ms"}, r"delay = '2 ms' must be a number of seconds, one for each joint, or 'estimate' or"),
        ({"delay": [0.001, "x"]}, r"delay = \(0.001, 'x'\) must be made of numbers"),
        ({"cutoff_Hz": "20 Hz"}, r"cutoff_Hz = '20 Hz' must be made of numbers"),
        ({"cutoff_Hz": float("nan")}, r"cutoff_Hz = nan must be made of numbers"),
        ({"cutoff_Hz": [20.0, 30.0]}, r"cutoff_Hz = \(20.0, 30.0\) must be one number"),
        ({"rest_guard": float("inf")}, r"rest_guard = inf must be made of numbers"),
        ({"delay": float("nan")}, r"delay = nan must be made of numbers"),
        ({"filter_order": 2.5}, r"filter_order = 2.5 must be a whole number"),
        ({"average_periods": "no"}, r"average_periods = 'no' must be true or false"),
        ({"velocity_threshold": 0.1}, r"velocity_threshold = 0.1 must be a list"),
        ({"velocity_threshold": []}, r"velocity_threshold = \(\) must be a list"),
        ({"interval": 5.0}, r"interval = 5.0 must be \[from, to\]"),
        ({"interval": [1.0, 2.0, 3.0]}, r"interval = \(1.0, 2.0, 3.0\) must be \[from, to\]"),
    ],
)
def test_bad_settings_are_named(values: dict[str, object], message: str):
    with pytest.raises(FitError, match=message):
        FitSettings.from_dict(values)


@pytest.mark.parametrize(
    ("value", "sigma", "word"),
    [(10.0, 1.0, "identified"), (-10.0, 1.0, "identified"), (10.0, 3.0, "weak"), (10.0, 6.0, "refused"),
     (0.0, 1.0, "refused"), (0.0, np.inf, "refused")],
)  # fmt: skip
def test_words_on_parameters(value: float, sigma: float, word: str):
    assert judge_parameter("j1.viscous", value, sigma).word == word


def test_reasons_hold_the_figures():
    assert judge_parameter("p", 10.0, 6.0).reason == "10 ± 6 is within 2 σ of zero"
    assert "does not excite it" in judge_parameter("p", 0.0, np.inf).reason
    assert "25.0% of the torque over 80% of the time" in judge_joint("j1", 0.25, 0.8).reason


def test_words_on_joints_and_the_whole():
    errors = np.array([0.05, 0.2, 0.4, np.nan])
    joints = judge_joints(("a", "b", "c", "d"), errors, np.ones(4))
    assert [joint.word for joint in joints] == ["identified", "weak", "refused", "refused"]
    assert judge_whole(joints, errors).reason.startswith("worst joint d: the joint never moves")
    assert judge_whole(joints[:2], errors[:2]).word == "weak"
    fine = judge_joints(("a", "b"), np.array([0.02, 0.04]), np.ones(2))
    assert str(judge_whole(fine, np.array([0.02, 0.04]))).startswith("model: identified (worst joint b: torque error 4")


def test_torque_error_counts_only_what_is_counted():
    measured = np.array([[3.0, 1.0], [4.0, 1.0], [100.0, 1.0]])
    predicted = measured + np.array([[0.3, 0.0], [0.4, 0.0], [50.0, 0.0]])
    counted = np.array([[True, False], [True, False], [False, False]])
    error = torque_error(measured, predicted, counted, np.ones(3, dtype=np.bool_))
    assert error.rms[0] == pytest.approx(np.sqrt(0.125))
    assert error.relative[0] == error.total_relative == pytest.approx(0.1)
    assert np.isnan(error.rms[1])
    assert np.isnan(error.relative[1])
    assert error.share == pytest.approx([2.0 / 3.0, 0.0])
