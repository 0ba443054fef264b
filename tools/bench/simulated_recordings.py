"""Arms with known parameters, their motions as boards record them, and the Cramér–Rao bound of what they tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from hil_tests.virtual_bench.model import TICK, build_model
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.truth import true_parameters
from jointbench.arrays import Array
from jointbench.excitation import Excitation
from jointbench.identification import FitSettings
from jointbench.model import PARAMETER_NAMES, BaseParameters, Robot, drive_parameter_names, load_robot, model_columns
from jointbench.recording import Run, Samples
from jointbench.signals import (
    Biquads,
    BoardFilter,
    LowPass,
    boxcar,
    butterworth_sections,
    dequantise_biquad,
    moving_mask,
)

ROBOT = "cobot6"
PLANT = Path(__file__).resolve().parents[2] / "hil_tests" / "virtual_bench" / "plants" / "cobot6.toml"
_SPREAD = 0.3
"""Most that an arm's masses, rotor inertias and friction differ from the plant file's, as a share."""

_DRIVE = ("rotor_inertia", "viscous", "coulomb", "offset")


@dataclass(frozen=True)
class Arm:
    """A robot as its file knows it, and as it truly is.

    Attributes:
        robot: geometry, ratios and torque constants are true; its inertias are not.
        truth: what the virtual bench emulates.
    """

    robot: Robot
    truth: PlantFile

    def base_truth(self, base: BaseParameters, sensors: Sensors) -> Array:
        """True base parameters as a set of boards sees them: offsets are its own; shape (rank,)."""
        values: dict[str, float] = {}
        for joint, known in true_parameters(self.robot, self.truth, "ideal", sensors).items():
            standard = zip(PARAMETER_NAMES, known["standard_parameters"], strict=True)
            values |= {f"{joint}.{name}": value for name, value in standard}
            values |= {f"{joint}.{name}": known[name] for name in _DRIVE}
        return base.group([values[name] for name in base.full_names])


def arms(count: int, seed: int) -> list[Arm]:
    """The plant file's arm, then others: each link denser or lighter, each drive with other inertia and friction.

    Args:
        count: how many, at least 1.
        seed: of what is drawn.
    """
    robot = load_robot(ROBOT)
    truth = read_plant_file(PLANT, robot)
    rng = np.random.default_rng(seed)
    others = (replace(truth, joints=tuple(_like(joint, rng) for joint in truth.joints)) for _ in range(count - 1))
    return [Arm(robot, each) for each in (truth, *others)]


def _like(joint: JointTruth, rng: np.random.Generator) -> JointTruth:
    """A joint like this one. Density scales mass and inertia alike, so that the link stays a possible body."""
    density, rotor, viscous, coulomb = rng.uniform(1.0 - _SPREAD, 1.0 + _SPREAD, 4).tolist()
    body = joint.link.inertia_about_center_of_mass
    assert body is not None  # the plant file requires every inertia
    inertia = tuple(tuple(density * each for each in row) for row in body)
    link = replace(joint.link, mass=density * joint.link.mass, inertia_about_center_of_mass=inertia)
    return replace(
        joint, link=link, rotor_inertia=rotor * joint.rotor_inertia, viscous=viscous * joint.viscous,
        coulomb=coulomb * joint.coulomb,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Playing:
    """One playing of a motion, from rest to rest, free of noise; the next one is the same again.

    Attributes:
        position: at the ticks [rad], shape (n, n_joints).
        current: of the motors at the ADC's instants, the middles of equal parts of the tick before [A],
            shape (n, OVERSAMPLES, n_joints).
    """

    position: Array
    current: Array


def play(arm: Arm, excitation: Excitation) -> Playing:
    """Drive an arm along a motion exactly, by MuJoCo's inverse dynamics of the virtual bench's "ideal" plant.

    current = (M(q) ddq + c(q, dq) + g(q) + rotor inertia, viscous and Coulomb friction) / torque per current.
    """
    ticks = TICK * np.arange(round(excitation.duration / TICK))
    parts = (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES - 1.0
    # Before the first tick the instants are of the last playing.
    instants = np.mod(np.ravel(ticks[:, None] + TICK * parts), excitation.duration)
    torque = _smooth_torque(arm, excitation)(instants) + _coulomb_torque(arm, excitation.evaluate(instants)[1])
    current = torque / np.array([drive.torque_per_current for drive in arm.robot.drives])
    current = current.reshape(len(ticks), OVERSAMPLES, -1)
    return Playing(excitation.evaluate(ticks)[0], current)


def _smooth_torque(arm: Arm, excitation: Excitation) -> CubicSpline:
    """Motor torque without Coulomb friction over one playing [N·m], from its values at the ticks.

    A motion of 10 Hz moves it between ticks by less than 1e-6 of itself from what the spline has.
    """
    ticks = np.linspace(0.0, excitation.duration, round(excitation.duration / TICK) + 1)
    motion = excitation.evaluate(ticks)
    return CubicSpline(ticks, motor_torque(arm, *motion) - _coulomb_torque(arm, motion[1]))


def _coulomb_torque(arm: Arm, dq: Array) -> Array:
    coulomb = np.array([joint.coulomb for joint in arm.truth.joints])
    return coulomb * np.tanh(dq / arm.truth.ideal_transition)


def motor_torque(arm: Arm, q: Array, dq: Array, ddq: Array) -> Array:
    """Motor torque at the joints [N·m], shape (n, n_joints)."""
    model = build_model(arm.robot, arm.truth, "ideal")
    data: Any = mujoco.MjData(model)
    torque = np.empty_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        torque[k] = data.qfrc_inverse
    return torque + _coulomb_torque(arm, dq)


CUTOFF_HZ = 100.0
"""Of the boards' second-order low-pass on the current, as a bench file without a word on it has it."""

REST_TICKS = 100
"""Before the motion begins, so that the boards' filters have settled: five of their time constants take 4 ms."""

_AIR, _SUPPLY = 22.0, 48.0  # [degC], [V], which nothing here depends on

_SECTIONS = butterworth_sections(2, CUTOFF_HZ, 1.0 / TICK)


@dataclass(frozen=True, eq=False)
class Recording:
    """A run that was never on disk, and the boards it came from.

    Attributes:
        run: as `open_run` would give it.
        sensors: know their own offsets.
    """

    run: Run
    sensors: Sensors


def record(arm: Arm, excitation: Excitation, playing: Playing, repeats: int, seed: int) -> Recording:
    """Record some playings in a row by a set of boards that is drawn from a seed.

    Encoders count, converters have noise and 12 bits, boards decimate and filter in whole numbers, and the host knows
    gain and zero as the boards' calibration does. Positions count from home, where every motion begins.
    """
    sensors = Sensors(arm.robot, arm.truth, "ideal", seed)
    counts, current = _read(sensors, playing, repeats)
    robot, n = arm.robot, len(counts)
    turns = np.array([drive.ratio for drive in robot.drives]) * arm.truth.sensors.motor_encoder_counts
    position = np.array(robot.home) + 2.0 * np.pi / turns * (counts - counts[0])
    pairs = tuple(map(dequantise_biquad, _SECTIONS))
    board_filter = BoardFilter(sections=pairs, cic_order=1, window=TICK, sample_period=TICK)
    samples = Samples(
        time=TICK * np.arange(n, dtype=np.float64), joint_names=robot.joint_names, motor_position=position,
        link_position=None, motor_current=current,
        motor_torque=current * np.array([drive.torque_per_current for drive in robot.drives]), joint_torque=None,
        play_tick=np.maximum(np.arange(n) - REST_TICKS, -1), valid=np.ones(position.shape, dtype=np.bool_),
        board_filters=(board_filter,) * robot.n_joints, sample_period=TICK,
    )  # fmt: skip
    run = Run(
        path=Path(f"simulated-{seed}"), robot=robot, samples=samples, ledger=None, excitation=excitation,
        repeats=repeats, provenance={"seed": seed}, sha256="0" * 64, warnings=(),
    )  # fmt: skip
    return Recording(run, sensors)


def _read(sensors: Sensors, playing: Playing, repeats: int) -> tuple[NDArray[np.int64], Array]:
    """Motor encoder counts that do not wrap, and filtered currents [A], shape (n, n_joints) each."""
    once, joints = playing.position.shape
    rows = np.concatenate([np.zeros(REST_TICKS, np.int64), np.tile(np.arange(once), repeats)])
    none, cool = np.zeros((OVERSAMPLES, joints)), np.full(joints, _AIR)
    counters = np.empty((len(rows), joints), np.uint16)
    converted = np.empty((len(rows), joints, OVERSAMPLES), np.uint16)
    for k, row in enumerate(rows):
        position = playing.position[row]
        readings = sensors.read(Motion(position, position, playing.current[row], none, cool, _SUPPLY))
        counters[k], converted[k] = readings.motor_count, readings.adc[:, 0]
    steps = np.diff(counters, axis=0, prepend=counters[:1]).astype(np.int16)
    current = np.empty((len(rows), joints))
    for joint in range(joints):
        facts = sensors.facts(joint)
        raw = Biquads(_SECTIONS).run(boxcar(converted[:, joint]))
        current[:, joint] = 1e-9 * facts["current.scale"] * (raw - float(facts["current.zero"]))
    return np.cumsum(steps, axis=0, dtype=np.int64), current


def cramer_rao(
    arm: Arm, excitation: Excitation, base: BaseParameters, repeats: int, moments: NDArray[np.bool_]
) -> Array:
    """Cramér–Rao bound of each base parameter, as a standard deviation.

    sigma_k = sqrt([F⁻¹]_kk),  F = Σ over playings, moments t and joints j of x_j(t) x_j(t)ᵀ / s_j².

    x_j(t) is the regressor of the true motion, and s_j² the variance of a tick's mean torque: that of an ADC sample,
    noise and rounding (a step squared over 12) together, divided by their number. So it counts what the converter
    gives, white, before any average and filter; what those lose, an estimate loses against the bound. Motion counts as
    known: encoders that only count make a true bound larger, so this one is a lower bound to it. Within a tick the
    regressor counts as that of its middle.

    Args:
        arm: whose boards it is for.
        excitation: as it was played.
        base: the parameters.
        repeats: playings.
        moments: ticks of one playing that count, per joint, shape (n, n_joints); from them the parameters can be told.

    Returns:
        Standard deviations, shape (rank,).

    Source: Kay, Fundamentals of Statistical Signal Processing: Estimation Theory, 1993, theorem 4.1 and sec. 3.9.
    """
    ticks = TICK * np.arange(len(moments))
    motion = excitation.evaluate(np.mod(ticks - 0.5 * TICK, excitation.duration))
    columns = base.project(model_columns(arm.robot, *motion)[0]).reshape(*moments.shape, base.rank)
    rows = (columns / torque_noise(arm)[:, None])[moments]
    scale = np.linalg.norm(rows, axis=0)  # columns differ by thousands
    information = repeats * ((rows / scale).T @ (rows / scale))
    return np.sqrt(np.diag(np.linalg.inv(information))) / scale


def torque_noise(arm: Arm) -> Array:
    """Standard deviation of a tick's mean torque by motor current, before the boards' filters [N·m], (n_joints,)."""
    step = np.array([2.0 * joint.current_range / 4096 for joint in arm.truth.joints])  # of 12 bits
    current = np.sqrt((arm.truth.sensors.current_noise**2 + step**2 / 12.0) / OVERSAMPLES)
    return current * np.abs([drive.torque_per_current for drive in arm.robot.drives])


def fitted_moments(excitation: Excitation, settings: FitSettings) -> NDArray[np.bool_]:
    """Ticks of one playing that a fit takes its rows from: away from its ends and from each joint's rest.

    Args:
        excitation: as it was played.
        settings: as the fit used them, nothing left open.

    Returns:
        Mask, shape (n, n_joints).
    """
    assert settings.cutoff_Hz is not None
    assert settings.velocity_threshold is not None
    assert settings.rest_guard is not None
    velocity = excitation.evaluate(TICK * np.arange(round(excitation.duration / TICK)))[1]
    used = moving_mask(velocity, np.array(settings.velocity_threshold), round(settings.rest_guard / TICK))
    ends = LowPass(settings.cutoff_Hz, TICK, settings.filter_order).settling
    used[:ends] = used[-ends:] = False
    return used


_SIGNED = ("rotor_inertia", "viscous", "coulomb")


def impossible(robot: Robot, standard: Array, drives: Array) -> tuple[str, ...]:
    """Values in a set of parameters that no robot has; empty where all is possible.

    A body has a positive mass, and about its centre of mass positive principal inertias of which none exceeds the sum
    of the others.

    Args:
        robot: whose parameters they are.
        standard: ten of each link about its own frame, shape (10 * n_links,).
        drives: in the order of `drive_parameter_names`.
    """
    faults: list[str] = []
    for joint, (mass, *rest) in zip(robot.joints, standard.reshape(-1, 10), strict=True):
        if not mass > 0.0:
            faults.append(f"{joint.name}: mass {mass:.3g} kg")
            continue
        center = np.array(rest[:3]) / mass
        xx, xy, xz, yy, yz, zz = rest[3:]
        about_frame = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia = about_frame - mass * (center @ center * np.eye(3) - np.outer(center, center))
        principal = np.linalg.eigvalsh(inertia)
        if not (principal[0] > 0.0 and principal[0] + principal[1] > principal[2]):
            faults.append(f"{joint.name}: principal inertias {principal} kg·m²")
    names = drive_parameter_names(robot)
    faults += [
        f"{name}: {value:.3g}"
        for name, value in zip(names, drives, strict=True)
        if name.rpartition(".")[2] in _SIGNED and not value >= 0.0
    ]
    return tuple(faults)
