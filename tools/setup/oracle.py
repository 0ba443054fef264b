"""Pinocchio, the second opinion of the dynamics tests, made to load on a bare machine.

Its wheel expects the system's GNU OpenMP library, which a minimal Debian lacks. Where it is missing it is fetched from
Debian and laid among Pinocchio's own libraries, inside the environment.
"""

import os
import shutil
from pathlib import Path

from tools.setup import apt
from tools.setup.checkout import Checkout
from tools.setup.command import run
from tools.setup.errors import CommandFailed, SetupError

LIBRARY = "libgomp.so.1"
PACKAGE = "libgomp1"
SUITE = "bookworm"  # the oldest Debian supported: its library runs with the C library of every later one


def is_ready(checkout: Checkout) -> bool:
    """Say whether Pinocchio has been loaded in this environment."""
    return _stamp(checkout).exists()


def install(checkout: Checkout) -> None:
    """Load Pinocchio, fetching the library it misses, if any.

    Raises:
        SetupError: the library is missing and cannot be had here.
        CommandFailed: Pinocchio does not load for another reason.
    """
    try:
        _load(checkout)
    except CommandFailed as failure:
        if LIBRARY not in str(failure):
            raise
        try:
            _add_library(checkout)
        except SetupError as error:
            raise SetupError(f"Pinocchio needs {LIBRARY}: {error}. Type: sudo apt-get install {PACKAGE}") from error
        _load(checkout)
    _stamp(checkout).touch()


def _stamp(checkout: Checkout) -> Path:
    return checkout.venv / "jointbench-oracle"


def _load(checkout: Checkout) -> None:
    run([checkout.python, "-c", "import pinocchio"], checkout.log)


def _add_library(checkout: Checkout) -> None:
    architecture = apt.architecture_of(os.uname().machine)
    folder = next(checkout.venv.glob("lib/python*/site-packages/cmeel.prefix/lib"))
    debs = apt.fetch([PACKAGE], SUITE, architecture, checkout.work / "oracle", checkout.log)
    apt.unpack(debs, checkout.work / "oracle" / "root", checkout.log)
    shutil.copy(next((checkout.work / "oracle" / "root").rglob(LIBRARY)), folder / LIBRARY)
