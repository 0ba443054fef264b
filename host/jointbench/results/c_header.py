"""A C header that computes the torques of a model: C99, constant tables, nothing allocated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import Template

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.feedforward import FRICTION_WIDTH
from jointbench.identification.friction import ModelMemory
from jointbench.identification.friction.law import FORMS, LawElement
from jointbench.identification.predictor import DriveTorque, Predictor
from jointbench.model import Robot
from jointbench.model.model_columns import torque_units
from jointbench.model.tree import tree_of
from jointbench.results.c_source import (
    FUNCTIONS,
    HEAD,
    REMEMBERS,
    SELF_TEST,
    TABLES,
    WITH_MEMORY,
    WITHOUT_MEMORY,
)

_NO_LIMIT = 1e30
"""Current [A] in place of one without bound, which C has no portable constant of."""

_CHECKED = 8
"""Samples of the self-test."""

_CHECKED_IN_TIME = 40
"""Where friction remembers; consecutive ones of one motion."""

_HOME_SHARE = 0.4
"""How far the self-test moves from home, as a share of the way to the nearer limit and of the other limits."""


def c_header_text(
    robot: Robot, standard_parameters: ArrayLike, drive_parameters: ArrayLike,
    compensation_parameters: ArrayLike = (), *,
    laws: Sequence[tuple[int, LawElement]] = (), memory: ModelMemory | None = None, origin: str = "",
    about: Sequence[str] = (), left_out: ArrayLike | None = None,
) -> str:  # fmt: skip
    """Text of a header with the torque that `Predictor` computes, and the motor current that `planned_torque` asks for.

    It is the Newton-Euler recursion, about 180 multiplications a link. A regressor of base parameters, which carries
    ten columns of each link down to every joint below it, takes several times as many and more code.

    Args:
        robot: its base at rest; torques of passive joints are zero.
        standard_parameters: ten per link in link order, shape (10 * n_links,); they need not be those of bodies, and
            every one that is zero, as the ones that lead no base parameter, is a constant that the compiler sees.
        drive_parameters: in the order of `drive_parameter_names`, nan where not known, which counts as zero.
        compensation_parameters: in the order of `compensation_parameter_names`, likewise.
        laws: joint and element of friction laws, as of `ModelFriction.elements`.
        memory: friction with memory, beside which the parameters are.
        origin: where the numbers come from, for the first line.
        about: further lines on that: date, digests, standard errors.
        left_out: constant torque that a feed-forward leaves out, as `sensor_offset` has it of a model [N·m or N], shape
            (n_joints,); None: the offsets of all drives.

    Raises:
        ShapeError: the parameters do not match the robot.
        FitError: a compensation is a function of one's own, which has no C.
    """
    links = np.asarray(standard_parameters, dtype=np.float64)
    drives = np.nan_to_num(np.asarray(drive_parameters, dtype=np.float64), nan=0.0)
    more = np.nan_to_num(np.asarray(compensation_parameters, dtype=np.float64), nan=0.0)
    predict = Predictor(robot, links, drives, more, laws, memory)
    name = c_name(robot)
    remembers, train = memory is not None, robot.drive_train
    kinds = [joint.kind for joint in robot.independent_joints]
    words = {
        "name": name, "NAME": name.upper(), "n_joints": robot.n_joints, "n_links": robot.n_links,
        "n_motors": train.n_motors, "n_stops": max(1, 0 if memory is None else memory.n_stops),
        "origin": _words(origin or robot.source), "joints": _words(", ".join(robot.joint_names)),
        "motors": _words(", ".join(drive.name for drive in train.drives)),
        "about": "".join(f" * {_words(line)}\n" for line in about) + (" *\n" if about else ""),
        "unit": " or ".join(unit for kind, unit in (("revolute", "rad"), ("prismatic", "m")) if kind in kinds),
        "torque_unit": torque_units(robot).replace("·", "*"), "friction_width": FRICTION_WIDTH,
        "zeros": int(np.count_nonzero(links == 0.0)), "n_parameters": links.size,
        "given": f"const {name}_friction *state, " if remembers else "", "passed": "state, " if remembers else "",
        "given_state": f"{name}_friction *state, " if remembers else "",
        "kept": "_from" if remembers else "", "tested": "&state, " if remembers else "",
        "remembering": f"    {name}_remember(state, q, dq);\n" if remembers else "",
        "declared": f"    {name}_friction state;\n" if remembers else "",
        "begun": f"    {name}_begin(&state);\n" if remembers else "",
    }  # fmt: skip
    words["remembers"] = Template(REMEMBERS).substitute(words) if remembers else ""
    words["functions"] = Template(WITH_MEMORY if remembers else WITHOUT_MEMORY).substitute(words)
    parts = [
        Template(HEAD).substitute(words),
        *_tables(robot, links, name),
        *_drive_tables(robot, DriveTorque.of(robot, drives), left_out, name),
        *_law_tables(laws, name),
        *_memory_tables(memory, name),
        *_motor_tables(robot, name),
        Template(FUNCTIONS).substitute(
            words | {"passive": _passive_code(robot), "compensations": _compensation_code(robot, more, name)}
        ),
        Template(SELF_TEST).substitute(words | _checked(robot, predict, in_time=remembers)),
    ]
    return "\n".join(parts)


def c_name(robot: Robot) -> str:
    """Return the robot's name as C takes it, with which all names of its header begin."""
    name = re.sub(r"\W", "_", robot.name, flags=re.ASCII)
    return f"robot_{name}" if name[0].isdigit() else name


def _tables(robot: Robot, links: Array, name: str) -> list[str]:
    tree = tree_of(robot)
    integers = {"parent": tree.parent, "coordinate": tree.coordinate}
    reals = {
        "factor": tree.factor, "offset": tree.offset, "rotation": tree.rotation.reshape(-1, 27),
        "origin": tree.origin, "slide": tree.slide, "axis": tree.axis, "link": links.reshape(-1, 10),
        "gravity": tree.gravity,
    }  # fmt: skip
    text = [TABLES]
    text += [_table("int", f"{name}_{key}", values) for key, values in integers.items()]
    return text + [_table(f"{name}_real", f"{name}_{key}", values) for key, values in reals.items()]


def _drive_tables(robot: Robot, drives: DriveTorque, left_out: ArrayLike | None, name: str) -> list[str]:
    constants = np.array(drives.offset if left_out is None else left_out, dtype=np.float64)
    constants[~robot.modelled] = 0.0
    rows = np.hstack([drives.offset[:, None], drives.inertia, drives.viscous])
    rows[~robot.modelled] = 0.0
    rubbing = np.flatnonzero(drives.coulomb.any(axis=0))
    text = [
        "/* Drives: offset, then rotor inertia and viscous friction by the speed of each joint. */",
        _table(f"{name}_real", f"{name}_drive", rows),
        "/* Constants of the sensors, which a feed-forward leaves out; what may be a spring's preload stays. */",
        _table(f"{name}_real", f"{name}_sensor_offset", constants),
        f"#define {name.upper()}_RUBBING {len(rubbing)}",
    ]
    if not len(rubbing):
        return text
    # Each rubs at one joint's row; a motor that several joints turn has one entry for each of them.
    return [
        *text,
        "/* Coulomb friction: at which joint, how much, and its speed by those of the joints. */",
        _table("int", f"{name}_rubs_at", np.argmax(drives.coulomb[:, rubbing] != 0.0, axis=0)),
        _table(f"{name}_real", f"{name}_coulomb", drives.coulomb[:, rubbing].sum(axis=0)),
        _table(f"{name}_real", f"{name}_speed", drives.speeds[rubbing]),
    ]


def _law_tables(laws: Sequence[tuple[int, LawElement]], name: str) -> list[str]:
    count = f"#define {name.upper()}_LAWS {len(laws)}"
    if not laws:
        return [count]
    kinds = np.array([(joint, element.form, element.direction) for joint, element in laws])
    values = np.array([(element.coefficient, element.shape) for _, element in laws])
    forms = ", ".join(f"{form.value} {words}" for form, words in FORMS.items())
    return [
        count,
        f"/* Friction laws: joint, form ({forms}) and direction (0: both); coefficient and s. */",
        _table("int", f"{name}_law_kind", kinds),
        _table(f"{name}_real", f"{name}_law", values),
    ]


def _memory_tables(memory: ModelMemory | None, name: str) -> list[str]:
    if memory is None:
        return [f"#define {name.upper()}_AXES 0"]
    shares, joints, stops, terms = memory.terms
    sizes = {"AXES": len(shares), "STOPS": len(stops), "TERMS": len(terms)}
    text = [
        "/* Friction with memory. Axes: by the joints that turn them, and the joint whose load they carry, or -1. */",
        *(f"#define {name.upper()}_{key} {size}" for key, size in sizes.items()),
        _table(f"{name}_real", f"{name}_axis_shares", shares),
        _table("int", f"{name}_axis_joint", joints.astype(np.intp)),
    ]
    if len(stops):
        text += [
            "/* Stops, each clipped at its threshold: axis; threshold. */",
            _table("int", f"{name}_stop_axis", stops[:, 0].astype(np.intp)),
            _table(f"{name}_real", f"{name}_threshold", stops[:, 1]),
        ]
    return [
        *text,
        "/* Terms: axis, stop or -1: tanh(v / width), amplitude (0: 1, 1: |load|, 2: exp(-(v / s)^2));",
        " * width, s, weight. */",
        _table("int", f"{name}_term_kind", terms[:, [0, 1, 3]].astype(np.intp)),
        _table(f"{name}_real", f"{name}_term", terms[:, [2, 4, 5]]),
        "/* What friction remembers: stops over their thresholds. */",
        f"typedef struct {{ int begun; {name}_real position[{shares.shape[1]}], stop[{max(1, len(stops))}]; }} "
        f"{name}_friction;",
    ]


def _motor_tables(robot: Robot, name: str) -> list[str]:
    train = robot.drive_train
    constants = np.array([drive.torque_constant for drive in train.drives])
    limits = np.array([min(drive.current_limit, _NO_LIMIT) for drive in train.drives])
    per_torque = np.divide(
        train.inverse.T, constants[:, None], out=np.zeros_like(train.inverse.T), where=constants[:, None] != 0.0
    )
    return [
        "/* Motors: current by the torque of each joint [A/(N*m) or A/N], 0 of those without a torque constant; their",
        " * largest current [A]. */",
        _table(f"{name}_real", f"{name}_current_per_torque", per_torque),
        _table(f"{name}_real", f"{name}_current_limit", limits),
    ]


def _compensation_code(robot: Robot, parameters: Array, name: str) -> str:
    lines: list[str] = []
    values = iter(parameters.tolist())
    for compensation in robot.compensations:
        own = [repr(next(values) + 0.0) for _ in compensation.parameters]
        j = robot.joint_index(compensation.joints[0])
        match compensation.kind:
            case "spring":
                torque = "{} * q[{j}] + {}".format(*own, j=j)
            case "sine_spring":
                torque = "{} * {n}_SIN(q[{j}]) + {} * {n}_COS(q[{j}])".format(*own, j=j, n=name.upper())
            case _:
                raise FitError(
                    f"compensation {compensation.name!r} of robot {robot.name!r} is a Python function, which cannot be "
                    f"written in C; fit with springs alone, or predict with Predictor"
                )
        lines.append(f"    tau[{j}] += ({name}_real)({torque}); /* {_words(compensation.name)} */\n")
    return "".join(lines)


def _passive_code(robot: Robot) -> str:
    passive = np.flatnonzero(~robot.modelled).tolist()
    return "".join(f"    tau[{j}] = 0; /* passive */\n" for j in passive)


def _checked(robot: Robot, predict: Predictor, *, in_time: bool) -> dict[str, str]:
    """Samples within the limits, of one motion where friction remembers, and their torques."""
    rng = np.random.default_rng(0)
    low, high = robot.position_limits.T
    home = np.array(robot.home)
    reach = np.minimum(np.minimum(home - low, high - home), np.pi)
    scales = (reach, robot.velocity_limits, robot.acceleration_limits)
    q, dq, ddq = (_HOME_SHARE * scale * rng.uniform(-1.0, 1.0, (_CHECKED, robot.n_joints)) for scale in scales)
    q = q + home
    if in_time:
        q, dq, ddq = _motion(rng, home, reach, robot)
    tau = np.array([predict(*state) for state in zip(q, dq, ddq, strict=True)])
    rows = np.stack([q, dq, ddq, tau], axis=1).reshape(len(q), -1)
    return {"n_checked": str(len(q)), "checked": _braces(rows)}


def _motion(rng: np.random.Generator, home: Array, reach: Array, robot: Robot) -> tuple[Array, Array, Array]:
    """A motion with a reversal of each joint, within the limits."""
    turns, at = np.pi * rng.uniform(0.5, 1.5, robot.n_joints), np.linspace(0.0, 2.0, _CHECKED_IN_TIME)[:, None]
    size = _HOME_SHARE * np.minimum(reach, np.minimum(robot.velocity_limits, np.sqrt(robot.acceleration_limits)))
    swing = turns * at
    return home + size * np.sin(swing), size * turns * np.cos(swing), -size * turns**2 * np.sin(swing)


def _table(kind: str, name: str, values: Array | NDArray[np.integer]) -> str:
    size = "".join(f"[{length}]" for length in values.shape)
    return f"static const {kind} {name}{size} = {_braces(values)};"


def _braces(values: Array | NDArray[np.integer]) -> str:
    if values.ndim > 1:
        return "{\n" + ",\n".join(f"    {_braces(row)}" for row in values) + "\n}"
    return "{" + ", ".join(_numbers(values.tolist())) + "}"


def _numbers(values: Sequence[float]) -> Iterable[str]:
    # A sum with 0.0 makes no minus of a zero; repr has all digits that a double has.
    return (repr(value) if isinstance(value, int) else repr(value + 0.0) for value in values)


def _words(text: str) -> str:
    """Text that neither ends a comment nor begins one, nor continues a line, as "??/" would as well."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")
