import struct
import zlib
from typing import Any

import numpy as np
import pytest
from cobs import cobs
from construct import Container, Int32ul, ListContainer
from hypothesis import given
from hypothesis import strategies as st

from jointwire.channels import BLOCK, CHANNELS
from jointwire.decoder import MAX_ENCODED, MAX_FRAME
from jointwire.errors import BodyError, FrameError
from jointwire.framing import Frame, FrameReader, Noise, decode_frame, encode_frame
from jointwire.messages import BODIES, FROZEN, HEADER, KNOT, MAX_BODY, MessageType
from jointwire.samples import decode_samples
from jointwire.schema import schema_hash, struct_fields
from jointwire.tests.streams import bodies, payloads, u8, u16, u32

PING = encode_frame(MessageType.PING, 3, 65535, 4_294_967_295, nonce=5)


@given(st.sampled_from(sorted(MessageType)), u8, u16, u32, u8, payloads)
def test_a_frame_comes_back_as_it_was(
    kind: MessageType, node: int, seq: int, time_us: int, flags: int, payload: bytes
) -> None:
    encoded = encode_frame(kind, node, seq, time_us, flags, payload)
    assert encoded.count(0) == 1
    assert len(encoded) - 1 <= MAX_ENCODED
    assert decode_frame(encoded[:-1]) == Frame(kind, node, seq, time_us, payload, flags)


@given(st.sampled_from(sorted(MessageType)), u8, u16, u32, u8, st.data())
def test_construct_reads_of_every_frame_what_the_fast_decoder_reads(
    kind: MessageType, node: int, seq: int, time_us: int, flags: int, data: st.DataObject
) -> None:
    """Header, body and CRC, each by its struct alone; of DATA the samples, too."""
    payload = data.draw(bodies(kind))
    raw = cobs.decode(encode_frame(kind, node, seq, time_us, flags, payload)[:-1])
    body_end = len(raw) - 4
    header = HEADER.parse(raw)
    assert HEADER.build({**header, "_io": None}) == raw[:12]
    assert (header.type, header.node, header.flags, header.seq, header.length) == (kind, node, flags, seq, len(payload))
    assert Int32ul.parse(raw[body_end:]) == zlib.crc32(raw[:body_end], 0 if kind in FROZEN else schema_hash())

    frame = decode_frame(cobs.encode(raw))
    assert (frame.type, frame.node, frame.seq, frame.time_us, frame.flags) == (kind, node, seq, header.time_us, flags)
    parsed: Any = BODIES[kind].parse(raw[12:body_end])
    for name, _ in struct_fields(BODIES[kind]):
        assert plain(parsed[name]) == plain(getattr(frame.body, name))
    if kind is MessageType.DATA:
        samples = BLOCK.parse(raw[12:body_end]).samples
        assert BLOCK.build({"head": parsed, "samples": samples}) == payload
        columns = decode_samples(frame).columns
        for channel in CHANNELS:
            values = [sample[channel.name] for sample in samples if sample[channel.name] is not None]
            assert columns.get(channel.name, np.zeros(0)).tolist() == values


def plain(value: Any) -> Any:
    """Knots, values and bytes of either decoder as bytes or a list of numbers."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, ListContainer) and value and isinstance(value[0], Container):
        return b"".join(KNOT.build(knot) for knot in value)
    if isinstance(value, ListContainer | tuple):
        return list(value) or b""
    return value


def test_the_longest_frame_is_as_long_as_is_allowed() -> None:
    encoded = encode_frame(MessageType.KNOTS, 255, 65535, 2**32 - 1, 255, b"\xff" * MAX_BODY)
    assert MAX_FRAME == 1120
    assert len(encoded) - 1 <= MAX_ENCODED == 1125
    assert decode_frame(encoded[:-1]).payload == b"\xff" * MAX_BODY


def test_every_wrong_bit_is_found() -> None:
    for bit in range(8 * (len(PING) - 1)):
        damaged = bytearray(PING)
        damaged[bit // 8] ^= 1 << bit % 8
        contents = [chunk.content for chunk in FrameReader().feed(bytes(damaged))]
        assert contents
        assert all(isinstance(content, Noise) for content in contents), bit


@given(
    st.lists(st.one_of(st.just(PING), st.binary(max_size=40).map(lambda b: b.replace(b"\0", b"") + b"\0"))), st.data()
)
def test_a_stream_is_cut_alike_however_it_arrives(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    whole = list(FrameReader().feed(stream))
    reader, pieces, rest = FrameReader(), [], stream
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces += reader.feed(rest[:size])
        rest = rest[size:]
    assert pieces == whole
    assert sum(isinstance(chunk.content, Frame) for chunk in whole) == parts.count(PING)
    assert b"".join(chunk.encoded for chunk in whole) == stream.replace(b"\0", b"")  # nothing is lost


def test_bytes_without_a_delimiter_do_not_pile_up() -> None:
    reader = FrameReader()
    chunks = [chunk for _ in range(100) for chunk in reader.feed(b"x" * 500)]
    assert len(reader.pending) <= MAX_ENCODED
    assert sum(len(chunk.encoded) for chunk in chunks) == 50_000 - len(reader.pending)
    assert all(isinstance(chunk.content, Noise) for chunk in chunks)


def _frame(raw: bytes, seed: int) -> bytes:
    return cobs.encode(raw + struct.pack("<I", zlib.crc32(raw, seed)))


def _head(kind: int, length: int, protocol: int = 1) -> bytes:
    return struct.pack("<BBBBHHI", protocol, kind, 3, 0, 0, length, 0)


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"\x05\x01", "not COBS"),
        (b"\x02\x01", "1 bytes are too few"),
        (b"\x01" * (MAX_ENCODED + 1), "1126 bytes without a delimiter"),
        (_frame(_head(10, 9) + b"1234", schema_hash()), "says 9 body bytes, the frame holds 4"),
        (_frame(_head(10, 4) + b"1234", 0), "another schema"),
        (_frame(_head(10, 4, protocol=2) + b"1234", schema_hash()), "protocol 2, this host speaks 1"),
        (_frame(_head(99, 4) + b"1234", schema_hash()), "type 0x63"),
        (
            _frame(_head(4, 1105) + (bytes(99) + b"\xff") * 11 + bytes(5), schema_hash()),
            "body of 1105 bytes; at most",
        ),
    ],
)
def test_what_is_not_a_frame_says_why(encoded: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decode_frame(encoded)


@pytest.mark.parametrize("kind", sorted(MessageType))
def test_frozen_messages_alone_do_without_the_schema_and_the_protocol(kind: MessageType) -> None:
    encoded = encode_frame(kind, 1, 1, payload=b"1234")
    raw = cobs.decode(encoded[:-1])
    assert zlib.crc32(raw[:-4], 0 if kind in FROZEN else schema_hash()) == int.from_bytes(raw[-4:], "little")
    seed = 0 if kind in FROZEN else schema_hash()
    other_protocol = _frame(_head(kind, 4, protocol=77) + b"1234", seed)
    if kind in FROZEN:
        assert decode_frame(encoded[:-1], schema=0xDEADBEEF).payload == b"1234"
        assert decode_frame(other_protocol).payload == b"1234"
    else:
        with pytest.raises(FrameError, match="another schema"):
            decode_frame(encoded[:-1], schema=0xDEADBEEF)
        with pytest.raises(FrameError, match="protocol 77"):
            decode_frame(other_protocol)


@given(st.sampled_from(sorted(set(MessageType) - FROZEN)), u32, payloads)
def test_a_frame_of_another_schema_is_read_with_its_hash_only(kind: MessageType, schema: int, payload: bytes) -> None:
    raw = _head(kind, len(payload)) + payload
    encoded = _frame(raw, schema)
    assert decode_frame(encoded, schema).payload == payload
    if schema != schema_hash():
        assert isinstance(FrameReader().feed(encoded + b"\0")[0].content, Noise)


def test_the_kernels_header_is_the_definitions() -> None:
    """The compiled loops have the frozen header written out."""
    names = "protocol", "type", "node", "flags", "seq", "length", "time_us"
    assert struct_fields(HEADER) == list(zip(names, "BBBBHHL", strict=True))


def test_a_body_that_cannot_be_is_named() -> None:
    with pytest.raises(BodyError, match="PING cannot be built"):
        encode_frame(MessageType.PING, 1, 1, nonce=2**32)
    with pytest.raises(BodyError, match="PING cannot be built"):
        encode_frame(MessageType.PING, 1, 1)
    with pytest.raises(BodyError, match="at most 1104"):
        encode_frame(MessageType.KNOTS, 1, 1, payload=bytes(1105))


def test_a_body_of_the_wrong_length_is_named() -> None:
    with pytest.raises(BodyError, match="PING frame 1 of node 1 has 1 bytes after its last field"):
        _ = Frame(MessageType.PING, 1, 1, 0, b"12345").body
    with pytest.raises(BodyError, match="PING frame 1 of node 1 has a body of 3 bytes; 4 are the least"):
        _ = Frame(MessageType.PING, 1, 1, 0, b"123").body
    with pytest.raises(BodyError, match="body of 6 bytes; its 2 items need 12"):
        _ = Frame(MessageType.VALUES, 1, 1, 0, b"\0\0\2\0ab").body


def test_fields_that_an_earlier_board_does_not_send_are_zeros() -> None:
    """HELLO_ACK as protocol 1.1 had it, from the vector of its time: 112 bytes."""
    body = bytes.fromhex(
        "01010103efbeadde030201003f0000000000008005000000007a030a803e00000010000000000800e40c0c0100080010000840000001020304"
        "05060708090a0b70796276313100000000000000000000e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
    )
    hello = Frame(MessageType.HELLO_ACK, 7, 1, 0, body).body
    assert (hello.major, hello.minor, hello.max_block, hello.board.rstrip(b"\0")) == (1, 1, 64, b"pybv11")
    assert hello.image_sha256 == bytes(range(0xE0, 0x100))
    assert hello.module_type == hello.module_serial == bytes(16)
    with pytest.raises(BodyError, match="HELLO_ACK frame 1 of node 7 has a body of 111 bytes; 112 are the least"):
        _ = Frame(MessageType.HELLO_ACK, 7, 1, 0, body[:-1]).body


def test_fields_appended_to_a_frozen_message_are_left_out() -> None:
    ack = Frame(MessageType.ACK, 1, 1, 0, bytes.fromhex("0607cdabffffffff"))
    assert Frame(MessageType.ACK, 1, 1, 0, ack.payload + b"more").body == ack.body
    part = Frame(MessageType.DICT_PART, 1, 1, 0, bytes.fromhex("00020302030000ff03") + b"more").body
    assert part.data == bytes.fromhex("00ff03")
