"""Packages that only an extra of the distribution installs, asked for when they are needed."""

from __future__ import annotations

from importlib.util import find_spec

from jointbench.errors import MissingExtra


def need(extra: str, what: str, *packages: str) -> None:
    """Say what to install where it is missing.

    Args:
        extra: of the distribution.
        what: needs it, as the sentence begins: "a report".
        packages: as they are imported; submodules of a package that is missing must not be asked for.

    Raises:
        MissingExtra: a package is not installed.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise MissingExtra(
            f"{what} needs {' and '.join(missing)}, which {are} not installed; run: pip install 'jointbench[{extra}]', "
            "or ./run setup in a checkout"
        )
