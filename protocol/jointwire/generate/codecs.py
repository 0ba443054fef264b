"""Text of the codecs: the board's half in firmware/jointboard/wire.py, the host's bodies and its client.

The board has constants, bodies and its table of registers; the host a dataclass for each body, and a method of Client
for each request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum, IntFlag
from pathlib import Path
from struct import calcsize
from textwrap import fill

from jointwire.channels import CHANNELS
from jointwire.docs import DOCS
from jointwire.framing import LAYOUTS
from jointwire.messages import (
    ANSWERS,
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

_BODIES_HEAD = f'''\
"""The body of each message as a dataclass. Generated from messages.py, do not edit: `{COMMAND}`"""

from dataclasses import dataclass
from typing import Any

from jointwire.messages import MessageType
'''


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


def bodies() -> str:
    """Text of the file."""
    lines = [_BODIES_HEAD]
    for kind in MessageType:
        lines += _body_class(kind)
    lines += [
        "",
        "CLASSES: dict[MessageType, type[Any]] = {",
        *(f"    MessageType.{kind.name}: {class_name(kind)}," for kind in MessageType),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _body_class(kind: MessageType) -> Iterator[str]:
    yield from ("", "@dataclass(frozen=True, slots=True)", f"class {class_name(kind)}:")
    fields = struct_fields(BODIES[kind])
    if not fields:
        yield from (f'    """{DOCS[kind]}"""', "")
        return
    yield from (f'    """{DOCS[kind]}', "", "    Attributes:")
    yield from (f"        {sub.name}: {sub.docs}." for sub in BODIES[kind].subcons)
    yield from ('    """', "")
    yield from (f"    {name}: {python_type(code)}" for name, code in fields)
    yield ""


def python_type(code: str) -> str:
    """Python's type of a field with this struct code."""
    if code in {"[l]", "[h]"}:
        return "tuple[int, ...]"
    return "bytes" if code.startswith("[") or code.endswith("s") else "int"


_CLIENT_HEAD = f'''\
"""Every request of the wire as a typed method. Generated, do not edit: `{COMMAND}`"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from jointwire.bodies import {{classes}}
from jointwire.framing import Frame
from jointwire.messages import ANSWERS, MessageType
from jointwire.registers import BY_NAME

Body = TypeVar("Body")

RegisterName = Literal[
{{registers}}
]


class Answer(NamedTuple, Generic[Body]):
    """A board's answer to a request.

    Attributes:
        received_us: when, by the host's clock.
        body: of the answer.
        frame: the whole of it.
    """

    received_us: int
    body: Body
    frame: Frame


class Asker(Protocol):
    """Sends a request until it is answered, and raises when it is refused or nothing answers."""

    def __call__(
        self,
        kind: MessageType,
        answer: MessageType,
        matches: Callable[[Any], bool],
        **fields: Any,
    ) -> tuple[int, Frame]:
        """Ask a board.

        Args:
            kind: of the request.
            answer: the type its answer has.
            matches: whether an answer of that type, by its body, is to this request.
            fields: of the request's body.

        Returns:
            When the answer came [µs], and the answer.
        """
        ...


class Client:
    """Asks one board; errors are the asker's."""

    def __init__(self, ask: Asker) -> None:
        """Ask through this."""
        self._ask = ask

    def _request(self, kind: MessageType, **fields: Any) -> Answer[Any]:
        answer = ANSWERS[kind]

        def matches(body: Any) -> bool:
            return all(getattr(body, name) == fields[name] for name in answer.echoed)

        received_us, frame = self._ask(kind, answer.type, matches, **fields)
        return Answer(received_us, frame.body, frame)
'''

# What a caller gives for repeated items and bytes; their count follows from it.
_PARAMETERS = {"[ll]": "Sequence[Mapping[str, int]]", "[B]": "bytes", "[h]": "Sequence[int]"}


def client() -> str:
    """Text of the file."""
    requests = [kind for kind in MessageType if kind in ANSWERS]
    classes = ", ".join(sorted({class_name(ANSWERS[kind].type) for kind in requests}))
    names = "\n".join(f'    "{register.name}",' for register in REGISTERS)
    lines = [_CLIENT_HEAD.format(classes=classes, registers=names)]
    for kind in requests:
        lines += _method(kind)
    return "\n".join(lines)


def _method(kind: MessageType) -> Iterator[str]:
    parameters, arguments = _signature(kind)
    arguments_text = "".join(f", {name}: {annotation}" for name, annotation in parameters.items())
    answer = class_name(ANSWERS[kind].type)
    definition = f"    def {kind.name.lower()}(self{arguments_text}) -> Answer[{answer}]:"
    yield definition
    if parameters:
        docs = {sub.name: sub.docs for sub in BODIES[kind].subcons} | {"register": "its name"}
        yield from (f'        """{DOCS[kind]}', "", "        Args:")
        yield from (f"            {name}: {docs[name]}." for name in parameters)
        yield '        """'
    else:
        yield f'        """{DOCS[kind]}"""'
    fields = "".join(f", {name}={value}" for name, value in arguments.items())
    yield f"        return self._request(MessageType.{kind.name}{fields})"
    yield ""


def _signature(kind: MessageType) -> tuple[dict[str, str], dict[str, str]]:
    """Parameters of a method with their types, and the fields of the request with what they are made of."""
    fields = dict(struct_fields(BODIES[kind]))
    repeated = next((name for name, code in fields.items() if code.startswith("[")), "")
    parameters: dict[str, str] = {}
    arguments: dict[str, str] = {}
    for name, code in fields.items():
        if repeated and name == "count":
            arguments[name] = f"len({repeated})"
        elif name == "register":
            parameters[name], arguments[name] = "RegisterName", "BY_NAME[register].id"
        else:
            parameters[name], arguments[name] = _PARAMETERS.get(code, python_type(code)), name
    return parameters, arguments
