"""Reading the file that `plan` wrote."""

from __future__ import annotations

import json
from pathlib import Path

from jointbench.errors import ExcitationError
from jointbench.excitation import Excitation


def read_plan(path: str) -> Excitation:
    """The excitation that `plan` wrote.

    Raises:
        ExcitationError: there is no such file, or it holds no plan.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExcitationError(f"no plan at {path}; make one with `jointbench plan ROBOT --out {path}`") from None
    except (OSError, ValueError) as error:
        raise ExcitationError(
            f"plan {path} cannot be read: {error}; give the JSON that `jointbench plan` wrote"
        ) from error
    try:
        return Excitation.from_dict(values)
    except ExcitationError as error:
        raise ExcitationError(f"plan {path}: {error}; make one anew with `jointbench plan`") from error
