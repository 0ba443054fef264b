"""There is one decoder; it is judged against a second one, whichever way the bytes come to it."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cobs import cobs
from construct import Container, Int32ul, ListContainer
from hypothesis import given, settings
from hypothesis import strategies as st

import jointwire
from jointwire import (
    ALL_CHANNELS,
    BY_NAME,
    CHANNELS,
    HIGHEST_DIVIDER,
    JOINT_CHANNELS,
    MAX_BODY,
    Channel,
    ChannelKind,
    Chunk,
    Frame,
    FrameError,
    FrameReader,
    MessageType,
    Noise,
    decode_frame,
    decode_samples,
    decode_stream,
    divider,
    encode_frame,
    schema_hash,
)
from jointwire.channels import BLOCK
from jointwire.framing import MAX_ENCODED, MAX_FRAME
from jointwire.messages import BODIES, FROZEN, HEADER, KNOT
from jointwire.schema import struct_fields
from jointwire.tests import reference_decoder
from jointwire.tests.reference_decoder import Fields
from jointwire.tests.streams import bodies, damaged, frames, payloads, pieces, streams, u8, u16, u32

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
    with pytest.raises(FrameError, match="PING cannot be built"):
        encode_frame(MessageType.PING, 1, 1, nonce=2**32)
    with pytest.raises(FrameError, match="PING cannot be built"):
        encode_frame(MessageType.PING, 1, 1)
    with pytest.raises(FrameError, match="at most 1104"):
        encode_frame(MessageType.KNOTS, 1, 1, payload=bytes(1105))


def test_a_body_of_the_wrong_length_is_named() -> None:
    with pytest.raises(FrameError, match="PING frame 1 of node 1 has 1 bytes after its last field"):
        _ = Frame(MessageType.PING, 1, 1, 0, b"12345").body
    with pytest.raises(FrameError, match="PING frame 1 of node 1 has a body of 3 bytes; 4 are the least"):
        _ = Frame(MessageType.PING, 1, 1, 0, b"123").body
    with pytest.raises(FrameError, match="body of 6 bytes; its 2 items need 12"):
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
    with pytest.raises(FrameError, match="HELLO_ACK frame 1 of node 7 has a body of 111 bytes; 112 are the least"):
        _ = Frame(MessageType.HELLO_ACK, 7, 1, 0, body[:-1]).body


def test_fields_appended_to_a_frozen_message_are_left_out() -> None:
    ack = Frame(MessageType.ACK, 1, 1, 0, bytes.fromhex("0607cdabffffffff"))
    assert Frame(MessageType.ACK, 1, 1, 0, ack.payload + b"more").body == ack.body
    part = Frame(MessageType.DICT_PART, 1, 1, 0, bytes.fromhex("00020302030000ff03") + b"more").body
    assert part.data == bytes.fromhex("00ff03")


def _summary(chunk: Chunk) -> tuple[bytes, Fields | None]:
    match chunk.content:
        case Frame(kind, node, seq, time_us, payload, flags):
            return chunk.encoded, (kind, node, flags, seq, time_us, payload)
        case Noise():
            return chunk.encoded, None


@given(streams, st.data(), st.sampled_from([None, 0, 0xDEADBEEF]))
@settings(max_examples=300)
def test_all_ways_through_the_decoder_agree_with_plain_python(
    stream: bytes, data: st.DataObject, schema: int | None
) -> None:
    expected, rest = reference_decoder.decode_stream(stream, schema_hash() if schema is None else schema)
    whole = decode_stream(stream, schema)
    assert [_summary(chunk) for chunk in whole] == expected
    assert whole.pending == rest
    reader = FrameReader(schema)
    chunks = [chunk for piece in data.draw(pieces(stream)) for chunk in reader.feed(piece)]
    assert chunks == list(whole)
    assert reader.pending == rest
    for encoded, fields in expected:
        if fields is not None:
            assert _summary(Chunk(encoded, decode_frame(encoded, schema))) == (encoded, fields)
        elif len(encoded) <= MAX_ENCODED:  # a piece of a longer chunk might be a frame by itself
            with pytest.raises(FrameError):
                decode_frame(encoded, schema)


@given(st.lists(st.one_of(frames, damaged()), max_size=6).map(b"".join))
def test_no_byte_is_lost(stream: bytes) -> None:
    whole = decode_stream(stream)
    assert b"".join(chunk.encoded for chunk in whole) + whole.pending == stream.replace(b"\0", b"")
    assert all(
        stream[start:end] == chunk.encoded for start, end, chunk in zip(whole.start, whole.end, whole, strict=True)
    )
    assert sum(whole.noise().values()) == sum(isinstance(chunk.content, Noise) for chunk in whole)


def test_random_bytes_hold_no_frame() -> None:
    whole = decode_stream(random.Random(1).randbytes(4_000_000))
    assert len(whole) > 10_000
    assert not whole.is_frame.any()
    assert {reason.split()[0] for reason in whole.noise()} >= {"not", "header"}


def test_a_frame_behind_a_chunk_without_end_is_no_frame() -> None:
    """A board drops everything up to the next delimiter; so must the host, wherever the chunk is cut."""
    frame = encode_frame(MessageType.STOP, 255, 10)
    for size in (MAX_ENCODED + 1, 2 * (MAX_ENCODED + 1)):
        chunks = list(decode_stream(b"x" * size + frame + frame))
        assert [isinstance(chunk.content, Frame) for chunk in chunks][-2:] == [False, True]
        reader = FrameReader()
        fed = [chunk for _ in range(size) for chunk in reader.feed(b"x")] + list(reader.feed(frame + frame))
        assert fed == chunks


def test_an_empty_stream_is_nothing() -> None:
    for stream in (b"", b"\0", b"\0\0\0"):
        assert list(decode_stream(stream)) == list(FrameReader().feed(stream)) == []


def test_bytes_with_a_delimiter_are_not_one_frame() -> None:
    with pytest.raises(FrameError, match="byte 1 is a delimiter"):
        decode_frame(b"a\0b")
    with pytest.raises(FrameError, match="0 bytes are too few"):
        decode_frame(b"")


def test_who_decodes_nothing_does_not_wait_for_the_compiler() -> None:
    program = """
import sys
from jointwire import FrameReader, MessageType, encode_frame, own_schema
encode_frame(MessageType.PING, 1, 1, nonce=own_schema().hash)
before = "numba" in sys.modules
FrameReader()
print(before, "numba" in sys.modules)
"""
    folder = Path(jointwire.__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["False", "True"], run.stderr


_HEAD = struct.Struct("<IIiHHBBH")
_RANGES = {"h": (-(2**15), 2**15 - 1), "i": (-(2**31), 2**31 - 1)}


def _due(channel: Channel, dividers: int, tick: int) -> bool:
    return (tick & 0xFFFFFFFF) % divider(dividers, channel.kind) == 0


@st.composite
def blocks(draw: st.DrawFn) -> tuple[bytes, dict[str, list[int]], dict[str, list[int]]]:
    """A DATA body, packed value by value, with the columns that are in it and their ticks."""
    first, count, mask = (
        draw(st.one_of(u32, st.just(2**32 - 5))),
        draw(st.integers(0, 40)),
        draw(st.integers(0, ALL_CHANNELS)),
    )
    dividers = sum(draw(st.integers(0, HIGHEST_DIVIDER)) << 4 * kind for kind in ChannelKind)
    packed = b""
    present = [channel for channel in CHANNELS if mask >> channel.bit & 1]
    columns: dict[str, list[int]] = {channel.name: [] for channel in present}
    ticks: dict[str, list[int]] = {channel.name: [] for channel in present}
    random = draw(st.randoms(use_true_random=False))
    for tick in range(first, first + count):
        for channel in present:
            if _due(channel, dividers, tick):
                value = random.randint(*_RANGES[channel.format])
                packed += struct.pack("<" + channel.format, value)
                columns[channel.name].append(value)
                ticks[channel.name].append(tick)
    return _HEAD.pack(first, dividers, -1, mask, draw(u16), count, draw(u8) % 7, 0) + packed, columns, ticks


@given(blocks())
def test_a_block_comes_back_as_columns(block: tuple[bytes, dict[str, list[int]], dict[str, list[int]]]) -> None:
    body, columns, ticks = block
    decoded = decode_samples(Frame(MessageType.DATA, 1, 0, 0, body))
    assert {name: column.tolist() for name, column in decoded.columns.items()} == columns
    assert {name: decoded.ticks(name).tolist() for name in columns} == ticks
    first, dividers, play_tick, channels, missed, count, state, _ = _HEAD.unpack_from(body)
    assert (decoded.first_tick, decoded.dividers, decoded.play_tick) == (first, dividers, play_tick)
    assert (decoded.channels, decoded.missed, decoded.count, decoded.state) == (channels, missed, count, state)


@given(st.lists(st.tuples(st.integers(1, 3), blocks()), max_size=5))
def test_a_stream_gives_the_columns_of_each_node(
    parts: list[tuple[int, tuple[bytes, dict[str, list[int]], dict[str, list[int]]]]],
) -> None:
    parts = [(node, block) for node, block in parts if len(block[0]) <= MAX_BODY]
    stream = decode_stream(
        b"".join(
            encode_frame(MessageType.DATA, node, k, 7 * k, payload=body) for k, (node, (body, *_)) in enumerate(parts)
        )
    )
    for node in (1, 2, 3):
        own = [(k, block) for k, (of, block) in enumerate(parts) if of == node]
        samples = stream.samples(node)
        assert samples.time_us.tolist() == [7 * k for k, _ in own]
        assert samples.heads["first_tick"].tolist() == [_HEAD.unpack_from(body)[0] for _, (body, *_) in own]
        names = {name for _, (_, columns, _) in own for name in columns}
        assert set(samples.columns) == names
        for name in names:
            assert samples.columns[name].tolist() == [v for _, (_, columns, _) in own for v in columns.get(name, [])]
            assert samples.ticks(name).tolist() == [t for _, (_, _, ticks) in own for t in ticks.get(name, [])]


@given(blocks(), st.integers(-3, 3).filter(bool))
def test_samples_of_another_length_are_refused(
    block: tuple[bytes, dict[str, list[int]], dict[str, list[int]]], more: int
) -> None:
    body = block[0][: len(block[0]) + more] if more < 0 else block[0] + bytes(more)
    with pytest.raises(FrameError, match="DATA frame 9 of node 4"):
        decode_samples(Frame(MessageType.DATA, 4, 9, 0, body))
    if len(body) <= MAX_BODY:
        stream = decode_stream(b"noise\0" + encode_frame(MessageType.DATA, 4, 9, payload=body))
        with pytest.raises(FrameError, match="DATA frame 9 of node 4 at byte 6 of the stream"):
            stream.samples(4)


def test_an_unknown_channel_is_refused() -> None:
    body = _HEAD.pack(0, 0, -1, 1 << len(CHANNELS), 0, 0, 1, 0)
    with pytest.raises(FrameError, match="channels 0x8000"):
        decode_samples(Frame(MessageType.DATA, 1, 0, 0, body))


def _default_block(channels: int, random: np.random.Generator) -> bytes:
    """A DATA body with the default dividers and block length, of values that use every bit."""
    ticks = BY_NAME["stream.block"].default
    exponents = {kind: BY_NAME[f"stream.every_{kind.name.lower()}"].default for kind in ChannelKind}
    dividers = sum(exponent << 4 * kind for kind, exponent in exponents.items())
    size = sum(
        struct.calcsize(channel.format)
        for tick in range(ticks)
        for channel in CHANNELS
        if channels >> channel.bit & 1 and _due(channel, dividers, tick)
    )
    return _HEAD.pack(0, dividers, -1, channels, 0, ticks, 3, 0) + random.bytes(size)


def test_a_default_block_costs_at_most_a_tenth_more_than_its_samples() -> None:
    body = _default_block(JOINT_CHANNELS, np.random.default_rng(1))
    encoded = encode_frame(MessageType.DATA, 1, 1, payload=body)
    samples = len(body) - _HEAD.size
    assert len(decode_samples(Frame(MessageType.DATA, 1, 0, 0, body)).columns) == 7
    # The worst that COBS can do is one byte for each 254; data with zeros costs one in all.
    worst = _HEAD.size + 12 + 4 + (len(body) + 16) // 254 + 1 + 1
    assert len(encoded) - samples <= worst
    assert worst <= 0.10 * samples, f"{worst} bytes for {samples} bytes of samples"
    assert cobs.decode(encoded[:-1])[12:-4] == body


def test_a_block_of_64_ticks_of_a_joint_fits_a_frame() -> None:
    """Whatever its dividers are; a foot's four channels more do not fit beside all others, and its block is shorter."""
    joint = sum(struct.calcsize(channel.format) for channel in CHANNELS if JOINT_CHANNELS >> channel.bit & 1)
    slow = sum(
        struct.calcsize(c.format) for c in CHANNELS if c.kind in (ChannelKind.BUS_VOLTAGE, ChannelKind.TEMPERATURE)
    )
    assert _HEAD.size + 64 * (joint - slow) + slow <= MAX_BODY
