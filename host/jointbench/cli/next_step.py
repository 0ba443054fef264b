"""The command that makes sense next: after a verb, as its last line, and without one, by what is in this folder."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serial.tools import list_ports

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.files import text_of, toml_values

SILENT = ("completion", "repl", "monitor")
"""Verbs that are followed by nothing: a script for a shell, and what a person ends."""

OWN = ("bring-up", "doctor", "identify", "init")
"""Verbs that say it themselves, with what only they know."""

_RUN_FILE, _MODEL = "run.toml", "*model*.json"
_PLACES = ("", "*/", "runs/*/", "runs/*/*/")
_BENCHES = ("*.toml", "runs/*.toml", "runs/*/*.toml", "runs/*/*/bench.toml")
_HEAD = 300  # characters of a plan that tell it from other JSON

_RUN_BENCH = "hil_tests/benches/unix6.toml"
"""Where it is, the folder is a checkout, which has emulated boards."""


def next_step(verb: str, options: argparse.Namespace, result: Result) -> str:
    """Return the command that makes sense after a verb that was carried out, "" where there is none to say.

    Args:
        verb: that was carried out.
        options: as they were given.
        result: of the verb; after a "no" the command says where to look.
    """
    if verb in (*SILENT, *OWN) or (verb == "import" and "mapping" in result.fields):
        return ""
    words = _after_no(verb, options, result) if result.exit_code else _after_yes(verb, options, result)
    return " ".join(word if word.isupper() else shlex.quote(word) for word in ("jointbench", *words))


def _after_yes(verb: str, options: argparse.Namespace, result: Result) -> tuple[str, ...]:
    fields = result.fields

    def value(name: str, otherwise: str) -> str:
        """Text of a field of the result or of an option; capitals stand for what the user fills in."""
        found = fields.get(name) or getattr(options, name, None)
        return str(found) if found and isinstance(found, (str, Path)) else otherwise

    match verb:
        case "demo":
            return "export", value("model", "MODEL"), "--out", "arm.urdf"
        case "list":
            return ("check", options.bench) if options.bench else ("info", "ROBOT")
        case "info":
            return _after_info(options.what, fields.get("kind", "robot"))
        case "assemble":
            return "plan", value("robot", "ROBOT")
        case "check":
            return "run", options.bench, "--plan", options.plan or "PLAN"
        case "commission":
            return "plan", "ROBOT"
        case "flash":
            return "list", options.target
        case "plan" | "sweep":
            return "run", "BENCH", "--plan", value("plan", "PLAN")
        case "run" if "sweep" in Path(str(options.plan)).stem:
            return "friction", value("run", "RUN")
        case "run" | "import" | "accept":
            return "fit", value("run", "RUN")
        case "fit":
            return "validate", value("model", "MODEL"), "ANOTHER_RUN"
        case "friction":
            return "fit", options.source if Path(options.source).is_dir() else "RUN", "--friction", "choose"
        case "drives" | "residual":
            return "report", value("model", "MODEL"), value("run", "RUN")
        case "gains" | "payload" | "stance":
            return "export", "MODEL", "--out", "arm.urdf"
        case "validate" | "watch" | "prove":
            model = options.model[0] if isinstance(options.model, list) else options.model
            return "report", str(model), "RUN", *([options.run] if verb == "validate" else [])
        case "compare":
            return "report", options.a, options.b
        case "float":
            return "plan", value("robot", "ROBOT"), "--taught", value("run", "RUN"), "--out", "taught.json"
        case "history":
            return "compare", "MODEL_BEFORE", "MODEL_NOW"
        case "report":
            return "export", options.first, "--out", "arm.urdf"
        case "export":
            return "prove", options.model, "BENCH"
        case "convert":
            return "doctor", value("run", "RUN")
        case _:
            return ("list",)


def _after_info(what: str, kind: str) -> tuple[str, ...]:
    return {
        "robot": ("plan", what),
        "run": ("fit", what),
        "model": ("validate", what, "ANOTHER_RUN"),
        "plan": ("run", "BENCH", "--plan", what),
        "bench": ("check", what),
    }[kind]


def _after_no(verb: str, options: argparse.Namespace, result: Result) -> tuple[str, ...]:
    """Where to look after a "no": at the recording of what was made of one, at the bench of what needs one."""
    bench = next((str(getattr(options, name)) for name in ("bench", "target") if getattr(options, name, None)), None)
    if verb in ("fit", "validate"):
        model = result.fields.get("model") or getattr(options, "model", None) or "MODEL"
        return "report", str(model[0] if isinstance(model, list) else model), "RUN"
    if verb == "report":
        return "doctor", str(options.second)
    if verb == "compare":
        return "report", str(options.a), str(options.b)
    if verb in ("run", "import", "accept", "float"):
        return "doctor", str(result.fields.get("run", "RUN"))
    if verb == "plan":
        return "plan", str(options.robot), "--help"
    return ("check", bench) if bench else ("doctor", "RUN")


@dataclass(frozen=True)
class FolderContents:
    """Things in a folder, the newest of each kind last; paths as they would be typed there.

    Attributes:
        ports: serial ports on USB, where boards are, with what they say of themselves.
        benches: bench files whose boards are at ports that are there.
        absent: bench files whose boards are not, such as that of a virtual bench that has ended.
        plans, runs, models: files and run directories.
        newest: of the benches, plans, runs and models; None where there is none.
    """

    ports: dict[str, str]
    benches: tuple[Path, ...]
    absent: tuple[Path, ...]
    plans: tuple[Path, ...]
    runs: tuple[Path, ...]
    models: tuple[Path, ...]
    newest: Path | None


def look(folder: Path) -> FolderContents:
    """See what a folder, its `runs` and the machine's ports have."""
    benches = {path: ports for path in _by_age(folder, _BENCHES) if (ports := _bench_ports(folder / path))}
    present = [path for path, ports in benches.items() if all(map(_is_there, ports))]
    plans = tuple(path for path in _by_age(folder, ("*.json",)) if _is_plan(folder / path))
    runs = _by_age(folder, [f"{place}{_RUN_FILE}" for place in _PLACES])
    models = _by_age(folder, [f"{place}{_MODEL}" for place in _PLACES])
    last = [group[-1] for group in (tuple(present), plans, runs, models) if group]
    newest = max(last, key=lambda path: (folder / path).stat().st_mtime, default=None)
    return FolderContents(
        ports={port.device: str(port.description) for port in sorted(list_ports.comports()) if port.vid is not None},
        benches=tuple(present),
        absent=tuple(path for path in benches if path not in present),
        plans=plans,
        runs=tuple(path.parent for path in runs),
        models=models,
        newest=newest.parent if newest in runs else newest,
    )


def _by_age(folder: Path, patterns: Iterable[str]) -> tuple[Path, ...]:
    """Files that match, each once, the oldest first, as seen from the folder."""
    files = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return tuple(path.relative_to(folder) for path in sorted(files, key=lambda path: (path.stat().st_mtime, path)))


def _bench_ports(path: Path) -> list[str]:
    """The ports of a bench file's boards; none where it is another file."""
    try:
        content: dict[str, Any] = toml_values(text_of(path))
    except (OSError, ValueError):
        return []
    boards = content.get("board")
    if path.name == _RUN_FILE or "robot" not in content or not isinstance(boards, list):
        return []
    entries = [board for board in boards if isinstance(board, dict)]
    return [str(board.get("url", "")).rpartition(";")[2].strip().removeprefix("serial:") for board in entries]


def _is_there(port: str) -> bool:
    """Return whether a port is a device of this machine, or a URL of another."""
    return "://" in port or Path(port).exists()


def _is_plan(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(_HEAD)
    return '"family"' in head and head.lstrip().startswith("{")


def show_here(options: argparse.Namespace, console: Console) -> Result:
    """Names the newest of each kind and the next command."""
    folder = Path.cwd()
    contents = look(folder)
    command, why = next_command(contents, folder)
    console.say(
        "jointbench: from the joint boards of a robot to its dynamic model; `jointbench --help` lists the verbs"
    )
    for line in _lines(contents):
        console.say(f"  {line}")
    console.say(f"next: {command}")
    console.say(f"      {why}")
    fields = {
        "ports": contents.ports, "benches": contents.benches, "absent_benches": contents.absent,
        "plans": contents.plans, "runs": contents.runs, "models": contents.models, "next": command, "why": why,
    }  # fmt: skip
    return Result("jointbench", fields=fields)


def next_command(contents: FolderContents, folder: Path) -> tuple[str, str]:
    """Return what to type, and why: the step after the newest thing that there is."""
    newest, bench = contents.newest, contents.benches[-1] if contents.benches else "BENCH"
    if newest is None:
        return _first_command(contents, folder)
    if newest in contents.models:
        runs = [run for run in contents.runs if run != newest.parent]
        if runs:
            return f"jointbench validate {newest} {runs[-1]}", "judge the newest model on motion it was not fitted to"
        return f"jointbench export {newest} --out arm.urdf", "give the newest model to other programs"
    if newest in contents.runs:
        return f"jointbench fit {newest}", "make a model of the newest run, with error bars and a verdict"
    if newest in contents.plans:
        if contents.benches:
            return f"jointbench check {bench} --plan {newest}", f"then `jointbench run {bench} --plan {newest}`"
        return f"jointbench run BENCH --plan {newest}", "BENCH is a file that says where each joint's board is"
    return f"jointbench check {bench}", "see whether its boards are fit to move; motors stay off"


def _first_command(contents: FolderContents, folder: Path) -> tuple[str, str]:
    if contents.ports:
        return (
            f"jointbench flash {next(iter(contents.ports))} --dry-run",
            "see what putting the firmware on it would do",
        )
    if (folder / _RUN_BENCH).is_file():
        return "./run demo", "plan, play, record and identify on emulated boards; no hardware is needed"
    return "jointbench plan cobot6", "plan the motion that tells a robot's parameters apart; `jointbench list` has more"


def _lines(contents: FolderContents) -> list[str]:
    """One a kind: the newest, and how many more."""
    ports = tuple(f"{device} ({about})" for device, about in contents.ports.items())
    kinds = {
        "boards at": ports, "bench": contents.benches, "plan": contents.plans, "run": contents.runs,
        "model": contents.models,
    }  # fmt: skip
    lines = [f"{kind:10} {group[-1]}{_more(len(group) - 1)}" for kind, group in kinds.items() if group]
    if contents.absent and not contents.benches:
        lines.append(f"{'bench':10} {contents.absent[-1]}: its ports are not there; has it ended, is it plugged in?")
    return lines or ["nothing here yet: no board on USB, no bench file, no plan, no run, no model"]


def _more(others: int) -> str:
    return f" and {others} more, older" if others else ""
