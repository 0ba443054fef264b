"""A robot for viewers: a URDF of its motion with capsules for links, the XML text of any URDF, and a run's Rerun file.

The Rerun file shows the robot moving, and beside it the series of every joint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np

from jointbench.arrays import Array, Vector3, chunks
from jointbench.extras import need
from jointbench.files import replacing, write_file
from jointbench.model import Capsule, Joint, Robot
from jointbench.recording import Run
from jointbench.recording.samples import Column
from jointbench.results.converted_run import About, rows_of

if TYPE_CHECKING:
    import rerun


_THIN = 0.02
"""Radius of a link of unknown room, as a share of the robot's longest distance between joints."""

_SMALLEST = 0.005
"""The same at least [m]."""


def numbers(values: Iterable[float]) -> str:
    """The values with all their digits, a space between them.

    >>> numbers([0.1, -0.0, 2])
    '0.1 0 2'
    """
    return " ".join(f"{float(value) + 0.0!r}".removesuffix(".0") for value in values)


def attributes(**values: str | float | Iterable[float]) -> str:
    r"""name="value" of each, a space before it; a name that Python keeps for itself has an underscore behind it.

    >>> attributes(name='a "b"', type_="fixed", xyz=[1, 0.5])
    ' name=\'a "b"\' type="fixed" xyz="1 0.5"'
    """
    return "".join(f" {name.rstrip('_')}={quoteattr(_text(value))}" for name, value in values.items())


def comment(text: str) -> str:
    """A comment; two hyphens would end it.

    >>> comment("2021--2024")
    '<!-- 2021- -2024 -->'
    """
    return f"<!-- {re.sub('-(?=-)', '- ', text)} -->"


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """Angles [rad] about fixed x, y, z axes of a rotation Rz(yaw) Ry(pitch) Rx(roll).

    Any yaw would do where the pitch is a right angle; what is left after it is taken off gives the others.
    """
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    cosine, sine = math.cos(yaw), math.sin(yaw)
    rest = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw


def _text(value: str | float | Iterable[float]) -> str:
    if isinstance(value, str):
        return value
    return numbers([value] if isinstance(value, int | float) else value)


def base_name(robot: Robot) -> str:
    """Name of the link that everything hangs on."""
    if robot.base_link is not None:
        return robot.base_link.name
    still = [frame for frame in robot.frames if frame.joint < 0]
    root = [frame for frame in still if np.array_equal(frame.rotation, np.eye(3)) and not any(frame.origin)]
    taken = {joint.link.name for joint in robot.joints} | {frame.name for frame in robot.frames}
    return root[0].name if root else next(name for name in ("base", "base_link", "world_base") if name not in taken)


def moving_urdf(robot: Robot) -> str:
    """The URDF's text.

    Links are the capsules of the robot's file; where it has none, sticks from each joint to those that it carries.
    """
    base = base_name(robot)
    capsules = robot.capsules or _sticks(robot)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot{attributes(name=robot.name)}>"]
    lines += _link(base, [capsule for capsule in capsules if capsule.joint < 0])
    for index, joint in enumerate(robot.joints):
        carrier = robot.joints[joint.parent].link.name if joint.parent >= 0 else base
        lines += _link(joint.link.name, [capsule for capsule in capsules if capsule.joint == index])
        lines += _joint(robot, joint, carrier)
    return "\n".join([*lines, "</robot>", ""])


def _joint(robot: Robot, joint: Joint, carrier: str) -> list[str]:
    low, high = joint.position_limits
    rotation, origin = joint.placement
    limit = attributes(lower=low, upper=high, velocity=joint.velocity_limit, effort=joint.torque_limit)
    lines = [
        f"  <joint{attributes(name=joint.name, type_=joint.kind)}>",
        f"    <parent{attributes(link=carrier)}/><child{attributes(link=joint.link.name)}/>",
        f"    <origin{attributes(xyz=origin, rpy=roll_pitch_yaw(rotation))}/>",
        f"    <axis{attributes(xyz=joint.axis)}/><limit{limit}/>",
    ]
    if joint.mimic is not None:
        followed = robot.joints[joint.mimic.joint].name
        lines.append(
            f"    <mimic{attributes(joint=followed, multiplier=joint.mimic.factor, offset=joint.mimic.offset)}/>"
        )
    return [*lines, "  </joint>"]


def _link(name: str, capsules: list[Capsule]) -> list[str]:
    if not capsules:
        return [f"  <link{attributes(name=name)}/>"]
    visuals = [line for capsule in capsules for line in _visuals(capsule)]
    return [f"  <link{attributes(name=name)}>", *visuals, "  </link>"]


def _visuals(capsule: Capsule) -> list[str]:
    """A ball at either end, and a cylinder between them."""
    start, end = np.array(capsule.start), np.array(capsule.end)
    length = float(np.linalg.norm(end - start))
    ball = f"<sphere{attributes(radius=capsule.radius)}/>"
    lines = [_visual(start, np.zeros(3), ball)]
    if length > 0.0:
        x, y, z = (end - start) / length
        lean = np.array([0.0, math.acos(min(max(z, -1.0), 1.0)), math.atan2(y, x)])  # from the z axis
        tube = f"<cylinder{attributes(radius=capsule.radius, length=length)}/>"
        lines += [_visual(end, np.zeros(3), ball), _visual((start + end) / 2.0, lean, tube)]
    return lines


def _visual(origin: Array, angles: Array, shape: str) -> str:
    return f"    <visual><origin{attributes(xyz=origin, rpy=angles)}/><geometry>{shape}</geometry></visual>"


def _sticks(robot: Robot) -> tuple[Capsule, ...]:
    """Return capsules from the origin of each link, or of the base, to the joints on it."""
    longest = max((float(np.linalg.norm(joint.origin)) for joint in robot.joints), default=0.0)
    radius = max(_THIN * longest, _SMALLEST)
    nowhere: Vector3 = (0.0, 0.0, 0.0)
    last = set(range(robot.n_links)) - {joint.parent for joint in robot.joints}
    between = [Capsule(joint.name, joint.parent, nowhere, joint.origin, radius) for joint in robot.joints]
    ends = [Capsule(robot.joints[index].name, index, nowhere, nowhere, radius) for index in sorted(last)]
    return tuple(between + ends)


TIMELINE = "run_time"
_PLOTS = {"motor_current": "Currents", "motor_torque": "Torques", "motor_position": "Positions"}


def write_rerun(run: Run, about: About, path: Path) -> tuple[Path, ...]:
    """Write it: transforms of the joints, series under /joints/NAME/QUANTITY, and a layout that shows both.

    A missing value is no point of its series, and a joint that is missing keeps the place it had.

    Returns:
        Its path.

    Raises:
        MissingExtra: the Rerun SDK is not installed.
    """
    need("rerun", "Rerun", "rerun")
    import rerun as rr
    from rerun.urdf import UrdfTree

    from jointbench.results.robot_description import moving_urdf  # models need recordings: not the other way round

    with (
        replacing(path) as unfinished,
        TemporaryDirectory() as folder,
        rr.RecordingStream("jointbench", recording_id=about.sha256) as recording,
    ):
        recording.save(unfinished, default_blueprint=_layout(about))
        urdf = Path(folder) / "robot.urdf"
        write_file(urdf, moving_urdf(run.robot))
        tree = UrdfTree.from_file_path(urdf)
        tree.log_urdf_to_recording(recording)
        recording.log("run", rr.TextDocument(_words(run, about), media_type="text/markdown"), static=True)
        for part in chunks(about.rows):
            rows = rows_of(run.samples, about.columns, part)
            moving = {name: rows["motor_position"][:, k] for k, name in enumerate(about.joint_names)}
            _move(recording, tree, run, rows["time"], moving)
            for column in about.columns:
                if column.kind == "float64" and column.field != "time":
                    _series(recording, column, about, rows["time"], column.of(rows))
    return (path,)


def entity(column: Column, about: About) -> str:
    """Return where the series of a column is."""
    if column.field == "foot_force":
        foot = about.foot_names[column.place[0]]
        return f"feet/{foot}/{column.name.removeprefix(f'{foot}.')}"
    joint = about.joint_names[column.place[0]]
    return f"joints/{joint}/{column.name.removeprefix(f'{joint}.')}"


def _move(
    recording: rerun.RecordingStream, tree: rerun.urdf.UrdfTree, run: Run, time: Array, moving: dict[str, Array]
) -> None:
    """The transforms of all joints, those that mimic others too."""
    import rerun as rr

    robot = run.robot
    unmeasured = np.broadcast_to(np.array(robot.home), (len(time), robot.n_joints))
    own = [moving.get(name, unmeasured[:, k]) for k, name in enumerate(robot.joint_names)]
    positions = robot.all_positions(np.column_stack(own))
    for index, joint in enumerate(robot.joints):
        known = np.isfinite(positions[:, index])
        entry = tree.get_joint_by_name(joint.name)
        if entry is None or not known.any():
            continue
        columns = entry.compute_transform_columns(positions[known, index].tolist(), clamp=False)
        recording.send_columns(f"transforms/{joint.name}", [rr.TimeColumn(TIMELINE, duration=time[known])], columns)


def _series(recording: rerun.RecordingStream, column: Column, about: About, time: Array, values: Array) -> None:
    import rerun as rr

    known = np.isfinite(values)
    if known.any():
        index = [rr.TimeColumn(TIMELINE, duration=time[known])]
        recording.send_columns(entity(column, about), index, rr.Scalars.columns(scalars=values[known]))


def _layout(about: About) -> rerun.blueprint.Blueprint:
    """The robot on the left, a plot of each quantity on the right."""
    from rerun import blueprint

    present = [name for name in _PLOTS if any(column.field == name for column in about.columns)]
    plots = [
        blueprint.TimeSeriesView(
            name=_PLOTS[name],
            contents=[f"/{entity(column, about)}" for column in about.columns if column.field == name],
        )
        for name in present
    ]
    words = blueprint.TextDocumentView(name="Run", origin="/run")
    scene = blueprint.Spatial3DView(name="Robot", origin="/")
    return blueprint.Blueprint(
        blueprint.Horizontal(
            blueprint.Vertical(scene, words, row_shares=[3, 1]), blueprint.Vertical(*plots), column_shares=[1, 1]
        ),
        collapse_panels=True,
    )


def _words(run: Run, about: About) -> str:
    ledger = "imported" if run.ledger is None else run.ledger.verdict
    lines = [f"# {about.run}", f"{run.robot.name}, {about.rows} samples at {about.sample_period:g} s", ledger]
    return "\n\n".join([*lines, *about.warnings, f"SHA-256 {about.sha256}"])
