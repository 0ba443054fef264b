"""The nursing robot's friction experiment: stairs of speeds, Makkar's law fitted to them; as printed, and quicker.

As printed, it takes 55 minutes of the robot's time an axis, which emulated boards and the physics of six joints pass
in about as long; so it is not played on them. Nothing accelerates in the steady part of a stroke, and gravity turns
nothing in the paper's pose: what motors give there is friction, the current's own errors, and no more. The quicker
stairs, which are played, stand beside it.

Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024, eq. 17 to 21.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hil_tests.virtual_bench.friction import MeshRipple
from jointbench import Excitation, Model, Robot, Run
from jointbench.arrays import Array
from jointbench.checks import Check
from jointbench.cli.console import table
from jointbench.excitation import plan_speed_sweep
from jointbench.identification.friction import (
    FrictionData,
    FrictionFit,
    SpeedSweep,
    compare_laws,
    fit_friction,
    friction_law,
    friction_of_run,
)
from jointbench.model import hanging_pose
from tools.demo.story import PaperLine
from tools.truth import Truth

POINTS = 90
"""Of a stroke's steady part that are looked at: two degrees apart."""

OFFSET_SHARE = 0.01
"""Of the largest friction, by which the two directions differ alike: what the paper calls modelling error, τn."""


@dataclass(frozen=True, eq=False)
class PrintedExperiment:
    """Friction by both directions of each speed.

    Attributes:
        speeds: of the strokes [rad/s], shape (n_speeds,).
        friction: by eq. 20, at each of POINTS places of a stroke [N·m], shape (n_speeds, POINTS).
        truth: what rubbed then, the mean over a tooth [N·m], shape (n_speeds,).
    """

    speeds: Array
    friction: Array
    truth: Array

    @property
    def means(self) -> FrictionData:
        """A row for each speed."""
        return FrictionData(self.speeds, self.friction.mean(axis=1))

    @property
    def samples(self) -> FrictionData:
        """All points of all strokes."""
        return FrictionData(np.repeat(self.speeds, self.friction.shape[1]), self.friction.ravel())

    def error(self, fit: FrictionFit) -> float:
        """RMS of a law's difference to what rubbed, as a share of the RMS of that."""
        off = fit.torque(FrictionData(self.speeds, self.truth)) - self.truth
        return float(np.sqrt(np.mean(off**2) / np.mean(self.truth**2)))

    def r_squared_of_samples(self, fit: FrictionFit) -> float:
        """R² of a law over all points of all strokes."""
        samples = self.samples
        left = samples.torque - fit.torque(samples)
        return float(1.0 - np.mean(left**2) / np.var(samples.torque))


def combined(first: tuple[Array, Array], second: tuple[Array, Array], *, pitch: bool) -> Array:
    """Friction of one axis of a pair by eq. 20, of the torques of its motors one way and back [N·m].

    τf1 = (T1(+) - T2(+) - T1(-) + T2(-))/2 of the rotation, τf2 = (T1(+) + T2(+) - T1(-) - T2(-))/2 of the pitch.

    Args:
        first, second: of motor 1 and of motor 2, each one way and back.
        pitch: which of the two.
    """
    sign = 1.0 if pitch else -1.0
    there, back = (one + sign * other for one, other in zip(first, second, strict=True))
    return 0.5 * (there - back)


def experiment(
    friction: Mapping[str, Any], *, pitch: bool, noise: float, seed: int, sweep: SpeedSweep | None = None
) -> PrintedExperiment:
    """Move one axis of a pair to and fro at each speed, and combine what its motors give.

    Args:
        friction: of the plant's joint, as `read_truth` tells it.
        pitch: whether it is the pair's pitch.
        noise: rms of a motor's torque at one point [N·m].
        seed: of the noise.
        sweep: the strokes; None: as printed.
    """
    sweep = sweep or SpeedSweep()
    rng = np.random.default_rng(seed)
    ripple = MeshRipple(
        friction["mesh_ripple"],
        friction["mesh_teeth"],
        1,
        second=friction["mesh_second"],
        phases=np.array(friction["mesh_phases"])[:, None],
        warming=friction["warming"],
        warming_time=friction["warming_time"],
    )
    steady = mean_friction(friction, sweep.speeds)
    offset = OFFSET_SHARE * float(steady.max())
    found, truth = np.empty((len(steady), POINTS)), np.empty(len(steady))
    time = 0.0
    for k, speed in enumerate(sweep.speeds.tolist()):
        ramp = 0.5 * speed**2 / sweep.acceleration
        places = np.linspace(sweep.lower + ramp, sweep.upper - ramp, POINTS)
        ways: list[tuple[Array, Array]] = []
        warmth: list[float] = []
        for direction in (1.0, -1.0):
            swell = np.ones(POINTS)
            for i, place in enumerate(places.tolist()):
                at = (place - sweep.lower if direction > 0.0 else sweep.upper - place) / speed
                ripple.turn_to(np.array([place]), time + at)
                swell[i] = ripple.swell(np.ones(1))[0]
            rubbing = direction * (swell * (steady[k] - viscous(friction, speed)) + viscous(friction, speed))
            needed = rubbing + offset
            # Each motor gives half of it, with the sign that its bevel has in the joint's motion.
            ways.append(tuple(0.5 * needed * sign + noise * rng.standard_normal(POINTS) for sign in _signs(pitch)))  # type: ignore[arg-type]
            warmth.append(warm(friction, time + 0.5 * (sweep.upper - sweep.lower) / speed))
            time += (sweep.upper - sweep.lower) / speed + speed / sweep.acceleration + sweep.pause
        (first_there, second_there), (first_back, second_back) = ways
        found[k] = combined((first_there, first_back), (second_there, second_back), pitch=pitch)
        rub = viscous(friction, speed)
        truth[k] = rub + (steady[k] - rub) * float(np.mean(warmth))
    return PrintedExperiment(sweep.speeds, found, truth)


def _signs(pitch: bool) -> tuple[float, float]:
    return (1.0, 1.0) if pitch else (1.0, -1.0)


def mean_friction(friction: Mapping[str, Any], speed: Array) -> Array:
    """Friction at steady speeds above zero, the mean over a tooth of cold gears [N·m]."""
    g1, g2, g3, g4, g5, g6 = friction["gammas"]
    grease = friction["grease_drag"] * speed ** (2.0 / 3.0)
    return g1 * (np.tanh(g2 * speed) - np.tanh(g3 * speed)) + g4 * np.tanh(g5 * speed) + g6 * speed + grease


def viscous(friction: Mapping[str, Any], speed: float) -> float:
    """The part that neither teeth nor warmth change in the plant [N·m]."""
    return friction["gammas"][5] * speed


def warm(friction: Mapping[str, Any], time: float) -> float:
    """Share of the remaining change after this time [s]."""
    return float(1.0 + friction["warming"] * np.expm1(-time / friction["warming_time"]))


def papers_law(found: PrintedExperiment, seed: int) -> FrictionFit:
    """Makkar's law by the paper's swarm: six dimensions, 200 iterations, constriction; of all points of all strokes."""
    samples = found.samples
    return fit_friction(samples, friction_law("makkar", samples), method="particle_swarm", seed=seed)


def our_law(found: PrintedExperiment) -> FrictionFit:
    """Fit the law by variable projection, to the means over whole teeth."""
    means = found.means
    return fit_friction(means, friction_law("makkar", means))


ROTATIONS, PITCHES = ("j1", "j3", "j5"), ("j2", "j4", "j6")
LARGEST_ERROR_PERCENT = 2.0
SWEEPS = {"rotation": ROTATIONS, "pitch": PITCHES}
BETWEEN, FIRST, FIRST_BETWEEN = "_between", math.radians(1.0), math.radians(1.25)
"""A second stair has its speeds halfway between the printed ones and passes the teeth elsewhere: one of them holds a
speed for a part of a tooth only."""

EXCITATION_ROWS = 800
"""Of the excitation that count beside 61 of each stair: they are neighbours in time, and no new speeds each."""

CURRENT_NOISE = 0.45e-3
"""Of a motor's current at one point of a printed stroke [A]: 4 mA a sample, 80 of which are averaged."""

HOLD = 0.128
"""How long each speed is held [s]: several times what the servos need to settle."""


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Friction of one joint by a sweep.

    Attributes:
        joint: its name.
        ours: Makkar's law, or the same with a part that grows with the load where the sweep tells it, by variable
            projection.
        swarm: Makkar's law by a particle swarm, the paper's way.
        error, swarm_error: rms difference to the plant's friction without load at the speeds that were held, as a share
            of its rms there.
        printed: the experiment as printed, on the plant's laws.
        printed_ours, printed_swarm: the laws fitted to it.
    """

    joint: str
    ours: FrictionFit
    swarm: FrictionFit
    error: float
    swarm_error: float
    printed: PrintedExperiment
    printed_ours: FrictionFit
    printed_swarm: FrictionFit

    @property
    def printed_means(self) -> float:
        """R² of the paper's law over the means of each printed speed."""
        means = self.printed.means
        left = means.torque - self.printed_swarm.torque(means)
        return float(1.0 - np.mean(left**2) / np.var(means.torque))


def plan_sweeps(robot: Robot) -> dict[str, tuple[Excitation, int]]:
    """Rotations together, then pitches together, twice; where the others stay, gravity turns nothing."""
    pose = hanging_pose(robot)
    return {
        name + after: (plan_speed_sweep(robot, joints, pose, hold=HOLD, first=first), 1)
        for name, joints in SWEEPS.items()
        for after, first in (("", FIRST), (BETWEEN, FIRST_BETWEEN))
    }


def friction_of_joints(runs: Mapping[str, Run], truth: Truth, seed: int) -> dict[str, JointFriction]:
    """Fit each joint's friction to the stairs that moved it, and to the printed strokes, in the order of the joints."""
    found: dict[str, JointFriction] = {}
    for name in SWEEPS:
        stairs = [friction_of_run(runs[each], way="sweep").joints for each in (name, name + BETWEEN) if each in runs]
        robot = runs[name].robot
        drives = dict(zip(robot.joint_names, robot.drives, strict=True))
        for joint in stairs[0]:
            data = joined([each[joint] for each in stairs])
            laws = ("makkar",) if data.load is None else ("makkar", "makkar+load")
            ours = compare_laws(data, [friction_law(law, data) for law in laws]).best_fit
            swarm = fit_friction(data, friction_law("makkar", data), method="particle_swarm", seed=seed)
            unloaded = FrictionData(data.velocity, data.torque, np.zeros_like(data.velocity))
            true = true_friction(truth[joint]["friction"], data.velocity)
            error, swarm_error = (
                float(np.sqrt(np.mean((fit.torque(unloaded) - true) ** 2) / np.mean(true**2))) for fit in (ours, swarm)
            )
            noise = CURRENT_NOISE * abs(drives[joint].torque_per_current)
            printed = experiment(truth[joint]["friction"], pitch=joint in PITCHES, noise=noise, seed=seed)
            found[joint] = JointFriction(
                joint, ours, swarm, error, swarm_error, printed, our_law(printed), papers_law(printed, seed)
            )  # fmt: skip
    return dict(sorted(found.items()))


def refined(
    joints: Mapping[str, JointFriction], runs: Mapping[str, Run], excitations: Sequence[Run], model: Model
) -> dict[str, FrictionFit]:
    """Our law of each joint once more, of its stairs and of what a model of the links leaves of the excitations.

    A stair passes a part of a tooth at each speed; an excitation passes all teeth within its reach, at any speed.
    """
    residuals = [friction_of_run(excitation, way="model", model=model).joints for excitation in excitations]
    found: dict[str, FrictionFit] = {}
    for name in SWEEPS:
        stairs = [friction_of_run(runs[each], way="sweep").joints for each in (name, name + BETWEEN) if each in runs]
        for joint in stairs[0]:
            law, moved = joints[joint].ours.law, joined([residual[joint] for residual in residuals])
            few = slice(None, None, max(1, moved.n_rows // EXCITATION_ROWS))
            load = moved.load[few] if moved.load is not None and "load" in law.name else None
            taken = FrictionData(moved.velocity[few], moved.torque[few], load)
            data = joined([*(each[joint] for each in stairs), taken])
            found[joint] = fit_friction(data, friction_law(law.name, data))
    return found


def joined(parts: Sequence[FrictionData]) -> FrictionData:
    """Rows of several stairs of one joint; its load counts where each tells one."""
    loads = [part.load for part in parts if part.load is not None]
    return FrictionData(
        np.concatenate([part.velocity for part in parts]),
        np.concatenate([part.torque for part in parts]),
        np.concatenate(loads) if len(loads) == len(parts) else None,
    )


def true_friction(friction: Mapping[str, Any], velocity: Array) -> Array:
    """Friction of the plant's unloaded joint at these speeds [N·m], as `read_truth` tells it."""
    if friction["law"] == "makkar":
        return np.sign(velocity) * mean_friction(friction, np.abs(velocity))
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
    """R² and the error to the plant's friction, of rotation and of pitch: printed strokes, then the stairs played."""
    lines: list[PaperLine] = []
    for what, printed in (("rotation", "0.931"), ("pitch", "0.927")):
        names = SWEEPS[what]
        each = [joints[name] for name in names]
        worst, worst_played = (
            100.0 * max(one.printed.error(one.printed_ours) for one in each),
            100.0 * max(one.error for one in each),
        )

        def line(quantity: str, paper: str, values: Sequence[str], check: Check | None = None) -> PaperLine:
            return PaperLine(f"{quantity}, {what}", paper, _by_joint(names, values), check)  # noqa: B023  # used at once

        lines += [
            line(
                "friction R² over the points of the printed strokes, paper's method", printed,
                [f"{one.printed.r_squared_of_samples(one.printed_swarm):.3f}" for one in each],
            ),
            line(
                "the same, over the means of each speed", "–", [f"{one.printed_means:.4f}" for one in each]
            ),
            line(
                "friction off the plant's own, share of its rms, printed strokes, paper's method", "–",
                [f"{one.printed.error(one.printed_swarm):.2%}" for one in each],
            ),
            line(
                "the same, ours", "–", [f"{one.printed.error(one.printed_ours):.2%}" for one in each],
                Check(f"friction_error_{what}", worst, "<=", LARGEST_ERROR_PERCENT, "%"),
            ),
            line(
                "friction off the plant's own, stairs played, the paper's swarm", "–",
                [f"{one.swarm_error:.2%} (R² {one.swarm.r_squared:.3f})" for one in each],
            ),
            line(
                "the same, ours", "–", [f"{one.error:.2%} (R² {one.ours.r_squared:.3f})" for one in each],
                Check(f"friction_error_played_{what}", worst_played, "<=", LARGEST_ERROR_PERCENT, "%"),
            ),
        ]  # fmt: skip
    return tuple(lines)


def friction_fields(joints: Mapping[str, JointFriction]) -> dict[str, Any]:
    """Fields of the friction for --json."""
    return {
        name: {
            "law": each.ours.law.name,
            "parameters": dict(zip(each.ours.law.names, each.ours.parameters.tolist(), strict=True)),
            "r_squared": each.ours.r_squared,
            "error_to_truth": each.error,
            "swarm_r_squared": each.swarm.r_squared,
            "swarm_error_to_truth": each.swarm_error,
            "printed_error_to_truth": each.printed.error(each.printed_ours),
            "printed_swarm_error_to_truth": each.printed.error(each.printed_swarm),
            "printed_swarm_r_squared": each.printed.r_squared_of_samples(each.printed_swarm),
        }
        for name, each in joints.items()
    }


def _by_joint(names: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
