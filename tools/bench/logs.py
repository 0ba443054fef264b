"""`./run bench logs`: simulated logs with faults, fitted by default and by the best options in hindsight."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import JointbenchError
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import Model, fit
from jointbench.model import load_robot
from jointbench.recording import Run, Samples
from jointbench.signals import LowPass
from tools.bench.simulated_recordings import Arm, arms, motor_torque

ROBOT = "cobot6:3"
SEEDS = 6
"""Logs of each kind, each of another arm on other motions."""

CUTOFFS_HZ = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
ESTIMATORS: tuple[tuple[str, Mapping[str, Any]], ...] = (("wls", {}), ("map", {}), ("physical", {"weight": 1.0}))
"""Options that are tried in hindsight, all with the true delay."""

LARGEST_RATIO, SHARE = 1.1, 55.0 / 60.0
"""Error by default over that of the best options, and how many of the logs keep it."""

_QUICK, _SLOW, _SLOW_HZ = 0.01, 0.02, 3.0
"""Noise of the torque relative to it: white, and behind a low-pass, as friction and load that no model has are."""


@dataclass(frozen=True)
class Fault:
    """A fault of a log.

    Attributes:
        name: in words.
        seconds: that the motion lasts.
        rate_Hz: of its samples.
        step: of the encoders, at the joints [rad].
        jitter: of the samples' times, as a share of the period, told as if they were even.
        gaps: of 2 to 9 ms [1/s].
        delay: of the motion behind the torque [s].
        drift: of friction over the log, as a share.
    """

    name: str
    seconds: float = 10.0
    rate_Hz: float = 500.0
    step: float = 2e-5
    jitter: float = 0.0
    gaps: float = 0.0
    delay: float = 0.0
    drift: float = 0.0


FAULTS = (
    Fault("nothing"),
    Fault("times that jitter", jitter=0.4),
    Fault("coarse encoders", step=1e-3),
    Fault("coarse encoders and jitter", step=5e-4, jitter=0.4),
    Fault("gaps", gaps=6.0),
    Fault("few samples a second", rate_Hz=50.0),
    Fault("few rows", seconds=4.0, rate_Hz=100.0),
    Fault("delay", delay=0.008),
    Fault("friction that drifts", drift=0.3),
    Fault("all at once", rate_Hz=250.0, step=5e-4, jitter=0.3, gaps=3.0, delay=0.006, drift=0.2),
)


@dataclass(frozen=True)
class Outcome:
    """Errors of predicted torque on another motion, relative to the torque, geometric mean over the joints.

    Attributes:
        fault: that the log suffers from.
        seed: of arm, motions and noise.
        default: with no option; nan where the log was refused.
        best: of all options tried.
        options: with which that was.
    """

    fault: str
    seed: int
    default: float
    best: float
    options: str

    @property
    def ratio(self) -> float:
        """Default over best; infinite where the log was refused."""
        return self.default / self.best if np.isfinite(self.default) else float("inf")


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Fit all logs, and count those that keep the ratio."""
    outcomes: list[Outcome] = []
    for fault in FAULTS:
        with console.working(f"logs with {fault.name}"):
            outcomes += [outcome(fault, options.seed + seed) for seed in range(SEEDS)]
    console.say(outcome_table(outcomes))
    kept = float(np.mean([each.ratio <= LARGEST_RATIO for each in outcomes]))
    checks = (Check(f"logs whose error by default is within {LARGEST_RATIO:g} of the best", kept, ">=", SHARE),)
    return Result("bench", options.seed, checks, {"logs": [vars(each) | {"ratio": each.ratio} for each in outcomes]})


def outcome_table(outcomes: list[Outcome]) -> str:
    """A row for each kind of log."""
    rows: list[list[str]] = []
    for fault in dict.fromkeys(each.fault for each in outcomes):
        of = [each for each in outcomes if each.fault == fault]
        ratios = sorted(each.ratio for each in of)
        rows.append(
            [
                fault,
                *(
                    f"{100.0 * float(np.median([getattr(each, name) for each in of])):.2f}"
                    for name in ("default", "best")
                ),
                f"{ratios[len(ratios) // 2]:.3f}",
                f"{ratios[-1]:.3f}",
                max(of, key=lambda each: each.ratio).options,
            ]
        )
    heads = ("logs with", "default [%]", "best [%]", "ratio, median", "largest", "best there")
    return table(heads, rows)


def outcome(fault: Fault, seed: int) -> Outcome:
    """Simulate a log, and fit it by default and by all options."""
    rng = np.random.default_rng([seed, FAULTS.index(fault)])
    arm = arm_of(seed)
    log = simulated_log(arm, fault, random_excitation(arm.robot, 5, fault.seconds, 2 * seed), rng)
    other = random_excitation(arm.robot, 5, 10.0, 2 * seed + 1).evaluate(np.arange(0.0, 10.0, 0.004))
    torque = motor_torque(arm, *other)

    def error(**chosen: Any) -> float:
        return relative_error(fit(log, **chosen), other, torque)

    tried: dict[str, float] = {}
    for cutoff in CUTOFFS_HZ:
        for estimator, its in ESTIMATORS:
            settings = {"cutoff_Hz": cutoff, "delay": fault.delay}
            try:
                tried[f"{estimator}, {cutoff:g} Hz"] = error(estimator=estimator, options=its, settings=settings)
            except JointbenchError:
                continue  # too high for the rate, or too low for the rows
    best = min(tried, key=lambda name: tried[name])
    try:
        default = error()
    except JointbenchError:
        default = float("nan")
    return Outcome(fault.name, seed, default, tried[best], best)


def relative_error(model: Model, motion: tuple[Array, ...], torque: Array) -> float:
    """RMS of predicted less true torque over that of the torque, geometric mean over the joints."""
    q, dq, ddq = motion
    away = model.predict(q, dq, ddq) - torque
    return float(np.exp(np.log(np.sqrt(np.mean(away**2, axis=0) / np.mean(torque**2, axis=0))).mean()))


def simulated_log(arm: Arm, fault: Fault, played: Excitation, rng: np.random.Generator) -> Run:
    """A log of motor torques, of which nothing but its samples is known."""
    period = 1.0 / fault.rate_Hz
    even = np.arange(0.0, fault.seconds, period)
    at = np.clip(even + fault.jitter * period * rng.uniform(-1.0, 1.0, len(even)), 0.0, fault.seconds)
    q, dq, ddq = played.evaluate(at)
    warm = 1.0 + fault.drift * even / fault.seconds
    torque = motor_torque(arm, q, dq, ddq)
    friction = torque - motor_torque(arm, q, np.zeros_like(dq), ddq)  # with what speed makes of the links, too
    torque = torque + (warm - 1.0)[:, None] * friction
    noise = rng.standard_normal((2, *torque.shape))
    slow = LowPass(_SLOW_HZ, period).apply(noise[1])
    size = np.sqrt(np.mean(torque**2, axis=0))
    torque = torque + size * (_QUICK * noise[0] + _SLOW * slow / slow.std(axis=0))
    position = fault.step * np.round(played.evaluate(np.clip(at - fault.delay, 0.0, None))[0] / fault.step)
    valid = np.ones(position.shape, dtype=np.bool_)
    for start in rng.uniform(0.1, fault.seconds - 0.1, round(fault.gaps * fault.seconds)):
        valid[int(start / period) : int((start + rng.uniform(0.002, 0.009)) / period) + 1] = False
    samples = Samples(
        time=even, joint_names=arm.robot.joint_names, motor_position=np.where(valid, position, np.nan),
        link_position=None, motor_current=None, motor_torque=np.where(valid, torque, np.nan), joint_torque=None,
        play_tick=np.full(len(even), -1), valid=valid, board_filters=None, sample_period=period,
    )  # fmt: skip
    return Run(
        path=Path("simulated"), robot=arm.robot, samples=samples, ledger=None, excitation=None, repeats=0,
        provenance={}, sha256="0" * 64, warnings=(),
    )  # fmt: skip


def arm_of(seed: int) -> Arm:
    """An arm whose bodies and drives are not quite those of its file."""
    robot = load_robot(ROBOT)
    drawn = arms(2, seed)[1].truth
    return Arm(robot, replace(drawn, joints=drawn.joints[: robot.n_joints]))
