"""Robots by name or by file."""

import difflib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from jointbench.errors import RobotError, RobotFileError
from jointbench.model.robot import Robot
from jointbench.model.robot_file import read_robot_file
from jointbench.model.urdf import read_urdf
from jointbench.model.variants import SUFFIXES, chain_of, split_reference


def load_robot(name_or_path: str | Path, *, floating_base: bool = False) -> Robot:
    """Load a robot from the library by name, or from a robot file by path.

    Args:
        name_or_path: a name from `library_names()`, or the path of a .toml robot file or a .urdf. With ":N" behind it
            only the first N joints of that robot, which must be a chain: "modular7:3".
        floating_base: whether the root link of a .urdf is free to move; a robot file says so itself.

    Returns:
        The robot; look at its `warnings` before trusting its inertias.

    Raises:
        RobotError: neither a name of the library nor an existing .toml or .urdf file; or it has no such chain.
        RobotFileError: the file is there, but an entry in it is wrong; or the base is asked to move against a robot
            file that does not say so.

    >>> load_robot("cobot6").n_joints
    6
    """
    text, modules = split_reference(str(name_or_path))
    if modules is not None:
        return chain_of(load_robot(text, floating_base=floating_base), modules)
    if text in library_names():
        with resources.as_file(_library() / f"{text}.toml") as path:
            return _from_robot_file(path, floating_base)
    path = Path(text)
    if path.suffix in SUFFIXES and path.is_file():
        urdf = path.suffix == ".urdf"
        return read_urdf(path, floating_base=floating_base) if urdf else _from_robot_file(path, floating_base)
    if path.is_file():
        raise RobotError(f"robot {text!r}: a robot file ends in {' or '.join(SUFFIXES)}; this is another kind of file")
    near = difflib.get_close_matches(text, library_names(), 1)
    reason = "there is no such file" if path.suffix in SUFFIXES else "not in the library"
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise RobotError(
        f"robot {text!r}: {reason}{meant}; the library has {', '.join(library_names())}, or give the path of a .toml "
        f"robot file or of a .urdf"
    )


def _from_robot_file(path: Path, floating_base: bool) -> Robot:
    robot = read_robot_file(path)
    if floating_base and robot.base_link is None:
        raise RobotFileError(
            f"{path.name}: its base does not move; write floating_base = true in the file, and [base_link] with its "
            f"inertia"
        )
    return robot


def from_folder(reference: str, folder: Path) -> str:
    """A robot as a file in this folder names it: a name of the library as it is, a path from there on."""
    return reference if split_reference(reference)[0] in library_names() else str(folder / reference)


def library_names() -> tuple[str, ...]:
    """Names of the robots that come with the package, in alphabetical order.

    >>> "cobot6" in library_names()
    True
    """
    files = (entry.name for entry in _library().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def _library() -> Traversable:
    return resources.files("jointbench.model") / "library"
