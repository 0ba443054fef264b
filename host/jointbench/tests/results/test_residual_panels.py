"""The picture of two residuals shows each joint on each mission, with the gains that were judged."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from jointbench.errors import ReportError
from jointbench.identification.residual import TimePolynomial, gain_of, mission_of
from jointbench.identification.state_residual import StateResidual
from jointbench.results import residual_picture
from jointbench.results.digits import percent
from jointbench.results.residual_panels import residual_figure, residual_png
from jointbench.results.theme import house_style
from jointbench.tests.identification.synthetic import arm, synthetic_run

RUNS = [synthetic_run(arm(2), motion_seed=seed, noise_seed=seed, repeats=1) for seed in (1, 2)]
OWN = mission_of(RUNS[0])
MISSIONS = (OWN, mission_of(RUNS[1], settings=OWN.settings))
STATE, POLYNOMIAL = StateResidual.fit(OWN), TimePolynomial.fit(OWN)


@pytest.fixture(scope="module")
def figure() -> Figure:
    with house_style():
        return residual_figure(MISSIONS, STATE, POLYNOMIAL)


def test_each_panel_has_its_gains_in_the_heading(figure: Figure) -> None:
    headings = [axes.get_title(loc="right") for axes in figure.axes]

    expected = [
        f"gain {percent(float(gain_of(STATE, mission).gain[joint]))}, "
        f"of time {percent(float(gain_of(POLYNOMIAL, mission).gain[joint]))}"
        for mission in MISSIONS
        for joint in range(2)
    ]
    assert headings == expected


def test_a_polynomial_that_is_far_off_does_not_squeeze_the_measured_error(figure: Figure) -> None:
    for axes, mission in zip(figure.axes[::2], MISSIONS, strict=True):
        low, high = axes.get_ylim()
        error = mission.error[mission.complete, 0]
        assert high - low < 1.5 * np.ptp(error)


def test_the_same_residuals_give_the_same_file(tmp_path: Path) -> None:
    path = residual_picture(tmp_path / "residuals.png", MISSIONS[:1], STATE, POLYNOMIAL)

    assert path.read_bytes() == residual_png(MISSIONS[:1], STATE, POLYNOMIAL)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"residuals\.png cannot be written"):
        residual_picture(tmp_path / "file" / "residuals.png", MISSIONS[:1], STATE, POLYNOMIAL)
