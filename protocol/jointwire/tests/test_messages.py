from typing import Any

import pytest

from jointwire.channels import ALL_CHANNELS, CHANNELS
from jointwire.errors import WireError
from jointwire.framing import DELIMITER, decode_frame, encode_frame
from jointwire.messages import BODIES, BROADCAST_NODE, HEADER, KNOT, MAX_BODY, UNSEEDED, MessageType
from jointwire.registers import BY_NAME, REGISTERS
from jointwire.samples import sample_dtype
from jointwire.schema import schema_hash, schema_text, struct_fields
from jointwire.tests.vectors import BODY_VECTORS, FRAME_VECTORS


@pytest.mark.parametrize(("kind", "fields", "hexadecimal"), BODY_VECTORS)
def test_body_vectors_both_ways(kind: MessageType, fields: dict[str, Any], hexadecimal: str) -> None:
    layout = BODIES[kind]
    assert layout.build(fields).hex() == hexadecimal
    parsed: Any = layout.parse(bytes.fromhex(hexadecimal))
    for name, value in fields.items():
        if name == "knots":
            assert [(k.position, k.velocity) for k in parsed[name]] == [(k["position"], k["velocity"]) for k in value]
        else:
            assert (list(parsed[name]) if isinstance(value, list) else parsed[name]) == value


def test_every_message_has_a_vector_and_a_body() -> None:
    assert {vector[0] for vector in BODY_VECTORS} == set(MessageType) == set(BODIES)
    assert {vector[0] for vector in FRAME_VECTORS} == UNSEEDED


@pytest.mark.parametrize(("kind", "head", "body", "hexadecimal"), FRAME_VECTORS)
def test_frames_that_never_change(kind: MessageType, head: dict[str, int], body: bytes, hexadecimal: str) -> None:
    assert encode_frame(kind, head["node"], head["seq"], head["time_us"], payload=body).hex() == hexadecimal
    frame = decode_frame(bytes.fromhex(hexadecimal).rstrip(DELIMITER))
    assert (frame.type, frame.node, frame.seq, frame.time_us, frame.payload) == (kind, *head.values(), body)


def test_sizes_that_the_firmware_relies_on() -> None:
    assert HEADER.sizeof() == 12
    assert KNOT.sizeof() == 8
    assert BODIES[MessageType.DATA].sizeof() + 64 * sample_dtype(ALL_CHANNELS).itemsize <= MAX_BODY
    assert BROADCAST_NODE not in range(1, 255)


def test_registers_are_a_table_without_contradictions() -> None:
    ids = [register.id for register in REGISTERS]
    assert ids == sorted(set(ids))
    assert len(BY_NAME) == len(REGISTERS)
    for register in REGISTERS:
        assert -(2**31) <= register.minimum <= register.default <= register.maximum < 2**31, register.name
        assert register.scale > 0, register.name
    assert BY_NAME["stream.channels"].maximum == ALL_CHANNELS == 2 ** len(CHANNELS) - 1


def test_the_schema_text_holds_every_definition() -> None:
    text = schema_text()
    for names in ([k.name for k in MessageType], BY_NAME, [c.name for c in CHANNELS]):
        assert all(name in text for name in names)
    assert 0 < schema_hash() < 2**32


def test_the_schema_hash_follows_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema_hash()
    monkeypatch.setattr("jointwire.schema.REGISTERS", REGISTERS[1:])
    schema_hash.cache_clear()
    try:
        assert schema_hash() != before
    finally:
        schema_hash.cache_clear()


def test_a_construct_without_a_codec_is_named() -> None:
    from construct import Float32l, GreedyBytes, Renamed, Struct

    assert struct_fields(Struct(Renamed(Float32l, "x"))) == [("x", "f")]
    with pytest.raises(WireError, match="no MicroPython codec"):
        struct_fields(Struct(Renamed(GreedyBytes, "x")))
