"""The private Python environment: .venv with the locked dependencies of a user's verbs and the project itself."""

import hashlib
import importlib.util
import json
import shutil
import sys
import tomllib
from pathlib import Path

from tools.setup import apt, debian, packages
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, run

UNFINISHED = "unfinished\n"


def fingerprint(checkout: Checkout) -> str:
    """Return a digest of what the environment is made from: Python, the lock, the project and its place on disk."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {checkout.root}\n".encode())
    digest.update(checkout.lock.read_bytes())
    settings = tomllib.loads((checkout.root / "pyproject.toml").read_text(encoding="utf-8"))
    made_by = [settings.get("build-system"), settings.get("project"), settings.get("tool", {}).get("hatch")]
    digest.update(json.dumps(made_by).encode())  # not the settings of linters and tests
    return digest.hexdigest() + "\n"


def is_ready(checkout: Checkout) -> bool:
    """Say whether the environment is complete and made from what is in the checkout now."""
    stamp = _stamp(checkout)
    return stamp.exists() and stamp.read_text() == fingerprint(checkout) and checkout.python.exists()


def install(checkout: Checkout) -> None:
    """Make the environment anew; the stamp that says it is complete comes last.

    Raises:
        SetupError: there is no pip to start with, .venv is somebody else's, or a dependency cannot be installed.
    """
    stamp = _stamp(checkout)
    if checkout.venv.is_symlink() or (checkout.venv.exists() and not stamp.exists() and any(checkout.venv.iterdir())):
        raise SetupError(f"{checkout.venv} was not made by this set-up; move it away and run the same command again")
    if stamp.exists():
        stamp.write_text(UNFINISHED)
    for path in checkout.venv.iterdir() if checkout.venv.exists() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != stamp:
            path.unlink()
    checkout.venv.mkdir(exist_ok=True)
    stamp.write_text(UNFINISHED)
    _make_venv(checkout)
    packages.install(checkout)
    packages.complete_libraries(checkout)
    stamp.write_text(fingerprint(checkout))


def _stamp(checkout: Checkout) -> Path:
    return checkout.venv / "jointbench-setup"


def _make_venv(checkout: Checkout) -> None:
    """Make an environment with pip alone; where Python has no wheel of it to start with, fetch Debian's."""
    if importlib.util.find_spec("ensurepip"):
        run([sys.executable, "-m", "venv", checkout.venv], checkout.log)
        return
    try:
        debs = debian.fetch("pip", "all", checkout)
        apt.unpack(debs, checkout.work / "pip", checkout.log)
        (wheel,) = (checkout.work / "pip").rglob("pip-*.whl")
        run([sys.executable, "-m", "venv", "--without-pip", checkout.venv], checkout.log)
        run([checkout.python, wheel / "pip", "install", "--no-index", "--no-deps", wheel], checkout.log)
    except SetupError as error:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        raise SetupError(
            f"{sys.executable} has no pip to start with, and none can be fetched: {error}. "
            f"Type: sudo apt-get install {package}"
        ) from error
