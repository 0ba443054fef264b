"""What examples in docstrings may use: `jb`, and the files of a folder as its user would have it."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import jointbench

HERE = Path(__file__).parent

NAMES = (
    *("runs/arm", "runs/other", "runs/after", "runs/loaded", "runs/recorded"),
    *("log.toml", "bench.toml", "cell.toml"),
)
"""An example that speaks of one of these has a copy of the folder to itself, as its working directory."""

BENCH = 'version = 1\nname = "arm"\nrobot = "cobot6:2"\n' + "".join(
    f'[[board]]\nnode = {node}\njoint = "j{node}"\nurl = "loop://"\n' for node in (1, 2)
)
"""Ports that open, and nobody at them."""

CELL = "version = 1\ntable_mm = 0\nclearance_mm = 20\n"

LOG = """
version = 1
robot = "cobot6:2"
sample_rate_Hz = 1000
files = [{ path = "log.csv" }]
position = { columns = ["q1", "q2"], unit = "rad", side = "joint" }
torque = { columns = ["tau1", "tau2"], unit = "N·m", side = "joint" }
"""


def pytest_collect_file(file_path: Path) -> None:
    """Import the package of a module before it, as Python does.

    Asked for results/export.py alone, pytest begins with the module, has the package imported and with it the module,
    then goes on to run it a second time, and puts that in the place of the function `results.export`.
    """
    if (file_path.parent / "__init__.py").is_file():
        import_module(".".join(file_path.parent.relative_to(HERE).parts))


@pytest.fixture(autouse=True)
def place_of_example(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """Give a doctest `jb` and a folder of its own, with files where it speaks of them; other tests nothing."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    doctest_namespace["jb"] = jointbench
    folder: Path = request.getfixturevalue("tmp_path")
    request.getfixturevalue("monkeypatch").chdir(folder)
    code = "".join(example.source for example in request.node.dtest.examples)
    if any(f'"{name}"' in code for name in NAMES):
        shutil.copytree(request.getfixturevalue("files_of_examples"), folder, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def files_of_examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs, a log with its mapping, a bench file and a workspace; made once, where an example asks.

    runs/arm and runs/other are two motions of the first two joints of an arm, runs/after is the first one again with a
    third more Coulomb friction in the first joint, and runs/loaded the second one with 2 kg on the last link;
    runs/recorded is of two simulated boards, with all that they sent.
    """
    import numpy as np

    from jointbench.model import model_parameter_names, with_payload
    from jointbench.recording import open_run, save_samples
    from jointbench.tests.identification.synthetic import synthetic_run, truth
    from jointbench.tests.recording import simulated_run

    folder, robot = tmp_path_factory.mktemp("examples"), jointbench.load_robot("cobot6:2")
    values = truth(robot)
    worn = values + 2.0 * (np.array(model_parameter_names(robot)) == "j1.coulomb")
    heavier = with_payload(robot, "payload", robot.joints[-1].link.name, 2.0, (0.1, 0.02, 0.0)).standard_parameters
    assert heavier is not None
    loaded = np.concatenate([heavier, values[len(heavier) :]])
    motions = (("arm", 1, 1, values), ("other", 2, 2, values), ("after", 1, 3, worn), ("loaded", 2, 4, loaded))
    for name, motion, noise, full in motions:
        run = synthetic_run(robot, motion_seed=motion, noise_seed=noise, repeats=1, full_parameters=full)
        save_samples(folder / "runs" / name, run.samples, {"robot": "cobot6:2"})
    simulated_run.record(folder / "runs" / "recorded")
    samples = open_run(folder / "runs" / "arm").samples
    assert samples.motor_torque is not None
    table = np.hstack([samples.motor_position, samples.motor_torque])[:2000]
    np.savetxt(folder / "log.csv", table, delimiter=",", header="q1,q2,tau1,tau2", comments="", fmt="%.9g")
    for name, text in (("log.toml", LOG), ("bench.toml", BENCH), ("cell.toml", CELL)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder
