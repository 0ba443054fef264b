"""What `./run bench firmware` is made of: counts of known code, comparisons that can fail, figures worked out."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.qemu import run_program
from tools.firmware_bench.errors import KernelsDiffer, PeerFailed
from tools.firmware_bench.kernels import PROGRAMS, Cost, _cost, cut_kernels, mpy
from tools.firmware_bench.loop import LoopCost
from tools.firmware_bench.loop import _cost as loop_cost
from tools.firmware_bench.peer import compile_peer
from tools.firmware_bench.verb import differences, make_checks, parts
from tools.kernel_compiler.source import parse_kernel

WHOLE = Cost("store", 600, 300, 900, 800, 2000, 2200)
HALF = Cost("limits", 500, 280, 800, 700, 1500, 1600)
LOOP = LoopCost(2000.0, 400.0, 700000, 0.0, 3072, 64, 1)
PAIR = LoopCost(4000.0, 400.0, 900000, 0.0, 6144, 64, 2)
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


ROW = {
    "thumb": 600, "c": 300, "thumb_called": 900, "thumb_called_with_address": 800, "viper_called": 2000,
    "armv6m_called": 2200, "thumb_left": [3, "00ff"], "c_left": [3, "00ff"], "viper_left": [3, "00ff"],
    "armv6m_left": [3, "00ff"],
}  # fmt: skip


def test_versions_that_differ_are_not_compared() -> None:
    assert _cost("store", ROW) == WHOLE
    for other, left in (("c", [3, "00fe"]), ("viper", [2, "00ff"]), ("armv6m", [4, "00ff"])):
        with pytest.raises(KernelsDiffer, match=f"after stage 'store', Thumb and {other} differ"):
            _cost("store", ROW | {f"{other}_left": left})


def test_a_stage_costs_what_it_adds() -> None:
    first, second = parts([HALF, WHOLE])
    assert first == HALF
    assert second == Cost("store", 100, 20, 100, 100, 500, 600)
    assert second.ratio == 5.0


def test_every_limit_can_be_missed() -> None:
    good = {"observer": [WHOLE]}
    assert all(check.ok for check in make_checks([(good, LOOP, PAIR), (good, LOOP, PAIR)]))
    dear = {"observer": [Cost("store", 6000, 300, 9000, 800, 2000, 3001)]}
    framing = dataclasses.replace(LOOP, framing_per_sample=501.0, bytes_per_tick=1.0)
    slow = dataclasses.replace(PAIR, turn=24_500.0)
    checks = make_checks([(dear, framing, slow), (good, LOOP, PAIR)])
    assert not any(check.ok for check in checks)


def test_a_stage_beyond_three_times_c_is_told_even_when_the_whole_is_not() -> None:
    stages = {"observer": [HALF, WHOLE]}
    ok = {check.name: check.ok for check in make_checks([(stages, LOOP, PAIR), (stages, LOOP, PAIR)])}
    assert ok["tick over C, without the call"]
    assert not ok["dearest stage over C"]


def test_runs_are_compared_figure_by_figure() -> None:
    runs = [({"observer": [HALF, WHOLE]}, LOOP, PAIR) for _ in range(2)]
    assert differences(runs) == 0
    other = dataclasses.replace(WHOLE, called=901)
    assert differences([runs[0], ({"observer": [HALF, other]}, dataclasses.replace(LOOP, turn=1.0), PAIR)]) == 2


def test_framing_is_what_closing_and_sending_add() -> None:
    """Blocks of 64 turns of 50 steps; one closes a frame (1000 steps more), one sends it (200), one collects memory."""
    turns = np.full((40, 64), 50)
    turns[:, 20] += 1000
    turns[:, 21] += 200
    turns[30, 20] += 17000
    stamps = np.concatenate(([0xFFFFF000], 0xFFFFF000 + np.cumsum(turns))) & 0xFFFFFFFF  # the counter wraps
    cost = loop_cost(stamps.astype(np.int64), [300, 300], 64)
    assert cost.turn == 40 * 50
    assert cost.framing_per_sample == pytest.approx(40 * 1200 / 64, rel=1e-12)
    assert cost.collection == 40 * 18050
    assert cost.bytes_per_tick == 0


def test_a_compilers_refusal_is_told() -> None:
    need_qemu()
    with pytest.raises(PeerFailed, match="k: "):
        compile_peer(parse_kernel("@micropython.viper\ndef k(short: ptr32) -> int:\n    return short[0]\n", "k"))
    with pytest.raises(PeerFailed, match="mpy-cross"):
        mpy("def k(:\n")
