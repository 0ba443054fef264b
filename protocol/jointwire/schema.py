"""A canonical text of everything both halves must agree on, its hash, and how two of them differ."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from construct import Array, BytesInteger, Const, FormatField, Renamed, Struct
from construct import Bytes as FixedBytes

from jointwire.channels import CHANNELS, Channel, ChannelKind
from jointwire.errors import SchemaError
from jointwire.messages import (
    BODIES,
    FROZEN,
    HEADER,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    EncoderSource,
    Feature,
    MessageType,
    Refusal,
    ResetCause,
    State,
    Trip,
)
from jointwire.registers import REGISTERS, Register

_Entry = TypeVar("_Entry", Register, Channel)

ENUMERATIONS = (State, Trip, Refusal, ResetCause, EncoderSource, Feature, ChannelKind)


def struct_fields(struct: Any) -> list[tuple[str, str]]:
    """Fields of a flat struct as (name, struct-module code), in wire order; repeated items give (name, "[codes]").

    Raises:
        SchemaError: the struct uses a construct this project has no MicroPython codec for.
    """
    return [(sub.name, _code(sub)) for sub in struct.subcons]


def _code(sub: Any) -> str:
    match sub:
        case Renamed() | Const():
            return _code(sub.subcon)
        case FormatField():
            return str(sub.fmtstr).lstrip("<")
        case FixedBytes():
            return f"{sub.length}s" if isinstance(sub.length, int) else "[B]"
        case Array():
            return f"[{_code(sub.subcon)}]"
        case Struct():
            return "".join(code for _, code in struct_fields(sub))
        case BytesInteger() | _:
            raise SchemaError(f"no MicroPython codec for {sub!r}; use Int*l, Bytes, Array or Struct in messages.py")


@dataclass(frozen=True)
class Schema:
    """Definition of one version of the wire, as its text says.

    Attributes:
        text: canonical JSON; what a board sends as its DICT.
        layouts: the same as values: fields of header and messages, members of enumerations, registers, channels.
    """

    text: str
    layouts: dict[str, Any]

    @property
    def hash(self) -> int:
        """CRC-32 of the text; the seed of every frame's CRC but the frozen ones'."""
        return zlib.crc32(self.text.encode())

    @cached_property
    def registers(self) -> tuple[Register, ...]:
        """The register table.

        Raises:
            SchemaError: this version does not understand it.
        """
        return tuple(self._read(entry, Register) for entry in self.layouts["registers"])

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """The channels, by their bits.

        Raises:
            SchemaError: this version does not understand them.
        """
        return tuple(self._read(entry, Channel) for entry in self.layouts["channels"])

    def _read(self, values: dict[str, Any], made: Callable[..., _Entry]) -> _Entry:
        try:
            if "kind" in values:
                values = values | {"kind": ChannelKind(values["kind"])}
            return made(**values, doc="")
        except (ValueError, TypeError) as error:
            raise SchemaError(
                f"this version cannot read {values.get('name')} of schema {self.hash:08x}: {error}; "
                "use the release that belongs to it"
            ) from error

    @staticmethod
    def from_text(text: str) -> Schema:
        """Read a schema's text, of this or another version.

        Raises:
            SchemaError: the text is no schema.
        """
        try:
            schema = Schema(text, json.loads(text))
            _entries(schema)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SchemaError(f"not the text of a schema ({error!r}); fetch it from the board again") from error
        return schema

    def differences(self, other: Schema) -> list[str]:
        """Differences of the other schema, one line each, in plain words."""
        lines: list[str] = []
        own_entries, other_entries = _entries(self), _entries(other)
        for name in own_entries | other_entries:
            if name not in other_entries:
                lines.append(f"{name} is missing there")
            elif name not in own_entries:
                lines.append(f"{name} is only there")
            else:
                here, there = own_entries[name], other_entries[name]
                changed = [key for key in here | there if here.get(key) != there.get(key)]
                lines += (
                    f"{name}: {key} is {_brief(there.get(key))} there, {_brief(here.get(key))} here"
                    for key in changed
                    if key != "order" or changed == ["order"]  # another field is another order, too
                )
        return lines


def _entries(schema: Schema) -> dict[str, dict[str, Any]]:
    """Everything that has a name in a schema, with what is said of it."""
    layouts = schema.layouts
    entries = {"wire": {"protocol": layouts["protocol"], "max_body": layouts["max_body"]}}
    entries["header"] = _fields(layouts["header"])
    for name, (number, frozen, fields) in layouts["message"].items():
        entries[f"message {name}"] = {"number": number, "frozen": frozen, **_fields(fields)}
    for name in ("register", "channel"):
        entries |= {f"{name} {entry['name']}": entry for entry in layouts[f"{name}s"]}
    known = {"protocol", "max_body", "header", "message", "registers", "channels"}
    return entries | {name: dict(members) for name, members in layouts.items() if name not in known}


def _fields(fields: list[list[str]]) -> dict[str, Any]:
    """Type of each field, and their order."""
    types = {f"field {name}": type_name(code) for name, code in fields}
    return types | {"order": ", ".join(name for name, _ in fields)}


def type_name(code: str) -> str:
    """A field's struct code in words: u16, i32, 12 bytes, [i32]."""
    if code.startswith("["):
        return f"[{' '.join(type_name(each) for each in code[1:-1])}]"
    words = {"B": "u8", "H": "u16", "L": "u32", "h": "i16", "i": "i32", "l": "i32"}
    return words.get(code) or f"{code[:-1]} bytes"


def _brief(value: Any) -> str:
    return "absent" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _register_entry(register: Register) -> dict[str, Any]:
    return {name: value for name, value in vars(register).items() if name != "doc"}


def _channel_entry(channel: Channel) -> dict[str, Any]:
    return {name: int(value) if name == "kind" else value for name, value in vars(channel).items() if name != "doc"}


def schema_text() -> str:
    """The canonical description of this version: JSON without spaces, keys sorted, docs left out."""
    values: dict[str, Any] = {
        "protocol": [PROTOCOL_MAJOR, PROTOCOL_MINOR],
        "max_body": MAX_BODY,
        "header": struct_fields(HEADER),
        "message": {kind.name: [kind.value, kind in FROZEN, struct_fields(BODIES[kind])] for kind in MessageType},
        "registers": [_register_entry(register) for register in REGISTERS],
        "channels": [_channel_entry(channel) for channel in CHANNELS],
    }
    values |= {members.__name__: {member.name: member.value for member in members} for members in ENUMERATIONS}
    return json.dumps(values, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


@lru_cache(maxsize=1)
def own_schema() -> Schema:
    """The schema of this version."""
    return Schema.from_text(schema_text())


@lru_cache(maxsize=1)
def schema_hash() -> int:
    """CRC-32 of `schema_text`."""
    return zlib.crc32(schema_text().encode())
