"""`jointbench VERB …`: finds the verb's file, carries it out, and turns errors into sentences and exit codes.

The last line of a verb, and the answer without one, is the command that makes sense next, by what is in this folder.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from serial.tools import list_ports

from jointbench.checks import Result, is_result
from jointbench.cli.console import SILENCE_S, Console
from jointbench.cli.parser import VERBS, build_parser
from jointbench.errors import FileNotWritten, JointbenchError
from jointbench.files import text_of, toml_values, write_file
from jointbench.stopping import exit_code, signals_stop, why_ended

_WAITS = ("bridge", "bring-up", "completion", "commission", "init", "monitor", "repl")
"""Verbs that write for a shell, or that wait for a person: nothing is drawn over their lines."""

BUG = 3
"""Exit code of a command that ended by a bug of ours."""

_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def carry_out(
    command: str,
    options: argparse.Namespace,
    act: Callable[[argparse.Namespace, Console], Result],
    errors: tuple[type[Exception], ...] = (JointbenchError,),
    *,
    when_stopped: str = "",
) -> int:
    """Carry out a command whose options have `json`.

    Args:
        command: its name, before the sentence of an error.
        options: as parsed.
        act: does it.
        errors: those whose text is for the user.
        when_stopped: what Ctrl-C leaves behind, in a few words; an interrupt's own notes say it better.

    Returns:
        0; 1: a verdict or check says no; 2: it could not be done; 3: a bug of ours; 130, 129, 143: stopped by Ctrl-C,
        SIGHUP, SIGTERM.
    """
    console = Console(options.json)
    started = time.monotonic()
    try:
        with signals_stop():
            result = act(options, console)
            seconds = time.monotonic() - started
            if options.json:
                result.write(options.json, seconds)
    except errors as error:
        console.alarm(command, str(error))
        return 2
    except BrokenPipeError:  # whoever read the output has had enough, as `head` does
        _give_up_output()
        return 2
    except OSError as error:
        if error.filename is None and error.errno not in _OF_THE_MACHINE:  # nothing that the user named
            return bug(command, error, console)
        if error.filename is None:
            _give_up_output()
        where = "" if error.filename is None else f"{error.filename}: "
        console.alarm(command, f"{where}{error.strerror}; name another place, or make room")
        return 2
    except MemoryError as error:
        console.alarm(command, f"there is not enough memory ({error or 'it is all in use'}); give it less at a time")
        return 2
    except (KeyboardInterrupt, SystemExit) as stopped:
        code = exit_code(stopped)
        if code is None:
            raise
        state = "; ".join(getattr(stopped, "__notes__", ())) or when_stopped
        newline = "\n" if sys.stderr.isatty() else ""  # behind the ^C that a terminal shows
        console.alarm(newline + command, f"stopped by {why_ended(stopped)}" + (f"; {state}" if state else ""))
        return code
    except GeneratorExit:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        solver = sys.modules.get("numpy.linalg")  # not imported for this: most commands can do without
        if solver is not None and isinstance(error, solver.LinAlgError):
            advice = "look at what they are made of with `jointbench doctor RUN`, or `jointbench info ROBOT`"
            console.alarm(command, f"these numbers have no solution ({error}); {advice}")
            return 2
        return bug(command, error, console)
    if seconds > 1.0:
        console.say(f"{seconds:.0f} s in all")
    for line in result.last_lines:
        console.say(line)
    return result.exit_code


def _give_up_output() -> None:
    """Have standard output take anything: what is left of it, Python would write again as it ends, and fail again."""
    with suppress(OSError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def bug(command: str, error: BaseException, console: Console) -> int:
    """Say in short that an error is a bug of ours and how to report it, keep its traceback in a file, and return 3."""
    import platform  # these take a while, and are hardly ever needed
    import shlex
    import traceback
    from importlib.metadata import version

    frame = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split())[:200]
    report = "\n".join(
        (
            f"command: {command} ({shlex.join(sys.argv)})",
            f"jointbench {version('jointbench')}, Python {platform.python_version()}, {platform.platform()}",
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    try:
        path = _report_path()
        write_file(path, report)
        how = f"to report it, send the file {path} (command, version and traceback) to Jointbench's issues"
    except OSError as unwritten:
        how = f"its report cannot be kept ({unwritten}); set XDG_STATE_HOME to a folder that can be written"
    name = f"{type(error).__name__}{': ' if words else ''}{words}"
    console.alarm(command, f"a bug of Jointbench: {name} ({Path(frame.filename).name}, line {frame.lineno}); {how}")
    return BUG


def _report_path() -> Path:
    """A new file in the user's folder for what programs leave behind."""
    from platformdirs import user_state_path

    folder = user_state_path("jointbench") / "bugs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return 0, 1 (the verdict is no), 2 (it could not be done, and why) or 3 (a bug of ours)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _options(words)
    except Exception as error:
        return bug("jointbench", error, Console())
    if options.verb is None:
        return carry_out("jointbench", options, show_here)
    state: str = getattr(options.module, "WHEN_STOPPED", "")
    return carry_out(f"jointbench {options.verb}", options, _run_verb, when_stopped=state)


def _options(words: list[str]) -> argparse.Namespace:
    """Parse the command line; wrong use ends the program with 2."""
    parser = build_parser()
    if words and not words[0].startswith("-") and words[0] not in VERBS:
        near = difflib.get_close_matches(words[0], VERBS, 1)
        meant = f"; did you mean `{' '.join(['jointbench', near[0], *words[1:]])}`?" if near else ""
        parser.error(f"there is no verb {words[0]!r}{meant}")
    options, unknown = parser.parse_known_args(words)
    if unknown:
        options.parser.refuse(unknown)
    return options


def _run_verb(options: argparse.Namespace, console: Console) -> Result:
    """Carry out a verb, if no file that its options name would be overwritten unasked.

    Raises:
        FileNotWritten: names the first one that would be.
    """
    named = [getattr(options, name) for name in getattr(options.module, "WRITES", ())]
    files = [file for value in named if value for file in ([value] if isinstance(value, str) else value)]
    for file in files:
        if Path(file).is_file() and not options.force:
            raise FileNotWritten(f"{file} exists; name another file, or replace it with --force")
    if options.json and Path(options.json).is_file() and not is_result(Path(options.json)):
        raise FileNotWritten(f"--json {options.json} exists and is not a result of an earlier command; name another")
    if options.verb in _WAITS:
        return options.module.run(options, console)
    with console.working(f"jointbench {options.verb}", SILENCE_S):
        result: Result = options.module.run(options, console)
    command = next_step(options.verb, options, result)
    return replace(result, last_lines=(*result.last_lines, f"next: {command}")) if command else result


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
