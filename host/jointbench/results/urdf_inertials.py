"""New inertials in a URDF that somebody wrote: all else of its text stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from numpy.typing import ArrayLike

from jointbench.errors import ExportError
from jointbench.foreign import bytes_of
from jointbench.results.full_model import FullModel
from jointbench.results.other_frames import links_in_frames_of
from jointbench.results.xml_text import attributes
from jointbench.robot import Link, load_robot

_INDENT = "  "


def with_inertials(model: FullModel, urdf: Path, zeros: ArrayLike = 0.0) -> bytes:
    """The text of a URDF with the model's inertias.

    A link that others are fixed to takes the inertia of all of them; theirs are removed. What does not move keeps what
    it has.

    Args:
        model: of the same kinematics; frames may lie otherwise on the links.
        urdf: the file.
        zeros: positions of its joints where the model's are zero [rad or m], shape (n_joints,), or one for all.

    Raises:
        ExportError: no body can have a link's inertia, or the file's kinematics are others.
        ShapeError: there are not as many zeros as joints.
        RobotFileError: the file cannot be read, or is no URDF.
    """
    robot = load_robot(urdf, floating_base=model.robot.base_link is not None)
    carrying = links_in_frames_of(robot, model, urdf.name, zeros)
    if robot.base_link and model.base_link:
        carrying[robot.base_link.name] = model.base_link
    lowest = 0 if robot.base_link is None else -1
    empty = {frame.name: Link(frame.name) for frame in robot.frames if frame.joint >= lowest}
    data = bytes_of(urdf)
    if b"<robot" not in data:
        raise ExportError(f"{urdf.name} is not written in ASCII, UTF-8 or Latin letters; save it as UTF-8")
    return _replaced(data, empty | carrying)


def inertial_lines(link: Link) -> list[str]:
    """The lines of <inertial>; none where a link has no inertia."""
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        return []
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = link.inertia_about_center_of_mass
    return [
        "<inertial>",
        f"{_INDENT}<origin{attributes(xyz=link.center_of_mass, rpy=(0.0, 0.0, 0.0))}/>",
        f"{_INDENT}<mass{attributes(value=link.mass)}/>",
        f"{_INDENT}<inertia{attributes(ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)}/>",
        "</inertial>",
    ]


@dataclass
class _Place:
    """Where in the file a link ends, and its inertial is, as byte offsets."""

    end: int = 0
    inertial: tuple[int, int] | None = None


@dataclass
class _Finder:
    data: bytes
    links: dict[str, _Place] = field(default_factory=dict[str, _Place])
    path: list[str] = field(default_factory=list[str])

    def find(self) -> dict[str, _Place]:
        parser = expat.ParserCreate()
        current, begun = "", 0

        def start(tag: str, values: dict[str, str]) -> None:
            nonlocal current, begun
            self.path.append(tag)
            if self.path == ["robot", "link"]:
                current = values["name"].strip()
                self.links[current] = _Place()
            elif self.path == ["robot", "link", "inertial"]:
                begun = parser.CurrentByteIndex

        def end(_: str) -> None:
            at = parser.CurrentByteIndex
            if self.path == ["robot", "link"]:
                self.links[current].end = at
            elif self.path == ["robot", "link", "inertial"]:
                # Behind a tag like <inertial/> there is nothing more of it.
                closing = self.data[at : at + 2] == b"</"
                self.links[current].inertial = begun, self.data.index(b">", at) + 1 if closing else at
            self.path.pop()

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(self.data, True)
        return self.links


def _replaced(data: bytes, links: Mapping[str, Link]) -> bytes:
    newline = "\r\n" if b"\r\n" in data else "\n"
    cuts: list[tuple[int, int, bytes]] = []
    for name, place in _Finder(data).find().items():
        if name not in links:
            continue
        lines = inertial_lines(links[name])
        if place.inertial is not None:
            cuts.append(_instead(data, *place.inertial, lines, newline))
        elif lines:
            cuts.append(_inserted(data, place.end, lines, newline))
    for start, end, text in sorted(cuts, reverse=True):
        data = data[:start] + text + data[end:]
    return data


def _instead(data: bytes, start: int, end: int, lines: list[str], newline: str) -> tuple[int, int, bytes]:
    """Put lines where an inertial is; where there are none, its own line goes with it."""
    before = data[data.rfind(b"\n", 0, start) + 1 : start]
    indent = before if not before.strip() else b""
    if lines:
        return start, end, (newline + indent.decode("ascii")).join(lines).encode("ascii")
    behind = data.find(b"\n", end)
    if before == indent and behind >= 0 and not data[end:behind].strip():
        return start - len(before), behind + 1, b""
    return start, end, b""


def _inserted(data: bytes, end: int, lines: list[str], newline: str) -> tuple[int, int, bytes]:
    """Put lines at the end of a link that has no inertial."""
    before = data[data.rfind(b"\n", 0, end) + 1 : end]
    opened = before[: len(before) - len(before.lstrip())].decode("ascii")
    text = "".join(f"{newline}{opened}{_INDENT}{line}" for line in lines) + newline + opened
    if data[end : end + 2] == b"</":
        start = end - len(before) if not before.strip() else end
        return (start, end, (text.removeprefix(newline) if start < end else text).encode("ascii"))
    # <link name="tip"/> gets an end of its own.
    return end - 2, end, f">{text}</link>".encode("ascii")
