"""Find what pushed a robot during a recording: which joint, when, with what torque or force."""

from __future__ import annotations

import argparse

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.judgement import by_name, finite
from jointbench.identification import load_model
from jointbench.identification.momentum_observer import hand_force, observe_run, pushes, quiet_thresholds
from jointbench.recording import open_run

VERB = "watch"
EXAMPLE = "jointbench watch model.json runs/quiet runs/pushed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, a quiet run, and the run to look at."""
    parser.add_argument("model", metavar="MODEL", help="a model.json")
    parser.add_argument("quiet", metavar="QUIET", help="a run during which nothing pushed, as lively as RUN")
    parser.add_argument("run", metavar="RUN", help="the run to look at")
    parser.add_argument("--frame", metavar="FRAME", help="the link or frame that was pushed: say the force there, too")
    parser.add_argument(
        "--false-alarms-per-hour", type=float, default=0.1, metavar="N",
        help="how often nothing may be taken for a push (%(default)s)",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> Result:
    """Print thresholds and pushes; exit code 0 whether something pushed or not."""
    model = load_model(options.model)
    with console.working(f"watching {model.robot.name}"):
        observer, quiet = observe_run(model, open_run(options.quiet))
        thresholds = quiet_thresholds(observer, quiet, false_alarms_per_hour=options.false_alarms_per_hour)
        observer, observed = observe_run(model, open_run(options.run))
    names = model.robot.joint_names
    console.say(
        f"thresholds that nothing passes more often than {options.false_alarms_per_hour:g} times an hour, by the quiet "
        f"run and the σ of the model:"
    )
    rows = [
        [name, f"{torque:.3g}", f"{torque + rest:.3g}"]
        for name, torque, rest in zip(names, thresholds.torque, thresholds.at_rest, strict=True)
    ]
    console.say(table(("joint", "moving [N·m or N]", "near rest"), rows))
    found = pushes(observed, thresholds, names)
    console.say(f"{len(found)} push{'es' * (len(found) > 1)}" if found else "nothing pushed")
    force = hand_force(observer, observed, thresholds, options.frame) if options.frame else None
    fields: list[dict[str, object]] = []
    for push in found:
        fields.append({name: value for name, value in vars(push).items()})
        line = f"  {push}"
        if force is not None:
            part = slice(round(push.start / thresholds.period), round(push.end / thresholds.period) + 1)
            k = part.start + int(np.argmax(np.linalg.norm(force.force[part], axis=1)))
            shown = ", ".join(f"{f:+.3g} ± {s:.2g}" for f, s in zip(force.force[k], force.sigma[k], strict=True))
            line += f"; at {options.frame} {shown} N, if it is one force there"
            fields[-1] |= {"force_N": force.force[k].tolist(), "force_sigma_N": [finite(s) for s in force.sigma[k]]}
        console.say(line)
    return Result(
        "watch",
        fields={
            "thresholds": by_name(names, thresholds.torque),
            "at_rest": by_name(names, thresholds.at_rest),
            "pushes": fields,
        },
    )
