"""Where each board's clock lies on the host's, and the boards' on each other's."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hil_tests.link_helpers import ask_bench
from hil_tests.suite.motions import at_rest, record
from jointbench.arrays import Array
from jointbench.bench import Bench, Board, Exchange, board_clock, tie_by_pulses
from jointbench.recording import decode_recording
from jointbench.testing import deterministic, functional, needs

PINGS = 80  # to each board
STRETCHES = 5  # where the clock is the wall's
PAUSE_US = 20_000  # between them at most: over a second in all
SECONDS = 1.28  # at least five pulses of a SYNC line that has one each quarter of a second


def exchange_pings(bench: Bench, boards: Sequence[Board]) -> list[list[Exchange]]:
    """With each board in turn, at no fixed phase of its ticks."""
    dither = random.Random(0)
    found: list[list[Exchange]] = [[] for _ in boards]
    for _ in range(PINGS):
        end_us = bench.clock.now_us() + dither.randrange(PAUSE_US)
        while (left_us := end_us - bench.clock.now_us()) > 0:
            bench.clock.wait(left_us)
        for exchanges, board in zip(found, boards, strict=True):
            exchanges.append(board.ping())
    return found


@functional
def test_each_clock_runs_evenly_by_its_pings(connected: Bench, measured: Callable[..., None]) -> None:
    """Of several stretches the best is judged: in the others the host was late by the wall clock, not the board."""
    stretches = [residuals_us(connected)]
    while connected.clock.name == "wall" and len(stretches) < STRETCHES:
        stretches.append(residuals_us(connected))
    measured("clock.residual", np.min(stretches, axis=0))


def residuals_us(bench: Bench) -> list[float]:
    """What is left of each board's pings about a line."""
    residuals: list[float] = []
    for board, exchanges in zip(bench.all_boards, exchange_pings(bench, bench.all_boards), strict=True):
        assert board.facts
        clock = board_clock(exchanges, 1e6 * board.facts.tick_period)
        assert clock.exchanges == PINGS
        residuals.append(clock.residual_us)
    return residuals


@functional
def test_ticks_and_clock_of_a_board_agree(connected: Bench) -> None:
    """Over a second, within the tick in which a PING happens to be answered."""
    board = connected.all_boards[0]
    assert board.facts
    first, *_, last = exchange_pings(connected, [board])[0]
    elapsed_us = (last.board_us - first.board_us) & 0xFFFFFFFF
    assert abs((last.tick - first.tick) * 1e6 * board.facts.tick_period - elapsed_us) <= 2e6 * board.facts.tick_period


@deterministic
@needs("motor", "sync", "several_boards")
def test_pulses_put_the_boards_together(bench: Bench, test_folder: Path, measured: Callable[..., None]) -> None:
    """The clocks of a recording, tied by the pulses in it, against the truth of the bench."""
    truth = ask_bench(bench, {"truth": True})["truth"]
    run = record(bench, at_rest(bench, SECONDS), test_folder / "run")
    joints = {board["node"]: board["joint"] for board in run.provenance["board"]}
    records = decode_recording(test_folder / "run" / "frames.bin", joints).boards
    tick_us = 1e6 * bench.facts[0].tick_period
    by_pings = [board_clock(board.exchanges, tick_us, board.stamps) for board in records.values()]
    clocks = tie_by_pulses(by_pings, [board.pulses for board in records.values()])
    errors: list[Array] = []
    for joint, board, clock in zip(run.samples.joint_names, records.values(), clocks, strict=True):
        ticks = np.linspace(*board.ticks.span, 100)
        known = truth[joint]["clock"]
        true_us = (tick_us * ticks - known["offset_us"]) / (1.0 + 1e-6 * known["ppm"])
        errors.append(np.asarray(clock.tick_host_us(ticks)) - true_us)
    assert min(clock.pulses for clock in clocks) >= 5
    measured("clock.apart", [float(np.max(np.abs(error - errors[0]))) for error in errors])
