"""`python -m hil_tests.simboard`: a bare board at a serial port, which computes its own joint, in place of a real one.

It is MicroPython's unix port with "sim_joint" in its config.json, by the wall clock, at a pseudo-terminal whose path is
printed first. There is no robot around it, and no bench that could do anything to it.
"""

import argparse
import contextlib
import os
import select
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hil_tests.virtual_bench.bench import Stop
from hil_tests.virtual_bench.board import MAX_SERIAL, TICK_IN
from hil_tests.virtual_bench.emulated_board import EmulatedBoard, find_interpreter, prepare_flash
from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.serial_link import Port

_LATE = 0.25  # [s] that are caught up, well within the boards' patience with a silent line
_AHEAD = -15
_TICK_US = round(1e6 * TICK)


def main(arguments: list[str] | None = None) -> int:
    """Serve a board until Ctrl-C or SIGTERM; exit code 2 when it cannot start, or dies."""
    options = _parser().parse_args(arguments)
    with contextlib.suppress(OSError):
        os.nice(_AHEAD)  # where we may: a real board is on time whatever else this machine does
    with Stop(options.attached) as stop, contextlib.ExitStack() as stack:
        folder = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jointbench-simboard-")))
        try:
            port = stack.enter_context(contextlib.closing(Port()))
            board = stack.enter_context(contextlib.closing(start_board(folder / "board", options.node, options.seed)))
            give_tick(board, port, 0)  # it has started: whoever opens the port finds it there
            print(f"{port.path}\n  node {options.node}, a joint computed by its board; Ctrl-C ends it", flush=True)
            serve(board, port, stop)
        except BenchError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    return 0


def start_board(folder: Path, node: int, seed: int) -> EmulatedBoard:
    """Start a board that simulates its joint, from a fresh flash; the seed makes its UID.

    Raises:
        BenchError: the interpreter is missing or wrong, or the board cannot be started.
    """
    facts = {"board.node": node, "board.tick_period": _TICK_US}
    uid = f"{seed & 0xFFFFFFFF:08x}{node:08x}"
    prepare_flash(folder, {"node": node, "uid": uid, "facts": facts, "sim_joint": {}})
    return EmulatedBoard(find_interpreter(), folder, alone=True)


def serve(board: EmulatedBoard, port: Port, stop: Stop) -> None:
    """Give the board a tick each millisecond; late ones follow at once, unless that would be too many.

    Raises:
        BoardDied: it ended, or hangs.
    """
    due, tick = time.monotonic(), 1
    while True:
        due += TICK
        late = time.monotonic() - due
        if late > _LATE:
            print(f"fell behind real time by {late:.2f} s at tick {tick}: too much for this machine", flush=True)
            due += late
        ready, _, _ = select.select([*stop.sources, port], [], [], 0.0)
        if stop.told_by(ready):
            return
        if port in ready:
            port.take()
        give_tick(board, port, tick)
        tick += 1
        time.sleep(max(0.0, due - time.monotonic()))


def give_tick(board: EmulatedBoard, port: Port, tick: int) -> None:
    """Let a tick pass on the board, with as many bytes each way as fit one; its sensors are its own.

    Raises:
        BoardDied: it ended, or hangs.
    """
    inputs = np.zeros(1, TICK_IN)
    received = port.release(port.taken, MAX_SERIAL)
    inputs["tick"] = _word(tick)
    inputs["time_us"] = inputs["now_us"] = _word(tick * _TICK_US)
    inputs["received"] = len(received)
    board.send_tick(inputs.tobytes() + received)
    port.put(board.receive_tick(_word(tick)).sent)


def _word(count: int) -> int:
    """Return the count as a signed 32-bit word, as the board's counters wrap."""
    return (count + 2**31) % 2**32 - 2**31


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hil_tests.simboard", description=__doc__)
    parser.add_argument("--node", type=int, choices=range(1, 255), metavar="1..254", default=1, help="its number")
    parser.add_argument("--seed", type=int, default=0, help="makes its UID")
    parser.add_argument("--out", type=Path, help="folder for the board's files, kept (a temporary one)")
    parser.add_argument("--attached", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
