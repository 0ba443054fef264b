"""Programs that are measured in processes of their own: what they take at most, imports and compiled code included."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.identification_bench.errors import ProcessFailed

ROOT = Path(__file__).resolve().parents[2]
_LOOK_S = 0.01


def in_own_process(program: str, *arguments: str) -> dict[str, Any]:
    """Run one of the programs below in a fresh process.

    Raises:
        ProcessFailed: it ended with an error.
    """
    command = [sys.executable, "-P", "-m", "tools.identification_bench.measured", program, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise ProcessFailed(f"the measured process {program!r} ended with {ended.returncode}: {ended.stderr[-400:]}")
    return json.loads(ended.stdout.splitlines()[-1])


def fit_many_rows(seed: str) -> Mapping[str, Any]:
    """Weighted least squares of the many rows, nothing but them in memory."""
    from jointbench.identification.least_squares import least_squares
    from tools.identification_bench.motion import many_rows

    rows, _ = many_rows(int(seed))
    return {"rows": rows.torque.size, "condition_number": least_squares([rows]).condition_number}


def fit_log(path: str) -> Mapping[str, Any]:
    """From a run's directory to its model, saved."""
    from jointbench.identification import fit
    from jointbench.recording import open_run

    begin = time.perf_counter()
    run = open_run(path)
    opened = time.perf_counter()
    model = fit(run)
    fitted = time.perf_counter()
    model.save(Path(path) / "model.json")
    return {
        "samples": run.samples.n_samples,
        "rows": int(sum(model.rows)),
        "open_s": opened - begin,
        "fit_s": fitted - opened,
        "parameters": model.parameters.tolist(),
        "sigma": model.sigma.tolist(),
        "total_relative": model.error.total_relative,
    }


def make_log(kind: str, path: str, minutes: str, seed: str) -> Mapping[str, Any]:
    """Make a log of one kind."""
    from tools.identification_bench.logs import imported_log, recorded_log

    made = {"imported": imported_log, "recorded": recorded_log}[kind](Path(path), float(minutes), int(seed))
    return {"bytes": sum(each.stat().st_size for each in made.iterdir())}


class _Peaks:
    """The most memory of this process that no file stands behind; the peak of all of it is kept by the kernel."""

    def __init__(self) -> None:
        self.without_file_MB = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.without_file_MB = max(self.without_file_MB, _megabytes("RssAnon"))
            time.sleep(_LOOK_S)


def _megabytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1]) * 1024.0 / 1e6
    raise ProcessFailed(f"/proc/self/status does not tell {name}; memory is measured on Linux only")


_PROGRAMS = {"many": fit_many_rows, "fit": fit_log, "make": make_log}


def main(program: str, *arguments: str) -> None:
    """Run a program, and print what it says and what it took."""
    peaks = _Peaks()
    said = _PROGRAMS[program](*arguments)
    print(json.dumps({**said, "resident_MB": _megabytes("VmHWM"), "without_file_MB": peaks.without_file_MB}))


if __name__ == "__main__":
    main(*sys.argv[1:])
