"""Golden vectors, protocol/jointwire/tests/vectors.json: for each message, fields and the bytes they are on the wire.

A vector is written by hand, without `body` and `frame`; those are made once and then stay, so that a change of the
definition that changes bytes is seen. What does change with every definition is the CRC of a message that is not
frozen, because it starts from the schema hash: those frames are made anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from construct import ConstructError

from jointwire.errors import SchemaError
from jointwire.framing import encode_frame
from jointwire.generate.board_codec import ROOT
from jointwire.messages import BODIES, FROZEN, MessageType

VECTORS = Path("protocol/jointwire/tests/vectors.json")

Vector = dict[str, Any]
"""Keys message, type, node, seq, time_us, flags, fields, body, frame; bytes as hex digits. DATA has samples, the rest
of its body, and columns, the values in them."""


def vectors(root: Path = ROOT) -> str:
    """Text of the file, with what was missing filled in, a vector a line.

    Raises:
        SchemaError: the definition makes other bytes of a vector than are written there.
    """
    golden: list[Vector] = json.loads((root / VECTORS).read_text(encoding="utf-8"))
    return "[\n" + ",\n".join(json.dumps(_complete(vector)) for vector in golden) + "\n]\n"


def field_values(vector: Vector) -> dict[str, Any]:
    """The fields as construct takes them: bytes for hex digits."""
    fields: Vector = vector["fields"]
    return {name: bytes.fromhex(value) if isinstance(value, str) else value for name, value in fields.items()}


def _complete(vector: Vector) -> Vector:
    kind = MessageType[vector["message"]]
    try:
        body = BODIES[kind].build(field_values(vector)) + bytes.fromhex(vector.get("samples", ""))
    except (ConstructError, KeyError) as error:
        raise SchemaError(
            f"{VECTORS}: {kind.name} has no longer the fields {vector['fields']}: {error}; give it those it has "
            "now, and delete its body and frame"
        ) from error
    head = {name: vector[name] for name in ("node", "seq", "time_us", "flags")}
    frame = encode_frame(kind, **head, payload=body)
    golden = {"type": kind.value, "body": body.hex()} | ({"frame": frame.hex()} if kind in FROZEN else {})
    for name, value in golden.items():
        if vector.get(name, value) != value:
            raise SchemaError(
                f"{VECTORS}: {name} of {kind.name} {vector['fields']} is {vector[name]} there, but {value} as the wire "
                "is defined now; if that was meant to change, delete its body and frame there"
            )
    return vector | golden | {"frame": frame.hex()}
