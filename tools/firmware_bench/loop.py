"""The main loop on the emulated board: a turn with nothing sent, what framing adds, and what is allocated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.qemu import run_program
from jointwire import State
from tools.firmware_bench.errors import LoopStopped
from tools.firmware_bench.stages import PROGRAMS, board_files

PER_STEP = 40  # instructions to a step of the counter
BLOCKS = 48  # frames of a board's DATA
QUIET_TICKS = 500
QUIET_STEPS = 8  # more than turns alike differ by, less than anything that is sent costs


@dataclass(frozen=True)
class LoopCost:
    """Instructions of the main loop; of a board with two motors a tick has two samples, and a turn serves both.

    Attributes:
        turn: one turn with a tick, RUNNING, in which nothing is sent; the Hal's calls included.
        framing_per_sample: what closing, coding and sending DATA frames adds, over all samples they hold.
        longest: of all turns.
        bytes_per_tick: of heap, in turns with nothing sent.
        samples: that were framed.
        block: samples in a frame.
        motors: of the board.
    """

    turn: float
    framing_per_sample: float
    longest: int
    bytes_per_tick: float
    samples: int
    block: int
    motors: int

    @property
    def per_tick(self) -> float:
        """Instructions of a tick over a long time."""
        return self.turn + self.motors * self.framing_per_sample


def count_loop(motors: int = 1) -> LoopCost:
    """Run the main loop of a board with one motor, or with two, and count.

    Raises:
        LoopStopped: the board left RUNNING or dropped samples on the way, so the turns are not what they should be.
        QemuMissing: there is no emulator or image.
    """
    block = 64
    asked = {"ticks": BLOCKS * block, "quiet_ticks": QUIET_TICKS}
    config: dict[str, Any] = {"node": 1, "uid": bytes(8).hex(), "facts": {"board.shared_line": motors - 1}}
    if motors == 2:
        config["partner"] = {"node": 2, "facts": config["facts"]}
    files = {**board_files(), "loop.json": json.dumps(asked).encode(), "config.json": json.dumps(config).encode()}
    program = (PROGRAMS / "count_loop.py").read_text(encoding="utf-8")
    written = run_program(program, files, icount=True)
    found = json.loads(written["loop_counts.json"])
    if found["state"] != motors * [State.RUNNING] or found["dropped"] or found["block"] != block:
        raise LoopStopped(f"state {found['state']}, {found['dropped']} samples dropped, {found['block']} in a block")
    return _cost(np.frombuffer(written["stamps.bin"], "<u4").astype(np.int64), found["allocated"], block, motors)


def _cost(stamps: NDArray[np.int64], allocated: list[int], block: int, motors: int = 1) -> LoopCost:
    turns = (np.diff(stamps) & 0xFFFFFFFF).reshape(-1, block)  # the first turn has no block to close yet, nor the last
    by_phase = np.median(turns, axis=0)
    quiet = turns[:, by_phase <= by_phase.min() + QUIET_STEPS]  # nothing is closed or encoded
    turn = PER_STEP * float(quiet.mean())
    longest = int(turns.max())
    added = PER_STEP * float(turns.sum()) - turn * turns.size
    per_tick = (allocated[1] - allocated[0]) / QUIET_TICKS
    samples = motors * turns.size
    return LoopCost(turn, added / samples, PER_STEP * longest, per_tick, samples, block, motors)
