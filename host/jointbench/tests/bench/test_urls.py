"""Ports that are elsewhere: socket:// and rfc2217:// against real servers in front of real pseudo-terminals.

The lock of a port, between processes: who has it is told, and who is gone has it no more.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import serial
import serial.rfc2217

from jointbench.bench.bench_file import BoardEntry, read_bench_file
from jointbench.bench.board import Board
from jointbench.bench.clock import WallClock
from jointbench.bench.line import Port
from jointbench.bench.port_lock import PortLock, lock_facts, lock_port
from jointbench.errors import BoardLost, FileError, PortInUse

ALL_BYTES = bytes(range(256))
# pyserial 3.5 sets up its rfc2217 thread by methods that Python calls outdated.
pytestmark = pytest.mark.filterwarnings("ignore:set(Daemon|Name):DeprecationWarning")


class Terminal(serial.Serial):
    """A pseudo-terminal, which has none of the modem lines that an rfc2217 server reads and sets."""

    cts = dsr = ri = cd = property(lambda self: True)  # pyright: ignore[reportIncompatibleMethodOverride]

    def _update_rts_state(self) -> None:
        pass

    def _update_dtr_state(self) -> None:
        pass


class Server:
    """A server for one client in front of a terminal, in threads of its own.

    Attributes:
        address: host and port.
        far: descriptor of the terminal's other end, where a board would be.
    """

    def __init__(self, rfc2217: bool) -> None:
        self.far, near = os.openpty()
        tty.setraw(near)
        self._serial: Any = Terminal(os.ttyname(near), 921600, timeout=0.05)
        os.close(near)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._rfc2217 = rfc2217
        self._client: Any = None
        self._connected = threading.Event()
        self._closing = False
        self._threads = [threading.Thread(target=self._to_board)]
        self._threads[0].start()

    def hang_up(self) -> None:
        """End the client's connection."""
        assert self._connected.wait(10.0)
        self._client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self.hang_up()
        for thread in self._threads:
            thread.join(10.0)
        for each in (self._listener, self._client, self._serial):
            each.close()
        os.close(self.far)

    def _to_board(self) -> None:
        self._client = client = self._listener.accept()[0]
        server: Any = self
        manager = serial.rfc2217.PortManager(self._serial, server) if self._rfc2217 else None
        self._threads.append(threading.Thread(target=self._to_client, args=(client, manager)))
        self._threads[1].start()
        self._connected.set()
        with contextlib.suppress(OSError):
            while data := client.recv(4096):
                self._serial.write(b"".join(manager.filter(data)) if manager else data)
        self._closing = True

    def _to_client(self, client: socket.socket, manager) -> None:
        with contextlib.suppress(OSError):
            while not self._closing:
                if data := self._serial.read(max(1, self._serial.in_waiting)):
                    client.sendall(b"".join(manager.escape(data)) if manager else data)

    def write(self, data: bytes) -> None:
        """What the manager says to the client."""
        self._client.sendall(data)


@pytest.fixture(params=["socket", "rfc2217"])
def server(request) -> Generator[tuple[str, Server]]:
    server = Server(request.param == "rfc2217")
    yield f"{request.param}://{server.address}", server
    server.close()


def test_all_bytes_cross_both_ways(server: tuple[str, Server]) -> None:
    url, board = server
    port = Port([BoardEntry(1, "j1", url, 921600)])
    clock, came = WallClock([port]), bytearray()
    port.sink = lambda data, time_us: came.extend(data)
    os.write(board.far, 3 * ALL_BYTES)
    deadline = clock.now_us() + 20_000_000
    while len(came) < 3 * 256 and clock.now_us() < deadline:
        clock.wait(100_000)
    assert came == 3 * ALL_BYTES
    port.write(ALL_BYTES[::-1])
    arrived = b""
    while len(arrived) < 256:
        arrived += os.read(board.far, 1000)
    assert arrived == ALL_BYTES[::-1]
    assert (port.written, port.received) == (256, 768)
    assert (port.descriptor is None) == url.startswith("rfc2217")
    port.close()


def test_a_request_is_not_held_back_for_more_to_send() -> None:
    """Without TCP_NODELAY the second of two small requests waits for the first one's acknowledgement."""
    server = Server(rfc2217=False)
    port = Port([BoardEntry(1, "j1", f"socket://{server.address}", 921600)])
    assert port.descriptor is not None
    with socket.socket(fileno=os.dup(port.descriptor)) as connection:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    port.close()
    server.close()


def test_a_lost_connection_is_a_lost_board(server: tuple[str, Server]) -> None:
    url, other_end = server
    port = Port([BoardEntry(4, "j4", url, 921600)])
    clock = WallClock([port])
    board = Board(port, clock)
    other_end.hang_up()
    with pytest.raises(BoardLost, match=rf"^j4 \(node 4\): port {url} (is gone|takes no bytes): "):
        board.hello()
    before = clock.now_us()
    clock.wait(20_000)
    assert clock.now_us() - before >= 19_000
    port.close()


@pytest.mark.parametrize("kind", ["socket", "rfc2217"])
def test_nobody_listens(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(BoardLost, match=rf"^j1 \(node 1\): port {kind}://{address} cannot be opened: .*refused"):
        Port([BoardEntry(1, "j1", f"{kind}://{address}", 921600)])


def test_an_unknown_kind_of_port() -> None:
    with pytest.raises(BoardLost, match=r"carrier-pigeon://x cannot be opened: 'carrier-pigeon' is no kind of port"):
        Port([BoardEntry(1, "j1", "carrier-pigeon://x", 921600)])


@pytest.mark.parametrize("prefix", ["", "fault://;", "serial:"])
def test_a_kind_of_port_that_writes_files_is_not_opened(tmp_path: Path, prefix: str) -> None:
    """pyserial's spy:// writes what goes over the line into the file that it names."""
    victim = tmp_path / "victim.txt"
    victim.write_text("of a week's work")
    url = f"{prefix}spy:///dev/ptmx?file={victim}"
    text = f'version = 1\nname = "lab"\nrobot = "cobot6:1"\n[[board]]\nnode = 1\njoint = "j1"\nurl = "{url}"\n'
    (tmp_path / "bench.toml").write_text(text)
    with pytest.raises(FileError, match=r"'spy' is no kind of port that is opened here; name a device, or one of"):
        read_bench_file(tmp_path / "bench.toml")
    with pytest.raises(BoardLost, match="'spy' is no kind of port"):
        Port([BoardEntry(1, "j1", url, 921600)])
    assert victim.read_text() == "of a week's work"


def test_faults_work_on_any_port(server: tuple[str, Server]) -> None:
    url, board = server
    port = Port([BoardEntry(1, "j1", f"fault://rx.drop=every:2;{url}", 921600)])
    clock, came = WallClock([port]), bytearray()
    port.sink = lambda data, time_us: came.extend(data)
    os.write(board.far, ALL_BYTES)
    while port.received < 256:
        clock.wait(100_000)
    assert came == ALL_BYTES[::2]
    assert port.faults == {"rx.drop": 128}
    port.close()


HOLD = """
import sys
from jointbench.bench.bench_file import BoardEntry
from jointbench.bench.line import Port
port = Port([BoardEntry(1, "j1", sys.argv[1], 921600)])
print("open", flush=True)
sys.stdin.read()
port.close()
"""


@pytest.fixture
def device() -> Iterator[str]:
    """A port of this machine."""
    far, near = os.openpty()
    yield os.ttyname(near)
    os.close(near)
    os.close(far)


@pytest.fixture
def holder(device: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the port open, until its standard input ends."""
    command = [sys.executable, "-c", HOLD, device]
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **paths}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def entry(device: str) -> BoardEntry:
    return BoardEntry(3, "j3", device, 921600)


def test_another_process_is_told_who_has_the_port(device: str, holder: subprocess.Popen[str]) -> None:
    since = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    told = rf"^j3 \(node 3\): port {device} is in use: \S+ has it {since} \(process {holder.pid}, -c\); end that first"
    with pytest.raises(BoardLost, match=told):
        Port([entry(device)])

    holder.communicate()

    lock = lock_port(device)
    assert lock
    assert json.loads(lock.path.read_text())["pid"] == os.getpid()
    lock.close()
    assert not lock.path.exists()
    lock.close()


def test_what_a_dead_process_left_is_taken_over(device: str, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    port = Port([entry(device)])
    with pytest.raises(PortInUse, match=rf"\(process {os.getpid()}, "):
        lock_port(device)
    port.close()


def test_all_links_to_a_device_have_one_lock(device: str, tmp_path: Path) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(device)
    lock = PortLock(str(link), tmp_path / "locks")
    with pytest.raises(PortInUse):
        PortLock(device, tmp_path / "locks")
    assert lock.path.parent.stat().st_mode & 0o1777 == 0o1777
    assert lock.path.stat().st_mode & 0o777 == 0o666  # of any umask: whoever is next writes into it
    lock.close()


def test_a_lock_that_says_nothing_yet_is_a_lock(device: str, tmp_path: Path) -> None:
    lock = PortLock(device, tmp_path)
    lock.path.write_text("")
    with pytest.raises(PortInUse, match="somebody has taken it just now"):
        PortLock(device, tmp_path)
    lock.close()


def test_a_lock_that_was_another_users_is_not_followed_elsewhere(device: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / f"{device.strip('/').replace('/', '-')}.lock"
    path.symlink_to(victim)
    with pytest.raises(OSError, match=r"symbolic links|\.lock"):
        PortLock(device, tmp_path)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("place", [os.mkfifo, lambda path: os.link(path.parent / "victim", path)])
def test_only_a_file_of_its_own_is_a_lock(place: Callable[[Path], None], device: str, tmp_path: Path) -> None:
    """Anybody can put something else in its place."""
    (tmp_path / "victim").write_text("precious")
    place(tmp_path / f"{device.strip('/').replace('/', '-')}.lock")
    with pytest.raises(PortInUse, match="is no file of a lock; remove it"):
        PortLock(device, tmp_path)
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("place", [os.mkfifo, lambda path: path.symlink_to("victim")])
def test_words_are_read_from_a_lock_alone(place: Callable[[Path], None], device: str, tmp_path: Path) -> None:
    """A pipe would have the reader wait for ever, so it reads in a thread that the test can give up."""
    path = tmp_path / f"{device.strip('/').replace('/', '-')}.lock"
    (tmp_path / "victim").write_text('{"pid": 1}')
    place(path)
    read: list[dict[str, object]] = []
    reader = threading.Thread(target=lambda: read.append(lock_facts(device, tmp_path)), daemon=True)
    reader.start()
    reader.join(30.0)
    assert read == [{}]


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b"[" * 4000, b"{" + b" " * 9000 + b"}"])
def test_a_lock_with_rubbish_tells_nothing(text: bytes, device: str, tmp_path: Path) -> None:
    lock = PortLock(device, tmp_path)
    lock.tell(feed={"path": "somewhere"})
    assert lock_facts(device, tmp_path)["feed"] == {"path": "somewhere"}
    lock.path.write_bytes(text)
    assert lock_facts(device, tmp_path) == {}
    lock.close()


def test_only_devices_are_locked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert [lock_port(url) for url in ("loop://", "socket://localhost:1", str(file), "/dev/nowhere")] == [None] * 4


def test_a_port_that_cannot_be_opened_is_not_kept(device: str) -> None:
    """Programs that do not know our locks lock the device itself."""
    stranger = serial.Serial(device, exclusive=True)
    with pytest.raises(BoardLost, match="another program already uses it; close that first"):
        Port([entry(device)])
    stranger.close()
    Port([entry(device)]).close()
