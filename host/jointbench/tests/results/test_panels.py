"""A thinned line keeps what an eye would have seen: peaks and gaps.

The picture of two residuals shows each joint on each mission, with the gains that were judged.
"""

import dataclasses
import math
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jointbench.arrays import Array
from jointbench.drawing import PALETTE, house_style, inline_svg, thin
from jointbench.errors import FileNotWritten
from jointbench.identification import Validation, fit
from jointbench.identification.residual import TimePolynomial, gain_of, mission_of
from jointbench.identification.state_residual import StateResidual
from jointbench.model import with_passive
from jointbench.results import PressureModel, residual_picture, stance_picture
from jointbench.results.content import percent
from jointbench.results.joint_panels import (
    friction_curves,
    friction_panel,
    residual_spectra,
    spectrum_panel,
    torque_series,
)
from jointbench.results.panels import excitation_panel, residual_panel, torque_panel
from jointbench.results.pictures import residual_figure, residual_png, stance_figure, stance_png, torques_figure
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.identification.zero_moment_point.simulated_stance import simulated_stance

from .recordings import Example


def test_short_record_comes_back_as_it_is() -> None:
    time = np.arange(10.0)
    kept_time, kept = thin(time, time**2, bins=5)
    assert np.array_equal(kept_time, time)
    assert np.array_equal(kept, time**2)


def test_single_peaks_survive_in_their_place() -> None:
    time = np.arange(10_000) / 1000.0
    values = np.sin(time)
    values[4321], values[8765] = 50.0, -40.0
    kept_time, kept = thin(time, values, bins=100)
    assert kept.size <= 200
    assert np.all(np.diff(kept_time) > 0.0)
    assert kept_time[np.argmax(kept)] == 4.321
    assert kept_time[np.argmin(kept)] == 8.765


def test_gap_breaks_the_line() -> None:
    time = np.arange(10_000) / 1000.0
    values = np.sin(time)
    values[3000:5000] = np.nan
    kept_time, kept = thin(time, values, bins=100)
    inside = (kept_time >= 3.0) & (kept_time < 5.0)
    assert inside.any()
    assert np.isnan(kept[inside]).all()
    assert np.isfinite(kept[~inside]).all()


TIME = np.linspace(0.0, 20.0, 501)


def svg_of(figure: Figure) -> str:
    with house_style():
        return inline_svg(figure, "picture", "label")


def test_lines_of_the_torque_panel_are_the_data() -> None:
    measured, predicted = np.sin(TIME), np.cos(TIME)
    (axes,) = torque_panel(TIME, measured, predicted, "N·m").axes
    lines = {line.get_color(): line.get_xydata() for line in axes.lines}
    assert np.array_equal(lines[PALETTE.measured], np.column_stack([TIME, measured]))
    assert np.array_equal(lines[PALETTE.predicted], np.column_stack([TIME, predicted]))


def test_gap_between_complete_rows_is_not_drawn_over(example: Example) -> None:
    complete = example.validation.complete.copy()
    rows = np.flatnonzero(complete)
    complete[rows[50:60]] = False
    _, measured, predicted = torque_series(dataclasses.replace(example.validation, complete=complete))
    for series in (measured, predicted):
        assert np.flatnonzero(np.isnan(series).all(axis=1)).tolist() == list(range(50, 60))
        assert np.isnan(series).sum() == 10 * series.shape[1]


def test_residual_near_rest_does_not_set_the_scale() -> None:
    residual, moving = 0.1 * np.sin(TIME), np.ones(TIME.size, dtype=np.bool_)
    residual[100], moving[100] = 40.0, False
    trace, shape = residual_panel(TIME, residual, moving, 0.07, "N·m").axes
    assert 0.1 < trace.get_ylim()[1] < 0.2
    assert shape.get_xlim() == trace.get_ylim()
    (pale, counted) = trace.lines[:2]
    assert np.nanmax(np.asarray(pale.get_ydata())) == 40.0
    assert np.nanmax(np.asarray(counted.get_ydata())) < 0.11


def test_joint_that_never_moves_still_has_a_picture() -> None:
    figure = residual_panel(TIME, np.zeros(TIME.size), np.zeros(TIME.size, dtype=np.bool_), math.nan, "N·m")
    assert "nan" not in svg_of(figure).lower()


def test_limits_of_the_excitation_are_marked_on_the_axes() -> None:
    bounds = ((-160.0, -20.0), (-90.0, 90.0), (-300.0, 300.0))
    motion = (-90.0 + np.sin(TIME), np.cos(TIME), -np.sin(TIME))
    figure = excitation_panel(TIME, motion, bounds, ("°", "°/s", "°/s²"))
    for axes, (low, high) in zip(figure.axes, bounds, strict=True):
        assert {low, high} <= set(axes.get_yticks())
        assert axes.get_ylim()[0] < low < high < axes.get_ylim()[1]


def test_numbers_on_the_axes_keep_their_digits() -> None:
    figure = torque_panel(TIME, 0.004 * np.sin(TIME), 0.004 * np.cos(TIME), "N·m")
    svg = svg_of(figure)
    for mark in ("0.0025", "0.0000", "−0.0025"):
        assert mark in [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert f">{mark}<" in svg


def test_style_is_the_house_s_own_whatever_the_user_s() -> None:
    with house_style():
        before = svg_of(torque_panel(TIME, TIME, TIME, "N"))
    with mpl.rc_context({"lines.linestyle": ":", "axes.prop_cycle": "cycler('color', 'r')", "svg.fonttype": "path"}):
        with house_style():
            figure = torque_panel(TIME, TIME, TIME, "N")
        assert svg_of(figure) == before
        assert mpl.rcParams["svg.fonttype"] == "path"


@pytest.mark.parametrize(("joints", "panels"), [(1, (1, 1)), (2, (2, 1)), (6, (3, 2))])
def test_key_picture_arranges_any_number_of_joints(example: Example, joints: int, panels: tuple[int, int]) -> None:
    validation = dataclasses.replace(example.validation, joint_names=example.validation.joint_names[:joints])
    with house_style():
        figure = torques_figure(example.model, validation)
    assert len(figure.axes) == joints
    boxes = [axes.get_position() for axes in figure.axes]
    assert (len({round(box.x0, 6) for box in boxes}), len({round(box.y0, 6) for box in boxes})) == panels
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"{n}  [N·m]" for n in validation.joint_names]


RATE, ROWS = 40.0, 4000
SPECTRUM_TIME = np.arange(ROWS) / RATE


def with_residual(example: Example, residual: Array, **changes: object) -> Validation:
    """The example's validation as if this were left of every joint's torque, shape (ROWS,)."""
    joints = len(example.validation.joint_names)
    predicted = np.tile(30.0 + 5.0 * np.sin(2.0 * np.pi * SPECTRUM_TIME)[:, None], (1, joints))
    whole: dict[str, object] = {
        "time": SPECTRUM_TIME,
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
    spectra = residual_spectra(with_residual(example, 0.1 * np.sin(2.0 * np.pi * 7.0 * SPECTRUM_TIME)))
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


RUNS = [synthetic_run(arm(2), motion_seed=seed, noise_seed=seed, repeats=1) for seed in (1, 2)]
OWN = mission_of(RUNS[0])
MISSIONS = (OWN, mission_of(RUNS[1], settings=OWN.settings))
STATE, POLYNOMIAL = StateResidual.fit(OWN), TimePolynomial.fit(OWN)


@pytest.fixture(scope="module")
def missions_figure() -> Figure:
    with house_style():
        return residual_figure(MISSIONS, STATE, POLYNOMIAL)


def test_each_panel_has_its_gains_in_the_heading(missions_figure: Figure) -> None:
    headings = [axes.get_title(loc="right") for axes in missions_figure.axes]

    expected = [
        f"gain {percent(float(gain_of(STATE, mission).gain[joint]))}, "
        f"of time {percent(float(gain_of(POLYNOMIAL, mission).gain[joint]))}"
        for mission in MISSIONS
        for joint in range(2)
    ]
    assert headings == expected


def test_a_polynomial_that_is_far_off_does_not_squeeze_the_measured_error(missions_figure: Figure) -> None:
    for axes, mission in zip(missions_figure.axes[::2], MISSIONS, strict=True):
        low, high = axes.get_ylim()
        error = mission.error[mission.complete, 0]
        assert high - low < 1.5 * np.ptp(error)


def test_the_same_residuals_give_the_same_file(tmp_path: Path) -> None:
    path = residual_picture(tmp_path / "residuals.png", MISSIONS[:1], STATE, POLYNOMIAL)

    assert path.read_bytes() == residual_png(MISSIONS[:1], STATE, POLYNOMIAL)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotWritten, match=r"residuals\.png cannot be written"):
        residual_picture(tmp_path / "file" / "residuals.png", MISSIONS[:1], STATE, POLYNOMIAL)


STANCE = simulated_stance(duration=25.0)
TRUE = {"lc_trunk": 0.2, "m_trunk": 11.0}


def model(label: str, off: float, printed: float | None = None, sigma: float | None = None) -> PressureModel:
    """One whose points are `off` metres forward of the measured ones, whose parameters are 10 % above the true ones."""
    return PressureModel(
        label,
        np.add(STANCE.measured, (off, 0.0)),
        off,
        2.0 * off if sigma is not None else None,
        printed,
        {name: 1.1 * value for name, value in TRUE.items()},
        {} if sigma is None else {name: sigma * value for name, value in TRUE.items()},
    )


MODELS = (model("robot file", 0.03, 0.0338), model("paper", 0.005, 0.0046, 0.1), model("ours", 0.001, None, 0.05))
TRUTH = PressureModel("truth", STANCE.measured, 0.0, parameters=TRUE)


@pytest.fixture(scope="module")
def figure() -> Figure:
    with house_style():
        return stance_figure(STANCE, STANCE.measured, MODELS, TRUTH)


def titled(figure: Figure, start: str) -> list[Axes]:
    return [
        axes
        for axes in figure.axes
        if any(axes.get_title(loc=loc).startswith(start) for loc in ("left", "center"))  # type: ignore[arg-type]  # matplotlib's types are wider
    ]


def test_each_model_has_a_sole_with_its_distance_at_one_scale(figure: Figure) -> None:
    soles = [titled(figure, each.label)[0] for each in MODELS]

    assert [axes.get_title() for axes in soles] == ["robot file: 30.0 mm", "paper: 5.0 mm", "ours: 1.00 mm"]
    assert len({(*axes.get_xlim(), *axes.get_ylim()) for axes in soles}) == 1
    left, right = soles[0].get_xlim()
    assert left > right  # y of the base is to the left
    for axes, each in zip(soles, MODELS, strict=True):
        drawn = np.asarray(axes.lines[-1].get_xydata())
        shown = len(drawn)
        assert 15.0 < STANCE.time[shown - 1] - STANCE.time[0] <= 20.0
        np.testing.assert_allclose(drawn, 1e3 * each.points[:shown, ::-1])


def test_errors_over_time_are_those_of_what_was_estimated(figure: Figure) -> None:
    (errors,) = titled(figure, "error of x")

    assert [float(np.mean(line.get_ydata())) for line in errors.lines] == pytest.approx([5.0, 1.0])  # type: ignore[arg-type]  # matplotlib's types are wider


def test_distances_without_correction_and_printed_ones_stand_beside_ours(figure: Figure) -> None:
    (dots,) = titled(figure, "mean distance")

    said = [text.get_text() for text in dots.texts[:3]]
    assert said == ["30.00  \u25cb 33.8", "5.00  | 10.00  \u25cb 4.6", "1.00  | 2.00"]
    assert dots.get_xscale() == "log"


def test_parameters_are_drawn_off_the_reference_with_two_sigma(figure: Figure) -> None:
    (parameters,) = titled(figure, "parameters ± 2σ, off truth")
    dots = [line for line in parameters.lines if line.get_marker() == "o"]
    bars = [np.asarray(line.get_ydata()) for line in parameters.lines if line.get_marker() == "None"]

    np.testing.assert_allclose([np.asarray(dot.get_ydata())[0] for dot in dots], 10.0)
    lengths = [float(np.ptp(bar)) for bar in bars if np.ptp(bar) > 0.0]
    assert sorted(lengths) == pytest.approx([20.0, 20.0, 40.0, 40.0])


def test_a_short_stance_without_error_bars_is_drawn_too() -> None:
    names = ("time", "measured")
    short = replace(STANCE, **{name: getattr(STANCE, name)[:10] for name in names})
    bare = PressureModel("robot file", short.measured, 0.0)
    with house_style():
        assert stance_figure(short, short.measured, [bare], bare).axes


def test_the_same_stance_gives_the_same_file(tmp_path: Path) -> None:
    path = stance_picture(tmp_path / "stance.png", STANCE, STANCE.measured, MODELS, TRUTH)

    assert path.read_bytes() == stance_png(STANCE, STANCE.measured, MODELS, TRUTH)
    assert path.read_bytes().startswith(b"\x89PNG")
