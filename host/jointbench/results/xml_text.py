"""Numbers and names in XML: every digit that a double has, so that what is read back is what was written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

import numpy as np

from jointbench.arrays import Array


def numbers(values: Iterable[float]) -> str:
    """The values with all their digits, a space between them.

    >>> numbers([0.1, -0.0, 2])
    '0.1 0 2'
    """
    return " ".join(f"{float(value) + 0.0!r}".removesuffix(".0") for value in values)


def attributes(**values: str | float | Iterable[float]) -> str:
    r"""name="value" of each, a space before it; a name that Python keeps for itself has an underscore behind it.

    >>> attributes(name='a "b"', type_="fixed", xyz=[1, 0.5])
    ' name=\'a "b"\' type="fixed" xyz="1 0.5"'
    """
    return "".join(f" {name.rstrip('_')}={quoteattr(_text(value))}" for name, value in values.items())


def comment(text: str) -> str:
    """A comment; two hyphens would end it.

    >>> comment("2021--2024")
    '<!-- 2021- -2024 -->'
    """
    return f"<!-- {re.sub('-(?=-)', '- ', text)} -->"


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """Angles [rad] about fixed x, y, z axes of a rotation Rz(yaw) Ry(pitch) Rx(roll).

    Any yaw would do where the pitch is a right angle; what is left after it is taken off gives the others.
    """
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    cosine, sine = math.cos(yaw), math.sin(yaw)
    rest = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw


def _text(value: str | float | Iterable[float]) -> str:
    if isinstance(value, str):
        return value
    return numbers([value] if isinstance(value, int | float) else value)
