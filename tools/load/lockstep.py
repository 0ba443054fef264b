"""Many boards, and fast ticks, in virtual time: nothing may be lost, however long the machine takes for it."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.link_helpers import Wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, Exchange, Ledger, ProgressCallback, Trajectory, open_bench
from jointbench.checks import Check
from jointbench.cli.console import Console
from jointbench.cli.run import progress_line
from jointbench.recording import Recorder
from jointbench.testing.requirements import Requirements
from tools.machine import parent_of, processor_seconds, resident_bytes

HIL_TESTS = Path(__file__).resolve().parents[2] / "hil_tests"
COBOT6 = HIL_TESTS / "benches" / "cobot6.toml"


def write_variation(folder: Path, **top: int) -> Path:
    """Write the bench file of six boards with further keys, such as `tick_us` and `sample_every`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = COBOT6.read_text(encoding="utf-8")
    plant = re.search(r'(?m)^plant = "(.*)"$', text)
    assert plant is not None  # a bench file has one
    keys = "".join(f"{key} = {value}\n" for key, value in top.items())
    text = text.replace(plant[0], f"plant = {json.dumps(str((COBOT6.parent / plant[1]).resolve()))}\n{keys}")
    path = folder / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return path


_APART_MM = 1500
_PLANT = HIL_TESTS / "virtual_bench" / "plants" / "cobot6.toml"


def write_arms(folder: Path, arms: int) -> Path:
    """Write robot, plant and bench file of so many arms side by side, and return the bench file.

    Joints are j1 … j6 of the first arm, j7 … j12 of the second, and so on; each has a board with the same number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    robot = (resources.files("jointbench.model") / "library" / "cobot6.toml").read_text(encoding="utf-8")
    robot = robot.partition("\n[[capsules]]")[0]  # arms that far apart do not meet
    plant, bench = _PLANT.read_text(encoding="utf-8"), COBOT6.read_text(encoding="utf-8")
    (folder / "robot.toml").write_text(_repeated(robot, "[[joints]]", arms), encoding="utf-8")
    (folder / "plant.toml").write_text(_repeated(plant, "[[joints]]", arms), encoding="utf-8")
    bench = bench.replace('robot = "cobot6"', 'robot = "robot.toml"')
    bench = re.sub(r'^plant = ".*"$', 'plant = "plant.toml"', bench, flags=re.MULTILINE)
    path = folder / "bench.toml"
    path.write_text(_repeated(bench, "[[board]]", arms), encoding="utf-8")
    return path


def _repeated(text: str, table: str, arms: int) -> str:
    """A file's head once, and its tables as often as there are arms, numbered on."""
    head, first, rest = text.partition(table)
    per_arm = text.count(table)
    return head + "\n".join(_numbered_on(first + rest, arm, per_arm) for arm in range(arms))


def _numbered_on(text: str, arm: int, per_arm: int) -> str:
    def number(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) + arm * per_arm}{match[3]}"

    text = re.sub(r'(?m)^((?:name|joint) = "j)(\d+)(")', number, text)
    text = re.sub(r"(?m)^(node = )(\d+)()", number, text)
    text = re.sub(r'(?m)^(name = ")(?!j\d+")(\w+)(")', rf"\g<1>\g<2>_{arm + 1}\g<3>", text)
    return text.replace("a_mm = 0\n", f'a_mm = {arm * _APART_MM}\nparent = "base"\n', 1)


_WORD = 1 << 32


@dataclass(frozen=True)
class Share:
    """Something of host, bench and boards each: cores that they kept busy, or bytes that they hold."""

    host: float
    bench: float
    boards: float

    def to_dict(self) -> dict[str, float]:
        """The shares by who has them."""
        return {"host": self.host, "bench": self.bench, "boards": self.boards}


class Processes:
    """The processes of an emulated bench: this one is the host, the bench's started those of the boards."""

    def __init__(self, live: Path) -> None:
        """Find them by the live bench file."""
        entries = tomllib.loads(live.read_text(encoding="utf-8"))["board"]
        self._boards = [int(entry["pid"]) for entry in entries]
        self._bench = parent_of(self._boards[0])

    def processor_seconds(self) -> Share:
        """Processor time used so far [s]."""
        boards = sum(processor_seconds(pid) for pid in self._boards)
        return Share(processor_seconds(os.getpid()), processor_seconds(self._bench), boards)

    def resident_bytes(self) -> Share:
        """Memory that is in RAM."""
        boards = sum(resident_bytes(pid) for pid in self._boards)
        return Share(resident_bytes(os.getpid()), resident_bytes(self._bench), boards)


@dataclass(frozen=True)
class Session:
    """A motion that was played and recorded.

    Attributes:
        rate: ticks of the slowest board in a second of the target's time [1/s].
        target_s, wall_s: how long it took, by the target's time and by the wall clock.
        ledger: of the recording.
        cores: that host, bench and boards kept busy.
    """

    rate: float
    target_s: float
    wall_s: float
    ledger: Ledger
    cores: Share

    @property
    def open_ledgers(self) -> int:
        """Boards whose ledgers do not close."""
        return sum(not board.closes for board in self.ledger.boards)

    def to_dict(self) -> dict[str, Any]:
        """The session as plain values."""
        return {
            "rate_Hz": self.rate,
            "target_s": self.target_s,
            "wall_s": self.wall_s,
            "samples_received": self.ledger.samples_received,
            "lost": lost_by_cause(self.ledger),
            "open_ledgers": self.open_ledgers,
            "cores": self.cores.to_dict(),
        }


def play(
    bench: Bench,
    motion: Trajectory,
    repeats: int,
    directory: Path,
    processes: Processes,
    progress: ProgressCallback | None = None,
    *,
    keep: bool = False,
) -> Session:
    """Play and record a motion on a configured bench; the recording stays where something was lost, or told to `keep`.

    Raises:
        JointbenchError: as `Bench.play`.
    """
    bench.move_to(motion.evaluate(np.zeros(1))[0][0])
    pings, spent, began = _ping(bench), processes.processor_seconds(), time.monotonic()
    start_us = bench.clock.now_us()
    ledger = bench.play(motion, repeats, Recorder(directory, bench.provenance(repeats=repeats)), progress)
    assert ledger is not None  # a recording has one
    wall_s, used = time.monotonic() - began, processes.processor_seconds()
    target_s = 1e-6 * (bench.clock.now_us() - start_us)
    rates = [_rate(before, after) for before, after in zip(pings, _ping(bench), strict=True)]
    cores = Share(*[(after - before) / wall_s for before, after in zip(_parts(spent), _parts(used), strict=True)])
    session = Session(min(rates), target_s, wall_s, ledger, cores)
    if not keep and ledger.closes and not ledger.samples_lost:
        shutil.rmtree(directory)
    return session


def lost_by_cause(ledger: Ledger) -> dict[str, int]:
    """Samples that all boards lost: damaged or gone on the line, dropped by the board, of ticks it missed, unknown."""
    boards = ledger.boards
    return {
        "damaged": sum(board.crc_lost for board in boards),
        "vanished": sum(board.link_lost for board in boards),
        "dropped": sum(board.board_dropped for board in boards),
        "ticks_missed": sum(board.ticks_missed for board in boards),
        "unexplained": sum(abs(board.unexplained) for board in boards),
    }


def _ping(bench: Bench) -> list[Exchange]:
    return [board.ping() for board in bench.all_boards]


def _rate(before: Exchange, after: Exchange) -> float:
    """Ticks a second between two exchanges; where in its tick a board answers is the same for both."""
    return ((after.tick - before.tick) % _WORD) / (1e-6 * (after.received_us - before.received_us))


def _parts(share: Share) -> Sequence[float]:
    return share.host, share.bench, share.boards


PERIOD_S = 4.096
WAY_RAD = 0.2


@dataclass(frozen=True)
class Load:
    """A load that is to be carried: `boards` at `rate` [Hz], on the bench that `write` writes into a folder."""

    name: str
    boards: int
    rate: float
    write: Callable[[Path], Path]


LOADS = (
    Load("24 boards at 1 kHz", 24, 1000.0, lambda folder: write_arms(folder, 4)),
    Load("6 boards at 4 kHz", 6, 4000.0, lambda folder: write_variation(folder, tick_us=250)),
)


@dataclass(frozen=True)
class Carried:
    """A load and how it was carried: how many boards there were, and their session."""

    load: Load
    boards: int
    session: Session

    def to_dict(self) -> dict[str, Any]:
        """The carried load as plain values."""
        return {"name": self.load.name, "boards": self.boards, **self.session.to_dict()}


def carry_loads(out: Path, seconds: float, seed: int, console: Console) -> list[Carried]:
    """Play a motion of at least so many seconds of virtual time under each load."""
    return [_carry(load, out / f"{load.boards}_boards", seconds, seed, console) for load in LOADS]


def _carry(load: Load, out: Path, seconds: float, seed: int, console: Console) -> Carried:
    console.say(f"lockstep: {load.name}")
    live_bench = virtual_bench(load.write(out), "ideal", seed, out=out / "sim", board="unix:")
    with live_bench as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        repeats = math.ceil(seconds / PERIOD_S)
        session = play(bench, wave(bench), repeats, out / "run", Processes(live), progress_line(console, load.name))
        carried = Carried(load, len(bench.boards), session)
    console.say(
        f"  {session.rate:.1f} ticks/s for {session.target_s:.1f} s in {session.wall_s:.1f} s, {session.ledger.verdict}"
    )
    return carried


def wave(bench: Bench) -> Wave:
    """There and back with every joint, from home, in about PERIOD_S: in a whole number of the boards' knot steps."""
    step = bench.facts[0].tick_period * bench.facts[0].knot_ticks
    period = step * round(PERIOD_S / step)
    return Wave(np.array(bench.robot.home), np.full(bench.robot.n_joints, WAY_RAD), period)


def checks(carried: list[Carried], requirements: Requirements) -> list[Check]:
    """That both loads were there, and nothing of them was lost."""
    by_name = {each.load.name: each for each in carried}
    many, fast = (by_name[load.name] for load in LOADS)
    return [
        requirements["load.many_boards"].check(many.boards),
        requirements["load.many_rate"].check(many.session.rate),
        requirements["load.fast_boards"].check(fast.boards),
        requirements["load.fast_rate"].check(fast.session.rate),
        requirements["load.lost"].check(sum(each.session.ledger.samples_lost for each in carried)),
        requirements["load.unaccounted"].check(sum(each.session.open_ledgers for each in carried)),
    ]
