"""Text of firmware/jointboard/wire.py: the board's half of the codec, and its table of registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum, IntFlag
from pathlib import Path
from struct import calcsize
from textwrap import fill

from jointwire.channels import CHANNELS
from jointwire.framing import LAYOUTS
from jointwire.messages import (
    BODIES,
    BROADCAST_NODE,
    FROZEN,
    HEADER,
    KNOT,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    MessageType,
)
from jointwire.registers import REGISTER_COUNT, REGISTERS, Access
from jointwire.schema import ENUMERATIONS, schema_hash, struct_fields

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "python -m jointwire.generate"


def class_name(kind: MessageType) -> str:
    """HELLO_ACK as HelloAck."""
    return kind.name.title().replace("_", "")


def constant_prefix(class_name: str) -> str:
    """ResetCause as RESET_CAUSE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).upper()


_HEAD = f'''\
"""The wire as the board needs it. Generated from protocol/jointwire, do not edit: `{COMMAND}`"""

import struct
from array import array

from micropython import const
'''

_FUNCTIONS = '''
def pack(kind, buffer, at, *fields):
    """Body (or its head, before repeated items) of message `kind` into `buffer` from byte `at`."""
    struct.pack_into(BODIES[kind][0], buffer, at, *fields)


def unpack(kind, buffer, at, length):
    """Fields of a body of `length` bytes; None when the message has another length. Repeated items stay in place."""
    head, size, item = BODIES[kind]
    if length < size:
        return None
    fields = struct.unpack_from(head, buffer, at)
    return fields if length == size + (fields[-1] * item if item else 0) else None
'''

# Access codes of a register on the board; 0 marks an id that no register has.
_ACCESS_CODES: dict[Access, int] = {"ro": 1, "rw": 2, "rw-disarmed": 3, "persist": 4}


def board_codec() -> str:
    """Text of the board's wire.py."""
    return "\n".join([_HEAD, *_constants(), "", *_bodies(), "", *_registers(), "", *_channels(), _FUNCTIONS])


def _constants() -> Iterator[str]:
    for name, value in (("PROTOCOL_MAJOR", PROTOCOL_MAJOR), ("PROTOCOL_MINOR", PROTOCOL_MINOR),
                        ("MAX_BODY", MAX_BODY), ("BROADCAST_NODE", BROADCAST_NODE)):  # fmt: skip
        yield f"{name} = const({value})"
    yield f"SCHEMA_HASH = const(0x{schema_hash():08X})"
    yield f"KNOT_SIZE = const({KNOT.sizeof()})"
    enumerations: tuple[type[IntEnum | IntFlag], ...] = (MessageType, *ENUMERATIONS)
    for members in enumerations:
        prefix = "MESSAGE" if members is MessageType else constant_prefix(members.__name__)
        yield ""
        yield from (f"{prefix}_{member.name} = const({member.value})" for member in members)
    yield ""
    yield from _numbers("FROZEN = ((", [f"MESSAGE_{kind.name}" for kind in sorted(FROZEN)])


def _bodies() -> Iterator[str]:
    fields = struct_fields(HEADER)
    yield f"# {', '.join(name for name, _ in fields)}"
    yield f'HEADER = "<{"".join(code for _, code in fields)}"'
    yield f"HEADER_SIZE = const({HEADER.sizeof()})"
    yield ""
    yield "# Message: (struct format of the head, its bytes, bytes of a repeated item whose count is the last field)"
    yield "BODIES = {"
    for kind in MessageType:
        layout = LAYOUTS[kind]
        if fields := struct_fields(BODIES[kind]):
            yield fill(", ".join(name for name, _ in fields), 120, initial_indent="    # ", subsequent_indent="    # ")
        yield f'    MESSAGE_{kind.name}: ("{layout.head.format}", {layout.head.size}, {layout.item_size}),'
    yield "}"


def _registers() -> Iterator[str]:
    ids = range(REGISTER_COUNT)
    by_id = {register.id: register for register in REGISTERS}
    for register in REGISTERS:
        yield f"REGISTER_{register.name.upper().replace('.', '_')} = const({register.id})"
    yield ""
    yield "# By id. Access: 0 no such register, 1 read only, 2 writable, 3 writable while the motor cannot move,"
    yield "# 4 the same and kept by SAVE."
    yield f"REGISTER_COUNT = const({REGISTER_COUNT})"
    yield from _numbers("ACCESS = bytes((", [_ACCESS_CODES[by_id[id].access] if id in by_id else 0 for id in ids])
    columns = (
        ("DEFAULT", [by_id[id].default if id in by_id else 0 for id in ids]),
        # The bounds of a fact are never asked for: a zero saves the board a big integer.
        ("MINIMUM", [by_id[id].minimum if _writable(id) else 0 for id in ids]),
        ("MAXIMUM", [by_id[id].maximum if _writable(id) else 0 for id in ids]),
    )
    for name, values in columns:
        yield from _numbers(f'{name} = array("i", (', values)
    yield "# The facts of a board by name, for its configuration file."
    yield "FACTS = {"
    yield from (f'    "{r.name}": {r.id},' for r in REGISTERS if r.access in ("ro", "persist"))
    yield "}"


def _writable(id: int) -> bool:
    return any(register.id == id and register.access != "ro" for register in REGISTERS)


def _numbers(opening: str, values: Sequence[int | str]) -> Iterator[str]:
    yield opening
    yield fill(", ".join(map(str, values)) + ",", 120, initial_indent="    ", subsequent_indent="    ")
    yield "))"


def _channels() -> Iterator[str]:
    names = ", ".join(channel.name for channel in CHANNELS)
    yield fill(f"Of channel 0, 1, …: {names}.", 120, initial_indent="# ", subsequent_indent="# ")
    yield f"CHANNEL_KINDS = bytes(({', '.join(str(channel.kind.value) for channel in CHANNELS)}))"
    yield f"CHANNEL_SIZES = bytes(({', '.join(str(calcsize(channel.format)) for channel in CHANNELS)}))  # in a sample"
