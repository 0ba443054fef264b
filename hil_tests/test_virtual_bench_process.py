"""Starting and ending a bench: its files and processes, real time, and the interpreter it needs."""

import contextlib
import functools
import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import serial

from hil_tests.small_bench import board_file, is_running, write_bench_file
from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.bench import BEHIND, Stop
from hil_tests.virtual_bench.emulated_board import CHECKOUT, ENVIRONMENT_NAME
from hil_tests.virtual_bench.serial_link import Port

BenchWriter = Callable[..., Path]


@pytest.fixture
def write_bench(tmp_path: Path) -> BenchWriter:
    return functools.partial(write_bench_file, tmp_path)


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait on the wall clock for other processes to act."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


# Starting and ending


def test_a_plain_serial_program_sees_the_board_in_real_time(write_bench: BenchWriter, tmp_path: Path) -> None:
    with virtual_bench(write_bench("echo.py"), realtime=True, out=tmp_path / "sim") as live:
        bench = tomllib.loads(live.read_text(encoding="utf-8"))
        assert bench["clock"] == "wall"
        assert "control" not in bench
        with serial.Serial(bench["board"][0]["url"], bench["board"][0]["baud"], timeout=10) as port:
            port.write(b"who is there?")
            assert port.read(13) == b"who is there?"


def test_real_time_keeps_pace_with_the_wall_clock_and_owns_up_to_the_rest(
    write_bench: BenchWriter, tmp_path: Path
) -> None:
    """What passes by the wall clock is ticks and what the bench says it fell behind, on a busy machine as well."""
    count, folder = 3_000, tmp_path / "sim"
    with virtual_bench(write_bench("report.py"), realtime=True, out=folder) as live:
        bench = tomllib.loads(live.read_text(encoding="utf-8"))
        with serial.Serial(bench["board"][0]["url"], timeout=60) as port:
            port.reset_input_buffer()
            began = time.monotonic()
            ticks = [tick for tick, *_ in struct.iter_unpack("<10i", port.read(40 * count))]
            passed = time.monotonic() - began
    behind = sum(float(late) for late in re.findall(rf"{BEHIND} by (\S+) s", (folder / "bench.log").read_text()))
    assert ticks == list(range(ticks[0], ticks[0] + count))
    # 1 kHz. A bench catches up 0.05 s without a word; the client itself may have been kept waiting at the end.
    assert 1e-3 * count - 0.1 <= passed <= 1e-3 * count + behind + 1.0


def test_real_time_knows_clocks_delays_and_sync(write_bench: BenchWriter, tmp_path: Path) -> None:
    link = "[link]\nlatency_us = 125\njitter_us = 875\nsync_s = 0.1\n"
    bench = write_bench("report.py", extra=link, boards=["clock_ppm = 100\nclock_offset_s = 4292.0"])
    with virtual_bench(bench, realtime=True, out=tmp_path / "sim") as live:
        entry = tomllib.loads(live.read_text(encoding="utf-8"))["board"][0]
        with serial.Serial(entry["url"], entry["baud"], timeout=60) as port:
            words = list(struct.iter_unpack("<10i", port.read(3_000 * 40)))
    assert len(words) == 3_000
    ticks = [tick for tick, *_ in words]
    # Opening a port forgets what came before; on a busy machine it may take its time.
    assert 4_292_001 <= ticks[0] < 4_294_967
    assert ticks == list(range(ticks[0], ticks[0] + 3_000))
    edges = [edges for _, _, edges, *_ in words]
    assert edges[-1] - edges[0] in (29, 30)  # 3 s, a pulse each 100 ms
    assert words[0][1] < 0 < words[-1][1]  # the µs clock has wrapped


def test_real_time_knows_shared_lines(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("roll_call.py", "roll_call.py", boards=['line = "x"'] * 2)
    with virtual_bench(bench, realtime=True, out=tmp_path / "sim") as live:
        first, second = tomllib.loads(live.read_text(encoding="utf-8"))["board"]
        assert first["url"] == second["url"]
        with serial.Serial(first["url"], first["baud"], timeout=10) as port:
            for name in (b"a", b"b"):
                port.write(name)
                answer = port.read(18)
                assert (answer[:1], answer[-1:]) == (b"<", b">")


def test_a_client_that_does_not_read_costs_no_more_than_a_buffer() -> None:
    port = Port()
    for _ in range(3_000):
        port.put(bytes(512))  # 1.5 MB
    client = os.open(port.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    kept, waiting = 0, True
    while waiting:
        port.put(b"")
        try:
            kept += len(os.read(client, 65_536))
        except BlockingIOError:
            waiting = False
    os.close(client)
    port.close()
    assert kept == port.sent
    assert 65_536 <= kept <= 65_536 + 65_536  # what the bench keeps, and what the terminal itself holds


def test_the_live_file_tells_clients_everything(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("echo.py", "echo.py", extra="[servo.j1]\nstiffness_Nm_rad = 9000.5\n")
    with virtual_bench(bench, plant="ideal", seed=7, noise_seed=8, out=tmp_path / "sim") as live:
        values = tomllib.loads(live.read_text(encoding="utf-8"))
        assert live == tmp_path / "sim" / "bench.toml"
        assert [values[key] for key in ("version", "name", "robot", "clock")] == [1, "test", "cobot6", "virtual"]
        assert (values["plant"], values["seed"], values["noise_seed"]) == ("ideal", 7, 8)
        assert values["servo"] == {"j1": {"stiffness_Nm_rad": 9000.5}}
        assert [(entry["node"], entry["joint"]) for entry in values["board"]] == [(1, "j1"), (2, "j2")]
        assert all(is_running(entry["pid"]) for entry in values["board"])
        config = json.loads(board_file(tmp_path / "sim", "j2", "config.json"))
        assert config["node"] == 2
        assert config["uid"] == "0000000700000002"
    assert not live.exists()
    assert not any(is_running(entry["pid"]) for entry in values["board"])


def search_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *sys.path])}


@contextlib.contextmanager
def bench_process(bench: Path, out: Path) -> Generator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a bench as a user would type it, and give its process and its boards' process numbers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hil_tests.virtual_bench", str(bench), "--out", str(out)],
        stdout=subprocess.PIPE, text=True, env=search_path(),
    )  # fmt: skip
    try:
        assert until((out / "bench.toml").exists)
        boards = tomllib.loads((out / "bench.toml").read_text(encoding="utf-8"))["board"]
        yield process, [board["pid"] for board in boards]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_bench_ends_in_order_when_told(write_bench: BenchWriter, tmp_path: Path, how: signal.Signals) -> None:
    with bench_process(write_bench(None, "echo.py"), tmp_path / "sim") as (process, boards):
        process.send_signal(how)
        printed, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert str(tmp_path / "sim" / "bench.toml") in printed
        assert "node 2, joint j2: /dev/" in printed
        assert not any(is_running(pid) for pid in boards)
        assert not (tmp_path / "sim" / "bench.toml").exists()


@pytest.mark.both_boards
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_has_run_a_bench_has_its_signals_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Stop() as stop:
        os.kill(os.getpid(), number)
        assert stop.requested
    assert signal.getsignal(number) is before


def test_a_killed_bench_leaves_no_boards_behind(write_bench: BenchWriter, tmp_path: Path) -> None:
    with bench_process(write_bench(None, "echo.py"), tmp_path / "sim") as (process, boards):
        assert all(is_running(pid) for pid in boards)
        process.kill()
        assert until(lambda: not any(is_running(pid) for pid in boards))


# The interpreter


def fake_interpreter(folder: Path, answer: str) -> Path:
    path = folder / "micropython"
    path.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("echo micropython 9223372036854775807", "is a 64-bit MicroPython"),
        ("echo cpython 9223372036854775807", "is cpython, not MicroPython"),
        ("echo lost >&2; exit 3", "is not a working MicroPython: it said 'lost'"),
        ("exit 0", "is not a working MicroPython: it said 'nothing'"),
    ],
)
def test_a_wrong_interpreter_is_refused_by_name(
    write_bench: BenchWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, message: str
) -> None:
    monkeypatch.setenv(ENVIRONMENT_NAME, str(fake_interpreter(tmp_path, answer)))
    bench = write_bench("echo.py")
    with pytest.raises(BenchError, match=message) as caught, virtual_bench(bench, out=tmp_path / "sim", board="unix:"):
        pass
    assert "./run setup" in str(caught.value)
    assert str(tmp_path / "micropython") in str(caught.value)


def test_a_missing_interpreter_says_what_to_do(
    write_bench: BenchWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_NAME, str(tmp_path / "nowhere"))
    message = "no MicroPython at .*nowhere; ./run setup fetches it, or set JOINTBENCH_MICROPYTHON to a 32-bit"
    bench = write_bench("echo.py")
    with pytest.raises(BenchError, match=message), virtual_bench(bench, out=tmp_path / "sim", board="unix:"):
        pass
