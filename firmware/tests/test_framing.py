"""The line's kernels on both emulated boards, against zlib and package cobs."""

import random
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cobs import cobs

from firmware.tests.board_constants import constants
from firmware.tests.driver import FIRMWARE, flash, micropython
from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.qemu import run_program
from jointwire import MAX_BODY, MessageType

SEED = 6
RING = constants("jointboard/framing")["RING"]
INT32 = (-(2**31), -1, 0, 1, 2**31 - 1)

# For each version of the kernels there is: frames.bin queued and drained in pieces to VERSION.frames; the ring filled
# up with each reserve of reserves.bin, to VERSION.drops; the head of a DATA block of blocks.bin, to VERSION.blocks.
PROGRAM = """
import struct
from array import array
from jointboard import framing, link, tick
versions = {"viper": framing}
buffer, outgoing, block = bytearray(framing.LARGEST), bytearray(512), bytearray(framing.LARGEST)
line, cells, inputs = array("i", link.line), array("i", bytes(4 * tick.CELLS)), array("i", bytes(116))
line[framing.TARGET] = link.address(outgoing)
at = link.address(line)

def describe(kind, node, time, seed, length, reserve):
    line[framing.SOURCE], line[framing.BODY_LENGTH], line[framing.KIND] = link.address(buffer), length, kind
    line[framing.NODE], line[framing.TIME], line[framing.SEED], line[framing.RESERVE] = node, time, seed, reserve

def empty():
    line[framing.HEAD] = line[framing.TAIL] = line[framing.READY] = 0

for name, kernels in versions.items():
    line[framing.SEQUENCE] = 65000
    empty()
    head = bytearray(16)
    with open("frames.bin", "rb") as source, open(name + ".frames", "wb") as sent:
        while source.readinto(head):
            kind, node, length, time, seed, most = struct.unpack("<BBHiiI", head)
            source.readinto(memoryview(buffer)[framing.BODY :], length)
            describe(kind, node, time, seed, length, 0)
            assert kernels.queue(at) == 1
            while line[framing.READY] >= most:
                assert kernels.drain(at, most) == most
                sent.write(memoryview(outgoing)[:most])
        while line[framing.READY]:
            sent.write(memoryview(outgoing)[: kernels.drain(at, 512)])
        assert line[framing.TAIL] == line[framing.HEAD]
    with open("reserves.bin", "rb") as source, open(name + ".drops", "wb") as drops:
        while source.readinto(head):
            kind, shared, length, reserve, _, _ = struct.unpack("<BBHiiI", head)
            empty()
            line[framing.SHARED], line[framing.SENT], line[framing.DROPPED] = shared, 0, 0
            first = line[framing.SEQUENCE]
            buffer[:] = bytes(framing.LARGEST)
            describe(kind, 1, 0, 0, length, reserve)
            while kernels.queue(at):
                pass
            taken = (line[framing.SEQUENCE] - first) & 0xFFFF
            values = taken, line[framing.SENT], line[framing.DROPPED], line[framing.HEAD], line[framing.READY]
            drops.write(struct.pack("<5i", *values))
        line[framing.SHARED] = 0
    cells[tick.INPUTS], line[framing.BLOCK_AT] = link.address(inputs), link.address(block)
    values = bytearray(40)
    with open("blocks.bin", "rb") as source, open(name + ".blocks", "wb") as blocks:
        while source.readinto(values):
            fields = struct.unpack("<10i", values)
            cells[tick.FIRST_TICK], cells[tick.DIVIDERS], cells[tick.FIRST_PLAY] = fields[:3]
            cells[framing.STREAM_CHANNELS], missed, cells[tick.COUNT], cells[tick.STATE] = fields[3:7]
            cells[framing.BOARD_NODE], inputs[1], size = fields[7:]
            cells[tick.SAMPLE] = line[framing.BLOCK_AT] + framing.SAMPLES + size
            count = kernels.take_block(at, link.address(cells), missed)
            assert line[framing.SOURCE] == line[framing.BLOCK_AT] and line[framing.SEED] == link.line[framing.SCHEMA]
            assert line[framing.RESERVE] == framing.LEFT_BY_DATA
            assert cells[tick.COUNT] == 0 and cells[tick.SAMPLE] == line[framing.BLOCK_AT] + framing.SAMPLES
            blocks.write(memoryview(block)[framing.BODY : framing.SAMPLES])
            told = count, line[framing.KIND], line[framing.NODE], line[framing.TIME], line[framing.BODY_LENGTH]
            blocks.write(struct.pack("<5i", *told))
"""


class Queued(NamedTuple):
    """A frame as the cells describe it, and how many bytes the Hal takes at a time."""

    kind: int
    node: int
    time: int
    seed: int
    most: int
    body: bytes


Found = dict[str, dict[str, bytes]]
"""What each version of the kernels wrote, by the file's suffix."""


def _bodies(rng: random.Random) -> Iterator[bytes]:
    for length in range(MAX_BODY + 1):
        zeros = rng.choice((0, 0.003, 0.1, 0.4, 0.9, 1))  # groups of 254 with and without an end there
        yield bytes(0 if rng.random() < zeros else rng.randint(1, 255) for _ in range(length))
    for run in (252, 253, 254, 255, 507, 508, 509, 1016):
        for before in (b"", b"\0", b"\1", b"\0\0", bytes(7)):
            for after in (b"", b"\0", b"\1", b"\0\1"):
                yield before + bytes([rng.randint(1, 255)]) * run + after


def _frames() -> list[Queued]:
    rng = random.Random(SEED)

    def int32() -> int:
        return rng.choice((*INT32, rng.randint(INT32[0], INT32[-1])))

    frames = [
        Queued(rng.randrange(256), rng.randrange(256), int32(), int32(), rng.choice((1, 7, 92, 512)), body)
        for body in _bodies(rng)
    ]
    # And some that end where the ring does, or a byte before or after.
    taken = len(_encoded(frames))
    for beyond in (-1, 0, 1):
        left = RING + beyond - taken % RING
        while left > 1000:  # without runs, a body takes 18 bytes more
            frames.append(Queued(32, 1, 0, 0, 512, bytes(482)))
            left -= 500
        frames += [Queued(32, 1, 0, 0, 512, bytes(left - 18)), Queued(32, 1, -1, -1, 512, b"12345678")]
        taken = len(_encoded(frames))
    return frames


def _encoded(frames: list[Queued]) -> bytes:
    """What the host would send for the same."""
    sent = b""
    for number, each in enumerate(frames):
        sequence = (65000 + number) & 0xFFFF
        raw = struct.pack("<BBBBHHi", 1, each.kind, each.node, 0, sequence, len(each.body), each.time) + each.body
        sent += cobs.encode(raw + struct.pack("<I", zlib.crc32(raw, each.seed & 0xFFFFFFFF))) + b"\0"
    return sent


def _reserves() -> list[tuple[int, int, int, int]]:
    """Kind, line shared or not, length of the body, bytes to stay free: so many that a frame just fits, or just not."""
    rng = random.Random(SEED)
    reserves: list[tuple[int, int, int, int]] = []
    for kind in (MessageType.DATA, MessageType.YIELD, MessageType.ACK):
        for length in (0, 1, 237, 238, 239, 492, MAX_BODY):  # beside the ends of a group of 254
            size = 12 + length + 4
            for short in (0, 1):
                free = RING - 1 - rng.randint(1, 5) * (size + 2)
                reserves.append((kind, rng.randrange(2), length, free - size - size // 254 - 2 + short))
    return reserves


def _blocks() -> list[tuple[int, ...]]:
    rng = random.Random(SEED)
    return [
        (*(rng.choice((*INT32, rng.randint(INT32[0], INT32[-1]))) for _ in range(3)), rng.randrange(2**12),
         rng.choice((0, 1, 0xFFFF)), rng.randint(1, 64), rng.randrange(7), rng.randint(1, 254),
         rng.choice(INT32), 2 * rng.randrange(543))
        for _ in range(200)
    ]  # fmt: skip


@pytest.fixture(scope="module", params=["unix", pytest.param("qemu", marks=pytest.mark.slow)])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What the program wrote, on either kind of emulated board."""
    data = {
        "frames.bin": b"".join(
            struct.pack("<BBHiiI", each.kind, each.node, len(each.body), each.time, each.seed, each.most) + each.body
            for each in _frames()
        ),
        "reserves.bin": b"".join(struct.pack("<BBHiiI", *each, 0, 0) for each in _reserves()),
        "blocks.bin": b"".join(struct.pack("<10i", *each) for each in _blocks()),
    }
    if request.param == "unix":
        versions, written = ("viper",), _on_unix(tmp_path_factory.mktemp("board"), data)
    else:
        versions, written = ("viper",), _on_qemu(data)
    suffixes = ("frames", "drops", "blocks")
    return {name: {suffix: written[f"{name}.{suffix}"] for suffix in suffixes} for name in versions}


def _on_unix(folder: Path, data: dict[str, bytes]) -> dict[str, bytes]:
    flash(folder, program=PROGRAM)
    for name, content in data.items():
        (folder / name).write_bytes(content)
    subprocess.run([micropython(), "main.py"], cwd=folder, check=True, timeout=60)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _on_qemu(data: dict[str, bytes]) -> dict[str, bytes]:
    need_qemu()
    package = (FIRMWARE / "jointboard").iterdir()
    files = {f"jointboard/{path.name}": path.read_bytes() for path in package if path.is_file()}
    return run_program(PROGRAM, {**files, **data})


def test_a_queued_frame_is_the_hosts_to_the_byte(found: Found) -> None:
    """Header, CRC and COBS, wherever in the ring the frame lies and however it is fetched from there."""
    expected = _encoded(_frames())
    assert len(expected) > 10 * RING  # it went round
    for name, files in found.items():
        assert files["frames"] == expected, name


def test_what_finds_no_room_takes_nothing_but_a_count(found: Found) -> None:
    """One byte of the ring stays empty; a frame is given the room it takes when it has no zeros."""
    expected = b""
    for kind, shared, length, reserve in _reserves():
        size = 12 + length + 4
        queued = head = 0
        while RING - 1 - head >= size + size // 254 + 2 + reserve:
            head += size + 2  # its body is all zeros
            queued += 1
        ready = head if not shared or kind == MessageType.YIELD else 0
        expected += struct.pack("<5i", queued, queued, 1, head, ready)
    for name, files in found.items():
        assert files["drops"] == expected, name


def test_a_block_becomes_a_data_frame(found: Found) -> None:
    expected = b""
    for first, dividers, play, channels, missed, count, state, node, time, size in _blocks():
        expected += struct.pack("<iiiHHBB", first, dividers, play, channels, missed, count, state)
        expected += struct.pack("<5i", count, MessageType.DATA, node, time, 18 + size)
    for name, files in found.items():
        assert files["blocks"] == expected, name
