"""Jointbench's wire: messages, registers and channels defined once, for both halves."""

from jointwire.channels import ALL_CHANNELS, CHANNELS, Channel
from jointwire.errors import BodyError, FrameError, WireError
from jointwire.framing import Chunk, Frame, FrameReader, Noise, decode_frame, encode_frame
from jointwire.messages import (
    BODIES,
    BROADCAST_NODE,
    HEADER,
    KNOT,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    MessageType,
    Refusal,
    State,
    Trip,
)
from jointwire.registers import BY_NAME, REGISTERS, Register
from jointwire.samples import decode_samples, sample_dtype
from jointwire.schema import schema_hash, schema_text

__all__ = [
    "ALL_CHANNELS",
    "BODIES",
    "BROADCAST_NODE",
    "BY_NAME",
    "CHANNELS",
    "HEADER",
    "KNOT",
    "MAX_BODY",
    "PROTOCOL_MAJOR",
    "PROTOCOL_MINOR",
    "REGISTERS",
    "BodyError",
    "Channel",
    "Chunk",
    "Frame",
    "FrameError",
    "FrameReader",
    "MessageType",
    "Noise",
    "Refusal",
    "Register",
    "State",
    "Trip",
    "WireError",
    "decode_frame",
    "decode_samples",
    "encode_frame",
    "sample_dtype",
    "schema_hash",
    "schema_text",
]
