"""A canonical text of everything both halves must agree on, and its hash."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

from construct import Array, BytesInteger, Const, FormatField, Renamed, Struct
from construct import Bytes as FixedBytes

from jointwire.channels import CHANNELS
from jointwire.errors import WireError
from jointwire.messages import BODIES, HEADER, MAX_BODY, MessageType, Refusal, State, Trip
from jointwire.registers import REGISTERS


def struct_fields(struct: Any) -> list[tuple[str, str]]:
    """Fields of a flat struct as (name, struct-module code), in wire order; arrays give ("name", "[codes]").

    Raises:
        WireError: the struct uses a construct this project has no MicroPython codec for.
    """
    return [(sub.name, _code(sub)) for sub in struct.subcons]


def _code(sub: Any) -> str:
    match sub:
        case Renamed() | Const():
            return _code(sub.subcon)
        case FormatField():
            return str(sub.fmtstr).lstrip("<")
        case FixedBytes():
            return f"{sub.length}s"
        case Array():
            return f"[{_code(sub.subcon)}]"
        case Struct():
            return "".join(code for _, code in struct_fields(sub))
        case BytesInteger() | _:
            raise WireError(f"no MicroPython codec for {sub!r}; use Int*l, Bytes, Array or Struct in messages.py")


def schema_text() -> str:
    """The canonical description: one line for each struct, enumeration member, register and channel."""
    lines = [f"header {struct_fields(HEADER)}", f"max_body {MAX_BODY}"]
    lines += [f"message {kind.name}={kind.value} {struct_fields(BODIES[kind])}" for kind in MessageType]
    for members in (State, Trip, Refusal):
        lines += [f"{members.__name__} {member.name}={member.value}" for member in members]
    lines += [
        f"register {r.id} {r.name} {r.unit} {r.scale!r} {r.minimum} {r.maximum} {r.default} {r.access}"
        for r in REGISTERS
    ]
    lines += [f"channel {c.bit} {c.name} {c.format} {c.unit}" for c in CHANNELS]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=1)
def schema_hash() -> int:
    """CRC-32 of `schema_text`; the seed of every frame's CRC."""
    return zlib.crc32(schema_text().encode())
