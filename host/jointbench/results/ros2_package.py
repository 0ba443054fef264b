"""A ROS 2 package: the C header of a model, and a ros2_control controller around it that adds its feed-forward."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from string import Template
from xml.sax.saxutils import escape

from jointbench.errors import FileNotWritten
from jointbench.files import write_file
from jointbench.identification import Model
from jointbench.identification.feedforward import FRICTION_WIDTH
from jointbench.model import Robot
from jointbench.results.c_header import c_name
from jointbench.results.export import header_text
from jointbench.results.full_model import FullModel
from jointbench.results.origin import origin_lines

_FILES = {
    "package.xml": "package.xml",
    "CMakeLists.txt": "CMakeLists.txt",
    "README.md": "README.md",
    "feedforward_controller.xml": "feedforward_controller.xml",
    "feedforward_controller.hpp": "include/{package}/feedforward_controller.hpp",
    "feedforward_controller.cpp": "src/feedforward_controller.cpp",
    "controllers.yaml": "config/controllers.yaml",
    "feedforward.launch.py": "launch/feedforward.launch.py",
}
"""Where each template goes in the package."""


def ros2_package_name(robot: Robot) -> str:
    """Return the package's name, such as "cobot6_feedforward_controller": lower-case letters, digits, underscores."""
    words = re.sub(r"[^a-z0-9]+", "_", robot.name.lower()).strip("_") or "robot"
    return f"{'robot_' if words[0].isdigit() else ''}{words}_feedforward_controller"


def write_ros2_package(what: Model | FullModel | Robot, folder: str | Path, *, replace: bool = False) -> Path:
    """Write a complete ament_cmake package with a chainable ros2_control controller.

    torque = scale * feed-forward(q, dq, ddq of the plan) + effort of the plan + p * (q - measured q)
    + d * (dq - measured dq), as effort of the joints or as current of the motors.

    Args:
        what: a fitted model, a robot with all parameters, or a robot whose file gives its inertias.
        folder: of the package, which is made.
        replace: whether files that are in the folder may be written over.

    Returns:
        The folder.

    Raises:
        FileNotWritten: the folder has something in it and `replace` is not set, or cannot be written.
        FitError: the model has a compensation that is a Python function, or the robot's file gives no inertias.
    """
    folder = Path(folder)
    header = header_text(what)
    if folder.exists() and not folder.is_dir():
        raise FileNotWritten(f"{folder} is a file; name the folder of the package")
    if folder.is_dir() and any(folder.iterdir()) and not replace:
        raise FileNotWritten(f"{folder} is not empty; name another folder, or write over its files with --force")
    robot = what if isinstance(what, Robot) else what.robot
    fitted = what if isinstance(what, Model) else what.fitted if isinstance(what, FullModel) else None
    remembers = isinstance(what, Model) and what.memory is not None
    values = _values(robot, origin_lines(robot, fitted), remembers=remembers)
    package = values["package"]
    templates = resources.files("jointbench.results") / "templates" / "ros2"
    texts = {
        place.format(package=package): Template((templates / f"{name}.in").read_text(encoding="utf-8")).substitute(
            _escaped(values) if name.endswith(".xml") else values
        )
        for name, place in _FILES.items()
    }
    for place, text in {**texts, f"include/{package}/dynamics.h": header}.items():
        path = folder / place
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileNotWritten(f"{path.parent} cannot be made: {error.strerror}; name another folder") from error
        write_file(path, text)
    return folder


def _values(robot: Robot, origin: Iterable[str], *, remembers: bool) -> dict[str, str]:
    """What stands in the templates' places."""
    package, name, joints = ros2_package_name(robot), c_name(robot), robot.joint_names
    driven = [
        drive.kind != "none" and bool(modelled)
        for drive, modelled in zip(robot.drives, robot.modelled.tolist(), strict=True)
    ]
    motors = [(drive.name, drive.torque_constant != 0.0) for drive in robot.drive_train.drives]
    table = zip(joints, driven, (joint.torque_limit for joint in robot.independent_joints), strict=True)
    lines = [" ".join(line.split()) for line in origin]
    return {
        "package": package,
        "PACKAGE": package.upper(),
        "robot": robot.name,
        "name": name,
        "NAME": name.upper(),
        "about": "".join(f"// {line}\n" for line in lines).replace("\\", "/"),
        "origin": "\n".join(lines),
        "description": f"Feed-forward for ros2_control from the identified dynamics of {robot.name}.",
        "joint_table": "".join(
            f"  {{{_quoted(joint)}, {_bool(moved)}, {_cpp(limit)}}},\n" for joint, moved, limit in table
        ),
        "motor_table": "".join(f"  {{{_quoted(motor)}, {_bool(moved)}}},\n" for motor, moved in motors),
        "friction_width": repr(FRICTION_WIDTH),
        "zeros": ", ".join(["0.0"] * len(joints)),
        "joints": ", ".join(map(_quoted, joints)),
        "command_joints": ", ".join(_quoted(f"feedforward_controller/{joint}") for joint in joints),
        "joint_words": ", ".join(f"`{joint}`" for joint in joints),
        "driven_words": ", ".join(f"`{joint}`" for joint, moved in zip(joints, driven, strict=True) if moved),
        "motor_words": ", ".join(f"`{motor}`" for motor, moved in motors if moved),
        "from": "_from" if remembers else "",
        "state": "&friction_, " if remembers else "",
        "friction_member": f"  {name}_friction friction_{{}};\n" if remembers else "",
        "begin_friction": f"  {name}_begin(&friction_);\n" if remembers else "",
    }


def _escaped(values: dict[str, str]) -> dict[str, str]:
    return {name: escape(value) for name, value in values.items()}


def _quoted(text: str) -> str:
    """The text in double quotes, as C++ and YAML read it."""
    return json.dumps(text, ensure_ascii=False)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _cpp(limit: float) -> str:
    return repr(float(limit)) if math.isfinite(limit) else "kNoLimit"
