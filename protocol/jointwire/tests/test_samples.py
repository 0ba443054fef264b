from __future__ import annotations

import struct

import numpy as np
import pytest
from cobs import cobs
from hypothesis import given
from hypothesis import strategies as st

from jointwire import (
    ALL_CHANNELS,
    BY_NAME,
    CHANNELS,
    HIGHEST_DIVIDER,
    JOINT_CHANNELS,
    MAX_BODY,
    BodyError,
    Channel,
    ChannelKind,
    Frame,
    MessageType,
    decode_samples,
    decode_stream,
    divider,
    encode_frame,
)
from jointwire.tests.streams import u8, u16, u32

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
    with pytest.raises(BodyError, match="DATA frame 9 of node 4"):
        decode_samples(Frame(MessageType.DATA, 4, 9, 0, body))
    if len(body) <= MAX_BODY:
        stream = decode_stream(b"noise\0" + encode_frame(MessageType.DATA, 4, 9, payload=body))
        with pytest.raises(BodyError, match="DATA frame 9 of node 4 at byte 6 of the stream"):
            stream.samples(4)


def test_an_unknown_channel_is_refused() -> None:
    body = _HEAD.pack(0, 0, -1, 1 << len(CHANNELS), 0, 0, 1, 0)
    with pytest.raises(BodyError, match="channels 0x8000"):
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
