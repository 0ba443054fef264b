"""Motions shared out over two benches of the same boards, which run side by side, each on a core of its own."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import EMULATED
from jointbench.cli.console import Console
from jointbench.recording import open_run
from tools.demo.playing import Motions, Played, play_on
from tools.demo.story import Stage
from tools.truth import Truth, read_truth

BENCHES = 2


def play_on_two(stage: Stage, bench_file: Path, motions: Motions) -> Played:
    """Play motions as `play_all` does, every other one on a second bench.

    Both benches have the same boards with the same gains and zeros, those of the stage's seed; their noise differs.

    Args:
        stage: where and how.
        bench_file: of both benches.
        motions: each is recorded in stage.out under its name.
    """
    stage.console.say(
        f"starting the emulated boards of {bench_file.stem} (MicroPython, {EMULATED[stage.board]}), {stage.plant} "
        f"joints, on two benches side by side"
    )
    shares = [dict(list(motions.items())[bench::BENCHES]) for bench in range(BENCHES)]
    quiet = stage.console.stream is sys.stderr
    # A console's stream cannot go to another process; that process opens its own.
    sent = replace(stage, console=None)  # type: ignore[arg-type]  # a placeholder for the way there
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(BENCHES, context) as workers:
        tasks = [
            workers.submit(_play_share, sent, "-" if quiet else None, bench_file, bench, share)
            for bench, share in enumerate(shares)
        ]
        truths = [task.result() for task in tasks]
    return Played({name: open_run(stage.out / name) for name in motions}, truths[0])


def _play_share(stage: Stage, json_destination: str | None, bench_file: Path, bench: int, motions: Motions) -> Truth:
    """One bench's share, in its own process; what was recorded is in its folders."""
    cores = sorted(os.sched_getaffinity(0))
    # Whatever the bench starts stays there too: boards that wander between cores find neither's cache warm.
    os.sched_setaffinity(0, {cores[bench % len(cores)]})
    here = replace(stage, console=Console(json_destination))
    out = stage.out / f"bench-{bench + 1}"
    with virtual_bench(
        bench_file, stage.plant, stage.seed, out=out, board=stage.board, noise_seed=stage.seed + bench
    ) as live:
        truth = read_truth(live)
        play_on(here, live, motions)
    return truth
