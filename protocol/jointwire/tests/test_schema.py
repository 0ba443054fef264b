from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from jointwire import (
    BY_NAME,
    CHANNELS,
    REGISTERS,
    MessageType,
    Schema,
    SchemaError,
    config_crc,
    own_schema,
    schema_hash,
    schema_text,
)
from jointwire.errors import WireError
from jointwire.registers import REGISTER_COUNT
from jointwire.schema import struct_fields, type_name


def _changed(**changes: Any) -> Schema:
    """The own schema with parts of it replaced."""
    values = json.loads(schema_text())
    for path, value in changes.items():
        *keys, last = path.split("__")
        place = values
        for key in keys:
            place = place[int(key)] if isinstance(place, list) else place[key]
        place[int(last) if isinstance(place, list) else last] = value
    return Schema.from_text(json.dumps(values))


def test_the_text_holds_every_definition() -> None:
    text = schema_text()
    for names in ([k.name for k in MessageType], BY_NAME, [c.name for c in CHANNELS]):
        assert all(name in text for name in names)
    assert schema_hash() == own_schema().hash == zlib.crc32(text.encode())


def test_a_schema_comes_back_from_its_text() -> None:
    schema = Schema.from_text(schema_text())
    assert schema == own_schema()
    assert [(r.id, r.name, r.minimum, r.maximum, r.access) for r in schema.registers] == [
        (r.id, r.name, r.minimum, r.maximum, r.access) for r in REGISTERS
    ]
    assert [(c.bit, c.name, c.kind, c.format) for c in schema.channels] == [
        (c.bit, c.name, c.kind, c.format) for c in CHANNELS
    ]


def test_the_hash_follows_every_change_of_a_register_but_its_doc(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    def hash_with(**changes: Any) -> int:
        monkeypatch.setattr("jointwire.schema.REGISTERS", (replace(REGISTERS[0], **changes), *REGISTERS[1:]))
        return zlib.crc32(schema_text().encode())

    own = schema_hash()
    assert hash_with() == own
    assert hash_with(doc="said better") == own
    changes = {"id": 31, "name": "x", "unit": "m", "scale": 2.0, "minimum": 1, "maximum": 9, "default": 2}
    for name, value in (changes | {"access": "rw", "type": "flag"}).items():
        assert hash_with(**{name: value}) != own, name


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({}, []),
        ({"message__PING": [10, False, [["nonce", "H"]]]}, ["message PING: field nonce is u16 there, u32 here"]),
        (
            {"message__PING": [10, False, [["nonce", "L"], ["more", "4s"]]]},
            ["message PING: field more is 4 bytes there, absent here"],
        ),
        ({"message__PING": [10, False, []]}, ["message PING: field nonce is absent there, u32 here"]),
        (
            {"message__SYNC": [35, False, [["edge_us", "L"], ["edge", "L"]]]},
            ["message SYNC: order is edge_us, edge there, edge, edge_us here"],
        ),
        ({"message__SING": [99, False, []]}, ["message SING is only there"]),
        ({"protocol": [2, 0]}, ["wire: protocol is [2, 0] there, [1, 2] here"]),
        ({"registers__0__default": 5}, ["register board.node: default is 5 there, 1 here"]),
        ({"channels__0__kind": 77}, ["channel motor_current: kind is 77 there, 0 here"]),
        ({"State__DONE": 9}, ["State: DONE is 9 there, 5 here"]),
        ({"Mood": {"GOOD": 1}}, ["Mood is only there"]),
    ],
)
def test_differences_are_named(changes: dict[str, Any], differences: list[str]) -> None:
    other = _changed(**changes)
    assert own_schema().differences(other) == differences
    assert len(other.differences(own_schema())) == len(differences)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """Every number and word, by its path."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, each in items for found in _leaves(each, (*path, str(key)))]
    return [("__".join(path), value)]


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_change_is_never_without_a_difference(every: int) -> None:
    """Each number and word of the text, or each seventh of them, changed one at a time."""
    own = own_schema()
    leaves = _leaves(json.loads(own.text))
    assert len(leaves) > 500
    for path, value in leaves[::every]:
        other = _changed(**{path: not value if isinstance(value, bool) else value + type(value)("1")})
        assert own.differences(other), path


NO_SCHEMAS = ["", "[]", "{}", "3", "null", '{"registers":[]}', schema_text()[:-1], 100_000 * "[", 5000 * "9"]


@pytest.mark.parametrize("text", NO_SCHEMAS, ids=range(len(NO_SCHEMAS)))
def test_what_is_no_schema_is_named(text: str) -> None:
    with pytest.raises(SchemaError, match="not the text of a schema"):
        Schema.from_text(text)


def test_a_table_of_the_future_is_named() -> None:
    other = _changed(channels__5__kind=77, registers__3__colour="red")
    with pytest.raises(SchemaError, match=f"cannot read bus_voltage of schema {other.hash:08x}: 77 is not a valid"):
        _ = other.channels
    with pytest.raises(SchemaError, match=r"cannot read adc.window .*colour"):
        _ = other.registers


def test_a_construct_without_a_codec_is_named() -> None:
    from construct import Float32l, GreedyBytes, Renamed, Struct

    assert struct_fields(Struct(Renamed(Float32l, "x"))) == [("x", "f")]
    with pytest.raises(WireError, match="no MicroPython codec"):
        struct_fields(Struct(Renamed(GreedyBytes, "x")))


def test_types_are_named() -> None:
    codes = ("B", "l", "12s", "[ll]", "[B]")
    assert [type_name(code) for code in codes] == [
        "u8",
        "i32",
        "12 bytes",
        "[i32 i32]",
        "[u8]",
    ]


def test_the_configurations_crc_is_that_of_all_registers_by_id() -> None:
    values = {register.name: register.default for register in REGISTERS}
    table = b"".join(
        next((values[r.name] for r in REGISTERS if r.id == id), 0).to_bytes(4, "little", signed=True)
        for id in range(REGISTER_COUNT)
    )
    assert config_crc(values) == zlib.crc32(table)
    for name in values:
        assert config_crc(values | {name: values[name] ^ 1}) != config_crc(values), name
    with pytest.raises(KeyError, match=r"limit\.current"):
        config_crc({name: value for name, value in values.items() if name != "limit.current"})
