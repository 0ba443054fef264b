"""Commands killed at random moments: no file is half-written, little of a recording is lost, motors are off."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from hil_tests.flash_helpers import FailingFiles
from jointbench.bench.flash import build_image, update
from jointbench.bench.flash.slots import KEPT
from jointbench.checks import Check
from jointbench.cli.console import table
from jointbench.errors import JointbenchError, RunError
from jointbench.files import write_file
from jointbench.identification import load_model
from jointbench.recording import FRAMES, open_run, read_provenance, read_records
from jointbench.testing.requirements import load
from jointwire import MessageType, State, decode_frame
from tools.faults.commands import COMMANDS, Store, forked_bench, in_child, one_board, typed
from tools.faults.disk import contents
from tools.faults.program import Program
from tools.faults.subject import JOINT, NODE, Recovery, recover
from tools.faults.undisturbed import (
    EARLIER,
    NEARBY_MODULES,
    WRITING_MODULES,
    CountedLines,
    board_changes,
    disk_log,
    flashing,
    lines_of,
    put_earlier,
    undisturbed,
    written_files,
)
from tools.faults.verdict import read_recorded
from tools.requirements import FOLDER

WORKS = ("record", "fit", "export", "flash")
WAYS = ("KILL", "TERM", "HUP", "CUT")
OFF_WITHIN_TICKS = 500  # limit.link_timeout of a host that is killed
MOTION_US = 3_900_000  # from the bench's being opened to somewhat before the run's end
BLOCKS = 2  # of samples, from which on a run can be opened


@dataclass(frozen=True)
class Kill:
    """One kill of a campaign.

    Attributes:
        number, seed: of the kill, and of the campaign: the same two are the same kill.
    """

    number: int
    seed: int

    @property
    def work(self) -> str:
        """What is killed."""
        return WORKS[self.number % len(WORKS)]

    @property
    def way(self) -> str:
        """By which signal, or CUT for a power cut."""
        return WAYS[self.number // len(WORKS) % len(WAYS)]

    @property
    def rng(self) -> random.Random:
        """Chooses its moment."""
        return random.Random(f"{self.seed} {self.number}")

    @property
    def signal(self) -> signal.Signals:
        """Of a way that is none, the one by which a process ends as if it had never been."""
        return signal.SIGKILL if self.way == "CUT" else signal.Signals[f"SIG{self.way}"]

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.number}-{self.work}-{self.way}"


@dataclass(frozen=True)
class KillVerdict:
    """What a kill left behind.

    Attributes:
        kill: which.
        missed: whether the command had ended before.
        half_written, unreadable, motor: what is not as it must be, of files, of the run, and of the board; else empty.
        lost_ms: of the recording.
    """

    kill: Kill
    missed: str = ""
    half_written: str = ""
    unreadable: str = ""
    motor: str = ""
    lost_ms: float = 0.0

    @property
    def problem(self) -> str:
        """All that is not as it must be, but for what is lost."""
        return "; ".join(filter(None, (self.missed, self.half_written, self.unreadable, self.motor)))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        kill = self.kill
        return {
            "number": kill.number, "work": kill.work, "way": kill.way, "problem": self.problem, "lost_ms": self.lost_ms,
        }  # fmt: skip


def prepare(store: Store) -> None:
    """Have ready what all kills are measured by, once for all processes that come of this one."""
    for work in WORKS:
        if work != "record":
            undisturbed(work, store)
        if work != "flash":
            disk_log(work, store)
    board_changes(store)
    _images(store)


def kill_checks(verdicts: Sequence[KillVerdict]) -> tuple[Check, ...]:
    """What must hold of a campaign (hil_tests/requirements/campaign.toml)."""
    required = load(FOLDER)
    counts = {
        "kills.missed": sum(bool(verdict.missed) for verdict in verdicts),
        "kills.half_written": sum(bool(verdict.half_written) for verdict in verdicts),
        "kills.unreadable": sum(bool(verdict.unreadable) for verdict in verdicts),
        "kills.lost": max(verdict.lost_ms for verdict in verdicts),
        "kills.motors": sum(bool(verdict.motor) for verdict in verdicts),
    }
    return tuple(required[name].check(value) for name, value in counts.items())


def kill_table(verdicts: Sequence[KillVerdict]) -> str:
    """A line for each command and way: kills, those with something wrong, and the most that was lost."""
    rows: list[list[str]] = []
    for work in WORKS:
        for way in WAYS:
            own = [verdict for verdict in verdicts if (verdict.kill.work, verdict.kill.way) == (work, way)]
            lost = f"{max(verdict.lost_ms for verdict in own):.0f} ms" if own and work == "record" else ""
            wrong = sum(bool(verdict.problem) for verdict in own)
            rows.append([work, way, str(len(own)), str(wrong), lost])
    return table(("killed", "by", "times", "wrong", "most lost"), rows)


def run_kill(kill: Kill, store: Store, out: Path) -> KillVerdict:
    """Kill a command, and look at what is left, in a folder that is kept where something is wrong."""
    folder = out / kill.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    verdict = _WORKS[kill.work](kill, store, folder)
    if not verdict.problem:
        shutil.rmtree(folder)
    return verdict


# Files of a model and of its exports


def _files(kill: Kill, store: Store, folder: Path) -> KillVerdict:
    command = COMMANDS["model" if kill.work == "fit" else kill.work]
    place = folder / "place"
    act = partial(typed, command.words(store, place, folder))
    new = written_files(kill.work, store)
    if kill.way == "CUT":
        log = disk_log(kill.work, store)
        log.cut(kill.rng.randrange(len(log.events)), kill.rng, place)
        return KillVerdict(kill, half_written=_half_written(place, command.files, new, hidden=True))
    put_earlier(place, command.files)
    code = in_child(partial(_struck, kill, store, act), folder / "words.log")
    return KillVerdict(
        kill,
        missed=_ended_otherwise(kill, code),
        half_written=_half_written(place, command.files, new, hidden=kill.way == "KILL"),
    )


def _half_written(place: Path, files: Sequence[str], new: dict[str, bytes], hidden: bool) -> str:
    """A file that is neither the earlier one nor the new one, or that nobody knows; hidden ones may be left."""
    found = contents(place)
    for name in files:
        if name not in found:
            return f"{name} is gone"
        if found[name] not in (EARLIER, new[name]) and not _is_model(place / name):
            return f"{name} is neither the earlier one nor the new one"
    left = [name for name in found if name not in files and not (hidden and Path(name).name.startswith("."))]
    return f"{left[0]} is left" if left else ""


def _is_model(path: Path) -> bool:
    """Whether a file is a whole model: two fits differ in what they say of the time they took."""
    try:
        load_model(path)
    except JointbenchError:
        return False
    return path.name == "model.json"


def _ended_otherwise(kill: Kill, code: int) -> str:
    wanted = (-kill.signal, 128 + kill.signal)  # as by the shell, where the command had begun
    return "" if code in wanted else f"ended with {code}, and not by its kill"


def _struck(kill: Kill, store: Store, act: Callable[[], int]) -> int:
    """Carry out a command that is killed at a line of it, as often in what writes as in what is about it."""
    modules = kill.rng.choice((WRITING_MODULES, NEARBY_MODULES))
    at = random.Random(f"{kill.seed} {kill.number} at").randint(1, lines_of(kill.work, store, modules))
    sys.settrace(CountedLines(modules, at, lambda: os.kill(os.getpid(), kill.signal)))
    return act()


# A recording


class _KilledProgram(Program):
    """`jointbench run` that is killed at a moment."""

    def __init__(self, kill: Kill, bench: Path, plan: Path, folder: Path) -> None:
        super().__init__(bench, plan, folder)
        self.kill = kill

    def begin(self) -> None:
        """Set the moment."""
        self.clock.moment_us = self.clock.now_us() + self.kill.rng.randrange(MOTION_US)

    def strike(self) -> None:
        """Leave word of what was received, and die of it, or not."""
        super().strike()
        assert self.bench is not None
        known = {
            "time_us": self.clock.now_us(), "taken": self.report["taken"], "blocks": self.report["samples"],
            "streams": self.bench.boards[0].state in (State.ARMED, State.RUNNING), "shown": self.report["shown"],
        }  # fmt: skip
        write_file(self.folder / "struck.json", json.dumps(known))
        os.kill(os.getpid(), self.kill.signal)


def _record(kill: Kill, store: Store, folder: Path) -> KillVerdict:
    if kill.way == "CUT":
        log = disk_log("record", store)
        at = kill.rng.randrange(len(log.events))
        log.cut(at, kill.rng, folder / "disk")
        blocks, time_us = log.events[at].note
        known = {"time_us": time_us, "taken": 0, "blocks": blocks, "streams": True}
        verdict = _recorded(kill, folder / "disk" / "runs" / "run", known)
        hidden = [name for name in contents(folder / "disk") if not name.startswith(("runs/run/", "runs/.run."))]
        return replace(verdict, half_written=f"{hidden[0]} is left" if hidden else "")
    with forked_bench(one_board(), kill.number, folder / "bench") as live:
        code = in_child(lambda: _KilledProgram(kill, live, store.plan, folder).run(), folder / "words.log")
        found = recover(live, power=False)
    if not (folder / "struck.json").exists():
        return KillVerdict(kill, missed="the run had ended before")
    known = json.loads((folder / "struck.json").read_text(encoding="utf-8"))
    verdict = _recorded(kill, folder / "run", known)
    return replace(
        verdict, missed=_ended_otherwise(kill, code), motor=_still_on(kill, folder, known, found) or found.problem
    )


def _still_on(kill: Kill, folder: Path, known: dict[str, Any], found: Recovery) -> str:
    """How long a motor was on that should have been off."""
    if kill.way == "KILL":
        ticks = (found.since_us - known["time_us"]) // 1000 if known["streams"] else 0
        return f"the motor was on for {ticks} ticks" if ticks > OFF_WITHIN_TICKS else ""
    outputs = json.loads((folder / "report.json").read_text(encoding="utf-8"))["outputs"]
    last = max((tick for tick, enable, command in outputs if enable or command), default=0)
    return f"the motor was on until tick {last}" if last - known["shown"] > OFF_WITHIN_TICKS // 5 else ""


def _recorded(kill: Kill, run: Path, known: dict[str, Any]) -> KillVerdict:
    """What is left of a recording of which so much had been received."""
    if not run.exists():
        gone = f"nothing is left of {known['blocks']} blocks of samples" if known["blocks"] else ""
        return KillVerdict(kill, unreadable=gone)
    problem, records = "", list(read_records((run / FRAMES).read_bytes(), []))
    recorded = read_recorded(run, JOINT, NODE) if kill.way != "CUT" else None
    if recorded and recorded.kept < known["taken"]:
        problem = f"{known['taken'] - recorded.kept} of {known['taken']} records are lost"
    elif recorded and recorded.damage:
        problem = recorded.damage
    try:
        read_provenance(run)
        blocks = sum(decode_frame(record.payload).type is MessageType.DATA for record in records)
        if blocks >= BLOCKS:
            open_run(run)
    except RunError as error:
        problem = problem or str(error)
    end_us = records[-1].time_us if records else 0
    begins = known["blocks"] > 0 and known["streams"]
    lost_ms = max(known["time_us"] - end_us, 0) / 1000 if begins and kill.signal is signal.SIGKILL else 0.0
    return KillVerdict(kill, unreadable=problem, lost_ms=lost_ms if records or not begins else math.inf)


# A board's firmware


def _flash(kill: Kill, store: Store, folder: Path) -> KillVerdict:
    with forked_bench(one_board(), kill.number, folder / "bench") as live:
        own = {name: content for name, content in contents(live.parent / "boards" / JOINT).items() if name in KEPT}
        act = flashing(store, folder / "place", live)
        if kill.way == "CUT":
            code = in_child(partial(_cut_off, kill, store, act), folder / "words.log")
        else:
            code = in_child(partial(_struck, kill, store, act), folder / "words.log")
        found = recover(live, power=True)
    unknown = "" if found.image in _images(store) else f"the board runs image {found.image or 'none'}"
    return KillVerdict(
        kill,
        missed=_ended_otherwise(kill, code),
        half_written=unknown or _half_kept(folder / "place" / "boards", own),
        motor=found.problem,
    )


def _cut_off(kill: Kill, store: Store, act: Callable[[], int]) -> int:
    """Flash, and have the power fail before, within or after one of the board's changes."""
    change, how = kill.rng.randint(1, board_changes(store)), kill.rng.choice(("before", "half", "empty", "after"))

    def fail() -> Exception:
        os.kill(os.getpid(), signal.SIGKILL)
        return AssertionError("it is dead")

    update.FolderFiles = lambda folder: FailingFiles(folder, change, how, fail)  # type: ignore[assignment]
    return act()


def _half_kept(boards: Path, own: dict[str, bytes]) -> str:
    """A copy of a board's own files that lacks one, or has half of one."""
    for place in boards.glob("*/*"):
        if not place.name.startswith(".") and contents(place) != own:
            return f"{place.name} is not what the board had"
    return ""


@cache
def _images(store: Store) -> tuple[str, str]:
    return build_image("unix").sha256, build_image("unix", firmware=store.firmware).sha256


_WORKS: dict[str, Callable[[Kill, Store, Path], KillVerdict]] = {
    "record": _record, "fit": _files, "export": _files, "flash": _flash,
}  # fmt: skip
