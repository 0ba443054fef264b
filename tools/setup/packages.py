"""The locked dependencies, and the system libraries that they expect and a bare machine lacks.

Every program and library in .venv is asked once what it loads. What is missing and known is fetched from Debian into
.venv/libraries, which `run` adds to LD_LIBRARY_PATH; what is missing and not known is an error that names it.
"""

import ast
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tools.setup import apt, debian
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, SetupError, run, run_over_network

# Wheels only: a bare machine has no compiler.
LOCKED = ["--require-hashes", "--only-binary", ":all:"]

# pip asks again by itself, and since 25.1 goes on within a file; once only, because run_over_network does it too.
PIP_PATIENCE = {"PIP_RETRIES": "1", "PIP_RESUME_RETRIES": "3"}

# What most verbs of a user take. `convert` and `rerun` come when a verb first needs them; the rest of the lock, three
# times as much, is for who changes the project.
EXTRAS = ("bench", "report", "monitor", "completion", "testing", "meshes")
IN_PLACE = ("hatchling", "editables")  # they put the project into the environment without a network


def install(checkout: Checkout) -> None:
    """Install what a user's verbs take into the environment, and the project in place.

    Raises:
        CommandFailed: neither uv nor pip could.
    """
    _install_chosen(checkout, chosen_names(_project(checkout)))
    in_place = ["install", "--no-index", "--no-deps", "--no-build-isolation", "-e", checkout.root]
    run([*_pip(checkout), *in_place], checkout.log)


def install_extra(checkout: Checkout, extra: str) -> None:
    """Install an extra of the project into the environment.

    Raises:
        CommandFailed: neither uv nor pip could.
    """
    _install_chosen(checkout, _names(_project(checkout)["optional-dependencies"][extra]))


def install_all(checkout: Checkout) -> None:
    """Install the whole lock into the environment.

    Raises:
        CommandFailed: neither uv nor pip could.
    """
    _install_locked(checkout, "-r", checkout.lock)


def chosen_names(project: dict[str, Any]) -> list[str]:
    """Return the packages that the project itself names for a user's verbs; what they need in turn the lock knows.

    Args:
        project: the table of that name in pyproject.toml.
    """
    extras = (project["optional-dependencies"][extra] for extra in EXTRAS)
    return _names(itertools.chain(project["dependencies"], *extras, IN_PLACE))


def _names(requirements: Iterable[str]) -> list[str]:
    return sorted({re.split(r"[^\w-]", requirement)[0] for requirement in requirements})


def _project(checkout: Checkout) -> dict[str, Any]:
    return tomllib.loads((checkout.root / "pyproject.toml").read_text())["project"]


def _install_chosen(checkout: Checkout, names: Sequence[str]) -> None:
    lock = checkout.lock.read_text()
    chosen = checkout.work / "chosen.lock"
    chosen.write_text("".join(locked(lock, name) for name in names))
    _install_locked(checkout, "-r", chosen, "-c", checkout.lock)


def locked(lock: str, package: str) -> str:
    """Return the lines of one package, its hashes included.

    Args:
        lock: the text of the lock.
        package: its name as the lock writes it.
    """
    lines = re.search(rf"^{re.escape(package)}==.*\n(?:[ \t]+.*\n?)*", lock, re.MULTILINE)
    if lines is None:
        raise CommandFailed("requirements.lock", f"holds no {package}")
    return lines[0]


def uv_settings(pip_config: str) -> dict[str, str]:
    """Translate the user's pip settings, which uv does not read, to uv's variables.

    What the user has set for uv already stays as it is.

    Args:
        pip_config: what `pip config list` prints, e.g. global.index-url='https://...'.

    Returns:
        Variables to add to the environment of uv.
    """
    pip: dict[str, str] = {}
    for section in ("global", "install", ":env:"):  # a later one wins, as it does in pip
        for line in pip_config.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                pip[name.removeprefix(f"{section}.")] = " ".join(str(ast.literal_eval(value)).split())
    # uv refuses a folder that is not there; pip passes over it.
    folders = [item for item in pip.get("find-links", "").split() if "://" in item or Path(item).is_dir()]
    translated = {
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "UV_INDEX": pip.get("extra-index-url", ""),
        "UV_FIND_LINKS": ",".join(folders),
        "UV_NO_INDEX": pip.get("no-index", ""),
        "UV_INSECURE_HOST": pip.get("trusted-host", ""),
        "SSL_CERT_FILE": pip.get("cert", ""),
        "ALL_PROXY": pip.get("proxy", ""),
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip chooses; the hashes decide what is installed
    }
    return {name: value for name, value in translated.items() if value and name not in os.environ}


def _pip(checkout: Checkout) -> list[str | Path]:
    return [checkout.python, "-m", "pip", "--disable-pip-version-check"]


def _install_locked(checkout: Checkout, *which: str | Path) -> None:
    """Install some of the lock by uv, or all of it by pip, which takes no hashes from constraints."""
    pip = _pip(checkout)
    try:
        _fetch_uv(pip, checkout)
        settings = uv_settings(run([*pip, "config", "list"], checkout.log))
        uv = [checkout.uv / "bin" / "uv", "pip", "install", "--python", checkout.python]
        run_over_network([*uv, *LOCKED, *which], checkout.log, settings)
    except CommandFailed as failure:
        if failure.of_machine:
            raise
        print(f"  {failure}; using pip alone", file=sys.stderr, flush=True)
        run_over_network([*pip, "install", *LOCKED, "-r", checkout.lock], checkout.log, PIP_PATIENCE)


def _fetch_uv(pip: list[str | Path], checkout: Checkout) -> None:
    """Put uv beside the environment, unless it is there as the lock has it."""
    text, stamp = locked(checkout.lock.read_text(), "uv"), checkout.uv / "uv.lock"
    if stamp.exists() and stamp.read_text() == text:
        return
    new = checkout.work / "uv"
    new.mkdir()
    (new / "uv.lock").write_text(text)
    install = [*pip, "install", *LOCKED, "--no-deps", "--target", new, "-r", new / "uv.lock"]
    run_over_network(install, checkout.log, PIP_PATIENCE)
    shutil.rmtree(checkout.uv, ignore_errors=True)
    new.rename(checkout.uv)


MISSING = re.compile(r"^\s*(\S+) => not found$")
# Numba runs its threads without the first, and Pinocchio does without Boost.Locale, which takes the second.
OPTIONAL = {"libtbb.so.12", "libquadmath.so.0"}


def complete_libraries(checkout: Checkout) -> None:
    """Fetch the libraries that files of the environment miss.

    Raises:
        SetupError: one is missing_libraries that the lock does not have, or that cannot be fetched.
    """
    needed = missing_libraries(checkout)
    if not needed:
        return
    try:
        _fetch(checkout, set(needed))
    except SetupError as error:
        raise SetupError(f"{_told(needed)}: {error}") from error
    still = missing_libraries(checkout)
    if still:
        raise SetupError(f"{_told(still)}; install the package of your system that holds it")


def missing_libraries(checkout: Checkout) -> dict[str, Path]:
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
