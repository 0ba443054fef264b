"""Settings of a fit."""

import pytest

from jointbench.errors import FitError
from jointbench.identification import FitSettings


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
