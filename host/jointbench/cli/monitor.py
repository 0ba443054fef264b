"""Show a bench live in the browser: what its boards say, and a STOP button."""

from __future__ import annotations

import argparse
import webbrowser

from jointbench.bench import read_bench_file
from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.extras import need

VERB = "monitor"
EXAMPLE = "jointbench monitor bench.toml --open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, and where the page is."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml; may be in use by `run` or another program")
    parser.add_argument("--port", type=_port, metavar="N", help="serve at this port of 127.0.0.1 (any free one)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Serves the page until Ctrl-C, which is how it ends well."""
    need("monitor", "a monitor", "tornado")
    from jointbench.bench.monitor.server import door, serve_monitor

    file = read_bench_file(options.bench)

    def ready(url: str) -> None:
        console.say(f"monitor of {file.name}: {url}")
        console.say("anybody with this address can watch the bench and stop it; Ctrl-C ends the monitor")
        if options.open and not webbrowser.open(door(url)):
            console.say("no browser could be opened; open the address by hand")

    served = serve_monitor(options.bench, options.port, ready)
    console.say(f"monitor ended; {served.states} updates shown, {served.stops} stops asked for")
    return Result(
        "monitor", fields={"bench": file.name, "url": served.url, "updates": served.states, "stops": served.stops}
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no port; give a number from 1 to 65535, 1024 and more without root"
        )
    return int(text)
