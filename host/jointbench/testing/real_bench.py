"""Benches of real ports: nothing needs to be started, and the ports are opened when tests open the bench."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jointbench.files import write_file
from jointbench.foreign import text_of, toml_values
from jointbench.testing.bench_under_test import BenchOptions, BenchUnderTest


@contextmanager
def real_bench(bench_file: Path, options: BenchOptions) -> Iterator[BenchUnderTest]:
    """Give the bench of a file whose boards are at real ports.

    Raises:
        BenchFileError: the file is wrong, or more than one port would have to become `options.port`.
    """
    live = _with_port(bench_file, options) if options.port else bench_file
    yield BenchUnderTest.from_live_file(live, options)


def _with_port(bench_file: Path, options: BenchOptions) -> Path:
    """Write the bench file anew with another port."""
    import tomli_w

    from jointbench.errors import BenchFileError
    from jointbench.link.bench_file import read_bench_file

    bench = read_bench_file(bench_file)
    if len(bench.lines) > 1:
        raise BenchFileError(
            f"{bench_file} has {len(bench.lines)} ports, and --bench-port gives one; write the ports into a bench file"
        )
    text = toml_values(text_of(bench_file))
    text["robot"] = bench.robot  # a path in it is meant from its own folder
    for board in text["board"]:
        faults, separator, _ = board["url"].rpartition(";")  # of a fault:// URL
        board["url"] = f"{faults}{separator}{options.port}"
    live = options.folder / "bench.toml"
    return write_file(live, tomli_w.dumps(text))
