"""A residual's spectrum has its power, and where it is: noise flat at its level, a line at its frequency."""

import dataclasses

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification import Validation
from jointbench.results.spectrum import residual_spectra
from jointbench.results.spectrum_panels import spectrum_panel
from jointbench.results.theme import PALETTE

from .recordings import Example

RATE, ROWS = 40.0, 4000
TIME = np.arange(ROWS) / RATE


def with_residual(example: Example, residual: Array, **changes: object) -> Validation:
    """The example's validation as if this were left of every joint's torque, shape (ROWS,)."""
    joints = len(example.validation.joint_names)
    predicted = np.tile(30.0 + 5.0 * np.sin(2.0 * np.pi * TIME)[:, None], (1, joints))
    whole: dict[str, object] = {
        "time": TIME,
        "predicted": predicted,
        "measured": predicted + residual[:, None],
        "complete": np.ones(ROWS, dtype=np.bool_),
        "moving": np.ones((ROWS, joints), dtype=np.bool_),
    }
    return dataclasses.replace(example.validation, **(whole | changes))


def power(frequency: Array, density: Array) -> float:
    return float(np.sum(density**2) * (frequency[1] - frequency[0]))


def test_noise_is_flat_and_has_its_own_power(example: Example) -> None:
    noise = 0.2 * np.random.default_rng(5).standard_normal(ROWS)
    spectra = residual_spectra(with_residual(example, noise))
    # A density from 7 half-overlapping segments is off by 0.4 of itself, its root by a fifth; their mean by far less.
    level = 0.2 / np.sqrt(RATE / 2.0)
    assert np.median(spectra.residual[:, 0]) == pytest.approx(level, rel=0.1)
    assert power(spectra.frequency, spectra.residual[:, 0]) == pytest.approx(0.2**2, rel=0.1)


def test_a_line_stands_at_its_frequency(example: Example) -> None:
    spectra = residual_spectra(with_residual(example, 0.1 * np.sin(2.0 * np.pi * 7.0 * TIME)))
    assert spectra.frequency[np.argmax(spectra.residual[:, 2])] == pytest.approx(7.0, abs=RATE / 1000)
    assert spectra.frequency[np.argmax(spectra.torque[:, 2])] == pytest.approx(1.0, abs=RATE / 1000)
    assert power(spectra.frequency, spectra.residual[:, 2]) == pytest.approx(0.1**2 / 2.0, rel=0.05)
    assert spectra.frequency[-1] == pytest.approx(RATE / 2.0)


def test_rows_that_do_not_count_take_no_power_away(example: Example) -> None:
    noise = 0.2 * np.random.default_rng(5).standard_normal(ROWS)
    moving = np.ones((ROWS, len(example.validation.joint_names)), dtype=np.bool_)
    moving[::2, 0] = False
    moving[:, 1] = False
    loud = np.where(moving[:, 0], noise, 100.0)
    spectra = residual_spectra(with_residual(example, loud, moving=moving))
    assert power(spectra.frequency, spectra.residual[:, 0]) == pytest.approx(0.2**2, rel=0.1)
    assert np.isnan(spectra.residual[:, 1]).all()


def test_the_panel_shows_both_and_the_level_of_noise() -> None:
    frequency = np.linspace(0.1, 20.0, 200)
    torque, residual = 10.0 / frequency, np.full(200, 0.02)
    (axes,) = spectrum_panel(frequency, torque, residual, 0.03, "N·m").axes
    lines = {line.get_color(): np.asarray(line.get_ydata()) for line in axes.lines}
    assert np.array_equal(lines[PALETTE.rule], torque)
    assert np.array_equal(lines[PALETTE.measured], residual)
    assert set(lines[PALETTE.limit]) == {0.03}
    low, high = axes.get_ylim()
    assert low < 0.02
    assert high > torque.max()
    assert axes.get_xticklabels()[-1].get_text().endswith(" Hz")


def test_a_joint_of_which_nothing_is_known_still_has_a_panel() -> None:
    frequency = np.linspace(0.1, 20.0, 200)
    nothing = np.full(200, np.nan)
    (axes,) = spectrum_panel(frequency, np.zeros(200), nothing, float("nan"), "N·m").axes
    assert len(axes.get_yticks()) == 0
