"""A faulty line: its URL, ``fault://seed=1&rx.drop=0.001&tx.delay=0.1,for:5ms..20ms;/dev/ttyACM0``, and its directions.

In each direction bytes go in as they come, and come out damaged, in their new order and time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NoReturn

from jointbench.bench.fault.kinds import (
    KINDS,
    NEVER,
    BaudGlitch,
    ByteFault,
    Delay,
    Drop,
    Duplicate,
    Flip,
    FrameFault,
    Kind,
    Lose,
    Passage,
    Reorder,
    Reset,
    Schedule,
    Stall,
    Trigger,
    Truncate,
)
from jointbench.errors import FileError

# A frame longer than this goes on as one: a stream without delimiters must neither wait for ever nor fill the memory.
LONGEST_FRAME = 4096
DIRECTIONS = ("rx", "tx")


class Direction:
    """Bytes of one direction: first each byte's faults, then each frame's, then the stalls.

    Without a fault of frames bytes pass as they come; with one, frames pass when their delimiter has come.
    """

    def __init__(
        self,
        byte_faults: Sequence[ByteFault] = (),
        frame_faults: Sequence[FrameFault] = (),
        stall: Stall | None = None,
        delimiter: int = 0,
    ) -> None:
        """Faults work in the given order; `delimiter` ends a frame."""
        self._byte_faults, self._frame_faults, self._stall = byte_faults, frame_faults, stall
        self._delimiter = bytes((delimiter,))
        self._unfinished = b""
        self._queue: deque[tuple[int, bytes]] = deque()  # when it is due, and what
        self._waits = False  # whether the last of the queue lets the next frame pass
        self._quiet_until_us = 0

    def put(self, data: bytes, now_us: int) -> None:
        """Take bytes that come at this time."""
        for fault in self._byte_faults:
            data = fault.apply(data, now_us)
        if not self._frame_faults:
            self._append(data, now_us)
            return
        for frame in self._frames(data):
            if now_us < self._quiet_until_us:
                break
            self._put_frame(frame, now_us)
        if now_us < self._quiet_until_us:
            self._unfinished = b""

    def take(self, now_us: int) -> bytes:
        """Return the bytes that are due by this time."""
        due: list[bytes] = []
        while self._queue and self._queue[0][0] <= now_us:
            due.append(self._queue.popleft()[1])
        self._waits = self._waits and bool(self._queue)
        return b"".join(due)

    @property
    def next_due_us(self) -> int | None:
        """Time of the next bytes to take [µs]; None while nothing waits."""
        return self._queue[0][0] if self._queue else None

    def _frames(self, data: bytes) -> list[bytes]:
        *ended, rest = (self._unfinished + data).split(self._delimiter)
        frames = [piece for frame in ended for piece in _pieces(frame + self._delimiter)]
        whole = len(rest) - len(rest) % LONGEST_FRAME
        self._unfinished = rest[whole:]
        return frames + _pieces(rest[:whole])

    def _put_frame(self, frame: bytes, now_us: int) -> None:
        passage = Passage([frame])
        for fault in self._frame_faults if frame != self._delimiter else ():  # a bare delimiter is a pause, no frame
            fault.apply(passage, now_us)
        if passage.quiet_us is not None:
            self._quiet_until_us = now_us + passage.quiet_us
            self._queue = deque(passed for passed in self._queue if passed[0] <= now_us)
            self._waits = False
        for passed in passage.frames:
            self._append(passed, now_us + passage.delay_us)
        if passage.patience_us is not None and any(passage.frames):
            due_us, last = self._queue.pop()
            self._queue.append((self._after_stall(due_us + passage.patience_us), last))
            self._waits = True

    def _append(self, data: bytes, due_us: int) -> None:
        """Queue bytes behind what is there, but before a frame that lets them pass."""
        if not data:
            return
        passed = self._queue.pop()[1] if self._waits else b""
        self._waits = False
        if self._queue:
            due_us = max(due_us, self._queue[-1][0])
        due_us = self._after_stall(due_us)
        self._queue.append((due_us, data))
        if passed:
            self._queue.append((due_us, passed))

    def _after_stall(self, due_us: int) -> int:
        return self._stall.end_us(due_us) if self._stall else due_us


def _pieces(data: bytes) -> list[bytes]:
    return [data[start : start + LONGEST_FRAME] for start in range(0, len(data), LONGEST_FRAME)]


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
    """Faults of a line, and the bytes that pass through it.

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
        """Number of strikes of each fault, by direction and name: {"rx.drop": 3}."""
        return {name: fault.struck for name, fault in self._struck.items()}

    def next_due_us(self) -> int | None:
        """Time of the next bytes to take from either direction [µs]; None while nothing waits."""
        due = [time_us for time_us in (self.tx.next_due_us, self.rx.next_due_us) if time_us is not None]
        return min(due) if due else None

    def _direction(self, name: str, settings: Sequence[FaultSettings], seed: int, delimiter: int) -> Direction:
        of_bytes: list[ByteFault] = []
        of_frames: list[FrameFault] = []
        stall = None
        for setting in settings:
            if setting.direction != name:
                continue
            fault = _fault(setting, seed)
            self._struck[f"{name}.{setting.kind}"] = fault
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


SCHEME = "fault://"
_EXAMPLE = "fault://seed=1&rx.drop=0.001&tx.stall=at:2s,for:0.3s;/dev/ttyACM0"
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(us|ms|s)")


def is_fault_url(url: str) -> bool:
    """Return whether this is the URL of a faulty line."""
    return url.lower().startswith(SCHEME)


def parse_fault_url(url: str) -> tuple[Faults, str]:
    """Faults of a line, and the URL of the port behind it.

    Raises:
        FileError: an unknown fault or setting, a value that is not allowed, or no port.
    """
    options, semicolon, inner = url[len(SCHEME) :].partition(";")
    if not semicolon or not inner.strip():
        _fail(url, "there is no port: it comes last, after a semicolon")
    if is_fault_url(inner):
        _fail(url, "its port is a fault:// itself; put all faults into one")
    line = {"seed": 0, "delimiter": 0}  # settings of the line as a whole
    names: set[str] = set()
    settings: dict[tuple[str, str], FaultSettings] = {}
    for option in filter(None, options.split("&")):
        name, equals, value = (part.strip() for part in option.partition("="))
        if not equals:
            _fail(url, f"{option!r} has no value; a fault is written NAME=RATE or NAME=SETTING:VALUE,…")
        if name in names:
            _fail(url, f"{name} is given twice")
        names.add(name)
        if name in line:
            line[name] = _whole(url, name, value, 0, 255 if name == "delimiter" else NEVER)
        else:
            for fault in _faults(url, name, value):
                if (fault.direction, fault.kind) in settings:
                    _fail(url, f"{fault.direction}.{fault.kind} is given twice")
                settings[fault.direction, fault.kind] = fault
    return Faults(tuple(settings.values()), **line), inner.strip()


def _faults(url: str, name: str, value: str) -> list[FaultSettings]:
    direction, dot, kind_name = name.rpartition(".")
    if kind_name not in KINDS or (dot and direction not in DIRECTIONS):
        _fail(
            url,
            f"there is no fault {name!r}; there are {', '.join(KINDS)}, with rx. (board to host) or tx. (host to "
            "board) before the name, or for both directions without",
        )
    kind = KINDS[kind_name]
    texts = _given(url, name, kind, value)
    rate, every = texts.get("rate"), texts.get("every")
    times = tuple(_time_us(url, f"{name} at", each) for each in texts.get("at", "").split(" ") if each)
    if [rate is not None, every is not None, bool(times)].count(True) != 1:
        allowed = "every:TIME or at:TIME" if kind.unit == "time" else f"a rate for each {kind.unit}, every:N or at:TIME"
        _fail(url, f"{name}={value} must say when by one of {allowed}")
    values = kind.defaults | texts
    for_us = _range_us(url, name, values["for"]) if "for" in values else (0, 0)
    schedule = Schedule(
        rate=_fraction(url, name, rate) if rate is not None else None,
        every=_every(url, name, kind, every, for_us[1]) if every is not None else None,
        at_us=times,
        from_us=_time_us(url, f"{name} from", values["from"]) if "from" in values else 0,
        until_us=_time_us(url, f"{name} until", values["until"]) if "until" in values else NEVER,
    )
    burst = _whole(url, f"{name} bytes", values["bytes"], 1, 1 << 20) if "bytes" in values else 0
    ratio = _ratio(url, name, values["ratio"]) if "ratio" in values else 1.0
    directions = (direction,) if dot else DIRECTIONS
    return [FaultSettings(each, kind_name, schedule, for_us, burst, ratio) for each in directions]


def _given(url: str, name: str, kind: Kind, value: str) -> dict[str, str]:
    """Settings as text, by name; several times are one text with spaces between."""
    texts: dict[str, str] = {}
    for part in (part.strip() for part in value.split(",")):
        setting, colon, text = part.partition(":")
        if not colon:
            setting, text = "rate", part
        if setting not in (*kind.settings, "rate") or (setting == "rate" and kind.unit == "time"):
            _fail(url, f"{name} has no setting {part!r}; it has {', '.join(kind.settings)}")
        if setting in texts and setting != "at":
            _fail(url, f"{name} has {setting} twice")
        texts[setting] = f"{texts[setting]} {text}" if setting in texts else text
    return texts


def _every(url: str, name: str, kind: Kind, text: str, for_us: int) -> int:
    if kind.unit != "time":
        return _whole(url, f"{name} every", text, 1, NEVER)
    every_us = _time_us(url, f"{name} every", text)
    if every_us <= for_us:
        _fail(url, f"{name} every {text} leaves no time between stalls of {for_us / 1e6:g}s; it must be longer")
    return every_us


def _range_us(url: str, name: str, text: str) -> tuple[int, int]:
    shortest, dots, longest = text.partition("..")
    low = _time_us(url, f"{name} for", shortest)
    high = _time_us(url, f"{name} for", longest) if dots else low
    if dots and not name.endswith("delay"):
        _fail(url, f"{name} for:{text} is a range, which only a delay can have; give one time")
    if low > high:
        _fail(url, f"{name} for:{text} must begin with its shorter time")
    return low, high


def _time_us(url: str, name: str, text: str) -> int:
    if not (match := _TIME.fullmatch(text)):
        _fail(url, f"{name}:{text} is not a time; it is a number with s, ms or us, such as 0.3s")
    return round(float(match[1]) * _UNITS_US[match[2]])


def _whole(url: str, name: str, text: str, low: int, high: int) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        _fail(url, f"{name} = {text!r} must be a whole number from {low}" + (f" to {high}" if high < NEVER else ""))
    return number


def _fraction(url: str, name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:  # not a number is neither
        _fail(url, f"{name} = {text!r} must be a rate from 0 to 1, such as 0.001")
    return rate


def _ratio(url: str, name: str, text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0.1 <= ratio <= 10.0:
        _fail(url, f"{name} ratio:{text} must be a number from 0.1 to 10, the receiver's baud rate over the sender's")
    return ratio


def _fail(url: str, text: str) -> NoReturn:
    raise FileError(f"{url}: {text}. For example {_EXAMPLE}")
