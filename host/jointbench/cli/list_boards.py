"""What each board of a bench says of itself, and what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jointbench.bench import Board, BoardEntry, Clock, Connections, read_bench_file
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import BoardError
from jointwire import State, config_crc, schema_hash

_STATUS_US = 2_500_000  # two of them may be lost
_HEADS = ("joint", "node", "port", "kind", "uid", "firmware", "wire", "schema", "state", "reset", "clock", "config")


def list_boards(path: str, console: Console) -> Result:
    """Greets each board of a bench file and says what it says; exit code 1 when one has a trouble of its own."""
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
    if "uid" not in said:
        return [said["joint"], str(said["node"]), said["url"], *["–"] * (len(_HEADS) - 3)]
    clock = f"{said['clock_Hz'] / 1e6:g} MHz" if said["clock_Hz"] else "–"
    same = "same" if said["schema_hash"] == f"{schema_hash():08x}" else "other"
    return [
        said["joint"], str(said["node"]), said["url"], said["board"], said["uid"], said["firmware_version"],
        said["wire"], same, said["state"], said["reset_cause"], clock, said.get("config_crc", "–"),
    ]  # fmt: skip
