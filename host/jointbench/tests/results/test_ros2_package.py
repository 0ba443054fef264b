"""The exported ROS 2 package: its plugin built and run against a declaration of ros2_control's interface."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.bench import Feedforward
from jointbench.cli.main import main
from jointbench.errors import FileNotWritten
from jointbench.identification import Model, fit
from jointbench.identification.feedforward import planned_torque
from jointbench.results import FullModel, write_ros2_package
from jointbench.results.ros2_package import ros2_package_name
from jointbench.tests.identification.synthetic import arm, excitation, synthetic_run
from jointbench.tests.results.peers import full_model
from jointbench.tests.results.test_c_header import currents_in_c

COMPILER, CMAKE = shutil.which("c++") or shutil.which("g++"), shutil.which("cmake")
INTERFACE = Path(__file__).parent / "ros2_interface"
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
HUMBLE, JAZZY, LATER = 1, 2, 3

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (c++ or g++) on this machine")


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(synthetic_run(arm(3), motion_seed=1, noise_seed=1))


@pytest.fixture(scope="module")
def plugin(model: Model, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of `built`, as for Jazzy."""
    if COMPILER is None:
        pytest.skip("no C++ compiler (c++ or g++) on this machine")
    return built(model, tmp_path_factory.mktemp("plugin"))


def built(what: Model | FullModel, folder: Path, release: int = JAZZY, runner: str = "") -> list[str]:
    """A command that runs the plugin of the exported package, with a runner of the same release or a new one."""
    package = write_ros2_package(what, folder / "package")
    options = [str(COMPILER), *STRICT, f"-DRELEASE={release}", "-I", str(INTERFACE / "include")]
    source, library = package / "src/feedforward_controller.cpp", folder / "plugin.so"
    subprocess.run([*options, "-shared", "-fPIC", "-I", package / "include", source, "-o", library], check=True)
    if not runner:
        runner = str(folder / "run")
        subprocess.run([*options, INTERFACE / "run_plugin.cpp", "-o", runner, "-ldl"], check=True)
    return [runner, str(library)]


def run(command: list[str], *lines: str) -> list[str]:
    ran = subprocess.run(command, input="\n".join(lines) + "\n", check=True, capture_output=True, text=True)
    return ran.stdout.splitlines()


def numbers(*arrays: Array) -> str:
    """References or states of all joints: the first joint's values, then the next one's."""
    return " ".join(map(repr, np.stack(arrays, axis=-1).ravel().tolist()))


def played(command: list[str], q: Array, dq: Array, ddq: Array, *before: str) -> Array:
    """Commands at each sample of a planned motion that the joints follow."""
    lines = ["configure", "chained 1", f"state {numbers(q[0], dq[0])}", "activate"]
    for sample in zip(q, dq, ddq, strict=True):
        lines += [f"state {numbers(*sample[:2])}", f"reference {numbers(*sample, np.zeros_like(sample[0]))}", "update"]
    said = run(command, *before, *lines)[-len(q) :]
    assert all(line.startswith("ok ") for line in said)
    return np.array([[float(word) for word in line.split()[1:]] for line in said])


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("release", [HUMBLE, LATER])
def test_the_plugin_is_the_same_in_other_releases(model: Model, release: int, tmp_path: Path) -> None:
    test_the_plugin_commands_what_the_model_says(model, built(model, tmp_path, release))


@needs_compiler
def test_the_plugin_commands_what_the_model_says(model: Model, plugin: list[str]) -> None:
    names = run(plugin, "configure")
    assert names[0] == (
        "cobot6_feedforward_controller::FeedforwardController controller_interface::ChainableControllerInterface"
    )
    assert names[2].split() == ["j1/effort", "j2/effort", "j3/effort"]
    assert names[3].split()[:2] == ["j1/position", "j1/velocity"]
    assert names[4].split()[3:5] == ["feedforward_controller/j1/effort", "feedforward_controller/j2/position"]
    plan = excitation(model.robot, 7)
    time = np.linspace(0.0, plan.period, 60)
    torque = planned_torque(model, plan, time, friction_width=0.02)
    found = played(plugin, *plan.evaluate(time), "number friction_width 0.02")
    # Rounding of some hundred operations, as a share of the largest torque.
    np.testing.assert_allclose(found, torque, rtol=0, atol=1e-12 * float(np.abs(torque).max()))
    half = played(plugin, *plan.evaluate(time), "number friction_width 0.02", "number scale 0.5")
    np.testing.assert_allclose(half, 0.5 * torque, rtol=0, atol=1e-12 * float(np.abs(torque).max()))
    current = played(plugin, *plan.evaluate(time), "number friction_width 0.02", "text command_interface current")
    expected = Feedforward.of_joint_torque(torque, model.robot).motor_current_A
    np.testing.assert_allclose(current, expected, rtol=0, atol=1e-12 * float(np.abs(expected).max()))


@needs_compiler
def test_motors_that_joints_share_get_their_current(plugin: list[str], tmp_path: Path) -> None:
    full = full_model("nursing_arm")
    rng = np.random.default_rng(3)
    size = (5, full.robot.n_joints)
    moves = rng.uniform(-0.5, 0.5, size), rng.uniform(-0.5, 0.5, size), rng.uniform(-90.0, 90.0, size)
    limits = np.array([drive.current_limit for drive in full.robot.drive_train.drives])
    free = currents_in_c(full, tmp_path, 0.01, moves)
    assert np.any(np.abs(free) > limits)  # so that clipping shows
    found = played(built(full, tmp_path, runner=plugin[0]), *moves, "text command_interface current")
    np.testing.assert_allclose(found, np.clip(free, -limits, limits), rtol=1e-12)


@needs_compiler
def test_feedback_and_what_a_controller_before_adds(plugin: list[str]) -> None:
    q, dq, ddq, zero = np.array([0.1, -1.5, 0.2]), np.array([0.3, 0.1, -0.2]), np.zeros(3), np.zeros(3)
    effort, off = np.array([0.5, -1.0, 2.0]), np.array([0.01, -0.02, 0.03])
    start = ["configure", "chained 1", f"state {numbers(q, dq)}", "activate"]
    gains = ["numbers gains.p 100 200 300", "numbers gains.d 1 2 3"]
    plain = run(plugin, *start, f"reference {numbers(q, dq, ddq, zero)}", "update")[-1]
    more = run(
        plugin,
        *gains,
        *start,
        f"state {numbers(q - off, dq + off)}",
        f"reference {numbers(q, dq, ddq, effort)}",
        "update",
    )[-1]
    with_both, alone = (np.array([float(word) for word in line.split()[1:]]) for line in (more, plain))
    difference = with_both - alone
    expected = effort + np.array([100, 200, 300]) * off - np.array([1, 2, 3]) * off
    np.testing.assert_allclose(difference, expected, rtol=1e-9)


@needs_compiler
def test_it_holds_alone_and_commands_nothing_on_doubt(model: Model, plugin: list[str]) -> None:
    q, still = np.array([0.1, -1.5, 0.2]), np.zeros(3)
    start = ["configure", f"state {numbers(q, still)}", "activate"]
    held = [float(word) for word in run(plugin, *start, "update")[-1].split()[1:]]
    plan_at_rest = model.predict(q[None], still[None], still[None])[0] - [
        model.value(f"j{k}.offset") for k in (1, 2, 3)
    ]
    np.testing.assert_allclose(held, plan_at_rest, atol=1e-9)
    doubt = ["chained 1", f"reference {numbers(q, still, np.array([0.0, np.nan, 0.0]), still)}", "update"]
    assert run(plugin, *start, *doubt)[-1] == "error 0 0 0"
    lost = [f"state {numbers(np.array([0.1, np.nan, 0.2]), still)}", "update"]
    assert run(plugin, *start, *lost)[-1] == "error 0 0 0"
    assert run(plugin, *start, "update", "deactivate")[-1] == "inactive 0 0 0"
    assert run(plugin, "configure", f"state {numbers(q * np.nan, still)}", "activate")[-1] == "refused"


@needs_compiler
@pytest.mark.parametrize(
    "parameter",
    ["text command_interface torque", "number scale 1.5", "number friction_width 0", "numbers gains.p 1 2"],
)
def test_wrong_parameters_are_refused(plugin: list[str], parameter: str) -> None:
    assert run(plugin, parameter, "configure")[-1] == "refused"


@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(CMAKE is None, reason="no cmake on this machine")
def test_its_cmake_builds_and_installs_it(model: Model, tmp_path: Path) -> None:
    """With stand-ins for ament and the packages of ROS 2 that it asks for."""
    package, build = write_ros2_package(model, tmp_path / "package"), tmp_path / "build"
    stand_ins = {f"-D{name}_DIR={INTERFACE / 'cmake'}" for name in _packages(package)}
    configure = [str(CMAKE), "-S", str(package), "-B", str(build), f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'install'}"]
    environment = os.environ | {"ROS2_INTERFACE": str(INTERFACE / "include")}
    subprocess.run([*configure, *sorted(stand_ins)], check=True, capture_output=True, env=environment)
    subprocess.run([str(CMAKE), "--build", str(build), "--target", "install"], check=True, capture_output=True)
    found = {
        str(path.relative_to(tmp_path / "install")) for path in (tmp_path / "install").rglob("*") if path.is_file()
    }
    name = "cobot6_feedforward_controller"
    assert {f"lib/lib{name}.so", f"share/{name}/config/controllers.yaml", f"include/{name}/{name}/dynamics.h"} <= found


def _packages(package: Path) -> list[str]:
    """What its CMakeLists.txt asks for is what package.xml depends on."""
    text = (package / "CMakeLists.txt").read_text(encoding="utf-8")
    asked = re.findall(r"find_package\((\w+) REQUIRED\)", text)
    root = ElementTree.parse(package / "package.xml").getroot()
    assert asked == [each.text for each in (*root.findall("buildtool_depend"), *root.findall("depend"))]
    return asked


def test_names_agree_and_the_files_say_where_they_come_from(model: Model, tmp_path: Path) -> None:
    package = write_ros2_package(model, tmp_path / "package")
    name = ros2_package_name(model.robot)
    assert ElementTree.parse(package / "package.xml").findtext("name") == name
    library = ElementTree.parse(package / "feedforward_controller.xml").getroot()
    plugin = library.find("class")
    assert plugin is not None
    assert (library.get("path"), plugin.get("name")) == (name, f"{name}/FeedforwardController")
    for file in ("README.md", f"include/{name}/dynamics.h", f"include/{name}/feedforward_controller.hpp"):
        text = (package / file).read_text(encoding="utf-8")
        assert "verdict identified" in text
        assert "model digest " in text
    text = (package / "config/controllers.yaml").read_text(encoding="utf-8")
    assert f"type: {name}/FeedforwardController" in text
    assert 'command_joints: ["feedforward_controller/j1", "feedforward_controller/j2"' in text
    compile((package / "launch/feedforward.launch.py").read_text(encoding="utf-8"), "feedforward.launch.py", "exec")
    assert not [
        path for path in package.rglob("*") if path.is_file() and "$" in path.read_text() and path.suffix != ".txt"
    ]


def test_the_verb_writes_it_and_nothing_over_other_files(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, folder = str(model.save(tmp_path / "model.json")), tmp_path / "package"
    assert main(["export", saved, "--to", "ros2", "--out", str(folder)]) == 0
    assert "colcon build" in capsys.readouterr().out
    assert (folder / "package.xml").is_file()
    assert main(["export", saved, "--to", "ros2", "--out", str(folder)]) == 2
    assert "is not empty; name another folder, or write over its files with --force" in capsys.readouterr().err
    assert main(["export", saved, "--to", "ros2", "--out", str(folder), "--force"]) == 0
    assert main(["export", saved, "--to", "ros2", "--out", str(folder), "arm.h"]) == 2
    assert "--to ros2 writes one package" in capsys.readouterr().err
    with pytest.raises(FileNotWritten, match="is a file; name the folder"):
        write_ros2_package(model, saved)
