"""The locked dependencies: installed by uv, which is itself in the lock, or by plain pip where uv will not do."""

import ast
import itertools
import os
import re
import sys
import tomllib
from pathlib import Path

from tools.setup.checkout import Checkout
from tools.setup.command import run
from tools.setup.errors import CommandFailed

# Wheels only: a bare machine has no compiler.
LOCKED = ["--require-hashes", "--only-binary", ":all:"]

# What the verbs of a user take. The rest of the lock, twice as much, is for who changes the project.
EXTRAS = ("bench", "report", "monitor", "convert", "completion", "testing")
IN_PLACE = ("hatchling", "editables")  # they put the project into the environment without a network


def install(checkout: Checkout) -> None:
    """Install what a user's verbs take into the environment, and the project in place.

    Raises:
        CommandFailed: neither uv nor pip could.
    """
    lock, project = checkout.lock.read_text(), (checkout.root / "pyproject.toml").read_text()
    chosen = checkout.work / "chosen.lock"
    chosen.write_text("".join(locked(lock, name) for name in chosen_names(project)))
    _install_locked(checkout, "-r", chosen, "-c", checkout.lock)
    in_place = ["install", "--no-index", "--no-deps", "--no-build-isolation", "-e", checkout.root]
    run([*_pip(checkout), *in_place], checkout.log)


def install_all(checkout: Checkout) -> None:
    """Install the whole lock into the environment.

    Raises:
        CommandFailed: neither uv nor pip could.
    """
    _install_locked(checkout, "-r", checkout.lock)


def chosen_names(project: str) -> list[str]:
    """Return the packages that the project itself names for a user's verbs; what they need in turn the lock knows.

    Args:
        project: the text of pyproject.toml.
    """
    table = tomllib.loads(project)["project"]
    extras = (table["optional-dependencies"][extra] for extra in EXTRAS)
    named = itertools.chain(table["dependencies"], *extras, IN_PLACE)
    return sorted({re.split(r"[^\w-]", requirement)[0] for requirement in named})


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
        _install_uv(pip, checkout)
        settings = uv_settings(run([*pip, "config", "list"], checkout.log))
        uv = [checkout.python, "-m", "uv", "pip", "install", "--python", checkout.python]
        run([*uv, *LOCKED, *which], checkout.log, settings)
    except CommandFailed as failure:
        if failure.of_machine:
            raise
        print(f"  {failure}; using pip alone", file=sys.stderr, flush=True)
        run([*pip, "install", *LOCKED, "-r", checkout.lock], checkout.log)


def _install_uv(pip: list[str | Path], checkout: Checkout) -> None:
    lock = checkout.work / "uv.lock"
    lock.write_text(locked(checkout.lock.read_text(), "uv"))
    # Few retries: without a network this is the step that finds out.
    run([*pip, "install", *LOCKED, "--no-deps", "--retries", "2", "-r", lock], checkout.log)
