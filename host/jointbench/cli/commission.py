"""Commission a bench: wiring, gear ratio and friction of each joint, found by the smallest motions, beside its file."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import FileError, FitError

if TYPE_CHECKING:
    from jointbench.bench import BenchFile
    from jointbench.identification.commission import CommissionedJoint
    from jointbench.identification.commission_readings import Value
    from jointbench.model import Robot

VERB = "commission"
WRITES = ("write",)
EXAMPLE = "jointbench commission bench.toml; jointbench commission bench.toml --check"
WHEN_STOPPED = "motors are off; what was done is kept, and the same command goes on behind it"

NOT_MEASURED = (
    "not measured: winding resistance and torque constant, for no channel of a board tells the motor's voltage or "
    "torque. `jointbench gains` identifies torque constants by a known payload"
)
_RATIO_STEP = 0.5e-3  # half of the step of the register drive.ratio
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
    """Print each joint's faults with their remedy, and the joints that were left out."""
    from jointbench.identification.commission_readings import ADVICE

    for joint in joints:
        if joint.fault:
            console.say(f"NO  {joint.name}: {joint.fault}: {joint.evidence}; {ADVICE[joint.fault]}")
        elif joint.evidence:
            console.say(f"  {joint.name}: {joint.evidence}")


def joint_fields(joint: CommissionedJoint) -> dict[str, Any]:
    """Values known of a joint, for JSON."""
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
    from jointbench.model.catalogue import robot_file_text, with_drive_values

    news = news_of(joints)
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


def reachable_limits(robot: Robot, news: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return lower torque limits for joints whose motors do not reach the present ones by their measured ratios [N·m].

    Torque at the current limit = |ratio| · torque constant · current limit.
    """
    limits: dict[str, float] = {}
    for joint, drive in zip(robot.independent_joints, robot.drives, strict=True):
        reach = abs(news.get(joint.name, {}).get("ratio", np.inf)) * drive.torque_constant * drive.current_limit
        if reach < joint.torque_limit:
            limits[joint.name] = float(f"{0.9995 * reach:.4g}")  # rounded, it is not above what they reach
    return limits


def write_robot(
    reference: str,
    news: Mapping[str, Mapping[str, float]],
    target: Path,
    torque_limits: Mapping[str, float] | None = None,
) -> str:
    """Write a robot's file with measured values into another place; the one it is made of stays as it is.

    Args:
        reference: of the robot, as a bench file has it.
        news: values by joint, by key of its table [joints.drive].
        target: the file.
        torque_limits: by joint [N·m], of those whose limit changes, too.

    Returns:
        The reference of the robot in that file, with what stood behind the first one's name, such as ":2" of a part.

    Raises:
        FileError: the robot is a URDF, or its drives are not written as tables.
    """
    from jointbench.files import write_file
    from jointbench.model import load_robot, split_reference
    from jointbench.model.catalogue import robot_file_text, with_drive_values

    path, text = robot_file_text(reference)
    text = with_drive_values(text, news, torque_limits)
    drawn = tomllib.loads(text).get("urdf")
    if path is not None and drawn is not None:
        own = json.dumps(str((path.parent / drawn).resolve()))
        text = re.sub(r"^[ \t]*urdf[ \t]*=.*$", lambda _: f"urdf = {own}", text, count=1, flags=re.MULTILINE)
    write_file(target, text)
    written = f"{target.resolve()}{reference.removeprefix(split_reference(reference)[0])}"
    load_robot(written)
    return written


def write_ratios(
    file: BenchFile, robot: str, earlier: Sequence[str], backups: Path, console: Console, *, yes: bool
) -> None:
    """Write gear ratios onto those boards that still have the one of an earlier robot file, after a yes.

    Args:
        file: the bench.
        robot: reference of the robot with measured ratios.
        earlier: references of robots whose ratios boards may have; a board with any other is left to be refused.
        backups: where the boards' files go before.
        console: asks.
        yes: nobody is asked.

    Raises:
        FitError: nobody said yes.
        FlashError: a board cannot be written.
    """
    from jointbench.bench import Bench
    from jointbench.bench.bench_checks import board_ratios
    from jointbench.bench.flash import ask_boards, boards_of, write_facts
    from jointbench.model import load_robot

    measured = load_robot(robot)
    before, wanted = [board_ratios(load_robot(each)) for each in earlier], board_ratios(measured)
    bench = Bench(file)
    try:
        for board in bench.boards:
            board.greet()
            board.need_our_schema()
            board.read_registers()
        present = [board.facts.ratio if board.facts else 0.0 for board in bench.boards]
    finally:
        bench.close()
    news = {
        name: float(new)
        for name, old, new, own in zip(measured.joint_names, np.transpose(before), wanted, present, strict=True)
        if np.min(np.abs(own - old)) <= _RATIO_STEP < abs(new - own)
    }
    if not news:
        return
    text = ", ".join(f"{name} {ratio:g}" for name, ratio in news.items())
    console.say(f"gear ratios for the boards (their fact drive.ratio): {text}")
    if not yes and not _asked("write these ratios onto the boards? [y/N]: "):
        raise FitError(
            f"the gears have other ratios than the boards were told ({text}); look at them, then type the same command "
            "with --yes, which writes them, or write the fact drive.ratio into each board's config.json"
        )
    entries = [entry for entry in file.boards if entry.joint in news]
    said = ask_boards(file, [entry.joint for entry in file.boards if not entry.on_foot])
    for board in boards_of(entries, said):
        raw = {entry.node: {"drive.ratio": round(1e3 * news[entry.joint])} for entry in board}
        kept = write_facts(file, board, raw, backups)
        console.say(f"  {', '.join(entry.joint for entry in board)}: written; its files before are in {kept}")


def news_of(joints: Sequence[CommissionedJoint]) -> dict[str, dict[str, float]]:
    """Return what the robot's file should be told, by joint and key of its table [joints.drive]; faulty joints' not."""
    news = {joint.name: {v.key: rounded(v) for v in joint.values if is_news(v)} for joint in joints if not joint.fault}
    return {name: values for name, values in news.items() if values}


def is_news(value: Value) -> bool:
    """True where the robot's file has no such value, or one that differs by more than 3 σ."""
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
    return _asked(f"write these values into {target}? [y/N]: ")


def _asked(question: str) -> bool:
    """Whether somebody is here, and says yes."""
    return sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")
