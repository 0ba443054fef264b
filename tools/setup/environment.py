"""The private Python environment: .venv with the locked dependencies of a user's verbs and the project itself."""

import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from tools.setup import packages
from tools.setup.checkout import Checkout
from tools.setup.command import run
from tools.setup.errors import CommandFailed, SetupError

UNFINISHED = "unfinished\n"


def fingerprint(checkout: Checkout) -> str:
    """Return a digest of what the environment is made from: Python, the lock, pyproject.toml and its place on disk."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {checkout.root}\n".encode())
    for path in (checkout.lock, checkout.root / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest() + "\n"


def is_ready(checkout: Checkout) -> bool:
    """Say whether the environment is complete and made from what is in the checkout now."""
    stamp = _stamp(checkout)
    return stamp.exists() and stamp.read_text() == fingerprint(checkout) and checkout.python.exists()


def install(checkout: Checkout) -> None:
    """Make the environment anew; the stamp that says it is complete comes last.

    Raises:
        SetupError: Python's venv module is missing, .venv is somebody else's, or a dependency cannot be installed.
    """
    _ensure_venv_module(checkout.log)
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
    run([sys.executable, "-m", "venv", checkout.venv], checkout.log)
    packages.install(checkout)
    stamp.write_text(fingerprint(checkout))


def _stamp(checkout: Checkout) -> Path:
    return checkout.venv / "jointbench-setup"


def _ensure_venv_module(log: Path) -> None:
    """Debian keeps venv's installer, ensurepip, in a package of its own: install it as root, else say how."""
    if importlib.util.find_spec("ensurepip"):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetupError(f"{sys.executable} has no venv module. Type: sudo apt-get install {package}")
    print(f"  installing {package}", file=sys.stderr, flush=True)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install_package = ["apt-get", "-q", "install", "-y", "--no-install-recommends", package]
    try:
        run(install_package, log, quiet)
    except CommandFailed:  # the package lists are missing or old
        run(["apt-get", "-q", "update"], log, quiet)
        run(install_package, log, quiet)
    importlib.invalidate_caches()
    if not importlib.util.find_spec("ensurepip"):
        raise SetupError(f"{sys.executable} has no venv module even with {package}; use the system's own python3")
