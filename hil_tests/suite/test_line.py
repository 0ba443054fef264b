"""The line between host and board: every byte, every length, every ping, and how soon boards answer."""

from collections.abc import Callable

import numpy as np
import pytest

from jointbench.bench import Bench, Board
from jointbench.testing import functional, realtime
from jointwire import MAX_BODY, Chunk, Frame, MessageType

PINGS = 40  # to each board
PAUSE_US = 10_000
# Around 64 and 128 USB stacks lose or hold back bytes, around 254 COBS begins a new block.
LENGTHS = (0, 1, 2, 61, 62, 63, 64, 65, 66, 126, 127, 128, 129, 253, 254, 255, 256, 257, 511, 512, 513, 1023, 1024)
COUNT_BYTES = 2  # of an ECHO's body before its data
OVERHEAD = 32  # of a frame beside its body, which a board's receive buffer must hold with it


def echo_wrong(board: Board, data: bytes) -> int:
    """Bytes that do not come back from a board as they were sent."""
    answer = board.client.echo(data).body.data
    return sum(a != b for a, b in zip(answer, data, strict=False)) + abs(len(answer) - len(data))


@functional
def test_every_byte_value_comes_back(connected: Bench, measured: Callable[..., None]) -> None:
    every = bytes(range(256))
    wrong = [echo_wrong(board, data) for board in connected.all_boards for data in (every, every[::-1], bytes(255))]
    measured("line.echo_wrong", wrong)


@functional
def test_frames_of_every_critical_length_come_back(connected: Bench, measured: Callable[..., None]) -> None:
    wrong: list[int] = []
    for board, identity in zip(connected.all_boards, connected.identities, strict=True):
        longest = min(MAX_BODY - COUNT_BYTES, identity.receive_buffer - OVERHEAD)
        for length in (*(length for length in LENGTHS if length < longest), longest):
            wrong.append(echo_wrong(board, bytes((7 * k + length) & 0xFF for k in range(length))))
    measured("line.echo_wrong", wrong)


@pytest.mark.slow
@functional
def test_frames_of_every_length_come_back(connected: Bench, measured: Callable[..., None]) -> None:
    board = connected.all_boards[0]
    longest = min(MAX_BODY - COUNT_BYTES, connected.identities[0].receive_buffer - OVERHEAD)
    wrong = [echo_wrong(board, bytes(k * length >> 3 & 0xFF for k in range(length))) for length in range(longest + 1)]
    measured("line.echo_wrong", wrong)


@functional
def test_pings_are_answered(connected: Bench, measured: Callable[..., None]) -> None:
    """Sent one after the other without waiting, and none a second time: each must have a PONG of its own."""
    answered = dict.fromkeys((board.node for board in connected.all_boards), 0)

    def count(time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.PONG:
            answered[node] += 1

    for board in connected.all_boards:
        board.listen(count)
    clock = connected.clock
    for _ in range(PINGS):
        for board in connected.all_boards:
            board.keep_alive()
        end_us = clock.now_us() + PAUSE_US
        while (left_us := end_us - clock.now_us()) > 0:
            clock.wait(left_us)
    for board in connected.all_boards:
        board.ping()  # what comes behind it: all others have been answered, or never will be
        board.listen(None)
    measured("line.pings_unanswered", [PINGS + 1 - count for count in answered.values()])


REQUESTS = 500
REQUEST_PAUSE_US = 5_000  # at no fixed phase of the ticks: half of it on average


@realtime
def test_answers_come_soon(connected: Bench, measured: Callable[..., None]) -> None:
    random, clock = np.random.default_rng(0), connected.clock
    took_us: list[int] = []
    for k in range(REQUESTS):
        exchange = connected.all_boards[k % len(connected.all_boards)].ping()
        took_us.append(exchange.received_us - exchange.sent_us)
        clock.wait(int(random.integers(REQUEST_PAUSE_US)))
    measured("latency.answer_median", float(np.median(took_us)) * 1e-3)
    measured("latency.answer_worst", max(took_us) * 1e-3)
