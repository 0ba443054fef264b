"""The bench that tests run on, as it is once it has been started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BenchOptions:
    """What the command line says of the bench.

    Attributes:
        bench: bench file.
        seed: of everything on the bench that is drawn by chance.
        port: opened instead of the URL in the file; empty for the file's.
        out: folder for all that the run leaves behind.
        folder: in it, for the bench's own files: with several processes each has a bench.
        is_kept: whether `out` outlives the run.
    """

    bench: Path
    seed: int
    port: str
    out: Path
    folder: Path
    is_kept: bool


@dataclass(frozen=True)
class BenchUnderTest:
    """A started bench.

    Attributes:
        name: of the bench.
        file: live bench file, for `jointbench.link.open_bench`.
        clock: "virtual", "icount" or "wall".
        features: what it offers, names of `FEATURES`.
        seed: of everything on it that is drawn by chance.
        out: folder for what the run leaves behind.
        boards: node, joint and URL of each.
        limits: what it allows, by name with the unit, as `position_rad`.
    """

    name: str
    file: Path
    clock: str
    features: frozenset[str]
    seed: int
    out: Path
    boards: tuple[tuple[int, str, str], ...]
    limits: Mapping[str, float]

    @classmethod
    def from_live_file(cls, file: Path, options: BenchOptions) -> BenchUnderTest:
        """The bench of a live bench file.

        Raises:
            BenchFileError: the file cannot be read, or is wrong.
        """
        from jointbench.link.bench_file import read_bench_file  # brings numpy and more: only to runs with a bench

        bench = read_bench_file(file)
        boards = tuple((board.node, board.joint, board.url) for board in bench.boards)
        return cls(bench.name, file, bench.clock, bench.features, options.seed, options.out, boards, bench.limits)
