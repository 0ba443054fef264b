"""Write a model for other programs: URDF, MJCF, a C header, JSON, TOML or a ROS 2 package."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import FitError
from jointbench.identification import Model, load_model
from jointbench.model import Robot, load_robot
from jointbench.results import (
    BODIES,
    MJCF,
    SUFFIXES,
    FullModel,
    export,
    left_out,
    own_urdf,
    ros2_package_name,
    write_ros2_package,
)

VERB = "export"
EXAMPLE = "jointbench export model.json --out arm.urdf --from robot.urdf"
WRITES = ("out",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, the files to write, and a URDF to keep the text of."""
    parser.add_argument("model", metavar="MODEL", help="a model.json; or a robot, with the inertias of its own file")
    kinds = "; ".join(f"{suffix}: {meaning}" for suffix, meaning in SUFFIXES.items())
    parser.add_argument("--out", metavar="FILE", nargs="+", required=True, help=f"where it goes, by suffix ({kinds})")
    parser.add_argument(
        "--to",
        choices=("ros2",),
        help="write a package instead, --out being its folder (ros2: an ament_cmake package with the C header and a "
        "ros2_control controller that adds the feed-forward)",
    )
    parser.add_argument(
        "--zeros",
        metavar="DEG",
        nargs="+",
        type=float,
        help="where that URDF's joints are when the model's are at zero (0; mm for joints that slide)",
    )
    parser.add_argument(
        "--resistance",
        metavar="OHM",
        nargs="+",
        type=float,
        help="of each motor's winding, or one for all: MJCF gets dcmotor actuators, their control a voltage",
    )
    parser.add_argument("--from", metavar="URDF", dest="source", help="a URDF whose text is kept but for its inertias")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Writes each file, and says what is in it."""
    what = load_model(options.model) if Path(options.model).suffix == ".json" else load_robot(options.model)
    robot = what.robot if isinstance(what, Model) else what
    for edit in what.edits if isinstance(what, Model) else ():
        console.say(f"warning: the model was {edit}")
    if options.resistance is not None and (options.to or not any(Path(name).suffix in MJCF for name in options.out)):
        raise FitError(
            f"--resistance is for MJCF; {' and '.join(options.out)} has no place for it: name a file .xml or .mjcf"
        )
    if options.to is not None:
        return _package(what, options, console)
    full: FullModel | None = None
    for name in options.out:
        suffix, subject = Path(name).suffix, what
        if suffix in BODIES:
            if full is None:
                full = _full(what, console)
            subject = full
        source = options.source if suffix == ".urdf" else None
        ohm = options.resistance if suffix in MJCF else None
        path = export(subject, name, source=source, zeros=_zeros(robot, options.zeros), resistance=ohm)
        console.say(f"{path}: {_meaning(robot, suffix, options.source)}")
        if suffix in BODIES and full is not None and full.without_memory:
            console.say(f"warning: {path}: {full.without_memory}")
        if suffix in MJCF and full is not None:
            for line in left_out(full, ohm):
                if line != full.without_memory:
                    console.say(f"not in {path}: {line}")
    return Result("export", fields={"files": options.out})


def _package(what: Model | Robot, options: argparse.Namespace, console: Console) -> Result:
    """Write a ROS 2 package, and say how to build it."""
    if len(options.out) != 1 or options.source is not None or options.zeros is not None:
        raise FitError(
            f"--to {options.to} writes one package; give --out one folder, such as "
            f"{ros2_package_name(what if isinstance(what, Robot) else what.robot)}, and neither --from nor --zeros"
        )
    folder = write_ros2_package(what, options.out[0], replace=options.force)
    name = ros2_package_name(what if isinstance(what, Robot) else what.robot)
    console.say(f"{folder}: ROS 2 package {name} with the controller {name}/FeedforwardController")
    console.say(f"build it in a workspace: colcon build --packages-select {name}; README.md says how to use it")
    return Result("export", fields={"files": options.out})


def _full(what: Model | Robot, console: Console) -> FullModel:
    """All parameters, and how far they are from what was fitted."""
    full = FullModel.of_model(what) if isinstance(what, Model) else FullModel.of_robot(what)
    if full.physical is not None:
        console.say(f"{full.physical}")
    return full


def _zeros(robot: Robot, given: list[float] | None) -> Array:
    """Return the zeros in SI."""
    values = np.zeros(robot.n_joints) if given is None else np.array(given)
    if len(values) != robot.n_joints:
        raise FitError(
            f"--zeros has {len(values)} numbers; give {robot.n_joints}, one for each joint of robot {robot.name!r}"
        )
    return values * [np.pi / 180.0 if joint.kind == "revolute" else 1e-3 for joint in robot.independent_joints]


def _meaning(robot: Robot, suffix: str, source: str | None) -> str:
    if suffix != ".urdf":
        return SUFFIXES[suffix]
    kept = source or own_urdf(robot)
    return f"{kept} with new inertias" if kept else "written from scratch, without meshes; --from keeps those of a URDF"
