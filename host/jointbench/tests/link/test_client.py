"""The typed client against the golden vectors: what its methods ask, and which answers they take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jointwire
from jointbench.link.client import Client
from jointwire import ANSWERS, BODIES, REGISTERS, Frame, MessageType, decode_frame, encode_frame

GOLDEN: list[dict[str, Any]] = json.loads((Path(jointwire.__file__).parent / "tests/vectors.json").read_text("utf-8"))
REQUESTS = [vector for vector in GOLDEN if MessageType(vector["type"]) in ANSWERS]


class Line:
    """An asker that keeps what was asked, and answers with what it is given."""

    def __init__(self, answer: bytes) -> None:
        self.asked = b""
        self.matched: bool | None = None
        self.answer = decode_frame(answer[:-1])

    def __call__(
        self,
        kind: MessageType,
        answer: MessageType,
        matches: Callable[[Any], bool],
        about: str = "",
        allowed: str = "",
        **fields: Any,
    ) -> tuple[int, Frame]:
        assert answer is self.answer.type
        self.asked = decode_frame(encode_frame(kind, 1, 0, **fields)[:-1]).payload
        self.matched = matches(self.answer.body)
        self.words = about, allowed
        return 77, self.answer


def _arguments(vector: dict[str, Any]) -> dict[str, Any]:
    """The fields as a method takes them: no count of what it can count, registers by name."""
    fields = {name: bytes.fromhex(v) if isinstance(v, str) else v for name, v in vector["fields"].items()}
    if "knots" in fields or "data" in fields:
        del fields["count"]
    if "register" in fields:
        fields["register"] = next(r.name for r in REGISTERS if r.id == fields["register"])
    return fields


def _answer(vector: dict[str, Any], **changes: Any) -> bytes:
    """A golden answer with the fields that it repeats from the request."""
    answer = ANSWERS[MessageType(vector["type"])]
    golden = next(v for v in GOLDEN if v["type"] == answer.type)
    body = BODIES[answer.type].parse(bytes.fromhex(golden["body"]))
    fields = {name: body[name] for name in golden["fields"]}
    for name in answer.echoed:
        value = vector["fields"][name]
        fields[name] = bytes.fromhex(value) if isinstance(value, str) else value
    if answer.type is MessageType.VALUES:
        fields["values"] = [7] * fields["count"]
    return encode_frame(answer.type, 1, 0, **fields | changes)


# A register that no board has cannot be asked for by name.
KNOWN = [v for v in REQUESTS if v["fields"].get("register") in (None, *(r.id for r in REGISTERS))]


@pytest.mark.parametrize("vector", KNOWN, ids=lambda vector: vector["message"])
def test_a_method_asks_with_the_vectors_bytes(vector: dict[str, Any]) -> None:
    line = Line(_answer(vector))
    method = getattr(Client(line), vector["message"].lower())
    answer = method(**_arguments(vector), about="this", allowed="that")
    assert line.asked.hex() == vector["body"]
    assert line.matched is True
    assert line.words == ("this", "that")
    assert (answer.received_us, answer.body, answer.frame) == (77, line.answer.body, line.answer)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("READ", {"first": 6}),
        ("READ", {"count": 3, "values": [1, 2, 3]}),
        ("PING", {"nonce": 1}),
        ("DICT", {"offset": 0}),
        ("ECHO", {"count": 4, "data": b"\0\1\3\1"}),
    ],
)
def test_an_answer_to_another_request_is_not_taken(message: str, changes: dict[str, Any]) -> None:
    vector = next(vector for vector in REQUESTS if vector["message"] == message)
    line = Line(_answer(vector, **changes))
    getattr(Client(line), message.lower())(**_arguments(vector))
    assert line.matched is False


def test_every_request_is_asked_here() -> None:
    assert {vector["message"] for vector in KNOWN} == {kind.name for kind in ANSWERS}
