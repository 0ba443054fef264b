"""Carrying out a command: time it, write its result, and turn errors into sentences and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.errors import JointbenchError


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
        when_stopped: what Ctrl-C leaves behind, in a few words.

    Returns:
        0; 1: a verdict or check says no; 2: it could not be done; 130: stopped by Ctrl-C.
    """
    console = Console(options.json)
    started = time.monotonic()
    try:
        result = act(options, console)
        seconds = time.monotonic() - started
        if options.json:
            result.write(options.json, seconds)
    except errors as error:
        console.alarm(command, str(error))
        return 2
    except BrokenPipeError:  # whoever read the output has had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except OSError as error:
        if error.filename is None:  # not a file the user named: a fault of ours, shown whole
            raise
        console.alarm(command, f"{error.filename}: {error.strerror}; name another place")
        return 2
    except KeyboardInterrupt:
        left = f"; {when_stopped}" if when_stopped else ""
        print(file=sys.stderr)
        console.alarm(command, f"stopped by Ctrl-C{left}")
        return 130
    if seconds > 1.0:
        console.say(f"{seconds:.0f} s in all")
    return result.exit_code
