"""What a bench of twelve boards at 1 kHz costs the host: ports, decoding, checks, ledger and recording.

The boards are two robots' worth of real board programs, recorded in lockstep and played again in real time by another
process: what the host costs must not depend on how many interpreters the same machine can run beside it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.errors import BoardSilent
from jointbench.excitation import random_excitation
from jointbench.link import Progress, open_bench
from jointbench.link.bench_file import BoardEntry
from jointbench.link.board import Board
from jointbench.link.clock import Clock, WallClock
from jointbench.link.feed_server import Feed
from jointbench.link.identity import Facts
from jointbench.link.ledger import Ledger
from jointbench.link.line import Line, Port
from jointbench.link.playback import _Playback, old_objects_set_aside
from jointbench.recording import Recorder, record
from jointbench.robot import Drive, Joint, load_robot
from jointbench.stopping import SafeInterrupt
from jointwire import BY_NAME, Frame
from tools.wire_bench.decoding import decode
from tools.wire_bench.errors import MachineTooBusy, PlayerFailed
from tools.wire_bench.stream import run_stream

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
    """What the host's process used of the processor, kernel time included, while all boards streamed.

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
    command = [sys.executable, "-P", "-m", "tools.wire_bench.player", *map(str, runs)]
    player = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert player.stdin is not None
    assert player.stdout is not None
    try:
        line = player.stdout.readline()
        if not line:
            raise PlayerFailed(f"the player of {', '.join(map(str, runs))} ended with status {player.wait()}")
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

    @property
    def all_boards(self) -> tuple[Board, ...]:
        """There are none of feet."""
        return self.boards


@contextlib.contextmanager
def _feed_of(bench: Any, look_on: LookOn | None) -> Iterator[Feed | None]:
    if look_on is None:
        yield None
        return
    with contextlib.closing(Feed(bench)) as feed, look_on(feed.server.path):
        yield feed


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
        MachineTooBusy: the boards fell silent, or this process was kept from hearing them.
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
            with _feed_of(bench, look_on) as feed:
                duration_us = round(1e6 * MOTION_S)
                playback = _Playback(bench, recorder, note, interrupt, feed=feed, duration_us=duration_us)
                for index, board in enumerate(boards):
                    board.listen(recorder.chunk)
                    board.on_data = partial(playback._note, index) if peaks else partial(_count, playback)
                playback.watch()
    except BoardSilent as error:  # a player has nothing to be silent about
        raise MachineTooBusy(
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
