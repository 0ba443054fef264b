"""A robot's poses over a plan as stick figures, from its side and from above, in the room that it passes through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from jointbench.arrays import Array
from jointbench.drawing import PALETTE
from jointbench.excitation import Workspace
from jointbench.model import Robot
from jointbench.model.kinematics import forward_kinematics

SIDE, TOP = (0, 2), (0, 1)
"""Axes of the base frame that a view shows, across and upwards."""

_AXES = "xyz"
_UP = 2
_LEAST_EXTENT = 0.1
_DRAWN = 12  # poses drawn as stick figures
"""What a view spans at least [m]: an arm that stays on the line it is seen along has no extent."""
_ARC = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 13)
_SWEPT, _POSE = "#e6edf3", "#a9bccb"


@dataclass(frozen=True, eq=False)
class ArmPoses:
    """Poses of a robot at several instants, home first.

    Attributes:
        robot: the robot.
        workspace: where it may move, None for anywhere.
        rotations, origins: of the link frames in the base frame [m], shape (n_poses, n_links, 3, 3) and (…, 3).
    """

    robot: Robot
    workspace: Workspace | None
    rotations: Array
    origins: Array

    @classmethod
    def of(cls, robot: Robot, q: Array, workspace: Workspace | None = None) -> ArmPoses:
        """Poses at positions [rad or m], shape (n_poses, n_joints), home first."""
        return cls(robot, workspace, *forward_kinematics(robot, q))

    @cached_property
    def sticks(self) -> Array:
        """Lines that stand for bodies: from each link's parent to it, and from the last ones to their tips.

        Shape (n_poses, n_sticks, 2, 3); the first n_links are those of the links.
        """
        base = np.zeros((len(self.origins), 1, 3))
        carriers = np.concatenate([self.origins, base], axis=1)[:, [joint.parent for joint in self.robot.joints]]
        tips = [np.stack([self.origins[:, i], self._tip(i)], axis=1) for i in self._last]
        return np.concatenate([np.stack([carriers, self.origins], axis=2), np.stack(tips, axis=1)], axis=1)

    @cached_property
    def capsules(self) -> Array:
        """Both ends of each capsule's axis, shape (n_poses, n_capsules, 2, 3)."""
        ends = [self.placed(c.joint, np.array([c.start, c.end])) for c in self.robot.capsules]
        return np.stack(ends, axis=1) if ends else np.empty((len(self.origins), 0, 2, 3))

    @cached_property
    def points(self) -> tuple[tuple[str, Array], ...]:
        """Chosen points of the workspace, else the tip of each branch: name and way, shape (n_poses, 3)."""
        if self.workspace is not None and self.workspace.points:
            points: list[tuple[str, Array]] = []
            for point in self.workspace.points:
                frame = self.robot.frame(point.link)
                local = np.array(frame.origin) + np.array(frame.rotation) @ point.offset
                points.append((point.link, self.placed(frame.joint, local[None])[:, 0]))
            return tuple(points)
        return tuple((self.robot.joints[i].link.name, self._tip(i)) for i in self._last)

    def placed(self, joint: int, local: Array) -> Array:
        """Points of a link in the base frame [m], (n_poses, n_points, 3), of those in its own, (n_points, 3)."""
        if joint < 0:
            return np.broadcast_to(local, (len(self.origins), *local.shape))
        return self.origins[:, joint, None] + np.einsum("kab,pb->kpa", self.rotations[:, joint], local)

    @property
    def _last(self) -> list[int]:
        """Links that carry no other."""
        carriers = {joint.parent for joint in self.robot.joints}
        return [i for i in range(self.robot.n_links) if i not in carriers]

    def _tip(self, link: int) -> Array:
        """Return what is known to be farthest out on a link: end of a capsule, frame, centre of mass; or its origin."""
        robot = self.robot
        ends = [end for capsule in robot.capsules if capsule.joint == link for end in (capsule.start, capsule.end)]
        ends += [frame.origin for frame in robot.frames if frame.joint == link]
        ends += [center] if (center := robot.joints[link].link.center_of_mass) and not ends else []
        local = max(ends, key=lambda end: float(np.linalg.norm(end)), default=(0.0, 0.0, 0.0))
        return self.placed(link, np.array([local]))[:, 0]


def draw_view(axes: Axes, poses: ArmPoses, view: tuple[int, int]) -> None:
    """Draw what a robot sweeps, some of its poses, home, the way of its tip, and the workspace.

    Args:
        axes: to draw into, at its final place; the same scale both ways.
        poses: many, home first.
        view: SIDE or TOP.
    """
    flat = list(view)
    swept = [outline for pose in poses.capsules for outline in _outlines(pose[..., flat], poses.robot)]
    axes.add_collection(PolyCollection(swept, facecolors=_SWEPT, edgecolors=_SWEPT, linewidths=0.3, rasterized=True))
    chosen = np.linspace(0, len(poses.origins) - 1, _DRAWN + 1).astype(int)[:-1]
    axes.add_collection(LineCollection(list(poses.sticks[chosen][..., flat].reshape(-1, 2, 2)), colors=_POSE, lw=1.0))
    home = _outlines(poses.capsules[0][..., flat], poses.robot)
    axes.add_collection(PolyCollection(home, facecolors="none", edgecolors=PALETTE.muted, linewidths=0.7))
    for _, way in poses.points:
        axes.plot(*way[:, flat].T, color=PALETTE.predicted, linewidth=0.8, alpha=0.8)
    bones = poses.sticks[0][..., flat]
    axes.add_collection(LineCollection(list(bones), colors=PALETTE.ink, linewidths=2.0, zorder=4))
    axes.plot(*bones[: poses.robot.n_links, 1].T, "o", color=PALETTE.ink, markersize=3.5, zorder=5)
    axes.tick_params(labelsize=8)
    _frame(axes, poses, flat)
    _draw_workspace(axes, poses, flat)
    axes.set_xlabel(f"{_AXES[flat[0]]} [m]", color=PALETTE.muted, fontsize=9, labelpad=2)
    axes.set_ylabel(f"{_AXES[flat[1]]} [m]", color=PALETTE.muted, fontsize=9, labelpad=2)


def _frame(axes: Axes, poses: ArmPoses, flat: list[int]) -> None:
    """Show all that it passes through, the base and the table, with a little room, and fill the place of the axes."""
    radius = np.array([capsule.radius for capsule in poses.robot.capsules])[:, None, None]
    ends = poses.capsules
    places = [poses.sticks.reshape(-1, 3), (ends - radius).reshape(-1, 3), (ends + radius).reshape(-1, 3)]
    everything = np.concatenate(places)[:, flat]
    low, high = everything.min(axis=0), everything.max(axis=0)
    height = poses.workspace.height(poses.robot) if poses.workspace else None
    if height is not None and flat[1] == _UP:
        low[1] = min(low[1], height)
    figure = axes.get_figure(root=True)
    assert figure is not None  # axes are in one
    place = np.array(figure.get_size_inches()) * axes.get_position().size
    half = 0.54 * float((np.maximum(high - low, _LEAST_EXTENT) / place).max()) * place
    middle = 0.5 * (low + high)
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])


def _draw_workspace(axes: Axes, poses: ArmPoses, flat: list[int]) -> None:
    """The table, where its edge is seen, and the faces of boxes."""
    if poses.workspace is None:
        return
    height = poses.workspace.height(poses.robot)
    if height is not None and flat[1] == _UP:
        axes.axhspan(height - 100.0, height, facecolor=PALETTE.limit, alpha=0.12, linewidth=0)
        axes.axhline(height, color=PALETTE.limit, linewidth=1.2)
        axes.annotate(
            "floor" if poses.workspace.table_height is None else "table", (1.0, height), xytext=(-3, -3),
            xycoords=("axes fraction", "data"), textcoords="offset points",
            color=PALETTE.limit, ha="right", va="top", fontsize=8,
        )  # fmt: skip
    for point in poses.workspace.points:
        for corner in (point.lowest, point.highest):
            for line, axis in ((axes.axvline, flat[0]), (axes.axhline, flat[1])):
                if np.isfinite(corner[axis]):
                    line(corner[axis], color=PALETTE.limit, linewidth=1.0, dashes=(4, 3))


def _outlines(ends: Array, robot: Robot) -> list[Array]:
    """Outline of each capsule in a view, shape (n, 2), of its axis' ends there, shape (n_capsules, 2, 2)."""
    outlines: list[Array] = []
    for (start, end), capsule in zip(ends, robot.capsules, strict=True):
        along = end - start
        turn = np.arctan2(along[1], along[0])
        far = end + capsule.radius * np.column_stack([np.cos(turn + _ARC), np.sin(turn + _ARC)])
        near = start - capsule.radius * np.column_stack([np.cos(turn + _ARC), np.sin(turn + _ARC)])
        outlines.append(np.concatenate([far, near]))
    return outlines
