"""Runs, models, validations and plans as a notebook shows them: one line, a card, a picture, a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import jointbench as jb
from jointbench.errors import ExcitationError, MissingExtra
from jointbench.notebook import EXTRA, card, png


class Shown(NamedTuple):
    run: jb.Run
    recorded: jb.Run
    model: jb.Model
    validation: jb.Validation
    plan: jb.Excitation


@pytest.fixture(scope="session")
def shown(files_of_examples: Path) -> Shown:
    """One of each that has a picture, of an arm with two joints."""
    run = jb.open_run(files_of_examples / "runs" / "arm")
    model = jb.fit(run, friction="coulomb_viscous")
    validation = jb.validate(model, jb.open_run(files_of_examples / "runs" / "other"))
    plan = jb.random_excitation(run.robot, period=4.0, seed=1)
    return Shown(run, jb.open_run(files_of_examples / "runs" / "recorded"), model, validation, plan)


def test_each_is_one_short_line(shown: Shown) -> None:
    lines = [repr(one) for one in (*shown, jb.compare(shown.model, shown.model), shown.run.robot)]

    assert all("\n" not in line and len(line) < 250 for line in lines)
    assert "cobot6:2, 2 joints, 10 s at 1000 Hz; imported>" in lines[0]
    assert lines[1].endswith("valid: 0 of 1314 samples lost>")
    assert lines[2].startswith("<Model of cobot6:2: 12 of 14 base parameters identified; torque error of the fit j1 ")
    assert lines[3].startswith("<Validation of cobot6:2 on ")
    assert "fourier, 4 s, condition number" in lines[4]
    assert lines[5].startswith("<Comparison: same; ")
    assert lines[6] == "<Robot cobot6:2: 2 joints j1, j2>"


@pytest.mark.parametrize("name", Shown._fields)
def test_a_card_has_facts_and_a_small_picture(name: str, shown: Shown) -> None:
    html = getattr(shown, name)._repr_html_()

    assert getattr(shown, "recorded" if name == "recorded" else "model").robot.name in html
    assert 'src="data:image/png;base64,' in html
    assert len(html) < 150_000  # a notebook keeps each card in its file


def test_a_name_with_angle_brackets_is_text() -> None:
    html = card("a <b> & c", [("<i>", "<script>")], lambda: pytest.importorskip("matplotlib").figure.Figure())

    assert "<b>" not in html
    assert "<script>" not in html
    assert "a &lt;b&gt; &amp; c" in html


@pytest.mark.parametrize("name", Shown._fields)
def test_a_picture_is_drawn_without_pyplot_and_the_same_each_time(name: str, shown: Shown) -> None:
    first, second = (getattr(shown, name).plot() for _ in range(2))

    assert png(first, 50.0) == png(second, 50.0)
    assert first._repr_png_().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules or pytest.importorskip("matplotlib.pyplot").get_fignums() == []


def test_the_picture_of_a_run_names_joints_quantities_and_units(shown: Shown) -> None:
    titles = [axes.get_title(loc="left") for axes in shown.run.plot().axes]

    assert titles == [
        "j1 position [rad]", "j1 torque at motors [N·m]", "j2 position [rad]", "j2 torque at motors [N·m]",
    ]  # fmt: skip


def test_the_table_of_a_run_has_its_samples(shown: Shown) -> None:
    table = shown.run.to_pandas()

    assert table.index.name == "time_s"
    assert {"play_tick", "j1.valid", "j1.motor_position_rad", "j2.motor_torque_Nm"} <= set(table.columns)
    assert np.array_equal(table["j2.motor_position_rad"], shown.run.samples.motor_position[:, 1])
    table["j1.motor_position_rad"] = 0.0  # a copy: the run stays as it is
    assert shown.run.samples.motor_position[:, 0].any()


def test_the_table_of_a_model_has_intervals_and_verdicts(shown: Shown) -> None:
    table, model = shown.model.to_pandas(), shown.model

    coulomb = table.loc["j1.coulomb"]
    assert (coulomb["low"], coulomb["high"]) == pytest.approx(model.confidence_interval("j1.coulomb"))
    assert (coulomb["unit"], coulomb["verdict"]) == ("N·m", "identified")
    assert list(table.index) == list(model.names)
    assert list(table.index[table["verdict"] != "identified"]) == ["j2.Ixy", "j2.Iyz"]


def test_the_table_of_a_validation_has_both_torques(shown: Shown) -> None:
    table, validation = shown.validation.to_pandas(), shown.validation

    residual = (table["j1.measured_Nm"] - table["j1.predicted_Nm"])[table["j1.moving"]]
    assert np.sqrt(np.mean(residual**2)) == pytest.approx(validation.rms[0])
    assert table["j1.measured_Nm"].isna().sum() == np.count_nonzero(~validation.complete)


def test_the_table_of_a_plan_is_the_motion(shown: Shown) -> None:
    table = shown.plan.to_pandas(0.5)

    q, dq, _ = shown.plan.evaluate([1.5])
    assert table.loc[1.5, ["j1.position", "j2.velocity"]].tolist() == pytest.approx([q[0, 0], dq[0, 1]])
    with pytest.raises(ExcitationError, match=r"sample_period = 0 s must be above 0, up to 4 s"):
        shown.plan.to_pandas(0.0)


@pytest.mark.parametrize(("method", "package"), [("plot", "matplotlib"), ("to_pandas", "pandas")])
def test_where_a_package_is_missing_the_error_names_the_extra(
    method: str, package: str, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Any = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("jointbench.extras.find_spec", lambda name: None if name == package else found(name))

    for one in (shown.run, shown.model, shown.validation, shown.plan):
        with pytest.raises(MissingExtra, match=rf"needs {package}, .*pip install 'jointbench\[{EXTRA}\]'"):
            getattr(one, method)()


def test_a_card_without_matplotlib_has_the_facts(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointbench.notebook.find_spec", lambda _: None)

    html = shown.model._repr_html_()
    assert "identified" in html
    assert "<img" not in html


def test_importing_the_names_imports_neither_package() -> None:
    program = (
        "import sys, jointbench as jb; jb.Run, jb.Model, jb.Validation, jb.Excitation; "
        "print([name for name in ('matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
