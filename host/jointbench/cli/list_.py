"""Show the robots of the library and the serial ports of this machine, or the boards of a bench."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from serial.tools import list_ports

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.cli.tables import table
from jointbench.errors import BoardError
from jointbench.link.bench_file import BoardEntry, read_bench_file
from jointbench.link.connections import Connections
from jointbench.robot import library_names, load_robot
from jointwire import State, config_crc, schema_hash

VERB = "list"
EXAMPLE = "jointbench list bench.toml"
_HEADS = ("joint", "node", "port", "kind", "uid", "firmware", "wire", "schema", "state", "reset", "clock", "config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, or nothing."""
    parser.add_argument("bench", metavar="BENCH", nargs="?", help="a bench .toml: greet each of its boards")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Names with one line each, or each board's word; exit code 1 when a board has a trouble of its own."""
    return _list_boards(options.bench, console) if options.bench else _list_library(console)


def _list_library(console: Console) -> Result:
    robots = {name: load_robot(name).description for name in library_names()}
    ports = {port.device: str(port.description) for port in sorted(list_ports.comports())}
    console.say("robots of the library:")
    for name, description in robots.items():
        console.say(f"  {name:12} {description}")
    console.say("serial ports:" if ports else "serial ports: none found; `./run sim` starts six emulated boards")
    for device, description in ports.items():
        console.say(f"  {device:20} {description}")
    return Result("list", fields={"robots": robots, "ports": ports})


def _list_boards(path: str, console: Console) -> Result:
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
    """What a board says of itself, as far as it does; `trouble` in words, empty where it has none."""
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
        if board.state is State.FAULT:
            raise board.fault_error()
    except BoardError as error:
        said["trouble"] = str(error)
    return said


def _row(said: dict[str, Any]) -> list[str]:
    if "uid" not in said:
        return [said["joint"], str(said["node"]), said["url"], *["–"] * (len(_HEADS) - 3)]
    clock = f"{said['clock_Hz'] / 1e6:g} MHz" if said["clock_Hz"] else "–"
    same = "same" if said["schema_hash"] == f"{schema_hash():08x}" else "other"
    return [
        said["joint"], str(said["node"]), said["url"], said["board"], said["uid"], said["firmware_version"],
        said["wire"], same, said["state"], said["reset_cause"], clock, said.get("config_crc", "–"),
    ]  # fmt: skip
