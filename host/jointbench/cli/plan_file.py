"""Reading the file that `plan` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from jointbench.errors import ExcitationError
from jointbench.excitation import Excitation
from jointbench.foreign import json_values, text_of
from jointbench.sealed import is_sealed, what_changed


def read_plan(path: str) -> Excitation:
    """The excitation that `plan` wrote.

    Raises:
        ExcitationError: there is no such file, it holds no plan, or was changed after it was written.
    """
    try:
        text = text_of(Path(path))
        values = json_values(text)
    except FileNotFoundError:
        raise ExcitationError(f"no plan at {path}; make one with `jointbench plan ROBOT --out {path}`") from None
    except (OSError, ValueError) as error:
        raise ExcitationError(
            f"plan {path} cannot be read: {error}; give the JSON that `jointbench plan` wrote"
        ) from error
    if isinstance(values, dict) and is_sealed(text) and (changed := what_changed(text, cast(dict[str, Any], values))):
        raise ExcitationError(f"plan {path} {changed}; make one anew with `jointbench plan`")
    try:
        return Excitation.from_dict(values)
    except ExcitationError as error:
        raise ExcitationError(f"plan {path}: {error}; make one anew with `jointbench plan`") from error
