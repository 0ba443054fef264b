"""Bench files: the one a person writes, and the live one a running bench writes for its clients."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hil_tests.virtual_bench.board_clock import BoardClock
from hil_tests.virtual_bench.errors import BenchError, BenchFileError
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file, whole
from jointbench.errors import JointbenchError, RobotFileError
from jointbench.robot import Robot, load_robot
from jointbench.robot.table import Table

VERSION = 1
UNIX, QEMU = "unix:", "qemu:mps2-an385"
EMULATED = {UNIX: UNIX, QEMU: QEMU, "qemu:": QEMU}  # urls of boards: as they may be written, as they are called here
BAUD = 921600  # what a real board's UART is set to, and the speed of a shared line
_HIGHEST_NODE = 254  # 255 addresses every board
_LOWEST_BAUD = 1200
_LARGEST_DRIFT_PPM = 10_000.0  # a hundred crystals' worth
_LARGEST_OFFSET_S = 2**32 * TICK  # by then both counters of a board have wrapped
_LONGEST_DELAY_US = 1_000_000


@dataclass(frozen=True)
class BoardEntry:
    """One board of a bench file.

    Attributes:
        node, joint: its number on its line, and where it sits.
        url: what emulates it, UNIX or QEMU.
        joint_index: the joint's place in the robot.
        program: what runs instead of the firmware.
        line: name of the line it shares with the others that name it; None for a line of its own.
        baud: speed of its line; None for a line that is never the limit.
        clock: how its clock runs against true time.
    """

    node: int
    joint: str
    url: str
    joint_index: int
    program: Path | None
    line: str | None
    baud: int | None
    clock: BoardClock


@dataclass(frozen=True)
class LinkModel:
    """What all adapters and boards have in common on the way of a byte, in µs.

    Attributes:
        latency_us, jitter_us: a transfer through an adapter takes the first, and up to the second more.
        service_us: from a board's tick until it serves what it has received, and sends.
        sync_us: period of the pulses on the SYNC line; 0 where there are none.
    """

    latency_us: int
    jitter_us: int
    service_us: int
    sync_us: int


@dataclass(frozen=True)
class BenchFile:
    """A bench of emulated boards. `robot_reference` is the robot as the file names it, absolute when it is a path."""

    path: Path
    name: str
    robot: Robot
    robot_reference: str
    plant_path: Path
    plant: PlantFile
    boards: tuple[BoardEntry, ...]
    link: LinkModel
    servo: Mapping[str, Mapping[str, float]]

    @property
    def lines(self) -> list[tuple[BoardEntry, ...]]:
        """The boards of each serial line, in the order of the file."""
        lines: dict[int | str, tuple[BoardEntry, ...]] = {}
        for board in self.boards:
            name = board.line or board.node
            lines[name] = (*lines.get(name, ()), board)
        return list(lines.values())

    @property
    def common_ticks(self) -> bool:
        """Whether all boards count the same ticks, those of true time."""
        return all(board.clock == BoardClock() for board in self.boards)

    def with_boards_at(self, url: str) -> "BenchFile":
        """The same bench with every board on another emulator, a key of EMULATED."""
        return replace(self, boards=tuple(replace(board, url=EMULATED[url]) for board in self.boards))


def read_bench_file(path: Path) -> BenchFile:
    """Read a bench file with its robot and plant.

    Raises:
        BenchFileError: it cannot be read, an entry is wrong, or the robot or plant it names is.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        return _bench(Table(values, path.name), path.resolve(), values.get("servo", {}))
    except OSError as error:
        raise BenchFileError(f"bench file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BenchFileError(f"bench file {path} is not TOML: {error}") from error
    except RobotFileError as error:
        raise BenchFileError(str(error)) from error


def _bench(table: Table, path: Path, servo: Mapping[str, Mapping[str, float]]) -> BenchFile:
    folder = path.parent
    if whole(table, "version", 1) != VERSION:
        table.fault(f"version = {table.number('version'):g} is not known; this release reads version {VERSION}")
    reference = table.text("robot")
    if reference.endswith((".toml", ".urdf")):
        reference = str((folder / reference).resolve())
    try:
        robot = load_robot(reference)
    except JointbenchError as error:
        raise BenchFileError(f"{table.where}: {error}") from error
    plant_path = (folder / table.text("plant")).resolve()
    name = table.text("name")
    boards = tuple(_board(entry, robot, folder) for entry in table.tables("board"))
    if not boards:
        table.fault("a bench needs at least one table [[board]]")
    for kind, values in (("node", [str(board.node) for board in boards]), ("joint", [board.joint for board in boards])):
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            table.fault(f"{kind} {twice} has two boards; every board needs its own")
    for board in boards:
        other = next(other for other in boards if (other.line or other.node) == (board.line or board.node))
        if other.baud != board.baud:
            table.fault(f"line {board.line!r} has baud {other.baud} and {board.baud}; boards of a line share its speed")
    link = _link(table.table("link") if table.has("link") else Table({}, table.where))
    if table.has("servo"):
        _check_servo(table.table("servo"), servo)
    table.finish()
    return BenchFile(path, name, robot, reference, plant_path, read_plant_file(plant_path, robot), boards, link, servo)


def _board(table: Table, robot: Robot, folder: Path) -> BoardEntry:
    node = whole(table, "node", 1)
    if node > _HIGHEST_NODE:
        table.fault(f"node = {node} must be from 1 to {_HIGHEST_NODE}")
    table.where += f" (node {node})"
    joint = table.text("joint")
    if joint not in robot.joint_names:
        table.fault(f"joint = {joint!r}: robot {robot.name!r} has {', '.join(robot.joint_names)}")
    url = table.text("url")
    if url not in EMULATED:
        table.fault(
            f"url = {url!r} is not emulated; the virtual bench starts boards at {', '.join(map(repr, EMULATED))}, "
            "clients open others"
        )
    program = (folder / table.text("program")).resolve() if table.has("program") else None
    line = table.text("line") if table.has("line") else None
    if line == "":
        table.fault("line = '' must name the line that boards share; leave it out for a line of its own")
    baud = whole(table, "baud", _LOWEST_BAUD) if table.has("baud") else BAUD if line is not None else None
    clock = BoardClock(
        offset_us=round(1e6 * _within(table, "clock_offset_s", 0.0, _LARGEST_OFFSET_S)),
        drift_ppb=round(1e3 * _within(table, "clock_ppm", -_LARGEST_DRIFT_PPM, _LARGEST_DRIFT_PPM)),
    )
    table.finish()
    return BoardEntry(node, joint, EMULATED[url], robot.joint_index(joint), program, line, baud, clock)


def _check_servo(table: Table, servo: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse what is not numbers by joint; which of them there are is the client's matter."""
    for joint in servo:
        entry = table.table(joint)
        for setting in servo[joint]:
            entry.number(setting)


def _link(table: Table) -> LinkModel:
    model = LinkModel(
        latency_us=round(_within(table, "latency_us", 0.0, _LONGEST_DELAY_US)),
        jitter_us=round(_within(table, "jitter_us", 0.0, _LONGEST_DELAY_US)),
        service_us=round(_within(table, "service_us", 0.0, 1e6 * TICK)),
        sync_us=round(1e6 * _within(table, "sync_s", 0.0, 3600.0)),
    )
    if 0 < model.sync_us < 1e6 * TICK:
        table.fault(f"sync_s = {table.number('sync_s'):g} must be 0 for no pulses, or at least a tick of {TICK:g} s")
    table.finish()
    return model


def _within(table: Table, key: str, lowest: float, highest: float) -> float:
    value = table.number(key, 0.0)
    if not lowest <= value <= highest:
        table.fault(f"{key} = {value:g} must be from {lowest:g} to {highest:g}")
    return value


def write_live_file(
    path: Path, bench: BenchFile, settings: Mapping[str, str | int], ports: Mapping[int, str], pids: Mapping[int, int]
) -> None:
    """Write the live bench file by rename, so that a client that sees it sees it whole.

    Args:
        path: where clients look for it.
        bench: what runs.
        settings: clock, plant, seed and the like, written at the top beside what `bench` itself tells.
        ports, pids: of each board by node.

    Raises:
        BenchError: the file cannot be written.
    """
    top: dict[str, str | int] = {"version": VERSION, "name": bench.name, "robot": bench.robot_reference, **settings}
    top["common_ticks"] = bench.common_ticks
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
    for board in bench.boards:
        entry = {"node": board.node, "joint": board.joint, "url": ports[board.node], "baud": board.baud or BAUD}
        lines += ["", "[[board]]"] + [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        lines += [f"pid = {pids[board.node]}"]
        if board.url == UNIX:
            lines += [f"flash = {json.dumps(str(path.parent / 'boards' / board.joint))}"]
    for joint, values in bench.servo.items():
        lines += ["", f"[servo.{json.dumps(joint)}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    draft = path.with_suffix(".draft")
    try:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise BenchError(f"live bench file {path} cannot be written: {error.strerror}") from error
