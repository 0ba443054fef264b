"""Show the robots of the library and the serial ports of this machine."""

from __future__ import annotations

import argparse

from serial.tools import list_ports

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.robot import library_names, load_robot

VERB = "list"
EXAMPLE = "jointbench list"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Takes none."""


def run(options: argparse.Namespace, console: Console) -> Result:
    """Names with one line each."""
    robots = {name: load_robot(name).description for name in library_names()}
    ports = {port.device: str(port.description) for port in sorted(list_ports.comports())}
    console.say("robots of the library:")
    for name, description in robots.items():
        console.say(f"  {name:12} {description}")
    console.say("serial ports:" if ports else "serial ports: none found; `./run sim` starts six emulated boards")
    for device, description in ports.items():
        console.say(f"  {device:20} {description}")
    return Result("list", fields={"robots": robots, "ports": ports})
