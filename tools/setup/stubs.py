"""Type stubs of MicroPython's ports, against which the board files are checked.

The ports' stubs describe the same modules differently, so each port's stand in a folder of their own, outside the
environment, each with the standard library as MicroPython has it.
"""

import shutil
from pathlib import Path

from tools.setup import packages
from tools.setup.checkout import Checkout
from tools.setup.command import run_over_network

PORTS = ("rp2", "stm32", "esp32")
STANDARD_LIBRARY = "micropython-stdlib-stubs"


def lock(checkout: Checkout) -> Path:
    """Return the file of every package here, with its version and hashes."""
    return checkout.root / "firmware" / "stubs.lock"


def folder(checkout: Checkout) -> Path:
    """Return where the stubs are, one folder for each of PORTS."""
    return checkout.cache / "stubs"


def is_ready(checkout: Checkout) -> bool:
    """Say whether the stubs are there as the lock has them."""
    stamp = folder(checkout) / "stubs.lock"
    return stamp.exists() and stamp.read_bytes() == lock(checkout).read_bytes()


def install(checkout: Checkout) -> None:
    """Install every port's stubs by the environment's pip, and put them in their place at once.

    Raises:
        CommandFailed: they cannot be had, or differ from their hashes.
    """
    text = lock(checkout).read_text()
    new = checkout.work / "stubs"
    for port in PORTS:
        wanted = checkout.work / f"stubs-{port}.lock"
        wanted.write_text(packages.locked(text, f"micropython-{port}-stubs") + packages.locked(text, STANDARD_LIBRARY))
        pip = [checkout.python, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
        command = [*pip, *packages.LOCKED, "--target", new / port, "-r", wanted]
        run_over_network(command, checkout.log, packages.PIP_PATIENCE)
    shutil.copy2(lock(checkout), new / "stubs.lock")
    shutil.rmtree(folder(checkout), ignore_errors=True)
    new.rename(folder(checkout))
