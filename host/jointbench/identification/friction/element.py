"""What friction laws consist of where speed counts: terms that compute without knowing of laws."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Form(IntEnum):
    """How an element depends on the velocity v; s is its shape. See `FORMS`."""

    SIGN = 0
    SPEED = 1
    BELL = 2
    TANH = 3
    LOAD = 4


FORMS = {
    Form.SIGN: "sign(v)",
    Form.SPEED: "v",
    Form.BELL: "sign(v) exp(-(v/s)^2)",
    Form.TANH: "tanh(s v)",
    Form.LOAD: "sign(v) |load|",
}
"""In words."""


class Element(NamedTuple):
    """coefficient * form(v), in both directions or, where direction is 1 or -1, only for v of that sign."""

    form: Form
    coefficient: float
    shape: float = 1.0
    direction: int = 0
