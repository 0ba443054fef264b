"""Set up what a verb of `run` needs: python -m tools.setup [--check] PART..."""

import os
import sys
import time
from pathlib import Path

from tools.setup import environment, micropython, oracle
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import explain
from tools.setup.errors import SetupError

PARTS = {
    "environment": (environment, "the Python environment (.venv, about 1.3 GB)"),
    "micropython": (micropython, "a 32-bit MicroPython (.cache, about 20 MB)"),
    "oracle": (oracle, "Pinocchio, the second opinion of the dynamics tests"),
}

# Settings that would send an installation past the environment it is meant for.
REDIRECTIONS = ("PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON")


def set_up(checkout: Checkout, parts: list[str]) -> None:
    """Install the parts that are not there yet, one process at a time."""
    with exclusive(checkout):
        checkout.log.write_text("")
        for name in parts:
            part, title = PARTS[name]
            if part.is_ready(checkout):
                continue
            print(f"setting up {title}", file=sys.stderr, flush=True)
            start = time.monotonic()
            part.install(checkout)
            print(f"  done in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Return 0 when the parts are there, 1 when --check finds that they are not, 2 when one cannot be had."""
    checkout = Checkout(Path(__file__).resolve().parents[2])
    for name in REDIRECTIONS:
        os.environ.pop(name, None)
    if arguments[0] == "--check":
        return 0 if all(PARTS[name][0].is_ready(checkout) for name in arguments[1:]) else 1
    try:
        set_up(checkout, arguments)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
    except OSError as error:
        print(f"set-up: {explain(str(error))[0]} ({error.filename or checkout.root})", file=sys.stderr)
    except KeyboardInterrupt:
        print("set-up: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    else:
        return 0
    if checkout.log.exists() and checkout.log.stat().st_size:
        print(f"  All output: {checkout.log}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
