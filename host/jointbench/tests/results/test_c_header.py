"""The C header: what a C compiler makes of it computes the host's torques."""

import ctypes
import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.bench import Feedforward
from jointbench.identification import Model, fit
from jointbench.identification.feedforward import planned_torque
from jointbench.identification.friction.law import Form, LawElement
from jointbench.identification.predictor import DriveTorque
from jointbench.model import model_columns
from jointbench.results import FullModel, export
from jointbench.results.c_header import c_header_text
from jointbench.tests.identification.synthetic import arm, excitation, synthetic_run
from jointbench.tests.results.recordings import ROBOTS, full_model, motion

COMPILER = shutil.which("cc") or shutil.which("gcc")
CPP_COMPILER = shutil.which("c++") or shutil.which("g++")
ARM = Path(__file__).resolve().parents[4] / ".cache/qemu/bin/arm-none-eabi-gcc"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]

# Rounding of some hundred operations, as a share of the largest torque: the requirement's figure.
DOUBLE = 1e-12

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc or gcc) on this machine")


def compiled(path: Path, out: Path, *options: str) -> Path:
    assert COMPILER is not None
    subprocess.run([COMPILER, *STRICT, *options, str(path), "-o", str(out), "-lm"], check=True)
    return out


def in_c(full: FullModel | Model, folder: Path) -> Callable[[Array, Array, Array], Array]:
    """The header's function, taken out of a library."""
    name = full.robot.name
    header = export(full, folder / "model.h")
    (folder / "model.c").write_text(
        f'#include "{header.name}"\nvoid torque(const double *q, const double *dq, const double *ddq, double *tau);\n'
        f"void torque(const double *q, const double *dq, const double *ddq, double *tau)\n"
        f"{{ {name}_inverse_dynamics(q, dq, ddq, tau); }}\n"
    )
    library = ctypes.CDLL(str(compiled(folder / "model.c", folder / "model.so", "-shared", "-fPIC")))

    def torque(q: Array, dq: Array, ddq: Array) -> Array:
        tau = np.full(len(q), np.nan)
        library.torque(*(ctypes.c_void_p(each.ctypes.data) for each in (q, dq, ddq, tau)))
        return tau

    return torque


def currents_in_c(what: FullModel | Model, folder: Path, width: float, moves: tuple[Array, Array, Array]) -> Array:
    """Motor currents of a planned motion, sample after sample, by the header's feed-forward, shape (n, n_motors)."""
    robot, remembers = what.robot, isinstance(what, Model) and what.memory is not None
    header, name, n, m = export(what, folder / "model.h"), robot.name, robot.n_joints, robot.drive_train.n_motors
    name = re.sub(r"\W", "_", name)
    begin = f"{name}_friction state; {name}_begin(&state);" if remembers else ""
    call = f"{name}_feedforward_from(&state, " if remembers else f"{name}_feedforward("
    arguments = "int n, const double *q, const double *dq, const double *ddq, double width, double *current"
    (folder / "planned.c").write_text(
        f'#include "{header.name}"\nvoid planned({arguments});\nvoid planned({arguments})\n{{ int k; {begin}\n'
        f"for (k = 0; k < n; k++) {call}q + {n} * k, dq + {n} * k, ddq + {n} * k, width, current + {m} * k); }}\n"
    )
    library = ctypes.CDLL(str(compiled(folder / "planned.c", folder / "planned.so", "-shared", "-fPIC")))
    arrays, currents = [np.ascontiguousarray(move) for move in moves], np.full((len(moves[0]), m), np.nan)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, currents)]
    library.planned(len(currents), *pointers[:3], ctypes.c_double(width), pointers[3])
    return currents


def c_header_text_with_all_laws() -> str:
    """cobot6's header with an element of every form at every joint."""
    full = full_model("cobot6")
    laws = [(j, LawElement(form, 0.5, 2.0)) for j in range(6) for form in Form]
    return c_header_text(full.robot, full.standard_parameters, full.drive_parameters, laws=laws)


def assert_same_currents(model: Model, folder: Path, width: float) -> None:
    """The header's motor currents along a planned motion are those that the host sends to a bench."""
    plan = excitation(model.robot, 7)
    time = np.linspace(0.0, plan.period, 600)
    torque = planned_torque(model, plan, time, friction_width=width)
    expected = Feedforward.of_joint_torque(torque, model.robot).motor_current_A
    found = currents_in_c(model, folder, width, plan.evaluate(time))
    # The host takes a law's step between 1e-9 rad/s on either side of rest, over which tanh(30 v) changes by 6e-8.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * float(np.abs(expected).max()))


@needs_compiler
def test_currents_of_a_planned_motion_are_the_hosts(tmp_path: Path) -> None:
    assert_same_currents(fit(synthetic_run(arm(3), motion_seed=1, noise_seed=1)), tmp_path, 0.02)


@needs_compiler
@pytest.mark.parametrize("name", ["nursing_arm", "rehab_arm", "gorobot2"])
def test_currents_go_through_couplings_and_carry_springs(name: str, tmp_path: Path) -> None:
    full = full_model(name)
    robot, moves, width = full.robot, motion(full.robot, samples=20), 0.1
    columns, _ = model_columns(robot, *moves)
    drives = DriveTorque.of(robot, full.drive_parameters)
    speeds = moves[1] @ drives.speeds.T
    torque = (columns @ full.full_parameters).reshape(moves[0].shape) - drives.offset * robot.modelled
    torque += (np.tanh(speeds / width) - np.sign(speeds)) @ drives.coulomb.T * robot.modelled
    expected = Feedforward.of_joint_torque(torque, robot).motor_current_A
    found = currents_in_c(full, tmp_path, width, moves)
    assert found.shape == (20, robot.drive_train.n_motors)
    assert np.abs(expected).max() > 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=DOUBLE * float(np.abs(expected).max()))


@needs_compiler
@pytest.mark.skipif(CPP_COMPILER is None, reason="no C++ compiler (c++ or g++) on this machine")
@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_it_is_cpp_too_and_says_where_it_comes_from(standard: str, tmp_path: Path) -> None:
    model = fit(synthetic_run(arm(3), motion_seed=1, noise_seed=1))
    path = export(model, tmp_path / "arm.h")
    command = [
        str(CPP_COMPILER),
        f"-std={standard}",
        *STRICT[1:],
        "-x",
        "c++",
        f"-D{model.robot.name.upper()}_SELF_TEST",
        str(path),
    ]
    subprocess.run([*command, "-o", str(tmp_path / "arm"), "-lm"], check=True)
    assert subprocess.run([tmp_path / "arm"], check=False, capture_output=True).returncode == 0
    text = path.read_text(encoding="utf-8")
    head = text[: text.index("#ifndef")]
    assert re.search(r"Exported \d{4}-\d\d-\d\d by Jointbench \S+; model of \w+: verdict", head)
    saved = model.save(tmp_path / "model.json").read_text(encoding="utf-8")
    digest = re.search(r'"digest": "(\w+)"\n}', saved)
    assert digest is not None
    assert f"model digest {digest[1][:16]}, fitted to synthetic (sha256 " in head
    assert re.search(r" \* j2\.coulomb: [\d.]+ ± [\d.]+ N·m \(identified\)", head)
    assert "torque tau [N*m]" in head


@needs_compiler
def test_currents_are_clipped_to_the_motors(tmp_path: Path) -> None:
    full = full_model("cobot6")
    export(full, tmp_path / "model.h")
    (tmp_path / "clip.c").write_text(
        '#include "model.h"\n#include <stdio.h>\nint main(void) { double current[6] = {1, -1e9, 1e9, 5, -5, NAN};\n'
        'int k, changed = cobot6_limit_current(current); printf("%d", changed);\n'
        'for (k = 0; k < 6; k++) printf(" %g", current[k]);\nreturn 0; }\n'
    )
    ran = subprocess.run([compiled(tmp_path / "clip.c", tmp_path / "clip")], check=True, capture_output=True, text=True)
    assert ran.stdout == "3 1 -10 10 5 -5 0"


@needs_compiler
@pytest.mark.parametrize("name", ROBOTS)
def test_torques_are_those_of_the_regressor(name: str, tmp_path: Path) -> None:
    full = full_model(name)
    moves = motion(full.robot, samples=20)
    columns, _ = model_columns(full.robot, *moves)
    expected = (columns @ full.full_parameters).reshape(moves[0].shape)
    torque = in_c(full, tmp_path)
    found = np.array([torque(*each) for each in zip(*moves, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=DOUBLE * float(np.abs(expected).max()))


@needs_compiler
def test_any_words_are_fit_for_comments(tmp_path: Path) -> None:
    full = full_model("cobot6")
    said = "of /* a\n\\ trap */ ??/"
    robot = dataclasses.replace(full.robot, name="7-axis arm é", source=said, description=said)
    path = export(dataclasses.replace(full, robot=robot), tmp_path / "arm.h")
    ran = subprocess.run([compiled(path, tmp_path / "arm", "-x", "c", "-DROBOT_7_AXIS_ARM___SELF_TEST")], check=False)
    assert ran.returncode == 0


@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm (binutils) on this machine")
def test_it_calls_nothing_but_mathematics(tmp_path: Path) -> None:
    """No allocation, no output, no lock: the symbols left to the linker are functions of math.h."""
    text = c_header_text_with_all_laws()
    (tmp_path / "model.h").write_text(text, encoding="utf-8")
    source = tmp_path / "model.c"
    source.write_text(
        '#include "model.h"\nvoid f(const double *q, double *i);\nvoid f(const double *q, double *i)\n'
        "{ cobot6_feedforward(q, q, q, 0.01, i); cobot6_limit_current(i); cobot6_inverse_dynamics(q, q, q, i); }\n"
    )
    undefined = subprocess.run(
        ["nm", "-u", compiled(source, tmp_path / "model.o", "-c", "-fno-stack-protector")],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    called = set(undefined) - {"U", "_GLOBAL_OFFSET_TABLE_"}
    assert called <= {"sin", "cos", "sincos", "exp", "tanh"}
    assert {"exp", "tanh"} <= called
    assert not re.search(r"\b(while|goto|malloc|do)\b", text[text.index("#ifndef") : text.index("_SELF_TEST\n")])


@needs_compiler
@pytest.mark.parametrize("options", [(), ("-DCOBOT6_FLOAT",)])
def test_the_self_test_agrees_and_can_fail(options: tuple[str, ...], tmp_path: Path) -> None:
    path = export(full_model("cobot6"), tmp_path / "cobot6.h")
    build = ("-x", "c", "-DCOBOT6_SELF_TEST", *options)
    agreed = subprocess.run([compiled(path, tmp_path / "good", *build)], check=False, capture_output=True, text=True)
    assert agreed.returncode == 0
    assert agreed.stdout.startswith("cobot6: largest torque")
    text = path.read_text(encoding="utf-8")
    start = text.index("cobot6_gravity[3] = ")
    wrong = text[:start] + text[start:].replace("-9.81", "-9.80", 1)
    assert wrong != text
    path.write_text(wrong, encoding="utf-8")
    assert subprocess.run([compiled(path, tmp_path / "bad", *build)], check=False, capture_output=True).returncode == 1
    path.write_text(text.replace("-9.81", "NAN", 1), encoding="utf-8")
    assert subprocess.run([compiled(path, tmp_path / "nan", *build)], check=False, capture_output=True).returncode == 1


@needs_compiler
def test_the_sign_can_be_another(tmp_path: Path) -> None:
    """At 1 mrad/s a smooth sign lets friction be small; what is left is the sign's part."""
    full = full_model("cobot6")
    slow = np.full(6, 1e-3)
    torque = in_c(full, tmp_path)(np.zeros(6), slow, np.zeros(6))
    (tmp_path / "smooth").mkdir()
    header = export(full, tmp_path / "smooth/model.h")
    text = header.read_text(encoding="utf-8")
    assert "#ifndef COBOT6_SIGN" in text
    source = tmp_path / "smooth/model.c"
    source.write_text(
        '#include <math.h>\n#define COBOT6_SIGN(v) tanh((v) / 0.1)\n#include "model.h"\n#include <stdio.h>\n'
        "int main(void) { double q[6] = {0}, dq[6] = {1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3}, tau[6]; int j;\n"
        'cobot6_inverse_dynamics(q, dq, q, tau); for (j = 0; j < 6; j++) printf("%.17g\\n", tau[j]); return 0; }\n'
    )
    out = subprocess.run([compiled(source, tmp_path / "smooth/x")], check=True, capture_output=True, text=True).stdout
    coulomb = np.array([drive.coulomb for drive in full.drives], dtype=np.float64)
    np.testing.assert_allclose(torque - [float(line) for line in out.split()], coulomb * (1 - np.tanh(0.01)), rtol=1e-9)


# Where CI runs, its absence is a failure.
@pytest.mark.skipif(
    not ARM.is_file() and "CI" not in os.environ, reason="no arm-none-eabi-gcc in .cache/qemu: ./run setup fetches it"
)
@pytest.mark.parametrize("name", ["cobot6", "nursing_arm"])
def test_a_microcontroller_can_have_it(name: str, tmp_path: Path) -> None:
    export(full_model(name), tmp_path / "model.h")
    source = tmp_path / "model.c"
    source.write_text(
        f'#define {name.upper()}_FLOAT\n#include "model.h"\nvoid torque(const float *q, float *tau);\n'
        f"void torque(const float *q, float *tau) {{ {name}_inverse_dynamics(q, q, q, tau); }}\n"
    )
    out = tmp_path / "model.o"
    subprocess.run([ARM, *STRICT, "-mcpu=cortex-m3", "-mthumb", "-c", source, "-o", out], check=True)
    assert out.stat().st_size > 0
