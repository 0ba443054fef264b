"""Workspace of a robot, above its table, inside boxes and not into itself; and its file, in TOML.

The file is the cell's and not the robot's, so it stands by itself:

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from jointbench.arrays import Array, Vector3
from jointbench.errors import ExcitationError, FileError, InfeasibleExcitation
from jointbench.excitation.limits.motion_limits import Limit, SpaceLimit
from jointbench.excitation.limits.space_limits import (
    CollisionLimit,
    Face,
    FaceLimit,
    PlacedBox,
    colliding_pairs,
    faces_above_table,
    faces_of_box,
    unique_names,
)
from jointbench.model import Robot
from jointbench.model.table import Table, read_table

TABLE = "table"
"""Name of the table among the exceptions."""

DEFAULT_CLEARANCE = 0.02
"""Left between capsules where nobody says how much [m]: servos follow to some millimetres, and capsules are guesses."""

_UPRIGHT = math.cos(math.radians(30.0))
"""Cosine of the angle between gravity and down in the base frame up to which a robot stands on its base."""

_INFINITE = math.inf

VERSION = 1


@dataclass(frozen=True)
class WorkspacePoint:
    """A chosen point of a robot, which stays above the table and inside a box.

    Attributes:
        link: name of the link that it moves with, or of a frame that is fixed to one.
        offset: in the frame of that link [m].
        lowest, highest: corners of its box in the base frame [m]; infinite where there is no face.

    Raises:
        ExcitationError: the box is empty, or a number is not one.
    """

    link: str
    offset: Vector3 = (0.0, 0.0, 0.0)
    lowest: Vector3 = (-_INFINITE, -_INFINITE, -_INFINITE)
    highest: Vector3 = (_INFINITE, _INFINITE, _INFINITE)

    def __post_init__(self) -> None:
        """Check the numbers."""
        if len(self.offset) != 3 or not all(map(math.isfinite, self.offset)):
            raise ExcitationError(f"point on {self.link!r}: offset {self.offset} m must be three finite numbers")
        for name, corner in (("lowest", self.lowest), ("highest", self.highest)):
            if len(corner) != 3:
                raise ExcitationError(f"point on {self.link!r}: {name} {corner} m must be three numbers, x, y and z")
        for axis, low, high in zip("xyz", self.lowest, self.highest, strict=True):
            if not low < high:
                raise ExcitationError(
                    f"point on {self.link!r}: its box goes from {axis} = {low:g} m to {high:g} m; "
                    f"the lowest corner must be below the highest"
                )


@dataclass(frozen=True)
class Workspace:
    """Space in which a robot may move.

    Attributes:
        table_height: all moving capsules and all points stay above it, in the base frame [m]; None where none is known.
        points: those chosen, with their boxes.
        clearance: what is left between capsules of the robot, apart from those of links that a joint connects [m]; None
            for 20 mm, where the robot has capsules.
        excepted: pairs of names of links that may touch, or of a link and "table".
        floor: whether capsules stay above a floor at the base's height where no table is known, unless the robot hangs
            or is below that at home already.

    Raises:
        ExcitationError: a number is not one, or the clearance is negative.

    >>> cell = jb.Workspace(table_height=0.0, clearance=0.02)
    >>> motion = jb.random_excitation(jb.load_robot("cobot6"), period=5.0, workspace=cell)
    >>> min(motion.distances.values()) > 0.0  # room beyond the clearance
    True
    """

    table_height: float | None = None
    points: tuple[WorkspacePoint, ...] = ()
    clearance: float | None = None
    excepted: tuple[tuple[str, str], ...] = ()
    floor: bool = True

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.clearance is not None and not (math.isfinite(self.clearance) and self.clearance >= 0.0):
            raise ExcitationError(f"clearance = {self.clearance:g} m must be a number of metres, 0 or more")
        if self.table_height is not None and not math.isfinite(self.table_height):
            raise ExcitationError(
                f"table_height = {self.table_height:g} m must be a finite number, or None for no table"
            )

    def limits(self, robot: Robot, home: Array | None = None) -> tuple[SpaceLimit, ...]:
        """The limits that it sets to a robot's motions; faces that home is beyond have a usage above 1 there.

        Args:
            robot: with capsules, where there is a table or a clearance to keep.
            home: where motions start [rad or m], shape (n_joints,); the robot's own where not given.

        Returns:
            One for the points' boxes, one for the table, one for the capsules; as many of them as have a meaning.

        Raises:
            ExcitationError: a name is not known, a point does not move, or there is nothing that could keep the table's
                height or the clearance.
            InfeasibleExcitation: capsules are too near to each other at home; it names all pairs of them.
        """
        home = np.asarray(robot.home if home is None else home, dtype=np.float64)
        self._check_names(robot)
        boxes = self._boxes(robot)
        box = [face for placed_box in boxes for face in faces_of_box(placed_box)]
        table = self._table(robot, boxes) or self._floor(robot, home)
        pairs = tuple(pair for pair in colliding_pairs(robot) if not self._may_touch(robot, *pair))
        if self.clearance and not robot.capsules:
            raise ExcitationError(
                f"robot {robot.name!r} has no capsules, so a clearance of {self.clearance:g} m between its links "
                f"cannot be kept; add [[capsules]] to its file, or <collision> shapes that are no meshes"
            )
        faces = tuple(FaceLimit(robot, home, group) for group in (box, table) if group)
        if not pairs:
            return faces
        collision = CollisionLimit(robot, home, pairs, DEFAULT_CLEARANCE if self.clearance is None else self.clearance)
        _check_home(collision)
        return (*faces, collision)

    def _boxes(self, robot: Robot) -> list[PlacedBox]:
        """The points with their boxes, each in the frame of the link that moves it."""
        boxes: list[PlacedBox] = []
        for point, name in zip(self.points, unique_names([point.link for point in self.points]), strict=True):
            try:
                frame = robot.frame(point.link)
            except FileError as error:
                raise ExcitationError(f"point on {point.link!r}: {error}") from error
            if frame.joint < 0:
                raise ExcitationError(
                    f"point on {point.link!r}: that is the base of robot {robot.name!r}, which does not move; "
                    f"name a link that does"
                )
            local = np.array(frame.origin) + np.array(frame.rotation) @ point.offset
            place = cast(Vector3, tuple(local.tolist()))
            boxes.append(PlacedBox(name, frame.joint, place, point.lowest, point.highest))
        return boxes

    def _table(self, robot: Robot, boxes: list[PlacedBox]) -> list[Face]:
        """Faces that keep moving capsules and points above the table; the base does not move."""
        if self.table_height is None:
            return []
        moving = [capsule for capsule in robot.capsules if capsule.joint >= 0]
        if not moving and not boxes:
            raise ExcitationError(
                f"robot {robot.name!r} has no capsules, and the workspace no points, to be kept above the table at "
                f"{self.table_height:g} m; add [[capsules]] to the robot's file, or points to the workspace"
            )
        bodies = [
            (repr(capsule.link), capsule.joint, (capsule.start, capsule.end), capsule.radius)
            for capsule in moving
            if not self._excepts(capsule.link, TABLE)
        ]
        bodies += [(f"point {box.point!r}", box.joint, (box.local,), 0.0) for box in boxes]
        return [face for body in bodies for face in faces_above_table(*body, self.table_height)]

    def height(self, robot: Robot, home: Array | None = None) -> float | None:
        """Height that capsules stay above [m]: the table's, or that of the floor at the base; None without either."""
        if self.table_height is not None:
            return self.table_height
        return 0.0 if self._floor(robot, np.asarray(robot.home if home is None else home, dtype=np.float64)) else None

    def _floor(self, robot: Robot, home: Array) -> list[Face]:
        """Faces that keep a standing robot above the floor that is assumed, if all of it is above that at home."""
        if not self.floor or self.table_height is not None or not stands_upright(robot):
            return []
        floor_workspace = replace(self, table_height=0.0, points=())
        faces = floor_workspace._table(robot, []) if any(capsule.joint >= 0 for capsule in robot.capsules) else []
        rest = np.zeros_like(home[None])
        usage = FaceLimit(robot, home, faces).usage((home[None], rest, rest, rest)) if faces else np.empty((1, 0))
        return [] if np.any(usage >= 1.0) else faces

    def _may_touch(self, robot: Robot, first: int, second: int) -> bool:
        return self._excepts(robot.capsules[first].link, robot.capsules[second].link)

    def _excepts(self, first: str, second: str) -> bool:
        return (first, second) in self.excepted or (second, first) in self.excepted

    def _check_names(self, robot: Robot) -> None:
        """Refuse exceptions that mean nothing: a misspelt one would leave a pair watched, or so it would seem."""
        known = dict.fromkeys(capsule.link for capsule in robot.capsules)
        for pair in self.excepted:
            for name in pair:
                if name not in known and name != TABLE:
                    raise ExcitationError(
                        f"excepted pair {pair[0]!r}, {pair[1]!r}: robot {robot.name!r} has no capsule on {name!r}; "
                        f"there are {', '.join(map(repr, (*known, TABLE)))}"
                    )


def _check_home(limit: CollisionLimit) -> None:
    """Refuse a home at which capsules touch: all pairs at once, as often none of them means that the robot does."""
    q = limit.home[None]
    usage = limit.usage((q, 0.0 * q, 0.0 * q, 0.0 * q))[0]
    touching = sorted(np.flatnonzero(usage >= 1.0).tolist(), key=lambda pair: -usage[pair])
    if touching:
        pairs = ([repr(limit.robot.capsules[i].link) for i in limit.pairs[pair]] for pair in touching)
        links = dict.fromkeys(" and ".join(pair) for pair in pairs)
        raise InfeasibleExcitation(
            f"at home, before anything moves, {limit.describe(touching[0], float(usage[touching[0]]))}; choose another "
            f"home, a smaller clearance, or except links that may touch, as capsules are larger than what is in them. "
            f"Too near are {'; '.join(links)}"
        )


def stands_upright(robot: Robot) -> bool:
    """True where gravity pulls a robot onto its base, not off it or aside."""
    gravity = np.array(robot.gravity)
    size = float(np.linalg.norm(gravity))
    return size > 0.0 and -gravity[2] / size > _UPRIGHT


def not_checked(robot: Robot, limits: Sequence[Limit]) -> str:
    """Describe what a motion's limits do not check in space, and why; "" where they check all.

    Args:
        robot: its capsules.
        limits: that the motion keeps.
    """
    if not robot.capsules:
        return "no capsules: self-collision and table NOT checked"
    missing = (
        []
        if any(isinstance(limit, CollisionLimit) for limit in limits) or not colliding_pairs(robot)
        else ["self-collision"]
    )
    if not any(name.startswith(TABLE) for limit in limits if isinstance(limit, FaceLimit) for name in limit.names):
        missing.append("table")
    return f"{' and '.join(missing)} NOT checked" if missing else ""


def read_workspace(path: str | Path) -> Workspace:
    """Read a workspace from its TOML file.

    Args:
        path: the file; this module's docstring shows its form.

    Returns:
        The workspace, in metres; its names are checked when it meets a robot.

    Raises:
        ExcitationError: the file cannot be read, or an entry is missing, unknown, mistyped or impossible.

    >>> cell = jb.read_workspace("cell.toml")
    >>> cell.table_height, cell.clearance
    (0.0, 0.02)
    """
    path = Path(path)
    try:
        return _workspace(read_table(path, "workspace"))
    except FileError as error:  # what every table of a file raises
        raise ExcitationError(str(error)) from error
    except ExcitationError as error:
        raise ExcitationError(f"{path.name}: {error}") from error


def _workspace(table: Table) -> Workspace:
    table.version(VERSION)
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
