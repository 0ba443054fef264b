"""Motions played on a bench of boards, emulated or real, or shared out over two emulated ones; each is recorded."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.kinds import EMULATED, Variant
from jointbench import Excitation
from jointbench.bench import Bench, Trajectory, open_bench
from jointbench.checks import Check
from jointbench.cli.console import Console, compiling_told
from jointbench.cli.run import progress_line
from jointbench.recording import Recorder, Run, open_run, record
from tools.demo.story import Plant, Stage
from tools.truth import Truth, read_truth

BENCHES = Path(__file__).resolve().parents[2] / "hil_tests" / "benches"

MOVE_SPEED = 0.9
"""Of the way to a motion's start, as a share of the robot's limits: what nobody records need not take long."""

Motions = Mapping[str, tuple[Trajectory, int]]
"""What is played, in order: by the name of its run, an excitation or any other motion, and how often in a row."""


@dataclass(frozen=True)
class Played:
    """Recorded runs.

    Attributes:
        runs: by the names of the motions.
        truth: what is true of the plant, by joint; empty where real boards were played.
    """

    runs: Mapping[str, Run]
    truth: Truth

    @property
    def samples_lost(self) -> int:
        """Total of all boards and runs."""
        return sum(run.ledger.samples_lost for run in self.runs.values() if run.ledger)

    @property
    def samples_received(self) -> int:
        """Total of all boards and runs."""
        return sum(run.ledger.samples_received for run in self.runs.values() if run.ledger)

    @property
    def is_valid(self) -> bool:
        """True if all runs are valid."""
        return all(run.is_valid for run in self.runs.values())

    @property
    def fields(self) -> dict[str, Any]:
        """Facts of the recorded runs, for JSON."""
        return {
            "samples_lost": self.samples_lost,
            "samples_received": self.samples_received,
            "frames_sha256": [run.sha256 for run in self.runs.values()],
        }

    @property
    def lost_check(self) -> Check:
        """That nothing was lost."""
        return Check("samples_lost", self.samples_lost, "<=", 0, "samples")


def play_all(
    stage: Stage,
    bench_file: Path,
    motions: Motions,
    *,
    plant: Plant | None = None,
    noise_seed: int | None = None,
    variant: Variant | None = None,
    folder: str = "",
    before: Mapping[str, Callable[[Bench], None]] | None = None,
) -> Played:
    """Start the virtual bench of `bench_file` in stage.out/"bench" and play motions on it, saying a line for each.

    Args:
        stage: where and how.
        bench_file: one of BENCHES, or another.
        motions: each is recorded in stage.out under its name.
        plant: physics of the joints; None: the stage's.
        noise_seed: of the boards' noise alone; None: the stage's seed.
        variant: another make of the plant; None: the plant file's.
        folder: in stage.out, for another plant than that of the stage; its bench and runs are there.
        before: by a motion's name, called with the bench before that one.
    """
    plant = plant or stage.plant
    stage = replace(stage, out=stage.out / folder)
    stage.console.say(
        f"starting the emulated boards of {bench_file.stem} (MicroPython, {EMULATED[stage.board]}), {plant} joints"
        + ("" if variant is None else f", {variant}")
    )
    with ExitStack() as running:
        with stage.console.working("starting the boards"):
            live = running.enter_context(
                virtual_bench(
                    bench_file,
                    plant,
                    stage.seed,
                    out=stage.out / "bench",
                    board=stage.board,
                    modules=stage.modules,
                    noise_seed=noise_seed,
                    variant=variant,
                )
            )
            truth = read_truth(live)
        return Played(play_on(stage, live, motions, before=before), truth)


def play_on(
    stage: Stage,
    live: Path,
    motions: Motions,
    *,
    before: Mapping[str, Callable[[Bench], None]] | None = None,
) -> dict[str, Run]:
    """Play motions on the boards of a live bench file, as `play_all` does."""
    with ExitStack() as opened:
        with stage.console.working("connecting"):
            bench = opened.enter_context(open_bench(live))
            bench.connect()
            bench.configure()
        runs: dict[str, Run] = {}
        for name, (motion, repeats) in motions.items():
            if before and name in before:
                before[name](bench)
            runs[name] = _play(stage, bench, name, motion, repeats)
        return runs


def _play(stage: Stage, bench: Bench, name: str, motion: Trajectory, repeats: int) -> Run:
    began = time.monotonic()
    progress, folder = progress_line(stage.console, name), stage.out / name
    with stage.console.working(f"{name}: moving to its start"):
        bench.move_to(motion.evaluate(np.zeros(1))[0][0], speed=MOVE_SPEED)
    with stage.console.working(f"{name}: loading, playing, reading"):
        if isinstance(motion, Excitation):
            run = record(bench, motion, folder, repeats, progress, seed=stage.seed)
        else:
            with Recorder(folder, bench.provenance(repeats=repeats, seed=stage.seed)) as recorder:
                bench.play(motion, repeats, recorder, progress)
            run = open_run(folder)
    assert run.ledger is not None  # a recording has one
    n_boards = len({identity.uid for identity in bench.identities})  # one with two motors answers to two nodes
    stage.console.say(
        f"  {name}: {repeats} × {motion.period:g} s on {n_boards} boards in "
        f"{time.monotonic() - began:.1f} s, {run.ledger.verdict}"
    )
    for warning in run.warnings:
        stage.console.say(f"  warning: {warning}")
    return run


N_BENCHES = 2


def two_workers() -> ProcessPoolExecutor:
    """Two processes beside this one, in whose main threads a bench can be run; each stays on the core it first has."""
    return ProcessPoolExecutor(N_BENCHES, multiprocessing.get_context("spawn"))


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
        for started in [workers.submit(_import_all) for _ in range(N_BENCHES)]:
            started.result()
    shares = [dict(list(plans.items())[bench::N_BENCHES]) for bench in range(N_BENCHES)]
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
