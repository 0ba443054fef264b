"""Robots by name or by file."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from jointbench.errors import UnknownRobot
from jointbench.robot.robot import Robot
from jointbench.robot.robot_file import read_robot_file
from jointbench.robot.urdf import read_urdf

_READERS = {".toml": read_robot_file, ".urdf": read_urdf}


def load_robot(name_or_path: str | Path) -> Robot:
    """Load a robot from the library by name, or from a robot file by path.

    Args:
        name_or_path: a name from `library_names()`, or the path of a .toml robot file or a .urdf.

    Returns:
        The robot; look at its `warnings` before trusting its inertias.

    Raises:
        UnknownRobot: neither a name of the library nor an existing .toml or .urdf file.
        RobotFileError: the file is there, but an entry in it is wrong.

    >>> load_robot("cobot6").n_joints
    6
    """
    text = str(name_or_path)
    if text in library_names():
        with resources.as_file(_library() / f"{text}.toml") as path:
            return read_robot_file(path)
    path = Path(text)
    read = _READERS.get(path.suffix)
    if read and path.is_file():
        return read(path)
    reason = "there is no such file" if read else "not in the library"
    raise UnknownRobot(
        f"robot {text!r}: {reason}; the library has {', '.join(library_names())}, or give the path of a .toml robot "
        f"file or of a .urdf"
    )


def library_names() -> tuple[str, ...]:
    """Names of the robots that come with the package, in alphabetical order."""
    files = (entry.name for entry in _library().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def _library() -> Traversable:
    return resources.files("jointbench.robot") / "library"
