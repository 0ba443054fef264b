"""Text of docs/wire.md: the reference, its prose from wire.md.in and its tables from the definition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from struct import calcsize
from typing import Any

from cobs import cobs

from jointwire.channels import CHANNELS, ChannelKind
from jointwire.docs import DOCS, MEMBERS
from jointwire.framing import MAX_ENCODED, MAX_FRAME
from jointwire.generate.board_codec import COMMAND
from jointwire.generate.vectors import vectors
from jointwire.kernel import CRC_SIZE, HEADER_SIZE
from jointwire.messages import (
    ANSWERS,
    BODIES,
    BROADCAST_NODE,
    FROZEN,
    HEADER,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    MessageType,
)
from jointwire.registers import REGISTER_COUNT, REGISTERS
from jointwire.schema import schema_hash, struct_fields, type_name

_TEMPLATE = Path(__file__).resolve().parents[1] / "wire.md.in"
_LONGEST_SHOWN = 60  # hex digits of a body


def reference() -> str:
    """Text of the file."""
    golden: list[dict[str, Any]] = json.loads(vectors())
    return _TEMPLATE.read_text(encoding="utf-8").format(
        command=COMMAND,
        major=PROTOCOL_MAJOR,
        minor=PROTOCOL_MINOR,
        schema_hash=schema_hash(),
        max_body=MAX_BODY,
        max_frame=MAX_FRAME,
        max_encoded=MAX_ENCODED,
        broadcast=BROADCAST_NODE,
        last_register=REGISTER_COUNT - 1,
        header=_field_table(HEADER),
        frozen=", ".join(kind.name for kind in sorted(FROZEN)),
        example=_example(golden),
        data_example=_data_example(golden),
        answers=_answers(),
        messages="\n".join(_messages()),
        channels=_channels(),
        enumerations="\n".join(_enumerations()),
        registers=_registers(),
        vectors=_vector_table(golden),
    )


def _table(head: str, rows: Iterable[Iterable[object]]) -> str:
    columns = [name.strip() for name in head.split("|")]
    lines = [columns, ["---"] * len(columns), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _field_table(struct: Any) -> str:
    rows: list[tuple[object, ...]] = []
    offset = 0
    for sub, (name, code) in zip(struct.subcons, struct_fields(struct), strict=True):
        rows.append((offset, f"`{name}`", type_name(code), sub.docs))
        offset += 0 if code.startswith("[") else calcsize("<" + code)
    return _table("Offset | Field | Type | Meaning", rows)


def _messages() -> Iterator[str]:
    for kind in MessageType:
        frozen = ", frozen" if kind in FROZEN else ""
        yield f"### {kind.name} (0x{kind.value:02x}{frozen})\n"
        yield f"{DOCS[kind]}\n"
        yield (_field_table(BODIES[kind]) if struct_fields(BODIES[kind]) else "No body.") + "\n"


def _answers() -> str:
    return _table(
        "Request | Answer | It repeats",
        (
            (kind.name, answer.type.name, ", ".join(f"`{name}`" for name in answer.echoed))
            for kind, answer in ANSWERS.items()
        ),
    )


def _channels() -> str:
    return _table(
        "Bit | Channel | Kind | Type | SI unit | Scale | Zero | What it is",
        (
            (channel.bit, f"`{channel.name}`", f"{channel.kind.value} {channel.kind.name}", type_name(channel.format),
             channel.unit, channel.scale, channel.zero, channel.doc)
            for channel in CHANNELS
        ),
    )  # fmt: skip


def _enumerations() -> Iterator[str]:
    for members, meanings in MEMBERS.items():
        yield f"### {members.__name__}\n\n{members.__doc__}\n"
        yield _table(
            "Value | Name | Meaning", ((member.value, member.name, meanings[member.name]) for member in members)
        )
        yield ""
    yield f"### {ChannelKind.__name__}\n\n{_numbers(ChannelKind)}\n"


def _numbers(members: type[IntEnum]) -> str:
    return ", ".join(f"{member.value} {member.name}" for member in members)


def _registers() -> str:
    return _table(
        "Id | Register | Access | Unit | Scale | Default | Least | Most | Meaning",
        (
            (register.id, f"`{register.name}`", register.access, register.unit, f"{register.scale:g}", register.default,
             *(("", "") if register.access == "ro" else (register.minimum, register.maximum)), register.doc)
            for register in REGISTERS
        ),
    )  # fmt: skip


def _example(golden: list[dict[str, Any]]) -> str:
    vector = next(vector for vector in golden if vector["message"] == "PING")
    frame = bytes.fromhex(vector["frame"])
    raw = cobs.decode(frame[:-1])
    parts = (raw[:HEADER_SIZE], raw[HEADER_SIZE:-CRC_SIZE], raw[-CRC_SIZE:])
    return (
        f"Example: `PING` to node {vector['node']}, seq {vector['seq']}, time {vector['time_us']} µs, nonce "
        f"{vector['fields']['nonce']}, before and after COBS:\n\n"
        f"    {' | '.join(part.hex(' ') for part in parts)}\n"
        f"    {frame.hex(' ')}"
    )


def _data_example(golden: list[dict[str, Any]]) -> str:
    vector = next(vector for vector in golden if vector["message"] == "DATA" and vector["fields"]["dividers"])
    fields = vector["fields"]
    columns = (f"    {name:<15} {', '.join(map(str, values))}" for name, values in vector["columns"].items())
    return (
        f"Example: {fields['count']} ticks from {fields['first_tick']}, channels 0x{fields['channels']:x}, dividers "
        f"0x{fields['dividers']:x}, and what is in the samples:\n\n"
        f"    {bytes.fromhex(vector['samples']).hex(' ')}\n\n" + "\n".join(columns)
    )


def _vector_table(golden: list[dict[str, Any]]) -> str:
    shown = (vector for vector in golden if len(vector["body"]) <= _LONGEST_SHOWN)
    return _table(
        "Message | Fields | Header: node, seq, time_us | Body | Frame",
        (
            (vector["message"], ", ".join(f"{name} {json.dumps(value)}" for name, value in vector["fields"].items()),
             f"{vector['node']}, {vector['seq']}, {vector['time_us']}", f"`{vector['body']}`" if vector["body"] else "",
             f"`{vector['frame']}`")
            for vector in shown
        ),
    )  # fmt: skip
