"""`./run bench balance`: a biped's planned and played zero-moment points, planned by its file and by its estimate."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file
from hil_tests.virtual_bench.plant_variants import plant_of_seed
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.standing_plant import StandingPlant
from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.excitation import plan_single_support
from jointbench.excitation.single_support.balance import Balance
from jointbench.identification.zero_moment_point import (
    ReducedParameters,
    ZmpEstimate,
    fit_stance,
    joined,
    stance_of_run,
)
from jointbench.model import Foot, Robot
from jointbench.recording import Run
from jointbench.signals import LowPass, Motion
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    EVERY,
    PERIOD_S,
    Sway,
    biped,
    simulated_run,
)
from jointwire import BY_NAME

PLANT = Path(__file__).resolve().parents[2] / "hil_tests" / "virtual_bench" / "plants" / "gorobot2.toml"
FOOT = "r_foot"
RUNS, RUN_S = 2, 48.0
"""Motions that the masses are identified from, planned by the robot file."""

VERIFICATIONS, VERIFICATION_S = 3, 25.6
"""Motions that are planned by the file and again by the estimate, each from a seed of its own."""

LEAST_RATIO = 2.0
"""Mean tracking error by the robot file over that by the estimate."""

STIFFNESS, DAMPING = 10_000.0, 250.0
"""Of the servo of every joint [N·m/rad], [N·m·s/rad], as in hil_tests/benches/gorobot2.toml."""

CUTOFF_HZ = 2.0
"""Of the low-pass over the ground's forces; 99.9 % of the planned movement lies below, vibration of gears above."""


@dataclass(frozen=True, eq=False)
class Played:
    """A plant's motion and forces, at each tick.

    Attributes:
        force: of the ground on the corners of each foot, without errors of sensors [N], shape (n_ticks, n_feet, 4).
        position: of the links [rad], shape (n_ticks, n_joints).
    """

    force: Array
    position: Array


@dataclass(frozen=True, eq=False)
class Masses:
    """Masses that a motion is balanced with.

    Attributes:
        parameters: ten standard parameters of the base's link, then of each link; the robot file's where None.
        zmp_offset: measured less predicted zero-moment point at home, forward and left [m].
    """

    parameters: Array | None = None
    zmp_offset: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Tracking:
    """Planned beside played zero-moment point of one motion.

    Attributes:
        error: mean distance between them [m].
        worst: largest distance [m].
        planned_distance: least distance of the planned point from the sole's edge [m].
        distance: the same of the played point [m].
    """

    error: float
    worst: float
    planned_distance: float
    distance: float


def play(robot: Robot, truth: PlantFile, motion: Motion) -> Played:
    """Let a plant follow a motion, given at each tick, with position servos that know the planned velocity."""
    plant = StandingPlant(robot, truth, "harmonic")
    q, dq = motion.q, motion.dq
    per_current = np.array([drive.torque_constant * drive.ratio for drive in robot.drives])
    enabled, before = np.ones(robot.n_joints, dtype=np.bool_), plant.motor_position
    force, position = np.empty((len(q), len(robot.feet), 4)), np.empty_like(q)
    for k in range(len(q)):
        now = plant.motor_position
        torque = STIFFNESS * (q[k] - now) + DAMPING * (dq[k] - (now - before) / TICK)
        before, state = now, plant.advance(enabled, torque / per_current)
        force[k], position[k] = state.foot_force, state.link_position
    return Played(force, position)


def record(robot: Robot, truth: PlantFile, played: Played, seed: int) -> Run:
    """Recording of the boards of a seed at each eighth tick: load cells and link encoders with their errors."""
    feet = Sensors(robot, truth, "harmonic", seed).feet
    assert feet is not None
    counts = np.array([feet.read(force) for force in played.force], dtype=np.float64)
    facts = [feet.facts(k) for k in range(len(robot.feet))]
    zeros = np.array([[fact[f"force.zero_{corner}"] for corner in range(1, 5)] for fact in facts])
    scale = np.array([fact["force.scale"] for fact in facts]) * BY_NAME["force.scale"].scale
    sent = slice(EVERY - 1, None, EVERY)
    force, position = ((counts - zeros) * scale[:, None])[sent], played.position[sent]
    still = np.zeros_like(position)
    motion = Sway(PERIOD_S * np.arange(len(position), dtype=np.float64), position, still, still)
    return simulated_run(robot, motion, force[:, 0], force[:, 1], counts=truth.sensors.link_encoder_counts)


def identify(robot: Robot, truth: PlantFile, seed: int) -> ZmpEstimate:
    """Estimate masses and centres from random motions that the robot file planned."""
    mass = total_mass(truth)
    stances = [
        stance_of_run(record(robot, truth, play(robot, truth, plan(robot, RUN_S, seed)), seed), mass)
        for seed in range(RUNS * seed, RUNS * (seed + 1))
    ]
    return fit_stance(joined(stances), ReducedParameters(robot), mass)


def total_mass(truth: PlantFile) -> float:
    """Mass of the whole plant as scales would tell it [kg]."""
    links = [joint.link for joint in truth.joints]
    return sum(link.mass or 0.0 for link in ([truth.base_link, *links] if truth.base_link else links))


def plan(robot: Robot, duration: float, seed: int, masses: Masses | None = None) -> Motion:
    """A random motion on one foot at each tick, in balance by these masses or those of the robot file."""
    masses = masses or Masses()
    excitation = plan_single_support(
        robot, duration, seed, hips_turn=False, parameters=masses.parameters, zmp_offset=masses.zmp_offset
    )
    return Motion(*excitation.evaluate(TICK * np.arange(round(duration / TICK), dtype=np.float64)))


def home_offset(robot: Robot, truth: PlantFile) -> tuple[float, float]:
    """Zero-moment point of the plant at rest at home less that by the robot file, forward and left [m]."""
    home = np.array(robot.home)[None]
    still = np.zeros_like(home)
    stands = robot.foot(FOOT).pressure_point(StandingPlant(robot, truth, "harmonic").standing().foot_force[None, 0])
    forward, left = (stands - Balance.of(robot, FOOT, home, still, still).points)[0].tolist()
    return forward, left


def track(robot: Robot, motion: Motion, played: Played, masses: Masses | None = None) -> Tracking:
    """Hold the played zero-moment point of a motion against the one that it was planned with.

    Args:
        robot: as it was planned for.
        motion: at each tick, planned with `masses`.
        played: from its first tick on.
        masses: the robot file's where not given.
    """
    masses = masses or Masses()
    sole, sent = robot.foot(FOOT), slice(EVERY - 1, None, EVERY)
    low_pass = LowPass(CUTOFF_HZ, PERIOD_S)
    point = sole.pressure_point(low_pass.apply(played.force[sent, 0]))
    planned = Balance.of(
        robot, FOOT, motion.q[sent], motion.dq[sent], motion.ddq[sent], masses.parameters, masses.zmp_offset
    ).points
    rows = slice(low_pass.settling, -low_pass.settling)  # ends of the filter
    return tracking(sole, planned[rows], point[rows])


def tracking(sole: Foot, planned: Array, played: Array) -> Tracking:
    """Compare planned and played zero-moment points, from the sole's middle [m], shape (n, 2) each."""
    off = np.linalg.norm(played - planned, axis=1)
    return Tracking(
        error=float(off.mean()),
        worst=float(off.max()),
        planned_distance=float(sole.distance_to_edge(planned).min()),
        distance=float(sole.distance_to_edge(played).min()),
    )


FILE, OFFSET, ESTIMATE = "robot file", "file and offset at home", "estimate"


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Identify a plant's masses, plan motions by the file and by the estimate, and play all of them on the plant."""
    robot = biped()
    truth = plant_of_seed(read_plant_file(PLANT, robot), robot, options.seed)
    with console.working(f"identifying masses from {RUNS} motions of {RUN_S:g} s"):
        estimate = identify(robot, truth, options.seed)
    ways = {
        FILE: Masses(),
        OFFSET: Masses(zmp_offset=home_offset(robot, truth)),
        ESTIMATE: Masses(estimate.standard_parameters),
    }
    tracked: dict[str, list[Tracking]] = {way: [] for way in ways}
    for k in range(VERIFICATIONS):
        seed = 1000 + VERIFICATIONS * options.seed + k
        with console.working(f"motion {k + 1} of {VERIFICATIONS}, planned in {len(ways)} ways"):
            for way, masses in ways.items():
                motion = plan(robot, VERIFICATION_S, seed, masses)
                tracked[way].append(track(robot, motion, play(robot, truth, motion), masses))
    console.say(tracking_table(tracked))
    fields = {way: [vars(each) for each in of] for way, of in tracked.items()}
    return Result("bench balance", options.seed, checks(tracked[FILE], tracked[ESTIMATE]), fields)


def checks(by_file: Sequence[Tracking], by_estimate: Sequence[Tracking]) -> tuple[Check, ...]:
    """The error is divided, and the played point stays as far from the sole's edge as it does by the file."""
    before, after = (float(np.mean([each.error for each in of])) for of in (by_file, by_estimate))
    least_before, least_after = (min(each.distance for each in of) for of in (by_file, by_estimate))
    return (
        Check("mean ZMP tracking error, robot file over estimate", before / after, ">=", LEAST_RATIO),
        Check(
            "least distance from the sole's edge, estimate less robot file", least_after - least_before, ">=", 0, "m"
        ),
    )


def tracking_table(tracked: Mapping[str, Sequence[Tracking]]) -> str:
    """A row for each motion and each way to plan it [mm]."""
    heads = ("motion", "planned by", "mean error [mm]", "largest", "least distance from edge, planned", "played")
    rows = [
        [str(k + 1), way, *(f"{1e3 * value:.1f}" for value in vars(of[k]).values())]
        for k in range(len(tracked[FILE]))
        for way, of in tracked.items()
    ]
    return table(heads, rows)
