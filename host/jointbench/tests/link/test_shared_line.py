"""Several boards on one line: all are heard, none speaks over another, and one's trouble is not the others'."""

from dataclasses import dataclass, field

import pytest

from jointbench.errors import BoardSilent
from jointbench.link.clock import AttendedClock
from jointbench.link.conversation import Conversation
from jointbench.link.shared_line import QUIET_US, SharedLine
from jointbench.tests.link.wire import Wire, WireBoard
from jointwire import Chunk, Frame, MessageType, Noise

# A joint's DATA: 14 bytes a tick and two slow channels, 64 ticks a block, with head, header, CRC and COBS.
BLOCK, BLOCK_US = 914, 64_000


@dataclass
class Rig:
    wire: Wire
    line: SharedLine = field(init=False)
    clock: AttendedClock = field(init=False)
    talks: dict[int, Conversation] = field(init=False)
    heard: list[tuple[int, Chunk]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.line = SharedLine(self.wire, self.wire, 921600)  # type: ignore[arg-type]
        self.clock = AttendedClock(self.wire, [self.line])
        self.talks = {
            node: Conversation(self.line, node, f"j{node}", self.clock, lambda frame: False) for node in self.wire.nodes
        }
        for talk in self.talks.values():
            talk.listener = lambda time_us, node, chunk: self.heard.append((node, chunk))

    def attend(self) -> None:
        for node in self.talks:
            self.line.attend(node, 4096)

    def pass_time(self, duration_us: int) -> None:
        self.wire.pass_time(self.clock, duration_us)  # type: ignore[arg-type]

    def ask(self, node: int, kind: MessageType = MessageType.STOP, **fields) -> Frame:
        return self.talks[node].ask(kind, MessageType.ACK, lambda body: True, **fields)[1]

    def frames(self, node: int, kind: MessageType) -> list[Frame]:
        found = [chunk.content for of, chunk in self.heard if of == node]
        return [content for content in found if isinstance(content, Frame) and content.type is kind]

    @property
    def noise(self) -> list[int]:
        return [node for node, chunk in self.heard if isinstance(chunk.content, Noise)]


def rig(*boards: WireBoard, **wire) -> Rig:
    return Rig(Wire(*boards, **wire))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_streaming_boards_are_heard_before_their_buffers_are_full(count: int) -> None:
    """Five boards at 1 kHz fill 80 % of 921600 baud."""
    each = rig(*(WireBoard(node) for node in range(1, count + 1)))
    each.attend()
    for node in each.talks:
        each.wire.stream(node, BLOCK_US, BLOCK)
    each.pass_time(5_000_000)
    assert each.wire.collisions == 0
    assert not each.noise
    for node, board in each.wire.boards.items():
        assert board.dropped == 0
        assert len(each.frames(node, MessageType.ECHO_REPLY)) >= 5_000_000 // BLOCK_US - 2
        # Ten a second keep a board alive and its clock seen, as on a line of its own.
        assert len(each.frames(node, MessageType.PONG)) >= 50


def test_nobody_is_polled_before_it_was_greeted() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.pass_time(1_000_000)
    assert each.wire.written == 0
    each.line.attend(2, 4096)
    each.pass_time(1_000_000)
    assert not each.wire.boards[1].served
    assert len(each.wire.boards[2].served) >= 10


def test_polls_come_at_no_fixed_phase_of_a_tick() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.attend()
    each.pass_time(4_000_000)
    assert len({frame.body.nonce % 1000 for frame in each.frames(1, MessageType.PONG)}) > 20


def test_a_request_waits_for_the_line_and_is_answered() -> None:
    each = rig(WireBoard(1), WireBoard(2), WireBoard(3))
    each.attend()
    for node in each.talks:
        each.wire.stream(node, BLOCK_US, BLOCK)
    for _ in range(10):
        for node in each.talks:
            assert each.ask(node, MessageType.WRITE, register=1, value=2).node == node
    assert each.wire.collisions == 0
    for board in each.wire.boards.values():
        assert len([frame for frame in board.served if frame.type is MessageType.WRITE]) == 10


def test_a_board_that_is_not_there_costs_the_others_little() -> None:
    each = rig(WireBoard(1), WireBoard(2, mute=True), WireBoard(3))
    each.attend()
    for node in (1, 3):
        each.wire.stream(node, BLOCK_US, BLOCK)
    before = each.wire.now_us()
    with pytest.raises(BoardSilent, match=r"^j2 \(node 2\): no answer to STOP in 4 tries of \d+ ms, and not one byte"):
        each.ask(2)
    assert each.wire.now_us() - before < 4 * (100_000 + each.line.patience_us) + 10_000
    assert len([frame for frame in each.wire.boards[2].served if frame.type is MessageType.STOP]) == 4
    each.pass_time(3_000_000)
    assert each.wire.boards[1].dropped == each.wire.boards[3].dropped == 0
    assert each.ask(3).node == 3


def test_a_yield_that_is_lost_ends_the_turn_all_the_same() -> None:
    each = rig(WireBoard(1, keeps_line=True), WireBoard(2))
    each.attend()
    before = each.wire.now_us()
    assert each.ask(1).node == 1
    assert each.ask(2).node == 2
    assert each.wire.now_us() - before < QUIET_US + 20_000
    assert each.wire.collisions == 0


def test_a_board_that_never_stops_speaking_does_not_keep_the_line() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.ask(1)
    each.line.send(1, each.talks[1].frame(MessageType.STOP))
    for _ in range(400):  # half of the time, for a second
        each.wire.babble(1, b"\x55" * 110)
        each.pass_time(2_500)
    assert each.ask(2).node == 2


def test_stop_does_not_wait_for_its_turn() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.attend()
    each.pass_time(100_000)
    while each.line._turn:
        each.pass_time(100)
    each.line.stop_all()
    each.pass_time(1_000)
    for board in each.wire.boards.values():
        assert board.served[-1].type is MessageType.STOP
        assert board.served[-1].node == 0xFF
    assert each.wire.collisions == 0


def test_a_stop_that_collides_is_confirmed_in_turn() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.attend()
    each.wire.boards[1].ring += bytes([1]) * 2000 + b"\0"
    each.line.send(1, each.talks[1].ping_frame())
    each.pass_time(5_000)  # board 1 speaks for 20 ms
    each.line.stop_all()
    for node in each.talks:
        assert each.ask(node).body.request == MessageType.STOP
    assert each.wire.collisions > 0
    assert all(board.served[-1].type is MessageType.STOP for board in each.wire.boards.values())


def test_noise_is_put_down_to_the_node_whose_turn_it_was() -> None:
    hit = iter([False, False, True, *[False] * 1000])

    def damage(data: bytes) -> bytes:
        return data.replace(b"\0", b"\x33", 1) if next(hit) else data

    each = rig(WireBoard(1), WireBoard(2), damage=damage)
    each.ask(1)
    each.ask(2)
    each.ask(2)  # its ACK and its YIELD run into each other, so it asks again
    assert each.noise == [2]


def test_the_hosts_own_words_are_not_a_boards() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.wire.sink(each.talks[2].frame(MessageType.STOP), 1000)
    assert each.heard == []
    assert each.talks[2].last_frame_us == 0


def test_a_request_that_waits_already_is_not_sent_twice() -> None:
    each = rig(WireBoard(1), WireBoard(2, mute=True))
    each.line.send(2, each.talks[2].frame(MessageType.STOP))
    request = each.talks[1].frame(MessageType.STOP)
    for _ in range(3):
        each.line.send(1, request)
    each.pass_time(500_000)
    assert len(each.wire.boards[1].served) == 1


def test_a_busy_computer_does_not_end_a_turn_whose_answer_has_come() -> None:
    each = rig(WireBoard(1), WireBoard(2))
    each.line.send(1, each.talks[1].frame(MessageType.STOP))
    held: list[bytes] = []
    deliver, each.wire.sink = each.wire.sink, lambda data, time_us: held.append(data)
    each.wire.wait(QUIET_US)  # nobody looks at the port meanwhile
    each.wire.wait(QUIET_US)
    written = each.wire.written
    each.line.send(2, each.talks[2].frame(MessageType.STOP))
    assert each.wire.written == written
    deliver(b"".join(held), each.wire.now_us())
    each.line.serve()
    each.wire.wait(1_000)
    assert len(each.wire.boards[2].served) == 1
    assert each.wire.collisions == 0
