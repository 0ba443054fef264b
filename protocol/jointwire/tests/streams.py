"""Hypothesis strategies: frames of every type, and streams of them that something happened to."""

from __future__ import annotations

from hypothesis import strategies as st

from jointwire.framing import encode_frame
from jointwire.messages import MAX_BODY, MessageType

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
