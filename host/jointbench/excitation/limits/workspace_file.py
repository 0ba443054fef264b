"""The workspace file: where a robot may move, in TOML. It is the cell's and not the robot's, so a file of its own.

version = 1
table_mm = 0                                  # all of the robot stays above it
floor = true                                  # without a table: whether the floor is at the base of a robot that stands
clearance_mm = 20                             # left between the robot's capsules, which is so where it is not given

[[points]]                                    # stays above the table and inside its box
link = "flange_and_tool"                      # a link, or a frame that is fixed to one
offset_mm = [0, 0, 80]                        # in that link's frame; its origin where not given
lowest_mm = { x = -500, z = 100 }             # corners of the box in the base frame; what is not given has no face
highest_mm = { x = 500 }

[[excepted]]                                  # may touch
links = ["wrist_1", "flange_and_tool"]        # or a link and "table"
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

from jointbench.arrays import Vector3
from jointbench.errors import RobotFileError, WorkspaceError
from jointbench.excitation.limits.workspace import Workspace, WorkspacePoint
from jointbench.robot.table import Table, read_table

VERSION = 1


def read_workspace(path: str | Path) -> Workspace:
    """Read a workspace from its TOML file.

    Args:
        path: the file; this module's docstring shows its form.

    Returns:
        The workspace, in metres; its names are checked when it meets a robot.

    Raises:
        WorkspaceError: the file cannot be read, or an entry is missing, unknown, mistyped or impossible.

    >>> cell = jb.read_workspace("cell.toml")
    >>> cell.table_height, cell.clearance
    (0.0, 0.02)
    """
    path = Path(path)
    try:
        return _workspace(read_table(path, "workspace"))
    except RobotFileError as error:  # what every table of a file raises
        raise WorkspaceError(str(error)) from error
    except WorkspaceError as error:
        raise WorkspaceError(f"{path.name}: {error}") from error


def _workspace(table: Table) -> Workspace:
    version = table.number("version")
    if version != VERSION:
        table.fault(f"version = {version:g} is not known; this release reads version {VERSION}")
    workspace = Workspace(
        table_height=1e-3 * table.number("table_mm") if table.has("table_mm") else None,
        points=tuple(_point(entry) for entry in table.tables("points")),
        clearance=1e-3 * table.number("clearance_mm") if table.has("clearance_mm") else None,
        excepted=tuple(_pair(entry) for entry in table.tables("excepted")),
        floor=table.flag("floor", True),
    )
    table.finish()
    return workspace


def _point(table: Table) -> WorkspacePoint:
    point = WorkspacePoint(
        link=table.text("link"),
        offset=cast(Vector3, tuple(1e-3 * value for value in table.numbers("offset_mm", 3, (0.0, 0.0, 0.0)))),
        lowest=_corner(table, "lowest_mm", -math.inf),
        highest=_corner(table, "highest_mm", math.inf),
    )
    table.finish()
    return point


def _corner(table: Table, key: str, absent: float) -> Vector3:
    if not table.has(key):
        return absent, absent, absent
    entry = table.table(key)
    x, y, z = (1e-3 * entry.number(axis) if entry.has(axis) else absent for axis in "xyz")
    entry.finish()
    return x, y, z


def _pair(table: Table) -> tuple[str, str]:
    links = table.texts("links")
    if len(links) != 2:
        table.fault(f"links = {list(links)!r} must be two names: of two links, or of a link and 'table'")
    table.finish()
    return links[0], links[1]
