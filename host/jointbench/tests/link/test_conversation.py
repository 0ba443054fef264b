"""Requests and answers: repeated a few times in the target's time, and never mistaken for each other."""

import pytest

from jointbench.errors import BoardSilent
from jointbench.link.conversation import ANSWER_TIMEOUT_US, Conversation
from jointbench.link.line import Line
from jointbench.tests.link.wire import Wire, WireBoard
from jointwire import MessageType


def conversation(board: WireBoard, **wire) -> tuple[Wire, Conversation]:
    board.shared = False
    line = Wire(board, **wire)
    talk = Conversation(Line(line, line), 1, "j1", line, lambda frame: False)  # type: ignore[arg-type] - a simulated wire
    talk.understood = True
    return line, talk


def read(talk: Conversation) -> int:

    def matches(body) -> bool:
        return (body.first, body.count) == (4, 2)

    return talk.ask(MessageType.READ, MessageType.VALUES, matches, first=4, count=2)[1].body.values[0]


def test_four_tries_of_100_ms_of_the_targets_time() -> None:
    board = WireBoard(1, mute=True)
    wire, talk = conversation(board)
    with pytest.raises(BoardSilent, match=r"^j1 \(node 1\): no answer to STOP in 4 tries of 100 ms, and not one byte"):
        talk.ask(MessageType.STOP, MessageType.ACK, lambda body: True)
    assert wire.now_us() == 4 * ANSWER_TIMEOUT_US
    assert [frame.type for frame in board.served] == [MessageType.STOP] * 4
    assert len({frame.seq for frame in board.served}) == 1


def test_writing_flash_may_take_a_second() -> None:
    wire, talk = conversation(WireBoard(1, delays_us=[900_000]))
    talk.ask(MessageType.SAVE, MessageType.ACK, lambda body: True)
    assert 900_000 < wire.now_us() < 1_000_000
    assert len(wire.boards[1].served) == 1


def test_a_late_answer_is_the_answer() -> None:
    wire, talk = conversation(WireBoard(1, delays_us=[150_000]))
    talk.ask(MessageType.STOP, MessageType.ACK, lambda body: True)
    assert wire.now_us() < 110_000  # the second try is answered at once


def test_a_late_answer_is_not_the_next_requests() -> None:
    """READ answered late and twice; the value changes; the next READ must not get an answer to the first one."""
    board = WireBoard(1, delays_us=[101_000, 5_000], value=7)
    _, talk = conversation(board)
    assert read(talk) == 7
    board.value = 8
    assert read(talk) == 8
    assert [frame.type for frame in board.served].count(MessageType.PING) == 1
    board.value = 9
    assert read(talk) == 9
    assert [frame.type for frame in board.served].count(MessageType.PING) == 1


def test_an_ack_of_another_sequence_number_is_no_answer() -> None:
    board = WireBoard(1, delays_us=[101_000, 5_000])
    _, talk = conversation(board)
    talk.ask(MessageType.WRITE, MessageType.ACK, lambda body: True, register=1, value=1)
    _, frame = talk.ask(MessageType.WRITE, MessageType.ACK, lambda body: True, register=1, value=2)
    assert frame.body.request_seq == board.served[-1].seq


def test_answers_that_nobody_waits_for_are_not_kept() -> None:
    wire, talk = conversation(WireBoard(1))
    for _ in range(100):
        talk.line.keep_alive(1)
        wire.wait(10_000)
    assert wire.received > 2000
    assert talk._answers is None


def test_sessions_begin_with_different_numbers() -> None:
    firsts = set()
    for start_us in range(0, 300_000, 1000):
        wire = Wire(WireBoard(1))
        wire.wait(start_us)
        talk = Conversation(Line(wire, wire), 1, "j1", wire, lambda frame: False)  # type: ignore[arg-type] - a simulated wire
        firsts.add(talk._sequence)
    # 300 of 65536 numbers drawn at random would have 0.7 pairs of equals; three pairs have a chance below 4 %.
    assert len(firsts) >= 297


def test_the_wrap_of_numbers_and_nonces_is_no_matter() -> None:
    wire, talk = conversation(WireBoard(1, value=3))
    wire.wait(2**32 - 500_000)
    talk._sequence = 0xFFF0
    for _ in range(40):
        assert read(talk) == 3
        talk.ask(MessageType.STOP, MessageType.ACK, lambda body: True)
        wire.wait(20_000)
