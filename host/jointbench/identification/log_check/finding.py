"""One thing that was looked at in a log: a figure, what it may be at most, and what to do beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Word = Literal["fine", "suspicious", "wrong"]


@dataclass(frozen=True)
class Finding:
    """A figure that judges itself.

    Attributes:
        name: of what was looked at.
        joints: that it concerns.
        value: the figure; the larger, the worse.
        suspicious_from, wrong_from: the figure from which on it is so; inf where it never is.
        what: was found, a sentence with figures.
        advice: what to do where it is not fine.
    """

    name: str
    joints: tuple[str, ...]
    value: float
    suspicious_from: float
    wrong_from: float
    what: str
    advice: str

    @property
    def word(self) -> Word:
        """What the figure means; one that is not a number is suspicious."""
        if self.value >= self.wrong_from:
            return "wrong"
        return "suspicious" if math.isnan(self.value) or self.value >= self.suspicious_from else "fine"

    def __str__(self) -> str:
        joints = f" {', '.join(self.joints)}" if self.joints and self.word != "fine" else ""
        return f"{self.word}: {self.name}{joints}: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; a figure that is not finite is None, and limits that are never reached are left out."""
        limits = {"suspicious_from": self.suspicious_from, "wrong_from": self.wrong_from}
        return {
            "name": self.name,
            "joints": list(self.joints),
            "word": self.word,
            "value": self.value if math.isfinite(self.value) else None,
            "what": self.what,
            "advice": self.advice if self.word != "fine" else "",
        } | {name: limit for name, limit in limits.items() if math.isfinite(limit)}
