"""Curves of friction show the friction that a recording has, and that of the model."""

import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification import fit
from jointbench.results.friction_curves import friction_curves
from jointbench.results.friction_panels import friction_panel
from jointbench.results.theme import PALETTE
from jointbench.robot import with_passive

from .recordings import Example

VISCOUS, COULOMB, OFFSET = 8.0, 5.0, 0.3
"""Of every joint of the example's recordings."""


def true_friction(speed: Array) -> Array:
    return VISCOUS * speed + COULOMB * np.sign(speed) + OFFSET


def test_what_is_shown_and_what_the_model_has_is_the_true_friction(example: Example) -> None:
    curves = friction_curves(example.model, example.verification_run)
    assert [curve.joint for curve in curves] == list(example.model.robot.joint_names)
    for curve in curves:
        assert len(curve.classes) >= 5
        low, middle, high = curve.shown
        assert np.all((low <= middle) & (middle <= high))
        # σ of j2's offset, which goes with the torque of its links, is 0.17 N·m; 3 σ, and noise of 0.1 N·m.
        np.testing.assert_allclose(middle, true_friction(curve.classes), atol=0.6)
        off = np.abs(curve.torque - true_friction(curve.speed))
        assert np.all(off < 5.0 * curve.sigma)
        assert curve.law == "Coulomb and viscous"
        assert curve.load is None


def test_a_law_has_a_curve_of_its_own_at_the_load_it_met(example: Example) -> None:
    model = fit(example.fit_run, friction={"j2": "stribeck", "j3": "coulomb_viscous+load"})
    curves = {curve.joint: curve for curve in friction_curves(model, example.verification_run)}
    assert curves["j2"].law == "stribeck"
    assert curves["j2"].load is None
    assert curves["j3"].load is not None
    assert curves["j3"].load > 0.0
    for name in ("j2", "j3"):
        # The recording has neither a Stribeck effect nor friction by load: next to these laws is what it has.
        np.testing.assert_allclose(curves[name].torque, true_friction(curves[name].speed), atol=0.5)


def test_a_passive_joint_has_none(example: Example) -> None:
    model = fit(example.fit_run, with_passive(example.model.robot, "j6"))
    assert "j6" not in [curve.joint for curve in friction_curves(model, example.verification_run)]


def test_what_is_not_told_has_no_band(example: Example) -> None:
    covariance = example.model.covariance.copy()
    covariance[example.model.names.index("j1.offset"), :] = np.inf
    covariance[:, example.model.names.index("j1.offset")] = np.inf
    first, second, *_ = friction_curves(dataclasses.replace(example.model, covariance=covariance), example.fit_run)
    assert np.isnan(first.sigma).all()
    assert np.isfinite(second.sigma).all()
    bands = [len(friction_panel(curve, "N·m", "rad/s").axes[0].collections) for curve in (first, second)]
    assert bands == [1, 3]  # the spread; and a band for each direction


def test_the_panel_draws_no_line_through_rest(example: Example) -> None:
    curve = friction_curves(example.model, example.verification_run)[0]
    (axes,) = friction_panel(curve, "N·m", "rad/s").axes
    sides = [np.asarray(line.get_xdata()) for line in axes.lines if line.get_color() == PALETTE.predicted]
    assert [np.sign(side).tolist() for side in sides] == [[sign] * 60 for sign in (-1.0, 1.0)]
    assert max(np.abs(side).min() for side in sides) == pytest.approx(np.abs(curve.speed).min())
