"""Motions shared out over two benches of the same boards, which run side by side, each on a core of its own."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.kinds import EMULATED
from jointbench import Excitation
from jointbench.cli.compiling import compiling_told
from jointbench.cli.console import Console
from tools.demo.playing import Played, play_on
from tools.demo.story import Stage
from tools.truth import read_truth

BENCHES = 2


def two_workers() -> ProcessPoolExecutor:
    """Two processes beside this one, in whose main threads a bench can be run; each stays on the core it first has."""
    return ProcessPoolExecutor(BENCHES, multiprocessing.get_context("spawn"))


def in_worker(stage: Stage) -> Stage:
    """A stage as another process can have it: a console's stream cannot go there, so that it says nothing."""
    return replace(stage, console=None)  # type: ignore[arg-type]  # a placeholder for the way there


def play_on_two(
    stage: Stage, workers: ProcessPoolExecutor, bench_file: Path, plans: Mapping[str, Callable[[], Excitation]]
) -> Played:
    """Plan and play motions as `play_all` does, every other one on a second bench.

    Both benches have the same boards with the same gains and zeros, those of the stage's seed; their noise differs.

    Args:
        stage: where and how.
        workers: of `two_workers`.
        bench_file: of both benches.
        plans: of motions, each is recorded in stage.out under its name.
    """
    stage.console.say(
        f"starting the emulated boards of {bench_file.stem} (MicroPython, {EMULATED[stage.board]}), {stage.plant} "
        f"joints, on two benches side by side"
    )
    with stage.console.working("starting two processes"):
        for started in [workers.submit(_import_all) for _ in range(BENCHES)]:
            started.result()
    shares = [dict(list(plans.items())[bench::BENCHES]) for bench in range(BENCHES)]
    quiet = stage.console.stream is sys.stderr
    tasks = [
        workers.submit(_play_share, in_worker(stage), "-" if quiet else None, bench_file, bench, share)
        for bench, share in enumerate(shares)
    ]
    played = [task.result() for task in tasks]
    runs = {name: share.runs[name] for name in plans for share in played if name in share.runs}
    return Played(runs, played[0].truth)


def _import_all() -> None:
    """Nothing, once another process has imported this file and all that it takes."""


def _play_share(
    stage: Stage,
    json_destination: str | None,
    bench_file: Path,
    bench: int,
    plans: Mapping[str, Callable[[], Excitation]],
) -> Played:
    """One bench's share, in its own process."""
    cores = sorted(os.sched_getaffinity(0))
    # Whatever the bench starts stays there too: boards that wander between cores find neither's cache warm.
    os.sched_setaffinity(0, {cores[bench % len(cores)]})
    here = replace(stage, console=Console(json_destination))
    out = stage.out / f"bench-{bench + 1}"
    with ExitStack() as running:
        running.enter_context(compiling_told(here.console))
        with here.console.working(f"bench {bench + 1}: planning, starting the boards"):
            motions = {name: (plan(), 1) for name, plan in plans.items()}
            live = running.enter_context(
                virtual_bench(
                    bench_file, stage.plant, stage.seed, out=out, board=stage.board, noise_seed=stage.seed + bench
                )
            )
            truth = read_truth(live)
        return Played(play_on(here, live, motions), truth)
