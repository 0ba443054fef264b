"""The exported ROS 2 package: its plugin built and run against a declaration of ros2_control's interface.

From a fitted model to every kind of file, and the verb that does it.
"""

import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from jointbench.arrays import Array
from jointbench.bench import Feedforward
from jointbench.cli import export as verb
from jointbench.cli.main import carry_out, main
from jointbench.errors import FileNotWritten, FitError, NumericalError
from jointbench.identification import Model, fit
from jointbench.identification.feedforward import planned_torque
from jointbench.identification.predictor import Predictor, leading_parameters
from jointbench.model import PARAMETER_NAMES, drive_columns, inverse_dynamics, load_robot
from jointbench.results import FullModel, write_ros2_package
from jointbench.results.c_header import c_header_text
from jointbench.results.ros2_package import ros2_package_name
from jointbench.tests.identification.synthetic import arm, excitation, synthetic_run
from jointbench.tests.results.recordings import assert_same, full_model, motion, pinocchio_torques
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


@pytest.fixture(scope="module")
def full(model: Model) -> FullModel:
    return FullModel.of_model(model)


def test_the_urdf_has_the_rigid_part_of_what_is_predicted(model: Model, full: FullModel, tmp_path: Path) -> None:
    """Of an estimate that is possible as it is: all the rest of the prediction is the drives'."""
    assert full.physical is not None
    assert full.physical.word == "identified"
    q, dq, ddq = motion(model.robot, samples=20)
    columns, _ = drive_columns(model.robot, dq, ddq)
    rigid = model.predict(q, dq, ddq) - (columns @ full.drive_parameters).reshape(q.shape)
    text = jb.export(full, tmp_path / "arm.urdf").read_text(encoding="utf-8")
    found = pinocchio_torques(text, model.robot, q, dq, ddq)
    assert_same(found, rigid)
    assert_same(found, inverse_dynamics(model.robot, q, dq, ddq, full.standard_parameters))


def test_the_header_and_the_predictor_need_no_possible_bodies(model: Model) -> None:
    q, dq, ddq = motion(model.robot, samples=20)
    predict = Predictor.of(model)
    found = np.array([predict(*each) for each in zip(q, dq, ddq, strict=True)])
    expected = model.predict(q, dq, ddq)
    # Sums of some hundred products in double precision.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * float(np.abs(expected).max()))
    # The header has the same: test_c_header compares it with the predictor's parameters.
    links, drives, _ = leading_parameters(model)
    assert np.count_nonzero(np.concatenate([links, drives])) == np.count_nonzero(model.parameters)
    assert "are zero" in c_header_text(model.robot, links, drives)


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_tables_hold_everything(model: Model, full: FullModel, suffix: str, tmp_path: Path) -> None:
    text = jb.export(full, tmp_path / f"arm{suffix}").read_text(encoding="utf-8")
    if suffix == ".json":
        values = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    else:
        values = tomllib.loads(text)
    assert [each["name"] for each in values["base_parameters"]] == list(model.names)
    assert [each["value"] for each in values["base_parameters"]] == model.parameters.tolist()
    assert [each["verdict"] for each in values["base_parameters"]] == [each.word for each in model.parameter_verdicts]
    rows = [[link[name] for name in PARAMETER_NAMES] for link in values["standard_parameters"]]
    assert np.ravel(rows).tolist() == full.standard_parameters.tolist()
    assert values["standard_parameters"][0]["units"]["mcx"] == "kg·m"
    units = {each["name"]: each["unit"] for each in values["drive_parameters"]}
    assert units["j2.viscous"] == "N·m·s/rad"
    covariance = np.array(values["covariance"], dtype=np.float64)
    finite = np.isfinite(model.covariance)
    assert np.array_equal(covariance[finite], model.covariance[finite])
    assert len(values["provenance"]["sha256"]) == 64
    assert values["verdict"]["word"] == model.verdict.word


def test_what_is_not_possible_is_told_and_its_tables_written(model: Model, tmp_path: Path) -> None:
    values = model.parameters.copy()
    values[model.names.index("j3.Izz")] = -1.0
    wrong = dataclasses.replace(model, parameters=values)
    with pytest.raises((FitError, NumericalError)) as caught:
        jb.export(wrong, tmp_path / "arm.urdf")
    assert not (tmp_path / "arm.urdf").exists()
    written = json.loads(jb.export(wrong, tmp_path / "arm.json").read_text(encoding="utf-8"))
    assert written["no_standard_parameters"] == str(caught.value)
    assert "standard_parameters" not in written
    assert len(written["base_parameters"]) == model.base.rank


def test_an_unknown_suffix_is_refused(model: Model, tmp_path: Path) -> None:
    with pytest.raises(FitError, match=r"arm.sdf: nothing is exported as .sdf; use .urdf \("):
        jb.export(model, tmp_path / "arm.sdf")


def test_a_robot_without_inertias_is_refused(tmp_path: Path) -> None:
    text = Path(jb.export(load_robot("cobot6"), tmp_path / "arm.urdf")).read_text(encoding="utf-8")
    start, end = text.index("<inertial>"), text.index("</inertial>") + len("</inertial>")
    bare = tmp_path / "bare.urdf"
    bare.write_text(text[:start] + text[end:], encoding="utf-8")
    with pytest.raises(FitError, match="no inertia is given for link shoulder"):
        jb.export(load_robot(bare), tmp_path / "out.xml")


def _verb(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    parser.add_argument("--json")
    return carry_out("jointbench export", parser.parse_args(arguments), verb.run)


def test_the_verb_writes_what_is_asked_for(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = model.save(tmp_path / "model.json")
    files = [str(tmp_path / f"arm{suffix}") for suffix in (".urdf", ".xml", ".h", ".toml")]
    assert _verb(str(saved), "--out", *files) == 0
    said = capsys.readouterr().out
    assert all(Path(name).stat().st_size > 0 for name in files)
    assert said.count("physical: identified") == 1
    assert "arm.urdf: written from scratch, without meshes; --from keeps those of a URDF" in said
    assert _verb(str(saved), "--out", str(tmp_path / "kept.urdf"), "--from", files[0]) == 0
    assert f"{files[0]} with new inertias" in capsys.readouterr().out
    assert _verb(str(saved), "--out", str(tmp_path / "no.urdf"), "--from", files[0], "--zeros", "0", "90") == 2
    assert "--zeros has 2 numbers; give 3, one for each joint of robot 'cobot6'" in capsys.readouterr().err
    assert (tmp_path / "kept.urdf").read_bytes() == Path(files[0]).read_bytes()


def test_the_verb_names_what_mjcf_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.xml"
    assert _verb("cobot6", "--out", str(file)) == 0
    assert f"not in {file}: torque constants and current limits; `dcmotor` actuators need" in capsys.readouterr().out
    assert _verb("cobot6", "--out", str(file), "--resistance", "1.2") == 0
    assert "not in" not in capsys.readouterr().out
    assert file.read_text(encoding="utf-8").count("<dcmotor ") == 6
    assert _verb("cobot6", "--out", str(tmp_path / "arm.h"), "--resistance", "1.2") == 2
    assert "--resistance is for MJCF" in capsys.readouterr().err


def test_the_verb_says_in_a_sentence_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verb("tx40", "--out", str(tmp_path / "robot.urdf")) == 2
    said = capsys.readouterr().err
    assert said.startswith("jointbench export: link 'link_6' cannot exist")
    assert "Traceback" not in said
