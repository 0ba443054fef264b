"""The C header: what a C compiler makes of it computes the host's torques."""

import ctypes
import dataclasses
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification import Model
from jointbench.model import model_columns
from jointbench.results import FullModel, export
from jointbench.tests.results.peers import ROBOTS, full_model, motion

COMPILER = shutil.which("cc") or shutil.which("gcc")
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
