"""A disk that takes no more while a command writes what its user keeps: one sentence, and the earlier file whole."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jointbench.cli.tables import table
from tools.faults.commands import COMMANDS, Store, in_child, one_board, typed
from tools.faults.errors import UnknownCell
from tools.faults.forked_bench import forked_bench
from tools.faults.write_log import contents

TROUBLES = {
    "full": r"No space left on device|File too large",
    "read_only": r"Read-only file system|Permission denied|may not be written",
    "gone": r"No such file or directory|there is no folder",
}
SIZE = 4 << 20  # bytes, of the disk
PAGE = 4096
EARLIER = b"what was there before\n" * 40


@dataclass(frozen=True)
class DiskVerdict:
    """What came of a command on a disk with a trouble.

    Attributes:
        trouble, command: by name.
        real: whether it was a file system of its own, and not only this process's limits.
        problem: what is not as it must be; empty where all is well.
        words: that its user read.
    """

    trouble: str
    command: str
    real: bool
    problem: str
    words: str

    @property
    def id(self) -> str:
        """As it is asked for."""
        return f"disk.{self.trouble}@{self.command}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"id": self.id, "ok": not self.problem, **asdict(self)}


def disk_cells(names: Sequence[str] = ()) -> list[str]:
    """Every trouble with every command, as "disk.full@model", or those of some names.

    Raises:
        UnknownCell: there is none of a name; says how they are named.
    """
    cells = [f"disk.{trouble}@{command}" for trouble in TROUBLES for command in COMMANDS]
    if unknown := [name for name in names if name not in cells]:
        raise UnknownCell(
            f"there is no cell {unknown[0]!r}; a cell of the disk is disk.TROUBLE@COMMAND, with {', '.join(TROUBLES)}, "
            f"and {', '.join(COMMANDS)}"
        )
    return [cell for cell in cells if not names or cell in names]


def disk_table(verdicts: Sequence[DiskVerdict]) -> str:
    """A line for each trouble: a dot for each command that is well."""
    marks = {(verdict.trouble, verdict.command): "NO" if verdict.problem else "·" for verdict in verdicts}
    rows = [[f"disk.{trouble}", *(marks.get((trouble, name), "") for name in COMMANDS)] for trouble in TROUBLES]
    return table(("trouble", *COMMANDS), [row for row in rows if any(row[1:])])


def run_disk_cell(cell: str, store: Store, out: Path) -> DiskVerdict:
    """Let a command meet a disk with a trouble, and then one without, in a folder that is kept where it fails."""
    trouble, name = cell.removeprefix("disk.").split("@")
    folder, command = out / cell, COMMANDS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as opened:
        live = opened.enter_context(forked_bench(one_board(), 0, folder / "bench")) if command.on_bench else folder
        disk = opened.enter_context(_disk(folder / "disk"))
        act = partial(typed, command.words(store, disk.place, live))
        for file in command.files:
            if Path(file).suffix and name != "result":  # folders are made, and --json goes to a new file
                (disk.place / file).write_bytes(EARLIER)
        before, problem = contents(disk.place), ""
        # For the beginning of the only file, where that is longer.
        room = PAGE if len(command.files) == 1 and name != "result" else 0
        code = in_child(partial(disk.met, trouble, room, act), folder / "words.log")
        words = (folder / "words.log").read_text(encoding="utf-8", errors="replace")
        if trouble != "gone" or code:  # those that make folders have made this one anew, and written there
            disk.heal()
            problem = _wrong(trouble, code, words) or _changed(before, contents(disk.place), trouble)
            if not problem and in_child(act, folder / "again.log"):
                problem = "does not write when there is room again"
        if not problem and (missing := [file for file in command.files if not (disk.place / file).exists()]):
            problem = f"{missing[0]} was not written"
        last = (words.strip().splitlines() or [""])[-1]
        verdict = DiskVerdict(trouble, name, disk.real, problem, last)
    if not problem:
        shutil.rmtree(folder)
    return verdict


def _wrong(trouble: str, code: int, words: str) -> str:
    if "Traceback" in words or code not in (1, 2):
        return f"ends with exit code {code}: {words.strip()[-300:]!r}"
    last = words.strip().splitlines()[-1]
    return "" if re.search(TROUBLES[trouble], last) else f"does not say what is wrong with the disk: {last!r}"


def _changed(before: dict[str, bytes], after: dict[str, bytes], trouble: str) -> str:
    """What is not as it was before, where the disk is not gone with all that it had."""
    if trouble == "gone":
        return f"left {sorted(after)[0]}" if after else ""
    changed = [name for name in before if after.get(name) != before[name]]
    left = sorted(set(after) - set(before))
    return f"{changed[0]} is not as it was" if changed else f"left {left[0]}" if left else ""


class _Disk:
    """A small file system at a place, or where none can be made a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True)
        self.real = _mount("-t", "tmpfs", "-o", f"size={SIZE}", "jointbench-faults", str(place))

    def met(self, trouble: str, room: int, act: Callable[[], int]) -> int:
        """Do something while there is a trouble, in this process, which ends then; a full disk has so much room yet."""
        match trouble:
            case "full" if self.real:
                with (self.place / ".filler").open("wb", buffering=0) as filler:
                    with suppress(OSError):
                        while True:
                            filler.write(bytes(PAGE))
                    filler.truncate(filler.tell() - room)
            case "full":
                resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE // 8, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            case "read_only" if self.real:
                _mount("-o", "remount,ro", str(self.place))
            case "read_only":
                self.place.chmod(0o555)
            case _:
                self.close()
        return act()

    def heal(self) -> None:
        """Take the trouble away."""
        if not self.place.exists():
            self.place.mkdir()
            self.real = self.real and _mount("-t", "tmpfs", "-o", f"size={SIZE}", "jointbench-faults", str(self.place))
        if not (self.real and _mount("-o", "remount,rw", str(self.place))):
            self.place.chmod(0o755)
        (self.place / ".filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Take the disk away."""
        if self.real:
            subprocess.run(["umount", "--lazy", str(self.place)], check=False, capture_output=True)
        shutil.rmtree(self.place, ignore_errors=True)


@contextmanager
def _disk(place: Path) -> Iterator[_Disk]:
    disk = _Disk(place)
    try:
        yield disk
    finally:
        disk.close()


def _mount(*words: str) -> bool:
    """Whether the system mounts; it lets only root."""
    if os.geteuid() or not shutil.which("mount"):
        return False
    return subprocess.run(["mount", *words], check=False, capture_output=True).returncode == 0
