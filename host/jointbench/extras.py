"""Packages that only an extra of the distribution installs, asked for when they are needed."""

from __future__ import annotations

import importlib
import os
import shlex
import site
import subprocess
import sys
import sysconfig
from importlib.util import find_spec

from jointbench.errors import MissingExtra

INSTALLER = "JOINTBENCH_INSTALLER"
"""Variable that holds a command which installs the extra named after it; `run` sets it in a checkout."""

_REASON = "set-up: "


def need(extra: str, what: str, *packages: str) -> None:
    """Have packages of an extra installed where something can, else say what to install.

    Args:
        extra: of the distribution.
        what: needs it, as the sentence begins: "a report".
        packages: as they are imported; submodules of a package that is missing must not be asked for.

    Raises:
        MissingExtra: a package is not installed, and cannot be.
    """
    missing = _missing(packages)
    if not missing:
        return
    installer = os.environ.get(INSTALLER)
    reason = _install(shlex.split(installer), extra) if installer else None
    if reason is not None or _missing(packages):
        are = "is" if len(missing) == 1 else "are"
        reason = reason or f"run: pip install 'jointbench[{extra}]', or ./run setup --all in a checkout"
        raise MissingExtra(f"{what} needs {' and '.join(missing)}, which {are} not installed; {reason}")


def _missing(packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if find_spec(name) is None]


def _install(installer: list[str], extra: str) -> str | None:
    """Run the installer, pass on what it says, and return why it failed, if it did."""
    reason = None
    with subprocess.Popen([*installer, extra], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(_REASON):
                reason = line.removeprefix(_REASON).strip()
            elif reason is None:
                print(line, end="", file=sys.stderr, flush=True)
    if process.returncode:
        return reason or "it could not be installed"
    site.addsitedir(sysconfig.get_path("purelib"))  # some packages add folders of their own to the path
    importlib.invalidate_caches()
    return None
