"""What the boards stream: every sample of every tick, accounted for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import at_rest, record
from jointbench.bench import Bench
from jointbench.testing import functional, needs
from jointwire import Frame, stack_samples

SECONDS = 1.024
LONG_SECONDS = 10.24


def stream_for(bench: Bench, seconds: float, folder: Path, measured: Callable[..., None]) -> None:
    """Record all boards at rest, and judge what came."""
    run = record(bench, at_rest(bench, seconds), folder / "run")
    assert run.ledger is not None
    measured("stream.unaccounted", sum(not board.closes for board in run.ledger.boards))
    measured("stream.lost", run.ledger.samples_lost)
    playing = run.samples.play_tick >= 0
    ticks = round(seconds / bench.facts[0].tick_period)
    if bench.clock.common_ticks:
        np.testing.assert_array_equal(run.samples.play_tick[playing], np.arange(ticks))
    assert run.ledger.samples_received >= ticks * len(bench.boards)


@functional
@needs("motor")
def test_nothing_is_lost(bench: Bench, test_folder: Path, measured: Callable[..., None]) -> None:
    stream_for(bench, SECONDS, test_folder, measured)


@pytest.mark.slow
@functional
@needs("motor")
def test_nothing_is_lost_in_ten_seconds(bench: Bench, test_folder: Path, measured: Callable[..., None]) -> None:
    stream_for(bench, LONG_SECONDS, test_folder, measured)


@functional
@needs("motor")
def test_a_board_at_rest_streams_when_it_is_asked_to(connected: Bench) -> None:
    """Frame by frame without a gap in their numbers or their ticks, and none any more when it is told so."""
    board = connected.all_boards[0]
    frames: list[Frame] = []
    board.on_data = frames.append
    board.write_register("stream.always", 1)
    end_us = connected.clock.now_us() + 20_000_000
    while len(frames) < 10 and connected.clock.now_us() < end_us:
        connected.clock.wait(1_000_000)
    assert len(frames) >= 10
    board.write_register("stream.always", 0)
    board.ping()
    told = len(frames)
    board.ping()
    ticks = [frame.body.first_tick for frame in frames]
    counts = [frame.body.count for frame in frames]
    assert ticks[1:] == [tick + count for tick, count in zip(ticks, counts, strict=True)][:-1]
    assert len(stack_samples(frames)["motor_position"]) == sum(counts)
    assert len(frames) == told
