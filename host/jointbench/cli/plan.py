"""Plan an excitation: the feasible motion that tells a robot's parameters apart best, checked before anything moves."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.cli.tables import table
from jointbench.excitation import FourierExcitation, plan_excitation, random_excitation
from jointbench.robot import load_robot

VERB = "plan"
EXAMPLE = "jointbench plan cobot6 --out excitation.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """ROBOT and the shape of the series."""
    parser.add_argument("robot", metavar="ROBOT", help="a name of the library or the path of a robot .toml")
    parser.add_argument("--out", metavar="FILE", default="excitation.json", help="where the plan goes (%(default)s)")
    parser.add_argument("--harmonics", type=int, default=5, metavar="N", help="of the Fourier series (%(default)s)")
    parser.add_argument(
        "--period", type=float, default=20.0, metavar="S",
        help="seconds, for boards a whole multiple of 0.032 (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same plan (%(default)s)")
    parser.add_argument(
        "--random", action="store_true", help="a random feasible motion instead of the best one: to verify a model on"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Plans, shows the margins to each limit, and writes the plan as JSON."""
    robot = load_robot(options.robot)
    for warning in robot.warnings:
        console.say(f"warning: {warning}")
    if options.random:
        plan = random_excitation(robot, options.harmonics, options.period, options.seed)
    else:
        plan = plan_excitation(
            robot, options.harmonics, options.period, seed=options.seed,
            progress=lambda start, step, cond: console.progress(f"start {start + 1}, step {step}: {cond:.1f}"),
        )
    console.say(f"condition number {plan.condition_number:.1f}, period {plan.period:g} s; left to each limit:")
    console.say(margins_table(plan))
    Path(options.out).write_text(json.dumps(plan.to_dict(), indent=1) + "\n", encoding="utf-8")
    console.say(f"plan: {options.out}")
    fields = {"condition_number": plan.condition_number, "plan": options.out}
    return Result("plan", options.seed, fields=fields)


def margins_table(plan: FourierExcitation) -> str:
    """What is left to each limit, a line per joint."""
    rows = [
        [m.joint, *(f"{x:.0%}" if x is not None else "–" for x in (m.position, m.velocity, m.acceleration, m.torque))]
        for m in plan.margins
    ]
    return table(("joint", "position", "velocity", "acceleration", "torque"), rows)
