"""`python -m jointwire.generate` writes every file that is derived from the definition of the wire.

With `--check` it writes nothing, names the files that are not what the definition says, and exits 1 if there are any.
docs/wire.md takes its prose from wire.md.in and its tables from the definition, as the golden vectors do.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from struct import calcsize
from typing import Any

from cobs import cobs
from construct import ConstructError

from jointwire.channels import CHANNELS, ChannelKind
from jointwire.docs import DOCS, MEMBERS
from jointwire.errors import SchemaError
from jointwire.framing import MAX_ENCODED, MAX_FRAME, encode_frame
from jointwire.generate.codecs import COMMAND, ROOT, board_codec, bodies, client
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
from jointwire.schema import schema_hash, schema_text, struct_fields, type_name

_TEMPLATE = Path(__file__).resolve().parents[1] / "wire.md.in"
_LONGEST_SHOWN = 60  # hex digits of a body

VECTORS = Path("protocol/jointwire/tests/vectors.json")

Vector = dict[str, Any]
"""Keys message, type, node, seq, time_us, flags, fields, body, frame; bytes as hex digits. DATA has samples, the rest
of its body, and columns, the values in them."""


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


@dataclass(frozen=True)
class Generated:
    """A file of the checkout that is derived from the definition.

    Attributes:
        path: from the root of the checkout.
        text: makes its text.
        compressed: whether the file holds the text compressed by zlib.
    """

    path: Path
    text: Callable[[], str]
    compressed: bool = False

    def is_stale(self, root: Path) -> bool:
        """Return whether the file is missing or says anything else than the definition."""
        try:
            content = (root / self.path).read_bytes()
            # Two releases of zlib may compress the same text differently.
            return (zlib.decompress(content) if self.compressed else content) != self.text().encode()
        except (OSError, zlib.error):
            return True

    def write(self, root: Path) -> None:
        """Write the file anew."""
        content = self.text().encode()
        path = root / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(content, 9) if self.compressed else content)


FILES = (
    Generated(Path("protocol/jointwire/bodies.py"), bodies),
    Generated(Path("host/jointbench/bench/client.py"), client),
    Generated(Path("firmware/jointboard/wire.py"), board_codec),
    Generated(Path("firmware/jointboard/schema.bin"), schema_text, compressed=True),
    Generated(VECTORS, vectors),
    Generated(Path("docs/wire.md"), reference),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the stale files, or with --check name them (exit 1)."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the checkout (default: the one this program is in)")
    options = parser.parse_args(arguments)
    return max(_bring_up_to_date(file, options.root, options.check) for file in FILES)


def _bring_up_to_date(file: Generated, root: Path, check: bool) -> int:
    """Exit status for one file."""
    try:
        if not file.is_stale(root):
            return 0
        if not check:
            file.write(root)
            return 0
        print(f"{root / file.path} is not what the wire's definition says; run: {COMMAND}", file=sys.stderr)
    except SchemaError as error:
        print(f"{root / file.path} cannot be made: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
