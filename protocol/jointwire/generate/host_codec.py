"""Text of the generated modules of the host: a dataclass for each body, and a method of Client for each request."""

from __future__ import annotations

from collections.abc import Iterator

from jointwire.docs import DOCS
from jointwire.generate.board_codec import COMMAND, class_name
from jointwire.messages import ANSWERS, BODIES, MessageType
from jointwire.registers import REGISTERS
from jointwire.schema import struct_fields

_HEAD = f'''\
"""The body of each message as a dataclass. Generated from messages.py, do not edit: `{COMMAND}`"""

from dataclasses import dataclass
from typing import Any

from jointwire.messages import MessageType
'''


def bodies() -> str:
    """Text of the file."""
    lines = [_HEAD]
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
    """What a board answered.

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
