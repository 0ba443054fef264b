"""Options of `plan`: the motion, its purpose, its limits, and the search."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation import (
    CRITERIA,
    DEFAULT_CLEARANCE,
    DEFAULT_PERIOD,
    FAMILIES,
    USABLE_MOTION,
    USABLE_TORQUE,
    Workspace,
    make_basis,
    read_workspace,
)
from jointbench.model import BaseParameters, Robot, base_parameters

PLAN = "excitation.json"
"""Name of a plan's file where none is given."""

ON_ONE_FOOT = "single_support"
"""The family that is none of a series or of moves, and is not searched for: random motions on one foot."""

_ONLY_FOR = {
    "harmonics": ("fourier", "ramped_fourier"),
    "ramp": ("ramped_fourier",),
    "periods": ("ramped_fourier",),
    "points": ("point_to_point",),
    "pace": (ON_ONE_FOOT,),
    "margin": (ON_ONE_FOOT,),
    "zmp_offset": (ON_ONE_FOOT,),
}
"""Families that each setting says something of."""

_OF_THE_SEARCH = ("objective", "starts", "time_limit", "workers", "scheduler")

_NOT_ON_ONE_FOOT = (*_OF_THE_SEARCH, "random", "taught", "noise", "workspace", "table_height")
"""Its motions are always random, clear of the ground, and as large as their ranges."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """ROBOT, and all options in groups."""
    parser.add_argument("robot", metavar="ROBOT", help="a name of the library or the path of a robot .toml or .urdf")
    parser.add_argument("--out", metavar="FILE", help=f"where the plan goes ({PLAN})")
    parser.add_argument("--picture", metavar="FILE", help=".png, .svg or .pdf (a .png beside the plan)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same plan (%(default)s)")
    parser.add_argument(
        "--random", action="store_true", help="a random feasible motion instead of the best one: to verify a model on"
    )
    _add_motion(parser.add_argument_group("the motion"))
    _add_purpose(parser.add_argument_group("what it is for"))
    _add_room(parser.add_argument_group("where it may go"))
    _add_search(parser.add_argument_group("how it is searched for"))


def _add_motion(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--family", choices=(*FAMILIES, ON_ONE_FOOT), default="fourier",
        help="a series at rest at its ends; a free one between two ramps; moves through way points; a biped's random "
        "motion on one foot (%(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--harmonics", type=_harmonics, metavar="N|LIST", help="how many, or which, as 1,2,3,5 leaves one out (5)"
    )
    group.add_argument(
        "--period", type=float, metavar="S",
        help="of the series, of all moves (20), or of all on one foot (95.008); for boards a multiple of 0.032 s",
    )  # fmt: skip
    group.add_argument(
        "--taught", metavar="RUN", help="a run of `float`: the path that a hand led the arm, there and back"
    )
    group.add_argument("--ramp", type=float, metavar="S", help="seconds of each ramp (2)")
    group.add_argument("--periods", type=int, metavar="N", help="of the series between its ramps (1)")
    group.add_argument("--points", type=int, metavar="N", help="way points between the moves (10)")
    group.add_argument("--pace", type=float, metavar="S", help="on one foot, from place to place (0.3)")
    group.add_argument(
        "--margin", type=_pair, metavar="M,M", help="of the sole, free lengthwise and sideways [m] (0.075,0.05)"
    )
    group.add_argument(
        "--zmp-offset", type=_pair, metavar="M,M",
        help="zero-moment point at home, measured less predicted, forward and left [m] (0,0)",
    )  # fmt: skip


def _add_purpose(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument("--objective", choices=tuple(CRITERIA), help="what is made least (condition_number)")
    group.add_argument(
        "--samples", type=int, default=150, metavar="N", help="times at which the regressor is taken (%(default)s)"
    )
    group.add_argument(
        "--noise", type=_numbers, metavar="NM", help="standard deviation of torque, one number or one a joint: 1,1,0.2"
    )
    group.add_argument(
        "--prior",
        metavar="MODEL",
        help="a model.json of an earlier fit: torque is predicted from it, and σ is relative to its values; on one "
        "foot an estimate that stance wrote: the robot is balanced with its masses",
    )


def _add_room(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument("--workspace", metavar="FILE", help="a .toml with the table, boxes for points, and clearance")
    group.add_argument(
        "--table-height", type=float, metavar="M",
        help="metres in the base frame; all stays above it (0 where the robot has capsules and stands)",
    )  # fmt: skip
    group.add_argument(
        "--speed", type=float, default=1.0, metavar="SHARE",
        help="of the limits of velocity, acceleration and jerk that may be used: 0.3 for a first motion (%(default)g)",
    )  # fmt: skip
    group.add_argument(
        "--range", type=float, default=1.0, metavar="SHARE",
        help="of the way from home to the position limits that may be used (%(default)g)",
    )  # fmt: skip


def _add_search(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument("--starts", type=int, metavar="N", help="random motions that the search begins with")
    group.add_argument("--time-limit", type=float, metavar="S", help="seconds, then the best so far")
    group.add_argument("--workers", type=int, metavar="N", help="processes on this machine")
    group.add_argument("--scheduler", metavar="URL", help="of a Dask cluster instead, such as tcp://10.0.0.1:8786")


def check_options(options: argparse.Namespace) -> None:
    """Refuse options that would say nothing, and files that could not be written, before anything is planned.

    Raises:
        ExcitationError: an option of another family, of a search where none is made, or of two that exclude each other;
            a seed below 0, or a file that cannot be written.
    """
    for name in ("out", "picture"):
        file = getattr(options, name)
        if file is not None:
            _check_place(_flag(name), file)
    if options.seed < 0:
        raise ExcitationError(f"--seed is {options.seed}; it must be 0 or above")
    for name, families in _ONLY_FOR.items():
        if getattr(options, name) is not None and options.family not in families:
            raise ExcitationError(
                f"{_flag(name)} has no effect with --family {options.family}: it is for {' and '.join(families)}"
            )
    for name in _NOT_ON_ONE_FOOT:
        if options.family == ON_ONE_FOOT and getattr(options, name) not in (None, False):
            raise ExcitationError(
                f"{_flag(name)} has no effect with --family {ON_ONE_FOOT}, whose motions are drawn at random and not "
                f"optimised; leave it out"
            )
    for name in _OF_THE_SEARCH:
        if options.random and getattr(options, name) is not None:
            raise ExcitationError(f"{_flag(name)} has no effect with --random, which does not search; leave one out")
    for name in (*_ONLY_FOR, *_OF_THE_SEARCH, "random", "period", "noise", "prior"):
        if options.taught is not None and getattr(options, name) not in (None, False):
            raise ExcitationError(f"{_flag(name)} has no effect with --taught, whose motion is recorded; leave it out")
    if options.workers is not None and options.scheduler is not None:
        raise ExcitationError("--workers are processes of this machine, --scheduler has its own; leave one out")
    if options.objective == "relative_sigma" and options.noise is None:
        raise ExcitationError("--objective relative_sigma needs --noise: the standard deviation of the torque [N·m]")


def _check_place(flag: str, file: str) -> None:
    """Refuse a file that could not be written, before a search is spent on it."""
    path = Path(file)
    if not file or path.is_dir():
        raise ExcitationError(f"{flag} {file!r} is a folder, or no name; name a file")
    if not path.parent.is_dir():
        raise ExcitationError(f"{flag} {file}: there is no folder {path.parent}; name another place")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ExcitationError(f"{flag} {file} may not be written; name another place")


def motion_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is said of the motion, for a planner; what is not said is left to it."""
    return {"period": DEFAULT_PERIOD} | _said(options, ("family", "harmonics", "period", "ramp", "periods", "points"))


def support_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is said of a motion on one foot, for its planner."""
    duration = {} if options.period is None else {"duration": options.period}
    return duration | _said(options, ("pace", "margin", "zmp_offset"))


def search_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is said of the search and of what it is for."""
    return _said(options, ("samples", *_OF_THE_SEARCH))


def _said(options: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def workspace_of(options: argparse.Namespace) -> Workspace:
    """Return where the robot may move: never into itself nor the floor, as far as its capsules tell.

    Raises:
        ExcitationError: the table is given twice; or the file cannot be read.
    """
    workspace = read_workspace(options.workspace) if options.workspace else Workspace()
    if options.table_height is None:
        return workspace
    if workspace.table_height is not None:
        raise ExcitationError(
            f"--table-height {options.table_height:g} m: {options.workspace} has its table at "
            f"{workspace.table_height:g} m; leave one out"
        )
    return replace(workspace, table_height=options.table_height)


def noise_of(options: argparse.Namespace, robot: Robot) -> tuple[float, ...] | None:
    """Standard deviation of each joint's torque [N·m or N].

    Raises:
        ExcitationError: neither one positive number nor one for each joint.
    """
    if options.noise is None:
        return None
    if len(options.noise) not in (1, robot.n_joints):
        raise ExcitationError(
            f"--noise has {len(options.noise)} numbers; give one, or {robot.n_joints}, one for each of "
            f"{', '.join(robot.joint_names)}"
        )
    if not all(0.0 < value < math.inf for value in options.noise):
        raise ExcitationError(
            f"--noise {', '.join(map(str, options.noise))}: give standard deviations of torque above 0, in N·m or N"
        )
    return options.noise * robot.n_joints if len(options.noise) == 1 else options.noise


def prior_of(options: argparse.Namespace, robot: Robot) -> Mapping[str, float] | None:
    """Full parameters of an earlier fit that together make its torque: each group's sum on the one that leads it.

    Raises:
        ExcitationError: the model is of another robot.
        FileError: the file cannot be read, or is none.
    """
    if options.prior is None or options.family == ON_ONE_FOOT:
        return None
    from jointbench.identification import load_model

    model = load_model(options.prior)
    base: BaseParameters = base_parameters(robot)
    if model.base.names != base.names:
        raise ExcitationError(
            f"--prior {options.prior} is a model of robot {model.robot.name!r}, whose base parameters are not those of "
            f"{robot.name!r}; give one that was fitted to the same robot"
        )
    values = dict.fromkeys(base.full_names, 0.0)
    return values | dict(zip(base.leading_names, model.parameters.tolist(), strict=True))


def stance_prior_of(options: argparse.Namespace, robot: Robot) -> Array | None:
    """Read the masses that a motion on one foot is balanced with.

    Returns:
        Ten standard parameters of the base's link, then of each link, shape (10 * (1 + n_links),); None where no
        estimate is given, and the robot file's count, or where the family is another one.

    Raises:
        ExcitationError: the estimate is of another robot, or was refused.
        FileError: the file cannot be read, or is no estimate of a stance.
    """
    if options.prior is None or options.family != ON_ONE_FOOT:
        return None
    from jointbench.identification.zero_moment_point import load_stance_estimate

    estimate = load_stance_estimate(options.prior)
    if _frames(estimate.robot) != _frames(robot):
        raise ExcitationError(
            f"--prior {options.prior} is an estimate of robot {estimate.robot.name!r}, whose joints or feet are not "
            f"where those of {robot.name!r} are; give one that was estimated for the same robot"
        )
    if estimate.verdict.is_refused:
        raise ExcitationError(
            f"--prior {options.prior} was refused ({estimate.verdict.reason}); record other motions and estimate "
            f"again, or plan without it"
        )
    return estimate.standard_parameters


def _frames(robot: Robot) -> tuple[object, ...]:
    """Everything that fixes the frames which standard parameters are expressed in."""
    joints = [(j.name, j.kind, j.parent, j.rotation, j.origin, j.axis) for j in robot.joints]
    return robot.base_link and robot.base_link.name, joints, robot.feet


def _harmonics(text: str) -> int | tuple[int, ...]:
    try:
        numbers = tuple(int(number) for number in text.split(",") if number.strip())
    except ValueError:
        numbers = ()
    if not numbers:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of harmonics nor a list such as 1,2,3,5")
    return numbers if "," in text else numbers[0]


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a list such as 1,1,0.2") from None


def _pair(text: str) -> tuple[float, float]:
    numbers = _numbers(text)
    if len(numbers) != 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a pair such as 0.075,0.05")
    return numbers[0], numbers[1]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def plan_words(options: argparse.Namespace, robot: Robot, workspace: Workspace) -> Iterator[str]:
    """The motion, what it is for, the limits that count, and what is known beforehand.

    Raises:
        ExcitationError: a setting is impossible for the family.
    """
    if options.taught:
        yield f"planning the motion of {options.taught} for {robot.name}, there and back"
        yield from _kept(options, robot, workspace)
        return
    settings = motion_settings(options)
    basis = make_basis(**settings)
    kind = "a random motion" if options.random else "an excitation"
    whole = "" if basis.duration == settings["period"] else f"; {basis.duration:g} s in all"
    yield f"planning {kind} for {robot.name}: {basis.description}{whole}"
    if not options.random:
        objective = (options.objective or "condition_number").replace("_", " ")
        yield f"  least {objective} of the base regressor at {options.samples} samples{_noise(options)}"
    yield from _kept(options, robot, workspace)


def _kept(options: argparse.Namespace, robot: Robot, workspace: Workspace) -> Iterator[str]:
    """The limits that count."""
    jerk = ", jerk" if any(joint.jerk_limit is not None for joint in robot.independent_joints) else ""
    yield f"  within {USABLE_MOTION:.0%} of position, velocity, acceleration{jerk}; {_torque(robot, options.prior)}"
    if room := list(_room(workspace, robot)):
        yield f"  within its workspace: {', '.join(room)}"


def _noise(options: argparse.Namespace) -> str:
    if options.noise is None:
        return ""
    noise = ", ".join(f"{value:g}" for value in options.noise)
    prior = f", parameters as large as in {options.prior}" if options.prior else ""
    return f"; torque noise {noise} N·m{prior}"


def _torque(robot: Robot, prior: str | None) -> str:
    if prior:
        return f"{USABLE_TORQUE:.0%} of torque, as {prior} predicts it"
    if robot.standard_parameters is None:
        return "torque is not limited: its file has no inertias to predict it from"
    return f"{USABLE_TORQUE:.0%} of torque, as the inertias of its file predict it"


def _room(workspace: Workspace, robot: Robot) -> Iterator[str]:
    height = workspace.height(robot)
    if height is not None:
        yield f"table at {height:g} m" if workspace.table_height is not None else "above a floor at its base"
    boxes = len(workspace.points)
    if boxes:
        yield f"{boxes} point{'s' if boxes > 1 else ''} in a box"
    if robot.capsules:
        clearance = DEFAULT_CLEARANCE if workspace.clearance is None else workspace.clearance
        yield f"{len(robot.capsules)} capsules kept {1e3 * clearance:g} mm apart"
