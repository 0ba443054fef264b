"""Text of protocol/jointwire/bodies.py: a dataclass for the body of each message."""

from __future__ import annotations

from collections.abc import Iterator

from jointwire.docs import DOCS
from jointwire.generate.spelling import COMMAND, class_name
from jointwire.messages import BODIES, MessageType
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
    if code == "[l]":
        return "tuple[int, ...]"
    return "bytes" if code.startswith("[") or code.endswith("s") else "int"
