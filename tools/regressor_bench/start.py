"""What the first and the second process that use the dynamics wait for the compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from tools.regressor_bench.errors import StartFailed

_PROGRAM = """
import json, time
began = time.perf_counter()
import numpy as np
from jointbench.dynamics import inverse_dynamics, normal_equations, regressor
from jointbench.robot import load_robot
robot = load_robot("cobot6")
still = np.zeros((8, robot.n_joints))
imported = time.perf_counter()
regressor(robot, still, still, still)
inverse_dynamics(robot, still, still, still, np.ones(10 * robot.n_links))
normal_equations(robot, still, still, still, still)
called = time.perf_counter()
from jointbench.dynamics.kernels.columns import fill_regressor
from jointbench.dynamics.kernels.gram import add_gram
from jointbench.dynamics.kernels.newton_euler import fill_torques
kernels = [fill_regressor.stats, add_gram.stats, fill_torques.stats]
compiled = sum(sum(stats.cache_misses.values()) for stats in kernels)
loaded = sum(sum(stats.cache_hits.values()) for stats in kernels)
print(json.dumps({"imports_s": imported - began, "calls_s": called - imported, "compiled": compiled, "loaded": loaded}))
"""


@dataclass(frozen=True)
class Start:
    """One process.

    Attributes:
        imports_s: importing jointbench and loading a robot.
        calls_s: first calls of the three kernels, the compiler's own import included.
        compiled: kernels that were compiled.
        loaded: kernels that came from disk.
    """

    imports_s: float
    calls_s: float
    compiled: int
    loaded: int


def two_starts() -> tuple[Start, Start]:
    """The first process on an empty cache folder, and another one after it.

    Raises:
        StartFailed: one ended with an error.
    """
    with tempfile.TemporaryDirectory(prefix="jointbench-") as folder:
        return _start(folder), _start(folder)


def _start(folder: str) -> Start:
    command = [sys.executable, "-c", _PROGRAM]
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise StartFailed(f"a fresh process ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
    return Start(**json.loads(ended.stdout))
