"""The locked dependencies: installed by uv, which is itself in the lock, or by plain pip where uv will not do."""

import ast
import os
import re
import sys
from pathlib import Path

from tools.setup.checkout import Checkout
from tools.setup.command import run
from tools.setup.errors import CommandFailed

# Wheels only: a bare machine has no compiler.
LOCKED = ["--require-hashes", "--only-binary", ":all:"]


def install(checkout: Checkout) -> None:
    """Install the lock into the environment, and the project in place.

    Raises:
        CommandFailed: neither uv nor pip could.
    """
    pip = [checkout.python, "-m", "pip", "--disable-pip-version-check"]
    try:
        _install_uv(pip, checkout)
        settings = uv_settings(run([*pip, "config", "list"], checkout.log))
        uv = [checkout.python, "-m", "uv", "pip", "install", "--python", checkout.python]
        run([*uv, *LOCKED, "-r", checkout.lock], checkout.log, settings)
    except CommandFailed as failure:
        if failure.of_machine:
            raise
        print(f"  {failure}; using pip alone", file=sys.stderr, flush=True)
        run([*pip, "install", *LOCKED, "-r", checkout.lock], checkout.log)
    run([*pip, "install", "--no-index", "--no-deps", "--no-build-isolation", "-e", checkout.root], checkout.log)


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


def _install_uv(pip: list[str | Path], checkout: Checkout) -> None:
    lock = checkout.work / "uv.lock"
    lock.write_text(locked(checkout.lock.read_text(), "uv"))
    # Few retries: without a network this is the step that finds out.
    run([*pip, "install", *LOCKED, "--no-deps", "--retries", "2", "-r", lock], checkout.log)
