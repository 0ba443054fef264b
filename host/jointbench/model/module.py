"""Modules that are bolted together to an arm: the catalogue of their types, and the robot file of a chain of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import tomli_w

from jointbench.errors import RobotError
from jointbench.model.robot_file import VERSION
from jointbench.model.table import Table, read_table

BASE = "base"
"""The file of what the first module is bolted onto."""

_JOINT_KEYS = ("velocity_deg_s", "acceleration_deg_s2", "torque_Nm")
_FLANGE_KEYS = ("alpha_deg", "a_mm", "d_mm")


@dataclass(frozen=True)
class Flange:
    """Where the next module is bolted on, by modified Denavit-Hartenberg in the frame of the link that carries it.

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
    """A module that is there.

    Attributes:
        joint: what its joint shall be called.
        type: "TYPE.FORM" of the catalogue.
        serial: its serial number, its own in the whole make.
        where: what it is called in errors, such as "j3 (node 3)".
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
    below = "the base"
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
        if twin := serials.get(module.serial):
            raise RobotError(
                f"{module.where}: module {module.serial!r} answers at {twin.where}, too; each module has a serial "
                "number of its own. Correct `module` in the config.json of one of these boards"
            )
        if kind.interface not in carrier.carries:
            raise RobotError(
                f"{module.where}: {kind.name} has interface {kind.interface}, and {below} carries "
                f"{', '.join(carrier.carries) or 'no module'}; put the modules together, or number their nodes, anew"
            )
        joints.append(_joint(module, kind, carrier))
        serials[module.serial] = module
        chain.append(kind)
        carrier, below = kind.flange, f"{kind.name} of {module.where}"
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
    carries, place = table.texts("carries"), table.table("flange")
    alpha, a, d = (place.number(key) for key in _FLANGE_KEYS)
    flange = Flange(carries, alpha, a, d, place.number("theta_deg", 0.0))
    place.finish()
    return flange
