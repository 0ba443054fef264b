"""Record of one board: its samples by tick, and notes on its clock."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import AppendBuffer, read_rows, release_pages
from jointbench.bench import BoardClock, Exchange, Pulse, board_clock, tie_by_pulses
from jointbench.errors import RunError
from jointwire import Frame, FrameError, MessageType

# Frames may come late by some blocks; ticks that fall by more, or go ahead by a quarter of an hour, mean that the board
# started again.
_LATE_TICKS, _AHEAD_TICKS = 4096, 1 << 20
_WORD = 1 << 32

_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class Ticks:
    """Ticks of evenly spaced blocks, in the order they came; neighbours may lie apart, or be late.

    Attributes:
        first: of each block, shape (n_blocks,).
        counts: how many each has, shape (n_blocks,).
        steps: from one to the next in each block, shape (n_blocks,).
    """

    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    steps: NDArray[np.int64]

    @classmethod
    def of(cls, ticks: NDArray[np.int64], every: int = 1) -> Ticks:
        """Single ticks, due each `every` ticks."""
        return cls(ticks, np.ones_like(ticks), np.full_like(ticks, every))

    def __len__(self) -> int:
        return int(self._ends[-1])

    def all(self) -> NDArray[np.int64]:
        """Every one of them."""
        return self._expanded(slice(None))

    @cached_property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest of them; there must be one."""
        first, counts, steps = self._heads(slice(None))
        some = counts > 0
        return int(first[some].min()), int((first + (counts - 1) * steps)[some].max())

    @cached_property
    def every(self) -> int:
        """Spacing of the closest."""
        return int(read_rows(self.steps, slice(None)).min())

    def between(self, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.bool_], slice]:
        """Ticks from `low` up to but without `high`, of a stretch of blocks that holds them all.

        Returns:
            The ticks of those blocks, which of them are within, and where they are among all ticks.
        """
        first, counts, steps = self._heads(slice(None))
        blocks = np.flatnonzero((first < high) & (first + (counts - 1) * steps >= low))
        if not len(blocks):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_), slice(0, 0)
        part = slice(int(blocks[0]), int(blocks[-1]) + 1)
        ticks = self._expanded(part)
        return ticks, (ticks >= low) & (ticks < high), slice(int(self._ends[part.start]), int(self._ends[part.stop]))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Index of the first tick of each block, and the end, shape (n_blocks + 1,)."""
        return np.concatenate([[0], np.cumsum(read_rows(self.counts, slice(None)))])

    def _heads(self, blocks: slice) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return read_rows(self.first, blocks), read_rows(self.counts, blocks), read_rows(self.steps, blocks)

    def _expanded(self, blocks: slice) -> NDArray[np.int64]:
        first, counts, steps = self._heads(blocks)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(first, counts) + within * np.repeat(steps, counts)


@dataclass(frozen=True, eq=False)
class Track:
    """Values of one channel, raw, at its ticks; `late` are those at ticks whose samples were taken after them.

    `has_gaps` where NaN stands for values that were told before.
    """

    ticks: Ticks
    values: NDArray[np.generic]
    late: Track | None = None
    has_gaps: bool = False

    def between(self, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.generic]]:
        """Ticks from `low` up to but without `high`, in the order they came, and the values at them."""
        ticks, within, place = self.ticks.between(low, high)
        ticks, values = ticks[within], read_rows(self.values, place)[within]
        if self.late is None:
            return ticks, values
        late_ticks, late_values = self.late.between(low, high)
        return np.concatenate([ticks, late_ticks]), np.concatenate([values, late_values])


class TrackSpool:
    """A track that grows block by block."""

    def __init__(self) -> None:
        """No block yet."""
        self._heads = AppendBuffer(np.int64)  # one for all three: each may hold a file open
        self._values: AppendBuffer | None = None

    def append(self, ticks: Ticks, values: NDArray[np.generic] | None = None) -> None:
        """Put blocks behind those before; all with values, or none."""
        self._heads.append(np.stack([ticks.first, ticks.counts, ticks.steps], axis=1))
        if values is not None:
            if self._values is None:
                self._values = AppendBuffer(values.dtype)
            self._values.append(values)

    def ticks(self) -> Ticks:
        """The ticks of all blocks."""
        return Ticks(*self._heads.to_array().reshape(-1, 3).T)

    def track(self) -> Track:
        """All of it, where it has values."""
        ticks = self.ticks()
        values = np.empty(0) if self._values is None else self._values.to_array()
        release_pages(values)
        return Track(ticks, values, has_gaps=self._values is not None and values.dtype.kind == "f")


class Packed(Sequence[_Item]):
    """Items of some whole numbers each, as few bytes as they need: boards say thousands of them in an hour."""

    def __init__(self, width: int, make: Callable[..., _Item]) -> None:
        """Start without items; `make` puts one together from its `width` numbers."""
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
    """A board's notes on its clock, frame by frame; ticks are continued past their 32 bits.

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
        except FrameError:  # valid, but not as long as its type is: a faulty board's, and no word on its clock
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


class LateSample(NamedTuple):
    """A sample taken `late_us` after its tick, raw, by channel."""

    tick: int
    late_us: int
    values: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class BoardRecord:
    """Everything that one board sent during a run; ticks are continued past their 32 bits.

    Attributes:
        ticks: of which a sample came, in the order they came.
        channels: what came of each channel.
        played: ticks at which trajectory tick 0 lay, by the blocks that were played.
        last_play_tick: the last trajectory tick reported, -1 for none.
        exchanges: answered PINGs.
        stamps: ticks, and the low 32 bits of the board's clock exactly at them.
        pulses: edges seen on the SYNC wire.
        restarted: whether its ticks started again; what came after that is left out.
        late: samples that are in none of `ticks` and `channels`, for they were taken after their ticks.
    """

    ticks: Ticks
    channels: dict[str, Track]
    played: tuple[int, ...]
    last_play_tick: int
    exchanges: Sequence[Exchange]
    stamps: Sequence[tuple[int, int]]
    pulses: tuple[Pulse, ...]
    restarted: bool
    late: tuple[LateSample, ...] = ()


def clocks_of(noted: Mapping[str, ClockNotes | BoardRecord], tick_period_us: int) -> dict[str, BoardClock]:
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
