"""`jointbench VERB …`: finds the verb's file, carries it out, and turns errors into sentences and exit codes."""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jointbench.checks import Result, is_result
from jointbench.cli.console import SILENCE_S, Console
from jointbench.cli.next_step import next_step, show_here
from jointbench.cli.parser import VERBS, build_parser
from jointbench.errors import FileNotWritten, JointbenchError
from jointbench.files import write_file
from jointbench.stopping import exit_code, signals_stop, why_ended

_WAITS = ("bring-up", "completion", "commission", "init", "monitor", "repl")
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
