"""Benches with a few boards that run test programs, and whether their processes live."""

import contextlib
import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench.mailbox import read_flash

KINDS = {"unix:": "unix", "qemu:": "mps2"}  # of boards, as they call themselves
PROGRAMS = Path(__file__).parent / "programs"


def write_bench_file(folder: Path, *programs: str | None, extra: str = "", boards: Sequence[str] = ()) -> Path:
    """Write a bench file with one board for each program; None is the firmware itself.

    Args:
        folder: where to.
        programs: names in `PROGRAMS`, or paths.
        extra: TOML at the end of the file.
        boards: TOML at the end of the first boards' tables.
    """
    text = f'version = 1\nname = "test"\nrobot = "cobot6"\nplant = {json.dumps(str(COBOT6_PLANT))}\n'
    for node, (program, more) in enumerate(zip_longest(programs, boards), start=1):
        text += f'[[board]]\nnode = {node}\njoint = "j{node}"\nurl = "unix:"\n'
        text += f"program = {json.dumps(str(PROGRAMS / program))}\n" if program else ""
        text += f"{more}\n" if more else ""
    path = folder / "test_bench.toml"
    path.write_text(text + extra, encoding="utf-8")
    return path


def board_file(out: Path, joint: str, name: str) -> bytes:
    """Return a file of a board's flash, by its path there; `out` is the folder of the bench."""
    folder = out / "boards" / joint
    memory = folder / "psram.bin"
    return read_flash(memory)[name] if memory.exists() else (folder / name).read_bytes()


def is_running(pid: int) -> bool:
    """Tell whether a process is there and not merely waiting to be collected."""
    with contextlib.suppress(FileNotFoundError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        return state != "Z"
    return False
