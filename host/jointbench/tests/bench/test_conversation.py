"""Requests and answers: repeated a few times in the target's time, and never mistaken for each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

import jointwire
from jointbench.bench.client import Client
from jointbench.bench.conversation import (
    ANSWER_TIMEOUT_US,
    LINE_NAME,
    Conversation,
    line_beside,
    refusal_text,
    request_refusal,
)
from jointbench.bench.line import Line
from jointbench.errors import BoardSilent
from jointbench.tests.bench.wire import Wire, WireBoard
from jointwire import ANSWERS, BODIES, REGISTERS, Frame, MessageType, Refusal, decode_frame, encode_frame


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


GOLDEN: list[dict[str, Any]] = json.loads((Path(jointwire.__file__).parent / "tests/vectors.json").read_text("utf-8"))
REQUESTS = [vector for vector in GOLDEN if MessageType(vector["type"]) in ANSWERS]


class KeepingAsker:
    """An asker that keeps what was asked, and answers with what it is given."""

    def __init__(self, answer: bytes) -> None:
        self.asked = b""
        self.matched: bool | None = None
        self.answer = decode_frame(answer[:-1])

    def __call__(
        self,
        kind: MessageType,
        answer: MessageType,
        matches: Callable[[Any], bool],
        **fields: Any,
    ) -> tuple[int, Frame]:
        assert answer is self.answer.type
        self.asked = decode_frame(encode_frame(kind, 1, 0, **fields)[:-1]).payload
        self.matched = matches(self.answer.body)
        return 77, self.answer


def _arguments(vector: dict[str, Any]) -> dict[str, Any]:
    """The fields as a method takes them: no count of what it can count, registers by name."""
    fields = {name: bytes.fromhex(v) if isinstance(v, str) else v for name, v in vector["fields"].items()}
    if fields.keys() & {"knots", "currents", "data"}:
        del fields["count"]
    if "register" in fields:
        fields["register"] = next(r.name for r in REGISTERS if r.id == fields["register"])
    return fields


def _answer(vector: dict[str, Any], **changes: Any) -> bytes:
    """A golden answer with the fields that it repeats from the request."""
    answer = ANSWERS[MessageType(vector["type"])]
    golden = next(v for v in GOLDEN if v["type"] == answer.type)
    body = BODIES[answer.type].parse(bytes.fromhex(golden["body"]))
    fields = {name: body[name] for name in golden["fields"]}
    for name in answer.echoed:
        value = vector["fields"][name]
        fields[name] = bytes.fromhex(value) if isinstance(value, str) else value
    if answer.type is MessageType.VALUES:
        fields["values"] = [7] * fields["count"]
    return encode_frame(answer.type, 1, 0, **fields | changes)


# A register that no board has cannot be asked for by name.
KNOWN = [v for v in REQUESTS if v["fields"].get("register") in (None, *(r.id for r in REGISTERS))]


@pytest.mark.parametrize("vector", KNOWN, ids=lambda vector: vector["message"])
def test_a_method_asks_with_the_vectors_bytes(vector: dict[str, Any]) -> None:
    line = KeepingAsker(_answer(vector))
    method = getattr(Client(line), vector["message"].lower())
    answer = method(**_arguments(vector))
    assert line.asked.hex() == vector["body"]
    assert line.matched is True
    assert (answer.received_us, answer.body, answer.frame) == (77, line.answer.body, line.answer)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("READ", {"first": 6}),
        ("READ", {"count": 3, "values": [1, 2, 3]}),
        ("PING", {"nonce": 1}),
        ("DICT", {"offset": 0}),
        ("ECHO", {"count": 4, "data": b"\0\1\3\1"}),
    ],
)
def test_an_answer_to_another_request_is_not_taken(message: str, changes: dict[str, Any]) -> None:
    vector = next(vector for vector in REQUESTS if vector["message"] == message)
    line = KeepingAsker(_answer(vector, **changes))
    getattr(Client(line), message.lower())(**_arguments(vector))
    assert line.matched is False


def test_every_request_is_asked_here() -> None:
    assert {vector["message"] for vector in KNOWN} == {kind.name for kind in ANSWERS}


@pytest.mark.parametrize("refusal", list(Refusal))
def test_every_refusal_has_words(refusal: Refusal) -> None:
    text = refusal_text(refusal, 3)
    assert "does not know (value" not in text
    assert "{" not in text


def test_words_follow_the_request_where_a_code_means_two_things() -> None:
    assert refusal_text(Refusal.INCOMPLETE, 3, request=MessageType.KNOTS).startswith("it has only 3 knots so far")
    assert refusal_text(Refusal.INCOMPLETE, 3, request=MessageType.ARM).startswith("knot 3 is outside the limits")


def test_a_refusal_repeats_what_was_requested() -> None:
    write = request_refusal(MessageType.WRITE, {"register": 4, "value": 9}, Refusal.READ_ONLY, 0)
    assert write.startswith("refused WRITE current.scale = 9: the register is a fact of the board")
    load = request_refusal(MessageType.LOAD, {"count": 7, "repeats": 2, "crc32": 5}, Refusal.BAD_CRC, 0)
    assert load == "refused LOAD of 7 knots, 2 times: the trajectory arrived damaged; send it again"


def test_a_changed_configuration_names_its_checksum_as_people_compare_it() -> None:
    assert "CRC-32 is ffffffff" in refusal_text(Refusal.BAD_CONFIG, -1)


def test_a_code_of_a_later_release_is_told_as_it_is() -> None:
    assert refusal_text(200, 7) == "refusal 200, which this release does not know (value 7)"


USB_LINE = Path(__file__).parents[4] / "firmware" / "boards" / "drivers" / "rp2_usb_line.py"


def port(path: Path, location: str | None, interface: str | None) -> ListPortInfo:
    path.touch()
    info = ListPortInfo(str(path))
    info.location, info.interface = location, interface
    return info


def test_the_line_is_that_of_the_same_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [
        port(tmp_path / "ttyACM0", "1-2:1.0", "Board CDC"),
        port(tmp_path / "ttyACM1", "1-2:1.2", LINE_NAME),
        port(tmp_path / "ttyACM2", "1-20:1.0", "Board CDC"),
        port(tmp_path / "ttyACM3", "1-20:1.2", LINE_NAME),
        port(tmp_path / "ttyACM4", "1-3:1.0", "Board CDC"),
        port(tmp_path / "ttyS0", None, None),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    by_id = tmp_path / "usb-MicroPython_Board_in_FS_mode-if00"
    by_id.symlink_to(tmp_path / "ttyACM2")
    assert line_beside(str(tmp_path / "ttyACM0")) == str(tmp_path / "ttyACM1")
    assert line_beside(str(by_id)) == str(tmp_path / "ttyACM3")
    for other in ("ttyACM1", "ttyACM4", "ttyS0", "socket"):
        assert line_beside(str(tmp_path / other)) is None


def test_the_firmware_gives_it_this_name() -> None:
    assert f'NAME = "{LINE_NAME}"\n' in USB_LINE.read_text(encoding="utf-8")
