"""The golden vectors on this half: construct, the body classes, the compiled decoder."""

from __future__ import annotations

import json
import struct
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import pytest
from cobs import cobs

from jointwire.bodies import CLASSES
from jointwire.errors import WireError
from jointwire.framing import decode_frame, encode_frame
from jointwire.generate.vectors import VECTORS, field_values, vectors
from jointwire.messages import BODIES, FROZEN, MessageType
from jointwire.samples import decode_samples
from jointwire.schema import struct_fields

GOLDEN: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
NAMES = [f"{vector['message']}-{index}" for index, vector in enumerate(GOLDEN)]


@pytest.mark.parametrize("vector", GOLDEN, ids=NAMES)
def test_construct_and_the_body_class_agree_with_the_vector(vector: dict[str, Any]) -> None:
    kind = MessageType[vector["message"]]
    assert kind.value == vector["type"]
    body = bytes.fromhex(vector["body"])
    values = field_values(vector)
    built = BODIES[kind].build(values)
    assert built + bytes.fromhex(vector.get("samples", "")) == body
    parsed: Any = BODIES[kind].parse(body)
    frame = decode_frame(bytes.fromhex(vector["frame"])[:-1])
    assert isinstance(frame.body, CLASSES[kind])
    for name, value in values.items():
        found = getattr(frame.body, name)
        if name == "knots":
            assert [(knot.position, knot.velocity) for knot in parsed.knots] == [tuple(knot.values()) for knot in value]
            assert list(struct.iter_unpack("<ii", found)) == [tuple(knot.values()) for knot in value]
        elif isinstance(value, list):
            assert list(found) == list(parsed[name]) == value
        else:
            assert found == parsed[name] == value


@pytest.mark.parametrize("vector", GOLDEN, ids=NAMES)
def test_the_frame_is_the_vectors(vector: dict[str, Any]) -> None:
    head = {name: vector[name] for name in ("node", "seq", "time_us", "flags")}
    kind, body, encoded = MessageType(vector["type"]), bytes.fromhex(vector["body"]), bytes.fromhex(vector["frame"])
    assert encode_frame(kind, **head, payload=body) == encoded
    raw = cobs.decode(encoded[:-1])
    assert raw[12:-4] == body
    frame = decode_frame(encoded[:-1])
    assert (frame.type, frame.payload) == (kind, body)
    assert {name: getattr(frame, name) for name in head} == head


@pytest.mark.parametrize("vector", [v for v in GOLDEN if v["message"] == "DATA"], ids=["plain", "dividers"])
def test_samples_are_sorted_into_columns(vector: dict[str, Any]) -> None:
    block = decode_samples(decode_frame(bytes.fromhex(vector["frame"])[:-1]))
    assert {name: column.tolist() for name, column in block.columns.items()} == vector["columns"]


def test_every_message_has_a_vector_and_a_class_with_the_definitions_fields() -> None:
    assert {vector["message"] for vector in GOLDEN} == {kind.name for kind in MessageType}
    assert set(CLASSES) == set(BODIES) == set(MessageType)
    for kind in MessageType:
        assert [field.name for field in dataclass_fields(CLASSES[kind])] == [
            name for name, _ in struct_fields(BODIES[kind])
        ]


def test_greetings_never_change() -> None:
    """The frames by which strangers meet, written down here once more."""
    frozen = {v["message"]: v["frame"] for v in GOLDEN if MessageType[v["message"]] in FROZEN}
    assert set(frozen) == {kind.name for kind in FROZEN}
    assert frozen["HELLO"] == "040101ff0201020201010101020105536dc71300"
    assert frozen["STOP"] == "040108ff020a0101010101010599a0342a00"
    assert frozen["REPL"] == "04010e03021401010101010105d425c0a100"


def test_a_golden_byte_is_not_overwritten(tmp_path: Path) -> None:
    copy = tmp_path / VECTORS
    copy.parent.mkdir(parents=True)

    def write(**changes: Any) -> None:
        copy.write_text(json.dumps([GOLDEN[0] | changes]), encoding="utf-8")

    write()
    assert json.loads(vectors(tmp_path)) == GOLDEN[:1]
    for name in ("body", "frame"):  # of a frozen message
        write(**{name: GOLDEN[0][name][:-2] + "77"})
        with pytest.raises(WireError, match=f"{name} of HELLO .* delete its body and frame"):
            vectors(tmp_path)
    write(fields={"major": 2, "minor": 0})
    with pytest.raises(WireError, match="body of HELLO"):
        vectors(tmp_path)
    write(fields={"major": 1, "patch": 0})
    with pytest.raises(WireError, match=r"HELLO has no longer the fields .* give it those it has now"):
        vectors(tmp_path)
