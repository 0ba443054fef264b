"""The Python face: each name shows how it is used, each mistake is a JointbenchError; a run may be a path."""

from __future__ import annotations

import doctest
import inspect
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointbench as jb
from jointbench.errors import JointbenchError

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
