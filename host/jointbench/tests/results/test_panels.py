"""The pictures show what they say they show."""

import dataclasses
import math

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from jointbench.results.joint_panels import torque_series
from jointbench.results.panels import excitation_panel, residual_panel, torque_panel
from jointbench.results.picture import torques_figure
from jointbench.results.theme import PALETTE, house_style, inline_svg

from .recordings import Example

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
