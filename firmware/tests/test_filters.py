"""The tick's filters against the host's knowledge of them, bit for bit: registers and sensors at their extremes."""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from numpy.typing import NDArray

from hil_tests.virtual_bench.errors import QemuMissing
from hil_tests.virtual_bench.qemu import Board, on_a_cortex, on_a_riscv
from tools.bench.filter_twins import Case, host_outputs, on_qemu, on_unix, plain_outputs, random_cases
from tools.bench.filters import FILTERS, Exactness, Run, compare

SEED = 27


def must_equal(run: Run, cases: list[Case]) -> None:
    exact = compare("board", run, cases)
    assert all(exact.compared > 0)
    assert not exact.different.any(), f"seed {SEED}: {_told(exact)}"


def _told(exact: Exactness) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(FILTERS, exact.different, strict=True) if count)


@pytest.mark.parametrize("ticks", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_unix_board_computes_what_the_host_knows(ticks: int) -> None:
    must_equal(on_unix, random_cases(count=160, ticks=ticks, seed=SEED))


def test_plain_python_computes_what_the_host_knows() -> None:
    must_equal(lambda cases: map(plain_outputs, cases), random_cases(count=24, ticks=400, seed=SEED + 1))


@pytest.mark.parametrize("board", [on_a_cortex, pytest.param(on_a_riscv, marks=pytest.mark.slow)])
def test_the_boards_in_qemu_compute_what_the_host_knows(board: Board) -> None:
    cases = random_cases(count=40, ticks=500, seed=SEED + 2)
    try:
        must_equal(lambda some: on_qemu(some, board), cases)
    except QemuMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


def test_the_cases_reach_the_extremes() -> None:
    """Rails, full-scale outputs that are clipped, wild coefficients, wrapping counters and clocks: all occur."""
    cases = random_cases(count=160, ticks=300, seed=SEED)
    outputs = [host_outputs(case) for case in cases]
    for name in ("current", "torque"):
        found = {int(value) for each in outputs for value in (each[name].min(), each[name].max())}
        assert {-32768, 32752} <= found
        clipped = [each[f"{name}_filtered"] for each in outputs]
        assert any((each == 32767).any() for each in clipped)
        assert any((each == -32768).any() for each in clipped)
    fastest = [int(abs(each["velocity"]).max()) for each in outputs]
    assert max(fastest) > 2**22
    assert min(fastest) < 2**16
    bounds = {"filter.1.b0": 2**29, "filter.1.a1": 2**28 - 1, "filter.2.a2": 2**27}
    for name, bound in bounds.items():
        assert {bound, -bound} <= {case.registers[name] for case in cases}


def test_one_wrong_bit_is_found() -> None:
    cases = random_cases(count=4, ticks=300, seed=SEED)

    def flipped(some: Sequence[Case]) -> list[NDArray[Any]]:
        outputs = [host_outputs(case) for case in some]
        outputs[1]["torque_filtered"][77] ^= 1
        return outputs

    assert compare("flipped", flipped, cases).different.tolist() == [0, 0, 0, 1, 0, 0]
