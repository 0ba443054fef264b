"""Carrying out a command: time it, write its result, and turn errors into sentences and exit codes.

Whatever else is raised is a bug of ours: its traceback goes to a file that can be sent, not to the screen.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import JointbenchError
from jointbench.files import write_file
from jointbench.stopping import exit_code, signals_stop, why_ended

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
        left = "; ".join(getattr(stopped, "__notes__", ())) or when_stopped
        newline = "\n" if sys.stderr.isatty() else ""  # behind the ^C that a terminal shows
        console.alarm(newline + command, f"stopped by {why_ended(stopped)}" + (f"; {left}" if left else ""))
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
