"""Commands of the kill campaign that nobody kills: lines carried out, files and disk writes, changes of a board."""

from __future__ import annotations

import pickle
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import jointbench
from hil_tests.flash_helpers import FailingFiles
from jointbench.bench.flash import update
from jointbench.recording import FRAMES, Recorder, read_provenance, read_records
from jointbench.recording import recorder as recorder_module
from jointwire import FrameReader, MessageType, decode_frame
from tools.faults.commands import COMMANDS, Store, forked_bench, in_child, one_board, typed
from tools.faults.disk import WriteLog, contents

EARLIER = b"what was there before\n" * 400
_HOST = str(Path(jointbench.__file__).parent)
WRITING_MODULES = ("files.py", "bench/flash/board_files.py")
NEARBY_MODULES = (
    *WRITING_MODULES, "sealed.py", "results/export.py", "results/full_model.py", "results/mjcf.py", "results/urdf.py",
    "bench/flash/", "identification/model_file.py", "cli/fit.py", "cli/export.py", "cli/flash.py",
)  # fmt: skip
_RECEIVED = [0, 0]  # blocks of samples, and when the newest thing came [µs]


def put_earlier(place: Path, files: Sequence[str]) -> None:
    """Write files that were there before the command."""
    place.mkdir(parents=True)
    for name in files:
        (place / name).write_bytes(EARLIER)


class CountedLines:
    """Counts lines of some modules as they are carried out, and has something done at one of them."""

    def __init__(self, modules: Sequence[str], at: int = 0, act: Callable[[], None] = lambda: None) -> None:
        self.inside = tuple(f"{_HOST}/{module}" for module in modules)
        self.at, self.act, self.count = at, act, 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace a call of one of the modules."""
        return self._line if frame.f_code.co_filename.startswith(self.inside) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self.at:
                self.act()
        return self._line


@cache
def lines_of(work: str, store: Store, modules: tuple[str, ...]) -> int:
    """How many lines of modules a command carries out that nobody kills."""
    return undisturbed(work, store)[modules]


@cache
def undisturbed(work: str, store: Store) -> dict[tuple[str, ...], int]:
    """Lines of a command that nobody kills, by modules; what it writes is in a folder of the store."""
    place = store.folder / f"reference-{work}"
    counts: dict[tuple[str, ...], int] = {}
    for modules in (WRITING_MODULES, NEARBY_MODULES):
        shutil.rmtree(place, ignore_errors=True)
        file = store.folder / f"{work}.count"
        if work == "flash":
            with forked_bench(one_board(), 0, place / "bench") as live:
                in_child(partial(_counted, flashing(store, place, live), modules, file), store.folder / "count.log")
        else:
            command = COMMANDS["model" if work == "fit" else work]
            put_earlier(place, command.files)
            act = partial(typed, command.words(store, place, place))
            in_child(partial(_counted, act, modules, file), store.folder / "count.log")
        counts[modules] = round(0.95 * int(file.read_text(encoding="utf-8")))  # some lines come in some runs only
    return counts


def _counted(act: Callable[[], int], modules: tuple[str, ...], file: Path) -> int:
    lines = CountedLines(modules)
    sys.settrace(lines)
    code = act()
    sys.settrace(None)
    file.write_text(str(lines.count), encoding="utf-8")
    return code


@cache
def written_files(work: str, store: Store) -> dict[str, bytes]:
    """Files that a command writes which nobody kills."""
    undisturbed(work, store)
    return contents(store.folder / f"reference-{work}")


@cache
def disk_log(work: str, store: Store) -> WriteLog:
    """All that a command does to the disk."""
    place, file = store.folder / f"log-{work}", store.folder / f"{work}.log"
    shutil.rmtree(place, ignore_errors=True)
    if work == "record":
        place.mkdir()
        act = partial(_record_anew, store, place)
    else:
        command = COMMANDS["model" if work == "fit" else work]
        put_earlier(place, command.files)
        act = partial(typed, command.words(store, place, place))
    in_child(partial(_logged, place, act, file), store.folder / "log.log")
    return pickle.loads(file.read_bytes())


def _logged(place: Path, act: Callable[[], int], file: Path) -> int:
    log = WriteLog(place)
    with log.noting(lambda: tuple(_RECEIVED)):
        code = act()
    file.write_bytes(pickle.dumps(log))
    return code


def _record_anew(store: Store, place: Path) -> int:
    """Record what a stored run holds once more, by its own times, on a disk that takes no time."""
    provenance = read_provenance(store.run)
    provenance = {name: value for name, value in provenance.items() if name not in ("version", "jointbench")}
    records = list(read_records((store.run / FRAMES).read_bytes(), []))
    # The recorder's modules are exchanged for a clock that stands where the recording did, and for no second thread.
    recorder_module.time = SimpleNamespace(monotonic=lambda: 1e-6 * _RECEIVED[1])  # type: ignore[assignment] - a module
    recorder_module.threading = SimpleNamespace(Thread=_NoThread)  # type: ignore[assignment] - a module
    _RECEIVED[:] = [0, records[0].time_us]
    with Recorder(place / "runs" / "run", provenance) as recorder:
        reader = FrameReader()
        for record in records:
            for chunk in reader.feed(record.payload + b"\0"):
                _RECEIVED[1] = record.time_us
                _RECEIVED[0] += decode_frame(record.payload).type is MessageType.DATA
                recorder.chunk(record.time_us, record.node, chunk)
    return 0


class _NoThread:
    """A thread whose work is done as soon as it is started."""

    def __init__(self, target: Callable[[], None], name: str) -> None:
        self._target = target

    def start(self) -> None:
        self._target()

    def is_alive(self) -> bool:
        return False

    def join(self) -> None: ...


def flashing(store: Store, place: Path, live: Path) -> Callable[[], int]:
    """Return the command that writes a board's firmware."""
    return partial(typed, COMMANDS["configuration"].words(store, place, live))


@cache
def board_changes(store: Store) -> int:
    """How many changes of a board's files a flash makes that nobody disturbs."""
    place, count = store.folder / "changes", store.folder / "changes.count"

    def flash(live: Path) -> int:
        boards: list[FailingFiles] = []

        def noted(folder: Path) -> FailingFiles:
            boards.append(FailingFiles(folder, 0, ""))
            return boards[-1]

        update.FolderFiles = noted  # type: ignore[assignment]
        code = flashing(store, place, live)()
        count.write_text(str(sum(len(board.changes) for board in boards)), encoding="utf-8")
        return code

    shutil.rmtree(place, ignore_errors=True)
    with forked_bench(one_board(), 0, place / "bench") as live:
        in_child(partial(flash, live), store.folder / "count.log")
    return int(count.read_text(encoding="utf-8"))
