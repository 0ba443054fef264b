"""The directory of a run: made once with its provenance, never written over."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from jointbench.errors import RunError
from jointbench.recording.toml_text import toml_text
from jointbench.robot import Robot, library_names, load_robot

VERSION = 1


def create_run_directory(directory: str | Path, provenance: Mapping[str, Any]) -> Path:
    """Create a run's directory with robot.toml (a copy of the robot file) and run.toml (everything else known).

    Args:
        directory: to create, with its parents.
        provenance: plain data; `robot` must be a library name or the path of a robot file.

    Returns:
        The directory's path.

    Raises:
        RunError: the directory exists already or cannot be made, or `robot` is missing.
        UnknownRobot, RobotFileError: the robot cannot be loaded.
    """
    if "robot" not in provenance:
        raise RunError("a run needs provenance['robot']: a name of the robot library or the path of a robot file")
    name = str(provenance["robot"])
    robot, text = load_robot(name), _robot_text(name)
    values = {"version": VERSION, "jointbench": package_version(), **provenance, "robot": robot.name}
    run_text = toml_text(values)
    path = Path(directory)
    try:
        path.mkdir(parents=True)
        (path / "robot.toml").write_bytes(text)
        (path / "run.toml").write_text(run_text, encoding="utf-8")
    except FileExistsError:
        raise RunError(f"run directory {path} exists already; a run is never written over, name another") from None
    except OSError as error:
        raise RunError(f"run directory {path} cannot be written: {error}") from error
    return path


def read_provenance(path: Path) -> dict[str, Any]:
    """Read what run.toml says.

    Raises:
        RunError: the directory has no readable run.toml, or one of another version.
    """
    if not path.is_dir():
        raise RunError(f"{path} is not a run: there is no such directory; runs are directories that hold a run.toml")
    try:
        values = tomllib.loads((path / "run.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} is not a run: it holds no run.toml") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RunError(f"{path / 'run.toml'} cannot be read: {error}") from error
    if values.get("version") != VERSION:
        raise RunError(f"{path / 'run.toml'}: version = {values.get('version')!r}; this release reads {VERSION}")
    return values


def read_robot(path: Path) -> Robot:
    """Load the robot that was recorded, from the run's own copy of its file."""
    return load_robot(path / "robot.toml")


def package_version() -> str:
    """Version of this package, or "source" when it runs from a checkout."""
    try:
        return metadata.version("jointbench")
    except metadata.PackageNotFoundError:
        return "source"


def _robot_text(name: str) -> bytes:
    if name in library_names():
        return (resources.files("jointbench.robot") / "library" / f"{name}.toml").read_bytes()
    return Path(name).read_bytes()
