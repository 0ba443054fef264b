"""How long a QEMU board's own work takes, as it says itself: counted in instructions, and so always the same."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import QEMU, BoardEntry
from hil_tests.virtual_bench.board import TICK_IN, BoardClock
from hil_tests.virtual_bench.emulators import Emulators
from jointbench.bench import Connections, read_bench_file
from jointwire import Chunk, Frame, MessageType

CLOCKS_A_US = 25  # of the board's core, which is said to do an instruction a clock
TURNS = (0, 0, 10_000, 1_000_000)  # the first time names are still looked up
# In each of its first ticks it works through a loop of two instructions, then it tells how long that took.
WORK = f"""
import struct, micropython
from board import Board
@micropython.asm_thumb
def work(r0):
    label(AGAIN)
    sub(r0, r0, 1)
    bne(AGAIN)
board = Board()
took = []
def answer():
    board.wait_tick()
    board.outputs[:4] = board.inputs[:4]
for turns in {TURNS}:
    answer()
    begun = board.stopwatch_us()
    work(turns + 1)
    took.append(board.stopwatch_us() - begun)
while True:
    answer()
    struct.pack_into("<4I", board.outgoing, board.OUTGOING_AT, *took)
    board.send(4 * len(took))
"""


def told(folder: Path) -> list[int]:
    """What a board with WORK tells."""
    program = folder / "work.py"
    folder.mkdir()
    program.write_text(WORK, encoding="utf-8")
    entry = BoardEntry(1, "j1", QEMU, 0, program, None, None, BoardClock())
    board = Emulators().start(entry, folder / "board", {"node": 1, "uid": "00", "facts": {}})
    data = b""
    try:
        for tick in range(1, len(TURNS) + 2):
            message = np.zeros((), TICK_IN)
            message["tick"] = tick
            board.send_tick(message.tobytes())
            _, _, data = board.receive_tick(tick)
    finally:
        board.close()
    return np.frombuffer(data, "<u4").tolist()


def test_it_counts_instructions(tmp_path: Path) -> None:
    need_qemu()
    first, second = told(tmp_path / "one"), told(tmp_path / "two")
    assert first == second
    _, alone, *worked = first
    # A look at the stopwatch makes objects, and finding room for them takes some hundred instructions more or less.
    for turns, took in zip(TURNS[2:], worked, strict=True):
        assert took - alone == pytest.approx(2 * turns / CLOCKS_A_US, abs=10)


def test_where_instructions_are_not_counted_it_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_qemu()
    monkeypatch.setattr("hil_tests.virtual_bench.qemu_board._INSTRUCTION_TIME", None)
    assert told(tmp_path / "one") == [0] * len(TURNS)


def statuses(folder: Path) -> list[tuple[int, int]]:
    """Longest tick and longest pause to collect memory [us] by each STATUS, over two seconds of ECHOs."""
    folder.mkdir()
    found: list[tuple[int, int]] = []

    def listen(time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.STATUS:
            found.append((chunk.content.body.longest_tick_us, chunk.content.body.longest_gc_us))

    with (
        virtual_bench(write_bench_file(folder, None), out=folder / "sim", board="qemu:") as live,
        contextlib.closing(Connections(read_bench_file(live))) as connections,
    ):
        board, clock = connections.boards["j1"], connections.clock
        board.hello()
        board.listen(listen)
        end_us = clock.now_us() + 2_200_000
        while clock.now_us() < end_us:
            board.client.echo(b"which takes memory")
            clock.wait(10_000)
    return found


def test_status_tells_the_longest_tick_and_pause(tmp_path: Path) -> None:
    """A tick with a pause in it is no shorter than the pause; each STATUS tells the longest since the one before."""
    need_qemu()
    found = statuses(tmp_path / "one")
    assert len(found) >= 2
    pauses = [pause_us for _, pause_us in found]
    assert pauses == sorted(pauses)
    assert max(tick_us for tick_us, _ in found) >= pauses[-1] > 0


@pytest.mark.slow
def test_status_tells_the_same_in_every_run(tmp_path: Path) -> None:
    need_qemu()
    assert statuses(tmp_path / "one") == statuses(tmp_path / "two")
