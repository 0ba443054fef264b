"""`python -m hil_tests.player_to_stop LIVE_BENCH RUN REPEATS`: play a wave until somebody who looks on has it stopped.

It says how that ended in a line of JSON: `error` in words, empty where nobody stopped it; of each joint `was_on`,
whether its motor's drive was ever enabled, and `is_on`, whether it is so at last; and whether the ledger is `valid`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hil_tests.link_helpers import ask_bench, get_ready, wave
from jointbench.bench import open_bench
from jointbench.errors import StopAsked
from jointbench.recording import Recorder, open_run


def play(live: Path, directory: Path, repeats: int) -> dict[str, object]:
    """Play, and tell of each drive what it did."""
    error = ""
    with open_bench(live) as bench:
        get_ready(bench)  # the last one may have been stopped anywhere
        for board in bench.boards:
            ask_bench(bench, {"outputs": board.node})  # from now on they are noted
        try:
            bench.play(wave(bench), repeats, Recorder(directory, bench.provenance(repeats=repeats)))
        except StopAsked as stopped:
            error = str(stopped)
        noted = {board.joint: ask_bench(bench, {"outputs": board.node})["outputs"] for board in bench.boards}
    ledger = open_run(directory).ledger
    return {
        "error": error,
        "was_on": {joint: any(enable for _, enable, _ in ticks) for joint, ticks in noted.items()},
        "is_on": {joint: bool(ticks[-1][1]) for joint, ticks in noted.items()},
        "valid": ledger is not None and ledger.is_valid,
    }


if __name__ == "__main__":
    print(json.dumps(play(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
