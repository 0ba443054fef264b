"""From motor to verdict on six emulated joint boards: plan, play, record, identify, judge on other motion, report."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.bench_file import EMULATED
from jointbench import Excitation, Model, Robot, Run, Validation
from jointbench.cli.carry_out import carry_out
from jointbench.cli.console import Console
from jointbench.cli.fit import fit_fields
from jointbench.cli.result import Check, Result
from jointbench.cli.run import WHEN_STOPPED, progress_line
from jointbench.cli.tables import table
from jointbench.cli.validate import validation_fields
from jointbench.errors import JointbenchError
from jointbench.excitation import plan_excitation, random_excitation
from jointbench.identification import fit, validate
from jointbench.link import open_bench
from jointbench.link.bench_file import read_bench_file
from jointbench.recording import new_run_path, record
from jointbench.report import key_picture, write_report
from jointbench.robot import load_robot
from tools.truth import deviations_from_truth, read_truth

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "hil_tests" / "benches" / "cobot6.toml"
PERIOD = 20.0
REPEATS = 2


def parser() -> argparse.ArgumentParser:
    """What `./run demo` takes."""
    options = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    options.add_argument("--plant", choices=("harmonic", "ideal"), default="harmonic",
                         help="the emulated joints: harmonic drives, or rigid with Coulomb and viscous friction")
    options.add_argument("--board", choices=EMULATED, default="unix:",
                         help="what the emulated boards run on: MicroPython's unix port, or a Cortex-M3 inside QEMU")
    options.add_argument("--bench", metavar="FILE", help="a bench file of your own, with real boards")
    options.add_argument("--seed", type=int, default=0, help="same seed, same bytes (%(default)s)")
    options.add_argument("--out", metavar="DIR", help="where everything goes (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; 0, 1 when a check says no, 2 when it could not be done."""
    errors = (JointbenchError, BenchError)
    return carry_out("demo", parser().parse_args(arguments), demo, errors, when_stopped=WHEN_STOPPED)


def demo(options: argparse.Namespace, console: Console) -> Result:
    """The whole way, step by step, each said as it begins."""
    # A slip in a user's own bench file is told before the planning.
    robot = load_robot(read_bench_file(Path(options.bench)).robot if options.bench else "cobot6")
    out = Path(options.out) if options.out else new_run_path("runs", robot.name, "demo")
    excitation, verification = plan(robot, options.seed, console)
    if options.bench:
        runs, truth = play(Path(options.bench), excitation, verification, out, options.seed, console), None
    else:
        console.say(
            f"starting {robot.n_joints} emulated boards (MicroPython, {EMULATED[options.board]}) on a robot with "
            f"{options.plant} joints"
        )
        with virtual_bench(BENCH, options.plant, options.seed, out=out / "bench", board=options.board) as live:
            truth = read_truth(live)
            runs = play(live, excitation, verification, out, options.seed, console)
    fit_run, verification_run = runs
    model = fit(fit_run)
    judged = validate(model, verification_run)
    model.save(out / "model.json")
    where = f"--bench {options.bench}" if options.bench else f"--plant {options.plant} --board {options.board}"
    command = f"./run demo {where} --seed {options.seed}"
    report = write_report(
        out / "report.html", model, fit_run, judged, verification_run, excitation, commands=(command,)
    )
    picture = key_picture(out / "torques.png", model, judged)
    console.say()
    console.say(joint_table(model, judged))
    console.say(f"verdict: {judged.verdict.word} ({judged.verdict.reason})")
    deviations = deviations_from_truth(model, truth) if options.plant == "ideal" and truth else None
    checks = make_checks(runs, model, judged, deviations)
    for check in checks:
        console.say(str(check))
    console.say(f"report: {report}")
    console.say(f"picture: {picture}")
    fields: dict[str, Any] = {
        "plant": "real" if options.bench else options.plant,
        "board": "real" if options.bench else EMULATED[options.board],
        "samples_lost": sum(lost(run) for run in runs),
        "samples_received": sum(run.ledger.samples_received for run in runs if run.ledger),
        **fit_fields(model),
        **validation_fields(judged),
        "planned_condition_number": excitation.condition_number,
        "frames_sha256": [run.sha256 for run in runs],
        "report": report,
    }
    if deviations is not None:
        fields["deviations_in_sigma"] = dict(zip(model.names, deviations.tolist(), strict=True))
    refused = judged.verdict.word == "refused" or not all(run.is_valid for run in runs)
    return Result("demo", options.seed, checks, fields, refused)


def plan(robot: Robot, seed: int, console: Console) -> tuple[Excitation, Excitation]:
    """The best motion to fit on, and another to verify on."""
    console.say("planning an excitation (Fourier series, 5 harmonics, 20 s)")
    excitation = plan_excitation(
        robot, period=PERIOD, seed=seed,
        progress=lambda start, step, cond: console.progress(f"start {start + 1}, step {step}: condition {cond:.1f}"),
    )
    console.say(f"  condition number {excitation.condition_number:.1f}")
    return excitation, random_excitation(robot, period=PERIOD, seed=seed + 1)


def play(
    bench_file: Path,
    excitation: Excitation,
    verification: Excitation,
    out: Path,
    seed: int,
    console: Console,
) -> tuple[Run, Run]:
    """Both motions on a bench, emulated or real, each recorded."""
    with open_bench(bench_file) as bench:
        bench.connect()
        bench.configure()
        runs: list[Run] = []
        for name, motion, repeats in (("excitation", excitation, REPEATS), ("verification", verification, 1)):
            began = time.monotonic()
            run = record(bench, motion, out / name, repeats, progress_line(console, name), seed=seed)
            assert run.ledger is not None  # a recording has one
            console.say(
                f"  {name}: {repeats} × {motion.duration:g} s on {len(bench.boards)} boards in "
                f"{time.monotonic() - began:.1f} s, {run.ledger.verdict}"
            )
            for warning in run.warnings:
                console.say(f"  warning: {warning}")
            runs.append(run)
    return runs[0], runs[1]


def joint_table(model: Model, judged: Validation) -> str:
    """A line per joint: error of the fit, error on the other motion, verdict."""
    rows = [
        [name, f"{fitted:.3f}", f"{rms:.3f}", f"{relative:.2%}", verdict.word]
        for name, fitted, rms, relative, verdict in zip(
            judged.joint_names, model.fit_rms, judged.rms, judged.relative, judged.joint_verdicts, strict=True
        )
    ]
    return table(("joint", "fit rms [N·m]", "verification rms [N·m]", "relative", "verdict"), rows)


def make_checks(
    runs: tuple[Run, ...],
    model: Model,
    judged: Validation,
    deviations: np.ndarray[Any, np.dtype[np.float64]] | None,
) -> tuple[Check, ...]:
    """What must hold: nothing lost; on the ideal plant, whose truth is known, honest error bars and a small error."""
    checks = [Check("samples_lost", sum(lost(run) for run in runs), "<=", 0, "samples")]
    if deviations is not None:
        # A parameter that is not told has infinite σ and deviates by nothing: it is no proof of honest error bars.
        within = float(np.mean((np.abs(deviations) <= 2.0) & np.isfinite(model.sigma)))
        checks.append(Check("parameters_within_2_sigma", within, ">=", 0.9))
        worst = float(np.max(judged.relative[:5]))
        checks.append(Check("verification_relative_j1_to_j5", worst, "<=", 0.03))
    return tuple(checks)


def lost(run: Run) -> int:
    """Samples a recording lost, of all boards."""
    assert run.ledger is not None
    return run.ledger.samples_lost


if __name__ == "__main__":
    sys.exit(main())
