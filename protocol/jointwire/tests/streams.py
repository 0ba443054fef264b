"""Hypothesis strategies: frames of every type, and streams of them that something happened to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from jointwire.channels import ALL_CHANNELS, BLOCK, CHANNELS
from jointwire.framing import encode_frame
from jointwire.messages import BODIES, MAX_BODY, MessageType
from jointwire.schema import struct_fields

u8, u16, u32 = st.integers(0, 255), st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)

# Long runs without a zero make COBS' groups of 254.
payloads = st.one_of(
    st.binary(min_size=1, max_size=64),
    st.binary(min_size=1, max_size=MAX_BODY),
    st.integers(1, MAX_BODY).map(lambda size: bytes(1 + k % 255 for k in range(size))),
)

frames = st.builds(
    lambda kind, node, seq, time_us, flags, payload: encode_frame(kind, node, seq, time_us, flags, payload),
    st.sampled_from(sorted(MessageType)), u8, u16, u32, u8, payloads,
)  # fmt: skip


_INTEGERS = {"B": (0, 2**8 - 1), "H": (0, 2**16 - 1), "L": (0, 2**32 - 1), "l": (-(2**31), 2**31 - 1),
             "h": (-(2**15), 2**15 - 1)}  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn, kind: MessageType) -> bytes:
    """A body of a message with any values, built by its construct; of DATA the samples, too."""
    fields: dict[str, Any] = {}
    for name, code in struct_fields(BODIES[kind]):
        if name == "count":
            fields[name] = draw(st.integers(0, 20))
        elif code == "[B]":
            fields[name] = draw(st.binary(min_size=fields["count"], max_size=fields["count"]))
        elif code.startswith("["):
            numbers = st.lists(
                integers("h" if code == "[h]" else "l"), min_size=2 * fields["count"], max_size=2 * fields["count"]
            )
            values = draw(numbers)
            pairs = [dict(zip(("position", "velocity"), pair, strict=True)) for pair in batched(values)]
            fields[name] = pairs if code == "[ll]" else values[: fields["count"]]
        elif code.endswith("s"):
            fields[name] = draw(st.binary(min_size=int(code[:-1]), max_size=int(code[:-1])))
        else:
            fields[name] = draw(integers(code))
    if kind is not MessageType.DATA:
        return bytes(BODIES[kind].build(fields))
    fields |= {"channels": fields["channels"] & ALL_CHANNELS, "dividers": fields["dividers"] & 0x33333333}
    random = draw(st.randoms(use_true_random=False))
    samples = [
        {channel.name: random.randint(*_INTEGERS["l" if channel.format == "i" else "h"]) for channel in CHANNELS}
        for _ in range(fields["count"])
    ]
    return bytes(BLOCK.build({"head": fields, "samples": samples}))


def integers(code: str) -> st.SearchStrategy[int]:
    """Those of a struct code."""
    return st.integers(*_INTEGERS[code])


def batched(values: list[int]) -> Iterator[tuple[int, int]]:
    """Each two of them."""
    yield from zip(values[::2], values[1::2], strict=True)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A frame with one thing done to it."""
    frame = bytearray(draw(frames))
    at = draw(st.integers(0, len(frame) - 1))
    match draw(st.sampled_from(["flip", "byte", "drop", "insert", "truncate", "repeat", "zero"])):
        case "flip":
            frame[at] ^= 1 << draw(st.integers(0, 7))
        case "byte":
            frame[at] = draw(u8)
        case "drop":
            del frame[at]
        case "insert":
            frame.insert(at, draw(u8))
        case "truncate":
            del frame[at:]
        case "repeat":
            frame[at:at] = frame[at : at + draw(st.integers(1, 400))]
        case _:
            frame[at] = 0
    return bytes(frame)


streams = st.lists(st.one_of(frames, damaged(), st.binary(max_size=30), st.integers(1, 3000).map(lambda n: b"x" * n)),
                   max_size=8).map(b"".join)  # fmt: skip


@st.composite
def pieces(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes as they may arrive."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=10)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]
