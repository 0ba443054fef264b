"""A recording in real time with or without a monitor and its page in Chromium, and what the monitor used meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil_tests.monitor_helpers import Monitor, monitor, wait_for_doing
from tools.monitor_bench.errors import NoPicture

if TYPE_CHECKING:
    from playwright.sync_api import Page

_COUNT_UPDATES = """
window.updates = 0;
new MutationObserver(() => { window.updates += 1; }).observe(document.getElementById("time"), { childList: true });
"""


@dataclass(frozen=True)
class Recording:
    """What the recording program said.

    Attributes:
        boards: how many streamed.
        wall_s, cpu_s: how long it took, and what of a processor its process used.
        samples_lost: whatever lost them.
        closes: whether every board's ledger does.
    """

    boards: int
    wall_s: float
    cpu_s: float
    samples_lost: int
    closes: bool

    @property
    def cpu_percent(self) -> float:
        """Of one core."""
        return 100.0 * self.cpu_s / self.wall_s


@dataclass(frozen=True)
class Watching:
    """What the monitor did in the middle of a recording.

    Attributes:
        seconds: that were measured.
        cpu_percent: of one core, by the monitor's process.
        updates: of the page, a second.
    """

    seconds: float
    cpu_percent: float
    updates: float


@contextmanager
def recording(live: Path, directory: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A program that records; it is ended with the block."""
    command = [sys.executable, "-m", "tools.monitor_bench.player", str(live), str(directory), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def result_of(process: subprocess.Popen[str]) -> Recording:
    """Wait for the end of a recording."""
    said, _ = process.communicate()
    if process.returncode:
        raise NoPicture(f"the recording program ended with status {process.returncode}")
    values: dict[str, Any] = json.loads(said.splitlines()[-1])
    return Recording(**{name: values[name] for name in Recording.__dataclass_fields__})


def watched(live: Path, page: Page, directory: Path, seconds: float, settle_s: float) -> tuple[Recording, Watching]:
    """Record with a monitor whose page is open, and measure all but `settle_s` at both ends of it."""
    with monitor(live) as running:
        page.goto(running.url)
        with recording(live, directory, seconds) as process:
            wait_for_doing(page, "playing")
            page.evaluate(_COUNT_UPDATES)
            page.wait_for_timeout(1e3 * settle_s)
            watching = _measure(page, running, seconds - 2.0 * settle_s)
            return result_of(process), watching


def _measure(page: Page, running: Monitor, seconds: float) -> Watching:
    began, used, updates = time.monotonic(), _cpu_s(running.process.pid), page.evaluate("window.updates")
    page.wait_for_timeout(1e3 * seconds)
    wall_s = time.monotonic() - began
    cpu_s, updates = _cpu_s(running.process.pid) - used, page.evaluate("window.updates") - updates
    return Watching(wall_s, 100.0 * cpu_s / wall_s, updates / wall_s)


def _cpu_s(pid: int) -> float:
    """What a process has used of a processor, in the kernel too [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
