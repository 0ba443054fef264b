"""Plans as JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from jointbench.errors import ExcitationError
from jointbench.excitation.excitation import Excitation
from jointbench.files import is_sealed, json_values, text_of, what_changed


def load_excitation(path: str | Path) -> Excitation:
    """Read a motion that `jointbench plan` or `Excitation.save` wrote.

    Args:
        path: of the file.

    Raises:
        ExcitationError: there is no such file, it holds no plan, or was changed after it was written.

    >>> path = jb.random_excitation(jb.load_robot("cobot6:2"), period=4.0, seed=1).save("motion.json")
    >>> jb.load_excitation(path).robot_name
    'cobot6:2'
    """
    try:
        text = text_of(Path(path))
        values: Any = json_values(text)
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


def as_excitation(motion: Excitation | str | Path) -> Excitation:
    """Return a motion as it is, or read the file whose path is given.

    Raises:
        ExcitationError: as `load_excitation`; or it is neither a motion nor a path.
    """
    if isinstance(motion, Excitation):
        return motion
    if not isinstance(motion, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExcitationError(f"{type(motion).__name__} is given as a motion; give a plan, or its file")
    return load_excitation(motion)
