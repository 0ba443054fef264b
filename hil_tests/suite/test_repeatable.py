"""The same bench with the same seed, twice: a failure comes back when it is looked for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import record, small_wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench, read_bench_file
from jointbench.testing import BenchUnderTest, deterministic, needs
from jointbench.testing.roles import Role, TakingTurns, Word, run_roles


def recorded(bench_file: str, seed: int, folder: Path) -> tuple[bytes, tuple[Word, ...]]:
    """A run on a bench that was started for it: its frames as they came, and what roles said before."""
    with (
        virtual_bench(bench_file, seed=seed, out=folder / "bench") as live,
        open_bench(live, around=TakingTurns) as bench,
    ):
        bench.connect()
        words = run_roles(bench, *[talk] * len(bench.boards)).words
        bench.configure()
        record(bench, small_wave(bench), folder / "run")
    return (folder / "run" / "frames.bin").read_bytes(), words


def talk(me: Role) -> None:
    """Say what the board says, as soon as it does."""
    for _ in range(5):
        exchange = me.board.ping()
        me.say("heard", (exchange.tick, exchange.board_us))
    me.meet("end")


@pytest.mark.slow
@deterministic
@needs("motor", "faults")
def test_same_seed_same_bytes(
    bench_under_test: BenchUnderTest, test_folder: Path, measured: Callable[..., None]
) -> None:
    bench_file, seed = str(read_bench_file(bench_under_test.file).information["started_from"]), bench_under_test.seed
    first, words = recorded(bench_file, seed, test_folder / "first")
    again, words_again = recorded(bench_file, seed, test_folder / "again")
    assert words == words_again
    measured("repeat.bytes_differing", differing(first, again))
    assert len(first) > 10_000
    assert differing(first, first[::-1]) > 0  # or this test could not fail


def differing(a: bytes, b: bytes) -> int:
    """Bytes that are not the same in both, the longer one's rest with them."""
    n = min(len(a), len(b))
    return int(np.count_nonzero(np.frombuffer(a[:n], np.uint8) != np.frombuffer(b[:n], np.uint8))) + abs(
        len(a) - len(b)
    )
