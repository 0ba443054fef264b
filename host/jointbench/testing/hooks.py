"""The hook by which other plugins and conftest.py files start benches of their own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jointbench.testing.bench_under_test import BenchOptions, BenchUnderTest


@pytest.hookspec(firstresult=True)
def pytest_jointbench_start(  # pyright: ignore[reportUnusedParameter]
    bench_file: Path, options: BenchOptions
) -> AbstractContextManager[BenchUnderTest] | None:
    """Start the bench of a bench file, for as long as the context lasts; None leaves it to others.

    The plugin itself opens real ports.

    Args:
        bench_file: what --bench names.
        options: what else the command line says.
    """
