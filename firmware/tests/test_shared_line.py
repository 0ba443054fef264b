"""Several boards on one line: one speaks at a time, when it is asked, and ends with YIELD."""

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.driver import SERVO, BoardProcess, Joint, flash, swing
from firmware.tests.shared_line import SharedLine
from firmware.tests.test_link import MEMORY, SLOW_LINE
from jointwire import (
    BY_NAME,
    KNOT,
    MAX_BODY,
    Feature,
    MessageType,
    Refusal,
    State,
    config_crc,
    encode_frame,
    trajectory_crc,
)

M, R = MessageType, Refusal
A, B = 7, 9
ALL = 0xFF
SEED = 3
StartLine = Callable[..., SharedLine]


@pytest.fixture
def start_line(tmp_path: Path) -> Iterator[StartLine]:
    """Function that puts two boards on a line: start_line(program=…)."""
    boards: list[BoardProcess] = []

    def start(program: str | None = None) -> SharedLine:
        for node in (A, B):
            folder = tmp_path / f"board{node}"
            folder.mkdir()
            flash(folder, {"board.shared_line": 1}, program, node)
            boards.append(BoardProcess(folder))
        line = SharedLine(boards)
        line.run(1)
        return line

    yield start
    for board in boards:
        board.close()


@pytest.fixture
def line(start_line: StartLine) -> SharedLine:
    """Two boards with the firmware as it is."""
    return start_line()


def write(line: SharedLine, node: int, name: str, value: int) -> None:
    """Set a register of one board."""
    answer = line.ask(M.WRITE, node, register=BY_NAME[name].id, value=value)[-1]
    assert answer.body.refusal == R.OK


def status(line: SharedLine, node: int) -> Any:
    """The last STATUS of a board that had its turn."""
    return line.boards[node].of(M.STATUS)[-1].body


def test_only_the_asked_board_speaks_and_yields(line: SharedLine) -> None:
    for k in range(20):
        for node in (A, B):
            (pong,) = line.ask(M.PING, node, nonce=k)
            assert (pong.type, pong.node, pong.body.nonce) == (M.PONG, node, k)
    hello = line.ask(M.HELLO, A, major=1, minor=1)[0].body
    assert Feature(hello.features) & Feature.SHARED_LINE


def test_others_answers_are_heard_and_left(line: SharedLine) -> None:
    for k in range(10):
        line.ask(M.PING, A, nonce=k)
        line.ask(M.ECHO, A, count=2, data=b"\1\2")
    line.run(1010)
    (report, _) = line.ask(M.PING, B, nonce=1)
    assert report.type is M.STATUS
    assert (report.body.frames_received, report.body.bad_frames) == (0, 0)


def test_what_others_say_takes_no_memory(start_line: StartLine) -> None:
    line = start_line(MEMORY)
    line.ask(M.PING, B, nonce=0)
    first = line.boards[B].tick
    for k in range(100):
        line.ask(M.ECHO, A, count=2, data=bytes((k, 1)))
        damaged = bytearray(encode_frame(M.PING, A, 0, nonce=k))
        damaged[-2] ^= 1  # of the checksum
        line.say(bytes(damaged))
    last = line.boards[B].tick
    assert line.boards[B].close() == 0
    log = struct.unpack("<3000i", (line.boards[B].folder / "memory.bin").read_bytes())[first + 1 : last]
    assert len(log) > 400
    assert set(log) == {log[0]}


def test_reports_wait_for_the_turn_and_go_first(line: SharedLine) -> None:
    line.run(2500)
    frames = line.ask(M.PING, A, nonce=4)
    assert [frame.type for frame in frames] == [M.STATUS, M.STATUS, M.PONG]
    assert [frame.seq for frame in frames] == [0, 1, 2]


def test_every_kind_of_request_is_answered_once_and_yielded(line: SharedLine) -> None:
    requests = {
        M.HELLO: {"major": 2, "minor": 0}, M.READ: {"first": 0, "count": 31}, M.DICT: {"offset": 5},
        M.ECHO: {"count": MAX_BODY - 2, "data": bytes(MAX_BODY - 2)}, M.SAVE: {}, M.STOP: {}, M.CLEAR: {},
        M.ARM: {"token": 1, "config_crc": 2},
    }  # fmt: skip
    for kind, fields in requests.items():
        assert len(line.ask(kind, B, **fields)) == 1, kind


def test_a_repeated_request_gets_a_turn_of_its_own(line: SharedLine) -> None:
    first = line.ask(M.WRITE, A, seq=50, register=BY_NAME["servo.kp"].id, value=9)
    again = line.ask(M.WRITE, A, seq=50, register=BY_NAME["servo.kp"].id, value=9)
    assert [frame.type for frame in first] == [frame.type for frame in again] == [M.ACK]


def test_a_broadcast_is_carried_out_by_all_and_answered_by_none(line: SharedLine) -> None:
    line.tell(M.WRITE, ALL, register=BY_NAME["servo.kp"].id, value=123)
    line.run(20)
    for kind, fields in ((M.PING, {"nonce": 1}), (M.HELLO, {"major": 1, "minor": 1}), (M.STOP, {})):
        line.tell(kind, ALL, **fields)
        line.run(20)
    for node in (A, B):
        (values,) = line.ask(M.READ, node, first=BY_NAME["servo.kp"].id, count=1)
        assert values.body.values == (123,)
        assert values.seq == 0  # nothing was queued, nothing was dropped
    line.run(1000)
    line.ask(M.PING, A, nonce=1)
    assert status(line, A).frames_received == 5  # four broadcasts and the READ, when it was told


def test_a_broadcast_stop_takes_the_power_of_all_in_its_tick(line: SharedLine) -> None:
    for node, board in line.boards.items():
        board.plant = Joint()
        for name, value in SERVO.items():
            write(line, node, name, value)
        knots = [{"position": p, "velocity": v} for p, v in swing()]
        line.ask(M.KNOTS, node, offset=0, count=len(knots), knots=knots)
        crc = zlib.crc32(b"".join(KNOT.build(knot) for knot in knots))
        line.ask(M.LOAD, node, count=len(knots), repeats=9, crc32=crc)
        loaded = trajectory_crc(len(knots), 9, crc)
        values = {name: r.default for name, r in BY_NAME.items()} | SERVO
        values |= {"board.node": node, "board.shared_line": 1}
        token = line.ask(M.HELLO, node, major=1, minor=1)[0].body.token
        assert line.ask(M.ARM, node, token=token, config_crc=config_crc(values, loaded))[-1].body.refusal == R.OK
    at = line.boards[A].tick + 20
    line.tell(M.START, ALL, at_tick=at)
    line.run(60)
    assert [board.last.enable for board in line.boards.values()] == [1, 1]
    line.tell(M.STOP, ALL)
    assert [board.last.enable for board in line.boards.values()] == [0, 0]
    for node, board in line.boards.items():
        line.ask(M.PING, node, nonce=1)
        assert status(line, node).state == State.LOADED
        played = [frame.body for frame in board.of(M.DATA) if frame.body.play_tick >= 0]
        assert played[0].first_tick == at


def test_noise_and_foreign_frames_leave_all_silent(line: SharedLine) -> None:
    rng = random.Random(SEED)
    good = encode_frame(M.PING, A, 1, nonce=1)
    for _ in range(100):
        damaged = bytearray(good)
        damaged[rng.randrange(len(good) - 1)] ^= 1 << rng.randrange(8)
        line.say(bytes(damaged))
        line.tell(M.PING, 33, nonce=2)  # nobody's
        line.say(rng.randbytes(rng.randint(1, 200)) + b"\0")
        line.run(2)
    assert [board.frames for board in line.boards.values()] == [[], []]
    assert len(line.ask(M.PING, A, nonce=3)) == 1


def test_a_line_nobody_polls_drops_counts_and_still_answers(line: SharedLine) -> None:
    """All that was taken comes out in later turns or is counted as dropped; the answer has room even so."""
    write(line, A, "stream.always", 1)
    line.run(3000)
    frames = line.ask(M.ECHO, A, count=MAX_BODY - 2, data=bytes(MAX_BODY - 2))
    assert frames[-1].type is M.ECHO_REPLY
    for _ in range(20):
        line.run(60)
        line.ask(M.PING, A, nonce=1)
    write(line, A, "stream.always", 0)
    line.run(1000)
    line.ask(M.PING, A, nonce=1)
    told = status(line, A)
    data = line.boards[A].of(M.DATA)
    assert told.samples_dropped > 1000
    assert sum(frame.body.count for frame in data) + told.samples_dropped == told.samples_taken
    numbers = [frame.seq for frame in line.boards[A].frames]
    assert numbers == list(range(len(numbers)))


def fill(line: SharedLine, board: BoardProcess) -> None:
    """Leave a board unasked until its ring takes no block and no report any more."""
    line.run(800)
    for _ in range(60):
        board.edges += 1
        line.run(1)


SOME_OR_ALL_LENGTHS = pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])


@SOME_OR_ALL_LENGTHS
def test_answers_have_room_even_when_data_and_reports_have_none(line: SharedLine, step: int) -> None:
    write(line, A, "stream.always", 1)
    for count in range(MAX_BODY - 2, MAX_BODY - 17, -step):
        fill(line, line.boards[A])
        frames = line.ask(M.ECHO, A, count=count, data=bytes(count))
        assert frames[-1].type is M.ECHO_REPLY
        assert {M.DATA, M.SYNC} <= {frame.type for frame in frames}


@SOME_OR_ALL_LENGTHS
def test_a_turn_ends_with_yield_even_when_an_answer_has_no_room(line: SharedLine, step: int) -> None:
    """Two requests at once get one turn; what the ring cannot hold of the answers is dropped, never the YIELD."""
    write(line, A, "stream.always", 1)
    answered = []
    for count in range(MAX_BODY - 2, MAX_BODY - 33, -step):
        fill(line, line.boards[A])
        seen = len(line.boards[A].frames)
        line.run(1)
        line.turn = A
        echo = encode_frame(M.ECHO, A, 1000 + count, count=count, data=bytes(count))
        line.say(echo[:-1])
        line.say(echo[-1:] + encode_frame(M.PING, A, 1001 + count, nonce=1))
        line.run(40)
        assert line.turn is None
        answered.append({frame.type for frame in line.boards[A].frames[seen:]} & {M.ECHO_REPLY, M.PONG})
    assert {M.ECHO_REPLY, M.PONG} in answered
    assert {M.ECHO_REPLY} in answered


def test_a_turn_on_a_slow_line_ends_with_what_was_queued_at_its_start(start_line: StartLine) -> None:
    """8 bytes a tick while 14 are sampled: the turn must end all the same, and the next begins with what came since."""
    line = start_line(program=SLOW_LINE)
    write(line, A, "stream.always", 1)
    for _ in range(3):
        line.run(200)
        before = line.boards[A].tick
        frames = line.ask(M.PING, A, nonce=1)
        assert frames[-1].type is M.PONG
        assert all(f.body.first_tick < before + 3 for f in frames if f.type is M.DATA)
        assert len(line.ask(M.PING, B, nonce=2)) <= 3


def test_all_bytes_and_lengths_cross_the_line(line: SharedLine) -> None:
    for count in (*range(0, MAX_BODY - 2, 23), MAX_BODY - 2):
        for node in (A, B):
            data = bytes((count + k) % 256 for k in range(count))
            assert line.ask(M.ECHO, node, count=count, data=data)[-1].body.data == data
    assert all(board.noise == [] for board in line.boards.values())


def test_a_board_with_a_line_of_its_own_never_yields(tmp_path: Path) -> None:
    flash(tmp_path)
    board = BoardProcess(tmp_path)
    board.run(1)
    for node in (board.node, ALL):
        board.send(M.PING, node=node, nonce=1)
        board.run(3)
    assert [frame.type for frame in board.frames] == [M.PONG, M.PONG]
    assert board.close() == 0
