"""Set up what a verb of `run` needs: python -m tools.setup [--check] PART... [--if-possible PART...].

A part after --if-possible that cannot be had is left out with a note, except where CI is set.
"""

import os
import sys
import time
from pathlib import Path

from tools.setup import browser, development, environment, micropython, oracle, qemu, stubs
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import explain
from tools.setup.errors import SetupError, Unavailable

PARTS = {
    "environment": (environment, "the Python environment (.venv, about 0.8 GB)"),
    "development": (development, "what changing the project takes beside (.venv, about 1.4 GB)"),
    "micropython": (micropython, "a 32-bit MicroPython (.cache, about 20 MB)"),
    "oracle": (oracle, "Pinocchio, the second opinion of the dynamics tests"),
    "stubs": (stubs, "MicroPython's type stubs, for the board files (.cache, about 5 MB)"),
    "qemu": (qemu, "QEMU, an ARM compiler and an image for a Cortex-M3 (.cache, about 155 MB)"),
    "browser": (browser, "Chromium without a window, for the tests of pages (.cache, about 300 MB)"),
}

# Settings that would send an installation past the environment it is meant for.
REDIRECTIONS = ("PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON")

IF_POSSIBLE = "--if-possible"


def set_up(checkout: Checkout, parts: list[str], optional: list[str]) -> None:
    """Install the parts that are not there yet, one process at a time.

    Args:
        checkout: where to.
        parts: what there must be.
        optional: what may be missing, unless CI is set; why it does is told.
    """
    with exclusive(checkout):
        checkout.log.write_text("")
        for name in parts:
            install(checkout, name)
        for name in optional:
            try:
                install(checkout, name)
            except Unavailable as error:
                if os.environ.get("CI"):
                    raise
                print(
                    f"  not set up: {error}\n  Going on: the tests that need it are skipped",
                    file=sys.stderr,
                    flush=True,
                )


def install(checkout: Checkout, name: str) -> None:
    """Install a part unless it is there, and say so."""
    part, title = PARTS[name]
    if part.is_ready(checkout):
        return
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
        parts = (name for name in arguments[1:] if name != IF_POSSIBLE)
        return 0 if all(PARTS[name][0].is_ready(checkout) for name in parts) else 1
    at = arguments.index(IF_POSSIBLE) if IF_POSSIBLE in arguments else len(arguments)
    try:
        set_up(checkout, arguments[:at], arguments[at + 1 :])
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
