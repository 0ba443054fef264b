"""What a test of the boards in QEMU asks for first."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from hil_tests.virtual_bench.errors import QemuMissing
from hil_tests.virtual_bench.qemu import Qemu, find_qemu, find_riscv

Found = TypeVar("Found")


def need_qemu() -> Qemu:
    """Return QEMU and its image; where they are missing the test is skipped, and fails where CI is set."""
    return _need(find_qemu)


def need_riscv() -> tuple[Path, Path]:
    """Return QEMU for RISC-V and its image, likewise."""
    return _need(find_riscv)


def _need(find: Callable[[], Found]) -> Found:
    try:
        return find()
    except QemuMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(f"{missing}; in CI it must be there", pytrace=False)
        pytest.skip(str(missing))
