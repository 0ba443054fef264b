"""`./run bench calibration`: simulated arms whose calibration is off, within its tolerances and beyond them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.excitation import random_excitation
from jointbench.identification import Model, fit
from jointbench.model import PARAMETER_NAMES, Joint, Robot, Tolerances
from jointbench.model.joint import as_matrix
from jointbench.recording import Run, Samples
from jointbench.signals import LowPass
from tools.bench.simulated_recordings import Arm, arms, motor_torque

EXPERIMENTS = 200
SECONDS, RATE_HZ = 15.0, 200.0
_QUICK, _SLOW, _SLOW_HZ = 0.005, 0.01, 3.0
"""Noise of the torque relative to it: white, and behind a low-pass, as what no model has is."""

_SIGMAS, _WRONG = 3.0, 0.2
"""A parameter is wrong when it is off by more than so many of its standard deviations and by this share of itself."""

MOST_WRONG = 3
"""Models with a wrong parameter called identified, of the logs whose fault lies beyond its tolerance."""

COVERAGE = (0.93, 0.97)
"""Share of parameters within 2 σ over experiments whose faults are drawn from the tolerances: 95 % less what 2 σ of a
sum of a jackknife and a linearised calibration can be off."""

_DEGREE = np.pi / 180.0


class Fault(NamedTuple):
    """Calibration errors of an arm and its recording.

    Attributes:
        zero: true less recorded position of each joint [rad].
        length: shift of each joint's place on the link before it [m], shape (n, 3).
        axis: rotation vector of each joint's placement [rad], shape (n, 3).
        mounting: rotation vector of the base [rad].
        gain: of each torque, relative.
        clock: by which true time is longer than recorded, relative.
        compliance: of each joint [rad/(N·m)], between the encoder and the link.
        backlash: of each joint, from end to end [rad].
    """

    zero: Array
    length: Array
    axis: Array
    mounting: Array
    gain: Array
    clock: float = 0.0
    compliance: float = 0.0
    backlash: float = 0.0


def none(n: int) -> Fault:
    """Nothing is off."""
    return Fault(np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(3), np.zeros(n))


def drawn(n: int, tolerances: Tolerances, rng: np.random.Generator, times: float = 1.0) -> Fault:
    """Draw a fault from tolerances, a multiple of them.

    Args:
        n: joints.
        tolerances: standard deviations.
        rng: to draw with.
        times: of each.
    """
    draw = rng.standard_normal
    length, axis = times * tolerances.length * draw((n, 3)), times * tolerances.axis * draw((n, 3))
    length[0], axis[0], axis[:, 2] = 0.0, 0.0, 0.0
    mounting = times * tolerances.mounting * np.append(draw(2), 0.0)
    gain = times * tolerances.torque_constant * draw(n)
    return Fault(
        times * tolerances.zero * draw(n), length, axis, mounting, gain, times * tolerances.clock * float(draw())
    )


DECLARED: dict[str, dict[str, float]] = {
    "zeros off by 0.5°": {"zero_deg": 0.5},
    "frames off by 5 mm": {"length_mm": 5.0},
    "axes off by 2°": {"axis_deg": 2.0},
    "base tilted by 2°": {"mounting_deg": 2.0},
    "clock off by 2 %": {"clock_percent": 2.0},
    "torque constants off by 20 %": {"torque_constant_percent": 20.0},
}
"""Tolerances that faults lie within, by kind; flexibility and backlash are no calibration."""


def single_faults(n: int, rng: np.random.Generator) -> dict[str, Fault]:
    """One fault of each kind, beyond the default tolerances, by name."""

    def signs(*shape: int) -> Array:
        return rng.choice([-1.0, 1.0], shape)

    length, axis = 0.005 * signs(n, 3), 2.0 * _DEGREE * signs(n, 3)
    length[0], axis[0], axis[:, 2] = 0.0, 0.0, 0.0
    fault = none(n)
    return {
        "zeros off by 0.5°": fault._replace(zero=0.5 * _DEGREE * signs(n)),
        "frames off by 5 mm": fault._replace(length=length),
        "axes off by 2°": fault._replace(axis=axis),
        "base tilted by 2°": fault._replace(mounting=2.0 * _DEGREE * np.append(signs(2), 0.0)),
        "clock off by 2 %": fault._replace(clock=0.02 * float(signs(1)[0])),
        "torque constants off by 20 %": fault._replace(gain=0.2 * signs(n)),
        "flexible joints": fault._replace(compliance=1e-4),
        "backlash of 0.3°": fault._replace(backlash=0.3 * _DEGREE),
    }


LOGS_OF_EACH = 10
"""Logs of each kind beyond the tolerances."""


@dataclass(frozen=True)
class Outcome:
    """Result of a log.

    Attributes:
        fault: in words.
        seed: of arm, motion and noise.
        deviations: (parameter - truth) / σ of those that are told.
        repeatability: the same by the σ of noise and model alone.
        wrong: names of parameters called identified that are wrong.
        verdict: on the model.
    """

    fault: str
    seed: int
    deviations: tuple[float, ...]
    repeatability: tuple[float, ...]
    wrong: tuple[str, ...]
    verdict: str


def _single(kind: str, seed: int, entropy: int, tolerances: dict[str, float] | None = None) -> Outcome:
    """A log with one fault, by default or with tolerances that cover it."""
    rng = np.random.default_rng([entropy, seed, 1])
    name = kind if tolerances is None else f"{kind}, declared"
    return outcome(name, 1000 + seed, lambda n: single_faults(n, rng)[kind], tolerances)


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Fit all logs by default; count what is within 2 σ, and what is wrong and called identified."""
    tolerances, drawings, within, beyond = Tolerances(), list[Outcome](), list[Outcome](), list[Outcome]()
    with console.working(f"{options.experiments} logs with faults drawn from the tolerances"):
        for seed in range(options.experiments):
            rng = np.random.default_rng([options.seed, seed])
            drawings.append(outcome("faults drawn", seed, lambda n, rng=rng: drawn(n, tolerances, rng)))
    for kind in single_faults(2, np.random.default_rng(0)):
        with console.working(f"logs with {kind}"):
            for seed in range(min(LOGS_OF_EACH, options.experiments)):
                beyond.append(_single(kind, seed, options.seed))
                if kind in DECLARED:
                    within.append(_single(kind, seed, options.seed, DECLARED[kind]))
    console.say(outcome_table([*drawings, *within, *beyond]))
    deviations = np.concatenate([each.deviations for each in drawings])
    checks = (
        Check("parameters within 2 σ, share", share(deviations), ">=", COVERAGE[0]),
        Check("parameters within 2 σ, share, at most", share(deviations), "<=", COVERAGE[1]),
        Check("models wrong and called identified, within", sum(bool(each.wrong) for each in within), "<=", 0),
        Check("models wrong and called identified, beyond", sum(bool(each.wrong) for each in beyond), "<=", MOST_WRONG),
    )
    return Result("bench", options.seed, checks, {"logs": [vars(each) for each in (*drawings, *within, *beyond)]})


def share(deviations: Array | tuple[float, ...]) -> float:
    """Share of deviations within 2 σ."""
    return float(np.mean(np.abs(deviations) < 2.0))


def outcome_table(outcomes: list[Outcome]) -> str:
    """A row for each kind of log."""
    rows: list[list[str]] = []
    for kind in dict.fromkeys(each.fault for each in outcomes):
        of = [each for each in outcomes if each.fault == kind]
        deviations, repeated = (
            np.concatenate([getattr(o, name) for o in of]) for name in ("deviations", "repeatability")
        )
        wrong = [each for each in of if each.wrong]
        names = [name for each in wrong for name in each.wrong]
        rows.append(
            [
                kind,
                str(len(of)),
                *(f"{share(part):.1%}" for part in (deviations, repeated)),
                f"{np.sqrt(np.mean(deviations**2)):.2f}",
                str(len(wrong)),
                ", ".join(dict.fromkeys(names[:4])),
            ]
        )
    heads = ("logs with", "logs", "within 2 σ", "without calibration", "rms [σ]", "wrong", "such as")
    return table(heads, rows)


def outcome(
    kind: str, seed: int, fault_of: Callable[[int], Fault], tolerances: dict[str, float] | None = None
) -> Outcome:
    """Simulate a log of an arm that is off, fit it by default or with tolerances, and compare."""
    arm = arms(2, seed)[1]
    fault = fault_of(arm.robot.n_joints)
    model = fit(simulated_log(arm, fault, seed), settings={} if tolerances is None else {"tolerances": tolerances})
    away = model.parameters - true_parameters(arm, model)
    told = np.isfinite(model.sigma)
    repeated = np.sqrt(np.diag(np.where(np.isfinite(model.repeatability), model.repeatability, 0.0)))
    off = (np.abs(away) > _SIGMAS * model.sigma) & (np.abs(away) > _WRONG * np.abs(model.parameters - away))
    identified = np.array([verdict.word == "identified" for verdict in model.parameter_verdicts])
    return Outcome(
        kind,
        seed,
        tuple((away / model.sigma)[told].tolist()),
        tuple((away[told] / repeated[told]).tolist()),
        tuple(np.array(model.names)[off & identified].tolist()),
        model.verdict.word,
    )


def true_parameters(arm: Arm, model: Model) -> Array:
    """Base parameters of the arm as it is, grouped as its file groups them, shape (rank,)."""
    values: dict[str, float] = {}
    for joint, drive, known in zip(arm.robot.joints, arm.robot.drives, arm.truth.joints, strict=True):
        body = known.link.standard_parameters
        assert body is not None  # the plant file requires every inertia
        values |= {f"{joint.name}.{name}": float(value) for name, value in zip(PARAMETER_NAMES, body, strict=True)}
        values[f"{joint.name}.rotor_inertia"] = known.rotor_inertia * drive.ratio**2
        values |= {f"{joint.name}.{name}": getattr(known, name) for name in ("viscous", "coulomb")}
    return model.base.group([values.get(name, 0.0) for name in model.base.full_names])


def displaced(robot: Robot, fault: Fault) -> Robot:
    """The robot as it is, off its file."""
    joints = [_displaced(*part) for part in zip(robot.joints, fault.length, fault.axis, strict=True)]
    x, y, z = Rotation.from_rotvec(fault.mounting).apply(robot.gravity).tolist()
    return replace(robot, joints=tuple(joints), gravity=(x, y, z))


def _displaced(joint: Joint, shift: Array, tilt: Array) -> Joint:
    x, y, z = (np.array(joint.origin) + shift).tolist()
    rotation = np.array(joint.rotation) @ Rotation.from_rotvec(tilt).as_matrix()
    return replace(joint, origin=(x, y, z), rotation=as_matrix(rotation))


def simulated_log(arm: Arm, fault: Fault, seed: int) -> Run:
    """A log of motor torques, of which nothing but its samples is known."""
    rng = np.random.default_rng([seed, 2])
    period = 1.0 / RATE_HZ
    time = np.arange(0.0, SECONDS, period)
    q, dq, ddq = random_excitation(arm.robot, 5, SECONDS, seed).evaluate(time)
    true = replace(arm, robot=displaced(arm.robot, fault))
    torque = motor_torque(true, q, dq / (1.0 + fault.clock), ddq / (1.0 + fault.clock) ** 2)
    size = np.sqrt(np.mean(torque**2, axis=0))
    wound = fault.compliance * torque + 0.5 * fault.backlash * np.tanh(torque / (0.02 * size))
    noise = rng.standard_normal((2, *torque.shape))
    slow = LowPass(_SLOW_HZ, period).apply(noise[1])
    measured = (1.0 + fault.gain) * torque + size * (_QUICK * noise[0] + _SLOW * slow / slow.std(axis=0))
    valid = np.ones(q.shape, dtype=np.bool_)
    samples = Samples(
        time=time, joint_names=arm.robot.joint_names, motor_position=q - fault.zero + wound, link_position=None,
        motor_current=None, motor_torque=measured, joint_torque=None, play_tick=np.full(len(time), -1), valid=valid,
        board_filters=None, sample_period=period,
    )  # fmt: skip
    return Run(
        path=Path("simulated"), robot=arm.robot, samples=samples, ledger=None, excitation=None, repeats=0,
        provenance={}, sha256="0" * 64, warnings=(),
    )  # fmt: skip
