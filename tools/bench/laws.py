"""`./run bench laws FOLDER`: `fit --friction choose` of this version beside that of an earlier one, in one run.

The earlier version is checked out beside this one (`git worktree`), and each is measured in processes of its own, on
one thread: the least of three times, after a fit with Coulomb and viscous friction has compiled the kernels. FOLDER
holds the runs `excitation` and `verification`, as a run of `./run demo` does, or the public recordings of
docs/public_benchmark.md, of which the TX40 (0 to 5.2 s, judged on 5.2 to 8 s) and the KR300 (A, judged on B) are taken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import FileError
from tools.bench.peers import BenchmarkFailed
from tools.bench.public_recordings import KR300, TX40, Part, check_digests, import_part

ROOT = Path(__file__).parents[2]
BEFORE = "463c0558a42663fdba4ec8e72553ef0a1efb7cd6"
"""The last version that fitted each joint's laws anew in each fold, next to base parameters that stayed."""

SECONDS, TIMES_ERROR = 5.0, 1.05
"""Longest that a choice may take, and its error on unseen motion where joints move, over that of the version before,
geometric mean over the joints."""

_ALWAYS = (-1e9, 1e9)


@dataclass(frozen=True)
class Recording:
    """Runs to choose by and to judge on, each with the times of it that are taken [s]."""

    name: str
    training: Path
    test: Path
    fitted: tuple[float, float] = _ALWAYS
    judged: tuple[float, float] = _ALWAYS


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Choose laws by both versions, and compare times and errors.

    Raises:
        FileError: there is no folder, or it has no recordings.
        BenchmarkFailed: the earlier version is not in this checkout's history, or a process ended with an error.
    """
    if options.folder is None:
        raise FileError(
            "laws needs FOLDER: a run of ./run demo, with excitation and verification in it, or the public recordings"
        )
    outcomes: dict[str, dict[str, Mapping[str, Any]]] = {}
    with TemporaryDirectory(prefix="jointbench-") as scratch, checked_out(BEFORE, Path(scratch) / "before") as before:
        for recording in recordings(Path(options.folder), Path(scratch)):
            outcomes[recording.name] = {}
            for version, root in (("before", before), ("now", ROOT)):
                with console.working(f"{recording.name}, {version}"):
                    outcomes[recording.name][version] = measured(recording, root)
    console.say(outcome_table(outcomes))
    return Result("bench laws", options.seed, make_checks(outcomes), {"before": BEFORE, "recordings": outcomes})


def recordings(folder: Path, scratch: Path) -> list[Recording]:
    """Return what a folder has to choose by.

    Raises:
        FileError: it has none of it, or other files than the published ones.
    """
    if (folder / "excitation").is_dir() and (folder / "verification").is_dir():
        return [Recording("demo", (folder / "excitation").resolve(), (folder / "verification").resolve())]
    if not (folder / TX40.folder).is_dir() or not (folder / KR300.folder).is_dir():
        raise FileError(
            f"{folder} has neither the runs excitation and verification of ./run demo nor the public recordings "
            f"{TX40.folder} and {KR300.folder}"
        )
    runs = scratch / "runs"
    runs.mkdir()
    for source in (TX40, KR300):
        check_digests(source, folder)
    tx40, kr300_a, kr300_b = (
        import_part(part, folder, runs).path for part in (Part(TX40), Part(KR300, "A"), Part(KR300, "B"))
    )
    return [
        Recording("TX40 5.2 s to 8 s", tx40, tx40, (0.0, 5.2), (5.2, 8.0)),
        Recording("KR300 A to B", kr300_a, kr300_b),
    ]


@contextmanager
def checked_out(commit: str, where: Path) -> Iterator[Path]:
    """Yield a work tree of a commit, which is gone afterwards.

    Raises:
        BenchmarkFailed: git has no such commit here.
    """
    _git("worktree", "add", "--detach", str(where), commit)
    try:
        yield where
    finally:
        _git("worktree", "remove", "--force", str(where))


def _git(*arguments: str) -> None:
    ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise BenchmarkFailed(
            f"git {' '.join(arguments)} ended with {ended.returncode}: {ended.stderr.strip()[-300:]}; the version "
            f"before is taken from this checkout's history: fetch all of it (git fetch --unshallow)"
        )


def measured(recording: Recording, root: Path) -> Mapping[str, Any]:
    """Time the choice by the host of a work tree, in a process of its own on one thread.

    Raises:
        BenchmarkFailed: it ended with an error, or took another host.
    """
    paths = [str(root / name) for name in ("host", "protocol", "firmware")]
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    program = str(ROOT / "tools/bench/laws_fit.py")
    times = [repr(value) for value in (*recording.fitted, *recording.judged)]
    ended = subprocess.run(
        [sys.executable, "-P", program, str(recording.training), str(recording.test), *times],
        cwd=root, env={**os.environ, **one, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise BenchmarkFailed(f"the choice by {root} ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
    outcome = json.loads(ended.stdout.splitlines()[-1])
    if not Path(outcome["host"]).is_relative_to(root.resolve()):
        raise BenchmarkFailed(f"the host of {outcome['host']} was measured instead of that of {root}")
    return outcome


def outcome_table(outcomes: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """A row for each recording and version."""
    rows = [
        [
            f"{recording}, {version}", f"{each['seconds']:.1f}", f"{each['cpu_seconds']:.1f}", each["estimator"],
            _percent(each["moving"]), _percent(each["all"]), " ".join(each["laws"]),
        ]
        for recording, of in outcomes.items()
        for version, each in of.items()
    ]  # fmt: skip
    heads = ("recording, version", "time [s]", "CPU [s]", "estimator", "error, moving [%]", "all rows [%]", "laws")
    return table(heads, rows)


def _percent(values: Sequence[float]) -> str:
    return " ".join(f"{100.0 * value:.3g}" for value in values)


def make_checks(outcomes: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[Check, ...]:
    """Checks against the limits of each recording."""
    checks: list[Check] = []
    for recording, of in outcomes.items():
        before, now = of["before"], of["now"]
        ratio = float(np.exp(np.mean(np.log(np.array(now["moving"]) / np.array(before["moving"])))))
        checks += [
            Check(f"{recording}: CPU time of a choice", now["cpu_seconds"], "<=", SECONDS, "s"),
            Check(f"{recording}: its time over that before", now["cpu_seconds"] / before["cpu_seconds"], "<=", 1.0),
            Check(f"{recording}: error on unseen motion over that before", ratio, "<=", TIMES_ERROR),
        ]
    return tuple(checks)
