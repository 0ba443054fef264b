"""A line's faults as their URL gives them: two directions, and a count of what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from jointbench.link.fault.byte_faults import BaudGlitch, ByteFault, Drop, Flip
from jointbench.link.fault.direction import Direction
from jointbench.link.fault.frame_faults import Delay, Duplicate, FrameFault, Lose, Reorder, Reset, Truncate
from jointbench.link.fault.schedule import Schedule, Trigger
from jointbench.link.fault.stall import Stall

DIRECTIONS = ("rx", "tx")


@dataclass(frozen=True)
class FaultSettings:
    """One fault of one direction.

    Attributes:
        direction: "rx", board to host, or "tx", host to board.
        kind: a name in `kinds.KINDS`.
        schedule: when it strikes; of a stall, `every` is in µs.
        for_us: shortest and longest time it lasts.
        burst, ratio: of a baud glitch, bytes and the receiver's baud rate over the sender's.
    """

    direction: str
    kind: str
    schedule: Schedule
    for_us: tuple[int, int] = (0, 0)
    burst: int = 0
    ratio: float = 1.0


class Faults:
    """What passes through a faulty line.

    The same seed and the same bytes at the same times give the same bytes, in whatever pieces they come.

    Attributes:
        tx: from host to board.
        rx: from board to host.
    """

    def __init__(self, settings: Sequence[FaultSettings], seed: int = 0, delimiter: int = 0) -> None:
        """Faults work in the order they are given; `delimiter` is the byte that ends a frame."""
        self._struck: dict[str, ByteFault | FrameFault | Stall] = {}
        self.tx: Direction = self._direction("tx", settings, seed, delimiter)
        self.rx: Direction = self._direction("rx", settings, seed, delimiter)

    @property
    def counts(self) -> dict[str, int]:
        """How often each fault has struck, by direction and name: {"rx.drop": 3}."""
        return {name: fault.struck for name, fault in self._struck.items()}

    def next_due_us(self) -> int | None:
        """When next there is something to take from either direction; None while nothing waits."""
        due = [each for each in (self.tx.next_due_us, self.rx.next_due_us) if each is not None]
        return min(due) if due else None

    def _direction(self, name: str, settings: Sequence[FaultSettings], seed: int, delimiter: int) -> Direction:
        of_bytes: list[ByteFault] = []
        of_frames: list[FrameFault] = []
        stall = None
        for each in settings:
            if each.direction != name:
                continue
            fault = _fault(each, seed)
            self._struck[f"{name}.{each.kind}"] = fault
            if isinstance(fault, ByteFault):
                of_bytes.append(fault)
            elif isinstance(fault, FrameFault):
                of_frames.append(fault)
            else:
                stall = fault
        return Direction(of_bytes, of_frames, stall, delimiter)


def _fault(settings: FaultSettings, seed: int) -> ByteFault | FrameFault | Stall:
    # Each fault has random numbers of its own, apart for when and how: what one does never shifts another.
    name = f"{seed} {settings.direction}.{settings.kind}"
    trigger, random = Trigger(settings.schedule, Random(f"{name} when")), Random(f"{name} how")
    match settings.kind:
        case "drop":
            return Drop(trigger, random)
        case "flip":
            return Flip(trigger, random)
        case "baud":
            return BaudGlitch(trigger, random, settings.burst, settings.ratio)
        case "lose":
            return Lose(trigger, random)
        case "duplicate":
            return Duplicate(trigger, random)
        case "truncate":
            return Truncate(trigger, random)
        case "delay":
            return Delay(trigger, random, *settings.for_us)
        case "reorder":
            return Reorder(trigger, random, settings.for_us[1])
        case "reset":
            return Reset(trigger, random, settings.for_us[1])
        case _:
            return Stall(settings.schedule.at_us, settings.schedule.every or 1, settings.for_us[1])
