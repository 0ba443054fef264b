"""The golden vectors on this half: construct, the body classes, the compiled decoder."""

from __future__ import annotations

import ast
import json
import shutil
import struct
import zlib
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import pytest
from cobs import cobs

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
from jointwire.bodies import CLASSES
from jointwire.channels import (
    ALL_CHANNELS,
    BRIDGE_CHANNELS,
    HIGHEST_DIVIDER,
    JOINT_BOARD_CHANNELS,
    JOINT_CHANNELS,
    ChannelKind,
    divider,
)
from jointwire.docs import DOCS, MEMBERS
from jointwire.framing import decode_frame, encode_frame
from jointwire.generate.__main__ import FILES, VECTORS, Generated, field_values, main, reference, vectors
from jointwire.generate.codecs import ROOT, board_codec, client
from jointwire.messages import ANSWERS, BODIES, BROADCAST_NODE, FIRST_FROM_BOARD, FROZEN, HEADER, KNOT
from jointwire.registers import REGISTER_COUNT
from jointwire.samples import decode_samples
from jointwire.schema import ENUMERATIONS, struct_fields, type_name


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
        ({"protocol": [2, 0]}, ["wire: protocol is [2, 0] there, [1, 6] here"]),
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
    with pytest.raises(SchemaError, match="no MicroPython codec"):
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


def test_sizes_that_the_firmware_relies_on() -> None:
    assert HEADER.sizeof() == 12
    assert KNOT.sizeof() == 8
    assert BROADCAST_NODE not in range(1, 255)


def test_every_message_is_described() -> None:
    assert set(BODIES) == set(DOCS) == set(MessageType)
    for kind in MessageType:
        assert all(sub.docs for sub in BODIES[kind].subcons), kind.name
    assert all(sub.docs for sub in HEADER.subcons)
    assert set(MEMBERS) == set(ENUMERATIONS) - {ChannelKind}
    for members, meanings in MEMBERS.items():
        assert list(meanings) == [member.name for member in members]


def test_every_request_has_an_answer_and_nothing_else_has() -> None:
    assert set(ANSWERS) == {kind for kind in MessageType if kind < FIRST_FROM_BOARD}
    for kind, answer in ANSWERS.items():
        assert answer.type >= 0x40
        for name in answer.echoed:
            assert dict(struct_fields(BODIES[kind]))[name] == dict(struct_fields(BODIES[answer.type]))[name]
    assert all(ANSWERS[kind].type in FROZEN for kind in FROZEN if kind in ANSWERS)  # strangers must be able to answer


def test_registers_are_a_table_without_contradictions() -> None:
    ids = [register.id for register in REGISTERS]
    assert len(ids) == len(set(ids)) == len(BY_NAME) == len(REGISTERS)
    assert max(ids) == REGISTER_COUNT - 1
    for register in REGISTERS:
        assert -(2**31) <= register.minimum <= register.default <= register.maximum < 2**31, register.name
        assert register.scale > 0, register.name
        assert register.doc, register.name
    assert BY_NAME["stream.channels"].maximum == ALL_CHANNELS == 2 ** len(CHANNELS) - 1


def test_channels_name_registers_that_exist_and_kinds_have_a_divider_each() -> None:
    assert [channel.bit for channel in CHANNELS] == list(range(len(CHANNELS)))
    for channel in CHANNELS:
        for name in (channel.scale, channel.zero):
            assert not name or name in BY_NAME, channel.name
    for kind in ChannelKind:
        register = BY_NAME[f"stream.every_{kind.name.lower()}"]
        assert (register.minimum, register.maximum) == (0, HIGHEST_DIVIDER)
        assert 4 * kind + 4 <= 32  # bits of `dividers`
    other = BRIDGE_CHANNELS | sum(1 << c.bit for c in CHANNELS if c.kind is ChannelKind.FOOT_FORCE)
    assert ALL_CHANNELS & ~other == JOINT_BOARD_CHANNELS
    assert JOINT_CHANNELS & JOINT_BOARD_CHANNELS == JOINT_CHANNELS


@pytest.mark.parametrize(("dividers", "kind", "every"), [(0, 0, 1), (0x60, 1, 64), (0x60, 0, 1), (0x12345678, 7, 2)])
def test_dividers(dividers: int, kind: int, every: int) -> None:
    assert divider(dividers, ChannelKind(kind)) == every


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
        with pytest.raises(SchemaError, match=f"{name} of HELLO .* delete its body and frame"):
            vectors(tmp_path)
    write(fields={"major": 2, "minor": 0})
    with pytest.raises(SchemaError, match="body of HELLO"):
        vectors(tmp_path)
    write(fields={"major": 1, "patch": 0})
    with pytest.raises(SchemaError, match=r"HELLO has no longer the fields .* give it those it has now"):
        vectors(tmp_path)


def test_no_generated_file_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def _checkout(folder: Path) -> Path:
    for file in FILES:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file.path, folder / file.path)
    return folder


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)
@pytest.mark.parametrize("damage", ["missing", "edited", "empty"])
def test_a_stale_file_is_named_and_made_anew(
    file: Generated, damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _checkout(tmp_path)
    path, fresh = root / file.path, (root / file.path).read_bytes()
    assert main(["--check", "--root", str(root)]) == 0
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(fresh[:-9] + b"7" + fresh[-8:] if damage == "edited" else b"")
    assert main(["--check", "--root", str(root)]) == 1
    complaint = capsys.readouterr().err
    assert str(path) in complaint
    assert "run: python -m jointwire.generate" in complaint
    assert len(complaint.splitlines()) == 1
    assert main(["--root", str(root)]) == 0
    assert path.read_bytes() == fresh


def test_a_change_of_the_definition_makes_files_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = _checkout(tmp_path)
    for module in ("codecs", "__main__"):
        monkeypatch.setattr(f"jointwire.generate.{module}.REGISTERS", REGISTERS[:-1])
    monkeypatch.setattr("jointwire.schema.REGISTERS", REGISTERS[:-1])
    stale = {file.path.name for file in FILES if file.is_stale(root)}
    assert stale == {"wire.py", "schema.bin", "client.py", "wire.md"}


def test_the_board_holds_the_text_of_its_schema() -> None:
    assert zlib.decompress((ROOT / "firmware/jointboard/schema.bin").read_bytes()).decode() == schema_text()


def test_the_codec_is_short_python_with_every_message_and_the_hash() -> None:
    text = board_codec()
    ast.parse(text)
    assert max(map(len, text.splitlines())) <= 120
    assert all(f"MESSAGE_{kind.name} = const({kind.value})" in text for kind in MessageType)
    assert f"0x{schema_hash():08X}" in text


def test_the_client_has_a_method_for_each_request_and_knows_every_register() -> None:
    tree = ast.parse(client())
    [methods] = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Client"]
    names = {node.name for node in methods if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    assert names == {kind.name.lower() for kind in ANSWERS}
    assert all(f'    "{register.name}",\n' in client() for register in REGISTERS)


def test_the_reference_names_everything() -> None:
    text = reference()
    for kind in MessageType:
        assert f"### {kind.name} (0x{kind.value:02x}" in text
        assert all(f"`{name}`" in text for name, _ in struct_fields(BODIES[kind]))
    assert all(f"| `{register.name}` |" in text for register in REGISTERS)
    assert f"schema `{schema_hash():08x}`" in text


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--chekc"])
