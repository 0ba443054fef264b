"""The lock of a port, between processes: who has it is told, and who is gone has it no more."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial

from jointbench.bench.bench_file import BoardEntry
from jointbench.bench.line import Port
from jointbench.bench.port_lock import PortLock, lock_facts, lock_port
from jointbench.errors import BoardLost, PortInUse

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
