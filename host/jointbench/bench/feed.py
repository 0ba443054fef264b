"""The private folder for what programs of one user tell each other: only their owner may look into it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from jointbench.bench.bench_file import BenchFile, read_bench_file
from jointbench.bench.fault import is_fault_url, parse_fault_url
from jointbench.bench.port_lock import lock_facts, this_program
from jointbench.errors import FeedError

VERSION = 1
PATIENCE_S = 5.0  # a feed comes 25 times a second
_CONNECTING_S = 30.0  # a watcher greets its boards before it serves their feed: twelve on a busy computer take a while
_LOOK_S = 0.05


def private_folder() -> Path:
    """The folder, made if need be: `jointbench` in $XDG_RUNTIME_DIR, else `jointbench-UID` among temporary files.

    Raises:
        FeedError: it cannot be made, or what is there is another user's or open to others.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own_name, shared_name = _names()
    folder = Path(runtime) / own_name if runtime else Path(tempfile.gettempdir()) / shared_name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FeedError(f"the folder {folder} cannot be made: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not is_private(folder):
        raise FeedError(
            f"{folder} is another user's, or open to others; remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    return folder


def is_feed_socket(path: Path) -> bool:
    """Return whether a program of this user may serve a feed at a path, by its name and its folder."""
    return path.suffix == ".sock" and path.parent.name in _names() and is_private(path.parent)


def is_private(folder: Path) -> bool:
    """Return whether it is a folder of this user's own, no link, that nobody else may enter."""
    try:
        about = folder.lstat()
    except (OSError, ValueError):  # a name that no file can have
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _names() -> tuple[str, str]:
    """Names of the folder: in one that is the user's own, and among those of all users."""
    return "jointbench", f"jointbench-{os.geteuid()}"


class FeedClient:
    """A connection to the feed of a bench; any thread may use it.

    Attributes:
        about: its first line.
    """

    def __init__(self, path: Path) -> None:
        """Connect, and read the first line.

        Raises:
            OSError: nobody serves a feed there.
            FeedError: it is no feed, one of another version, or has no room.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE_S)
        self._pending = b""
        try:
            self._socket.connect(str(path))
            self.about: dict[str, Any] = self._line()
            self._check_about()
        except BaseException:
            self._socket.close()
            raise

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every line as it comes, `about` first; ends when the feed does, after a "bye" if that can be said."""
        line = self.about
        while line:
            yield line
            try:
                line = self._line() if line["kind"] != "bye" else {}
            except TimeoutError:
                line = {"kind": "bye", "why": f"{self._holder} has said nothing for {PATIENCE_S:g} s: it hangs"}
            except FeedError as error:
                line = {"kind": "bye", "why": str(error)}
            except OSError:
                return

    def ask(self, what: str) -> None:
        """Ask the holder for "stop" or "release"; its answer is one of the lines.

        Raises:
            FeedError: the holder is gone.
        """
        try:
            self._socket.sendall(json.dumps({"ask": what, "who": this_program()}).encode() + b"\n")
        except OSError as error:
            raise FeedError(f"{self._holder} cannot be asked to {what}: it is gone") from error

    def close(self) -> None:
        """Hang up; `lines` ends in whatever thread it runs."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    @property
    def _holder(self) -> str:
        return f"{self.about.get('program')} (process {self.about.get('pid')})"

    def _check_about(self) -> None:
        """See that the first line is one that this program knows how to go on from."""
        if not self.about:
            raise ConnectionError("it hung up")
        if self.about["kind"] == "bye":
            raise FeedError(f"the feed of this bench cannot be read: {self.about.get('why')}")
        if self.about.get("version") != VERSION:
            raise FeedError(
                f"{self.about.get('program')} serves a feed of version {self.about.get('version')}, this program reads "
                f"{VERSION}; use the same release of jointbench for both"
            )

    def _line(self) -> dict[str, Any]:
        """The next line, empty at the end.

        Raises:
            FeedError: it is no line of a feed.
        """
        while b"\n" not in self._pending:
            data = self._socket.recv(65536)
            if not data:
                return {}
            self._pending += data
        text, _, self._pending = self._pending.partition(b"\n")
        with contextlib.suppress(ValueError, RecursionError):
            line: Any = json.loads(text)
            if isinstance(line, dict) and "kind" in line:
                return cast(dict[str, Any], line)
        raise FeedError(f"what serves a feed says what is no line of one: {text[:40]!r}")

    def __enter__(self) -> FeedClient:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self.close()


def open_feed(bench_file: str | Path | BenchFile) -> FeedClient | None:
    """The feed of the program that holds this bench; None where no program of this user does.

    Args:
        bench_file: the bench, or the path of its file.

    Raises:
        FileError: the file is wrong.
        FeedError: it cannot be read, such as one of another version.
    """
    file = bench_file if isinstance(bench_file, BenchFile) else read_bench_file(bench_file)
    for facts in _locks(file):
        feed: Any = facts.get("feed")
        path = Path(str(feed["path"])) if isinstance(feed, dict) and "path" in feed else None
        if path is None or not is_feed_socket(path):  # anybody may write into a lock that nobody holds
            continue
        try:
            return FeedClient(path)
        except FeedError:
            raise
        except OSError:  # what a program that is gone has left
            continue
    return None


def release_watcher(file: BenchFile) -> bool:
    """Have a program that only watches this bench give its ports back, and wait until it has.

    Returns:
        Whether there was one, and it has.
    """
    deadline = time.monotonic() + _CONNECTING_S
    try:
        while (client := open_feed(file)) is None:
            if not any(_will_watch(facts) for facts in _locks(file)) or time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        with client:
            client.ask("release")
            for line in client.lines():
                if line["kind"] in ("released", "busy", "bye") or time.monotonic() > deadline:
                    return line["kind"] == "released"
    except FeedError:
        pass
    return False


def _locks(file: BenchFile) -> list[dict[str, Any]]:
    """Facts in the locks of the bench's ports, whoever has them or had them."""
    urls = dict.fromkeys(board.url for board in file.boards)
    return [lock_facts(parse_fault_url(url)[1] if is_fault_url(url) else url) for url in urls]


def _will_watch(facts: dict[str, Any]) -> bool:
    """Return whether these are the facts of a watcher that is there and serves no feed yet."""
    pid = facts.get("pid")
    if "feed" in facts or not facts.get("watching") or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True
