"""`./run bench monitor`: a page that shows twelve boards, beside the same recording with nobody looking on.

`python -m tools.bench.monitor LIVE RUN SECONDS` is the program that records, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil_tests.feed_helpers import Monitor, wait_for_doing
from hil_tests.feed_helpers import monitor as open_monitor
from hil_tests.link_helpers import ready_bench, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import JointbenchError
from jointbench.recording import Recorder
from tools.bench.peers import BenchmarkFailed
from tools.machine import machine

if TYPE_CHECKING:
    from playwright.sync_api import Page


PERIOD_S = 2.048
WAY = 0.05  # [rad], of either arm


def main(live: str, directory: str, seconds: str) -> None:
    """Record a wave of every joint, and print the time it took and what was lost of it."""
    repeats = math.ceil(float(seconds) / PERIOD_S)
    with ready_bench(Path(live)) as bench:
        recorder = Recorder(Path(directory), bench.provenance(repeats=repeats))
        began, used = time.monotonic(), time.process_time()
        ledger = bench.play(wave(bench, WAY, PERIOD_S), repeats, recorder)
        wall_s, cpu_s = time.monotonic() - began, time.process_time() - used
        boards = len(bench.all_boards)
    assert ledger is not None  # a recording has one
    result = {"boards": boards, "wall_s": wall_s, "cpu_s": cpu_s, "ledger": ledger.to_dict()}
    print(json.dumps(result | {"samples_lost": ledger.samples_lost, "closes": ledger.closes}))


_COUNT_UPDATES = """
window.updates = 0;
new MutationObserver(() => { window.updates += 1; }).observe(document.getElementById("time"), { childList: true });
"""


@dataclass(frozen=True)
class Recording:
    """Report of the recording program.

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
        """Share of one core [%]."""
        return 100.0 * self.cpu_s / self.wall_s


@dataclass(frozen=True)
class Watching:
    """The monitor's work in the middle of a recording.

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
    command = [sys.executable, "-m", "tools.bench.monitor", str(live), str(directory), str(seconds)]
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
        raise BenchmarkFailed(f"the recording program ended with status {process.returncode}")
    values: dict[str, Any] = json.loads(said.splitlines()[-1])
    return Recording(**{name: values[name] for name in Recording.__dataclass_fields__})


def watched(live: Path, page: Page, directory: Path, seconds: float, settle_s: float) -> tuple[Recording, Watching]:
    """Record with a monitor whose page is open, and measure all but `settle_s` at both ends of it."""
    with open_monitor(live) as running:
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


BENCH = Path(__file__).resolve().parents[2] / "hil_tests" / "benches" / "nursing_dual.toml"
SECONDS, SETTLE_S = 40.0, 5.0
CPU_PERCENT, UPDATES, BOARDS = 15.0, 20.0, 12


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Record by the wall clock, first without a monitor, then with one that Chromium shows."""
    from tools.browser import chromium, page_of  # only here: no other benchmark needs a browser

    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        folder = Path(name)
        with (
            virtual_bench(BENCH, "ideal", options.seed, realtime=True, out=folder / "sim") as live,
            chromium() as browser,
            page_of(browser) as page,
        ):
            console.say(f"recording {BOARDS} boards in real time for {SECONDS:.0f} s, nobody looks on")
            with recording(live, folder / "alone", SECONDS) as process:
                alone = result_of(process)
            console.say("the same with a monitor, its page open in Chromium")
            shown, watching = watched(live, page, folder / "shown", SECONDS, SETTLE_S)
    console.say(cost_table(alone, shown, watching))
    checks = make_checks(shown, watching)
    fields = {"alone": asdict(alone), "shown": asdict(shown), "monitor": asdict(watching), "machine": machine()}
    return Result("bench monitor", options.seed, checks, fields)


def make_checks(shown: Recording, watching: Watching) -> tuple[Check, ...]:
    """Checks against the limits."""
    return (
        Check("boards", shown.boards, ">=", BOARDS),
        Check("one core used by the monitor", watching.cpu_percent, "<=", CPU_PERCENT, "%"),
        Check("updates of the page", watching.updates, ">=", UPDATES, "/s"),
        Check("samples lost", shown.samples_lost, "==", 0),
        Check("every ledger closes", float(shown.closes), "==", 1),
    )


def cost_table(alone: Recording, shown: Recording, watching: Watching) -> str:
    """Both recordings, and the monitor."""
    rows = [
        ["recording takes [s]", f"{alone.wall_s:.1f}", f"{shown.wall_s:.1f}"],
        ["recording program, of one core [%]", f"{alone.cpu_percent:.1f}", f"{shown.cpu_percent:.1f}"],
        ["samples lost", f"{alone.samples_lost}", f"{shown.samples_lost}"],
        ["monitor, of one core [%]", "–", f"{watching.cpu_percent:.1f}"],
        ["updates of the page [/s]", "–", f"{watching.updates:.1f}"],
    ]
    return table((f"{BOARDS} boards at 1 kHz", "alone", "with a monitor"), rows)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except JointbenchError as error:
        sys.exit(f"{error}; is the machine too busy for 12 emulated boards in real time?")
