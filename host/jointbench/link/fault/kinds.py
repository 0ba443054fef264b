"""The table of faults: what each strikes, what it does, and what can be set of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes:
        unit: what it strikes: "byte", "frame", or "time" for one that has no unit to count.
        does: what it does, in words.
        defaults: settings of its own, and what they are where they are not given.
    """

    unit: str
    does: str
    defaults: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of all that can be set after its rate."""
        schedule = ("every", "at") if self.unit == "time" else ("every", "at", "from", "until")
        return (*schedule, *self.defaults)


KINDS: dict[str, Kind] = {
    "drop": Kind("byte", "the byte is lost"),
    "flip": Kind("byte", "one of its bits is inverted"),
    "baud": Kind("byte", "a burst of bytes from it on is read at a wrong baud rate", {"bytes": "32", "ratio": "2"}),
    "lose": Kind("frame", "the frame is lost"),
    "duplicate": Kind("frame", "it comes twice"),
    "truncate": Kind("frame", "it loses its end, delimiter included"),
    "delay": Kind("frame", "it comes later, and what follows no sooner", {"for": "20ms"}),
    "reorder": Kind("frame", "the next one passes it; after `for` without one it goes on alone", {"for": "50ms"}),
    "reset": Kind("frame", "the line breaks in it, loses what is under way and is dead for `for`", {"for": "300ms"}),
    "stall": Kind("time", "nothing passes for `for`, then all that waited", {"for": "300ms"}),
}
