"""Which bench the command line means, and where its run leaves what it has to tell."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from jointbench.testing.bench_under_test import BenchOptions

LIVE = "live_bench"
"""Folder of a running bench in that of the run, with a worker's name behind it where several run at once."""
FOLDERS = ["hil_tests/benches", "benches"]
FOLDERS_SETTING, BENCH_SETTING = "jointbench_benches", "jointbench_bench"
OUT, KEPT = "jointbench_out", "jointbench_kept"  # what the workers of pytest-xdist are told


def choose_bench(config: pytest.Config) -> BenchOptions | None:
    """Read --bench, or the setting that stands for it, and what goes with it; None without a bench.

    The folder for results is settled in the process that was typed: others of the same run are told.

    Raises:
        pytest.UsageError: there is no such bench.
    """
    option = config.option
    named: str = option.jointbench_bench or ""
    wanted = named or config.getini(BENCH_SETTING)
    if not wanted:
        return None
    file = _bench_file(wanted, [config.rootpath / folder for folder in config.getini(FOLDERS_SETTING)])
    told: dict[str, Any] = getattr(config, "workerinput", {})
    is_kept: bool = told.get(KEPT, bool(named or option.jointbench_out))
    option.jointbench_out = told.get(OUT, option.jointbench_out)
    if not option.jointbench_out:
        now = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        kept, passing = config.rootpath / "runs" / f"{now}-hil-{file.stem}", f"jointbench-hil-{os.getpid()}-{now}"
        option.jointbench_out = str(kept if is_kept else Path(tempfile.gettempdir(), passing))
    out = Path(option.jointbench_out).absolute()
    worker: str = told.get("workerid", "")
    folder = out / (f"{LIVE}-{worker}" if worker else LIVE)
    return BenchOptions(file, option.jointbench_seed, option.jointbench_port or "", out, folder, is_kept)


def _bench_file(wanted: str, folders: list[Path]) -> Path:
    if Path(wanted).suffix == ".toml" or "/" in wanted:
        file = Path(wanted).absolute()
        if not file.is_file():
            raise pytest.UsageError(f"--bench {wanted}: there is no such file")
        return file
    for folder in folders:
        file = folder / f"{wanted}.toml"
        if file.is_file():
            return file
    names = sorted(file.stem for folder in folders for file in folder.glob("*.toml"))
    raise pytest.UsageError(
        f"--bench {wanted}: there is no such bench; there are {', '.join(names) or 'none'} in "
        f"{', '.join(map(str, folders))} (setting {FOLDERS_SETTING}), or give a bench file's path"
    )
