"""Write the files of an arm that is described by a URDF: its robot file, a bench file and a plant to try them on."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.errors import FileError, RobotError
from jointbench.extras import need
from jointbench.files import write_file
from jointbench.model import Joint, Robot, load_robot
from jointbench.model.equations_of_motion import equations_of_motion
from jointbench.model.mesh_capsules import FittedCapsule, capsule_containing, collision_meshes

VERB = "init"
EXAMPLE = (
    "jointbench init arm.urdf --drive kind=harmonic,ratio=101,torque_constant_Nm_A=0.1,current_limit_A=5 "
    "--drive j2:ratio=-161 --board j1=serial:/dev/ttyACM0 --board j2=serial:/dev/ttyACM1"
)
WRITES = ("out",)
WHEN_STOPPED = "no file was written"

_EMULATED = "unix:"
_PADDING_MM = 0.2  # of a fitted capsule, whose numbers are rounded to 0.1 mm

# Of a plant whose truth nobody measured: usual shares of the torque limit, and what the library's plants have.
_COULOMB_SHARE, _VISCOUS_SHARE = 0.04, 0.05
_POSES = 64
_GEAR_RATE = 200.0  # at which the arm swings on a gear [rad/s]; those of the library's plants do with 100 to 300


@dataclass(frozen=True)
class Question:
    """A value of a drive that only a person knows.

    Attributes:
        key: of [joints.drive].
        text: the question.
        read: value from an answer; a ValueError says what is allowed.
        default: answer of a first joint that is not asked.
    """

    key: str
    text: str
    read: Callable[[str], Any]
    default: str | None = None


def _kind(answer: str) -> str:
    if answer not in ("direct", "harmonic"):
        raise ValueError('"direct" or "harmonic"; what shares motors is written into the file as [[couplings]]')
    return answer


def _number(answer: str) -> float:
    value = float(answer)
    if not math.isfinite(value) or value == 0.0:
        raise ValueError("a number that is not zero")
    return value


def _positive(answer: str) -> float:
    value = _number(answer)
    if value < 0.0:
        raise ValueError("a number above zero")
    return value


def _or_unknown(answer: str) -> float | None:
    return None if answer == "?" else _positive(answer)


def _yes(answer: str) -> bool:
    if answer not in ("yes", "no", "y", "n", "true", "false"):
        raise ValueError("yes or no")
    return answer in ("yes", "y", "true")


QUESTIONS = (
    Question("kind", "gear: harmonic, or direct for any that is stiff", _kind, "direct"),
    Question(
        "ratio", "motor turns for one turn (or metre) of the joint, negative where it turns the other way", _number
    ),
    Question("torque_constant_Nm_A", "torque constant of the motor [N·m/A]", _positive),
    Question("current_limit_A", "current that the motor may have [A]", _positive),
    Question(
        "rotor_inertia_kg_m2", "inertia of the motor's rotor [kg·m²], ? where the data sheet is lost", _or_unknown, "?"
    ),
    Question("link_encoder", "an encoder behind the gear as well: yes or no", _yes, "no"),
)
_BY_KEY = {question.key: question for question in QUESTIONS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """URDF, and the answers to what it does not say."""
    parser.add_argument("urdf", metavar="URDF", help="links, joints, limits and inertias of the arm")
    parser.add_argument(
        "--drive", action="append", default=[], metavar="[JOINT:]KEY=VALUE,…",
        help=f"of a joint's drive, or of all: {', '.join(_BY_KEY)}; asked for at a terminal where it is not given",
    )  # fmt: skip
    parser.add_argument(
        "--board", action="append", default=[], metavar="JOINT=URL",
        help="where the board of a joint is, such as j1=serial:/dev/ttyACM0; a joint without one is emulated",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FOLDER",
        help="where robot.toml, bench.toml and plant.toml go (one named after the robot)",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> Result:
    """Asks what the URDF does not say, fits capsules to its meshes, and writes the files once all is known."""
    urdf = Path(options.urdf)
    robot = load_robot(urdf)
    if urdf.suffix != ".urdf":
        raise FileError(
            f"{urdf.name} is not a URDF; a robot file needs no `init`: copy a bench file of hil_tests/benches"
        )
    folder = Path(options.out or robot.name)
    if folder.exists() and any(folder.iterdir()) and not options.force:
        raise FileError(f"folder {folder} is not empty; name another with --out, or replace its files with --force")
    given = _given(options.drive, robot)
    urls = _urls(options.board, robot)
    drives = _drives(robot, given, console)
    capsules, unread = _capsules(urdf, console)
    files = {"robot.toml": robot_text(robot, urdf, folder, drives, capsules)}
    no_plant = why_no_plant(robot)
    if options.board or not no_plant:
        files["bench.toml"] = bench_text(robot, urls)
    if not no_plant:
        files["plant.toml"] = plant_text(robot, drives)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_file(folder / name, text)
    made = load_robot(folder / "robot.toml")
    _show(made, robot, drives, urls, capsules, unread, console)
    for warning in made.warnings:
        console.say(f"warning: {warning}")
    console.say(f"files: {', '.join(str(folder / name) for name in files)}")
    if no_plant:
        console.say(f"no plant to try them on: {no_plant}")
    following = f"jointbench info {folder / 'robot.toml'}"
    if "bench.toml" in files:
        following += f"`, then `{'jointbench check' if options.board else './run sim'} {folder / 'bench.toml'}"
    console.say(f"next: `{following}`")
    return Result("init", fields={"folder": str(folder), "files": sorted(files), "joints": list(made.joint_names)})


def _given(options: Sequence[str], robot: Robot) -> dict[str, dict[str, Any]]:
    """Drive of each joint as far as it was given; a joint's own entry comes before one for all.

    Raises:
        RobotError: no such joint or key, or a value that is not allowed.
    """
    names = [joint.name for joint in robot.independent_joints]
    given: dict[str, dict[str, Any]] = {name: {} for name in names}
    for option in sorted(options, key=lambda text: ":" in text):
        joint, colon, entries = option.rpartition(":")
        if colon and joint not in names:
            raise RobotError(f"--drive {option}: no joint {joint!r}; the joints are {', '.join(names)}")
        for entry in entries.split(","):
            key, equals, answer = (part.strip() for part in entry.partition("="))
            if not equals or key not in _BY_KEY:
                raise RobotError(f"--drive {option}: {entry!r} is not KEY=VALUE with a KEY of {', '.join(_BY_KEY)}")
            try:
                value = _BY_KEY[key].read(answer)
            except ValueError as error:
                raise RobotError(f"--drive {option}: {key} = {answer!r} must be {error}") from error
            for name in [joint] if colon else names:
                given[name][key] = value
    return given


def _urls(options: Sequence[str], robot: Robot) -> dict[str, str]:
    names = [joint.name for joint in robot.independent_joints]
    urls = dict.fromkeys(names, _EMULATED)
    for option in options:
        joint, equals, url = option.partition("=")
        if not equals or joint not in names:
            raise RobotError(f"--board {option}: not JOINT=URL with a joint of {', '.join(names)}")
        urls[joint] = url
    emulated = [name for name, url in urls.items() if url == _EMULATED]
    if options and emulated:
        raise RobotError(
            f"joints {', '.join(emulated)} have no --board, others have; give each one its board, or none for a bench "
            "whose boards are all emulated"
        )
    return urls


def _drives(robot: Robot, given: Mapping[str, Mapping[str, Any]], console: Console) -> dict[str, dict[str, Any]]:
    """Drive of each joint; what is missing is asked, with the answer for the joint before offered.

    Raises:
        RobotError: something is missing, and there is nobody to ask.
    """
    drives: dict[str, dict[str, Any]] = {}
    missing: dict[str, list[str]] = {}
    before: dict[str, str] = {each.key: each.default for each in QUESTIONS if each.default is not None}
    for joint in robot.independent_joints:
        drive = dict(given[joint.name])
        for question in QUESTIONS:
            if question.key in drive:
                continue
            if sys.stdin.isatty():
                drive[question.key], before[question.key] = _ask(joint, question, before.get(question.key), console)
            elif question.default is not None:
                drive[question.key] = question.read(question.default)
            else:
                missing.setdefault(question.key, []).append(joint.name)
        drives[joint.name] = {each.key: drive[each.key] for each in QUESTIONS if each.key in drive}
    if missing:
        every = len(drives)
        whats = "; ".join(
            f"{key} of {'all' if len(names) == every else ', '.join(names)}" for key, names in missing.items()
        )
        raise RobotError(
            f"a URDF does not say what drives its joints: {whats}. Give them as `--drive [JOINT:]KEY=VALUE`, or answer "
            "at a terminal"
        )
    return drives


def _ask(joint: Joint, question: Question, default: str | None, console: Console) -> tuple[Any, str]:
    """Ask until the answer is allowed; an empty one is the default."""
    while True:
        offered = "" if default is None else f" [{default}]"
        answer = input(f"{joint.name}: {question.text}{offered}: ").strip() or default or ""
        try:
            return question.read(answer), answer
        except ValueError as error:
            console.say(f"  {answer!r} must be {error}")


def _capsules(urdf: Path, console: Console) -> tuple[list[tuple[str, FittedCapsule]], list[str]]:
    """Capsules around the meshes that could be read, by link, and why others could not."""
    meshes = collision_meshes(urdf)
    if not meshes:
        return [], []
    need("meshes", "fitting capsules to meshes", "trimesh")
    capsules: list[tuple[str, FittedCapsule]] = []
    unread: list[str] = []
    with console.working(f"fitting capsules to {len(meshes)} meshes"):
        for mesh in meshes:
            try:
                capsules.append((mesh.link, capsule_containing(mesh.vertices())))
            except FileError as error:
                unread.append(str(error))
    return capsules, unread


def robot_text(
    robot: Robot,
    urdf: Path,
    folder: Path,
    drives: Mapping[str, Mapping[str, Any]],
    capsules: Sequence[tuple[str, FittedCapsule]],
) -> str:
    """Robot file beside a URDF.

    A torque limit that the motor cannot reach is lowered to what it can, in the file and not in the URDF.
    """
    joints: list[dict[str, Any]] = []
    for joint in robot.independent_joints:
        entry: dict[str, Any] = {"name": joint.name}
        drive = drives[joint.name]
        reached = abs(drive["ratio"]) * drive["torque_constant_Nm_A"] * drive["current_limit_A"]
        if joint.torque_limit > reached:
            entry["torque_Nm" if joint.kind == "revolute" else "force_N"] = float(f"{reached * (1.0 - 1e-6):.5g}")
        joints.append({**entry, "drive": {key: value for key, value in drive.items() if value is not None}})
    values = {
        "version": 1,
        "name": robot.name,
        "urdf": os.path.relpath(urdf.resolve(), folder.resolve()),
        "joints": joints,
        "capsules": [
            {
                "link": link,
                "from_mm": [round(1e3 * x, 1) for x in capsule.start.tolist()],
                "to_mm": [round(1e3 * x, 1) for x in capsule.end.tolist()],
                "radius_mm": math.ceil(1e4 * capsule.radius + 10.0 * _PADDING_MM) / 10.0,
            }
            for link, capsule in capsules
        ],
    }
    head = (
        f"# {robot.name}: bodies and limits are those of its URDF, drives are said here. docs/add_robot.md shows what\n"
        "# else a robot file may say: other limits of a joint, springs, couplings, payloads, tolerances.\n"
    )
    return head + tomli_w.dumps({key: value for key, value in values.items() if value != []})


def bench_text(robot: Robot, urls: Mapping[str, str]) -> str:
    """Bench file: a board a joint, numbered from the base on."""
    values: dict[str, Any] = {"version": 1, "name": robot.name, "robot": "robot.toml"}
    if all(url == _EMULATED for url in urls.values()):
        values["plant"] = "plant.toml"
    else:
        values["clock"] = "wall"
    boards = [{"node": node, "joint": joint, "url": url} for node, (joint, url) in enumerate(urls.items(), 1)]
    head = "# Where the board of each joint is. `unix:` is an emulated one: `serial:/dev/ttyACM0` a real one's port.\n"
    return head + tomli_w.dumps({**values, "board": boards})


def why_no_plant(robot: Robot) -> str:
    """Reason why an emulated bench cannot be this robot; empty where it can."""
    for joint in robot.joints:
        if joint.kind != "revolute":
            return f"joint {joint.name!r} slides, and emulated joints turn"
        if joint.mimic is not None:
            return f"joint {joint.name!r} follows another one, and each emulated joint has its own motor"
        if joint.link.standard_parameters is None:
            return f"link {joint.link.name!r} has no inertia in the URDF"
    return ""


def plant_text(robot: Robot, drives: Mapping[str, Mapping[str, Any]]) -> str:
    """Plant of an emulated arm with the bodies of the URDF, and friction and gears that are plausible."""
    joints: list[dict[str, Any]] = []
    parameters = robot.standard_parameters
    assert parameters is not None  # `why_no_plant` says where they are missing
    poses = np.random.default_rng(0).uniform(*robot.position_limits.T, size=(_POSES, robot.n_joints))
    mass_matrices = equations_of_motion(robot, poses, np.zeros_like(poses), parameters).mass_matrix
    largest = np.diagonal(mass_matrices, axis1=1, axis2=2).max(axis=0)
    for joint, moved in zip(robot.independent_joints, largest.tolist(), strict=True):
        link, drive = joint.link, drives[joint.name]
        assert link.center_of_mass is not None
        inertia = np.array(link.inertia_about_center_of_mass)
        reached = abs(drive["ratio"]) * drive["torque_constant_Nm_A"] * drive["current_limit_A"]
        torque = min(joint.torque_limit, reached)
        # Behind the gear; where not known, what the torque would accelerate by 150 rad/s², or half of what it moves.
        known = drive["rotor_inertia_kg_m2"]
        rotor = max(0.5 * moved, torque / 150.0) if known is None else known * drive["ratio"] ** 2
        joints.append(
            {
                "name": joint.name,
                "mass_kg": link.mass,
                "center_of_mass_mm": [1e3 * x for x in link.center_of_mass],
                "inertia_kg_m2": {
                    "xx": inertia[0, 0], "yy": inertia[1, 1], "zz": inertia[2, 2],
                    "xy": inertia[0, 1], "xz": inertia[0, 2], "yz": inertia[1, 2],
                },
                "rotor_inertia_kg_m2": rotor / drive["ratio"] ** 2,
                "coulomb_Nm": _COULOMB_SHARE * torque,
                "viscous_Nms_rad": _VISCOUS_SHARE * torque / joint.velocity_limit,
                "stribeck_Nm": 0.2 * _COULOMB_SHARE * torque,
                "stribeck_velocity_rad_s": 0.02 * joint.velocity_limit,
                "load_friction": 0.0,
                "stiffness_Nm_rad": (moved + rotor) * _GEAR_RATE**2,
                "damping_Nms_rad": 0.1 * (moved + rotor) * _GEAR_RATE,
                "current_range_A": 1.25 * drive["current_limit_A"],
            }
        )  # fmt: skip
    values = {
        "version": 1,
        "name": robot.name,
        "steps_per_tick": 2,
        "drive": {"current_lag_us": 300, "brake_frequency_Hz": 80, "supply_mV": 48000},
        "friction": {"transition_rad_s": 0.01, "ideal_transition_rad_s": 0.002},
        "sensors": {
            "current_noise_mA": 40, "current_gain_spread": 0.01, "current_offset_spread_mA": 25,
            "current_zero_calibration_mA": 3, "motor_encoder_counts": 4096, "link_encoder_counts": 524288,
        },
        "joints": joints,
    }  # fmt: skip
    head = (
        "# What the emulated arm is: bodies as the URDF has them, all else assumed, plausible for the torque limits.\n"
        "# A verdict reached on it says that the files fit together, and nothing of the arm.\n"
    )
    return head + tomli_w.dumps(values)


def _show(
    robot: Robot,
    drawn: Robot,
    drives: Mapping[str, Mapping[str, Any]],
    urls: Mapping[str, str],
    capsules: Sequence[tuple[str, FittedCapsule]],
    unread: Sequence[str],
    console: Console,
) -> None:
    heads = ("joint", "gear", "ratio", "K [N·m/A]", "I [A]", "limit", "board")
    console.say(
        table(
            heads,
            [
                [
                    joint.name, drives[joint.name]["kind"], f"{drives[joint.name]['ratio']:g}",
                    f"{drives[joint.name]['torque_constant_Nm_A']:g}", f"{drives[joint.name]['current_limit_A']:g}",
                    f"{joint.torque_limit:.4g} {'N·m' if joint.kind == 'revolute' else 'N'}", urls[joint.name],
                ]
                for joint in robot.independent_joints
            ],
        )
    )  # fmt: skip
    if capsules:
        rows = [
            [link, f"{1e3 * np.linalg.norm(capsule.end - capsule.start):.0f}", f"{1e3 * capsule.radius:.0f}"]
            for link, capsule in capsules
        ]
        console.say("capsules around its collision meshes:")
        console.say(table(("link", "length [mm]", "radius [mm]"), rows))
    lowered = [
        joint.name
        for joint, old in zip(robot.independent_joints, drawn.independent_joints, strict=True)
        if joint.torque_limit < old.torque_limit
    ]
    if lowered:
        console.say(f"torque limits of {', '.join(lowered)} are lowered to what their motors reach with that current")
    for reason in unread:
        console.say(f"warning: {reason}; collisions of that link are not watched")
