"""The files of a run's report: result.json always, and report.html where what draws it is installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from jointbench.errors import ReportError
from jointbench.files import write_file
from jointbench.testing.report.summary import Summary

RESULT, PAGE = "result.json", "report.html"


def write_files(out: Path, summary: Summary) -> tuple[tuple[Path, ...], str]:
    """Write the report of a run into its folder.

    Returns:
        The files; and why there is no page, empty where there is one.

    Raises:
        ReportError: the folder cannot be written.
    """
    text = json.dumps(summary.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    result = _write(out / RESULT, text)
    if find_spec("jinja2") is None:
        return (result,), f"no {PAGE}: jinja2 is not installed; run: pip install 'jointbench[testing]'"
    from jointbench.testing.report.page import page_html

    return (_write(out / PAGE, page_html(summary)), result), ""


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_file(path, text)
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise ReportError(f"{path} cannot be written: {cause.strerror}; name another --bench-out") from error
