"""Checkouts for the tests of the set-up: the files `run` needs, in a folder whose name has a space."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def bare_checkout(folder: Path) -> Path:
    """Return a fresh checkout in which nothing is set up."""
    root = folder / "my bench"
    shutil.copytree(ROOT / "tools" / "setup", root / "tools" / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("run", "requirements.lock", "pyproject.toml", "tools/__init__.py"):
        shutil.copy2(ROOT / name, root / name)
    return root


def start(root: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start `run` in a session of its own, without the settings of pip, uv and the bench that hold here."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "JOINTBENCH_"))}
    return subprocess.Popen(
        [root / "run", *arguments],
        env=env | {"PIP_CONFIG_FILE": os.devnull} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests run in the background, the shell has Ctrl-C ignored, and children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
