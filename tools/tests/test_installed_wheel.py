"""The wheel on a machine that has no checkout: from somebody's log to a model, and the firmware onto boards."""

import json
import os
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
from jointbench.cli.main import main
from jointbench.flash.image import build_image
from tools.docs.example_log import write_log
from tools.tests.setup_checkouts import ROOT

pytestmark = pytest.mark.slow

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


def test_it_is_not_the_checkout(python: Path, tmp_path: Path) -> None:
    program = """
import importlib.util, jointbench, jointwire
from jointbench.flash.image import FIRMWARE, build_image
print(jointbench.__file__, jointwire.__file__, FIRMWARE, sep="\\n")
print([name for name in ("tools", "hil_tests", "firmware") if importlib.util.find_spec(name)])
print(build_image("rp2", architecture="armv6m").sha256)
"""
    said = subprocess.run([python, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    *places, others, image = said.stdout.splitlines()
    assert all(place.startswith(str(python.parents[1])) for place in places)
    assert others == "[]"
    assert image == build_image("rp2", architecture="armv6m").sha256


def test_from_a_log_to_a_model(jointbench: Program, tmp_path: Path) -> None:
    robot = jb.load_robot("cobot6")
    for seed, name in enumerate(("log.csv", "other.csv")):
        write_log(tmp_path / "empty" / name, robot, seed)
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
