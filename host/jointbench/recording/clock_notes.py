"""What boards say of their clocks while a run is recorded, and the clocks that follow from it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, overload

from jointbench.errors import RunError
from jointbench.link.sync import BoardClock, Exchange, Pulse, board_clock, tie_by_pulses
from jointwire import BodyError, Frame, MessageType

# Frames may come late by some blocks; ticks that fall by more, or go ahead by a quarter of an hour, mean that the board
# started again.
_LATE_TICKS, _AHEAD_TICKS = 4096, 1 << 20
_WORD = 1 << 32

_Item = TypeVar("_Item")


class Packed(Sequence[_Item]):
    """Items of some whole numbers each, as few bytes as they need: boards say thousands of them in an hour."""

    def __init__(self, width: int, make: Callable[..., _Item]) -> None:
        """None yet; `make` puts an item together from its `width` numbers."""
        self._width, self._make = width, make
        self._numbers = array("q")

    def append(self, *numbers: int) -> None:
        """Put an item behind those before."""
        self._numbers.extend(numbers)

    def __len__(self) -> int:
        return len(self._numbers) // self._width

    @overload
    def __getitem__(self, index: int) -> _Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[_Item]: ...

    def __getitem__(self, index: int | slice) -> _Item | list[_Item]:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        start = range(len(self))[index] * self._width
        return self._make(*self._numbers[start : start + self._width])

    def __iter__(self) -> Iterator[_Item]:
        return (self[index] for index in range(len(self)))


def _exchanges() -> Packed[Exchange]:
    return Packed(4, Exchange)


def _stamps() -> Packed[tuple[int, int]]:
    return Packed(2, lambda tick, board_us: (tick, board_us))


@dataclass
class ClockNotes:
    """What one board says of its clock, frame by frame; ticks are continued past their 32 bits.

    Attributes:
        exchanges: answered PINGs.
        stamps: ticks, and the low 32 bits of the board's clock exactly at them.
        pulses: edges seen on the SYNC wire.
        restarted: whether its ticks started again; what came after that is left out.
    """

    exchanges: Packed[Exchange] = field(default_factory=_exchanges)
    stamps: Packed[tuple[int, int]] = field(default_factory=_stamps)
    pulses: list[Pulse] = field(default_factory=list[Pulse])
    restarted: bool = False
    _newest: int | None = None

    def add(self, frame: Frame, received_us: int) -> int | None:
        """Take what a frame says.

        Returns:
            The tick it names, a DATA frame its first one; None where it names none, and of a board that started again.
        """
        try:
            return self._add(frame, received_us)
        except BodyError:  # valid, but not as long as its type is: a faulty board's, and no word on its clock
            return None

    def _add(self, frame: Frame, received_us: int) -> int | None:
        match frame.type:
            case MessageType.DATA:
                return self._continued(frame.body.first_tick)
            case MessageType.PONG:
                if (tick := self._continued(frame.body.tick)) is not None:
                    pong = Exchange.from_pong(frame, received_us, tick)
                    self.exchanges.append(pong.sent_us, pong.received_us, pong.tick, pong.board_us)
                return tick
            case MessageType.STATUS:
                if (tick := self._continued(frame.body.tick)) is not None:
                    self.stamps.append(tick, frame.time_us)
                return tick
            case MessageType.SYNC if not self.restarted:
                self.pulses.append(Pulse.from_sync(frame, received_us))
            case _:
                pass
        return None

    def _continued(self, tick: int) -> int | None:
        """A tick past its 32 bits; None when the board has started again."""
        if self._newest is None:
            self._newest = tick
        step = (tick - self._newest + _WORD // 2) % _WORD - _WORD // 2
        self.restarted |= not -_LATE_TICKS <= step <= _AHEAD_TICKS
        if self.restarted:
            return None
        tick = self._newest + step
        self._newest = max(self._newest, tick)
        return tick


class Noted(Protocol):
    """Notes as they are taken, or as a decoded recording holds them."""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """Answered PINGs."""
        ...

    @property
    def stamps(self) -> Sequence[tuple[int, int]]:
        """Ticks, and the low 32 bits of the board's clock exactly at them."""
        ...

    @property
    def pulses(self) -> Sequence[Pulse]:
        """Edges seen on the SYNC wire."""
        ...


def clocks_of(noted: Mapping[str, Noted], tick_period_us: int) -> dict[str, BoardClock]:
    """Each board's clock by its own exchanges, tied to the others by what pulses there were; by joint.

    Raises:
        RunError: a board answered no PING.
    """
    for joint, notes in noted.items():
        if not notes.exchanges:
            raise RunError(f"{joint}: no PING was answered, so its ticks cannot be put on the common timeline")
    if not noted:
        return {}
    clocks = [board_clock(notes.exchanges, tick_period_us, notes.stamps) for notes in noted.values()]
    return dict(zip(noted, tie_by_pulses(clocks, [notes.pulses for notes in noted.values()]), strict=True))
