"""Compile once what every process of a test run would compile for itself: byte code, and the kernels that Numba keeps.

`python -m tools.warm_up` costs a minute in a fresh clone, and some seconds where all has been compiled before.
"""

import compileall
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("protocol", "host", "firmware", "hil_tests", "tools")
FOR_BOARDS = re.compile(r"/(programs|jointboard)/")  # MicroPython, some of which CPython cannot read

# Tests that are the first to use a kernel which no fit and no plan takes; here their budget of CPU time is none.
FIRST_USERS = (
    "host/jointbench/tests/model/test_adjoint.py",
    "host/jointbench/tests/identification/estimators/test_output_error.py::test_it_settles_in_a_few_passes_and_says_so",
    "host/jointbench/tests/identification/estimators/test_instrumental.py::test_it_says_what_it_did",
    "host/jointbench/tests/excitation/limits/test_torque_limits.py::test_gradients_are_those_of_the_usage",
    "tools/tests/test_bench_model.py::test_the_race_times_every_method_and_leaves_results",
)
QUIETLY = ("-qq", "--no-header", "-p", "no:cacheprovider", "-o", "cpu_budget_s=0", "-m", "not slow")


def main() -> int:
    """Compile."""
    for name in FOLDERS:
        compileall.compile_dir(ROOT / name, quiet=2, rx=FOR_BOARDS)
    import jointbench as jb
    from jointwire import decode_stream
    from tools.docs.example_runs import imported

    decode_stream(b"\0")
    robot = jb.load_robot("cobot6")
    with tempfile.TemporaryDirectory() as folder:
        jb.fit(imported(robot.name, Path(folder) / "run", seed=1))
    jb.plan_excitation(robot, harmonics=2, period=8.0, samples=20, seed=0, time_limit=1.0)
    command = [sys.executable, "-P", "-m", "pytest", *QUIETLY, *FIRST_USERS]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
