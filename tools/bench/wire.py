"""`./run bench wire`: the frames between host and boards, their decoding and what they cost the host.

The boards are two robots' worth of real board programs, recorded in lockstep and played again in real time by another
process: what the host costs must not depend on how many interpreters the same machine can run beside it.

`python -m tools.bench.wire RUN...` plays recorded boards, each on a pseudo-terminal, at its own pace and in answer to
PINGs. It prints a JSON line with the port of each node (the nodes of a second run are
those after the first's), plays from the first byte that comes, and ends when its standard input does. Samples and
states are as recorded; sequence numbers and counts of frames are this session's, so that a ledger can be kept of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
import tty
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.bench import (
    Bench,
    Board,
    BoardEntry,
    Clock,
    Facts,
    Ledger,
    Port,
    Progress,
    Subscriber,
    WallClock,
    open_bench,
)
from jointbench.bench.feed_server import Feed
from jointbench.bench.line import Line
from jointbench.bench.motion_watch import Peaks
from jointbench.bench.playback import _Playback, old_objects_set_aside
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import BoardSilent
from jointbench.excitation import random_excitation
from jointbench.model import Drive, Joint, load_robot
from jointbench.recording import FRAMES, Record, Recorder, RecordKind, record, scan_records
from jointbench.stopping import SafeInterrupt
from jointwire import BODIES, BY_NAME, Frame, FrameReader, MessageType, decode_frame, encode_frame
from tools.bench.decoding import Speed, decode, race, run_stream, speed_fields, speed_table
from tools.bench.peers import BenchmarkFailed
from tools.machine import machine

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "hil_tests" / "benches" / "cobot6.toml"
ROBOT = "cobot6"
BENCHES = 2
MOTION_S = 14.08  # a whole number of knots
SETTLED_S = 1.0  # left out at both ends: the first frames of a session compile and load code
BAUD = 921600  # pseudo-terminals take any

LookOn = Callable[[Path], contextlib.AbstractContextManager[object]]


@dataclass(frozen=True)
class HostCost:
    """Processor time of the host's process, kernel time included, while all boards streamed.

    Attributes:
        seconds: of the wall clock that were measured.
        cpu: fraction of one core over all of them.
        cpu_parts: the same in each quarter of a second, shape (n,).
        rate: samples a second of each board, on average.
        n_boards: how many there were.
        bytes_per_s: received.
        ledger: of the whole session.
    """

    seconds: float
    cpu: float
    cpu_parts: Array
    rate: float
    n_boards: int
    bytes_per_s: float
    ledger: Ledger


def record_boards(folder: Path, seed: int) -> list[Path]:
    """Runs of two robots' boards in lockstep, under other imperfections and other motions."""
    runs: list[Path] = []
    for number in range(BENCHES):
        bench_folder = folder / f"bench-{number}"
        with virtual_bench(BENCH, seed=seed + number, out=bench_folder) as live, open_bench(live) as bench:
            bench.connect()
            bench.configure()
            motion = random_excitation(bench.robot, period=MOTION_S, seed=seed + number)
            runs.append(record(bench, motion, folder / f"boards-{number}", 1).path)
    return runs


@contextlib.contextmanager
def played(runs: Sequence[Path]) -> Iterator[list[BoardEntry]]:
    """Ports of recorded boards that are played again, from the first byte on that they receive."""
    command = [sys.executable, "-P", "-m", "tools.bench.wire", *map(str, runs)]
    player = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert player.stdin is not None
    assert player.stdout is not None
    try:
        line = player.stdout.readline()
        if not line:
            raise BenchmarkFailed(f"the player of {', '.join(map(str, runs))} ended with status {player.wait()}")
        urls: dict[str, str] = json.loads(line)
        yield [BoardEntry(int(node), f"j{node}", url, BAUD) for node, url in urls.items()]
    finally:
        player.stdin.close()
        player.stdout.close()
        player.wait()


@dataclass(frozen=True)
class _Robot:
    """As much of a robot as torque peaks take."""

    drives: tuple[Drive, ...]
    joints: tuple[Joint, ...]
    name: str = "twelve boards"

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(f"j{index + 1}" for index in range(len(self.drives)))

    @property
    def transmission_matrix(self) -> Array:
        return np.diag([drive.ratio for drive in self.drives])


@dataclass(frozen=True)
class _Boards:
    """As much of a bench as watching a motion takes; twelve boards are no robot's."""

    boards: tuple[Board, ...]
    clock: Clock
    facts: tuple[Facts, ...]
    robot: _Robot
    name: str = "played"
    foot_facts: tuple[Facts, ...] = ()
    lines: tuple[Line, ...] = ()
    subscribers: list[Subscriber] = field(default_factory=list[Subscriber])
    publish = Bench.publish

    @property
    def all_boards(self) -> tuple[Board, ...]:
        """There are none of feet."""
        return self.boards


@contextlib.contextmanager
def _looked_at(bench: Any, look_on: LookOn | None) -> Iterator[None]:
    if look_on is None:
        yield
        return
    feed = Feed(bench)
    bench.subscribers.append(feed)
    try:
        with look_on(feed.server.path):
            yield
    finally:
        bench.publish("closed")


def measure(
    entries: Sequence[BoardEntry], directory: Path, peaks: bool = False, look_on: LookOn | None = None
) -> HostCost:
    """Watch boards through a motion and record them, as `Bench.play` does from the start of the motion on.

    Args:
        entries: where they are.
        directory: of the run.
        peaks: whether torque peaks are worked out of all samples, for a progress line.
        look_on: what looks at the live feed at this socket in the meantime; there is none without it.

    Raises:
        BenchmarkFailed: the boards fell silent, or this process was kept from hearing them.
    """
    decode(run_stream(n_blocks=1, seed=0)[0])  # greeting boards loads the compiled decoder; nobody is greeted here
    ports = [Port([entry]) for entry in entries]
    clock = WallClock(ports)
    boards = tuple(Board(port, clock) for port in ports)
    tables = [{"node": board.node, "joint": board.joint, "url": board.port.url} for board in boards]
    reports: list[tuple[float, float, int, int]] = []

    def note(progress: Progress) -> None:
        received = sum(port.received for port in ports)
        reports.append((time.monotonic(), time.process_time(), progress.samples, received))

    try:
        provenance = {"robot": ROBOT, "clock": clock.name, "board": tables}
        with Recorder(directory, provenance) as recorder, SafeInterrupt() as interrupt, old_objects_set_aside():
            robot = load_robot(ROBOT)
            # None of these boards was asked for its registers: their defaults are as much work as any.
            facts = Facts({name: register.default for name, register in BY_NAME.items()})
            twice = _Robot(robot.drives * BENCHES, robot.joints * BENCHES)
            bench: Any = _Boards(boards, clock, (facts,) * len(boards), twice)
            with _looked_at(bench, look_on):
                duration_us = round(1e6 * MOTION_S)
                playback = _Playback(bench, recorder, note, interrupt, duration_us=duration_us)
                playback.peaks = Peaks(bench.robot, bench.facts)
                for index, board in enumerate(boards):
                    board.listen(recorder.chunk)
                    board.on_data = partial(playback._note, index) if peaks else partial(_count, playback)
                playback.watch()
    except BoardSilent as error:  # a player has nothing to be silent about
        raise BenchmarkFailed(
            f"{error}: other programs kept the boards' player, or this process, from the processor, so nothing was "
            f"measured; run it again when they have ended"
        ) from error
    finally:
        for port in ports:
            port.close()
    return _cost(np.array(reports), len(boards), recorder.tally.ledger())


def _count(playback: _Playback, frame: Frame) -> None:
    playback.samples += frame.body.count


def _cost(reports: Array, n_boards: int, ledger: Ledger) -> HostCost:
    """Between the reports a second after the first samples and a second before the last."""
    wall, cpu, samples, received = reports.T
    margin = SETTLED_S * 1000 * n_boards
    steady = (samples >= margin) & (samples <= samples[-1] - margin)
    wall, cpu, samples, received = (each[steady] for each in (wall, cpu, samples, received))
    seconds = float(wall[-1] - wall[0])
    return HostCost(
        seconds=seconds,
        cpu=float(cpu[-1] - cpu[0]) / seconds,
        cpu_parts=np.diff(cpu) / np.diff(wall),
        rate=float(samples[-1] - samples[0]) / seconds / n_boards,
        n_boards=n_boards,
        bytes_per_s=float(received[-1] - received[0]) / seconds,
        ledger=ledger,
    )


TICK_S = 0.001
LINE = 512  # bytes the line takes in a tick, as that of an emulated board
_ANSWERS = 0x40  # types from here on answer requests that nobody sends this time

Told = tuple[int, Frame]
"""When a board said something [µs], and what."""


class PlayedBoard:
    """One board on a pseudo-terminal; `late_us` later than it was recorded."""

    def __init__(self, node: int, told: Iterable[Told], late_us: int) -> None:
        """Open its port."""
        self._node = node
        self._script = deque((time_us + late_us, frame) for time_us, frame in told)
        self._sent = self._received = self._damaged = 0
        self._queue = bytearray()
        self._reader = FrameReader()
        self._line, self._client = pty.openpty()
        tty.setraw(self._client)
        os.set_blocking(self._line, False)
        self.path = os.ttyname(self._client)

    def fileno(self) -> int:
        """Descriptor that is readable when the host has written."""
        return self._line

    def hear(self, now_us: int) -> None:
        """Take what the host has sent, and answer its PINGs."""
        for chunk in self._reader.feed(os.read(self._line, 4096)):
            request = chunk.content
            if not isinstance(request, Frame):
                self._damaged += 1
                continue
            self._received += 1
            if request.type is MessageType.PING:
                pong = {"nonce": request.body.nonce, "tick": now_us // 1000}
                self._say(MessageType.PONG, now_us, BODIES[MessageType.PONG].build(pong))

    def speak(self, now_us: int) -> None:
        """Say what is due, as much of it as the line takes in a tick."""
        while self._script and self._script[0][0] <= now_us:
            time_us, frame = self._script.popleft()
            self._say(frame.type, time_us, self._status(frame) if frame.type is MessageType.STATUS else frame.payload)
        if self._queue:
            with contextlib.suppress(BlockingIOError):  # the host is slow: the bytes wait
                del self._queue[: os.write(self._line, self._queue[:LINE])]

    def _status(self, frame: Frame) -> bytes:
        body = BODIES[MessageType.STATUS].parse(frame.payload)
        body.frames_sent, body.frames_received, body.bad_frames = self._sent, self._received, self._damaged
        return BODIES[MessageType.STATUS].build(body)

    def _say(self, kind: MessageType, time_us: int, body: bytes) -> None:
        self._queue += encode_frame(kind, self._node, self._sent, time_us, payload=body)
        self._sent += 1


def read_script(run: Path) -> dict[int, list[Told]]:
    """Read the frames that each board of a recorded run sent unasked, from the run's first record on."""
    script: dict[int, list[Told]] = {}
    began: int | None = None
    for entry in scan_records((run / FRAMES).read_bytes()):
        if not isinstance(entry, Record) or entry.kind is not RecordKind.FRAME:
            continue
        began = entry.time_us if began is None else began
        frame = decode_frame(entry.payload)
        if frame.type < _ANSWERS:
            script.setdefault(frame.node, []).append((entry.time_us - began, frame))
    return script


def play(boards: list[PlayedBoard]) -> None:
    """Wait for the host's first byte, and play until standard input ends."""
    sources = [sys.stdin, *boards]
    select.select(sources, [], [])
    began = due = time.monotonic()
    while True:
        ready = select.select(sources, [], [], max(0.0, due - time.monotonic()))[0]
        if sys.stdin in ready:
            return
        now_us = round(1e6 * (time.monotonic() - began))
        for board in boards:
            if board in ready:
                board.hear(now_us)
        if time.monotonic() >= due:
            for board in boards:
                board.speak(now_us)
            due += TICK_S


def main(runs: list[Path]) -> None:
    """Play runs."""
    told = [board for run in runs for _, board in sorted(read_script(run).items())]
    # No two blocks end together: the host is woken for each.
    late_us = [64_000 * index // len(told) for index in range(len(told))]
    boards = [PlayedBoard(node, *each) for node, each in enumerate(zip(told, late_us, strict=True), start=1)]
    print(json.dumps({node: board.path for node, board in enumerate(boards, start=1)}), flush=True)
    play(boards)


SAMPLES_PER_S = 10e6
TIMES_CONSTRUCT = 100.0
CPU_PERCENT = 3.0
# Boards played slower than this would make the host look cheaper than it is.
RATE_HZ = 995.0


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Both measurements, one after the other; whatever else the machine does, they suffer from."""
    console.say("decoding what 6 boards send in a minute, in turns with construct")
    speeds = race(options.seed)
    ours, plain, compiled = speeds
    console.say(speed_table(speeds))
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        folder = Path(name)
        console.say("recording 12 emulated boards (MicroPython) in lockstep")
        runs = record_boards(folder, options.seed)
        console.say("playing them in real time from another process, and recording them as a bench")
        with played(runs) as entries:
            cost = measure(entries, folder / "run")
        with played(runs) as entries:
            with_peaks = measure(entries, folder / "run-with-peaks", peaks=True)
    console.say(cost_table(cost, with_peaks))
    checks = make_checks(speeds, cost)
    fields: dict[str, Any] = {
        "decode": {speed.name: speed_fields(speed) for speed in speeds},
        "times_construct": ours.best / plain.best,
        "times_construct_compiled": ours.best / compiled.best,
        "host": {
            "boards": cost.n_boards,
            "boards_are": "recorded in lockstep, played in real time by another process",
            "rate_Hz": cost.rate,
            "seconds": cost.seconds,
            "bytes_per_s": cost.bytes_per_s,
            "cpu_percent": 100.0 * cost.cpu,
            "cpu_percent_in_quarters_of_a_second": 100.0 * cost.cpu_parts,
            "cpu_percent_with_progress_line": 100.0 * with_peaks.cpu,
            "ledger": cost.ledger.to_dict(),
        },
        "machine": machine(),
    }
    return Result("bench wire", options.seed, checks, fields)


def make_checks(speeds: tuple[Speed, ...], cost: HostCost) -> tuple[Check, ...]:
    """Checks against the limits; construct counts as it parses without being compiled, as it is used."""
    ours, plain, _ = speeds
    return (
        Check("decoded samples", ours.best, ">=", SAMPLES_PER_S, "/s"),
        Check("times as fast as construct", ours.best / plain.best, ">=", TIMES_CONSTRUCT),
        Check("boards", cost.n_boards, ">=", 12),
        Check("samples of each board", cost.rate, ">=", RATE_HZ, "/s"),
        Check("measured for", cost.seconds, ">=", 10.0, "s"),
        Check("one core used by the host", 100.0 * cost.cpu, "<=", CPU_PERCENT, "%"),
        Check("ledgers that do not close", sum(not board.closes for board in cost.ledger.boards), "==", 0),
        Check("samples lost", cost.ledger.samples_lost, "==", 0),
    )


def cost_table(cost: HostCost, with_peaks: HostCost) -> str:
    """Table of received data and its cost."""
    parts = 100.0 * cost.cpu_parts
    rows = [
        ["boards", f"{cost.n_boards}"],
        ["samples of each board [/s]", f"{cost.rate:.1f}"],
        ["received [kB/s]", f"{cost.bytes_per_s / 1e3:.1f}"],
        ["measured [s]", f"{cost.seconds:.1f}"],
        ["host, of one core [%]", f"{100.0 * cost.cpu:.2f}"],
        ["  in quarters of a second", f"{parts.min():.2f} … {parts.max():.2f}"],
        ["  with a progress line's peaks", f"{100.0 * with_peaks.cpu:.2f}"],
    ]
    return table(("12 boards at 1 kHz", ""), rows) + f"\nledger: {cost.ledger.verdict}"


if __name__ == "__main__":
    main([Path(run) for run in sys.argv[1:]])
