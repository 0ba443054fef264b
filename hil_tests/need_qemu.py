"""What a test of the emulated Cortex-M3 asks for first."""

import os

import pytest

from hil_tests.virtual_bench.errors import QemuMissing
from hil_tests.virtual_bench.qemu import Qemu, find_qemu


def need_qemu() -> Qemu:
    """Return QEMU and its image; where they are missing the test is skipped, and fails where CI is set."""
    try:
        return find_qemu()
    except QemuMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(f"{missing}; in CI it must be there", pytrace=False)
        pytest.skip(str(missing))
