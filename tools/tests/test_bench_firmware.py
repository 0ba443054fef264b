"""What `./run bench firmware` is made of: counts of known code, comparisons that can fail, figures worked out."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.qemu import run_program
from tools.bench.firmware import (
    EDGE_TIMES,
    PROGRAMS,
    Cost,
    LoopCost,
    count,
    cut_kernels,
    differences,
    make_checks,
    mpy,
    parts,
    prepare,
    viper_source,
)
from tools.bench.firmware import _cost as stage_cost
from tools.bench.firmware import _loop_cost as loop_cost
from tools.bench.kernel_cost import NotAKernel, c_source, compile_peer, parse_kernel
from tools.bench.peers import BenchmarkFailed

WHOLE = Cost("store", 600, 2400, 2600)
HALF = Cost("limits", 500, 1900, 2000)
LOOP = LoopCost(2000.0, 400.0, 20_000, 0.0, 3072, 64, 1)
PAIR = LoopCost(4000.0, 400.0, 25_000, 0.0, 6144, 64, 2)
# Counts loops of known length, from two different phases of the counter.
KNOWN = """
import json
from counting import Counter, entry
@micropython.asm_thumb
def turns(r0, r1):
    label(AGAIN)
    sub(r1, 1)
    bne(AGAIN)
counter = Counter(bytearray(16))
counts = [counter.native(entry(turns), (0, n, 0, 0)) for n in (1, 2, 3, 10, 101)]
again = [counter.native(entry(turns), (0, n, 0, 0)) for n in (1, 2, 3, 10, 101)]
with open("counts.json", "w") as file:
    json.dump([counts, again], file)
"""


def test_known_code_is_counted_to_the_instruction() -> None:
    need_qemu()
    files = {"counting.mpy": mpy((PROGRAMS / "counting.py").read_text("utf-8"))}
    first, again = json.loads(run_program(KNOWN, files, icount=True)["counts.json"])
    assert first == again
    # Two a turn, and what MicroPython's assembler puts around each function: push, and pop with the return.
    assert first == [2 + 2 * turns for turns in (1, 2, 3, 10, 101)]


def test_the_cuts_are_the_stages_and_end_with_the_whole() -> None:
    cuts = cut_kernels()
    assert [name for name, _ in cuts][:2] == ["begin", "decimate"]
    assert len(cuts) >= 8
    sizes = [len(kernel.body) for _, kernel in cuts]
    assert sizes == sorted(sizes)
    assert cuts[-1][1].cut(sizes[-1]) is cuts[-1][1]


SMALL = """
UPPER = const(32767)
OTHER = const(9)

@micropython.viper
def small(cells: ptr32) -> int:
    word = cells[0]
    # stage: clamp
    near = ptr32(int(cells) + 4)
    if word > UPPER:
        word = UPPER
    elif not (word & 3 == 1 or word < -8):
        word //= 2
    near[0] = word
    # stage: rest
    while word > 0:
        word -= 100
    return word + cells[1]
"""
SMALL_IN_C = """#include <stdint.h>

enum {
    UPPER = 32767,
};

int32_t small(int32_t *cells) {
    int32_t word;
    int32_t *near;
    word = cells[0];
    near = ((int32_t *)(intptr_t)(((int32_t )(intptr_t)cells) + 4));
    if ((word > UPPER)) {
        word = UPPER;
    } else {
        if ((!(((word & 3) == 1) || (word < (-8))))) {
            word /= 2;
        }
    }
    near[0] = word;
    while ((word > 0)) {
        word -= 100;
    }
    return (word + cells[1]);
    return 0;
}
"""


def test_a_kernel_in_c_has_the_same_statements_with_every_operator_in_brackets() -> None:
    assert c_source(parse_kernel(SMALL, "small")) == SMALL_IN_C


def test_a_cut_kernel_returns_the_sum_of_what_is_still_needed() -> None:
    whole = parse_kernel(SMALL, "small")
    assert whole.stages == (("clamp", 1), ("rest", 4))
    assert viper_source(whole.cut(1)).endswith("    word = cells[0]\n    return 0 + word\n")
    assert viper_source(whole.cut(4)).endswith("    near[0] = word\n    return 0 + word\n")
    assert whole.cut(6) is whole


REFUSED = {
    "    return float(a[0])": r"line 3: float\(a\[0\]\); allowed: numbers",
    "    x = a[0] / 2\n    return x": r"line 3: a\[0\] / 2",
    "    return 0 < n < 3": "line 3: 0 < n < 3",
    "    for i in range(3):\n        pass\n    return 0": "line 3: for i in range",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_cannot_be_said_in_c_is_refused_by_line(body: str) -> None:
    kernel = parse_kernel(f"@micropython.viper\ndef k(a: ptr32, n: int) -> int:\n{body}\n", "k")
    with pytest.raises(NotAKernel, match=REFUSED[body]):
        c_source(kernel)


def test_a_kernel_is_viper_with_plain_arguments_and_constants() -> None:
    with pytest.raises(NotAKernel, match="k is no viper function"):
        parse_kernel("def k(a: ptr32) -> int:\n    return 0\n", "k")
    with pytest.raises(NotAKernel, match="argument a of type object"):
        parse_kernel("@micropython.viper\ndef k(a: object):\n    return 0\n", "k")
    with pytest.raises(NotAKernel, match="no function 'other'"):
        parse_kernel(SMALL, "other")
    with pytest.raises(NotAKernel, match=r"line 2: const\(1 << 15\); allowed: a plain number"):
        parse_kernel(SMALL.replace("const(32767)", "const(1 << 15)"), "small")


@pytest.mark.slow
def test_the_tick_leaves_the_same_memory_in_viper_and_in_c() -> None:
    """The whole tick in its dearer form; `count` refuses to compare versions that differ."""
    need_qemu()
    whole = cut_kernels()[-1:]
    [cost] = count(whole, prepare(whole), EDGE_TIMES)
    assert 0 < cost.c < cost.viper < cost.viper_armv6m


ROW = {
    "c": 600, "viper_called": 2400, "armv6m_called": 2600,
    "c_left": [3, "00ff"], "viper_left": [3, "00ff"], "armv6m_left": [3, "00ff"],
}  # fmt: skip


def test_versions_that_differ_are_not_compared() -> None:
    assert stage_cost("store", ROW) == WHOLE
    for other, left in (("c", [3, "00fe"]), ("armv6m", [4, "00ff"])):
        with pytest.raises(BenchmarkFailed, match=f"after stage 'store', viper and {other} left different"):
            stage_cost("store", ROW | {f"{other}_left": left})


def test_a_stage_costs_what_it_adds() -> None:
    first, second = parts([HALF, WHOLE])
    assert first == HALF
    assert second == Cost("store", 100, 500, 600)
    assert second.ratio == 5.0


def test_every_limit_can_be_missed() -> None:
    good = ({"observer": [WHOLE]}, LOOP, PAIR)
    assert all(check.ok for check in make_checks([good, good]))
    dear = {"observer": [Cost("store", 600, 3001, 3001)]}
    long = dataclasses.replace(LOOP, longest=25_001, bytes_per_tick=1.0)
    slow = dataclasses.replace(PAIR, turn=24_500.0, longest=25_001)
    checks = make_checks([(dear, long, slow), good])
    assert not any(check.ok for check in checks)


def test_runs_are_compared_figure_by_figure() -> None:
    runs = [({"observer": [HALF, WHOLE]}, LOOP, PAIR) for _ in range(2)]
    assert differences(runs) == 0
    other = dataclasses.replace(WHOLE, viper=2401)
    assert differences([runs[0], ({"observer": [HALF, other]}, dataclasses.replace(LOOP, turn=1.0), PAIR)]) == 2


def test_framing_is_what_closing_and_sending_add() -> None:
    """Blocks of 64 turns of 50 steps; one closes a frame (1000 steps more), the ten after it code and send it (20)."""
    turns = np.full((40, 64), 50)
    turns[:, 20] += 1000
    turns[:, 21:31] += 20
    stamps = np.concatenate(([0xFFFFF000], 0xFFFFF000 + np.cumsum(turns))) & 0xFFFFFFFF  # the counter wraps
    cost = loop_cost(stamps.astype(np.int64), [300, 300], 64)
    assert cost.turn == 40 * 50
    assert cost.framing_per_sample == pytest.approx(40 * 1200 / 64, rel=1e-12)
    assert cost.longest == 40 * 1050
    assert cost.bytes_per_tick == 0


def test_a_compilers_refusal_is_told() -> None:
    need_qemu()
    with pytest.raises(BenchmarkFailed, match="k: "):
        compile_peer(parse_kernel("@micropython.viper\ndef k(short: ptr32) -> int:\n    return short[0]\n", "k"))
    with pytest.raises(BenchmarkFailed, match="mpy-cross"):
        mpy("def k(:\n")
