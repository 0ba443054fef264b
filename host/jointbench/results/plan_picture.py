"""The picture by which a plan is judged before anything moves: every joint in its limits, what is told, and the arm."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from jointbench.errors import ReportError
from jointbench.extras import need
from jointbench.files import write_file

if TYPE_CHECKING:
    from jointbench.results.plan_evidence import PlanEvidence

FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """Refuse a picture that could not be made, before there is anything to show.

    Raises:
        MissingExtra: matplotlib is not installed.
        ReportError: its name ends in nothing known.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise ReportError(f"picture {path}: its name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    need("report", "a picture", "matplotlib")


def plan_picture(path: str | Path, evidence: PlanEvidence) -> Path:
    """Draw a plan into a file, an older one of this name being replaced.

    Args:
        path: ends in one of FORMATS.
        evidence: the plan.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib is not installed.
        ReportError: the file's name ends in nothing known.
        FileNotWritten: it cannot be written.
    """
    check_picture(path)
    from jointbench.results.plan_figure import plan_figure
    from jointbench.results.theme import house_style

    path, buffer = Path(path), io.BytesIO()
    kind = path.suffix.lower()[1:]
    # Without the day and the name of what drew it, the same plan gives the same bytes.
    nameless = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
    with house_style():
        plan_figure(evidence).savefig(buffer, format=kind, metadata=nameless[kind])
    return write_file(path, buffer.getvalue())
