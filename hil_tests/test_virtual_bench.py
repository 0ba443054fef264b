"""The bench as its clients see it: virtual time, the same bytes for the same seed, its processes, and its patience."""

import contextlib
import functools
import itertools
import json
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import tomllib
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import serial

from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import PROGRAMS, board_file, is_running, write_bench_file
from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.bench import BEHIND, CORE_NAME, Stop
from hil_tests.virtual_bench.board import MAGIC, TICK_IN, Patience
from hil_tests.virtual_bench.emulated_board import (
    CHECKOUT,
    ENVIRONMENT_NAME,
    EmulatedBoard,
    find_interpreter,
    prepare_flash,
)
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.plant_file import read_plant_file
from hil_tests.virtual_bench.plant_variants import plant_of_seed
from hil_tests.virtual_bench.serial_link import Port
from jointbench.model import load_robot
from jointwire import BY_NAME, Frame, FrameReader, MessageType, Noise, State, decode_samples, encode_frame
from jointwire.registers import REGISTERS, config_crc, trajectory_crc

COBOT6 = Path(__file__).parent / "benches" / "cobot6.toml"
STREAM_ALWAYS = BY_NAME["stream.always"].id

BenchWriter = Callable[..., Path]


@pytest.fixture
def write_bench(tmp_path: Path) -> BenchWriter:
    return functools.partial(write_bench_file, tmp_path)


def own_program(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


# Virtual time, on one bench with one board that echoes; each test is its next client. None says "e", which would switch
# the motor on: behind every client that goes a bench runs on until its motors are off.


@pytest.fixture(scope="module")
def echo_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("echo")
    with virtual_bench(write_bench_file(folder, "echo.py"), plant="ideal", out=folder / "sim") as live:
        yield live


@pytest.fixture
def client(echo_bench: Path) -> Iterator[RawClient]:
    with RawClient(echo_bench) as client:
        yield client


def test_time_moves_only_while_a_client_waits(client: RawClient) -> None:
    start = client.time_us
    time.sleep(0.05)
    assert client.wait(0) == {1: b""}
    assert client.time_us == start
    assert client.wait(3_000) == {1: b""}
    assert client.time_us == start + 3_000
    client.write(1, b"first")
    assert client.wait(50_000) == {1: b"first"}
    assert client.time_us == start + 4_000  # returned at the tick that sent something
    client.wait(1)
    assert client.time_us == start + 4_001
    client.write(1, b"again")
    assert client.wait(50_000) == {1: b"again"}
    assert client.time_us == start + 5_000  # boards serve at their ticks


def test_more_bytes_than_a_tick_carries_are_spread_over_ticks(client: RawClient) -> None:
    data = (bytes(range(256)) * 40).translate(None, b"edx")  # without the letters the program obeys
    client.write(1, data)
    first = client.wait(10_000)[1]
    assert first == data[:512]
    assert first + client.pass_time(30_000)[1] == data


def test_bytes_beyond_the_announced_total_wait(client: RawClient) -> None:
    client.ports[1].write(b"abc")
    assert client.ask({"wait_us": 5_000, "written": {"1": 2}})["sent"] == {"1": 2}
    assert client.ask({"wait_us": 5_000, "written": {"1": 3}})["sent"] == {"1": 3}


@pytest.mark.parametrize(
    ("request_line", "message"),
    [
        ("{", "not a line of JSON"),
        ('"wait"', "is of none of the forms"),
        ({"wait_us": 5}, "is of none of the forms"),
        ({"wait_us": -1, "written": {}}, "wait_us = -1 must be a whole number from 0 to"),
        ({"wait_us": 1.5, "written": {}}, "wait_us = 1.5 must be a whole number"),
        ({"wait_us": 10**12, "written": {}}, "must be a whole number from 0 to 60000000"),
        ({"wait_us": 1, "written": {"1": "x"}}, "must give each port the total of bytes written to it"),
        ({"wait_us": 1, "written": {"7": 1}}, "names port '7'; this bench has 1, each named by its lowest node"),
    ],
)
def test_wrong_requests_are_answered_and_time_goes_on(client: RawClient, request_line: object, message: str) -> None:
    start = client.time_us
    assert message in client.ask(request_line)["error"]
    client.wait(1_000)
    assert client.time_us == start + 1_000


@pytest.mark.slow
def test_announced_bytes_that_never_come_are_an_error(client: RawClient) -> None:
    client.ports[1].write(b"abc")
    reply = client.ask({"wait_us": 5_000, "written": {"1": 9}})
    assert "wrote 9 bytes since it connected, but only 3 came" in reply["error"]


def test_a_second_client_is_told_that_the_bench_is_taken(client: RawClient) -> None:
    start = client.time_us
    with socket.socket(socket.AF_UNIX) as second:
        second.connect(client.bench["control"])
        assert "already has a client" in json.loads(second.makefile().readline())["error"]
    client.wait(1_000)
    assert client.time_us == start + 1_000


def test_the_next_client_starts_clean(echo_bench: Path) -> None:
    with RawClient(echo_bench) as client:
        client.ports[1].write(b"never announced")
        client.wait(2_000)
    with RawClient(echo_bench) as client:
        client.write(1, b"my own")
        assert client.pass_time(10_000) == {1: b"my own"}


def test_a_client_that_goes_while_it_waits_blocks_nobody(echo_bench: Path) -> None:
    with RawClient(echo_bench) as client:
        began = client.time_us
        client.socket.sendall(b'{"wait_us": 60000000, "written": {}}\n')
    with RawClient(echo_bench) as client:
        assert client.time_us < began + 60_000_000


def test_truth_of_the_ideal_plant_is_told_on_request(client: RawClient) -> None:
    truth = client.ask({"truth": True})["truth"]
    assert list(truth) == ["j1", "j2", "j3", "j4", "j5", "j6"]
    assert len(truth["j2"]["standard_parameters"]) == 10
    robot = load_robot("cobot6")
    drawn = plant_of_seed(read_plant_file(COBOT6_PLANT, robot), robot, seed=0).joints[1]
    assert truth["j2"]["rotor_inertia"] == pytest.approx(drawn.rotor_inertia * 101**2)
    assert (truth["j2"]["coulomb"], truth["j2"]["viscous"]) == pytest.approx((drawn.coulomb, drawn.viscous))
    assert drawn.coulomb != 4.6  # the plant file's, about which it is drawn


def test_a_folder_serves_one_bench_at_a_time(echo_bench: Path, write_bench: BenchWriter) -> None:
    message = "folder .* is in use by another bench; end that one or choose another --out"
    with pytest.raises(BenchError, match=message), virtual_bench(write_bench("echo.py"), out=echo_bench.parent):
        pass
    with RawClient(echo_bench) as client:  # and the first one is none the worse
        client.write(1, b"first")
        assert client.pass_time(5_000) == {1: b"first"}


# Determinism, with the real firmware


def stream_for(out: Path, seed: int, duration_us: int = 300_000) -> dict[int, bytes]:
    """What six boards send while they stream for a while."""
    with virtual_bench(COBOT6, seed=seed, out=out) as live, RawClient(live) as client:
        for node in client.ports:
            client.write(node, encode_frame(MessageType.HELLO, node, 1, major=1, minor=0))
            client.write(node, encode_frame(MessageType.WRITE, node, 2, register=STREAM_ALWAYS, value=1))
        return client.pass_time(duration_us)


@pytest.mark.both_boards
def test_same_seed_same_bytes_other_seed_other_bytes(tmp_path: Path) -> None:
    first = stream_for(tmp_path / "a", seed=4)
    assert stream_for(tmp_path / "b", seed=4) == first
    assert stream_for(tmp_path / "c", seed=5) != first


def test_boards_stream_every_tick_of_a_robot_at_rest(tmp_path: Path) -> None:
    for node, data in stream_for(tmp_path, seed=1).items():
        chunks = [chunk.content for chunk in FrameReader().feed(data)]
        assert not any(isinstance(content, Noise) for content in chunks)
        frames = [frame for frame in chunks if not isinstance(frame, Noise) and frame.type is MessageType.DATA]
        assert {frame.node for frame in frames} == {node}
        blocks = [(frame.body.first_tick, frame.body.count) for frame in frames]
        ticks = [first + k for first, count in blocks for k in range(count)]
        assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
        assert len(ticks) >= 128
        positions = [decode_samples(frame).columns["motor_position"] for frame in frames]
        assert all(abs(block - positions[0][0]).max() <= 1 for block in positions)  # the brake holds


# Boards that misbehave


@pytest.mark.unix_only("a program's end ends a unix board; a QEMU board then stands at its prompt")
def test_a_dead_board_is_named_and_the_others_go_on(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("echo.py", "echo.py", "echo.py")
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        for node in (1, 2, 3):
            client.write(node, b"e")
        client.wait(1_000)
        client.write(2, b"x")
        client.wait(100_000)
        assert client.time_us == 2_000  # a death ends the wait at once
        assert client.dead == {"2": "exit status 1: RuntimeError: told to end by the letter x"}
        os.kill(client.bench["board"][2]["pid"], signal.SIGKILL)
        client.wait(100_000)
        assert client.dead["3"] == "exit status -9"
        client.write(1, b"still here")
        assert client.wait(5_000)[1] == b"still here"


@pytest.mark.unix_only("it writes to the pipes of one")
def test_a_board_with_another_layout_is_refused_by_both_names(write_bench: BenchWriter, tmp_path: Path) -> None:
    program = 'import struct\nopen(4, "wb").write(struct.pack("<4i", 0x4A420001, 96, 0, 0))\nopen(3, "rb").read()\n'
    bench = write_bench(own_program(tmp_path, program))
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.wait(1_000)
        ours = f"this bench {MAGIC:#010x} with {TICK_IN.itemsize}"
        assert f"layout 0x4a420001 with 96 bytes a tick, {ours}" in client.dead["1"]


def test_a_board_that_answers_nonsense_is_dead(write_bench: BenchWriter, tmp_path: Path) -> None:
    program = (PROGRAMS / "echo.py").read_text(encoding="utf-8").replace("board.apply()", "outputs[4] = 7")
    bench = write_bench(own_program(tmp_path, program))
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.wait(1_000)
        assert "answered tick 1 with [tick 1, enable 7, command 0, 0 bytes]" in client.dead["1"]


@pytest.mark.both_boards
def test_a_babbling_board_disturbs_nobody(write_bench: BenchWriter, tmp_path: Path) -> None:
    bench = write_bench("babble.py", None)
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        client.write(2, encode_frame(MessageType.HELLO, 2, 1, major=1, minor=0))
        received = client.pass_time(200_000)
        assert len(received[1]) == 200 * 16
        assert all(isinstance(chunk.content, Noise) for chunk in FrameReader().feed(received[1]))
        (answer,) = [chunk.content for chunk in FrameReader().feed(received[2])]
        assert not isinstance(answer, Noise)
        assert answer.type is MessageType.HELLO_ACK


@pytest.mark.unix_only("it is about the process of one")
def test_a_board_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hil_tests.virtual_bench.emulated_board._HANGS", 0.3)
    program = tmp_path / "hang.py"
    program.write_text("while True:\n    pass\n", encoding="utf-8")
    prepare_flash(tmp_path / "flash", {}, program)
    board = EmulatedBoard(find_interpreter(), tmp_path / "flash")
    board.send_tick(bytes(120))
    with pytest.raises(BoardDied, match=r"no answer within 0.3 s of its processor time or 30 s without work: it hangs"):
        board.receive_tick(1)
    assert not is_running(board.pid)
    board.close()


# Motors


@pytest.mark.both_boards
def test_motors_are_off_soon_after_their_client_vanished(tmp_path: Path) -> None:
    """A board armed by a client that then goes switches its motor off by itself: link loss, the bench does not help."""
    with virtual_bench(COBOT6, out=tmp_path / "sim") as live:
        with RawClient(live) as client:
            arm(client, node=1)
            assert state_of(client, node=1) == "ARMED"
            stopped_at = client.time_us
        with RawClient(live) as client:
            client.wait(0)
            assert stopped_at < client.time_us <= stopped_at + 600_000  # the default limit.link_timeout is 500 ms
            assert state_of(client, node=1) == "FAULT"


def arm(client: RawClient, node: int) -> None:
    """Upload a trajectory that stands still at the robot's home, and arm."""
    (hello,) = answers(client, node, MessageType.HELLO, major=1, minor=0)
    knots = struct.pack("<4i", 0, 0, 0, 0)
    answers(client, node, MessageType.KNOTS, payload=struct.pack("<HH", 0, 2) + knots)
    load = {"count": 2, "repeats": 1, "crc32": zlib.crc32(knots)}
    (answer,) = answers(client, node, MessageType.LOAD, **load)
    assert answer.body.refusal == 0
    loaded = trajectory_crc(**load)
    crc = config_crc({register.name: read(client, node, register.id) for register in REGISTERS}, loaded)
    (armed,) = answers(client, node, MessageType.ARM, token=hello.body.token, config_crc=crc)
    assert armed.body.refusal == 0


def read(client: RawClient, node: int, register: int) -> int:
    (answer,) = answers(client, node, MessageType.READ, first=register, count=1)
    return answer.body.values[0]


def state_of(client: RawClient, node: int) -> str:
    (hello,) = answers(client, node, MessageType.HELLO, major=1, minor=0)
    return State(hello.body.state).name


_sequence = itertools.count(1)


def answers(client: RawClient, node: int, kind: MessageType, **fields: Any) -> list[Frame]:
    """Send one request and return the answers that came within 5 ms, without the board's own stream."""
    client.write(node, encode_frame(kind, node, next(_sequence), **fields))
    frames = [chunk.content for chunk in FrameReader().feed(client.pass_time(5_000)[node])]
    return [frame for frame in frames if isinstance(frame, Frame) and frame.type >= MessageType.ACK]


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


@pytest.mark.unix_only("boards of other emulators run side by side")
def test_in_lockstep_all_boards_share_the_core_that_is_named(
    write_bench: BenchWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CORE_NAME, "1")
    all_cores = os.sched_getaffinity(0)
    named = {sorted(all_cores)[1 % len(all_cores)]}
    for realtime, cores in ((False, named), (True, all_cores)):
        with virtual_bench(
            write_bench("echo.py", "echo.py"), plant="ideal", realtime=realtime, out=tmp_path / "sim"
        ) as live:
            boards = tomllib.loads(live.read_text(encoding="utf-8"))["board"]
            assert [os.sched_getaffinity(entry["pid"]) for entry in boards] == [cores, cores]


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


@contextmanager
def started(program: str) -> Generator[int]:
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def wait(patience: Patience) -> float:
    """How long [s] it lasted."""
    began = time.monotonic()
    while not patience.is_over:
        time.sleep(0.01)
    return time.monotonic() - began


def test_work_without_end_is_ended_by_its_own_processor_time() -> None:
    with started("while True: pass") as pid:
        patience = Patience(pid, own=0.3, wall=60.0)
        # One thread cannot use more of a processor than passes; times are in hundredths.
        assert 0.25 < wait(patience) < 60.0
    assert str(patience) == "0.3 s of its processor time or 60 s without work"


def test_a_wait_without_end_is_ended_by_the_wall_clock() -> None:
    with started("import time; time.sleep(99)") as pid:
        assert 0.3 <= wait(Patience(pid, own=60.0, wall=0.3)) < 60.0


def test_work_with_pauses_is_not_ended_by_the_wall_clock() -> None:
    """As a process works that gets a processor now and then only: each pause is shorter than `wall`, all are longer."""
    program = """
import time
while True:
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
    time.sleep(0.05)
"""
    with started(program) as pid:
        # 0.3 s of work at 0.02 s a round of at least 0.07 s.
        assert wait(Patience(pid, own=0.3, wall=0.5)) > 0.9
