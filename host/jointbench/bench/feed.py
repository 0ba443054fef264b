"""The live feed of a bench: the private folder in which programs of one user meet, and the lines of its boards' state.

Only their owner may look into the folder. A line has the newest state, each quantity in SI and at its joint.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointbench.bench.bench_file import BenchFile, read_bench_file
from jointbench.bench.board import Board
from jointbench.bench.fault import is_fault_url, parse_fault_url
from jointbench.bench.identity import FOOT_CHANNELS, Facts
from jointbench.bench.port_lock import lock_facts, this_program
from jointbench.bench.sync import Exchange, board_clock
from jointbench.bench.tally import Counts
from jointbench.errors import FeedError
from jointbench.model import Robot
from jointwire import ChannelKind, Frame, FrameError, State, decode_samples, divider

if TYPE_CHECKING:
    from jointbench.bench.bench import Bench
    from jointbench.bench.feed_server import Activity


VERSION = 1
PATIENCE_S = 5.0  # a feed comes 25 times a second
_CONNECTING_S = 30.0  # a watcher greets its boards before it serves their feed: twelve on a busy computer take a while
_LOOK_S = 0.05


def private_folder() -> Path:
    """The folder, made if need be: `jointbench` in $XDG_RUNTIME_DIR, else `jointbench-UID` among temporary files.

    Raises:
        FeedError: it cannot be made, or what is there is another user's or open to others.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own_name, shared_name = _names()
    folder = Path(runtime) / own_name if runtime else Path(tempfile.gettempdir()) / shared_name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FeedError(f"the folder {folder} cannot be made: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not is_private(folder):
        raise FeedError(
            f"{folder} is another user's, or open to others; remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    return folder


def is_feed_socket(path: Path) -> bool:
    """Return whether a program of this user may serve a feed at a path, by its name and its folder."""
    return path.suffix == ".sock" and path.parent.name in _names() and is_private(path.parent)


def is_private(folder: Path) -> bool:
    """Return whether it is a folder of this user's own, no link, that nobody else may enter."""
    try:
        about = folder.lstat()
    except (OSError, ValueError):  # a name that no file can have
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _names() -> tuple[str, str]:
    """Names of the folder: in one that is the user's own, and among those of all users."""
    return "jointbench", f"jointbench-{os.geteuid()}"


class FeedClient:
    """A connection to the feed of a bench; any thread may use it.

    Attributes:
        about: its first line.
    """

    def __init__(self, path: Path) -> None:
        """Connect, and read the first line.

        Raises:
            OSError: nobody serves a feed there.
            FeedError: it is no feed, one of another version, or has no room.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE_S)
        self._pending = b""
        try:
            self._socket.connect(str(path))
            self.about: dict[str, Any] = self._line()
            self._check_about()
        except BaseException:
            self._socket.close()
            raise

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every line as it comes, `about` first; ends when the feed does, after a "bye" if that can be said."""
        line = self.about
        while line:
            yield line
            try:
                line = self._line() if line["kind"] != "bye" else {}
            except TimeoutError:
                line = {"kind": "bye", "why": f"{self._holder} has said nothing for {PATIENCE_S:g} s: it hangs"}
            except FeedError as error:
                line = {"kind": "bye", "why": str(error)}
            except OSError:
                return

    def ask(self, what: str) -> None:
        """Ask the holder for "stop" or "release"; its answer is one of the lines.

        Raises:
            FeedError: the holder is gone.
        """
        try:
            self._socket.sendall(json.dumps({"ask": what, "who": this_program()}).encode() + b"\n")
        except OSError as error:
            raise FeedError(f"{self._holder} cannot be asked to {what}: it is gone") from error

    def close(self) -> None:
        """Hang up; `lines` ends in whatever thread it runs."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    @property
    def _holder(self) -> str:
        return f"{self.about.get('program')} (process {self.about.get('pid')})"

    def _check_about(self) -> None:
        """See that the first line is one that this program knows how to go on from."""
        if not self.about:
            raise ConnectionError("it hung up")
        if self.about["kind"] == "bye":
            raise FeedError(f"the feed of this bench cannot be read: {self.about.get('why')}")
        if self.about.get("version") != VERSION:
            raise FeedError(
                f"{self.about.get('program')} serves a feed of version {self.about.get('version')}, this program reads "
                f"{VERSION}; use the same release of jointbench for both"
            )

    def _line(self) -> dict[str, Any]:
        """The next line, empty at the end.

        Raises:
            FeedError: it is no line of a feed.
        """
        while b"\n" not in self._pending:
            data = self._socket.recv(65536)
            if not data:
                return {}
            self._pending += data
        text, _, self._pending = self._pending.partition(b"\n")
        with contextlib.suppress(ValueError, RecursionError):
            line: Any = json.loads(text)
            if isinstance(line, dict) and "kind" in line:
                return cast(dict[str, Any], line)
        raise FeedError(f"what serves a feed says what is no line of one: {text[:40]!r}")

    def __enter__(self) -> FeedClient:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self.close()


def open_feed(bench_file: str | Path | BenchFile) -> FeedClient | None:
    """The feed of the program that holds this bench; None where no program of this user does.

    Args:
        bench_file: the bench, or the path of its file.

    Raises:
        FileError: the file is wrong.
        FeedError: it cannot be read, such as one of another version.
    """
    file = bench_file if isinstance(bench_file, BenchFile) else read_bench_file(bench_file)
    for facts in _locks(file):
        feed: Any = facts.get("feed")
        path = Path(str(feed["path"])) if isinstance(feed, dict) and "path" in feed else None
        if path is None or not is_feed_socket(path):  # anybody may write into a lock that nobody holds
            continue
        try:
            return FeedClient(path)
        except FeedError:
            raise
        except OSError:  # what a program that is gone has left
            continue
    return None


def release_watcher(file: BenchFile) -> bool:
    """Have a program that only watches this bench give its ports back, and wait until it has.

    Returns:
        Whether there was one, and it has.
    """
    deadline = time.monotonic() + _CONNECTING_S
    try:
        while (client := open_feed(file)) is None:
            if not any(_will_watch(facts) for facts in _locks(file)) or time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        with client:
            client.ask("release")
            for line in client.lines():
                if line["kind"] in ("released", "busy", "bye") or time.monotonic() > deadline:
                    return line["kind"] == "released"
    except FeedError:
        pass
    return False


def _locks(file: BenchFile) -> list[dict[str, Any]]:
    """Facts in the locks of the bench's ports, whoever has them or had them."""
    urls = dict.fromkeys(board.url for board in file.boards)
    return [lock_facts(parse_fault_url(url)[1] if is_fault_url(url) else url) for url in urls]


def _will_watch(facts: dict[str, Any]) -> bool:
    """Return whether these are the facts of a watcher that is there and serves no feed yet."""
    pid = facts.get("pid")
    if "feed" in facts or not facts.get("watching") or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True


_KELVIN = 273.15  # 0 °C [K]
_EXCHANGES = 512  # a minute of them while boards move: enough to tell a crystal's drift
_CLOCK_EVERY = 10  # states between two estimates of clocks, each of another board's
_HALF_WORD = 1 << 31
_UNKNOWN = {"position_rad": None, "velocity_rad_s": None, "torque_Nm": None}


class BenchView:
    """The boards of a connected bench, as they can be shown at any moment, by one thread that is not their owner's."""

    def __init__(self, bench: Bench) -> None:
        """Look at nothing yet."""
        self._bench = bench
        facts = bench.facts + bench.foot_facts
        self._boards = [_BoardView(board, fact) for board, fact in zip(bench.all_boards, facts, strict=True)]
        self._joints = _Joints(bench.robot)
        self._states = 0

    def boards(self) -> list[dict[str, Any]]:
        """Return what does not change of each board."""
        robot, n_joints = self._bench.robot, len(self._bench.boards)
        return [
            {
                "node": view.board.node,
                "joint": view.board.joint,
                "on_foot": index >= n_joints,
                "has": view.quantities(),
                "limits": _limits(robot, index, view.facts) if index < n_joints else {},
            }
            for index, view in enumerate(self._boards)
        ]

    def state(self, activity: Activity, counts: Mapping[int, Counts]) -> dict[str, Any]:
        """The line of this moment."""
        now_us = self._bench.clock.now_us()
        for view in self._boards:
            view.look()
        self._states += 1
        if self._states % _CLOCK_EVERY == 0:
            self._boards[self._states // _CLOCK_EVERY % len(self._boards)].estimate_clock()
        joints = self._joints.states(self._boards[: len(self._bench.boards)])
        elapsed = 0.0 if activity.start_us is None else (now_us - activity.start_us) * 1e-6
        return {
            "kind": "state",
            "time_us": now_us,
            "doing": activity.doing,
            "run": activity.run,
            "elapsed_s": round(min(max(elapsed, 0.0), activity.duration_us * 1e-6), 3),
            "duration_s": activity.duration_us * 1e-6,
            "boards": [
                view.line(now_us, joints[index] if index < len(joints) else _UNKNOWN, counts.get(view.board.node))
                for index, view in enumerate(self._boards)
            ],
        }


class _BoardView:
    """One board: its newest block, decoded once, and the PINGs that it has answered."""

    def __init__(self, board: Board, facts: Facts) -> None:
        self.board = board
        self._first_facts = facts
        self.position = self.velocity = self.current = None  # of the motor, without one of the joint
        self._frame: Frame | None = None
        self._rest: dict[str, Any] = dict.fromkeys(("force_N", "temperature_C", "voltage_V"))
        self._pong: tuple[Frame, int] | None = None
        self._exchanges: deque[Exchange] = deque(maxlen=_EXCHANGES)
        self._clock: dict[str, float | None] = {"clock_offset_us": None, "clock_drift_ppm": None}

    @property
    def facts(self) -> Facts:
        """Its registers as its owner last read or wrote them."""
        return self.board.facts or self._first_facts

    def quantities(self) -> list[str]:
        """Names of what the board measures, in a state's words."""
        facts = self.facts
        position = ["position_rad", "velocity_rad_s"] if facts.has(facts.position_channel) else []
        current = ["current_A", "torque_Nm"] if facts.has_motor else []
        named = {"force_N": FOOT_CHANNELS[0], "temperature_C": "temperature", "voltage_V": "bus_voltage"}
        return position + current + [name for name, channel in named.items() if facts.has(channel)]

    def look(self) -> None:
        """Take note of what came since the last look."""
        frame, pong = self.board.newest_data, self.board.newest_pong
        try:
            if frame is not None and frame is not self._frame:
                self._frame = frame
                self._decode(frame)
            if pong is not None and pong is not self._pong:
                self._pong = pong
                self._add(Exchange.from_pong(*pong))
        except FrameError:  # a faulty board's: the recording counts it
            pass

    def estimate_clock(self) -> None:
        """Estimate its clock on the host's, by the answers to PINGs of the last minute."""
        if self._exchanges:
            clock = board_clock(tuple(self._exchanges), self.facts.tick_period * 1e6)
            drift = clock.drift_ppm if clock.drift_ppm else None
            self._clock = {"clock_offset_us": round(clock.offset_us, 1), "clock_drift_ppm": _short(drift)}

    def line(self, now_us: int, joint: Mapping[str, float | None], counts: Counts | None) -> dict[str, Any]:
        """The board's part of a state; `joint` is what only all boards together tell."""
        board, lost = self.board, self.board.why_lost
        state = board.state
        fault = board.fault_error().text if state is State.FAULT else None
        return {
            "node": board.node,
            "joint": board.joint,
            "state": "LOST" if lost else state.name if state is not None else "UNKNOWN",
            "fault": lost or fault,
            **joint,
            "current_A": _short(self.current),
            **self._rest,
            **(asdict(counts) if counts else dict.fromkeys(("samples", "samples_lost", "frames_bad"))),
            **self._clock,
            "age_s": round((now_us - board.last_frame_us) * 1e-6, 3),
        }

    def _decode(self, frame: Frame) -> None:
        block, facts = decode_samples(frame), self.facts
        newest = {name: int(column[-1]) for name, column in block.columns.items() if len(column)}
        positions = block.columns.get(facts.position_channel, np.empty(0))
        if len(positions):
            turn = 2.0 * np.pi / facts.position_counts
            kind = ChannelKind.MOTOR_ENCODER if facts.has_motor else ChannelKind.LINK_ENCODER
            span = (len(positions) - 1) * divider(block.dividers, kind) * facts.tick_period
            self.position = float(positions[-1]) * turn
            if span:
                self.velocity = float(positions[-1] - positions[0]) * turn / span
        if facts.has_motor and "motor_current" in newest:
            self.current = _scaled(newest["motor_current"], facts, "current")
        if "temperature" in newest:
            self._rest["temperature_C"] = _short(_scaled(newest["temperature"], facts, "temperature") - _KELVIN)
        if "bus_voltage" in newest:
            self._rest["voltage_V"] = _short(newest["bus_voltage"] * facts.si("voltage.scale"))
        if all(name in newest for name in FOOT_CHANNELS):
            zeros = (facts.registers[f"force.zero_{k}"] for k in range(1, len(FOOT_CHANNELS) + 1))
            counts = [newest[name] - zero for name, zero in zip(FOOT_CHANNELS, zeros, strict=True)]
            self._rest["force_N"] = [_short(count * facts.si("force.scale")) for count in counts]

    def _add(self, exchange: Exchange) -> None:
        """Keep an exchange; a board whose ticks fall has started again, and its clock with it."""
        if self._exchanges and (exchange.tick - self._exchanges[-1].tick) % (2 * _HALF_WORD) >= _HALF_WORD:
            self._exchanges.clear()
        self._exchanges.append(exchange)


class _Joints:
    """Joints from their motors: of joints that share motors each one needs several."""

    def __init__(self, robot: Robot) -> None:
        self._to_motors = robot.transmission_matrix
        self._to_joints = np.linalg.inv(self._to_motors)
        self._constants = [drive.torque_constant for drive in robot.drives]

    def states(self, views: list[_BoardView]) -> list[dict[str, float | None]]:
        """Position, velocity and torque of each joint, None where a board that it takes has not said its part."""
        torques = [
            None if view.current is None else view.current * constant
            for view, constant in zip(views, self._constants, strict=True)
        ]
        positions, velocities = [view.position for view in views], [view.velocity for view in views]
        return [
            {
                "position_rad": _sum(self._to_joints[joint], positions),
                "velocity_rad_s": _sum(self._to_joints[joint], velocities),
                "torque_Nm": _sum(self._to_motors[:, joint], torques),
            }
            for joint in range(len(views))
        ]


def _sum(weights: Any, values: list[float | None]) -> float | None:
    total = 0.0
    for weight, value in zip(weights, values, strict=True):
        if weight:
            if value is None:
                return None
            total += float(weight) * value
    return _short(total)


def _scaled(count: int, facts: Facts, quantity: str) -> float:
    return (count - facts.registers[f"{quantity}.zero"]) * facts.si(f"{quantity}.scale")


def _limits(robot: Robot, index: int, facts: Facts) -> dict[str, Any]:
    joint = robot.joints[index]
    limits: dict[str, Any] = {"position_rad": list(joint.position_limits), "velocity_rad_s": joint.velocity_limit}
    return limits | ({"current_A": facts.si("limit.current")} if facts.has_motor else {})


def _short(value: float | None) -> float | None:
    """Seven digits: more than any of this is known to, and half as long to send."""
    return None if value is None else float(f"{value:.7g}")
