"""The robots of the library, by what their files say of them: no robot is built, which takes as long as numpy does."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jointbench

_LIBRARY = Path(jointbench.__file__).parent / "robot" / "library"


def library_descriptions() -> dict[str, str]:
    """The sentence of each robot that comes with the package, by name in alphabetical order."""
    files = sorted(_LIBRARY.glob("*.toml"))
    return {path.stem: str(tomllib.loads(path.read_text(encoding="utf-8"))["description"]) for path in files}
