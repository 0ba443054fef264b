"""What can happen to whole frames: bytes up to and with a delimiter, as packets of a bridge or a hub carry them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random

from jointbench.link.fault.schedule import Trigger


@dataclass
class Passage:
    """What becomes of one frame; each fault that strikes it changes something.

    Attributes:
        frames: what comes of it, in order.
        delay_us: how much later.
        patience_us: how long it waits for the next frame to pass it first; None where it does not wait.
        quiet_us: how long the line is dead after it; None where it is not.
    """

    frames: list[bytes]
    delay_us: int = 0
    patience_us: int | None = None
    quiet_us: int | None = None


class FrameFault(ABC):
    """Strikes whole frames.

    Attributes:
        struck: how often.
    """

    def __init__(self, trigger: Trigger, random: Random) -> None:
        """`random` decides everything but when to strike."""
        self.struck: int = 0
        self._trigger, self._random = trigger, random

    def apply(self, passage: Passage, now_us: int) -> None:
        """Strike a frame that passes at this time, or leave it."""
        if self._trigger.strikes(1, now_us):
            self.struck += 1
            self._strike(passage)

    @abstractmethod
    def _strike(self, passage: Passage) -> None:
        """Change what becomes of a frame that is struck."""

    def _cut(self, frame: bytes) -> bytes:
        """A frame without its end: without its delimiter at least, without all of it at most."""
        return frame[: self._random.randrange(len(frame))]


class Lose(FrameFault):
    """The frame is lost."""

    def _strike(self, passage: Passage) -> None:
        passage.frames = []


class Duplicate(FrameFault):
    """It comes twice."""

    def _strike(self, passage: Passage) -> None:
        passage.frames *= 2


class Truncate(FrameFault):
    """It loses its end, so that the next frame's bytes follow without a delimiter."""

    def _strike(self, passage: Passage) -> None:
        passage.frames = [self._cut(frame) for frame in passage.frames]


class Delay(FrameFault):
    """It comes later, and what follows it no sooner."""

    def __init__(self, trigger: Trigger, random: Random, shortest_us: int, longest_us: int) -> None:
        """Each delay is evenly distributed between two [µs]."""
        super().__init__(trigger, random)
        self._range = shortest_us, longest_us

    def _strike(self, passage: Passage) -> None:
        passage.delay_us += self._random.randint(*self._range)


class Reorder(FrameFault):
    """It lets the next frame pass first; after a while without one it goes on alone."""

    def __init__(self, trigger: Trigger, random: Random, patience_us: int) -> None:
        """`patience_us`: how long it waits for a next frame."""
        super().__init__(trigger, random)
        self._patience_us = patience_us
        self._passing = False  # whether the frame before was struck: the one that passes it does not wait itself

    def apply(self, passage: Passage, now_us: int) -> None:
        """Strike a frame that passes at this time, or leave it."""
        before = self.struck
        if self._passing:
            self._trigger.strikes(1, now_us)
        else:
            super().apply(passage, now_us)
        self._passing = self.struck > before

    def _strike(self, passage: Passage) -> None:
        passage.patience_us = self._patience_us


class Reset(FrameFault):
    """The line breaks within the frame, loses what is under way, and is dead for a while."""

    def __init__(self, trigger: Trigger, random: Random, quiet_us: int) -> None:
        """`quiet_us`: how long nothing passes."""
        super().__init__(trigger, random)
        self._quiet_us = quiet_us

    def _strike(self, passage: Passage) -> None:
        passage.frames = [self._cut(frame) for frame in passage.frames[:1]]
        passage.quiet_us = self._quiet_us
