import struct
import zlib

import pytest
from cobs import cobs
from hypothesis import given
from hypothesis import strategies as st

from jointwire.errors import BodyError, FrameError
from jointwire.framing import MAX_ENCODED, Frame, FrameReader, Noise, crc_seed, decode_frame, encode_frame
from jointwire.messages import MAX_BODY, MessageType
from jointwire.samples import decode_samples, sample_dtype
from jointwire.schema import schema_hash

PING = encode_frame(MessageType.PING, 3, 65535, 4_294_967_295, nonce=5)


@given(
    st.sampled_from(sorted(MessageType)),
    st.integers(0, 255),
    st.integers(0, 65535),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=1, max_size=MAX_BODY),
)
def test_a_frame_comes_back_as_it_was(kind: MessageType, node: int, seq: int, time_us: int, payload: bytes) -> None:
    encoded = encode_frame(kind, node, seq, time_us, payload=payload)
    assert encoded.count(0) == 1
    assert len(encoded) - 1 <= MAX_ENCODED
    frame = decode_frame(encoded[:-1])
    assert (frame.type, frame.node, frame.seq, frame.time_us, frame.payload) == (kind, node, seq, time_us, payload)


@given(st.integers(0, 8 * (len(PING) - 1) - 1))
def test_one_wrong_bit_is_found(bit: int) -> None:
    damaged = bytearray(PING)
    damaged[bit // 8] ^= 1 << bit % 8
    contents = [chunk.content for chunk in FrameReader().feed(bytes(damaged))]
    assert contents
    assert all(isinstance(content, Noise) for content in contents)


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
    assert sum(len(chunk.encoded) for chunk in chunks) > 50_000 - MAX_ENCODED - 500
    assert all(isinstance(chunk.content, Noise) for chunk in chunks)


def _frame(raw: bytes, seed: int) -> bytes:
    return cobs.encode(raw + struct.pack("<I", zlib.crc32(raw, seed)))


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"\x05\x01", "not COBS"),
        (b"\x02\x01", "1 bytes are too few"),
        (b"\x01" * (MAX_ENCODED + 1), "without a delimiter"),
        (_frame(struct.pack("<BBBBHHI", 1, 10, 3, 0, 0, 9, 0) + b"1234", schema_hash()), "says 9 body bytes"),
        (_frame(struct.pack("<BBBBHHI", 1, 10, 3, 0, 0, 4, 0) + b"1234", 0), "another schema"),
        (_frame(struct.pack("<BBBBHHI", 2, 10, 3, 0, 0, 4, 0) + b"1234", schema_hash()), "protocol 2"),
        (_frame(struct.pack("<BBBBHHI", 1, 99, 3, 0, 0, 4, 0) + b"1234", schema_hash()), "type 0x63"),
    ],
)
def test_what_is_not_a_frame_says_why(encoded: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decode_frame(encoded)


def test_only_the_handshake_is_unseeded() -> None:
    assert [kind for kind in MessageType if crc_seed(kind) == 0] == [MessageType.HELLO, MessageType.HELLO_ACK]


def test_a_body_that_cannot_be_is_named() -> None:
    with pytest.raises(BodyError, match="PING cannot be built"):
        encode_frame(MessageType.PING, 1, 1, nonce=2**32)
    with pytest.raises(BodyError, match="PING cannot be built"):
        encode_frame(MessageType.PING, 1, 1)
    with pytest.raises(BodyError, match="at most 1024"):
        encode_frame(MessageType.KNOTS, 1, 1, payload=bytes(1025))


def test_a_body_of_the_wrong_length_is_named() -> None:
    with pytest.raises(BodyError, match="after its last field"):
        _ = Frame(MessageType.PING, 1, 1, 0, b"12345").body
    with pytest.raises(BodyError, match="PING frame 1 of node 1"):
        _ = Frame(MessageType.PING, 1, 1, 0, b"123").body


def test_samples_are_decoded_and_their_length_is_checked() -> None:
    dtype = sample_dtype(0b10011)
    assert dtype.names == ("motor_current", "motor_position", "current_command")
    assert dtype.itemsize == 8
    head = struct.pack("<IBBHi", 100, 2, 0b10011, 0, 7)
    body = struct.pack("<hihhih", -5, 2**31 - 1, 3, 32767, -(2**31), -32768)
    samples = decode_samples(Frame(MessageType.DATA, 1, 0, 0, head + body))
    assert samples.tolist() == [(-5, 2**31 - 1, 3), (32767, -(2**31), -32768)]
    with pytest.raises(BodyError, match=r"2 samples of 8 bytes \(28 bytes with the head\) but carries 27"):
        decode_samples(Frame(MessageType.DATA, 1, 0, 0, head + body[:-1]))
