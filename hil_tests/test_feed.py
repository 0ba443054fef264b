"""The live feed of a bench, on emulated boards: what it shows is what was recorded, and STOP stops."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.feed_helpers import feed_of, first, joint_lines, watcher_process, watching
from hil_tests.link_helpers import COBOT, ask_bench, ready_bench, ripple, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, FeedClient, Ledger, Port, Progress, feed, open_bench, open_feed
from jointbench.bench.feed_server import Feed
from jointbench.bench.monitor.attachment import watch
from jointbench.bench.port_lock import this_program
from jointbench.errors import BoardError, BoardSilent, FeedError, StopAsked
from jointbench.recording import Recorder, open_run, read_records
from jointwire import MessageType, decode_frame, decode_samples

STOP_US = 100_000


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, plant="ideal", seed=3, modules=2, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with ready_bench(live) as bench:
        yield bench


def test_what_is_shown_of_a_run_is_what_it_recorded(bench: Bench, live: Path, tmp_path: Path) -> None:
    """Every value shown is the last one of a block in the recording, and they come in its order."""
    shown: list[dict[str, Any]] = []
    with feed_of(live) as client:
        reader = threading.Thread(target=lambda: shown.extend(client.lines()))
        reader.start()
        bench.play(wave(bench), 2, Recorder(tmp_path / "run", bench.provenance(repeats=2)))
        bench.close()
        reader.join()
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.verdict.startswith("valid: 0 of ")
    assert (shown[0]["kind"], shown[0]["robot"], shown[-1]["kind"]) == ("about", bench.robot.name, "bye")
    playing = [line for line in shown if line["kind"] == "state" and line["doing"] == "playing"]
    states = [state for state in playing if state["elapsed_s"] > 0.1]  # before that they stand, all values are alike
    assert {state["run"] for state in states} == {str(tmp_path / "run")}
    assert states[-1]["duration_s"] == pytest.approx(2 * 1.024)
    last = _last_of_blocks(tmp_path / "run", bench)
    for node, joint in ((1, "j1"), (2, "j2")):
        recorded, seen = last[node], [joint_lines(state)[joint] for state in states]
        places = [recorded.index((line["position_rad"], line["current_A"])) for line in seen]
        assert len(set(places)) > 3
        assert places == sorted(places)
        assert {line["samples_lost"] for line in seen} <= {None, 0}


def _last_of_blocks(run: Path, bench: Bench) -> dict[int, list[tuple[float, float]]]:
    """Position and current of the last sample in each block of the boards of joints with motors of their own."""
    last: dict[int, list[tuple[float, float]]] = {}
    facts = {board.node: fact for board, fact in zip(bench.boards, bench.facts, strict=True)}
    for record in read_records((run / "frames.bin").read_bytes(), []):
        frame = decode_frame(record.payload)
        if frame.type is not MessageType.DATA:
            continue
        columns, fact = decode_samples(frame).columns, facts[frame.node]
        turn = 2.0 * np.pi / fact.motor_counts / fact.ratio
        amperes = (int(columns["motor_current"][-1]) - fact.registers["current.zero"]) * fact.si("current.scale")
        pair = (float(f"{columns['motor_position'][-1] * turn:.7g}"), float(f"{amperes:.7g}"))
        last.setdefault(frame.node, []).append(pair)
    return last


def test_stop_ends_a_run_in_time_and_keeps_it(bench: Bench, live: Path, tmp_path: Path) -> None:
    """Whoever asks is named, the run is valid up to there, and the boards' own outputs go to zero."""
    asked_us: list[int] = []

    def ask(progress: Progress) -> None:
        if progress.elapsed > 0.3 and not asked_us:
            ask_to_stop(client, bench)
            asked_us.append(bench.clock.now_us())

    ask_bench(bench, {"outputs": 1})
    with feed_of(live) as client:
        with pytest.raises(StopAsked, match=rf"^stopped by .* \(process {os.getpid()}\); motors are off"):
            bench.play(wave(bench), 10, Recorder(tmp_path / "run", bench.provenance(repeats=10)), ask)
        assert first(client, kind="stopped") == {"kind": "stopped", "ok": True, "unconfirmed": []}
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["outcome"].startswith("stopped by StopAsked: stopped by ")
    assert result["ledger"]["verdict"].startswith("valid: 0 of ")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    (stopped,) = [event for event in events if event["event"] == "stopped"]
    assert stopped["time_us"] - asked_us[0] < STOP_US
    assert not any(board.is_driving for board in bench.boards)


def test_a_stop_before_the_motors_are_on_lets_none_on(bench: Bench, live: Path, tmp_path: Path) -> None:
    with feed_of(live) as client:
        ask_to_stop(client, bench)
        with pytest.raises(StopAsked):
            bench.play(wave(bench), 1, Recorder(tmp_path / "run", bench.provenance(repeats=1)))
        assert first(client, kind="stopped")["ok"]
    bench.play(ripple(bench))  # it was meant for that motion alone


class _AskedAtTheEnd(Recorder):
    """Has a stop asked for when nothing looks for one any more: while the recording is closed."""

    client: FeedClient
    bench: Bench

    def close(self, outcome: str = "finished") -> Ledger:
        ask_to_stop(self.client, self.bench)
        return super().close(outcome)


def ask_to_stop(client: FeedClient, bench: Bench) -> None:
    """Ask, and wait until the bench's program has heard it."""
    client.ask("stop")
    while not any(isinstance(subscriber, Feed) and subscriber.stop_asked for subscriber in bench.subscribers):
        time.sleep(0.001)


def test_a_stop_at_the_very_end_lets_no_motion_follow(bench: Bench, live: Path, tmp_path: Path) -> None:
    recorder = _AskedAtTheEnd(tmp_path / "run", bench.provenance(repeats=1))
    with feed_of(live) as client:
        recorder.client, recorder.bench = client, bench
        with pytest.raises(StopAsked):
            bench.play(wave(bench), 1, recorder)
        assert first(client, kind="stopped")["ok"]
    assert json.loads((tmp_path / "run" / "result.json").read_text())["outcome"] == "finished"


def test_motors_are_not_said_to_be_off_before_their_boards_confirm_it(
    bench: Bench, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to whoever asks once more, nor while the bench is idle afterwards."""
    j1, recorder = bench.boards[0], _AskedAtTheEnd(tmp_path / "run", bench.provenance(repeats=10))
    unconfirmed = {"kind": "stopped", "ok": False, "unconfirmed": ["j1"]}

    def say_nothing() -> None:
        raise BoardSilent("j1", j1.node, "says nothing")

    def ask(progress: Progress) -> None:
        if progress.elapsed > 0.3:
            ask_to_stop(client, bench)

    with feed_of(live) as client, monkeypatch.context() as patch:
        recorder.client, recorder.bench = client, bench
        patch.setattr(j1, "stop", say_nothing)
        patch.setattr(type(j1), "is_driving", property(lambda board: board is j1))
        with pytest.raises(StopAsked):
            bench.play(wave(bench), 10, recorder, ask)
        assert [first(client, kind="stopped") for _ in range(2)] == [unconfirmed] * 2
        client.ask("stop")
        assert "j1 did not confirm that the motor is off" in first(client, kind="error")["why"]


def test_a_bench_without_a_feed_can_be_moved_and_not_watched(
    live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(port: Port, **facts: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, open_bench(live) as bench:
        patch.setattr(Port, "announce", refuse)
        before = set(threading.enumerate())  # another bench's may be ending
        bench.connect()
        assert not bench.subscribers
        assert "feed" not in {thread.name for thread in set(threading.enumerate()) - before}
        assert "No space left on device" in caplog.records[-1].getMessage()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    with open_bench(live) as bench:
        bench.connect()
        assert "to a shorter path" in caplog.records[-1].getMessage()
    with pytest.raises(FeedError, match="to a shorter path"):
        watch(live, threading.Event())


def test_an_idle_holder_says_that_nothing_moves_and_begins_nothing(bench: Bench, live: Path) -> None:
    """A stop that comes between two motions is one of the second; connecting again is to take note of it."""
    away = np.array(bench.robot.home) + 0.1
    with feed_of(live) as client:
        client.ask("release")
        assert first(client, kind="busy")["why"].startswith(this_program())
        client.ask("dance")
        assert "'dance'" in first(client, kind="error")["why"]
        client.ask("stop")
        why = first(client, kind="error")["why"]
        assert "moves nothing: as its boards last said, their motors are off. The next motion" in why
        with pytest.raises(StopAsked, match="before this motion began"):
            bench.move_to(away)
        assert first(client, kind="stopped")["ok"]
        bench.move_to(away)  # it was refused once
        ask_to_stop(client, bench)
        bench.connect()
        assert "has taken note" in first(client, kind="error")["why"]
    bench.move_to(bench.robot.home)


def test_an_idle_bench_can_be_watched_by_two_and_stopped(live: Path) -> None:
    with watching(live) as one, feed_of(live) as two:
        state = next(line for line in one.lines() if line["kind"] == "state" and line["boards"][1]["samples"])
        assert first(two, time_us=state["time_us"]) == state
        j2 = joint_lines(state)["j2"]
        assert (state["doing"], j2["fault"], j2["samples_lost"], j2["frames_bad"]) == ("idle", None, 0, 0)
        assert j2["position_rad"] == pytest.approx(-np.pi / 2.0, abs=0.01)
        assert 40.0 < j2["voltage_V"] < 60.0
        assert 0.0 < j2["temperature_C"] < 60.0
        one.ask("stop")
        assert first(two, kind="stopped")["ok"]
    with open_bench(live) as bench:
        bench.connect()
        assert [fact.registers["stream.always"] for fact in bench.facts] == [0, 0]


def test_a_run_takes_the_bench_from_a_watcher(live: Path) -> None:
    with watching(live) as client:
        kinds: list[str] = []
        reader = threading.Thread(target=lambda: kinds.extend(line["kind"] for line in client.lines()))
        reader.start()
        with open_bench(live) as bench:
            reader.join()
            assert kinds[-2:] == ["released", "bye"]
            assert open_feed(live) is None  # not connected yet
            bench.connect()
            with feed_of(live) as mine:
                mine.ask("release")
                assert first(mine, kind="busy")
    assert open_feed(live) is None


@pytest.mark.slow
def test_a_holder_that_hangs_is_named_and_one_that_is_killed_leaves_nothing(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watcher_process(live) as watcher, feed_of(live) as client:
        assert first(client, kind="state")
        monkeypatch.setattr(feed, "PATIENCE_S", 0.5)
        with feed_of(live) as impatient:
            watcher.send_signal(signal.SIGSTOP)
            *_, last = impatient.lines()
            assert last["kind"] == "bye"
            assert f"(process {watcher.pid}) has said nothing for 0.5 s: it hangs" in last["why"]
        watcher.kill()
        assert {line["kind"] for line in client.lines()} <= {"about", "state"}
        watcher.wait()
    assert open_feed(live) is None
    with watching(live) as client:
        assert client.about["pid"] == os.getpid()


@pytest.mark.slow
def test_watched_boards_that_die_are_named(tmp_path: Path) -> None:
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live:
        with watching(live) as client:
            first(client, kind="state")
            os.kill(tomllib.loads(live.read_text())["board"][0]["pid"], signal.SIGKILL)
            states = (joint_lines(line) for line in client.lines() if line["kind"] == "state")
            boards = next(each for each in states if each["j1"]["state"] == "LOST")
            assert next(states)["j2"]["age_s"] < 0.2
            assert "its process has ended" in boards["j1"]["fault"]
            assert boards["j2"]["fault"] is None
            client.ask("stop")
            assert first(client, kind="stopped") == {"kind": "stopped", "ok": False, "unconfirmed": ["j1"]}
        with pytest.raises(BoardError, match=r"^j1 \(node 1\)"):
            watch(live, threading.Event())


@pytest.mark.slow
def test_stop_ends_the_command_line_with_the_reason(tmp_path: Path) -> None:
    """The program `jointbench run`, on all six joints, while two look on and one of them asks."""
    jointbench = [sys.executable, "-m", "jointbench"]
    plan, run = str(tmp_path / "plan.json"), tmp_path / "run"
    subprocess.run([*jointbench, "plan", "cobot6", "--random", "--period", "9.6", "--out", plan], check=True)
    with virtual_bench(COBOT, plant="ideal", out=tmp_path / "sim") as live:
        command = [*jointbench, "run", str(live), "--plan", plan, "--out", str(run)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            with feed_of(live) as client, feed_of(live) as other:
                assert client.about["program"] == "jointbench run"
                first(other, doing="playing")
                first(client, doing="playing")
                client.ask("stop")
                assert first(other, kind="stopped")["ok"]
            _, said = process.communicate()
        assert process.returncode != 0
        kept = (run / "result.json").exists()  # unless it was so early that nothing had been recorded
        outcome = "what was recorded is kept" if kept else "that was before the first sample: nothing is recorded"
        assert f"(process {os.getpid()}); motors are off, {outcome}" in said
        assert "Traceback" not in said
    assert kept == run.exists()
