"""Where each board's clock lies on the host's, and the boards' on each other's."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hil_tests.link_helpers import ask_bench, at_rest, record
from jointbench.arrays import Array
from jointbench.bench import Bench, Board, BoardClock, Exchange, board_clock, tie_by_pulses
from jointbench.recording import decode_recording
from jointbench.testing import deterministic, functional, needs

PINGS = 80  # to each board
TRIES = 8  # by the wall clock
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
    """Each board's readings lie near a line over the host's clock.

    By the wall clock an answer also waits for the host: there only that counts which no waiting explains, how far a
    reading lies outside the time between sending its PING and receiving its PONG. An emulated board computes its clock,
    which a pause of its machine holds back; a clock that runs unevenly does so in every try.
    """
    by_the_wall = connected.clock.name == "wall"
    uneven_us = np.full(len(connected.all_boards), np.inf)
    for _ in range(TRIES if by_the_wall else 1):
        for k, exchanges in enumerate(exchange_pings(connected, connected.all_boards)):
            facts = connected.all_boards[k].facts
            assert facts
            clock = board_clock(exchanges, 1e6 * facts.tick_period)
            assert clock.exchanges == PINGS
            found_us = outside_us(clock, exchanges) if by_the_wall else clock.residual_us
            uneven_us[k] = min(uneven_us[k], found_us)
        if not uneven_us.any():
            break
    measured("clock.residual", uneven_us.tolist())


def outside_us(clock: BoardClock, exchanges: Sequence[Exchange]) -> float:
    """How far the worst reading lies outside the line at its sending and at its receiving; 0 where none does."""
    sent, received = (
        clock.board_us(np.array([getattr(one, name) for one in exchanges], dtype=float))
        for name in ("sent_us", "received_us")
    )
    read = np.array([clock.extended(one.board_us, (one.sent_us + one.received_us) / 2) for one in exchanges])
    return float(np.maximum(sent - read, read - received).clip(min=0.0).max())


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
