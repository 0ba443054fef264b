"""The Python face: each name shows how it is used, each mistake is a JointbenchError; a run may be a path.

Runs, models, validations and plans as a notebook shows them: one line, a card, a picture, a table.
"""

from __future__ import annotations

import doctest
import inspect
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import jointbench as jb
from jointbench.errors import ExcitationError, JointbenchError, MissingExtra
from jointbench.notebook import EXTRA, card, png

ARM, OTHER = "runs/arm", "runs/other"


def examples(thing: Any, name: str) -> list[doctest.Example]:
    """Those of its docstring that run; of a class not those of its methods."""
    (test,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(thing, name)
    return [example for example in test.examples if not example.options.get(doctest.SKIP)]


@pytest.mark.parametrize("name", jb.__all__)
def test_it_has_an_example(name: str) -> None:
    thing = getattr(jb, name)
    code = "".join(example.source for example in examples(thing, name))

    assert code, f"{name} has no example in its docstring"
    assert inspect.isclass(thing) or f"{name}(" in code, f"the example of {name} does not call it"


def test_dir_lists_every_public_name_before_it_is_used() -> None:
    program = "import jointbench as jb; print(*dir(jb)); print(*jb.__all__); print(jb.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listed, public, version = done.stdout.splitlines()

    assert {*public.split(), "__version__", "__all__"} <= set(listed.split())
    assert version == metadata.version("jointbench")


def test_what_does_not_run_is_no_example() -> None:
    def bare() -> None:
        """Do nothing."""

    def skipped() -> None:
        """Do nothing.

        >>> skipped()  # doctest: +SKIP
        """

    assert examples(bare, "bare") == examples(skipped, "skipped") == []


@pytest.fixture(scope="module")
def folder(files_of_examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs, and model.json and plan.json beside them."""
    folder = tmp_path_factory.mktemp("mistakes")
    shutil.copytree(files_of_examples, folder, dirs_exist_ok=True)
    jb.fit(folder / ARM, friction="coulomb_viscous").save(folder / "model.json")
    jb.random_excitation(jb.load_robot("cobot6:2"), period=4.0, seed=1).save(folder / "plan.json")
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.mark.usefixtures("here")
def test_paths_stand_for_runs_models_and_robots() -> None:
    run, model = jb.open_run(ARM), jb.load_model("model.json")

    fitted = jb.fit(ARM, "cobot6:2", friction="coulomb_viscous")
    assert np.array_equal(fitted.parameters, model.parameters)
    assert np.array_equal(jb.fit([Path(ARM)], friction="coulomb_viscous").parameters, model.parameters)
    named, opened = jb.validate("model.json", OTHER), jb.validate(model, jb.open_run(Path(OTHER)))
    assert np.array_equal(named.relative, opened.relative)
    assert len(jb.validate_models(["model.json", model], Path(OTHER))) == 2
    assert jb.compare("model.json", Path("model.json")).answer == "same"
    wrench = jb.Wrench("upper_arm", [0.0, 0.0, -20.0])
    by_path, by_run = (jb.without_external(one, wrench).samples.motor_torque for one in (ARM, run))
    assert by_path is not None
    assert by_run is not None
    assert np.array_equal(by_path, by_run)
    assert jb.export("model.json", "model_again.toml").is_file()


def test_names_stand_for_robots(folder: Path) -> None:
    name, still, zeros = "cobot6:2", [[0.1, 0.2]], np.zeros(20)
    robot, wrench = jb.load_robot(name), jb.Wrench("upper_arm", [0.0, 0.0, -20.0])

    def fleet_model(one: Any) -> jb.Model:
        (member,) = jb.fit_fleet([folder / ARM], one, out=folder / "fleet", friction="coulomb_viscous").fitted
        assert member.model is not None
        return member.model

    calls: list[Callable[[Any], Any]] = [
        lambda one: jb.regressor(one, still, still, still),
        lambda one: jb.inverse_dynamics(one, still, still, still, zeros),
        lambda one: jb.external_torques(one, still, wrench),
        lambda one: jb.base_parameters(one).grouping,
        lambda one: jb.random_excitation(one, period=4.0, seed=1).evaluate([0.5]),
        lambda one: jb.plan_excitation(one, period=4.0, starts=1, iterations=1).evaluate([0.5]),
        lambda one: fleet_model(one).parameters,
    ]
    for call in calls:
        np.testing.assert_array_equal(call(name), call(robot))


MISTAKES: list[tuple[str, Callable[[], object]]] = [
    ("no run at 'nowhere'|nowhere", lambda: jb.open_run("nowhere")),
    ("nowhere", lambda: jb.fit("nowhere")),
    ("nowhere", lambda: jb.fit([ARM, "nowhere"])),
    ("nowhere", lambda: jb.validate("model.json", "nowhere")),
    ("nowhere.json cannot be read", lambda: jb.validate("nowhere.json", OTHER)),
    ("nowhere.json cannot be read", lambda: jb.load_model("nowhere.json")),
    ("nowhere.json cannot be read", lambda: jb.compare("model.json", "nowhere.json")),
    ("no plan at nowhere.json", lambda: jb.load_excitation("nowhere.json")),
    ("plan.json", lambda: jb.load_model("plan.json")),
    ("model.json", lambda: jb.load_excitation("model.json")),
    ("cobot7", lambda: jb.load_robot("cobot7")),
    ("cobot7", lambda: jb.fit(ARM, "cobot7")),
    ("cobot7", lambda: jb.regressor("cobot7", [[0.0]], [[0.0]], [[0.0]])),
    ("cobot7", lambda: jb.plan_excitation("cobot7")),
    ("cobot7", lambda: jb.fit_fleet([ARM], "cobot7")),
    ("int is given to fit; give a run", lambda: jb.fit(7)),  # pyright: ignore[reportArgumentType]
    ("int is given as a run", lambda: jb.fit([7])),  # pyright: ignore[reportArgumentType]
    ("Run is given as a model", lambda: jb.validate(jb.open_run(ARM), ARM)),  # pyright: ignore[reportArgumentType]
    ("NoneType is given as a model", lambda: jb.compare("model.json", None)),  # pyright: ignore[reportArgumentType]
    ("no run is given", lambda: jb.fit([])),
    ("best", lambda: jb.fit(ARM, estimator="best")),
    ("cutof", lambda: jb.fit(ARM, settings={"cutof_Hz": 10.0})),
    ("cutoff", lambda: jb.fit(ARM, settings={"cutoff_Hz": 1e5})),
    ("cutoff", lambda: jb.fit(ARM, settings={"cutoff_Hz": "ten"})),
    ("rust", lambda: jb.fit(ARM, friction="rust")),
    ("loss", lambda: jb.fit(ARM, estimator="wls", options={"loss": 3})),
    ("interval", lambda: jb.validate("model.json", OTHER, interval=(5.0, 1.0))),
    ("was fitted to run", lambda: jb.validate("model.json", ARM)),
    ("no model is given", lambda: jb.validate_models([], OTHER)),
    ("level", lambda: jb.compare("model.json", "model.json", level=2.0)),
    ("elbow", lambda: jb.load_model("model.json").value("elbow")),
    ("level", lambda: jb.load_model("model.json").confidence_interval("j1.coulomb", level=2.0)),
    ("shape", lambda: jb.load_model("model.json").predict([[0.0]], [[0.0]], [[0.0]])),
    ("shape", lambda: jb.regressor(jb.load_robot("cobot6"), [0.0], [0.0], [0.0])),
    ("shape", lambda: jb.inverse_dynamics(jb.load_robot("cobot6"), [0.0], [0.0], [0.0], np.zeros(60))),
    ("ankle", lambda: jb.load_robot("cobot6").joint_index("ankle")),
    ("wings", lambda: jb.without_external(ARM, jb.Wrench("wings", [0.0, 0.0, 1.0]))),
    ("family", lambda: jb.random_excitation(jb.load_robot("cobot6:2"), family="waltz")),
    ("period", lambda: jb.random_excitation(jb.load_robot("cobot6:2"), period=-1.0)),
    ("time has shape", lambda: jb.load_excitation("plan.json").evaluate([[0.0]])),
    ("share", lambda: jb.load_excitation("plan.json").scaled(2.0)),
    ("objective", lambda: jb.plan_excitation(jb.load_robot("cobot6:2"), objective="beauty", period=4.0)),
    ("nowhere.toml", lambda: jb.open_bench("nowhere.toml")),
    ("nowhere.toml", lambda: jb.read_workspace("nowhere.toml")),
    ("nowhere.toml", lambda: jb.import_csv("nowhere.toml", "runs/imported")),
    ("exists", lambda: jb.import_csv("log.toml", ARM)),
    ("model.xyz", lambda: jb.export("model.json", "model.xyz")),
    ("at least one", lambda: jb.fit_fleet([])),
    ("int is given as a motion", lambda: jb.record(jb.open_bench("bench.toml"), 7, "x")),  # pyright: ignore[reportArgumentType]
]  # fmt: skip


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("words", "mistake"), MISTAKES, ids=[f"{k}-{words}" for k, (words, _) in enumerate(MISTAKES)])
def test_a_mistake_is_one_sentence(words: str, mistake: Callable[[], object]) -> None:
    with pytest.raises(JointbenchError, match=words) as raised:
        mistake()
    assert len(str(raised.value)) > len(words)


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
