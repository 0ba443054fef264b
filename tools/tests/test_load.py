"""What `./run load` is made of: its benches, the slopes it fits, how it judges, its page; then the loads themselves."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_tests.virtual_bench.bench_file import read_bench_file
from jointbench.arrays import Array
from jointbench.bench import BoardClock, BoardLedger, Ledger
from jointbench.testing.requirements import load
from tools.load import lockstep
from tools.load.__main__ import main, write_page
from tools.load.lockstep import HIL_TESTS, Carried, Session, Share, lost_by_cause, write_arms, write_variation
from tools.load.realtime import Attempt, Speeds, highest_rate
from tools.load.soak import BENCH, Recorded, Soak, clocks_apart_us, trend
from tools.machine import parent_of, processor_seconds, resident_bytes

REQUIREMENTS = load(HIL_TESTS / "requirements")
MINUTES = np.arange(1, 61) / 60.0


def ledger(lost: int = 0, fault: str = "") -> Ledger:
    board = BoardLedger(1, "j1", 9, 9, 0, 0, 1000, 1000 - lost, 0, 0, lost, 0, fault=fault)
    return Ledger((board,))


def session(rate: float = 1000.0, lost: int = 0, fault: str = "") -> Session:
    return Session(rate, 12.0, 3.0, ledger(lost, fault), Share(0.1, 0.7, 0.5))


def attempt(tick_us: int, holds: bool = True) -> Attempt:
    return Attempt(tick_us, 1, session(), ledger(), behind_s=0.0 if holds else 0.06)


def soaked(host: Array | None = None, heap: Array | None = None, lost: int = 0, apart_us: float = 0.5) -> Soak:
    """An hour of one board: memory of the host [bytes] and what is free on the board, minute by minute."""
    host, heap = (np.full(60, 2e8) if host is None else host), (np.full(60, 89344.0) if heap is None else heap)
    recorded = [
        Recorded(hours, session(lost=lost), apart_us, (int(free),), Share(held, 1e8, 5e6))
        for hours, held, free in zip(MINUTES.tolist(), host, heap, strict=True)
    ]
    return Soak(tuple(recorded), 900.0)


def red(soak: Soak) -> set[str]:
    return {check.name for check in soak.checks(REQUIREMENTS, whole=True) if not check.ok}


def test_four_arms_are_four_times_the_one(tmp_path: Path) -> None:
    one, four = read_bench_file(write_arms(tmp_path / "1", 1)), read_bench_file(write_arms(tmp_path / "4", 4))
    assert [board.node for board in four.boards] == list(range(1, 25))
    assert [board.joint for board in four.boards] == [f"j{k}" for k in range(1, 25)] == list(four.robot.joint_names)
    for index, (joint, truth) in enumerate(zip(four.robot.joints, four.plant.joints, strict=True)):
        arm, same = divmod(index, 6)
        first = one.robot.joints[same]
        assert joint.parent == (-1 if same == 0 else index - 1)
        np.testing.assert_allclose(joint.rotation, first.rotation)
        np.testing.assert_allclose(np.subtract(joint.origin, first.origin), (1.5 * arm if same == 0 else 0.0, 0.0, 0.0))
        assert replace(joint.link, name="") == replace(first.link, name="")
        assert replace(truth, link=first.link) == replace(one.plant.joints[same], link=first.link)
    assert len({joint.link.name for joint in four.robot.joints}) == 24


def test_a_variation_is_the_usual_bench_but_for_its_keys(tmp_path: Path) -> None:
    usual = read_bench_file(HIL_TESTS / "benches" / "cobot6.toml")
    varied = read_bench_file(write_variation(tmp_path, tick_us=250, sample_every=4))
    assert (varied.tick_us, varied.sample_every) == (250, 4)
    assert varied.boards == usual.boards
    assert varied.plant.joints == usual.plant.joints


def test_the_soak_wraps_what_it_says_it_wraps() -> None:
    wraps_s = []
    for board in read_bench_file(BENCH).boards:
        clock, word = board.clock, 1 << 32
        wraps_s.append((clock.reaches((clock.reads(0) // word + 1) * word) * 1e-6, board.node))
        ticks = clock.reads(0) // 1000
        ahead_s = clock.reaches(1000 * (ticks // word + 1) * word) * 1e-6
        assert (ahead_s < 3600.0) == (board.node > 3)
    assert [round(at) for at, _ in wraps_s] == [600, 600, 600, 1967, 1967, 1967]


def test_a_slope_comes_with_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        line = trend(MINUTES.tolist(), (5.0 + 3.0 * MINUTES + rng.normal(0.0, 0.5, 60)).tolist())
        inside += abs(line.slope - 3.0) <= line.half_width
    assert 0.90 <= inside / 300 <= 0.99  # 95 % of them, within 3 sigma of 300 draws


def test_neighbours_that_are_alike_say_less() -> None:
    rng = np.random.default_rng(1)
    steps = rng.normal(0.0, 1.0, 6)
    alone, in_steps = rng.permutation(np.repeat(steps, 10)), np.repeat(steps, 10)
    assert (
        trend(MINUTES.tolist(), in_steps.tolist()).half_width > 2.0 * trend(MINUTES.tolist(), alone.tolist()).half_width
    )


def test_the_warm_up_is_not_growth() -> None:
    values = np.where(MINUTES < 0.1, 100.0, 200.0).tolist()
    line = trend(MINUTES.tolist(), values)
    assert (line.slope, line.half_width) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert (line.least, line.most) == (100.0, 200.0)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_values_have_no_slope(count: int) -> None:
    line = trend([1.0] * count, [2.0] * count)
    assert np.isnan([line.growth, line.decline]).all()
    assert not REQUIREMENTS["load.host_growth"].check(line.growth).ok


def test_growth_is_seen() -> None:
    noise = np.random.default_rng(2).normal(0.0, 1e6, 60)
    assert not red(soaked(host=2e8 + noise))
    assert red(soaked(host=2e8 + noise + 8e6 * MINUTES)) == {"load.host_growth"}
    assert red(soaked(host=2e8 + 20.0 * noise)) == {"load.host_growth"}  # nobody can tell
    assert red(soaked(heap=89344 - np.rint(600.0 * MINUTES))) == {"load.heap_decline"}
    assert not red(soaked(heap=89344 + np.rint(600.0 * MINUTES)))


def test_a_soak_judges_itself() -> None:
    assert not red(soaked())
    assert red(soaked(lost=1)) == {"load.soak_lost"}
    assert red(soaked(apart_us=21.0)) == {"load.clocks_apart"}
    short = Soak(soaked().recorded[:30], 400.0)
    assert red(short) == {"load.soak_hours"}
    assert "load.soak_hours" not in {check.name for check in short.checks(REQUIREMENTS, whole=False)}
    last = replace(soaked().recorded[-1], session=session(fault="does not add up"))
    assert red(Soak((*soaked().recorded[:-1], last), 900.0)) == {"load.soak_unaccounted"}


def test_clocks_are_apart_by_what_their_truths_are() -> None:
    times = np.linspace(1e9, 1.06e9, 50)
    truth = {
        "j1": {"clock": {"offset_us": 2_000_000, "ppm": 35.0}},
        "j2": {"clock": {"offset_us": 4_294_000_000, "ppm": -20.0}},  # it has wrapped
    }

    def clock(joint: str, late_us: float = 0.0, ppm: float = 0.0) -> BoardClock:
        known = truth[joint]["clock"]
        middle = 1.03e9
        board = (known["offset_us"] + middle * (1.0 + 1e-6 * known["ppm"]) + 400.0 - late_us) % 2**32
        return BoardClock(middle, board, known["ppm"] + ppm, 1000.0, 0.0, 900.0, 1.0, 0.0, 500.0, 80)

    # Half a round trip that is not told apart from the delay of one way is the same for both, and does not count.
    assert clocks_apart_us({"j1": clock("j1"), "j2": clock("j2")}, truth, times) == pytest.approx(0.0, abs=0.01)
    assert clocks_apart_us({"j1": clock("j1"), "j2": clock("j2", 25.0)}, truth, times) == pytest.approx(25.0, abs=0.01)
    drifting = clocks_apart_us({"j1": clock("j1"), "j2": clock("j2", ppm=1.0)}, truth, times)
    assert drifting == pytest.approx(30.0, abs=0.01)  # 1 ppm over half a minute


def test_the_highest_rate_is_that_below_which_all_hold() -> None:
    assert highest_rate([attempt(500), attempt(1000), attempt(250, holds=False), attempt(200)]) == 2000.0
    assert highest_rate([attempt(1000, holds=False), attempt(500)]) == 0.0
    assert highest_rate([]) == 0.0
    for session_that_lost in (session(lost=1), session(fault="does not add up"), None):
        assert not replace(attempt(1000), session=session_that_lost).holds


def test_a_run_with_an_open_ledger_is_silent_loss() -> None:
    silent = replace(attempt(1000), session=session(fault="does not add up"))
    stopped = Attempt(500, 1, None, ledger(fault="no closing STATUS"), 3.0, "has not finished")
    by_name = {check.name: check.ok for check in Speeds((silent, stopped), (stopped,)).checks(REQUIREMENTS)}
    assert by_name == {"load.realtime_rate": False, "load.realtime_unaccounted": False}
    by_name = {check.name: check.ok for check in Speeds((attempt(1000), stopped), (stopped,)).checks(REQUIREMENTS)}
    assert by_name == {"load.realtime_rate": True, "load.realtime_unaccounted": True}


def test_losses_are_counted_by_cause() -> None:
    board = BoardLedger(1, "j1", 9, 5, 1, 2, 1000, 990, 1, 2, 3, 4, unexplained=-5)
    causes = {"damaged": 2, "vanished": 4, "dropped": 6, "ticks_missed": 8, "unexplained": 10}
    assert lost_by_cause(Ledger((board, board))) == causes


def test_loads_that_are_missed_are_told() -> None:
    many, fast = lockstep.LOADS
    good = [Carried(many, 24, session(1000.0)), Carried(fast, 6, session(4000.0))]
    assert all(check.ok for check in lockstep.checks(good, REQUIREMENTS))
    bad = [Carried(many, 23, session(998.0, lost=1)), Carried(fast, 5, session(3995.0, fault="open"))]
    assert not any(check.ok for check in lockstep.checks(bad, REQUIREMENTS))


def test_the_page_has_a_section_for_each_part_that_was_measured(tmp_path: Path) -> None:
    page = tmp_path / "limits.md"
    machine = {"processor": "a processor", "cores": 2, "python": "3.11", "load": [0.1, 0.2, 0.3]}
    slow = Attempt(250, 1, None, None, 3.0, "j1 (node 1): has not finished", tries=3)
    speeds = Speeds((replace(attempt(1000), tries=2), slow), (slow,))
    parts = {
        "realtime": (speeds.to_dict(), speeds.checks(REQUIREMENTS)),
        "soak": (soaked(lost=1).to_dict(), soaked(lost=1).checks(REQUIREMENTS, whole=True)),
    }
    for part, (fields, checks) in parts.items():
        names = [check.name for check in checks]
        told = [check.to_dict() for check in checks]
        write_page(page, {part: fields, "parts": {part: names}, "checks": told, "machine": machine})
    text = page.read_text()
    assert text.count("\n## ") == 2
    assert "hold, as all below it do: 1000 Hz" not in text
    assert "**The highest rate that holds, as all below it do: 1000 Hz.**" in text
    assert "| 1000 | 1 | yes, at try 2 |" in text
    assert "| 4000 | 1 | no, 3 tries |" in text
    assert "- 4000 Hz: j1 (node 1): has not finished" in text
    assert "60 of 60000 samples lost" in text
    assert "- NO `load.soak_lost`: 60 (<= 0 samples)" in text
    assert "- ok `load.soak_hours`: 1 (>= 1 h)" in text


_HOLDS_A_BLOCK = "import sys; block = b'x' * int(sys.argv[1]); print(flush=True); input()"


def held_by_a_child(size: int) -> int:
    """Memory in RAM of a fresh process that holds a block: this one's heap may have room to reuse."""
    command = [sys.executable, "-S", "-c", _HOLDS_A_BLOCK, str(size)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        assert parent_of(child.pid) == os.getpid()
        held = resident_bytes(child.pid)
        child.stdin.write(b"\n")
    return held


def test_processes_tell_what_they_hold() -> None:
    size = 50_000_000
    assert held_by_a_child(size) - held_by_a_child(0) == pytest.approx(size, rel=0.1)  # a child's own 10 MB vary


def test_processes_tell_how_long_they_computed() -> None:
    before = processor_seconds(os.getpid())
    while processor_seconds(os.getpid()) < before + 0.02:
        sum(range(10_000))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["speed"], "PART = 'speed': there are lockstep, realtime, soak"),
        (["--write", "--quick"], "leave out --quick"),
        (["--hours", "0"], "'0' must be above 0"),
        (["--hours", "1", "--quick"], "not allowed with"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_the_quick_loads_are_carried(tmp_path: Path) -> None:
    told = tmp_path / "result.json"
    assert main(["lockstep", "--quick", "--out", str(tmp_path / "out"), "--json", str(told)]) == 0
    result = json.loads(told.read_text())
    assert [check["ok"] for check in result["checks"]] == [True] * 6
    assert [each["boards"] for each in result["lockstep"]] == [24, 6]
    assert min(each["samples_received"] for each in result["lockstep"]) > 90_000
    assert not list((tmp_path / "out").glob("**/frames.bin"))


@pytest.mark.slow
def test_two_minutes_of_the_soak(tmp_path: Path) -> None:
    """Too short for a slope, which is told; all else holds."""
    told = tmp_path / "result.json"
    assert main(["soak", "--hours", "0.02", "--out", str(tmp_path / "out"), "--json", str(told)]) == 1
    result = json.loads(told.read_text())
    missed = {check["name"] for check in result["checks"] if not check["ok"]}
    assert missed == {"load.soak_hours", "load.host_growth", "load.bench_growth", "load.heap_decline"}
    assert result["soak"]["samples_received"] > 6 * 2 * 57_000
    assert len({tuple(each["heap_free"]) for each in result["soak"]["minutes"]}) == 1
