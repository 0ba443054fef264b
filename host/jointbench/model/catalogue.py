"""Robots by name or by file, and the catalogue of modules that are bolted together to an arm.

Values of drives are written into the text of a robot file, whose comments and everything else stay as they are.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import tomli_w

from jointbench.errors import FileError, RobotError
from jointbench.files import text_of
from jointbench.model.locked_joints import LOCK, read_locks, with_locked
from jointbench.model.robot import Robot
from jointbench.model.robot_file import VERSION, read_robot_file
from jointbench.model.table import Table, read_table
from jointbench.model.urdf import read_urdf
from jointbench.model.variants import SUFFIXES, chain_of, split_reference

BASE = "base"
"""Name of the file of the base, which the first module is bolted onto."""

_JOINT_KEYS = ("velocity_deg_s", "acceleration_deg_s2", "torque_Nm")

_FLANGE_KEYS = ("alpha_deg", "a_mm", "d_mm")


def load_robot(name_or_path: str | Path, *, floating_base: bool = False) -> Robot:
    """Load a robot from the library by name, or from a robot file by path.

    Args:
        name_or_path: a name from `library_names()`, or the path of a .toml robot file or a .urdf. With ":N" behind it
            only the first N joints of that robot, which must be a chain: "modular7:3"; with ":lock=JOINT,JOINT=0.1"
            these joints are held still, at home or at a position [rad or m].
        floating_base: whether the root link of a .urdf is free to move; a robot file says so itself.

    Returns:
        The robot; look at its `warnings` before trusting its inertias.

    Raises:
        RobotError: neither a name of the library nor an existing .toml or .urdf file; or it has no such chain.
        FileError: the file is there, but an entry in it is wrong; or the base is asked to move against a robot
            file that does not say so.

    >>> load_robot("cobot6").n_joints
    6
    """
    text, modules = split_reference(str(name_or_path))
    if modules is not None:
        return part_of(load_robot(text, floating_base=floating_base), modules)
    if text in library_names():
        with resources.as_file(_library() / f"{text}.toml") as path:
            return _from_robot_file(path, floating_base)
    path = Path(text)
    if path.suffix in SUFFIXES and path.is_file():
        urdf = path.suffix == ".urdf"
        return read_urdf(path, floating_base=floating_base) if urdf else _from_robot_file(path, floating_base)
    if path.is_file():
        raise RobotError(f"robot {text!r}: a robot file ends in {' or '.join(SUFFIXES)}; this is another kind of file")
    matches = difflib.get_close_matches(text, library_names(), 1)
    reason = "there is no such file" if path.suffix in SUFFIXES else "not in the library"
    hint = f" (did you mean {matches[0]}?)" if matches else ""
    raise RobotError(
        f"robot {text!r}: {reason}{hint}; the library has {', '.join(library_names())}, or give the path of a .toml "
        f"robot file or of a .urdf"
    )


def as_robot(robot: Robot | str | Path) -> Robot:
    """Return a robot as it is, and that of a name or path as `load_robot` does.

    Raises:
        RobotError, FileError: as of `load_robot`.
    """
    return robot if isinstance(robot, Robot) else load_robot(robot)


def part_of(robot: Robot, part: str) -> Robot:
    """Return the robot of the first joints, or with joints that are held still, as what stands behind the ":" says.

    Raises:
        RobotError: as `chain_of`, `read_locks` and `with_locked`.
    """
    if part.startswith(LOCK):
        return with_locked(robot, read_locks(part.removeprefix(LOCK)))
    return chain_of(robot, part)


def _from_robot_file(path: Path, floating_base: bool) -> Robot:
    robot = read_robot_file(path)
    if floating_base and robot.base_link is None:
        raise FileError(
            f"{path.name}: the robot's base is fixed; write floating_base = true in the file, and [base_link] with its "
            f"inertia"
        )
    return robot


def from_folder(reference: str, folder: Path) -> str:
    """Resolve a robot that a file in this folder names: a name of the library as it is, a path from the folder on."""
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


@dataclass(frozen=True)
class Flange:
    """Place of the next module, by modified Denavit-Hartenberg in the frame of the link that carries it.

    Attributes:
        carries: the interfaces that fit it.
        alpha_deg, a_mm, d_mm, theta_deg: from the link's frame to the flange, whose z is the next joint's axis.
    """

    carries: tuple[str, ...]
    alpha_deg: float
    a_mm: float
    d_mm: float
    theta_deg: float


@dataclass(frozen=True)
class ModuleType:
    """A module of the catalogue in one of its forms: a joint, its drive, and the body that moves with it.

    Attributes:
        name: "TYPE.FORM", which is what its board announces.
        interface: by which it is bolted on.
        flange_to_frame_mm: from the flange below it to the origin of its joint's frame, along the joint's axis.
        joint: limits of the joint as a robot file has them, by key.
        drive, link: tables of a robot file.
        flange: what it carries, and where.
        source: where its numbers come from.
    """

    name: str
    interface: str
    flange_to_frame_mm: float
    joint: Mapping[str, Any]
    drive: Mapping[str, Any]
    link: Mapping[str, Any]
    flange: Flange
    source: str


@dataclass(frozen=True)
class Module:
    """A module of an arm.

    Attributes:
        joint: name of its joint.
        type: "TYPE.FORM" of the catalogue.
        serial: its serial number, its own in the whole make.
        where: its name in errors, such as "j3 (node 3)".
    """

    joint: str
    type: str
    serial: str
    where: str


def module_types() -> dict[str, ModuleType]:
    """All modules of the catalogue, by what their boards announce.

    >>> module_types()["type2.fork"].interface
    'F110'
    """
    return _catalogue()[0]


def assemble(name: str, modules: Sequence[Module]) -> str:
    """Text of the robot file of a chain of modules; the first is bolted to the base.

    Args:
        name: of the robot.
        modules: from the base on.

    Raises:
        RobotError: a type that is not in the catalogue, a serial number twice, an interface that does not fit the
            flange below it.
    """
    types, carrier, gravity = _catalogue()
    carrier_name = "the base"
    serials: dict[str, Module] = {}
    chain: list[ModuleType] = []
    joints: list[dict[str, Any]] = []
    for module in modules:
        kind = types.get(module.type)
        if kind is None:
            raise RobotError(
                f"{module.where}: module {module.serial!r} is of type {module.type!r}, which the catalogue has not; it "
                f"has {', '.join(types)}. Correct `module` in the board's config.json"
            )
        if duplicate := serials.get(module.serial):
            raise RobotError(
                f"{module.where}: module {module.serial!r} answers at {duplicate.where}, too; each module has a serial "
                "number of its own. Correct `module` in the config.json of one of these boards"
            )
        if kind.interface not in carrier.carries:
            raise RobotError(
                f"{module.where}: {kind.name} has interface {kind.interface}, and {carrier_name} carries "
                f"{', '.join(carrier.carries) or 'no module'}; put the modules together, or number their nodes, anew"
            )
        joints.append(_joint(module, kind, carrier))
        serials[module.serial] = module
        chain.append(kind)
        carrier, carrier_name = kind.flange, f"{kind.name} of {module.where}"
    units = ", ".join(f"{module.type} {module.serial}" for module in modules)
    return tomli_w.dumps(
        {
            "version": VERSION,
            "name": name,
            "description": f"Modules from the base on: {units}.",
            "source": "; ".join(dict.fromkeys(f"{kind.name.split('.')[0]}: {kind.source}" for kind in chain)),
            "gravity_m_s2": gravity,
            "joints": joints,
        }
    )


def _joint(module: Module, kind: ModuleType, carrier: Flange) -> dict[str, Any]:
    """The joint's table: from the frame below to the flange there, and on along the joint's own axis."""
    return {
        "name": module.joint,
        "kind": "revolute",
        "alpha_deg": carrier.alpha_deg,
        "a_mm": carrier.a_mm,
        "d_mm": carrier.d_mm + kind.flange_to_frame_mm,
        "theta_deg": carrier.theta_deg,
        **kind.joint,
        "link": {"name": f"{module.joint}_{kind.name}", **kind.link},
        "drive": dict(kind.drive),
    }


@lru_cache(maxsize=1)
def _catalogue() -> tuple[dict[str, ModuleType], Flange, list[float]]:
    """The types by name, the flange of the base, and gravity there."""
    base = _read(BASE)
    carrier, gravity = _flange(base), list(base.numbers("gravity_m_s2", 3))
    base.text("source")
    base.finish()
    names = sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))
    types = [kind for name in names if name != BASE for kind in _types(_read(name))]
    return {kind.name: kind for kind in types}, carrier, gravity


def _folder() -> Traversable:
    return resources.files("jointbench.model") / "modules"


def _read(name: str) -> Table:
    with resources.as_file(_folder() / f"{name}.toml") as path:
        table = read_table(path, "module")
    table.version(VERSION)
    return table


def _types(table: Table) -> list[ModuleType]:
    name, source = table.name("name"), table.text("source")
    interface = table.text("interface")
    offset = table.number("flange_to_frame_mm")
    limits = {key: table.positive(key) for key in _JOINT_KEYS}
    drive = table.values("drive")
    forms = [
        ModuleType(
            name=f"{name}.{form.name('name')}",
            interface=interface,
            flange_to_frame_mm=offset,
            joint={"position_deg": list(form.numbers("position_deg", 2)), **limits},
            drive=drive,
            link=form.values("link"),  # the robot file's reader judges them
            flange=_flange(form),
            source=source,
        )
        for form in table.tables("forms")
    ]
    table.finish()
    return forms


def _flange(table: Table) -> Flange:
    carries, entry = table.texts("carries"), table.table("flange")
    alpha, a, d = (entry.number(key) for key in _FLANGE_KEYS)
    flange = Flange(carries, alpha, a, d, entry.number("theta_deg", 0.0))
    entry.finish()
    return flange


_TABLE = re.compile(r"^\s*(\[\[?)\s*([\w.\s-]+?)\s*\]\]?\s*(#.*)?$")
_ENTRY = re.compile(r"^(\s*)([\w-]+)(\s*=\s*)([^#\n]*?)(\s*(?:#.*)?)$")


def robot_file_text(reference: str) -> tuple[Path | None, str]:
    """Return the path of a robot's file, None of one of the library, and its text.

    Args:
        reference: as for `load_robot`; of a part of a robot it is the whole one's file.

    Raises:
        FileError: the robot is a URDF, which has no place for values of drives.
    """
    name = split_reference(reference)[0]
    if name in library_names():
        return None, (resources.files("jointbench.model") / "library" / f"{name}.toml").read_text(encoding="utf-8")
    path = Path(name)
    if path.suffix != ".toml":
        raise FileError(
            f"{path.name} has no place for values of drives; `jointbench init {path.name}` writes a file that has"
        )
    return path, text_of(path)


def with_drive_values(
    text: str, values: Mapping[str, Mapping[str, float]], torque_limits: Mapping[str, float] | None = None
) -> str:
    """Return a robot file's text with values of joints' drives replaced, or added to their tables [joints.drive].

    Args:
        text: of the file.
        values: by joint, by key of the table.
        torque_limits: torque_Nm by joint [N·m], of those whose limit changes, too.

    Raises:
        FileError: the file writes a joint's drive in another way than as a table of its own; nothing is changed.

    >>> lines = ["[[joints]]", 'name = "j1"', "[joints.drive]", "ratio = 101 # a guess"]
    >>> with_drive_values(chr(10).join(lines), {"j1": {"ratio": 81.0}}).splitlines()[-1]
    'ratio = 81.0 # a guess'
    """
    before = tomllib.loads(text)
    wanted = deepcopy(before)
    names = [joint.get("name") for joint in before.get("joints", [])]
    limits = {name: {"torque_Nm": limit} for name, limit in (torque_limits or {}).items()}
    for name, joint in zip(names, wanted.get("joints", []), strict=True):
        joint.get("drive", {}).update(values.get(name, {}))
        joint.update(limits.get(name, {}))
    changed = _changed(text, *([dict(of.get(name, {})) for name in names] for of in (values, limits)))
    if _parsed(changed) != wanted:
        raise FileError(
            f"the drives of {', '.join(values)} are not written as tables [joints.drive] with a line for each value; "
            "write the values into the robot file by hand"
        )
    return changed


def _changed(text: str, values: list[dict[str, float]], limits: list[dict[str, float]]) -> str:
    lines: list[str] = []
    joint, left = -1, dict[str, float]()
    for line in text.splitlines():
        if header := _TABLE.match(line):
            lines = _with_added(lines, left)
            left = {}
            if header[1] == "[[" and header[2] == "joints":
                joint += 1
                left = dict(limits[joint])
            elif header[1] == "[" and header[2] == "joints.drive" and 0 <= joint < len(values):
                left = dict(values[joint])
        elif (entry := _ENTRY.match(line)) and entry[2] in left:
            line = f"{entry[1]}{entry[2]}{entry[3]}{left.pop(entry[2])!r}{entry[5]}"
        lines.append(line)
    return "\n".join(_with_added(lines, left)) + ("\n" if text.endswith("\n") else "")


def _with_added(lines: list[str], left: Mapping[str, float]) -> list[str]:
    """Add entries to the table that ends here, before the empty lines and comments that belong to the next one."""
    end = len(lines)
    while left and end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return [*lines[:end], *(f"{key} = {value!r}" for key, value in left.items()), *lines[end:]]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
