"""Robots as values that JSON knows, as files of what was identified hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jointbench.errors import ModelFileError
from jointbench.identification.plain_values import check_type, frozen
from jointbench.robot import (
    Capsule,
    Compensation,
    Coupling,
    Drive,
    Foot,
    Frame,
    Joint,
    Link,
    LinkAxis,
    LinkKind,
    Mimic,
    Robot,
)
from jointbench.robot.compensation import KINDS


def robot_values(robot: Robot) -> dict[str, Any]:
    """All fields of a robot, with compensations by their kind and names."""
    compensations = [_compensation_values(each) for each in robot.compensations]
    return dataclasses.asdict(dataclasses.replace(robot, compensations=())) | {"compensations": compensations}


def robot_from(values: Mapping[str, Any], compensations: Sequence[Compensation] = ()) -> Robot:
    """The robot of `robot_values`, also where JSON has made lists of its tuples.

    Args:
        values: its fields.
        compensations: those that are functions of one's own, which the values only name.

    Raises:
        ModelFileError: such a function is not given.
        KeyError, TypeError, ValueError: the values are not a robot's.
    """
    own = {each.name: each for each in compensations}
    parts: dict[str, Any] = {
        "joints": tuple(_joint(joint) for joint in values["joints"]),
        "drives": tuple(Drive(**drive) for drive in values["drives"]),
        "couplings": tuple(_coupling(coupling) for coupling in values["couplings"]),
        "frames": tuple(Frame(**frozen(frame)) for frame in values["frames"]),
        # Files written before robots had capsules, bases that move, feet or kinds of links, have none.
        "capsules": tuple(Capsule(**frozen(capsule)) for capsule in values.get("capsules", ())),
        "base_link": Link(**frozen(base_link)) if (base_link := values.get("base_link")) else None,
        "compensations": tuple(_compensation(each, own) for each in values.get("compensations", ())),
        "feet": tuple(Foot(**frozen(foot)) for foot in values.get("feet", ())),
        "link_kinds": tuple(_link_kind(kind) for kind in values.get("link_kinds", ())),
    }
    robot = Robot(**frozen(values) | parts)
    check_type(dataclasses.replace(robot, compensations=()), Robot, "robot")
    for k, joint in enumerate(robot.joints):
        if not -1 <= joint.parent < k:
            raise ValueError(f"joint {joint.name!r} has the parent {joint.parent}, and must have one before it")
    return robot


def _compensation_values(compensation: Compensation) -> dict[str, Any]:
    """All but the function, which `_compensation` finds by the kind."""
    return {name: getattr(compensation, name) for name in ("name", "joints", "parameters", "kind")}


def _compensation(values: dict[str, Any], own: Mapping[str, Compensation]) -> Compensation:
    name, joints, parameters = values["name"], tuple(values["joints"]), tuple(values["parameters"])
    if values["kind"] in KINDS:
        return KINDS[values["kind"]](name, *joints)
    given = own.get(name)
    if given is None or (given.joints, given.parameters) != (joints, parameters):
        raise ModelFileError(
            f"the model has the compensation {name!r} of joints {', '.join(joints)} with parameters "
            f"{', '.join(parameters)}, a function that no file holds; give it: "
            f"load_model(path, compensations=[Compensation({name!r}, {joints!r}, {parameters!r}, columns)])"
        )
    return given


def _coupling(values: dict[str, Any]) -> Coupling:
    parts: dict[str, Any] = {"more": tuple(Drive(**drive) for drive in values.get("more", ()))}
    return Coupling(**frozen(values) | parts)


def _joint(values: dict[str, Any]) -> Joint:
    mimic = values["mimic"]
    parts: dict[str, Any] = {"link": Link(**frozen(values["link"])), "mimic": Mimic(**mimic) if mimic else None}
    return Joint(**frozen(values) | parts)


def _link_kind(values: Mapping[str, Any]) -> LinkKind:
    return LinkKind(values["name"], tuple(LinkAxis(**frozen(axis)) for axis in values["links"]))
