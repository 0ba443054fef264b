"""Bench files: the one a person writes, and the live one a running bench writes for its clients."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil_tests.virtual_bench.errors import BenchError, BenchFileError
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file, whole
from jointbench.errors import JointbenchError, RobotFileError
from jointbench.robot import Robot, load_robot
from jointbench.robot.table import Table

VERSION = 1
EMULATED = "unix:"
BAUD = 921600  # what a real board's UART is set to; a pseudo-terminal has no speed
_HIGHEST_NODE = 254  # 255 addresses every board


@dataclass(frozen=True)
class BoardEntry:
    """One board of a bench file; `program` replaces the firmware, `joint_index` is the joint's place in the robot."""

    node: int
    joint: str
    joint_index: int
    program: Path | None


@dataclass(frozen=True)
class BenchFile:
    """A bench of emulated boards. `robot_reference` is the robot as the file names it, absolute when it is a path."""

    name: str
    robot: Robot
    robot_reference: str
    plant_path: Path
    plant: PlantFile
    boards: tuple[BoardEntry, ...]
    servo: Mapping[str, Mapping[str, float]]


def read_bench_file(path: Path) -> BenchFile:
    """Read a bench file with its robot and plant.

    Raises:
        BenchFileError: it cannot be read, an entry is wrong, or the robot or plant it names is.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        return _bench(Table(values, path.name), path.parent, values.get("servo", {}))
    except OSError as error:
        raise BenchFileError(f"bench file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BenchFileError(f"bench file {path} is not TOML: {error}") from error
    except RobotFileError as error:
        raise BenchFileError(str(error)) from error


def _bench(table: Table, folder: Path, servo: Mapping[str, Mapping[str, float]]) -> BenchFile:
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
    table.has("servo")  # the client's settings, handed on as they are
    table.finish()
    return BenchFile(name, robot, reference, plant_path, read_plant_file(plant_path, robot), boards, servo)


def _board(table: Table, robot: Robot, folder: Path) -> BoardEntry:
    node = whole(table, "node", 1)
    if node > _HIGHEST_NODE:
        table.fault(f"node = {node} must be from 1 to {_HIGHEST_NODE}")
    table.where += f" (node {node})"
    joint = table.text("joint")
    if joint not in robot.joint_names:
        table.fault(f"joint = {joint!r}: robot {robot.name!r} has {', '.join(robot.joint_names)}")
    url = table.text("url")
    if url != EMULATED:
        table.fault(f"url = {url!r} is not emulated; the virtual bench starts {EMULATED!r} boards, clients open others")
    program = (folder / table.text("program")).resolve() if table.has("program") else None
    table.finish()
    return BoardEntry(node, joint, robot.joint_index(joint), program)


def write_live_file(
    path: Path, bench: BenchFile, settings: Mapping[str, str | int], ports: Mapping[int, str], pids: Mapping[int, int]
) -> None:
    """Write the live bench file by rename, so that a client that sees it sees it whole.

    Args:
        path: where clients look for it.
        bench: what runs.
        settings: clock, plant, seed and the like, written at the top.
        ports, pids: of each board by node.

    Raises:
        BenchError: the file cannot be written.
    """
    top = {"version": VERSION, "name": bench.name, "robot": bench.robot_reference, **settings}
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
    for board in bench.boards:
        entry = {"node": board.node, "joint": board.joint, "url": ports[board.node], "baud": BAUD}
        lines += ["", "[[board]]"] + [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        lines += [f"pid = {pids[board.node]}"]
    for joint, values in bench.servo.items():
        lines += ["", f"[servo.{json.dumps(joint)}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    draft = path.with_suffix(".draft")
    try:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise BenchError(f"live bench file {path} cannot be written: {error.strerror}") from error
