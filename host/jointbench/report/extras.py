"""The report's own dependencies, asked for only when a report is."""

from importlib.util import find_spec

from jointbench.errors import MissingExtra

NEEDED = ("matplotlib", "jinja2")
"""What `jointbench[report]` installs beyond the host's own dependencies."""


def require_report_extras() -> None:
    """Say what to install where a report cannot be made.

    Raises:
        MissingExtra: a package of the report extra is not installed.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"a report needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed; "
            f"run: pip install jointbench[report]"
        )
