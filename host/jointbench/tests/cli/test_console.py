"""What a terminal is shown, and what is kept from files and pipes."""

import os
import pty
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest

from jointbench.cli import console as console_file
from jointbench.cli.console import WORDS, Console, compiling_told, table
from jointbench.cli.main import main
from jointbench.cli.parser import module_of

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


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def shown_at(monkeypatch: pytest.MonkeyPatch, shown: StringIO, *now: float) -> str:
    """What progress lines are shown of work that is told of at these times, a quarter done at the end."""
    times = iter(now)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    console = Console()
    for k in range(len(now)):
        console.progress("recording" + 100 * ".", 0.25 * k / (len(now) - 1))
    return shown.getvalue()


def test_the_time_left_is_told_from_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal is."""
    monkeypatch.setenv("COLUMNS", "60")
    said = shown_at(monkeypatch, Terminal(), 100.0, 130.0)
    assert said.endswith("..., 1 min 30 s left")
    assert len(said.split("\r")[-1]) == 59


def test_a_pipe_gets_a_line_of_progress_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    times = (100.0, 104.0, 106.0, 109.0, 112.0)
    lines = shown_at(monkeypatch, StringIO(), *times).splitlines()
    assert [line.rpartition(", ")[2] for line in lines] == ["42 s left", "36 s left"]


def test_work_that_falls_silent_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_file, "SILENCE_S", 0.15)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    console = Console()
    with console.working("recording"):
        console.progress("half of it")
        deadline = time.monotonic() + 20.0
        while "recording, " not in shown.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    drawn = [piece.strip() for piece in shown.getvalue().split("\r") if piece.strip()]
    assert drawn[0] == "half of it"
    assert drawn[-1].startswith("recording, ")


def test_compiling_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    from numba import njit

    def nothing(x: int) -> int:
        return x

    with compiling_told(Console()):
        compiled = njit(nothing)
        assert capsys.readouterr().out == ""
        compiled(1)
        njit(nothing)(2)
        compiled(3)
    njit(nothing)(4)
    assert capsys.readouterr().out == f"{WORDS}\n"


def test_progress_that_nobody_reads_ends_the_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        console = Console()
        console.progress("recording")
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            console.progress("recording")


def test_a_terminal_that_is_closed_is_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGHUP tells of it, and a program that is to outlive it goes on."""
    terminal, own = pty.openpty()
    with open(own, "w") as stream:
        os.close(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        Console().progress("recording")


def test_a_wide_table_becomes_several_that_fit_80_columns() -> None:
    heads = ["joint", *(f"quantity {k} [N·m]" for k in range(9))]
    rows = [[name, *(f"{k}.25" for k in range(9))] for name in ("j1", "j2")]
    lines = table(heads, rows).splitlines()

    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if line.startswith("  joint")).count("quantity") == 4
    assert sum(line.split()[0] == "j1" for line in lines if line) == 3
    words = " ".join(lines)
    assert all(f"quantity {k}" in words for k in range(9))
    narrow = table(["joint", "torque [N·m]"], [["j1", "2.5"]])
    assert narrow.splitlines() == ["  joint  torque [N·m]", "  -----  ------------", "  j1              2.5"]


def test_the_tables_of_verbs_fit_80_columns(
    files_of_examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files_of_examples)
    for name in ("arm", "other"):
        assert main(["fit", f"runs/{name}", "--out", str(tmp_path / f"{name}.json")]) == 0
    assert main(["validate", str(tmp_path / "arm.json"), "runs/other"]) == 0
    main(["compare", str(tmp_path / "arm.json"), str(tmp_path / "other.json"), "--on", "runs/other"])
    said = capsys.readouterr().out.splitlines()
    assert sum("friction with memory" in line for line in said) == 2  # of two fits: once each
    rules = [k for k, line in enumerate(said) if line.strip() and set(line) <= {" ", "-"}]

    assert len(rules) >= 7
    for k in rules:
        assert max(map(len, said[k - 1 : k + 3])) <= 80, said[k - 1 : k + 3]
    for units in ("N·m·s/rad", "kg·m²", "rms [N·m]"):
        assert units in "\n".join(said)


def test_of_work_within_work_the_innermost_is_shown_and_the_outer_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console_file, "_LINE_S", 0.05)
    monkeypatch.setattr(console_file, "_REDRAW_S", 0.05)
    console = Console()
    with console.working("outer", silence=10.0), console.working("inner"):
        time.sleep(0.4)
    assert set(told_of(capsys)) == {"inner"}
    with console.working("outer"):
        with console.working("inner"):
            time.sleep(0.4)
        time.sleep(0.4)
    lines = told_of(capsys)
    assert lines == sorted(lines)  # all of "inner" before all of "outer"
    assert {"inner", "outer"} == set(lines)


def told_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]


def test_a_verb_that_takes_more_than_a_second_shows_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = module_of("info")
    real = info.run

    def slow(options: object, console: Console) -> object:
        time.sleep(1.6)
        return real(options, console)

    monkeypatch.setattr(info, "run", slow)
    monkeypatch.setattr(console_file, "_LINE_S", 0.05)
    assert main(["info", "cobot6"]) == 0
    assert "jointbench info, " in capsys.readouterr().err
