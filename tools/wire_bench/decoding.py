"""From bytes to arrays: the host's decoder against construct on the same stream, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointwire import decode_stream
from tools.wire_bench.peer import parse_stream
from tools.wire_bench.stream import BLOCK, BOARDS, Columns, run_stream

BLOCKS = 1000  # of each board: a minute's run
PEER_BLOCKS = 20
ROUNDS = 15


@dataclass(frozen=True)
class Speed:
    """Samples a second in each of several rounds; a sample is one tick of one board.

    Attributes:
        name: of the decoder.
        rounds: samples a second, shape (n_rounds,).
        values_per_sample: integers in a sample, on average.
        bytes_per_sample: of the stream.
    """

    name: str
    rounds: Array
    values_per_sample: float
    bytes_per_sample: float

    @property
    def best(self) -> float:
        """The round least disturbed by whatever else the machine did."""
        return float(self.rounds.max())

    @property
    def spread(self) -> float:
        """Middle half of the rounds, as a fraction of their median."""
        low, middle, high = np.percentile(self.rounds, (25, 50, 75))
        return float((high - low) / middle)


def decode(stream: bytes) -> dict[int, Columns]:
    """Samples of each channel by node: COBS, CRC, header, samples."""
    decoded = decode_stream(stream)
    return {node: decoded.samples(node).columns for node in range(1, BOARDS + 1)}


def race(seed: int, blocks: int = BLOCKS, peer_blocks: int = PEER_BLOCKS, rounds: int = ROUNDS) -> tuple[Speed, ...]:
    """Speeds of the host's decoder, of construct, and of construct compiled by itself, on one core.

    All of them must give the samples that were encoded. construct takes the first part of the stream only.
    """
    whole, columns = run_stream(blocks, seed)
    part, part_columns = run_stream(peer_blocks, seed)
    entries: list[tuple[str, Callable[[], dict[int, Columns]], dict[int, Columns], bytes]] = [
        ("jointwire", lambda: decode(whole), columns, whole),
        ("construct", lambda: parse_stream(part, compiled=False), part_columns, part),
        ("construct, compiled", lambda: parse_stream(part, compiled=True), part_columns, part),
    ]
    seconds = np.empty((rounds, len(entries)))
    for _, run, expected, _ in entries:  # the compilers do their work here, not below
        _must_equal(run(), expected)
    for each in seconds:
        for index, (_, run, _, _) in enumerate(entries):
            began = time.perf_counter()
            run()
            each[index] = time.perf_counter() - began
    speeds: list[Speed] = []
    for (name, _, expected, stream), taken in zip(entries, seconds.T, strict=True):
        n_samples = BOARDS * BLOCK * (blocks if stream is whole else peer_blocks)
        values = sum(len(column) for board in expected.values() for column in board.values())
        speeds.append(Speed(name, n_samples / taken, values / n_samples, len(stream) / n_samples))
    return tuple(speeds)


def _must_equal(found: dict[int, Columns], expected: dict[int, Columns]) -> None:
    assert found.keys() == expected.keys()
    for node, columns in expected.items():
        assert found[node].keys() == columns.keys()
        for name, values in columns.items():
            np.testing.assert_array_equal(found[node][name], values)
