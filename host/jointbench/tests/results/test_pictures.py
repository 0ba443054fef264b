"""The picture of two residuals shows each joint on each mission, with the gains that were judged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jointbench.drawing import house_style
from jointbench.errors import FileNotWritten
from jointbench.identification.residual import TimePolynomial, gain_of, mission_of
from jointbench.identification.state_residual import StateResidual
from jointbench.results import PressureModel, residual_picture, stance_picture
from jointbench.results.content import percent
from jointbench.results.pictures import residual_figure, residual_png, stance_figure, stance_png
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.identification.zero_moment_point.simulated_stance import simulated_stance

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
