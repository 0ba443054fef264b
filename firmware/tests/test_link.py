"""Bytes and frames: what the host encodes, noise, a line that is too slow, and memory."""

import json
import random
import struct
import subprocess
from pathlib import Path

import pytest
from cobs import cobs

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import NODE, BoardProcess, flash, micropython, play, prepare, raw_frame
from jointwire import MAX_BODY, MessageType, Refusal, State, encode_frame

M, R = MessageType, Refusal
SEED = 4
LARGEST = 1120  # header, longest body and CRC

# Hears wire.bin in pieces, which go round a ring where the line says so; the requests found go to heard.bin (length of
# the body, the frame without its CRC), the counts of good and bad frames behind them.
HEARING = """
import struct
from jointboard import framing, rooms, wire
from jointboard.link import Link, address
from jointboard.registers import new_cells
cells = new_cells()
link = Link(cells)
size = 64
ring, piece = bytearray(size), bytearray(24)
cells[wire.REGISTER_BOARD_NODE] = 7
cells[framing.INPUTS] = address(bytearray(128))
line = link.line
line[framing.RECEIVED_AT], line[framing.RECEIVED_MASK] = address(ring), size - 1
source, heard = open("wire.bin", "rb"), open("heard.bin", "wb")
at = 0
while count := source.readinto(piece):
    for k in range(count):
        ring[(at + k) % size] = piece[k]
    at += count
    line[framing.END] = at
    while (length := link.receive()) >= 0:
        heard.write(struct.pack("<i", length))
        heard.write(memoryview(link.received)[: framing.BODY + length])
heard.write(struct.pack("<ii", line[framing.GOOD], line[framing.BAD]))
assert rooms.intact()
"""


def _bodies() -> list[bytes]:
    rng = random.Random(SEED)
    bodies = [bytes([value]) for value in range(256)]
    bodies += [bytes([value]) * MAX_BODY for value in range(0, 256, 3)]
    for length in range(MAX_BODY + 1):
        zeros = rng.choice((0, 0.003, 0.1, 0.9))  # groups of 254 with and without an end there
        bodies.append(bytes(0 if rng.random() < zeros else rng.randint(1, 255) for _ in range(length)))
    bodies += [bytes([1]) * length + tail for length in (253, 254, 255, 508) for tail in (b"", b"\0", b"\1", b"\0\1")]
    return bodies


def _heard(folder: Path, data: bytes) -> bytes:
    flash(folder, program=HEARING)
    (folder / "wire.bin").write_bytes(data)
    subprocess.run([micropython(), "main.py"], cwd=folder, check=True, timeout=60)
    return (folder / "heard.bin").read_bytes()


def _request(body: bytes) -> bytes:
    return cobs.decode(raw_frame(M.ECHO, body)[:-1])


def test_what_the_host_encodes_is_heard(tmp_path: Path) -> None:
    frames = [_request(body) for body in _bodies()]
    wire = b"".join(cobs.encode(frame) + b"\0" for frame in frames)
    expected = b"".join(struct.pack("<i", len(frame) - 16) + frame[:-4] for frame in frames)
    assert _heard(tmp_path, wire) == expected + struct.pack("<ii", len(frames), 0)


def test_what_is_not_cobs_or_too_long_is_counted_and_the_next_frame_is_whole(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    wire, expected, good, bad = b"\0\0", b"", 0, 0
    for _ in range(500):
        broken = rng.choice((
            bytes([rng.randint(3, 255)]) + b"\1",  # ends before its group does
            cobs.encode(rng.randbytes(LARGEST + rng.randint(1, 4000))),
            bytes(rng.randint(1, 255) for _ in range(rng.randint(1, 1500))),
        ))  # fmt: skip
        frame = _request(rng.randbytes(rng.randint(0, MAX_BODY)))
        wire += broken + b"\0" + cobs.encode(frame) + b"\0" * rng.randint(1, 3)
        expected += struct.pack("<i", len(frame) - 16) + frame[:-4]
        good, bad = good + 1, bad + 1  # none of them can be a frame: each lacks its CRC
    assert _heard(tmp_path, wire) == expected + struct.pack("<ii", good, bad)


def test_frames_of_every_length_pass_the_crc_both_ways(board: BoardProcess) -> None:
    """Whatever the length, the board answers a frame whose CRC is right; and its answers' CRC is right."""
    for length in (*range(0, MAX_BODY, 7), MAX_BODY):
        answer = board.request(M.CLEAR, payload=bytes(length)) if length else board.request(M.CLEAR)
        assert answer.body.refusal == (R.BAD_LENGTH if length else R.WRONG_STATE)
        assert answer.body.value == (length or 1)
    assert board.noise == []


def test_a_damaged_frame_is_counted_and_not_carried_out(board: BoardProcess) -> None:
    good = encode_frame(M.PING, NODE, 1, nonce=0x11223344)
    rng = random.Random(SEED)
    bad = 0
    for _ in range(200):
        bit = rng.randrange(8 * (len(good) - 1))
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        board.send_bytes(bytes(damaged))
        bad += sum(1 for part in bytes(damaged).split(b"\0") if part)
    board.run(1000)
    assert board.of(M.PONG) == []
    assert board.of(M.STATUS)[-1].body.bad_frames == bad


def test_garbage_between_frames_is_survived_and_counted(board: BoardProcess) -> None:
    rng = random.Random(SEED)
    bad = 0
    for nonce in range(300):
        garbage = rng.randbytes(rng.randint(1, 300)) + b"\0"
        bad += sum(1 for part in garbage.split(b"\0") if part)
        board.send_bytes(garbage)
        board.send(M.PING, nonce=nonce)
    board.run(1500)
    assert [frame.body.nonce for frame in board.of(M.PONG)] == list(range(300))
    status = board.of(M.STATUS)[-1].body
    assert (status.frames_received, status.bad_frames) == (300, bad)
    assert board.noise == []


def test_another_schema_is_never_read_and_hello_always(board: BoardProcess) -> None:
    for kind, payload in ((M.PING, bytes(4)), (M.HELLO, b"\1\0")):
        board.send_bytes(raw_frame(kind, payload, seed=0 if kind is M.HELLO else 0x12345678))
        board.run(3)
    assert [frame.type for frame in board.frames] == [M.HELLO_ACK]
    board.run(1000)
    assert board.of(M.STATUS)[-1].body.bad_frames == 1


def test_another_protocol_is_never_read(board: BoardProcess) -> None:
    board.send_bytes(raw_frame(M.PING, bytes(4), protocol=2))
    board.run(1000)
    assert [frame.type for frame in board.frames] == [M.STATUS]
    assert board.of(M.STATUS)[-1].body.bad_frames == 1


# A line of 8 bytes a tick: less than the 14 of a sample.
SLOW_LINE = """
from unix import Board
class SlowBoard(Board):
    def room(self):
        return 8
board = SlowBoard()
board.disable()
from jointboard import app
app.run(board)
"""


@pytest.mark.parametrize("block", [1, 7, 64])
def test_a_line_too_slow_drops_whole_frames_and_the_counts_close(start_board: StartBoard, block: int) -> None:
    board = start_board(program=SLOW_LINE)
    prepare(board, repeats=20)
    assert board.write("stream.block", block) is R.OK
    play(board)
    for _ in range(12):
        board.send(M.HELLO, major=1, minor=0)
        assert board.run(100).enable == 1  # the line never holds up the motor
    board.send(M.STOP)
    assert board.run(1).enable == 0
    board.run(1500)  # what is queued comes out
    status = board.of(M.STATUS)[-1].body
    data = board.of(M.DATA)
    assert status.samples_dropped > 100
    assert sum(frame.body.count for frame in data) + status.samples_dropped == status.samples_taken
    assert status.frames_dropped > 0
    assert len(board.of(M.HELLO_ACK)) == 1 + 12  # answers have room kept for them
    numbers = [frame.seq for frame in board.frames]
    assert numbers == list(range(len(numbers)))  # a dropped frame takes no number: the line lost nothing
    assert board.noise == []


# Notes the allocated bytes at each tick and writes them out when the bench goes.
MEMORY = """
import gc
from array import array
from unix import Board
log = array("i", bytes(4 * 3000))
class NotingBoard(Board):
    ticks = 0
    def wait_tick(self):
        log[self.ticks] = gc.mem_alloc()
        self.ticks += 1
        return Board.wait_tick(self)
board = NotingBoard()
board.disable()
from jointboard import app
app.run(board)
with open("memory.bin", "wb") as file:
    file.write(log)
"""


def test_neither_ticks_nor_streaming_allocate(start_board: StartBoard) -> None:
    board = start_board(program=MEMORY)
    prepare(board, repeats=20)
    assert board.write("limit.link_timeout", 2000) is R.OK
    assert board.write("stream.block", 20) is R.OK
    play(board)
    first, before = board.tick, len(board.frames)
    for k in range(1100):
        if k % 100 == 50:
            board.send(M.PING, nonce=k)
        if k == 1000:
            board.send(M.READ, first=0, count=1)
        board.run(1)
    kinds = [frame.type for frame in board.frames[before:]]
    assert kinds.count(M.DATA) > 50
    assert (kinds.count(M.PONG), kinds.count(M.STATUS)) == (11, 1)
    assert board.last.enable == 1
    assert board.close() == 0
    log = struct.unpack("<3000i", (board.folder / "memory.bin").read_bytes())
    # Entry k is taken before tick k is awaited: what tick k allocated is entry k + 1 less entry k.
    grown = [log[first + k + 1] - log[first + k] for k in range(1100)]
    # The note does see the READ, which takes a tick to arrive; nothing else takes any, nor is anything collected.
    assert [k for k, bytes_ in enumerate(grown) if bytes_ != 0] == [1000]
    assert grown[1000] > 0


# Where objects go after a collection by gc alone, and after one by rooms; what each leaves free.
HOLES = """
import gc
import json
from jointboard import rooms
gc.collect()
plain = gc.mem_free()
holes = [id(object()) for _ in range(8)]
told = rooms.collect()
beyond = id(object())
print(json.dumps([holes, beyond, plain, told, gc.mem_free(), rooms.intact()]))
"""


def test_after_a_collection_no_hole_is_searched(tmp_path: Path) -> None:
    """MicroPython looks for memory from the first free block on, and a request makes a dozen searches."""
    flash(tmp_path, program=HOLES)
    command = [micropython(), "-X", "heapsize=256k", "main.py"]
    run = subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True)
    holes, beyond, plain, told, free, intact = json.loads(run.stdout)
    assert beyond > max(holes)
    assert free <= told <= plain  # what fills holes is not told as free
    assert intact


# Locks the heap once it plays, and opens it again after LOCKED ticks: an allocation in between is a MemoryError.
LOCKED = 600_000
LOCKING = f"""
import micropython
from unix import Board
class LockingBoard(Board):
    played = 0
    def wait_tick(self):
        if self.outputs[4]:
            self.played += 1
            if self.played == 200:
                micropython.heap_lock()
            elif self.played == 200 + {LOCKED}:
                micropython.heap_unlock()
        return Board.wait_tick(self)
board = LockingBoard()
board.disable()
from jointboard import app
app.run(board)
"""


@pytest.mark.slow
def test_ten_minutes_of_motion_with_requests_take_not_one_byte(start_board: StartBoard) -> None:
    """At 1 kHz, with 8 PINGs and a STATUS a second, and an edge on the SYNC line each second."""
    board = start_board(program=LOCKING)
    prepare(board, repeats=5000)
    assert board.write("stream.block", 20) is R.OK
    play(board)
    for k in range(LOCKED + 200):
        if k % 125 == 0:
            board.send(M.PING, nonce=k)
        if k % 1000 == 7:
            board.edges, board.edge_us = board.edges + 1, 1000 * board.tick
        board.run(1)
        board.frames.clear()
    assert board.last.enable == 1
    assert board.errors == ""
    assert board.refusal(M.STOP) is R.OK
    assert board.state is State.LOADED


def test_missing_interpreter_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JOINTBENCH_MICROPYTHON", str(tmp_path / "none"))
    with pytest.raises(pytest.fail.Exception, match=r"\./run setup"):
        micropython()
