"""Tables of a robot file that are about bodies: links with their inertias, and links that are alike."""

from __future__ import annotations

from typing import cast

import numpy as np

from jointbench.arrays import Matrix3, Vector3
from jointbench.errors import RobotError
from jointbench.model.joint import Link, LinkAxis, LinkKind, Placement
from jointbench.model.robot import Robot
from jointbench.model.table import Table

_ABOUT = ("center_of_mass", "frame")


def read_link(table: Table, joint_name: str) -> Link:
    """Read the link of a joint; a joint without one carries an unknown body of the joint's name."""
    return read_body(table.table("link"), joint_name) if table.has("link") else Link(joint_name)


def read_body(entry: Table, default_name: str) -> Link:
    """Read a body whose inertia may be left out as unknown."""
    name = entry.name("name", default_name)
    assumed = entry.flag("assumed", False)
    keys = ("mass_kg", "center_of_mass_mm", "inertia_kg_m2")
    given_keys = [key for key in keys if entry.has(key)]
    if given_keys and len(given_keys) < len(keys):
        missing = ", ".join(key for key in keys if key not in given_keys)
        entry.fault(f"link {name!r} has {', '.join(given_keys)} but not {missing}; give all three or none")
    if not given_keys:
        entry.finish()
        return Link(name, assumed=assumed)
    center = tuple(1e-3 * value for value in entry.numbers("center_of_mass_mm", 3))
    inertia = read_inertia(entry.table("inertia_kg_m2"))
    mass = entry.number("mass_kg")
    if entry.text("inertia_about", _ABOUT[0], _ABOUT) == "frame":
        inertia = _about_center(inertia, mass, center)
    entry.finish()
    return Link(name, mass, cast(Vector3, center), inertia, assumed)


def _about_center(inertia: Matrix3, mass: float, center: tuple[float, ...]) -> Matrix3:
    """Move an inertia from the frame's origin to the centre of mass, axes as they are (parallel-axis theorem)."""
    c = np.array(center)
    about_center = np.array(inertia) - mass * (c @ c * np.eye(3) - np.outer(c, c))
    return cast(Matrix3, tuple(tuple(row) for row in about_center.tolist()))


def read_inertia(table: Table) -> Matrix3:
    """Read an inertia tensor [kg·m²]; what is not written off its diagonal is zero."""
    xx, yy, zz = (table.number(key) for key in ("xx", "yy", "zz"))
    xy, xz, yz = (table.number(key, 0.0) for key in ("xy", "xz", "yz"))
    table.finish()
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def read_link_kind(table: Table, robot: Robot) -> LinkKind:
    """Read a kind of links that are alike, and the axis of each."""
    name = table.name("name")
    table.where = f"{table.where.rpartition(': ')[0]}: link kind {name!r}"
    entries = table.tables("links")
    table.finish()
    try:
        return LinkKind(name, tuple(_link_axis(entry, robot) for entry in entries))
    except RobotError as error:
        table.fault(str(error))


def _link_axis(table: Table, robot: Robot) -> LinkAxis:
    """Read a link's axis, in the link's frame."""
    link = table.text("link")
    known = [body.name for body in (robot.base_link, *(joint.link for joint in robot.joints)) if body is not None]
    if link not in known:
        table.fault(f"no link {link!r} with a mass of its own; there are {', '.join(known)}")
    frame = robot.frame(link)
    start, end = (
        Placement(frame.rotation, frame.origin).point(
            cast(Vector3, tuple(1e-3 * value for value in table.numbers(key, 3)))
        )
        for key in ("from_mm", "to_mm")
    )
    table.finish()
    return LinkAxis(link, start, end)
