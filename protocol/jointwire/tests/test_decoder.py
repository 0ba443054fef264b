"""There is one decoder; it is judged against a second one, whichever way the bytes come to it."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointwire
from jointwire import (
    Chunk,
    Frame,
    FrameError,
    FrameReader,
    MessageType,
    Noise,
    decode_frame,
    decode_stream,
    encode_frame,
    schema_hash,
)
from jointwire.decoder import MAX_ENCODED
from jointwire.tests import reference_decoder
from jointwire.tests.reference_decoder import Fields
from jointwire.tests.streams import damaged, frames, pieces, streams


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
