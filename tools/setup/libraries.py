"""System libraries that programs of the locked Python packages expect, and a bare machine lacks.

Every program and library in .venv is asked once what it loads. What is missing and known is fetched from Debian into
.venv/libraries, which `run` adds to LD_LIBRARY_PATH; what is missing and not known is an error that names it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.setup import apt, debian
from tools.setup.checkout import Checkout
from tools.setup.errors import SetupError

MISSING = re.compile(r"^\s*(\S+) => not found$")
# Numba runs its threads without the first, and Pinocchio does without Boost.Locale, which takes the second.
OPTIONAL = {"libtbb.so.12", "libquadmath.so.0"}


def complete(checkout: Checkout) -> None:
    """Fetch the libraries that files of the environment miss.

    Raises:
        SetupError: one is missing that the lock does not have, or that cannot be fetched.
    """
    needed = missing(checkout)
    if not needed:
        return
    try:
        _fetch(checkout, set(needed))
    except SetupError as error:
        raise SetupError(f"{_told(needed)}: {error}") from error
    still = missing(checkout)
    if still:
        raise SetupError(f"{_told(still)}; install the package of your system that holds it")


def missing(checkout: Checkout) -> dict[str, Path]:
    """Return each library that is nowhere to be found, with a file that needs it."""
    files = [path for path in checkout.venv.rglob("*") if _is_elf(path)]
    if not files or not shutil.which("ldd"):
        return {}
    brought = {path.name for path in files}
    env = os.environ | {"LD_LIBRARY_PATH": str(checkout.libraries)}
    found: dict[str, Path] = {}
    for path in files:
        said = subprocess.run(["ldd", path], env=env, capture_output=True, text=True, check=False).stdout
        for line in said.splitlines():
            match = MISSING.match(line)
            if match and match[1] not in brought | OPTIONAL:
                found.setdefault(match[1], path)
    return found


def _told(needed: dict[str, Path]) -> str:
    return "; ".join(f"{path.name} ({path}) needs {name}, which this system has not" for name, path in needed.items())


def _fetch(checkout: Checkout, names: set[str]) -> None:
    root = checkout.work / "libraries"
    for deb in debian.fetch("libraries", apt.architecture_of(os.uname().machine), checkout):
        apt.unpack_part(deb, root, re.compile(r"usr/lib/.+\.so[.\d]*"))
    checkout.libraries.mkdir(exist_ok=True)
    for path in root.rglob("*"):
        if path.name in names:
            shutil.copy(path, checkout.libraries / path.name)


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or not (".so" in path.name or os.access(path, os.X_OK)):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
