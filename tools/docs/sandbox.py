"""A folder in which a page's commands run as they are typed: `./run` and `jointbench` are there."""

from __future__ import annotations

import contextlib
import doctest
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.docs.commands import Command

ROOT = Path(__file__).resolve().parents[2]
_SHARED = ("run", ".venv", "hil_tests", "docs", "host", "tools")
_PATIENCE = 60.0  # [s] for something that goes on to say its first line, and to end


class CommandFailed(Exception):
    """A command of a page did not do what the page says."""


class Sandbox:
    """Runs commands in a folder, one after the other, the page's Python with one set of names; end it with `close`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {}
        self._meanwhile = ExitStack()
        for name in _SHARED:
            (folder / name).symlink_to(ROOT / name)

    def run(self, command: Command) -> str:
        """Run one command, after what it takes for given; return what it printed.

        Raises:
            CommandFailed: its exit code is another than the page says, or its Python raises.
        """
        if command.is_python:
            return self._python(command.given) + self._python(command.text)
        if command.beside:
            self._meanwhile.enter_context(_going_on(command.beside, self.folder))
        if command.given:
            self._shell(command.given, 0)
        if command.meanwhile:
            return self._meanwhile.enter_context(_going_on(command.text, self.folder))
        return self._shell(command.text, command.exit_code)

    def close(self) -> None:
        """End what goes on meanwhile."""
        self._meanwhile.close()

    def _shell(self, text: str, exit_code: int) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", text], cwd=self.folder, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != exit_code:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise CommandFailed(f"`{text}` ended with {done.returncode}, the page says {exit_code}:\n{said}")
        return done.stdout

    def _python(self, text: str) -> str:
        with contextlib.chdir(self.folder):
            if ">>>" not in text:
                exec(compile(text, "<page>", "exec"), self.names)
                return ""
            case = doctest.DocTestParser().get_doctest(text, self.names, "page", "page", 0)
            said: list[str] = []
            outcome = doctest.DocTestRunner(verbose=False).run(case, out=said.append, clear_globs=False)
            self.names |= case.globs
            if outcome.failed:
                raise CommandFailed("".join(said))
            return "".join(said)


def _environment() -> dict[str, str]:
    programs = Path(sys.executable).parent
    # BROWSER: a page that a command opens stays closed.
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "BROWSER": "true"}


@contextlib.contextmanager
def _going_on(text: str, folder: Path) -> Iterator[str]:
    """Start a command, wait for the first line it prints, and end it by SIGTERM."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", text],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        first = process.stdout.readline()
        if not first:
            raise CommandFailed(f"`{text}` ended with {process.wait(_PATIENCE)} before it said anything")
        try:
            yield first
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # not SIGINT, which who runs in the background may ignore
            process.wait(_PATIENCE)
