"""Bodies as bytes to bodies as dataclasses: the layouts of messages.py once more as structs, which parse fast."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jointwire.errors import BodyError
from jointwire.messages import APPENDED, BODIES, FROZEN, MessageType
from jointwire.schema import struct_fields


@dataclass(frozen=True)
class Layout:
    """A body: a head, then as many items as the head's last field says.

    Attributes:
        head: struct of the head.
        item: struct codes of an item, "" where nothing repeats.
        item_size: bytes of an item.
    """

    head: struct.Struct
    item: str
    item_size: int


def _layout(kind: MessageType) -> Layout:
    codes = [code for _, code in struct_fields(BODIES[kind])]
    item = codes.pop()[1:-1] if codes and codes[-1].startswith("[") else ""
    return Layout(struct.Struct("<" + "".join(codes)), item, struct.calcsize("<" + item))


LAYOUTS: dict[MessageType, Layout] = {kind: _layout(kind) for kind in MessageType}


@lru_cache(maxsize=1)
def _classes() -> dict[MessageType, Any]:
    from jointwire.bodies import CLASSES  # which is generated: without that file the generator must still start

    return CLASSES


def parse_body(kind: MessageType, payload: bytes) -> Any:
    """The body as its dataclass of bodies.py; of DATA the head, of a frozen message the fields known here.

    Fields that an earlier version's frozen message did not have yet are zeros.

    Raises:
        BodyError: the payload is too short for the message type, or longer than it may be.
    """
    layout = LAYOUTS[kind]
    size = layout.head.size
    if 0 < size - len(payload) <= APPENDED.get(kind, 0):
        payload = payload.ljust(size, b"\0")
    if len(payload) < size:
        raise BodyError(f"has a body of {len(payload)} bytes; {size - APPENDED.get(kind, 0)} are the least")
    fields = layout.head.unpack_from(payload)
    if layout.item:
        start, size = size, size + fields[-1] * layout.item_size
        if len(payload) < size:
            raise BodyError(f"has a body of {len(payload)} bytes; its {fields[-1]} items need {size}")
        items = payload[start:size]
        # Knots and plain bytes stay bytes: who wants them as numbers has NumPy.
        fields += (struct.unpack(f"<{fields[-1]}i", items) if layout.item == "l" else items,)
    if len(payload) > size and kind not in FROZEN and kind is not MessageType.DATA:
        raise BodyError(f"has {len(payload) - size} bytes after its last field")
    return _classes()[kind](*fields)
