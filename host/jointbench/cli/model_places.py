"""Where a model is that a command was given, and the run it was fitted to."""

from __future__ import annotations

from pathlib import Path

from jointbench.errors import FitError
from jointbench.identification import Model
from jointbench.recording import open_run
from jointbench.recording.run_directory import PROVENANCE

_MODEL = "model.json"


def model_file(given: Path) -> Path:
    """A model's file: as given, or the one in a run directory.

    Raises:
        FitError: the directory holds none.
    """
    if not given.is_dir():
        return given
    if not (given / _MODEL).is_file():
        raise FitError(
            f"{given} holds no {_MODEL}; fit the run first, `jointbench fit {given}`, or give a model file in its place"
        )
    return given / _MODEL


def own_run(place: Path, model: Model) -> Path | None:
    """The run a model was fitted to, where it is still there: the folder the model is in, or what the model names."""
    fitted = {each.get("sha256") for each in (model.provenance, *model.provenance.get("runs", ()))}
    for folder in (place.parent, Path(str(model.provenance.get("run", "")) or "-")):
        if (folder / PROVENANCE).is_file() and open_run(folder).sha256 in fitted:
            return folder
    return None
