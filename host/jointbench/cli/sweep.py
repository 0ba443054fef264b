"""Plan a sweep of steady speeds in both directions: the motion that shows the friction of chosen joints."""

from __future__ import annotations

import argparse

import numpy as np

from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.excitation import Excitation, SpeedStairs, Workspace, plan_speed_sweep, read_workspace
from jointbench.files import sealed_json, write_file
from jointbench.model import Robot, hanging_pose, load_robot

VERB = "sweep"
EXAMPLE = "jointbench sweep nursing_arm j2 j4 j6 --hold 0.16 --out pitch.json"
WRITES = ("out",)
PLAN = "sweep.json"
"""Name of a plan's file where none is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """ROBOT, the joints that move, and the speeds."""
    parser.add_argument("robot", metavar="ROBOT", help="a name of the library or the path of a robot .toml or .urdf")
    parser.add_argument("joints", metavar="JOINT", nargs="+", help="those that move, together; the others hold still")
    parser.add_argument("--out", metavar="FILE", help=f"where the plan goes ({PLAN})")
    parser.add_argument("--first-deg-s", type=float, default=1.0, metavar="V", help="lowest speed (%(default)g)")
    parser.add_argument("--step-deg-s", type=float, default=0.5, metavar="V", help="to the next one (%(default)g)")
    parser.add_argument("--speeds", type=int, default=61, metavar="N", help="how many (%(default)s)")
    parser.add_argument(
        "--hold", type=float, default=0.192, metavar="S",
        help="how long each is held; a whole multiple of 0.032 s (%(default)g)",
    )  # fmt: skip
    parser.add_argument("--workspace", metavar="FILE", help="a .toml with the table, boxes for points, and clearance")
    parser.add_argument(
        "--hang", action="store_true", help="the others where gravity turns no joint, rather than at home"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Plans, writes the plan as JSON for `run`, and says what it does."""
    robot = load_robot(options.robot)
    sweep = plan_speed_sweep(
        robot,
        options.joints,
        hanging_pose(robot) if options.hang else None,
        workspace=read_workspace(options.workspace) if options.workspace else Workspace(),
        first=np.radians(options.first_deg_s),
        step=np.radians(options.step_deg_s),
        n_speeds=options.speeds,
        hold=options.hold,
    )
    out = options.out or PLAN
    console.keep_earlier(out, options.out)
    write_file(out, sealed_json(sweep.to_dict()))
    assert isinstance(sweep.basis, SpeedStairs)
    console.say(f"{sweep.basis.description}, {sweep.duration:g} s in all")
    console.say(table(("joint", "from [deg]", "to [deg]", "least margin"), _rows(robot, sweep)))
    if sweep.not_checked:
        console.say(sweep.not_checked)
    console.say(f"plan: {out}; play it with `jointbench run BENCH --plan {out} --repeats 1`")
    fields = {"plan": out, "duration_s": sweep.duration, "speeds_rad_s": sweep.basis.speeds.tolist()}
    check = Check("smallest_joint_margin", sweep.tightest.smallest, ">=", 0.0, "of the joint's limit")
    return Result("sweep", sweep.seed, (check,), fields)


def _rows(robot: Robot, sweep: Excitation) -> list[list[str]]:
    """Return where each joint goes, and what it leaves of its limits."""
    positions = np.degrees(sweep.evaluate(sweep.basis.grid(0.1))[0])
    return [
        [name, f"{own.min():.1f}", f"{own.max():.1f}", f"{margins.smallest:.1%}"]
        for name, own, margins in zip(robot.joint_names, positions.T, sweep.margins, strict=True)
    ]
