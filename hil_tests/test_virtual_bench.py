"""The bench as its clients see it: virtual time, the same bytes for the same seed, and boards that misbehave."""

import functools
import itertools
import json
import os
import signal
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import PROGRAMS, is_running, write_bench_file
from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.board import MAGIC, TICK_IN
from hil_tests.virtual_bench.emulated_board import EmulatedBoard, find_interpreter, prepare_flash
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.plant_file import read_plant_file
from hil_tests.virtual_bench.plant_variants import plant_of_seed
from jointbench.robot import load_robot
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
    monkeypatch.setattr("hil_tests.virtual_bench.emulated_board._PATIENCE_MS", 500)
    program = tmp_path / "hang.py"
    program.write_text("while True:\n    pass\n", encoding="utf-8")
    prepare_flash(tmp_path / "flash", {}, program)
    board = EmulatedBoard(find_interpreter(), tmp_path / "flash")
    board.send_tick(bytes(120))
    with pytest.raises(BoardDied, match=r"no answer within 0.5 s of the wall clock: it hangs"):
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
