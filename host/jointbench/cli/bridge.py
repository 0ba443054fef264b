"""Show a bench live in the Foxglove app: joint states, the moving robot, a model's torque, what boards say, a stop."""

from __future__ import annotations

import argparse
import signal
import threading

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.extras import need
from jointbench.identification import load_model

VERB = "bridge"
EXAMPLE = "jointbench bridge bench.toml --model model.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, a model, and the port."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml; may be in use by `run` or another program")
    parser.add_argument("--model", metavar="MODEL", help="send the torque that this model.json gives, too")
    parser.add_argument(
        "--port", type=int, default=8765, metavar="N", help="serve at this port of 127.0.0.1 (%(default)s; 0: any)"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Serves until Ctrl-C, which is how it ends well."""
    need("bridge", "a bridge", "foxglove")
    from jointbench.results.bridge import Bridge

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    model = None if options.model is None else load_model(options.model)
    with Bridge(options.bench, model, options.port) as bridge:
        console.say(f"bridge of {options.bench}: {bridge.url}")
        console.say('open it in the Foxglove app as "Foxglove WebSocket"; Ctrl-C ends the bridge')
        ended.wait()
    console.say(f"bridge ended; {bridge.states} states sent, {bridge.stops} stops asked for")
    return Result("bridge", fields={"bench": options.bench, "states": bridge.states, "stops": bridge.stops})
