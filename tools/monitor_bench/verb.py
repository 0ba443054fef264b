"""`./run bench monitor`: what a page that shows a bench of twelve boards costs while the bench is recorded."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path

from hil_tests.virtual_bench import virtual_bench
from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from tools.machine import machine
from tools.monitor_bench.watched import Recording, Watching, recording, result_of, watched

BENCH = Path(__file__).resolve().parents[2] / "hil_tests" / "benches" / "nursing_dual.toml"
SECONDS, SETTLE_S = 40.0, 5.0
CPU_PERCENT, UPDATES, BOARDS = 15.0, 20.0, 12


def monitor(options: argparse.Namespace, console: Console) -> Result:
    """The same recording by the wall clock, first without a monitor, then with one that Chromium shows."""
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
    for check in checks:
        console.say(str(check))
    fields = {"alone": asdict(alone), "shown": asdict(shown), "monitor": asdict(watching), "machine": machine()}
    return Result("bench monitor", options.seed, checks, fields)


def make_checks(shown: Recording, watching: Watching) -> tuple[Check, ...]:
    """What must hold."""
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
