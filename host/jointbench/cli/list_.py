"""Show the robots of the library and the serial ports of this machine, or the boards of a bench."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from serial.tools import list_ports

import jointbench
from jointbench.checks import Result
from jointbench.cli.console import Console

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
    from jointbench.cli.list_boards import list_boards  # talks to boards, so it needs numpy and more: slow to import

    return list_boards(options.bench, console)


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
