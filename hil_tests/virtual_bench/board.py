"""What the bench asks of an emulated board, whatever it runs on: messages, its clock, and when it hangs."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from hil_tests.virtual_bench.plant import OVERSAMPLES

_BILLION = 10**9


@dataclass(frozen=True)
class BoardClock:
    """A clock in µs that shows `offset_us` at true time zero and gains `drift_ppb` µs in 1000 s.

    All in whole numbers, so that a run of any length has the same times everywhere. A board counts tick n when its
    clock reaches n tick periods; on the wire both count modulo 2^32.
    """

    offset_us: int = 0
    drift_ppb: int = 0

    def reads(self, time_us: int) -> int:
        """Reading [µs] at a true time [µs], rounded down."""
        return self.offset_us + time_us + time_us * self.drift_ppb // _BILLION

    def reaches(self, reading_us: int) -> int:
        """First true time [µs] at which it shows at least this reading [µs]."""
        return -((self.offset_us - reading_us) * _BILLION // (_BILLION + self.drift_ppb))


OWN = 6.0  # [s]; the emulated board that starts, the longest work of all, takes half a second
WALL = 30.0  # [s]


class Patience:
    """How long a process is waited for: by its own processor time, so that a busy machine does not look like a hang.

    The wall clock ends it only for one that does nothing: it counts from the last look at which the process had used
    processor time or was waiting for a processor. Nothing is asked of the system before `is_over`.
    """

    def __init__(self, pid: int, own: float = OWN, wall: float = WALL) -> None:
        """Begin to wait for process `pid`: `own` seconds of its processor time, or `wall` idle seconds."""
        self._stat = Path("/proc", str(pid), "stat")
        self._own, self._wall = own, wall
        self._idle_since = time.monotonic()
        self._first: float | None = None
        self._last = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it hangs. Processor time counts from the first time that this is asked."""
        used, is_runnable = self._look()
        if self._first is None:
            self._first = self._last = used
        if used > self._last or is_runnable:
            self._last, self._idle_since = used, time.monotonic()
        return used - self._first > self._own or time.monotonic() - self._idle_since > self._wall

    def __str__(self) -> str:
        return f"{self._own:g} s of its processor time or {self._wall:g} s without work"

    def _look(self) -> tuple[float, bool]:
        """Processor time [s] of all its threads, and whether its first is runnable (proc_pid_stat(5))."""
        fields = self._stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] == "R"


# Bench to board, little-endian, once for each of the board's motors; what `received` of the first counts, bytes from
# the serial line, follows. Times are the board's own [µs, modulo 2^32]; sensors give raw counts, which the motor's
# facts scale.
TICK_IN = np.dtype(
    [
        ("tick", "<i4"),
        ("time_us", "<i4"),
        ("sync_edges", "<i4"),  # on the SYNC line since boot
        ("sync_us", "<i4"),  # time of the last one
        ("motor_count", "<i4"),
        ("link_count", "<i4"),
        ("bus_voltage", "<i4"),
        ("temperature", "<i4"),
        ("adc", "<u2", (2, OVERSAMPLES)),  # motor current, then joint torque
        ("foot_force", "<i4", 4),
        ("motor_edge", "<u4"),  # time of the motor encoder's newest edge, counts of the capture clock
        ("pins", "<i4"),  # that keep the motor off: 1 stop, 2 fault, 4 limit_low, 8 limit_high
        ("received", "<i4"),
        ("now_us", "<i4"),  # when the received bytes are served
    ]
)
# Board to bench, once for each motor: four i32; as many bytes for the serial line as `sent` of the first says follow.
TICK_OUT_SIZE = 16  # tick, enable, current command [mA], sent
MAX_SERIAL = 512  # bytes a tick and direction: what a USB-CDC or fast UART carries in a millisecond
# A board introduces itself once with the layout it speaks: 'JB', version 4.
MAGIC = 0x4A420004
FULL_DUTY = 32768
_POWERS = frozenset((0, 1, 3))  # off, power, power and the brake opened


class Answer(NamedTuple):
    """What a board says to a tick: of each motor its power and the current it asks for [mA], and bytes.

    Power is 1, and 2 more while its brake is told to open.

    A chip's power stage gives its motor a voltage: it asks for a part of the supply's, in units of 1 / FULL_DUTY.
    """

    enable: tuple[int, ...]
    command: tuple[int, ...]
    sent: bytes


def greeting(motors: int) -> tuple[int, int]:
    """First words of a board that speaks this layout: which it is, and bytes of a tick's inputs."""
    return MAGIC, motors * TICK_IN.itemsize


def read_outputs(words: tuple[int, ...], tick: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Enables, commands [mA] and the number of bytes sent, from what a board's motors answer to `tick`.

    Raises:
        ValueError: it answers another tick, or what cannot be; the text says what.
    """
    if len(words) == 4:  # mostly, and quicker
        told, on, asked, sent = words
        if told == tick and on in _POWERS and 0 <= sent <= MAX_SERIAL:
            return (on,), (asked,), sent
    ticks, enable, command, sent = words[::4], words[1::4], words[2::4], words[3]
    if {tick} != set(ticks) or not _POWERS.issuperset(enable) or not 0 <= sent <= MAX_SERIAL:
        said = "; ".join(f"tick {t}, enable {e}, command {c}" for t, e, c in zip(ticks, enable, command, strict=True))
        raise ValueError(
            f"answered tick {tick} with [{said}, {sent} bytes]; enable must be 0, 1 or 3 and at most {MAX_SERIAL} "
            "bytes fit a tick"
        )
    return enable, command, sent


class Board(Protocol):
    """A running board, from tick to tick; once dead it stays dead until it is restarted.

    A board whose program has ended in its interpreter's prompt is alive: its motor is off, and its line is its console.
    """

    @property
    def death(self) -> str | None:
        """Why it died; None while it lives."""
        ...

    @property
    def pid(self) -> int:
        """Process number."""
        ...

    def send_tick(self, message: bytes) -> None:
        """Give it one tick: TICK_IN of pipe_layout for each motor, and the bytes it receives; a chip what its pins see.

        Raises:
            BoardDied: the board is no longer there to take it.
        """
        ...

    def receive_tick(self, tick: int) -> Answer:
        """Wait for its answer to `tick`.

        Raises:
            BoardDied: it ended, hangs, or does not speak this bench's layout.
        """
        ...

    def restart(self) -> None:
        """Take the power and give it back: the board starts from what its flash holds.

        Raises:
            BoardStartError: it cannot be started.
        """
        ...

    def close(self) -> None:
        """End the board."""
        ...
