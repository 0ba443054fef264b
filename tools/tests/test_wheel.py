"""The wheel as it is installed, and the types of its public names."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from hil_tests.flash_helpers import changed_firmware
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench.flash import build_image
from jointbench.cli.main import main
from tools.docs.example_log import write_log
from tools.tests.local_mirror import ROOT

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter in whose environment the wheel is installed; the packages it needs are those of the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    venv.create(folder / "env", with_pip=False)
    program = folder / "env" / "bin" / "python"
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    # Of that folder only what is in it counts, not its own .pth files: the checkout is not among them.
    (site / "needed.pth").write_text(f"{Path(np.__file__).parents[1]}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", program, "--disable-pip-version-check", "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", *folder.glob("*.whl")], check=True)
    return program


@pytest.fixture
def jointbench(python: Path, tmp_path: Path) -> Program:
    """Run the installed program, in an empty folder."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    (tmp_path / "empty").mkdir()

    def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(python.parent / "jointbench"), *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path / "empty", env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.mark.slow
def test_it_is_not_the_checkout(python: Path, tmp_path: Path) -> None:
    program = """
import importlib.util, jointbench, jointwire
from jointbench.bench.flash.image import FIRMWARE, build_image
print(jointbench.__file__, jointwire.__file__, FIRMWARE, sep="\\n")
print([name for name in ("tools", "hil_tests", "firmware") if importlib.util.find_spec(name)])
print(build_image("rp2", architecture="armv6m").sha256)
"""
    said = subprocess.run([python, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    *places, others, image = said.stdout.splitlines()
    assert all(place.startswith(str(python.parents[1])) for place in places)
    assert others == "[]"
    assert image == build_image("rp2", architecture="armv6m").sha256


@pytest.mark.slow
def test_from_a_log_to_a_model(jointbench: Program, tmp_path: Path) -> None:
    robot = jb.load_robot("cobot6")
    for seed, name in enumerate(("log.csv", "other.csv")):
        write_log(tmp_path / "empty" / name, robot, seed)
    assert jointbench("--version").stdout.startswith("jointbench ")
    demo = jointbench("demo", "cobot6:2", "--out", "demo").stdout
    assert "verdict: identified" in demo
    assert (tmp_path / "empty" / "demo" / "report.html").is_file()
    assert "jointbench list" in jointbench("--help").stdout + jointbench("list", "--help").stdout
    assert "cobot6" in jointbench("list").stdout
    jointbench("plan", "cobot6", "--random", "--out", "motion.json")
    jointbench("import", "--robot", "cobot6", "--csv", "log.csv", "--propose", "log.toml")
    jointbench("import", "log.toml", "--out", "first")
    jointbench("import", "log.toml", "--data", "other.csv", "--out", "second")
    jointbench("fit", "first")
    jointbench("validate", "first/model.json", "second")
    jointbench("report", "first/model.json", "first", "second", "--out", "report.html")
    jointbench("export", "first/model.json", "--out", "arm.urdf")
    assert jb.load_robot(tmp_path / "empty" / "arm.urdf").n_joints == 6
    assert "</html>" in (tmp_path / "empty" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_firmware_from_the_wheel(jointbench: Program, tmp_path: Path) -> None:
    other = changed_firmware(tmp_path / "changed", "changed = 1")
    with virtual_bench(write_bench_file(tmp_path, None), plant="ideal", out=tmp_path / "sim", board="unix:") as live:
        assert main(["flash", str(live), "--firmware", str(other), "--backup", str(tmp_path / "backup")]) == 0
        planned = flashed(jointbench, live, "--dry-run")
        assert (planned["outcome"], planned["image"]) == ("planned", build_image("unix").sha256)
        assert flashed(jointbench, live)["outcome"] == "updated"
        assert flashed(jointbench, live)["outcome"] == "already"


def flashed(jointbench: Program, live: Path, *options: str) -> dict[str, object]:
    (report,) = json.loads(jointbench("flash", live, "--json", "-", *options).stdout)["boards"]
    return report


LAMP = """
from matplotlib.figure import Figure

class Lamp:
    def __init__(self, name: str) -> None:
        self.name = name
        self.watts: int = len(name)
        self.is_on = not name

    def draw(self, figure: Figure) -> None: ...

    def switch(self, on) -> None: ...
"""


def unclear(package: str, site: Path) -> list[str]:
    """Public names whose type is unknown, or other type checkers may infer otherwise; with what basedpyright says."""
    programs = Path(sys.executable).parent
    # It takes what a package imports from the interpreter that is first in PATH; of another one it would know nothing.
    places = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(site)}
    command = [programs / "basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, cwd=site, env=os.environ | places, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    found = said["typeCompleteness"]
    assert said["generalDiagnostics"] == []
    assert found["packageRootDirectory"] == str(site / package)
    assert found["exportedSymbolCounts"]["withKnownType"] > 0
    return [
        " ".join([f"{each['name']}:", *(word for line in each["diagnostics"] for word in line["message"].split())])
        for each in found["symbols"]
        if each["isExported"] and (each["isTypeAmbiguous"] or not each["isTypeKnown"])
    ]


STRUCTS = re.compile(r"jointwire(\.\w+)?\.(BLOCK|BODIES|EMPTY|HEADER|KNOT|Quantity|REGISTER_FILE|SAMPLE):")
"""The wire's definition: the package that it is made with has no types."""


@pytest.mark.slow
def test_all_public_names_have_a_type(tmp_path: Path) -> None:
    for package in ("host/jointbench", "protocol/jointwire"):
        copy = tmp_path / Path(package).name
        shutil.copytree(ROOT / package, copy, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    found = [*unclear("jointbench", tmp_path), *unclear("jointwire", tmp_path)]
    found = [line for line in found if not STRUCTS.match(line)]
    assert found == [], "\n".join(found)


def test_a_name_without_one_is_found_and_what_other_packages_have_is_known(tmp_path: Path) -> None:
    (tmp_path / "lamp").mkdir()
    (tmp_path / "lamp" / "py.typed").touch()
    (tmp_path / "lamp" / "__init__.py").write_text(LAMP, encoding="utf-8")
    found = dict(line.split(":", 1) for line in unclear("lamp", tmp_path))
    assert set(found) == {"lamp.Lamp", "lamp.Lamp.is_on", "lamp.Lamp.switch"}
    assert found["lamp.Lamp.is_on"].endswith('Inferred type is "bool"')
