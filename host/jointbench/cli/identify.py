"""Move a bench piece by piece until each parameter is as precise as asked, or say which cannot be in the time."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, compiling_told, table, time_text
from jointbench.errors import ExcitationError

if TYPE_CHECKING:
    from jointbench.identification.sequential_design import Precision

VERB = "identify"
EXAMPLE = "jointbench identify bench.toml --until 10%"
WHEN_STOPPED = "motors are off, what was recorded is kept: `jointbench fit` takes several runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, how precisely, and how long at most."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument(
        "--until", type=share, default=0.1, metavar="SHARE",
        help="relative σ of each base parameter, such as 10%% or 0.1 (10%%)",
    )  # fmt: skip
    parser.add_argument(
        "--most", type=float, default=300.0, metavar="S", help="seconds of motion at most (%(default)g)"
    )
    parser.add_argument(
        "--piece",
        type=float,
        default=10.016,
        metavar="S",
        help="seconds of each piece, a multiple of 0.032 (%(default)g)",
    )
    parser.add_argument(
        "--plan-time", type=float, default=10.0, metavar="S", help="seconds to plan each piece (%(default)g)"
    )
    parser.add_argument("--workspace", metavar="FILE", help="a .toml with the table, boxes for points, and clearance")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the plans (0)")
    parser.add_argument("--out", metavar="DIR", help="where runs and model.json go (a new one under runs/)")


def share(text: str) -> float:
    """Return a share that is given in percent or as a number.

    >>> share("10%"), share("0.1")
    (0.1, 0.1)
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*(%?)\s*", text)
    value = float(match[1]) * (0.01 if match[2] else 1.0) if match else 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no share above 0 and below 1, such as 10% or 0.1")
    return value


def run(options: argparse.Namespace, console: Console) -> Result:
    """Plans, plays and fits in turn, then validates on a random motion; exit code 1 when the verdict is "refused"."""
    with console.working("loading"):
        from jointbench.bench import open_bench
        from jointbench.cli.fit import fit_fields
        from jointbench.cli.run import progress_line
        from jointbench.cli.validate import say, validation_fields
        from jointbench.excitation import Excitation, random_excitation, read_workspace
        from jointbench.identification import validate
        from jointbench.identification.sequential_design import identify_until
        from jointbench.recording import Run, new_run_path, record
        from jointbench.results import Evidence
    with compiling_told(console), open_bench(options.bench) as bench:
        bench.connect()
        bench.configure()
        directory = Path(options.out or new_run_path("runs", bench.robot.name, "identify"))
        if directory.exists():
            raise ExcitationError(f"{directory} exists; name another directory with --out")
        directory.mkdir(parents=True)
        workspace = read_workspace(options.workspace) if options.workspace else None

        def play(excitation: Excitation, name: str) -> Run:
            return record(bench, excitation, directory / name, 1, progress_line(console, name), seed=excitation.seed)

        def told(pieces: int, precision: Precision) -> None:
            console.say(piece_line(pieces, pieces * options.piece, precision))

        console.say(
            f"identifying {bench.robot.name} until each parameter's σ is {100.0 * options.until:g} % of it, "
            f"{options.most:g} s of motion at most"
        )
        identification = identify_until(
            bench.robot, lambda excitation, k: play(excitation, f"piece-{k + 1:02d}"), options.until,
            most=options.most, piece=options.piece, plan_time=options.plan_time, seed=options.seed,
            workspace=workspace, progress=told,
        )  # fmt: skip
        seed = options.seed + len(identification.runs) + 1
        check = play(
            random_excitation(bench.robot, period=options.piece, seed=seed, workspace=workspace), "verification"
        )
    model, precision = identification.model, identification.precision
    path = model.save(directory / "model.json")
    validation = validate(model, check)
    console.say(outcome_text(precision, identification.motion))
    say(Evidence(model, check, validation, check, None), console)
    console.say(f"model: {path}")
    console.say(f"next: jointbench report {path} {check.path}")
    fields = {
        "model": path,
        "runs": [each.path for each in identification.runs],
        "verification": check.path,
        "motion_s": identification.motion,
        "until": options.until,
        "precision": precision_fields(precision),
        "efficiency": precision.efficiency,
        "fit": fit_fields(model),
        "validation": validation_fields(validation),
    }
    return Result("identify", options.seed, fields=fields, refused=validation.verdict.is_refused)


def precision_fields(precision: Precision) -> dict[str, dict[str, float | bool]]:
    """Return how precisely each parameter is known, for JSON."""
    return {
        name: {"relative_sigma": float(sigma), "at_best": float(best), "out_of_reach": bool(out)}
        for name, sigma, best, out in zip(
            precision.names, precision.relative_sigma, precision.at_best, precision.is_out_of_reach, strict=True
        )
    }


def piece_line(pieces: int, motion: float, precision: Precision) -> str:
    """One line on what is known after some pieces."""
    out = int(precision.is_out_of_reach.sum())
    worst = int(np.where(precision.is_out_of_reach, -np.inf, precision.relative_sigma).argmax())
    beyond = f", {out} out of reach" if out else ""
    return (
        f"  {motion:5.0f} s, {pieces} piece{'s' * (pieces > 1)}: {int(precision.is_known.sum())} of "
        f"{len(precision.names)} parameters known{beyond}; worst {precision.names[worst]}, "
        f"σ {100.0 * precision.relative_sigma[worst]:.3g} % of it"
    )


def outcome_text(precision: Precision, motion: float) -> str:
    """Text on the identified parameters, and for the others the reason and the remedy."""
    known, rank = int(precision.is_known.sum()), len(precision.names)
    lines = [f"{known} of {rank} parameters are known to {100.0 * precision.wanted:g} % after {motion:.0f} s of motion"]
    missed = np.flatnonzero(~precision.is_known)
    if not len(missed):
        return lines[0]
    order = missed[np.argsort(-precision.relative_sigma[missed])]
    needed = precision.time_needed(motion)
    rows = [
        [
            precision.names[k],
            f"{100.0 * precision.relative_sigma[k]:.3g} %",
            time_text(float(needed[k])),
            f"{precision.confused[k][0]} ({precision.confused[k][1]:+.2f})",
        ]
        for k in order
    ]
    lines.append(table(("not known", "σ over value", "motion it would take", "told apart worst from"), rows))
    lines.append(
        "  more motion helps with its root; two parameters are told apart by poses and speeds that differ more (a "
        "wider workspace, higher limits), or where one of them is known"
    )
    return "\n".join(lines)
