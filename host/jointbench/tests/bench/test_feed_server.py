"""The feed's server among clients as they may be: rubbish, crowds, one that never reads, and what the dead leave.

Pages that close, whenever they do: nobody need hear of it.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import socket
import tempfile
import threading
from asyncio import Future
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tornado.websocket import WebSocketClosedError

from jointbench.bench import feed, feed_server
from jointbench.bench.bench_file import BenchFile, read_bench_file
from jointbench.bench.feed import VERSION, FeedClient, open_feed, private_folder, release_watcher
from jointbench.bench.feed_server import LONGEST_LINE, MOST_CLIENTS, MOST_UNREAD, FeedServer
from jointbench.bench.monitor.server import Audience
from jointbench.errors import FeedError


class Counting:
    """A source whose states are numbered, of a bench of forty boards, and which does nothing it is asked for."""

    def __init__(self) -> None:
        self.states = 0
        self.asked_for: list[tuple[str, str]] = []

    def about(self) -> dict[str, Any]:
        return {"kind": "about", "version": VERSION, "program": "test", "pid": os.getpid()}

    def state(self) -> dict[str, Any]:
        self.states += 1
        return {"kind": "state", "number": self.states, "boards": "x" * 16384}

    def asked(self, what: str, who: str) -> dict[str, Any] | None:
        self.asked_for.append((what, who))
        return None

    def overdue_stop(self) -> dict[str, Any] | None:
        return {"kind": "error", "why": "nobody heard"}


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def source() -> Counting:
    return Counting()


@pytest.fixture
def server(source: Counting) -> Iterator[FeedServer]:
    server = FeedServer(source, stop_patience_s=0.01)
    yield server
    server.close("closed")
    assert not server.path.exists()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchFile:
    """A bench of boards that do not exist, in a place of its own for locks."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    boards = (f'[[board]]\nnode = {node}\njoint = "j{node}"\nurl = "/dev/none-{node}"\n' for node in range(1, 7))
    path = tmp_path / "bench.toml"
    path.write_text('version = 1\nname = "nowhere"\nrobot = "cobot6"\n' + "".join(boards))
    return read_bench_file(path)


def write_lock(tmp_path: Path, facts: dict[str, Any]) -> None:
    """What anybody may have written into the lock of the first board's port."""
    folder = tmp_path / "jointbench-ports"
    folder.mkdir(exist_ok=True)
    (folder / "dev-none-1.lock").write_text(json.dumps(facts))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """Another service of the same user, in its own private folder, that speaks first and no JSON."""
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o700)
    path = folder / "S.agent"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_greet_all, args=(listener,))
        thread.start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _greet_all(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.sendall(b"OK Pleased to meet you\n")


def raw_client(server: FeedServer) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(30.0)
    client.connect(str(server.path))
    return client


def test_nothing_is_asked_of_the_source_while_nobody_looks(server: FeedServer, source: Counting) -> None:
    assert (server.n_clients, source.states) == (0, 0)
    with FeedClient(server.path) as client:
        lines = client.lines()
        assert next(lines) == source.about()
        assert next(lines)["number"] == 1
        assert server.n_clients == 1
    while server.n_clients:
        pass
    assert source.states < 200


def test_clients_see_the_same_states_and_the_same_end(server: FeedServer) -> None:
    with FeedClient(server.path) as one, FeedClient(server.path) as two:
        both = [client.lines() for client in (one, two)]
        for lines in both:
            assert [next(lines)["kind"] for _ in range(3)] == ["about", "state", "state"]
        server.close("released")
        assert [[line["kind"] for line in lines][-2:] for lines in both] == [["released", "bye"]] * 2


def test_no_state_comes_between_the_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """States as fast as they go, so that one is always due."""
    monkeypatch.setattr(feed_server, "PERIOD_S", 0.0)
    for _ in range(20):
        server = FeedServer(Counting(), stop_patience_s=0.01)
        with FeedClient(server.path) as client, ThreadPoolExecutor() as pool:
            kinds = pool.submit(lambda lines: [line["kind"] for line in lines], client.lines())
            while server.n_clients == 0:
                pass
            server.close("released")
            assert kinds.result()[-2:] == ["released", "bye"]


def test_one_that_never_reads_keeps_nobody_waiting_and_no_memory(server: FeedServer) -> None:
    """It is sent no state more than fits the system's buffers, while another one has them all."""
    with raw_client(server) as deaf, FeedClient(server.path) as client:
        numbers = [line["number"] for line, _ in zip(client.lines(), range(60), strict=False) if "number" in line]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        for _ in range(2 * MOST_UNREAD // 100):  # answers wait for it, and are no better than memory that grows
            server.tell({"kind": "stopped", "padding": "x" * 100})
        while server.n_clients > 1:
            pass
        assert deaf.recv(1) == b"{"


@pytest.mark.parametrize("rubbish", [b"\x00\xff\n", b"[]\n", b"7\n", b'{"ask"}\n', b'"ask"\n', b"[" * 3000 + b"\n"])
def test_rubbish_is_answered_and_the_feed_goes_on(server: FeedServer, source: Counting, rubbish: bytes) -> None:
    with raw_client(server) as client, client.makefile("rb") as lines:
        client.sendall(rubbish)
        assert "no request" in next(line for line in map(json.loads, lines) if line["kind"] == "error")["why"]
        client.sendall(b'{"ask": "stop", "who": "a\\u001b[31mb"}\n')
        assert next(line for line in map(json.loads, lines) if line["kind"] == "error")["why"] == "nobody heard"
    assert source.asked_for == [("stop", "a[31mb")]


def test_a_line_without_end_is_hung_up_on(server: FeedServer) -> None:
    with raw_client(server) as client:
        client.sendall(b"x" * 4 * LONGEST_LINE)
        try:
            while client.recv(65536):
                pass
        except ConnectionResetError:
            pass


def test_more_than_enough_are_turned_away(server: FeedServer) -> None:
    clients = [FeedClient(server.path) for _ in range(MOST_CLIENTS)]
    try:
        with raw_client(server) as client, client.makefile("rb") as lines:
            assert json.loads(next(lines))["why"] == f"{MOST_CLIENTS} programs look on already"
            assert next(lines, None) is None
    finally:
        for client in clients:
            client.close()


def test_what_a_dead_program_left_is_removed_and_what_lives_is_not(server: FeedServer, runtime: Path) -> None:
    left = runtime / "jointbench" / "4711-1.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(left))
    other = FeedServer(Counting(), 1.0)
    assert not left.exists()
    assert server.path.exists()
    other.close("closed")
    other.close("closed")


def test_the_folder_is_its_owners_alone(runtime: Path) -> None:
    folder = private_folder()
    assert folder == runtime / "jointbench"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(FeedError, match="is another user's, or open to others"):
        private_folder()
    folder.rmdir()
    folder.symlink_to(runtime)
    with pytest.raises(FeedError, match="is another user's, or open to others"):
        FeedServer(Counting(), 1.0)


def test_a_feed_of_another_version_is_not_read(
    server: FeedServer, source: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "about", lambda: {"kind": "about", "version": VERSION + 1, "program": "newer"})
    with pytest.raises(FeedError, match="newer serves a feed of version 2, this program reads 1"):
        FeedClient(server.path)


def test_a_service_that_is_no_feed_is_said_to_be_none(agent: Path) -> None:
    with pytest.raises(FeedError, match="is no line of one: b'OK Pleased to meet you'"):
        FeedClient(agent)


def test_a_lock_leads_nowhere_but_to_feeds(bench: BenchFile, tmp_path: Path, agent: Path) -> None:
    """Anybody may write into a lock that nobody holds."""
    for path in (str(agent), "a\0b.sock", "\ud800.sock", str(tmp_path / "jointbench" / "none.sock"), 7, None, ["x"]):
        write_lock(tmp_path, {"feed": {"path": path}})
        assert open_feed(bench) is None, path
        assert not release_watcher(bench), path
    for pid in (1 << 80, -1, "1", None, 1.5):
        write_lock(tmp_path, {"watching": True, "pid": pid})
        assert not release_watcher(bench), pid


def test_a_watcher_that_does_not_give_way_is_not_waited_for_for_ever(
    server: FeedServer, source: Counting, bench: BenchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on saying states."""
    write_lock(tmp_path, {"feed": {"path": str(server.path)}})
    monkeypatch.setattr(feed, "_CONNECTING_S", 0.2)
    assert not release_watcher(bench)
    assert [what for what, _ in source.asked_for] == ["release"]


def test_a_feed_of_another_version_is_named_and_not_taken_for_none(
    server: FeedServer, source: Counting, bench: BenchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "about", lambda: {"kind": "about", "version": VERSION + 1, "program": "newer"})
    write_lock(tmp_path, {"feed": {"path": str(server.path)}})
    with pytest.raises(FeedError, match="newer serves a feed of version 2"):
        open_feed(bench)


def test_a_state_that_cannot_be_told_ends_no_feed(
    server: FeedServer, source: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(source, "state", lambda: {}["temperature"])
        with FeedClient(server.path) as client:
            (told,) = [line for _, line in zip(range(2), client.lines(), strict=False) if line["kind"] != "about"]
            assert told == {"kind": "error", "why": "the state cannot be told: KeyError: 'temperature'"}
    with FeedClient(server.path) as client:
        assert [line["kind"] for _, line in zip(range(3), client.lines(), strict=False)] == ["about", "state", "state"]


def test_what_fits_no_socket_address_is_no_feed(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each length of the path either it can be connected to, or it is an error that says so."""
    monkeypatch.setattr(feed_server, "_numbers", count(1000))  # all names of one length
    served: list[bool] = []
    refusals: list[str] = []
    for length in range(75, 100):
        folder = runtime / ("x" * max(length - len(str(runtime)) - 1, 1))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        try:
            server = FeedServer(Counting(), 1.0)
        except FeedError as error:
            refusals.append(str(error))
            served.append(False)
            continue
        FeedClient(server.path).close()
        server.close("closed")
        served.append(True)
    assert served == sorted(served, reverse=True)
    assert set(served) == {True, False}
    assert all("to a shorter path" in refusal for refusal in refusals)


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("asyncio.new_event_loop", OSError(errno.EMFILE, "Too many open files")),
        ("threading.Thread.start", RuntimeError("can't start new thread")),
    ],
)
def test_a_machine_without_files_or_threads_is_an_error_that_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, what: str, error: Exception
) -> None:
    """No socket that others would find; a recording goes on without a feed then."""

    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(what, refuse)
    with pytest.raises(FeedError, match=f"^the feed cannot be served: .*{error.args[-1]}"):
        FeedServer(Counting(), 1.0)
    assert list(private_folder().iterdir()) == []


def test_clients_that_come_while_it_closes_are_hung_up_on(caplog: pytest.LogCaptureFixture) -> None:
    """None is left half welcomed: asyncio would log a task, and Python warn of a socket, that nobody ended."""
    for _ in range(5):
        server = FeedServer(Counting(), 1.0)
        clients = [raw_client(server) for _ in range(MOST_CLIENTS)]
        server.close("closed")
        for client in clients:
            client.close()
    gc.collect()
    assert caplog.records == []


class ClosingPage:
    """It closes while text is on its way to it."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def write_message(self, message: str) -> Future[None]:
        async def send() -> None:
            await asyncio.sleep(0)
            raise self.error

        return asyncio.ensure_future(send())


@pytest.mark.parametrize(("error", "told"), [(WebSocketClosedError(), 0), (OSError("no memory"), 1)])
def test_only_what_is_not_a_closed_page_is_told(error: Exception, told: int) -> None:
    heard: list[dict[str, Any]] = []

    async def tell() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        audience = Audience(lambda _: True)
        page = ClosingPage(error)
        audience.join(page)
        audience.tell({"kind": "state"})
        for _ in range(4):
            await asyncio.sleep(0)
        audience.leave(page)
        gc.collect()

    asyncio.run(tell())
    assert len(heard) == told
