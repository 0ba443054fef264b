"""Recording a run: a directory that is readable at any moment, also after the process was killed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jointbench.bench import DEFAULT_LOSS_LIMIT, Bench, Facts, Ledger, ProgressCallback, Tally
from jointbench.errors import RunError, StopAsked
from jointbench.excitation import Excitation
from jointbench.recording.board_record import ClockNotes, clocks_of
from jointbench.recording.decode import Record, RecordKind, encode_record
from jointbench.recording.run import Run, open_run
from jointbench.recording.run_directory import EVENTS, FRAMES, RESULT, SCHEMA, common_ticks, create_run_directory
from jointbench.recording.seal import write_result
from jointbench.stopping import SafeInterrupt, why_ended
from jointwire import Chunk, Frame, schema_text

if TYPE_CHECKING:
    from _hashlib import HASH

_MOST_UNCOUNTED = 256  # records; one by one, after each wait, they cost as much again
_FSYNC_S = 0.05  # with the time that a disk takes, less than 100 ms of the wall clock are lost when the power fails


class RecordWriter:
    """Appends records to a file, each handed to the operating system at once: a killed process loses none of them.

    Attributes:
        sha256: of everything written.
    """

    def __init__(self, path: Path, *beside: int) -> None:
        """Create the file, or go on with the empty one that is there.

        Args:
            path: of the file.
            beside: descriptors of files that shall be on the disk as soon as it is.
        """
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._sync = _DiskSync(*beside, self._descriptor)
        self._size = 0
        self._closed = False
        self.sha256: HASH = hashlib.sha256()

    def write(self, *records: Record) -> None:
        """Append records, all of them or none.

        Raises:
            OSError: the file takes no more; it ends as it did before.
        """
        self._sync.raise_error()
        data = b"".join(map(encode_record, records))
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # a disk that is nearly full takes a part, and refuses the rest with the reason
                written += os.write(self._descriptor, data[written:])
        except OSError:
            with contextlib.suppress(OSError):  # the reader copes with a torn record where not even this is possible
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        self.sha256.update(data)
        self._sync.when_due()  # with what was just written: before the next block comes, it is on the disk

    def close(self) -> None:
        """Write everything to the disk; closing twice is harmless.

        Raises:
            OSError: the disk does not take it; the file is closed all the same.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._sync.finish()
        finally:
            os.close(self._descriptor)


class _DiskSync:
    """Has files written to the disk many times a second, in a thread: a slow disk must not keep the boards waiting."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors
        self._thread: threading.Thread | None = None
        self._started_s = time.monotonic()
        self._error: OSError | None = None

    def when_due(self) -> None:
        """Start writing, if that is due and the last time has ended."""
        now_s = time.monotonic()
        if now_s - self._started_s < _FSYNC_S or (self._thread and self._thread.is_alive()):
            return
        self._started_s = now_s
        self._thread = threading.Thread(target=self._write, name="disk sync")
        self._thread.start()

    def raise_error(self) -> None:
        """Say what went wrong the last time.

        Raises:
            OSError: the disk did not take what it was given.
        """
        if self._error:
            raise self._error

    def finish(self) -> None:
        """Write what is left and wait for it.

        Raises:
            OSError: the disk does not take it.
        """
        if self._thread:
            self._thread.join()
        self._write()
        self.raise_error()

    def _write(self) -> None:
        try:
            for descriptor in self._descriptors:
                os.fsync(descriptor)
        except OSError as error:
            self._error = error


class Recorder:
    """Writes one run: run.toml and schema.json first, then frames and events as they come, the sealed result.json last.

    As a context manager it closes the run whatever happens, and an error's text becomes its outcome.

    Attributes:
        path: of the run.
        holds: whether what comes waits for `flush`: one by one, records cost more to write than to receive.

    Args:
        directory: to create; an existing one is never written to.
        provenance: what run.toml will hold beside the date and time (`recorded`, UTC); `robot` (a library name or a
            path) and `board` (list of tables with node and joint, in joint order) are needed; `clock` and the boards'
            `registers`, too, to read the run.
        limit: largest fraction of samples that may be lost in a valid run.

    Raises:
        RunError: the directory exists, or the provenance cannot be written.
    """

    def __init__(self, directory: str | Path, provenance: Mapping[str, Any], limit: float = DEFAULT_LOSS_LIMIT) -> None:
        """Create the directory with everything that is known before the first frame."""
        boards = provenance.get("board")
        if not boards:
            raise RunError("a recording needs provenance['board']: a list with node and joint of each board")
        files = {SCHEMA: schema_text().encode(), FRAMES: b"", EVENTS: b""}
        began = {"recorded": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        self.path: Path = create_run_directory(directory, began | dict(provenance), files)
        self._joints = {board["node"]: board["joint"] for board in boards}
        self._tally = Tally(self._joints, limit)
        self._tick_period_us = _tick_period_us(provenance)
        self._clock_notes = {node: ClockNotes() for node in self._joints} if self._tick_period_us else {}
        self._events = (self.path / EVENTS).open("a", encoding="utf-8")
        self._frames = RecordWriter(self.path / FRAMES, self._events.fileno())
        self.holds = False
        self._held: list[tuple[Record, Chunk]] = []
        self._uncounted: list[tuple[Record, Chunk]] = []
        self._records = 0
        self._first_us: int | None = None
        self._last_us: int | None = None
        self._full = False
        self._closed = False

    @property
    def tally(self) -> Tally:
        """Count of what was written."""
        self._count_all()
        return self._tally

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Record what came from this node's port at this time of the clock, unaltered; see `holds`.

        Raises:
            RunError: the disk is full, or gone. Said once: stopping the motors must not meet it again.
        """
        kind = RecordKind.FRAME if isinstance(chunk.content, Frame) else RecordKind.NOISE
        self._held.append((Record(time_us, node, kind, chunk.encoded), chunk))
        if not self.holds:
            self.flush()

    def flush(self) -> None:
        """Write what was held back; it is counted when somebody asks, or there is much of it.

        Raises:
            RunError: the disk is full, or gone.
        """
        held, self._held = self._held, []
        if not held or self._full:
            return
        try:
            self._frames.write(*(record for record, _ in held))
        except OSError:
            for each in held:  # what still fits is kept, and only that is counted
                self._write(each[0])
                self._uncounted.append(each)
        else:
            self._records += len(held)
            self._note_times(held[0][0], held[-1][0])
            self._uncounted += held
        if len(self._uncounted) > _MOST_UNCOUNTED:
            self._count_all()

    def rest(self, time_us: int, node: int, data: bytes) -> None:
        """Record the bytes after the last delimiter, when listening ends; they are no loss.

        Raises:
            RunError: the disk is full, or gone.
        """
        self.flush()
        if data and not self._full:
            self._write(Record(time_us, node, RecordKind.REST, data))

    def event(self, time_us: int, event: str, **fields: Any) -> None:
        """Record something that happened: a command sent, a change of state, a fault.

        Raises:
            RunError: the disk is full, or gone.
        """
        if self._full:
            return
        try:
            self._events.write(json.dumps({"time_us": time_us, "event": event, **fields}, ensure_ascii=False) + "\n")
            self._events.flush()
        except OSError as error:
            raise self._stop(EVENTS, error) from error

    def close(self, outcome: str = "finished") -> Ledger:
        """Finish the run and return its ledger; closing twice changes nothing.

        Raises:
            RunError: the disk is full, or gone, and nobody was told yet.
        """
        if not self._closed:
            self._closed = True
            try:
                self.flush()
            finally:
                self._finish(outcome)
        return self.tally.ledger()

    def _finish(self, outcome: str) -> None:
        ledger, sha256 = self.tally.ledger(), self._frames.sha256.hexdigest()
        result = {
            "outcome": outcome,
            "records": self._records,
            "first_us": self._first_us,
            "last_us": self._last_us,
            "frames_sha256": sha256,
            "clocks": self._clocks(),
            "ledger": ledger.to_dict(),
        }
        trouble: OSError | None = None
        seal = partial(write_result, self.path, result, {FRAMES: sha256})  # of what came, whatever the disk made of it
        for finish in (self._frames.close, self._events.close, seal):
            try:
                finish()
            except OSError as error:
                trouble = trouble or error
        if trouble and not self._full:
            raise self._stop(RESULT, trouble) from trouble

    def _clocks(self) -> dict[str, dict[str, float]]:
        """Return what a reader must know of the clocks of the boards that answered a PING, by joint."""
        heard = {self._joints[node]: notes for node, notes in self._clock_notes.items() if notes.exchanges}
        return {joint: clock.to_dict() for joint, clock in clocks_of(heard, self._tick_period_us).items()}

    def _write(self, record: Record) -> None:
        try:
            self._frames.write(record)
        except OSError as error:
            raise self._stop(FRAMES, error) from error
        self._records += 1
        self._note_times(record, record)

    def _note_times(self, first: Record, last: Record) -> None:
        self._first_us = first.time_us if self._first_us is None else self._first_us
        self._last_us = last.time_us

    def _count_all(self) -> None:
        uncounted, self._uncounted = self._uncounted, []
        for record, chunk in uncounted:
            self._count(chunk, record)

    def _count(self, chunk: Chunk, record: Record) -> None:
        if not isinstance(chunk.content, Frame):
            self._tally.add_noise(record.node)
        elif self._tally.add(chunk.content) and self._clock_notes:
            self._clock_notes[chunk.content.node].add(chunk.content, record.time_us)

    def _stop(self, name: str, error: OSError) -> RunError:
        self._full = True
        if isinstance(error.__cause__, OSError):  # of a FileNotWritten
            error = error.__cause__
        return RunError(
            f"recording stopped: {self.path / name} cannot be written: {error.strerror} (errno {error.errno}); what "
            "was recorded until then is kept; free some space, or record to another place"
        )

    def __enter__(self) -> Recorder:
        """Return the recorder."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the run; it stays readable after an error."""
        self.close("finished" if error is None else f"stopped by {why_ended(error)}")


def _tick_period_us(provenance: Mapping[str, Any]) -> int:
    """Return the tick period of boards with clocks of their own; 0 where all count the same ticks, or none is said."""
    registers = provenance["board"][0].get("registers")
    if "clock" not in provenance or not registers or common_ticks(provenance):
        return 0
    return round(1e6 * Facts(registers).tick_period)


def new_run_path(root: str | Path, robot: str, kind: str) -> Path:
    """Path `<root>/<utc date-time>-<robot>-<kind>` that does not exist yet; a number is added where it does."""
    name = re.sub(r"[^\w.-]", "-", robot)  # of a chain it has a colon
    stem = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-{name}-{kind}"
    path, number = Path(root) / stem, 2
    while path.exists():
        path, number = Path(root) / f"{stem}-{number}", number + 1
    return path


def record(
    bench: Bench,
    excitation: Excitation | str | Path,
    directory: str | Path,
    repeats: int = 2,
    progress: ProgressCallback | None = None,
    **provenance: Any,
) -> Run:
    """Play an excitation on a configured bench and record it; motors are off before and afterwards.

    Args:
        bench: connected and configured.
        excitation: what to play: a plan, or its file.
        directory: of the run, to create.
        repeats: how often to play it in a row; two or more show how much of the torque repeats.
        progress: called some times a second.
        provenance: what else run.toml shall hold, such as the command and its seed.

    Stopped (by Ctrl-C, a signal, or who looks on) before the first sample, it leaves no directory.

    Returns:
        The run, as `open_run` gives it.

    Raises:
        BoardFault, BoardLost, BoardSilent, BoardRefused: the motion was stopped; what was recorded until then is in
            the directory.
        ExcitationError: the motion may not be played on this bench (`Bench.admit`); nothing has moved.
        RunError: the directory exists already.

    >>> with jb.open_bench("bench.toml") as bench:
    ...     jb.record(bench, jb.random_excitation(bench.robot, period=5.024), "runs/first")
    Traceback (most recent call last):
        ...
    jointbench.errors.FileError: bench 'arm' is open but not connected; call connect() first
    """
    from jointbench.excitation import as_excitation  # the optimiser behind it is slow to import

    excitation = as_excitation(excitation)
    bench.admit(excitation, repeats)
    bench.move_to(excitation.home)
    about = bench.provenance(excitation=excitation.to_dict(), repeats=repeats, **provenance)
    with SafeInterrupt() as interrupt:  # or a STOP may come before there is anybody to take the directory away again
        recorder = Recorder(directory, about)
        try:
            with recorder:
                interrupt.check()
                bench.play(excitation, repeats, recorder, progress)
        except (KeyboardInterrupt, SystemExit, StopAsked):
            if recorder.tally.ledger().samples_received == 0:
                shutil.rmtree(recorder.path)
            raise
    return open_run(directory)
