"""Show the robots of the library and the serial ports of this machine, or the boards of a bench."""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serial.tools import list_ports

import jointbench
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import BoardError

if TYPE_CHECKING:
    from jointbench.bench import Board, BoardEntry, Clock, Connections

_LIBRARY = Path(jointbench.__file__).parent / "model" / "library"

VERB = "list"
EXAMPLE = "jointbench list bench.toml"


def library_descriptions() -> dict[str, str]:
    """The sentence of each robot that comes with the package, by name in alphabetical order."""
    files = sorted(_LIBRARY.glob("*.toml"))
    return {path.stem: str(tomllib.loads(path.read_text(encoding="utf-8"))["description"]) for path in files}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, or nothing."""
    parser.add_argument("bench", metavar="BENCH", nargs="?", help="a bench .toml: greet each of its boards")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Names with one line each, or each board's word; exit code 1 when a board has a trouble of its own."""
    if options.bench is None:
        return _list_library(console)
    return _list_boards(options.bench, console)


def _list_library(console: Console) -> Result:
    robots = library_descriptions()
    ports = {port.device: str(port.description) for port in sorted(list_ports.comports())}
    console.say("robots of the library:")
    for name, description in robots.items():
        console.say(f"  {name:12} {description}")
    console.say("serial ports:" if ports else "serial ports: none found; `./run sim` starts six emulated boards")
    for device, description in ports.items():
        console.say(f"  {device:20} {description}")
    return Result("list", fields={"robots": robots, "ports": ports})


_STATUS_US = 2_500_000  # two of them may be lost
_HEADS = ("joint", "node", "port", "kind", "uid", "firmware", "wire", "schema", "state", "reset", "clock", "config")


def _list_boards(path: str, console: Console) -> Result:
    """Greet each board of a bench file and print its answer; exit code 1 when one has a trouble of its own."""
    from jointbench.bench import Connections, read_bench_file  # they need numpy and more: slow to import

    file = read_bench_file(path)
    connections = Connections(file, whole=False)
    try:
        boards = [_ask(entry, connections) for entry in file.boards]
    finally:
        connections.close()
    console.say(table(_HEADS, [_row(board) for board in boards]))
    troubles = [board for board in boards if board["trouble"]]
    for board in troubles:
        console.say(board["trouble"])
    return Result("list", fields={"bench": file.name, "boards": boards}, refused=bool(troubles))


def _ask(entry: BoardEntry, connections: Connections) -> dict[str, Any]:
    """Return what a board says of itself, as far as it does; `trouble` in words, empty where it has none."""
    from jointwire import State, config_crc

    said: dict[str, Any] = {"joint": entry.joint, "node": entry.node, "url": entry.url, "trouble": ""}
    try:
        if entry.joint in connections.unopened:
            raise connections.unopened[entry.joint]
        board = connections.boards[entry.joint]
        identity = board.greet()
        state = "unknown" if board.state is None else board.state.name
        said |= asdict(identity) | {"schema_hash": f"{identity.schema_hash:08x}", "state": state}
        board.need_our_schema()
        said["config_crc"] = f"{config_crc(board.read_registers().registers):08x}"
        said["trouble"] = identity.refused_image
        if board.state is State.FAULT:
            _hear_fault(board, connections.clock)
            raise board.fault_error()
    except BoardError as error:
        said["trouble"] = str(error)
    return said


def _hear_fault(board: Board, clock: Clock) -> None:
    """Wait until a board says again which fault it has, as it does with each STATUS, once a second."""
    deadline = clock.now_us() + _STATUS_US
    while board.fault is None and (remaining := deadline - clock.now_us()) > 0:
        clock.wait(remaining)


def _row(said: dict[str, Any]) -> list[str]:
    from jointwire import schema_hash

    if "uid" not in said:
        return [said["joint"], str(said["node"]), said["url"], *["–"] * (len(_HEADS) - 3)]
    clock = f"{said['clock_Hz'] / 1e6:g} MHz" if said["clock_Hz"] else "–"
    same = "same" if said["schema_hash"] == f"{schema_hash():08x}" else "other"
    return [
        said["joint"], str(said["node"]), said["url"], said["board"], said["uid"], said["firmware_version"],
        said["wire"], same, said["state"], said["reset_cause"], clock, said.get("config_crc", "–"),
    ]  # fmt: skip
