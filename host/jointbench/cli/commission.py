"""Commission a bench: wiring, gear ratio and friction of each joint, found by the smallest motions, beside its file."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import FileError

if TYPE_CHECKING:
    from jointbench.identification.commission import CommissionedJoint
    from jointbench.identification.commission_readings import Value

VERB = "commission"
WRITES = ("write",)
EXAMPLE = "jointbench commission bench.toml; jointbench commission bench.toml --check"
WHEN_STOPPED = "motors are off; what was done is kept, and the same command goes on behind it"

NOT_MEASURED = (
    "not measured: winding resistance and torque constant, for no channel of a board tells the motor's voltage or "
    "torque. `jointbench gains` identifies torque constants by a known payload"
)
_STEPS = {"push": "pushed 1° either way", "wave": "moved 2.5° either way", "strokes": "moved by 6° at several speeds"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, which joints, what to do again, and where values go."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument("--joint", action="append", metavar="JOINT", help="this one alone; may be repeated (all)")
    parser.add_argument("--again", action="store_true", help="do again what was done, beside what there is")
    parser.add_argument(
        "--check", action="store_true", help="push each joint 1° either way once more, and say what changed since"
    )
    parser.add_argument("--yes", action="store_true", help="write what differs into the robot's file without asking")
    parser.add_argument(
        "--write", metavar="FILE", help="where the robot file with these values goes (in place of the bench's own)"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="of the runs; what is there already is not done again (runs/NAME-commission)"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Moves one joint after the other; exit code 1 when one has a fault, or a check found a change."""
    with console.working("loading"):
        from jointbench.bench import open_bench
        from jointbench.cli.run import progress_line
        from jointbench.identification.commission import changes, commission

    def told(joint: CommissionedJoint, step: str) -> None:
        outcome = f"NO  {joint.fault}: {joint.evidence}" if joint.fault else _STEPS[step]
        console.say(f"  {joint.name}: {outcome}")

    with open_bench(options.bench) as bench:
        bench.connect()
        bench.configure()
        out = Path(options.out or Path("runs") / f"{bench.name}-commission")
        if options.check and not out.is_dir():
            raise FileError(f"nothing was commissioned in {out} yet; leave --check out, or name its folder by --out")
        earlier: Sequence[CommissionedJoint] = ()
        progress = progress_line(console, "moving")
        if options.check:
            earlier = commission(bench, out, options.joint, only_wiring=True, told=None, progress=progress)
        console.say(f"commissioning {bench.name}: one motor at a time, the others off; Ctrl-C switches it off")
        joints = commission(
            bench, out, options.joint, again=options.again or options.check, only_wiring=options.check, told=told,
            progress=progress,
        )  # fmt: skip
        robot = bench.file.robot
    console.say(values_table(joints))
    say_faults(joints, console)
    changed = changes(earlier, joints) if options.check else ()
    for change in changed:
        console.say(f"NO  {change}")
    fields: dict[str, Any] = {"out": out, "joints": {joint.name: joint_fields(joint) for joint in joints}}
    if options.check:
        fields["changed"] = list(changed)
        console.say("ok: nothing has changed" if not changed else f"{len(changed)} changes since {out} was made")
    else:
        console.say(NOT_MEASURED)
        fields["written"] = write_values(robot, joints, options, console)
    console.say(f"runs: {out}")
    return Result("commission", fields=fields, refused=any(joint.fault for joint in joints) or bool(changed))


def values_table(joints: Sequence[CommissionedJoint]) -> str:
    """Every value with its standard error, what the file says, and a verdict; below it why some were not measured."""
    values = [(joint.name, value) for joint in joints for value in joint.values]
    rows = [
        [
            f"{name} {value.name}",
            "–" if value.value is None else measured_text(value),
            "–" if value.in_file is None else f"{value.in_file:g}",
            value.verdict.removeprefix("measured, ").partition(":")[0],
        ]
        for name, value in values
    ]
    lines = [f"  {name} {value.name}: {value.verdict}" for name, value in values if value.value is None]
    return "\n".join([table(("value", "measured", "file", "verdict"), rows), *lines])


def measured_text(value: Value) -> str:
    """A value with its standard error and unit."""
    sigma = f" ± {value.sigma:.2g}" if value.sigma else ""
    return f"{rounded(value):g}{sigma} {value.unit}".rstrip()


def say_faults(joints: Sequence[CommissionedJoint], console: Console) -> None:
    """What is wrong with which joint, and what to do; and which joints were left out."""
    from jointbench.identification.commission_readings import ADVICE

    for joint in joints:
        if joint.fault:
            console.say(f"NO  {joint.name}: {joint.fault}: {joint.evidence}; {ADVICE[joint.fault]}")
        elif joint.evidence:
            console.say(f"  {joint.name}: {joint.evidence}")


def joint_fields(joint: CommissionedJoint) -> dict[str, Any]:
    """What is known of a joint, for JSON."""
    return {
        "fault": joint.fault,
        "evidence": joint.evidence,
        "moved_rad": joint.moved,
        "runs": [str(run) for run in joint.runs],
        "values": {
            value.name: {
                "value": value.value, "sigma": value.sigma, "unit": value.unit, "file": value.in_file,
                "verdict": value.verdict,
            }
            for value in joint.values
        },
    }  # fmt: skip


def write_values(
    robot: str, joints: Sequence[CommissionedJoint], options: argparse.Namespace, console: Console
) -> str | None:
    """Write values that differ from the robot's file, or that it has none of, after a yes.

    Returns:
        The file written, None for none.

    Raises:
        FileError: with these values the file would hold no robot; nothing is written.
    """
    from jointbench.files import write_file
    from jointbench.model import load_robot
    from jointbench.model.drive_values import robot_file_text, with_drive_values

    news = {joint.name: {v.key: rounded(v) for v in joint.values if is_news(v)} for joint in joints if not joint.fault}
    news = {name: values for name, values in news.items() if values}
    if not news:
        console.say("the robot's file says what was measured; nothing is to be written")
        return None
    path, text = robot_file_text(robot)
    target = Path(options.write) if options.write else path
    if target is None:
        console.say(
            f"not written: robot {robot!r} is of the library; name a file of your own by --write, and that file in "
            "the bench file"
        )
        return None
    for name, values in news.items():
        console.say(f"  {name}: " + ", ".join(f"{key} = {value:g}" for key, value in values.items()))
    if not options.yes and not _says_yes(target, console):
        return None
    changed = with_drive_values(text, news)
    unfinished = target.with_name(f".{target.name}")
    write_file(unfinished, changed)
    try:
        load_robot(unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    console.say(f"written: {target}")
    if any("ratio" in values for values in news.values()):
        console.say("set the fact drive.ratio of these joints' boards to the same (config.json), or they are refused")
    return str(target)


def is_news(value: Value) -> bool:
    """Whether the robot's file should be told a value: it says none, or another by more than 3 σ."""
    return bool(value.key) and value.value is not None and (value.deviation is None or value.deviation > 3.0)


def rounded(value: Value) -> float:
    """Return a value with no more digits than its standard error has sense for: that error's second."""
    assert value.value is not None
    return float(f"{value.value:.{_digits(value)}g}")


def _digits(value: Value) -> int:
    assert value.value is not None
    if not value.sigma or not value.value:
        return 6
    return max(2, 2 + math.floor(math.log10(abs(value.value))) - math.floor(math.log10(value.sigma)))


def _says_yes(target: Path, console: Console) -> bool:
    if not sys.stdin.isatty():
        console.say(f"not written: nobody is here to say yes; --yes writes these values into {target}")
        return False
    return input(f"write these values into {target}? [y/N]: ").strip().lower() in ("y", "yes")
