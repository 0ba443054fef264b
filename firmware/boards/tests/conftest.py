"""What the tests of the board files need: MicroPython's own PIO assembler, and its 32-bit interpreter."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware.boards.tests.simulated_rp2040 import Chip, assembler_source, drivers_on_chip

ROOT = Path(__file__).resolve().parents[3]


def missing(what: str) -> None:
    """Skip the test with the reason; in CI nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def assembler() -> str:
    """MicroPython's rp2.py."""
    source = assembler_source(ROOT / ".cache" / "qemu")
    if source is None:
        missing("MicroPython's source, whose PIO assembler this needs, is not in .cache/qemu: type ./run setup")
    return str(source)


@pytest.fixture
def rp2040(assembler: str) -> Iterator[tuple[Chip, Any]]:
    """A simulated chip, and a function that imports a driver onto it."""
    with drivers_on_chip(assembler) as chip_and_import:
        yield chip_and_import
