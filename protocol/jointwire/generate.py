"""`python -m jointwire.generate` writes the board's half of the codec, firmware/jointboard/wire.py, from the schema.

With `--check` it writes nothing and exits 1 when the file is not what the schema says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from struct import calcsize
from textwrap import fill

from jointwire.channels import CHANNELS
from jointwire.messages import (
    BODIES,
    BROADCAST_NODE,
    HEADER,
    KNOT,
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    UNSEEDED,
    MessageType,
    Refusal,
    State,
    Trip,
)
from jointwire.registers import REGISTERS, Access
from jointwire.schema import schema_hash, struct_fields

BOARD_CODEC = Path(__file__).resolve().parents[2] / "firmware" / "jointboard" / "wire.py"

_HEAD = '''\
"""The wire as the board needs it. Generated from protocol/jointwire by `python -m jointwire.generate`: do not edit."""

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
_ACCESS_CODES: dict[Access, int] = {"ro": 1, "rw": 2, "rw-disarmed": 3}


def board_codec() -> str:
    """Text of the board's wire.py."""
    return "\n".join([_HEAD, *_constants(), "", *_bodies(), "", *_registers(), "", *_channels(), _FUNCTIONS])


def _constants() -> Iterator[str]:
    for name, value in (("PROTOCOL_MAJOR", PROTOCOL_MAJOR), ("PROTOCOL_MINOR", PROTOCOL_MINOR),
                        ("MAX_BODY", MAX_BODY), ("BROADCAST_NODE", BROADCAST_NODE)):  # fmt: skip
        yield f"{name} = const({value})"
    yield f"SCHEMA_HASH = const(0x{schema_hash():08X})"
    yield f"KNOT_SIZE = const({KNOT.sizeof()})"
    enumerations: tuple[type[IntEnum], ...] = (MessageType, State, Trip, Refusal)
    for members in enumerations:
        prefix = "MESSAGE" if members is MessageType else members.__name__.upper()
        yield ""
        yield from (f"{prefix}_{member.name} = const({member.value})" for member in members)
    yield ""
    yield f"UNSEEDED = ({', '.join(f'MESSAGE_{kind.name}' for kind in sorted(UNSEEDED))})"


def _bodies() -> Iterator[str]:
    fields = struct_fields(HEADER)
    yield f"# {', '.join(name for name, _ in fields)}"
    yield f'HEADER = "<{"".join(code for _, code in fields)}"'
    yield f"HEADER_SIZE = const({HEADER.sizeof()})"
    yield ""
    yield "# Message: (struct format of the head, its bytes, bytes of a repeated item whose count is the last field)"
    yield "BODIES = {"
    for kind in MessageType:
        fields = struct_fields(BODIES[kind])
        head = "<" + "".join(code for _, code in fields if not code.startswith("["))
        items = [code.strip("[]") for _, code in fields if code.startswith("[")]
        item_size = calcsize("<" + items[0]) if items else 0
        if fields:
            yield fill(", ".join(name for name, _ in fields), 120, initial_indent="    # ", subsequent_indent="    # ")
        yield f'    MESSAGE_{kind.name}: ("{head}", {calcsize(head)}, {item_size}),'
    yield "}"


def _registers() -> Iterator[str]:
    ids = range(max(register.id for register in REGISTERS) + 1)
    by_id = {register.id: register for register in REGISTERS}
    for register in REGISTERS:
        yield f"REGISTER_{register.name.upper().replace('.', '_')} = const({register.id})"
    yield ""
    yield "# By id. Access: 0 no such register, 1 read only, 2 writable, 3 writable while the motor cannot move."
    yield f"REGISTER_COUNT = const({len(ids)})"
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
    yield from (f'    "{r.name}": {r.id},' for r in REGISTERS if r.access == "ro")
    yield "}"


def _writable(id: int) -> bool:
    return any(register.id == id and register.access != "ro" for register in REGISTERS)


def _numbers(opening: str, values: list[int]) -> Iterator[str]:
    yield opening
    yield fill(", ".join(map(str, values)) + ",", 120, initial_indent="    ", subsequent_indent="    ")
    yield "))"


def _channels() -> Iterator[str]:
    yield f"# Bytes in a sample of channel 0, 1, …: {', '.join(channel.name for channel in CHANNELS)}"
    yield f"CHANNEL_SIZES = bytes(({', '.join(str(calcsize(channel.format)) for channel in CHANNELS)}))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the board's codec, or with --check say whether it is stale (exit 1)."""
    parser = argparse.ArgumentParser(prog="python -m jointwire.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is stale")
    parser.add_argument("--output", type=Path, default=BOARD_CODEC, help="file of the board's codec")
    options = parser.parse_args(arguments)
    text = board_codec()
    if options.check:
        if options.output.is_file() and options.output.read_text(encoding="utf-8") == text:
            return 0
        print(f"{options.output} is not what the schema says; run: python -m jointwire.generate", file=sys.stderr)
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
