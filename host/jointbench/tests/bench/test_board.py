"""One board: what it is sent, and what is made of what it says."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from jointbench.bench.board import Board, cached_schema
from jointbench.bench.identity import Identity
from jointbench.errors import BoardRefused, BoardSilent
from jointbench.tests.bench.wire import HELLO_ACK, Wire, WireBoard
from jointwire import (
    BY_NAME,
    Frame,
    MessageType,
    Refusal,
    Schema,
    SchemaError,
    State,
    config_crc,
    decode_frame,
    encode_frame,
    own_schema,
    schema_hash,
)


def board(far: WireBoard, **more) -> tuple[Wire, Board]:
    far.shared = False
    wire = Wire(far)
    return wire, Board(wire, wire, **more)  # type: ignore[arg-type] - a simulated wire


def requests(far: WireBoard, kind: MessageType):
    return [frame for frame in far.served if frame.type is kind]


def test_a_trajectory_is_sent_in_parts_that_the_boards_buffer_holds() -> None:
    far = WireBoard(1)
    _, near = board(far)
    knots = np.arange(200, dtype=np.int32).reshape(100, 2)
    near.upload(knots, 3)
    sent = requests(far, MessageType.KNOTS)
    assert b"".join(frame.body.knots for frame in sent) == knots.astype("<i4").tobytes()
    assert [frame.body.offset for frame in sent] == [0, 28, 56, 84]
    for frame in sent:
        assert len(encode_frame(MessageType.KNOTS, 1, frame.seq, payload=frame.payload)) <= far.hello["receive_buffer"]
    assert requests(far, MessageType.LOAD)[0].body.count == 100
    assert near.state is State.LOADED


def test_it_is_armed_by_a_fresh_token_and_the_registers_this_host_knows() -> None:
    far = WireBoard(1, value=5)
    _, near = board(far)
    near.read_registers()
    near.write_register("limit.current", 1234)
    near.arm()
    near.arm()
    first, second = (frame.body for frame in requests(far, MessageType.ARM))
    assert [frame.type for frame in far.served[-2:]] == [MessageType.HELLO, MessageType.ARM]
    assert (first.token, second.token) == (8, 9)
    assert first.config_crc == config_crc({**dict.fromkeys(BY_NAME, 5), "limit.current": 1234})


def test_what_the_board_refused_to_take_it_is_not_believed_to_have() -> None:
    far = WireBoard(1, value=5)
    _, near = board(far)
    near.read_registers()
    far.refusal = Refusal.WRONG_STATE
    with pytest.raises(BoardRefused, match=r"refused WRITE limit\.current = 1234: not allowed in state"):
        near.write_register("limit.current", 1234)
    assert near.facts is not None
    assert near.facts.registers["limit.current"] == 5


def test_another_release_that_cannot_describe_itself() -> None:
    far = WireBoard(1)
    far.hello["schema_hash"] = 0x12345678
    far.refusal = Refusal.UNKNOWN_MESSAGE
    _, near = board(far, update="Copy its firmware anew.")
    with pytest.raises(BoardRefused) as caught:
        near.hello()
    assert "schema 12345678" in str(caught.value)
    assert "what differs is not known (j1 (node 1): refused DICT: this firmware does not know" in str(caught.value)
    assert str(caught.value).endswith(". Copy its firmware anew.")


def test_an_ack_is_no_answer_where_the_answer_has_a_type_of_its_own() -> None:
    _, near = board(WireBoard(1))
    with pytest.raises(BoardSilent, match="no answer to DICT in 4 tries of 100 ms, though 4 of its frames came"):
        near.client.dict(0)


def test_a_state_of_a_later_release_counts_as_driving() -> None:
    far = WireBoard(1)
    far.hello["state"] = 77
    _, near = board(far)
    near.greet()
    assert near.state is None
    assert near.is_driving


def test_a_ping_gives_times_of_both_sides() -> None:
    wire, near = board(WireBoard(1))
    wire.wait(12_345)
    exchange = near.ping()
    assert exchange.sent_us == 12_345
    assert 0 < exchange.received_us - exchange.sent_us < 2_000


def test_telling_is_not_waiting() -> None:
    far = WireBoard(1)
    wire, near = board(far)
    near.tell(MessageType.STOP)
    assert wire.now_us() == 0
    wire.wait(10_000)
    assert [frame.type for frame in far.served] == [MessageType.STOP]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "jointbench" / "schemas"


@pytest.fixture
def other() -> Schema:
    values = json.loads(own_schema().text)
    values["registers"].pop()
    return Schema.from_text(json.dumps(values))


def never() -> bytes:
    raise AssertionError("the board was asked")


def test_ones_own_is_known_and_kept(cache: Path) -> None:
    own = own_schema()
    assert cached_schema(own.hash, never) == own
    assert (cache / f"{own.hash:08x}.json").read_text(encoding="utf-8") == own.text


def test_another_is_fetched_once(cache: Path, other: Schema) -> None:
    assert cached_schema(other.hash, lambda: zlib.compress(other.text.encode())) == other
    assert cached_schema(other.hash, never) == other
    assert [path.name for path in cache.iterdir()] == [f"{other.hash:08x}.json"]


@pytest.mark.parametrize("damage", ["", "{}", "\udce4", "same length"])
def test_a_damaged_file_is_fetched_anew(cache: Path, other: Schema, damage: str) -> None:
    cache.mkdir(parents=True)
    path = cache / f"{other.hash:08x}.json"
    text = other.text[:-1] + "!" if damage == "same length" else damage
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert cached_schema(other.hash, lambda: zlib.compress(other.text.encode())) == other
    assert path.read_text(encoding="utf-8") == other.text


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path, other: Schema) -> None:
    cache.parent.write_text("a file where the folder would be")
    assert cached_schema(other.hash, lambda: zlib.compress(other.text.encode())) == other


@pytest.mark.parametrize(
    ("sent", "message"),
    [(b"nothing of the kind", "no compressed text"), (zlib.compress(own_schema().text.encode()), "has hash")],
)
def test_what_is_not_the_boards_schema_is_refused(other: Schema, sent: bytes, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        cached_schema(other.hash, lambda: sent)


def identity(**changes) -> Identity:
    frame: Frame = decode_frame(encode_frame(MessageType.HELLO_ACK, 1, 0, **{**HELLO_ACK, **changes})[:-1])
    return Identity.from_hello(frame.body)


def test_in_words() -> None:
    found = identity()
    assert (found.board, found.wire, found.firmware_version) == ("pico2", "1.2", "1.2.3")
    assert found.uid == "000102030405060700000000"
    assert found.features == ("PLAYBACK", "SHARED_LINE")
    assert (found.reset_cause, found.encoder_source) == ("WATCHDOG", "PIO")
    assert (found.clock_Hz, found.transmit_buffer) == (150_000_000, 4096)
    assert found.has_our_schema
    assert not identity(schema_hash=schema_hash() ^ 1).has_our_schema


def test_what_a_later_version_says_is_kept_as_its_number() -> None:
    found = identity(reset_cause=77, encoder_source=99, features=1 << 31, board=b"\xff" * 16)
    assert (found.reset_cause, found.encoder_source, found.features) == ("77", "99", ())
    assert found.board == "\ufffd" * 16
