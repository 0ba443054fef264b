"""Ask the boards of a bench which modules they are built into, and write the robot file of the arm that these make."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from jointbench.bench import BenchFile, BoardEntry, Connections, read_bench_file
from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import RobotError
from jointbench.files import write_file
from jointbench.model import Module, assemble, load_robot, module_types

VERB = "assemble"
EXAMPLE = "jointbench assemble bench.toml --out robot.toml"
WRITES = ("out",)
WHEN_STOPPED = "no motor was switched on"
ROBOT = "robot.toml"
"""Name of a robot's file where none is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH and where the robot's file goes."""
    parser.add_argument(
        "bench", metavar="BENCH",
        help="a bench .toml: where each joint's board is; node 1 is the module at the base, node 2 sits on it, …",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FILE",
        help=f"where the robot's file goes (the robot that BENCH names, if that is no file yet, or {ROBOT})",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> Result:
    """Greets the boards in the order of their nodes, and writes what the chain of their modules is."""
    file = read_bench_file(options.bench)
    out = Path(options.out or _default(file))
    with console.working(f"asking {len(file.boards)} boards"):
        modules = ask_modules(file)
    text = assemble(file.name, modules)
    if not options.out:
        console.keep_earlier(out, None)
    write_file(out, text)
    robot = load_robot(out)
    console.say(table(("node", "joint", "module", "serial", "torque [N·m]", "mass [kg]"), _rows(modules)))
    mass = sum(joint.link.mass or 0.0 for joint in robot.joints)
    console.say(f"robot: {out}, {robot.n_joints} modules, {mass:.4g} kg")
    if Path(file.robot).resolve() != out.resolve():
        console.say(f"{options.bench} has robot = {file.robot!r}; write the path of {out} there to move this arm")
    return Result("assemble", fields={"robot": str(out), "modules": [vars(module) for module in modules]})


def ask_modules(file: BenchFile) -> list[Module]:
    """The modules of a bench's boards from the base on, which is the order of their nodes.

    Raises:
        RobotError: nodes leave a gap, or a board tells no module.
        BoardSilent, BoardLost, BenchLost: a board, or the virtual bench, does not answer.
    """
    entries = sorted(file.boards, key=lambda entry: entry.node)
    _check_nodes(file, entries)
    connections = Connections(file)
    try:
        return [_module(entry, connections) for entry in entries]
    finally:
        connections.close()


def _check_nodes(file: BenchFile, entries: Sequence[BoardEntry]) -> None:
    if feet := [entry.joint for entry in entries if entry.on_foot]:
        raise RobotError(f"bench {file.name!r} has boards of feet ({', '.join(feet)}); a chain of modules has none")
    nodes = [entry.node for entry in entries]
    missing = sorted(set(range(1, nodes[-1] + 1)) - set(nodes))
    if missing:
        raise RobotError(
            f"bench {file.name!r} has nodes {', '.join(map(str, nodes))}, and none of {', '.join(map(str, missing))}; "
            "modules are numbered from the base on, 1, 2, 3, without a gap: which module sits there?"
        )


def _module(entry: BoardEntry, connections: Connections) -> Module:
    identity = connections.boards[entry.joint].greet()
    where = f"{entry.joint} (node {entry.node})"
    if not identity.module_type:
        raise RobotError(
            f'{where}: its board tells no module; write "module": {{"type": …, "serial": …}} into its config.json, and '
            f"flash it with that (`jointbench flash --config FILE`): its firmware speaks wire {identity.wire}, and 1.2 "
            f"is the first that tells. Types are {', '.join(module_types())}"
        )
    return Module(entry.joint, identity.module_type, identity.module_serial, where)


def _default(file: BenchFile) -> str:
    own = Path(file.robot)
    return str(own) if own.suffix == ".toml" and not own.exists() else ROBOT


def _rows(modules: Sequence[Module]) -> list[list[str]]:
    types = module_types()
    return [
        [
            str(node), module.joint, module.type, module.serial, f"{types[module.type].joint['torque_Nm']:g}",
            f"{types[module.type].link['mass_kg']:g}",
        ]
        for node, module in enumerate(modules, 1)
    ]  # fmt: skip
