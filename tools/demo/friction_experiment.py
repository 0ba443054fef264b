"""The friction experiment of the nursing robot's paper: a sweep of speeds, and Makkar's law fitted to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointbench import Excitation, Robot, Run
from jointbench.cli.result import Check
from jointbench.cli.tables import table
from jointbench.dynamics import hanging_pose
from jointbench.excitation import plan_speed_sweep
from jointbench.identification.friction import (
    FrictionData,
    FrictionFit,
    compare_laws,
    fit_friction,
    friction_law,
    friction_of_run,
)
from jointbench.robot import Array
from tools.demo.story import PaperLine
from tools.truth import Truth

ROTATIONS, PITCHES = ("j1", "j3", "j5"), ("j2", "j4", "j6")
LEAST_R_SQUARED, LARGEST_ERROR_PERCENT = 0.99, 2.0
SWEEPS = {"rotation": ROTATIONS, "pitch": PITCHES}
HOLD = 0.128
"""How long each speed is held [s]: several times what the servos need to settle."""


@dataclass(frozen=True, eq=False)
class JointFriction:
    """What a sweep told of one joint's friction.

    Attributes:
        joint: its name.
        ours: Makkar's law, or the same with a part that grows with the load where the sweep tells it, by variable
            projection.
        swarm: Makkar's law by a particle swarm, the paper's way.
        error, swarm_error: rms difference to the plant's friction without load at the speeds that were held, as a share
            of its range there.
    """

    joint: str
    ours: FrictionFit
    swarm: FrictionFit
    error: float
    swarm_error: float


def plan_sweeps(robot: Robot) -> dict[str, tuple[Excitation, int]]:
    """Rotations together, then pitches together; where the others stay, gravity turns nothing."""
    pose = hanging_pose(robot)
    return {name: (plan_speed_sweep(robot, joints, pose, hold=HOLD), 1) for name, joints in SWEEPS.items()}


def friction_of_joints(runs: Mapping[str, Run], truth: Truth, seed: int) -> dict[str, JointFriction]:
    """Fit each joint's friction to the sweep that moved it, in the order of the joints."""
    found: dict[str, JointFriction] = {}
    for name in SWEEPS:
        for joint, data in friction_of_run(runs[name], way="sweep").joints.items():
            laws = ("makkar",) if data.load is None else ("makkar", "makkar+load")
            ours = compare_laws(data, [friction_law(law, data) for law in laws]).best_fit
            swarm = fit_friction(data, friction_law("makkar", data), method="particle_swarm", seed=seed)
            unloaded = FrictionData(data.velocity, data.torque, np.zeros_like(data.velocity))
            true = true_friction(truth[joint]["friction"], data.velocity)
            errors = [float(np.sqrt(np.mean((fit.torque(unloaded) - true) ** 2))) for fit in (ours, swarm)]
            found[joint] = JointFriction(joint, ours, swarm, *(error / float(np.ptp(true)) for error in errors))
    return dict(sorted(found.items()))


def true_friction(friction: Mapping[str, Any], velocity: Array) -> Array:
    """Friction of the plant's unloaded joint at these speeds [N·m], as `read_truth` tells it."""
    if friction["law"] == "makkar":
        g1, g2, g3, g4, g5, g6 = friction["gammas"]
        rise = np.tanh(g2 * velocity) - np.tanh(g3 * velocity)
        grease = friction["grease_drag"] * np.sign(velocity) * np.abs(velocity) ** (2.0 / 3.0)
        return g1 * rise + g4 * np.tanh(g5 * velocity) + g6 * velocity + grease
    return friction["coulomb"] * np.tanh(velocity / friction["transition"]) + friction["viscous"] * velocity


def friction_table(joints: Mapping[str, JointFriction]) -> str:
    """A line per joint."""
    rows = [
        [name, each.ours.law.name, f"{each.ours.r_squared:.5f}", f"{each.error:.2%}",
         f"{each.swarm.r_squared:.5f}", f"{each.swarm_error:.2%}"]
        for name, each in joints.items()
    ]  # fmt: skip
    return table(("joint", "law", "R²", "off the plant's", "R² by swarm", "off the plant's"), rows)


def friction_lines(joints: Mapping[str, JointFriction]) -> tuple[PaperLine, ...]:
    """R² and the error to the plant's friction, of rotation and of pitch, each of its worst joint."""
    lines: list[PaperLine] = []
    for what, printed in (("rotation", "0.931"), ("pitch", "0.927")):
        names = SWEEPS[what]
        each = [joints[name] for name in names]
        r_squared = min(one.ours.r_squared for one in each)
        lines.append(
            PaperLine(
                f"friction R², {what}",
                printed,
                _by_joint(names, [f"{one.ours.r_squared:.4f}" for one in each]),
                Check(f"friction_r_squared_{what}", r_squared, ">=", LEAST_R_SQUARED),
            )
        )
        lines.append(
            PaperLine(
                f"friction R² by the paper's swarm, {what}",
                printed,
                _by_joint(names, [f"{one.swarm.r_squared:.4f}" for one in each]),
            )
        )
        lines.append(
            PaperLine(
                f"friction off the plant's own, share of its range, {what}",
                "–",
                _by_joint(names, [f"{one.error:.2%}" for one in each]),
                Check(
                    f"friction_error_{what}", 100.0 * max(one.error for one in each), "<=", LARGEST_ERROR_PERCENT, "%"
                ),
            )
        )
    return tuple(lines)


def friction_fields(joints: Mapping[str, JointFriction]) -> dict[str, Any]:
    """What of it belongs into --json."""
    return {
        name: {
            "law": each.ours.law.name,
            "parameters": dict(zip(each.ours.law.names, each.ours.parameters.tolist(), strict=True)),
            "r_squared": each.ours.r_squared,
            "error_to_truth": each.error,
            "swarm_r_squared": each.swarm.r_squared,
            "swarm_error_to_truth": each.swarm_error,
        }
        for name, each in joints.items()
    }


def _by_joint(names: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
