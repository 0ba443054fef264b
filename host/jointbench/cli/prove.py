"""Prove a model on its bench: play a new motion without and with its feed-forward; what does feedback still supply?"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, compiling_told, table
from jointbench.errors import ExcitationError
from jointbench.extras import need

if TYPE_CHECKING:
    from jointbench.identification.proof import Proof
    from jointbench.recording import Run

VERB = "prove"
WRITES = ("report",)
EXAMPLE = "jointbench prove model.json bench.toml --controls"
WHEN_STOPPED = "motors are off, what was recorded is kept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, BENCH, the motion, and whether wrong feed-forward is played, too."""
    parser.add_argument("model", metavar="MODEL", help="a model.json that `fit` wrote, of a run on this bench")
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument(
        "--plan", metavar="FILE", help="a motion from `plan` that the model was not fitted to (one is drawn at random)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the motion that is drawn (%(default)s)")
    parser.add_argument(
        "--period", type=float, default=20.0, metavar="S",
        help="seconds of the motion that is drawn, a multiple of 0.032 (%(default)g)",
    )  # fmt: skip
    parser.add_argument("--workspace", metavar="FILE", help="a .toml with the table, boxes for points, and clearance")
    parser.add_argument(
        "--friction-width", type=float, default=0.01, metavar="W",
        help="velocity over which friction changes its sign, rad/s (%(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--stiffness", metavar="RUN",
        help="a run with encoders on both sides of the gears and torque sensors, which tells their stiffness, so that "
        "motors lead by the wind-up (stiffness_Nm_rad of the robot's file; none: motors do not lead)",
    )  # fmt: skip
    parser.add_argument(
        "--controls", action="store_true", help="play feed-forward that is wrong on purpose, too: each must fail"
    )
    parser.add_argument("--out", metavar="DIR", help="where every run goes (a new folder under runs/)")
    parser.add_argument("--report", metavar="FILE", help="write an HTML page on what the model does for this arm, too")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Plays without, with half and with the feed-forward, and judges; exit code 1 when the model is refused."""
    with console.working("loading"):
        from jointbench.bench import open_bench
        from jointbench.cli.run import progress_line
        from jointbench.excitation import load_excitation, read_workspace
        from jointbench.identification import load_model
        from jointbench.identification.drives import drive_signals, fit_stiffness
        from jointbench.identification.prove import draw_motion, prove
        from jointbench.recording import new_run_path, open_run
        from jointbench.results import write_proof
    if options.report:
        need("report", "a report", "matplotlib", "jinja2")  # before the arm moves
    model = load_model(options.model)
    out = Path(options.out or new_run_path("runs", model.robot.name, "proof"))
    if out.exists():
        raise ExcitationError(f"{out} exists; name another directory with --out")
    stiffness = None
    if options.stiffness:
        told = open_run(options.stiffness)
        gears = fit_stiffness(told.robot, drive_signals(told, told.robot))
        stiffness = [(gear and gear.stiffness) or np.inf for gear in gears]
    workspace = read_workspace(options.workspace) if options.workspace else None
    if options.plan:
        motion = load_excitation(options.plan)
    else:
        with console.working("drawing a motion"):
            motion = draw_motion(model, options.period, options.seed, workspace)
    console.say(f"proving {options.model} on {options.bench} by {motion.period:g} s of new motion")
    with compiling_told(console), open_bench(options.bench) as bench:
        bench.connect()
        bench.configure()
        proof = prove(
            model, bench, motion, out,
            controls=options.controls, friction_width=options.friction_width, stiffness=stiffness,
            told=console.say, progress=lambda name: progress_line(console, name),
        )  # fmt: skip
    console.say(proof_text(proof))
    console.say(f"runs: {out}")
    fields: dict[str, Any] = {"out": out, **proof_fields(proof)}
    if options.report:
        with console.working("drawing the report"):
            fields["report"] = write_proof(
                options.report, proof, model, motion,
                friction_width=options.friction_width, commands=(command(options),),
            )  # fmt: skip
        console.say(f"report: {options.report}")
    return Result("prove", motion.seed, fields=fields, refused=not proof.is_proven)


def stiffness_of(run: Run) -> list[float] | None:
    """Stiffness of each gear [N·m/rad] that a run tells, inf where it does not.

    None where the run is without encoders on both sides of the gears, or without torque sensors.
    """
    from jointbench.identification.drives import drive_signals, fit_stiffness

    if run.samples.link_position is None or run.samples.joint_torque is None:
        return None
    return [(gear and gear.stiffness) or np.inf for gear in fit_stiffness(run.robot, drive_signals(run, run.robot))]


def command(options: argparse.Namespace) -> str:
    """The command that repeats this proof."""
    words = ["jointbench", VERB, options.model, options.bench]
    words += ["--plan", options.plan] if options.plan else ["--seed", options.seed, "--period", options.period]
    words += [
        word for name in ("workspace", "stiffness") if (file := getattr(options, name)) for word in (f"--{name}", file)
    ]
    words += ["--friction-width", options.friction_width, *(["--controls"] if options.controls else [])]
    return shlex.join(map(str, [*words, "--report", options.report]))


def proof_text(proof: Proof) -> str:
    """The figures of a proof as a table of at most 80 columns, the controls, and the verdict."""
    without, fed = (
        1e3 * np.sqrt(np.mean([played.rms**2 for played in runs], axis=0)) for runs in (proof.without, proof.fed)
    )
    link = proof.link_ratio
    rows = [
        [
            name,
            f"{without[j]:.3f}",
            f"{fed[j]:.3f}",
            f"{proof.ratio[j]:.1f}",
            "–" if link is None else f"{link[j]:.1f}",
            f"{100.0 * proof.share[j]:.1f}",
            f"{100.0 * proof.predicted.share[j]:.1f} "
            f"[{100.0 * proof.predicted.low[j]:.1f}, {100.0 * proof.predicted.high[j]:.1f}]",
            f"{100.0 * proof.limit[j]:.1f}",
        ]
        for j, name in enumerate(proof.joint_names)
        if proof.modelled[j]
    ]
    heads = ("joint", "without", "with", "ratio", "link", "share", "predicted [95 %]", "allowed")
    lines = [
        "tracking error without and with feed-forward [1e-3 rad or m], its ratio by motor",
        "and link encoders, and the share of torque below 10 Hz from feedback [%]",
        table(heads, rows),
        f"  ratio of all joints {proof.pooled_ratio:.1f}, of the worst {proof.worst_ratio:.1f}; "
        f"motion {proof.distance:.2f} from the fitted one",
    ]
    if proof.pooled_link_ratio is not None:
        lines.append(
            f"  of the links {proof.pooled_link_ratio:.1f}, worst {proof.worst_link_ratio:.1f}; {_lead(proof)}"
        )
    lines += [_control_line(proof, k) for k in range(len(proof.controls))]
    if proof.heavier is not None:
        joint, played = proof.heavier.joint, proof.heavier.tracking
        share = "tripped" if played is None else f"{100.0 * played.share[joint]:.1f} %"
        shows = "shows" if proof.heavier_shows else "does not show"
        lines.append(
            f"  {proof.heavier.link} 20 % heavier {shows}: share of {proof.joint_names[joint]} {share}, "
            f"was {100.0 * proof.share[joint]:.1f} %"
        )
    lines += [f"  {sentence}" for sentence in proof.against]
    lines.append(f"verdict: {'proven' if proof.is_proven else 'refused'}")
    return "\n".join(lines)


def _lead(proof: Proof) -> str:
    """Whether motors led by the wind-up of their gears, in words."""
    leading = [name for name, leads in zip(proof.joint_names, proof.leads, strict=True) if leads]
    if not leading:
        return "motors did not lead by wind-up"
    return f"motors led by the wind-up of {', '.join(leading)}"


def _control_line(proof: Proof, k: int) -> str:
    control = proof.controls[k]
    fails = "fails, as it must" if proof.fails(control) else "PASSES"
    if control.tracking is None:
        return f"  control {control.name}: {fails} (stopped by the boards)"
    over = np.where(proof.modelled, control.tracking.share - proof.limit, -np.inf)
    joint = int(over.argmax())
    return (
        f"  control {control.name}: {fails} ({proof.joint_names[joint]} "
        f"{100.0 * control.tracking.share[joint]:.1f} % by feedback)"
    )


def proof_fields(proof: Proof) -> dict[str, Any]:
    """The figures of a proof for --json."""
    link = proof.link_ratio
    heavier = proof.heavier
    return {
        "proven": proof.is_proven,
        "against": list(proof.against),
        "distance": proof.distance,
        "ratio_pooled": proof.pooled_ratio,
        "ratio_worst": proof.worst_ratio,
        "link_ratio_pooled": proof.pooled_link_ratio,
        "link_ratio_worst": proof.worst_link_ratio,
        "joints": {
            name: {
                "judged": bool(proof.modelled[j]),
                "ratio": float(proof.ratio[j]),
                "link_ratio": None if link is None else float(link[j]),
                "stiffness": float(proof.stiffness[j]) if proof.stiffness is not None and proof.leads[j] else None,
                "half_ratio": float(proof.half_ratio[j]),
                "share": float(proof.share[j]),
                "predicted": float(proof.predicted.share[j]),
                "predicted_interval": [float(proof.predicted.low[j]), float(proof.predicted.high[j])],
                "allowed": float(proof.limit[j]),
            }
            for j, name in enumerate(proof.joint_names)
        },
        "unexpected_limit_A": None
        if proof.unexpected_limit_A is None
        else [limit if np.isfinite(limit) else None for limit in proof.unexpected_limit_A.tolist()],
        "controls": {
            control.name: {
                "fails": proof.fails(control),
                "tripped": control.tripped,
                "share": None if control.tracking is None else control.tracking.share.tolist(),
            }
            for control in proof.controls
        },
        "heavier_link": None
        if heavier is None
        else {
            "link": heavier.link,
            "joint": proof.joint_names[heavier.joint],
            "share": None if heavier.tracking is None else float(heavier.tracking.share[heavier.joint]),
            "shows": proof.heavier_shows,
        },
    }
