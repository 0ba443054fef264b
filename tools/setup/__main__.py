"""Set up what a verb of `run` needs: python -m tools.setup [--check] PART... [--if-possible PART...].

A part after --if-possible that cannot be had is left out with a note, except where CI is set.
`python -m tools.setup lock-debian` makes the lock of Debian's packages anew.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tools.setup import browser, environment, micropython, qemu, riscv, rp2, stubs
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import SetupError, Unavailable, explain
from tools.setup.extras import Extra, development
from tools.setup.relock import lock_debian

PARTS = {
    "environment": (environment, "the Python environment (.venv, about 0.5 GB)"),
    "convert": (Extra("convert"), "what reads and writes MCAP, Parquet, bags and MATLAB 7.3 (.venv, about 235 MB)"),
    "notebook": (Extra("notebook"), "what tables of pandas take (.venv, about 60 MB)"),
    "rerun": (Extra("rerun"), "what writes scenes for the Rerun viewer (.venv, about 500 MB)"),
    "development": (development, "what changing the project takes beside (.venv, about 1.9 GB)"),
    "micropython": (micropython, "a 32-bit MicroPython (.cache, about 20 MB)"),
    "stubs": (stubs, "MicroPython's type stubs, for the board files (.cache, about 5 MB)"),
    "qemu": (qemu, "QEMU, an ARM compiler and an image for a Cortex-M3 (.cache, about 155 MB)"),
    "riscv": (riscv, "QEMU for RISC-V, and an image of MicroPython for it, built (.cache, about 76 MB)"),
    "rp2": (rp2, "an emulated RP2040: MicroPython's image, built, and the chip (.cache, 2 MB; .venv, about 300 MB)"),
    "browser": (browser, "Chromium without a window, for the tests of pages (.cache, about 300 MB)"),
}

# Settings that would send an installation past the environment it is meant for.
REDIRECTIONS = ("PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON")

IF_POSSIBLE = "--if-possible"
LOCK_DEBIAN = "lock-debian"


def set_up(checkout: Checkout, parts: list[str], optional: list[str]) -> None:
    """Install the parts that are not there yet.

    Args:
        checkout: where to.
        parts: what there must be.
        optional: what may be missing, unless CI is set; why it does is told.
    """
    for name in parts:
        install(checkout, name)
    complete = True
    for name in optional:
        try:
            install(checkout, name)
        except Unavailable as error:
            if os.environ.get("CI"):
                raise
            told = f"  not set up: {error}\n  Going on: the tests that need it are skipped"
            print(told, file=sys.stderr, flush=True)
            complete = False
    if complete:  # not before, because some parts take the same files
        shutil.rmtree(checkout.downloads, ignore_errors=True)


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
    if arguments[0] == LOCK_DEBIAN:
        return guarded(checkout, lambda: lock_debian(checkout))
    at = arguments.index(IF_POSSIBLE) if IF_POSSIBLE in arguments else len(arguments)
    return guarded(checkout, lambda: set_up(checkout, arguments[:at], arguments[at + 1 :]))


def guarded(checkout: Checkout, work: Callable[[], None]) -> int:
    """Do something with a checkout, alone; return 0, or 2 when it failed, with one sentence that says why."""
    try:
        with exclusive(checkout):
            checkout.log.write_text("")
            work()
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
    except OSError as error:
        print(f"set-up: {explain(str(error)).reason} ({error.filename or checkout.root})", file=sys.stderr)
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
