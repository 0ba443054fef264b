"""A frame on its way out: queued raw, encoded some bytes a turn, drained; against zlib and package cobs."""

import random
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cobs import cobs

from firmware.tests.driver import FIRMWARE, constants, flash, micropython
from hil_tests.need_qemu import need_qemu, need_riscv
from hil_tests.virtual_bench.qemu import on_a_cortex, on_a_riscv, run_program
from jointwire import BODIES, MAX_BODY, MessageType

SEED = 6
FRAMING = constants("jointboard/framing")
RING, ENCODED, HEAD_SIZE = FRAMING["RING"], FRAMING["ENCODED"], FRAMING["HEAD_SIZE"]
CLOCK = 0x12345678  # what a PONG is stamped with
NODE = 5
INT32 = (-(2**31), -1, 0, 1, 2**31 - 1)

# frames.bin: each is queued, a part of what waits encoded and drained, to sent.bin. reserves.bin: the ring is filled
# with frames that leave so much free, to drops.bin. reports.bin: cells of the tick and counts of the line become a DATA
# frame, a STATUS and a SYNC, as far as asked for, to reports.sent.
PROGRAM = """
import struct
from array import array
from jointboard import framing, rooms, tick
from jointboard.link import Link, address
from jointboard.registers import new_cells
cells = new_cells()
link = Link(cells)
buffer, outgoing, inputs, clock = rooms.buffer(framing.LARGEST), rooms.buffer(512), bytearray(128), bytearray(4)
line = link.line
struct.pack_into("<I", clock, 0, 0x12345678)
line[framing.TARGET], line[framing.TARGET_SIZE] = address(outgoing), len(outgoing)
line[framing.CLOCK_AT] = address(clock)
cells[framing.INPUTS] = address(inputs)
at, cells_at = link.line_at, link.cells_at
block_at = line[framing.BLOCK_AT]

def describe(kind, node, time, seed, length, reserve):
    line[framing.SOURCE], line[framing.BODY_LENGTH], line[framing.KIND] = address(buffer), length, kind
    line[framing.NODE], line[framing.TIME], line[framing.SEED], line[framing.RESERVE] = node, time, seed, reserve

def empty():
    line[framing.HEAD] = line[framing.TAIL] = line[framing.GIVEN] = 0

def drain(most, file):
    # More than fits in `outgoing` is asked for: the canary behind it shows whether it came.
    while count := framing.drain(at, 2 * most):
        assert count <= len(outgoing)
        file.write(memoryview(outgoing)[:count])

def send_all(budget, file):
    while not link.silent():
        framing.encode(at, budget)
        drain(512, file)

head = bytearray(20)
line[framing.SEQUENCE] = 65000
with open("frames.bin", "rb") as source, open("sent.bin", "wb") as sent:
    while source.readinto(head):
        kind, node, length, time, seed, budget, most = struct.unpack("<BBHiiII", head)
        source.readinto(memoryview(buffer)[framing.BODY :], length)
        describe(kind, node, time, seed, length, 0)
        while framing.post(at, cells_at, framing.DESCRIBED):  # no room: more must be sent first
            framing.encode(at, budget)
            drain(most, sent)
        framing.encode(at, budget)
        if most & 1:
            drain(most, sent)
    send_all(92, sent)
head = bytearray(16)
with open("reserves.bin", "rb") as source, open("drops.bin", "wb") as drops:
    while source.readinto(head):
        kind, shared, length, reserve, _, _ = struct.unpack("<BBHiiI", head)
        empty()
        line[framing.SHARED], line[framing.SENT], line[framing.DROPPED] = shared, 0, 0
        first = line[framing.SEQUENCE]
        describe(kind, 1, 0, 0, length, reserve)
        while not framing.post(at, cells_at, framing.DESCRIBED):
            pass
        taken = (line[framing.SEQUENCE] - first) & 0xFFFF
        values = taken, line[framing.SENT], line[framing.DROPPED], line[framing.HEAD], line[framing.GIVEN]
        drops.write(struct.pack("<5i", *values))
line[framing.SHARED] = 0
empty()
values = bytearray(92)
line[framing.SEQUENCE] = 0
with open("reports.bin", "rb") as source, open("reports.sent", "wb") as sent:
    while source.readinto(values):
        fields = struct.unpack("<23i", values)
        cells[tick.FIRST_TICK], cells[tick.DIVIDERS], cells[tick.FIRST_PLAY] = fields[:3]
        cells[framing.STREAM_CHANNELS], line[framing.MISSED], cells[tick.COUNT], cells[tick.STATE] = fields[3:7]
        cells[framing.BOARD_NODE], cells[tick.TRIP], size, what = fields[7:11]
        struct.pack_into("<4i", inputs, 0, *fields[11:15])
        line[framing.SAMPLES_TAKEN], line[framing.SAMPLES_DROPPED] = fields[15:17]
        line[framing.SENT], line[framing.DROPPED] = fields[17:19]
        line[framing.TICKS_MISSED], line[framing.GOOD], line[framing.BAD], line[framing.HEAP_FREE] = fields[19:23]
        line[framing.LONGEST_TICK], line[framing.LONGEST_COLLECTION] = fields[0], fields[1]
        line[framing.SPENT], line[framing.TURNS], line[framing.LATE] = fields[3], fields[6], fields[11] & 0xFFFF
        cells[tick.SAMPLE] = block_at + framing.SAMPLES + size
        assert framing.post(at, cells_at, what) == 0
        if what & (framing.BLOCK | framing.STATUS) and fields[5]:
            assert cells[tick.COUNT] == 0 and cells[tick.SAMPLE] == block_at + framing.SAMPLES
        send_all(1024, sent)
assert rooms.intact()
"""


class Queued(NamedTuple):
    """A frame as the cells describe it, how many bytes are encoded in a turn, and how many the Hal takes then."""

    kind: int
    node: int
    time: int
    seed: int
    budget: int
    most: int
    body: bytes


Written = dict[str, bytes]


def _bodies(rng: random.Random) -> Iterator[bytes]:
    for length in range(MAX_BODY + 1):
        zeros = rng.choice((0, 0.003, 0.1, 0.4, 0.9, 1))  # groups of 254 with and without an end there
        yield bytes(0 if rng.random() < zeros else rng.randint(1, 255) for _ in range(length))
    for run in (252, 253, 254, 255, 507, 508, 509, 1016):
        for before in (b"", b"\0", b"\1", b"\0\0", bytes(7)):
            for after in (b"", b"\0", b"\1", b"\0\1"):
                yield before + bytes([rng.randint(1, 255)]) * run + after


def _int32(rng: random.Random) -> int:
    return rng.choice((*INT32, rng.randint(INT32[0], INT32[-1])))


def _frames() -> list[Queued]:
    rng = random.Random(SEED)
    return [
        Queued(
            rng.randrange(256), rng.randrange(256), _int32(rng), _int32(rng), rng.choice((4, 92, 1024, 4096)),
            rng.choice((1, 7, 92, 512)), body,
        )
        for body in _bodies(rng)
    ]  # fmt: skip


def _encoded(frames: list[Queued], sequence: int = 65000) -> bytes:
    """What the host would send for the same."""
    sent = b""
    for number, each in enumerate(frames):
        time = CLOCK if each.kind == MessageType.PONG else each.time
        seq = (sequence + number) & 0xFFFF
        raw = struct.pack("<BBBBHHi", 1, each.kind, each.node, 0, seq, len(each.body), time) + each.body
        sent += cobs.encode(raw + struct.pack("<I", zlib.crc32(raw, each.seed & 0xFFFFFFFF))) + b"\0"
    return sent


def _step(length: int) -> int:
    """Bytes of the ring that a frame with a body so long takes."""
    return HEAD_SIZE + (12 + length + 7) // 4 * 4


def _reserves() -> list[tuple[int, int, int, int]]:
    """Kind, line shared or not, length of the body, bytes to stay free: so many that a frame just fits, or just not."""
    rng = random.Random(SEED)
    return [
        (kind, rng.randrange(2), length, RING - 4 - rng.randint(1, 5) * _step(length) - _step(length) + short)
        for kind in (MessageType.DATA, MessageType.YIELD, MessageType.ACK)
        for length in (0, 1, 2, 3, 4, 237, MAX_BODY)
        for short in (0, 1)
    ]


def _reports() -> list[tuple[int, ...]]:
    """Values as the program takes them: cells and counts; the bits of what is asked for are number 10."""
    rng = random.Random(SEED)
    return [
        (*(_int32(rng) for _ in range(3)), rng.randrange(2**12), rng.choice((0, 1, 0xFFFF)), rng.choice((0, 1, 17, 64)),
         rng.randrange(7), rng.randint(1, 254), rng.randrange(15), 2 * rng.randrange(543),
         rng.choice((2, 4, 6, 32, 38, 64, 102)), *(_int32(rng) for _ in range(12)))
        for _ in range(200)
    ]  # fmt: skip


@pytest.fixture(
    scope="module", params=["unix", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cortex", "riscv"))]
)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """What the program wrote, on each kind of emulated board."""
    data = {
        "frames.bin": b"".join(
            struct.pack("<BBHiiII", f.kind, f.node, len(f.body), f.time, f.seed, f.budget, f.most) + f.body
            for f in _frames()
        ),
        "reserves.bin": b"".join(struct.pack("<BBHiiI", *each, 0, 0) for each in _reserves()),
        "reports.bin": b"".join(struct.pack("<23i", *each) for each in _reports()),
    }
    if request.param == "unix":
        return _on_unix(tmp_path_factory.mktemp("board"), data)
    need_riscv() if request.param == "riscv" else need_qemu()
    package = (FIRMWARE / "jointboard").iterdir()
    files = {f"jointboard/{path.name}": path.read_bytes() for path in package if path.is_file()}
    return run_program(PROGRAM, {**files, **data}, board=on_a_riscv if request.param == "riscv" else on_a_cortex)


def _on_unix(folder: Path, data: dict[str, bytes]) -> Written:
    flash(folder, program=PROGRAM)
    for name, content in data.items():
        (folder / name).write_bytes(content)
    subprocess.run([micropython(), "main.py"], cwd=folder, check=True, timeout=60)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_queued_frame_is_the_hosts_to_the_byte(written: Written) -> None:
    """Header, CRC and COBS, wherever in the rings it lies, however many bytes are encoded and fetched at a time."""
    expected = _encoded(_frames())
    assert len(expected) > 10 * RING > 10 * ENCODED  # it went round both
    assert written["sent.bin"] == expected


def test_what_finds_no_room_takes_nothing_but_a_count(written: Written) -> None:
    """One word of the ring stays empty; on a shared line only a YIELD lets what was queued go."""
    expected = b""
    for kind, shared, length, reserve in _reserves():
        queued = head = 0
        while RING - 4 - head >= _step(length) + reserve:
            head += _step(length)
            queued += 1
        given = head if not shared or kind == MessageType.YIELD else 0
        expected += struct.pack("<5i", queued, queued, 1, head, given)
    assert written["drops.bin"] == expected


def test_a_block_a_status_and_an_edge_become_their_frames(written: Written) -> None:
    """In this order, each only when asked for; a STATUS, too, closes the block, and counts it."""
    found = [cobs.decode(chunk) for chunk in written["reports.sent"].split(b"\0")[:-1]]
    expected: list[tuple[int, int, int, bytes]] = []
    for first, dividers, play, channels, missed, count, state, node, trip, _, what, *rest in _reports():
        tick, time, edges, edge_us, taken, dropped, sent, dropped_frames, ticks_missed, good, bad, heap = rest
        if what & 6 and count:
            head = struct.pack("<iiiHHBBH", first, dividers, play, channels, missed, count, state, tick & 0xFFFF)
            expected.append((MessageType.DATA, node, time, head))
            taken, sent = taken + count, sent + 1
        if what & 4:
            mean = channels // state if state else 0  # what stood for the time of the turns, and for their number
            counts = (tick, taken, dropped, sent, dropped_frames, ticks_missed, good, bad, heap, first, dividers, mean)
            body = struct.pack("<BBH", state, trip, 0)
            body += b"".join(struct.pack("<I", value & 0xFFFFFFFF) for value in counts)
            assert len(body) == BODIES[MessageType.STATUS].sizeof()
            expected.append((MessageType.STATUS, node, time, body))
        if what & 32:
            expected.append((MessageType.SYNC, node, time, struct.pack("<ii", edges, edge_us)))
        if what & 64:
            expected.append((MessageType.YIELD, node, time, b""))
    assert len(found) == len(expected)
    for raw, (kind, node, time, body) in zip(found, expected, strict=True):
        assert (raw[1], raw[2], struct.unpack_from("<i", raw, 8)[0]) == (kind, node, time)
        assert raw[12 : 12 + len(body)] == body
