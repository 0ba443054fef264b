"""The benchmarks of wire, firmware, filters, chips, feed and command line: what they are made of, and their checks."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_tests.need_qemu import need_qemu
from hil_tests.test_rp2040_board import need_rp2040
from hil_tests.virtual_bench.qemu import run_program
from jointbench.bench import Ledger
from jointwire import BODIES, Frame, FrameReader, MessageType, State, encode_frame
from tools.bench import chip, decoding, feed, filters, firmware, startup, wire
from tools.bench.__main__ import VERBS, main
from tools.bench.kernel_cost import NotAKernel, c_source, compile_peer, parse_kernel
from tools.bench.peers import BenchmarkFailed

ATTEMPTS = 3


def test_the_decoders_find_what_was_encoded() -> None:
    stream, columns = decoding.run_stream(3, seed=4)
    for found in (
        decoding.decode(stream),
        decoding.parse_stream(stream, compiled=False),
        decoding.parse_stream(stream, compiled=True),
    ):
        assert found.keys() == columns.keys()
        for node, board in columns.items():
            assert {name: values.tolist() for name, values in board.items()} == {
                name: values.tolist() for name, values in found[node].items()
            }
            assert len(board["motor_current"]) == 3 * decoding.BLOCK
            assert len(board["temperature"]) == 3


def test_the_race_refuses_samples_that_are_not_those(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = decoding.parse_stream

    def wrong(stream: bytes, compiled: bool):
        found = parse(stream, compiled)
        found[2]["motor_position"][5] += 1
        return found

    monkeypatch.setattr("tools.bench.decoding.parse_stream", wrong)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 /"):
        decoding.race(seed=0, blocks=2, peer_blocks=2, rounds=1)


def test_speeds_are_samples_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 100.0, 0.5).tolist())
    monkeypatch.setattr("tools.bench.decoding.time.perf_counter", lambda: next(clock))
    ours, plain, compiled = decoding.race(seed=0, blocks=4, peer_blocks=2, rounds=3)
    assert ours.rounds.tolist() == [decoding.BOARDS * decoding.BLOCK * 4 / 0.5] * 3
    assert plain.best == compiled.best == decoding.BOARDS * decoding.BLOCK * 2 / 0.5
    assert ours.spread == 0.0
    # All but the two slow channels at each tick, those two once a block.
    assert ours.values_per_sample == 5 + 2 / decoding.BLOCK


def test_cost_is_worked_out_between_the_edges() -> None:
    """A core used to 2 % while samples come, and entirely before and afterwards, which does not count."""
    wall = np.arange(0.0, 15.25, 0.25)
    streaming = np.clip(wall - 1.0, 0.0, 13.0)
    cpu = 0.02 * wall + 0.98 * (np.clip(wall, 0, 1.5) + np.clip(wall - 13.5, 0, None))
    samples = 12_000 * streaming
    cost = wire._cost(np.array([wall, cpu, samples, 16 * samples]).T, 12, Ledger(()))
    assert cost.seconds == 11.0
    assert cost.cpu == pytest.approx(0.02, rel=1e-9)
    assert cost.cpu_parts == pytest.approx(0.02, rel=1e-9)
    assert cost.rate == pytest.approx(1000.0)
    assert cost.bytes_per_s == pytest.approx(16 * 12_000)


def test_a_played_board_numbers_its_frames_anew_and_answers_pings() -> None:
    fields = dict.fromkeys((field.name for field in BODIES[MessageType.STATUS].subcons), 7)
    status = {**fields, "state": State.RUNNING}
    told = [
        (time_us, Frame(MessageType.STATUS, 3, 900, time_us, BODIES[MessageType.STATUS].build(status)))
        for time_us in (0, 2000, 4000)
    ]
    board = wire.PlayedBoard(5, told, late_us=1000)
    host = os.open(board.path, os.O_RDWR | os.O_NOCTTY)
    try:
        board.speak(0)
        board.speak(1000)
        os.write(host, encode_frame(MessageType.PING, 5, 1, nonce=77) + b"\1\2\3\0")
        assert select.select([board], [], [], 5.0)[0]
        board.hear(2000)
        board.speak(2500)
        board.speak(3000)
        frames = _frames(host, 3)
    finally:
        os.close(host)
    assert [frame.type for frame in frames] == [MessageType.STATUS, MessageType.PONG, MessageType.STATUS]
    assert [(frame.node, frame.seq) for frame in frames] == [(5, 0), (5, 1), (5, 2)]
    assert frames[1].body.nonce == 77
    assert [(f.body.frames_sent, f.body.frames_received, f.body.bad_frames) for f in (frames[0], frames[2])] == [
        (0, 0, 0), (2, 1, 1),
    ]  # fmt: skip
    assert frames[2].body.samples_taken == 7


def _frames(host: int, count: int) -> list[Frame]:
    reader, frames = FrameReader(), []
    deadline = time.monotonic() + 60.0
    while len(frames) < count and time.monotonic() < deadline:
        if select.select([host], [], [], 0.1)[0]:
            frames += [chunk.content for chunk in reader.feed(os.read(host, 4096))]
    return frames


@pytest.mark.slow
def test_the_whole_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That it measures what it says; how fast this machine is at this moment is not judged here."""
    path = tmp_path / "result.json"
    for _ in range(ATTEMPTS):
        main(["wire", "--json", str(path)])
        said = capsys.readouterr().err
        if path.exists():
            break
        assert "other programs kept the boards' player, or this process, from the processor" in said
    else:
        pytest.skip(f"{ATTEMPTS} times this machine was too busy for twelve boards in real time")
    result = json.loads(path.read_text())
    ok = {check["name"]: check["ok"] for check in result["checks"]}
    assert ok["boards"]
    assert ok["measured for"]
    assert ok["ledgers that do not close"]
    assert ok["samples lost"]
    assert result["host"]["ledger"]["samples_received"] >= 12 * 14_080


WHOLE = firmware.Cost("store", 600, 2400, 2600)
HALF = firmware.Cost("limits", 500, 1900, 2000)
LOOP = firmware.LoopCost(2000.0, 400.0, 20_000, 0.0, 3072, 64, 1)
PAIR = firmware.LoopCost(4000.0, 400.0, 25_000, 0.0, 6144, 64, 2)
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
    files = {"counting.mpy": firmware.mpy((firmware.PROGRAMS / "counting.py").read_text("utf-8"))}
    first, again = json.loads(run_program(KNOWN, files, icount=True)["counts.json"])
    assert first == again
    # Two a turn, and what MicroPython's assembler puts around each function: push, and pop with the return.
    assert first == [2 + 2 * turns for turns in (1, 2, 3, 10, 101)]


def test_the_cuts_are_the_stages_and_end_with_the_whole() -> None:
    cuts = firmware.cut_kernels()
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
    assert firmware.viper_source(whole.cut(1)).endswith("    word = cells[0]\n    return 0 + word\n")
    assert firmware.viper_source(whole.cut(4)).endswith("    near[0] = word\n    return 0 + word\n")
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
    whole = firmware.cut_kernels()[-1:]
    [cost] = firmware.count(whole, firmware.prepare(whole), firmware.EDGE_TIMES)
    assert 0 < cost.c < cost.viper < cost.viper_armv6m


ROW = {
    "c": 600, "viper_called": 2400, "armv6m_called": 2600,
    "c_left": [3, "00ff"], "viper_left": [3, "00ff"], "armv6m_left": [3, "00ff"],
}  # fmt: skip


def test_versions_that_differ_are_not_compared() -> None:
    assert firmware._cost("store", ROW) == WHOLE
    for other, left in (("c", [3, "00fe"]), ("armv6m", [4, "00ff"])):
        with pytest.raises(BenchmarkFailed, match=f"after stage 'store', viper and {other} left different"):
            firmware._cost("store", ROW | {f"{other}_left": left})


def test_a_stage_costs_what_it_adds() -> None:
    first, second = firmware.parts([HALF, WHOLE])
    assert first == HALF
    assert second == firmware.Cost("store", 100, 500, 600)
    assert second.ratio == 5.0


def test_every_limit_can_be_missed() -> None:
    good = ({"observer": [WHOLE]}, LOOP, PAIR)
    assert all(check.ok for check in firmware.make_checks([good, good]))
    dear = {"observer": [firmware.Cost("store", 600, 3001, 3001)]}
    long = dataclasses.replace(LOOP, longest=25_001, bytes_per_tick=1.0)
    slow = dataclasses.replace(PAIR, turn=24_500.0, longest=25_001)
    checks = firmware.make_checks([(dear, long, slow), good])
    assert not any(check.ok for check in checks)


def test_runs_are_compared_figure_by_figure() -> None:
    runs = [({"observer": [HALF, WHOLE]}, LOOP, PAIR) for _ in range(2)]
    assert firmware.differences(runs) == 0
    other = dataclasses.replace(WHOLE, viper=2401)
    assert (
        firmware.differences([runs[0], ({"observer": [HALF, other]}, dataclasses.replace(LOOP, turn=1.0), PAIR)]) == 2
    )


def test_framing_is_what_closing_and_sending_add() -> None:
    """Blocks of 64 turns of 50 steps; one closes a frame (1000 steps more), the ten after it code and send it (20)."""
    turns = np.full((40, 64), 50)
    turns[:, 20] += 1000
    turns[:, 21:31] += 20
    stamps = np.concatenate(([0xFFFFF000], 0xFFFFF000 + np.cumsum(turns))) & 0xFFFFFFFF  # the counter wraps
    cost = firmware._loop_cost(stamps.astype(np.int64), [300, 300], 64)
    assert cost.turn == 40 * 50
    assert cost.framing_per_sample == pytest.approx(40 * 1200 / 64, rel=1e-12)
    assert cost.longest == 40 * 1050
    assert cost.bytes_per_tick == 0


def test_a_compilers_refusal_is_told() -> None:
    need_qemu()
    with pytest.raises(BenchmarkFailed, match="k: "):
        compile_peer(parse_kernel("@micropython.viper\ndef k(short: ptr32) -> int:\n    return short[0]\n", "k"))
    with pytest.raises(BenchmarkFailed, match="mpy-cross"):
        firmware.mpy("def k(:\n")


LIMIT_DB = -80.0  # what is promised of every filter
SEED = 4


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("cutoff_hz", filters.CUTOFFS_HZ)
def test_designed_filters_are_as_designed(order: int, cutoff_hz: float) -> None:
    found = filters.butterworth_accuracy(order, cutoff_hz, np.random.default_rng(SEED), 20_000)
    assert filters.decibel(found.peak) < LIMIT_DB, f"seed {SEED}"
    assert found.rms < found.peak


def test_decimators_and_velocities_are_as_designed() -> None:
    found = {each.name: each for each in filters.accuracies(SEED, 5_000)}
    assert found["boxcar"].peak == 0.0
    others = [name for name in found if name != "boxcar"]
    assert len(others) == 1 + 2 + 3 + 1
    for name in others:
        assert found[name].peak > 0.0, name
        assert filters.decibel(found[name].peak) < LIMIT_DB, name


def test_coefficients_of_half_the_bits_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge can say no: Q14 for Q27, as little as the coefficients' upper halves."""
    whole = filters.butterworth_sections

    def coarse(*design):
        return tuple(tuple(c >> 13 << 13 for c in section) for section in whole(*design))

    monkeypatch.setattr(filters, "butterworth_sections", coarse)
    found = filters.butterworth_accuracy(2, 10.0, np.random.default_rng(SEED), 20_000)
    assert filters.decibel(found.peak) > -40.0


def test_checks_say_which_filter_and_where() -> None:
    million, none = np.full(len(filters.FILTERS), 1_000_000), np.zeros(len(filters.FILTERS), np.int64)
    whole, plain = (
        filters.Exactness("unix, viper", million, none),
        filters.Exactness(filters.PLAIN, million // 100, none),
    )
    good = [
        filters.Accuracy("boxcar", None, 0.0, 0.0),
        filters.Accuracy("low-pass", 5.0, 1e-5, 1e-6),
        filters.Accuracy("low-pass", 9.0, 2e-5, 1e-6),
    ]
    checks = filters.make_checks([plain, whole], good)
    assert all(check.ok for check in checks)
    assert len(checks) == 1 + 2 + 2
    assert checks[-1].value == pytest.approx(20.0 * np.log10(2e-5))
    one = np.eye(len(filters.FILTERS), dtype=np.int64)[3]
    few, one_off = (
        filters.Exactness("qemu, viper", million - one, none),
        filters.Exactness("qemu, compiled", million, one),
    )
    too_far = filters.Accuracy("low-pass", 5.0, 1.1e-4, 1e-6)
    failed = [check.name for check in filters.make_checks([whole, few, one_off], [too_far]) if not check.ok]
    assert failed == [
        "qemu, viper: samples of each filter",
        "qemu, compiled: samples that differ",
        "low-pass: largest error",
    ]


def test_tables_hold_every_filter() -> None:
    text = filters.accuracy_table(
        [filters.Accuracy("boxcar", None, 0.0, 0.0), filters.Accuracy("low-pass", 5.0, 1e-5, 1e-6)]
    )
    assert "none" in text
    assert "-100.0" in text
    speeds = filters.race(SEED, n_samples=2_000, rounds=1)
    assert all(speed.best > 0.0 for speed in speeds)
    assert filters.speed_table(speeds).count("\n") == len(speeds) + 1
    assert filters.PEER in filters.speed_table(speeds)


GOOD = chip.Turns(
    joints=1, tick_us=1000, seconds=60.0, mean_us=120.0, longest_us=300, missed=0, late=0, lost=0, lost_in_all=0,
    late_in_all=0, pings=480, bytes_per_s=18_000.0, collected=False, heap_free=chip.LEAST_FREE,
)  # fmt: skip
BAD = replace(
    GOOD,
    mean_us=121.0,
    longest_us=301,
    missed=1,
    lost=1,
    lost_in_all=3,
    pings=479,
    collected=True,
    heap_free=chip.LEAST_FREE - 1,
)


@pytest.mark.parametrize("joints", chip.LIMITS_US)
def test_chip_every_limit_can_be_missed(joints: int) -> None:
    mean_us, longest_us = chip.LIMITS_US[joints]
    good = replace(GOOD, joints=joints, mean_us=mean_us, longest_us=longest_us)
    bad = replace(BAD, joints=joints, mean_us=mean_us + 1.0, longest_us=longest_us + 1)
    assert all(check.ok for check in chip.make_checks([good]))
    assert not any(check.ok for check in chip.make_checks([bad]))


def test_what_is_lost_while_running_is_told_from_what_is_lost_before() -> None:
    lines = chip.turns_table([GOOD, BAD]).splitlines()
    rows = [line.split()[-2:] for line in lines if "lost" in line]
    assert rows == [["0", "1"], ["0", "2"]]


def test_a_late_sample_is_not_one_that_was_lost_before() -> None:
    late = replace(GOOD, late=2, lost=2, late_in_all=5)
    assert late.lost_before == 0
    rows = [line.split()[-2:] for line in chip.turns_table([GOOD, late]).splitlines() if "late" in line]
    assert rows == [["0", "2"], ["0", "3"]]


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "tick_us"), [(1, 1000), (1, 500), (2, 1000)])
def test_turns_on_the_chip_keep_their_time(tmp_path: Path, joints: int, tick_us: int) -> None:
    need_rp2040()
    found = chip.run(tmp_path, tick_us, 3.0, 0, joints)
    missed = [str(check) for check in chip.make_checks([found]) if not check.ok]
    assert not missed


def recorded(cpu: float = 0.03, lost: int = 0, rate: float = 25.0) -> list[feed.Recorded]:
    return [
        feed.Recorded(0, 0.02, 0, ()),
        feed.Recorded(1, 0.025, 0, (25.0,)),
        feed.Recorded(3, cpu, lost, (25.0, 25.0, rate)),
    ]


def test_it_is_a_verb() -> None:
    assert "feed" in VERBS


def test_a_feed_that_costs_little_passes() -> None:
    assert all(check.ok for check in feed.make_checks(recorded()))
    assert "3.00" in feed.feed_table(recorded())


def test_loss_cost_and_rate_can_fail() -> None:
    for wrong in (recorded(lost=1), recorded(cpu=0.18), recorded(rate=19.0)):
        assert [check.ok for check in feed.make_checks(wrong)].count(False) == 1


HEAVY = {"numpy", "scipy", "numba", "mujoco", "matplotlib", "construct", "pytest"}
ENDS_AT_ITS_FIRST_WORD = """
import builtins, json, os, runpy, sys

def first_word(*words, **_):
    os.write(1, json.dumps([" ".join(map(str, words)), list(sys.modules)]).encode())
    os._exit(0)

builtins.print = first_word
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def first_word(*command: str) -> tuple[str, set[str]]:
    """What a module of the command line says first, and what heavy packages it has imported by then."""
    arguments = [sys.executable, "-P", "-c", ENDS_AT_ITS_FIRST_WORD, *command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    words, modules = json.loads(done.stdout)
    return words, HEAVY & set(modules)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tools.demo", "demo of cobot6: plan"),
        ("tools.demo gorobot2", "demo of gorobot2: plan"),
        ("tools.demo --bench mine.toml", "demo on mine.toml: plan"),
        ("tools.papers --only cobot6", "the demos of cobot6"),
        ("jointbench run mine.toml --plan excitation.json", "playing excitation.json on the boards of mine.toml"),
        ("hil_tests.virtual_bench hil_tests/benches/cobot6.toml", "starting the boards of hil_tests/benches/cobot6"),
    ],
)
def test_the_first_word_waits_for_nothing_heavy(command: str, words: str) -> None:
    said, imported = first_word(*command.split())
    assert said.startswith(words)
    assert imported == set()


def test_a_first_word_that_waits_is_told_by_this() -> None:
    _, imported = first_word("timeit", "--number", "1", "--repeat", "1", "import numpy")
    assert imported == {"numpy"}


def test_the_verb_is_there() -> None:
    assert "startup" in VERBS


@pytest.mark.parametrize("name", startup.COMMANDS)
def test_each_command_does_what_it_is_timed_for(name: str) -> None:
    assert startup.seconds_of(startup.COMMANDS[name]) > 0.0


def test_a_slow_median_fails() -> None:
    times = {name: [startup.LIMIT_S / 2.0] * 3 for name in startup.COMMANDS}
    assert all(check.ok for check in startup.make_checks(times))
    times[startup.OURS[1]] = [0.1, 1.1 * startup.LIMIT_S, 1.1 * startup.LIMIT_S]
    assert [check.ok for check in startup.make_checks(times)] == [True, False, True]
    assert f"times {startup.PEER}" in startup.times_table(times)
