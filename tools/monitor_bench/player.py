"""`python -m tools.monitor_bench.player LIVE_BENCH RUN SECONDS`: record a motion, and say what it cost in JSON."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

from hil_tests.link_helpers import wave
from jointbench.errors import JointbenchError
from jointbench.link import open_bench
from jointbench.recording import Recorder

PERIOD_S = 2.048
WAY = 0.05  # [rad], of either arm


def main(live: str, directory: str, seconds: str) -> None:
    """Record a wave of every joint, and print the time it took and what was lost of it."""
    repeats = math.ceil(float(seconds) / PERIOD_S)
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        recorder = Recorder(Path(directory), bench.provenance(repeats=repeats))
        began, used = time.monotonic(), time.process_time()
        ledger = bench.play(wave(bench, WAY, PERIOD_S), repeats, recorder)
        wall_s, cpu_s = time.monotonic() - began, time.process_time() - used
        boards = len(bench.all_boards)
    assert ledger is not None  # a recording has one
    result = {"boards": boards, "wall_s": wall_s, "cpu_s": cpu_s, "ledger": ledger.to_dict()}
    print(json.dumps(result | {"samples_lost": ledger.samples_lost, "closes": ledger.closes}))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except JointbenchError as error:
        sys.exit(f"{error}; is the machine too busy for 12 emulated boards in real time?")
