"""What a terminal is shown, and what is kept from files and pipes."""

import os
import pty
import subprocess
import sys
import time
from io import StringIO

import pytest

from jointbench.cli.console import Console

SAYS = """
import sys, time
from jointbench.cli.console import Console
console = Console()
for k in range(1, 4):
    console.progress(f"run {k} of 4" + 200 * ".", k / 4)
    time.sleep(0.15)
with console.working("fitting"):
    time.sleep(0.3)
console.say("j1: identified")
console.alarm("jointbench fit", "no run")
"""


def on_a_terminal(**environment: str) -> str:
    """What the program above writes to a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    surroundings = {**os.environ, "COLUMNS": "60", "TERM": "xterm", **environment}
    surroundings = {name: value for name, value in surroundings.items() if value or name != "NO_COLOR"}
    with subprocess.Popen([sys.executable, "-c", SAYS], stdout=theirs, stderr=theirs, env=surroundings) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux says so when the other end is closed
                break
            if not part:
                break
            said += part
    os.close(ours)
    assert process.returncode == 0
    return said.decode()


def test_a_terminal_has_colour_and_one_line_of_progress() -> None:
    said = on_a_terminal(NO_COLOR="")
    assert "j1: \x1b[32midentified\x1b[0m" in said
    assert "\x1b[31mjointbench fit\x1b[0m: no run" in said
    drawn = [piece for piece in said.split("\r") if piece.startswith(("run ", "fitting"))]
    assert any(piece.startswith("fitting, 0 s") for piece in drawn)
    assert all(len(piece) < 60 for piece in drawn)  # what wraps could not be redrawn


def test_no_color_is_obeyed() -> None:
    assert "\x1b" not in on_a_terminal(NO_COLOR="1")


def test_a_pipe_gets_neither() -> None:
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, text=True, check=True)
    assert done.stdout == "j1: identified\n"
    assert done.stderr == "jointbench fit: no run\n"


def test_the_time_left_is_told_from_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    now = iter([100.0, 130.0])
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    console = Console()
    console.progress("recording", 0.0)
    console.progress("recording", 0.25)
    assert "recording, 1 min 30 s left" in shown.getvalue()
