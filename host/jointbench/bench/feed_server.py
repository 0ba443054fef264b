"""The thread that serves a feed: lines of JSON on a unix socket that only its owner can reach."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jointbench.bench.feed import VERSION, BenchView, private_folder
from jointbench.bench.port_lock import program_name, this_program
from jointbench.bench.tally import Counts
from jointbench.errors import FeedError, StopAsked

if TYPE_CHECKING:
    from jointbench.bench.bench import Bench


PERIOD_S = 0.04
MOST_CLIENTS = 16
GOODBYE_S = 0.5
LONGEST_LINE = 4096  # of a client
MOST_UNREAD = 65536  # bytes: a client that lets more wait is hung up on
_numbers = count(1)
_NOTHING_MOVES = "{holder} holds the bench and moves nothing{motors}. The next motion that it begins is refused"
_OFF = ": as its boards last said, their motors are off"
_MAY_DRIVE = ", but {joints} did not confirm that the motor is off: switch the power off"
_STOPPED = "stopped by {who}; motors are off"
_REFUSED = (
    "stopped by {who} before this motion began: motors stay off. Begin it again if it may go on; Bench.connect() takes "
    "note of such a stop beforehand"
)
_NOTED = "{holder} has taken note of the stop that was asked for while nothing moved: it may move the bench again"
_HANGS = "{holder} has not looked for {patience:g} s. Boards that hear nothing of it switch their motors off themselves"
_MOVES = "{holder} moves the bench; end that first, or ask it to stop"
STOP_PATIENCE_S = 2.0


class Source(Protocol):
    """The bench behind a feed; its methods are called in the server's thread."""

    def about(self) -> dict[str, Any]:
        """The first line."""
        ...

    def state(self) -> dict[str, Any]:
        """The line of this moment."""
        ...

    def asked(self, what: str, who: str) -> dict[str, Any] | None:
        """Take what a client asks; returns the answer, None where that comes later."""
        ...

    def overdue_stop(self) -> dict[str, Any] | None:
        """The answer to a stop that nobody has carried out in time; None where somebody has."""
        ...


class FeedServer:
    """Serves a source's lines until it is closed.

    A client that reads too slowly misses states, and none of the answers; no client can make another one wait.

    Attributes:
        path: of the socket.
        n_clients: how many are connected.
    """

    def __init__(self, source: Source, stop_patience_s: float) -> None:
        """Begin to serve.

        Raises:
            FeedError: it cannot be served; says why, and leaves nothing behind.
        """
        self.n_clients: int = 0
        self._source, self._stop_patience_s = source, stop_patience_s
        self._saying = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            with contextlib.ExitStack() as undo:
                self._listener, path = _listen()
                self.path: Path = path
                undo.callback(self._listener.close)
                undo.callback(_remove, self.path)
                self._loop = asyncio.new_event_loop()
                undo.callback(self._loop.close)
                self._closing = asyncio.Event()
                self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
                self._thread.start()
                undo.pop_all()
        except FeedError:
            raise
        except (OSError, RuntimeError) as error:  # no more files or threads, a folder that cannot be written
            raise FeedError(f"the feed cannot be served: {error}") from error

    def tell(self, line: dict[str, Any]) -> None:
        """Send a line to every client; any thread may."""
        with contextlib.suppress(RuntimeError):  # the thread has ended
            self._loop.call_soon_threadsafe(self._tell_all, line)

    def close(self, why: str) -> None:
        """Send the last line with its reason, hang up and end the thread; closing twice is harmless."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._say_goodbye, why)
        self._thread.join()

    def _say_goodbye(self, why: str) -> None:
        """Send the last line and hang up in one go: no state comes between the last lines, or after them."""
        if why == "released":
            self._tell_all({"kind": "released"})
        self._tell_all({"kind": "bye", "why": why})
        self._closing.set()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._welcome, sock=self._listener, limit=LONGEST_LINE)
        try:
            await self._closing.wait()
        finally:
            self._loop.remove_reader(self._listener)  # asyncio loses those whom it accepts while the server closes
            _remove(self.path)
            writers = tuple(self._writers)
            while others := asyncio.all_tasks() - {asyncio.current_task()}:  # the loop's too, that accept
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*others, return_exceptions=True)
            server.close()
            goodbyes = [self._loop.create_task(writer.wait_closed()) for writer in writers]
            with contextlib.suppress(TimeoutError):  # one does not read any more
                await asyncio.wait_for(asyncio.gather(*goodbyes, return_exceptions=True), GOODBYE_S)
            for writer, goodbye in zip(writers, goodbyes, strict=True):
                if goodbye.cancelled():  # asyncio fails to abort a transport that has closed with its last byte
                    writer.transport.abort()
            await asyncio.sleep(0.0)  # in which the sockets of those are closed

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing.is_set():
            writer.transport.abort()
            return
        if len(self._writers) >= MOST_CLIENTS:
            self._tell(writer, {"kind": "bye", "why": f"{MOST_CLIENTS} programs look on already"})
            writer.close()
            return
        self._tell(writer, self._source.about())
        self._writers.add(writer)
        self.n_clients = len(self._writers)
        if not self._saying:
            self._saying = True
            self._start(self._say_states())
        self._start(self._hear(reader, writer))

    async def _say_states(self) -> None:
        """Send the state to every client that has read the last one, as long as there is any."""
        due = self._loop.time()
        try:
            while self._writers and not self._closing.is_set():
                line = _encoded(self._source.state())
                for writer in self._writers:
                    if not writer.transport.get_write_buffer_size():
                        writer.write(line)
                due = max(due + PERIOD_S, self._loop.time())
                await asyncio.sleep(due - self._loop.time())
        except Exception as error:  # whatever it is: they must not take the last state for the present one
            self._tell_all({"kind": "error", "why": f"the state cannot be told: {type(error).__name__}: {error}"})
        finally:
            self._saying = False

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take what a client asks until it hangs up."""
        try:
            while line := await reader.readline():
                if answer := self._take(line):
                    self._tell(writer, answer)
        except (ValueError, OSError):  # a line without end, or a client that is gone
            pass
        finally:
            self._writers.discard(writer)
            self.n_clients = len(self._writers)
            writer.close()

    def _take(self, line: bytes) -> dict[str, Any] | None:
        try:
            request = json.loads(line)
            what, who = request["ask"], request.get("who", "another program")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {"kind": "error", "why": 'this is no request; one is a line {"ask": "stop", "who": "…"}'}
        if what == "stop":
            self._start(self._await_stop())
        return self._source.asked(_printable(what), _printable(who))

    async def _await_stop(self) -> None:
        await asyncio.sleep(self._stop_patience_s)
        if answer := self._source.overdue_stop():
            self._tell_all(answer)

    def _tell_all(self, line: dict[str, Any]) -> None:
        for writer in tuple(self._writers):
            self._tell(writer, line)

    def _tell(self, writer: asyncio.StreamWriter, line: dict[str, Any]) -> None:
        if writer.transport.get_write_buffer_size() > MOST_UNREAD:
            writer.transport.abort()
            return
        writer.write(_encoded(line))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _printable(text: Any) -> str:
    """A client's name or request, fit to be shown."""
    return "".join(character for character in str(text)[:80] if character.isprintable())


def _listen() -> tuple[socket.socket, Path]:
    """A socket that listens, in the private folder; those of programs that are gone are removed from it.

    Raises:
        FeedError: it cannot be made.
    """
    folder = private_folder()
    for path in folder.glob("*.sock"):
        with contextlib.suppress(OSError):
            if not _is_served(path):
                path.unlink()
    path = folder / f"{os.getpid()}-{next(_numbers)}.sock"
    # What does not listen yet would be taken for a dead program's. Its name is the longer one: if it fits, both do.
    unready = path.with_suffix(".unready")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        unready.unlink(missing_ok=True)
        listener.bind(str(unready))
        listener.listen(MOST_CLIENTS)
        unready.replace(path)
    except OSError as error:
        listener.close()
        _remove(unready)
        raise FeedError(f"no socket can be made at {path}: {error}; set XDG_RUNTIME_DIR to a shorter path") from error
    return listener, path


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # its queue is full
            return True
        except OSError:
            return False
    return True


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Activity:
    """Activity of the bench.

    Attributes:
        doing: "moving" is a motion that nobody records.
        run: directory of the run that is recorded.
        start_us: when the motion begins, by the clock; None while it is prepared.
        duration_us: of the motion.
    """

    doing: Literal["idle", "moving", "playing"] = "idle"
    run: str | None = None
    start_us: int | None = None
    duration_us: int = 0


@dataclass(frozen=True)
class _Stop:
    """One that was asked for: by whom, and whether a motion was there to be stopped."""

    who: str
    of_motion: bool


class Feed:
    """The live feed of a bench: what its owner shows to clients, and their requests to it.

    A thread of its own serves them. It reads what boards and this object hold, each a value that is replaced as a whole
    and never changed, so that the owner waits for nobody; of a bench that nobody looks at it does nothing at all.

    Attributes:
        server: the thread's side.
        activity: what the bench is doing.
        counts: samples and losses of each node, while somebody counts them.
        release_asked: whether somebody wants the ports of a bench that is only watched.
    """

    def __init__(self, bench: Bench, watching: bool = False) -> None:
        """Serve a feed of a connected bench.

        Args:
            bench: whose feed it is.
            watching: whether its ports are given back when somebody asks for them.

        Raises:
            FeedError: it cannot be served, or nobody be told of it; says why.
        """
        self.activity: Activity = Activity()
        self.counts: Mapping[int, Counts] = {}
        self.release_asked: bool = False
        self._watching = watching
        self._stop: _Stop | None = None
        self._bench = bench
        self._view = BenchView(bench)
        self._about = {
            "kind": "about",
            "version": VERSION,
            "bench": bench.name,
            "robot": bench.robot.name,
            "program": program_name(),
            "pid": os.getpid(),
            "since": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "boards": self._view.boards(),
        }
        self.server: FeedServer = FeedServer(self, STOP_PATIENCE_S)
        try:
            for line in bench.lines:
                line.port.announce(feed={"path": str(self.server.path), "version": VERSION})
        except OSError as error:
            self.server.close("closed")
            raise FeedError(f"the lock of a port cannot say where the feed is: {error}") from error

    def on_event(self, event: str, **fields: Any) -> None:
        """Show an event of the bench (`Subscriber` says which there are), or carry out what it makes due."""
        match event:
            case "connecting" if self.stop_asked:  # it shall not refuse the next motion
                self._stop = None
                self.server.tell({"kind": "error", "why": _NOTED.format(holder=this_program())})
            case "motion":
                self.activity = Activity("playing" if fields["run"] else "moving", fields["run"])
            case "scheduled":
                self.activity = replace(self.activity, **fields)
            case "received" if self.is_read:
                self.counts = fields["tally"].counts()
            case "rest":
                if self.stop_asked:  # no motor is on any more, or one whose board has not confirmed an earlier stop
                    self._bench.stop()
                self.activity, self.counts = Activity(), {}
            case "stopped":
                self._stop = None
                unconfirmed = fields["unconfirmed"]
                self.server.tell({"kind": "stopped", "ok": not unconfirmed, "unconfirmed": unconfirmed})
            case "closed":  # the ports are closed already
                self.server.close("released" if self.release_asked else "closed")
            case _:
                pass

    @property
    def is_read(self) -> bool:
        """True if a client is connected."""
        return self.server.n_clients > 0

    @property
    def stop_asked(self) -> bool:
        """True if a stop was asked for that nobody has carried out."""
        return self._stop is not None

    def check_stop(self) -> None:
        """Let a stop that was asked for take effect now.

        Raises:
            StopAsked: it was; says by whom.
        """
        if (stop := self._stop) is not None:
            raise StopAsked((_STOPPED if stop.of_motion else _REFUSED).format(who=stop.who))

    def about(self) -> dict[str, Any]:
        """The first line."""
        return self._about

    def state(self) -> dict[str, Any]:
        """The line of this moment."""
        return self._view.state(self.activity, self.counts)

    def asked(self, what: str, who: str) -> dict[str, Any] | None:
        """Take what a client asks; returns the answer, None where that comes later."""
        if what == "stop":
            self._stop = _Stop(who, self.activity.doing != "idle")
            return None
        if what != "release":
            return {"kind": "error", "why": f"asked for {what!r}; a feed can be asked to stop or to release"}
        if not self._watching:
            return {"kind": "busy", "why": _MOVES.format(holder=this_program())}
        self.release_asked = True
        return None

    def overdue_stop(self) -> dict[str, Any] | None:
        """The answer to a stop that nobody has carried out in `STOP_PATIENCE_S`; None where somebody has."""
        if not self.stop_asked:
            return None
        holder = this_program()
        if self.activity.doing == "idle" and not self._watching:
            driving = ", ".join(board.joint for board in self._bench.all_boards if board.is_driving)
            motors = _MAY_DRIVE.format(joints=driving) if driving else _OFF
            return {"kind": "error", "why": _NOTHING_MOVES.format(holder=holder, motors=motors)}
        return {"kind": "error", "why": _HANGS.format(holder=holder, patience=STOP_PATIENCE_S)}


def serve_feed(bench: Bench) -> None:
    """Serve the feed of a connected bench, where it has none yet; one that cannot be served is no reason to fail."""
    if bench.subscribers:
        return
    try:
        bench.subscribers.append(Feed(bench))
    except FeedError as error:
        _log.warning("bench %r has no live feed: %s", bench.name, error)
