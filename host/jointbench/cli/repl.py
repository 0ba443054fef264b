"""Give a board's port back to its MicroPython interpreter, to copy new firmware or to look around."""

from __future__ import annotations

import argparse

from jointbench.bench import Connections, read_bench_file
from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import RobotError

VERB = "repl"
EXAMPLE = "jointbench repl bench.toml j3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH and the joint."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument("joint", metavar="JOINT", help="the joint whose board it is")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Ends the board's program, whatever release it is of; its motor must be at rest."""
    file = read_bench_file(options.bench)
    entry = next((board for board in file.boards if board.joint == options.joint), None)
    if entry is None:
        joints = ", ".join(board.joint for board in file.boards)
        raise RobotError(f"bench {file.name!r} has no board for joint {options.joint!r}; its joints: {joints}")
    connections = Connections(file, whole=False)
    try:
        if entry.joint in connections.unopened:
            raise connections.unopened[entry.joint]
        connections.boards[entry.joint].greet()
        connections.boards[entry.joint].leave_for_repl()
    finally:
        connections.close()
    console.say(
        f"{entry.joint} (node {entry.node}): port {entry.url} is the interpreter's now, until the board is reset; "
        f"`mpremote connect {entry.url}` talks to it"
    )
    return Result("repl", fields={"joint": entry.joint, "node": entry.node, "url": entry.url})
