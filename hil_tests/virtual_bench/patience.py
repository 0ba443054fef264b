"""When a process that owes an answer hangs."""

import os
import time
from pathlib import Path

OWN = 6.0  # [s]; the emulated board that starts, the longest work of all, takes half a second
WALL = 30.0  # [s]


class Patience:
    """How long a process is waited for: by its own processor time, so that a busy machine does not look like a hang.

    The wall clock ends it only for one that does nothing. Nothing is asked of the system before `is_over`.
    """

    def __init__(self, pid: int, own: float = OWN, wall: float = WALL) -> None:
        """Begin to wait for process `pid`: `own` seconds of its processor time, or `wall` seconds by the wall clock."""
        self._stat = Path("/proc", str(pid), "stat")
        self._own, self._wall = own, wall
        self._since = time.monotonic()
        self._before: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it hangs. Processor time counts from the first time that this is asked."""
        used = self._used()
        if self._before is None:
            self._before = used
        return used - self._before > self._own or time.monotonic() - self._since > self._wall

    def __str__(self) -> str:
        return f"{self._own:g} s of its processor time or {self._wall:g} s of the wall clock"

    def _used(self) -> float:
        """Processor time [s] of all its threads (proc_pid_stat(5): utime and stime)."""
        fields = self._stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
