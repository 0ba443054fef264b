"""Recordings of robots as rigid links with friction and noise, and what `write_report` takes."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.bench import BoardLedger, Ledger
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import Model, Validation, fit, validate
from jointbench.identification.feedforward import planned_torque
from jointbench.identification.proof import Control, HeavierLink, PredictedShare, Proof, Tracking
from jointbench.model import Robot, model_columns
from jointbench.recording import Run, Samples
from jointbench.results.evidence import Evidence

PERIOD_S, SAMPLE_PERIOD_S = 10.0, 0.005


@dataclass(frozen=True)
class Example:
    """What `write_report` takes."""

    model: Model
    fit_run: Run
    validation: Validation
    verification_run: Run


def judged_example(robot: Robot) -> Example:
    """A model of a robot, fitted to one recording and judged by another."""
    fit_run = recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=1), 11, "fit")
    verification_run = recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=2), 12, "verification")
    model = fit(fit_run)
    return Example(model, fit_run, validate(model, verification_run), verification_run)


def proof_of(example: Example) -> Proof:
    """A proof of an example's model, whose feed-forward is 97 % of the torque and leaves a twentieth of the error."""
    model, motion = example.model, example.verification_run.excitation
    assert motion is not None
    time = np.arange(0.3, motion.period, 1e-3)
    torque = planned_torque(model, motion, time)
    names, n = model.robot.joint_names, model.robot.n_joints

    def played(error: float, share: float) -> Tracking:
        return Tracking(np.full_like(torque, error), None, None, time, torque, share * torque, 1e-3)

    controls = Control("torque × 0.8", played(4e-4, 0.8)), Control(f"sign of {names[-1]}", None, "j2: FOLLOWING <1>")
    return Proof(
        joint_names=names,
        modelled=np.ones(n, dtype=np.bool_),
        without=(played(2e-3, 0.0),),
        fed=(played(1e-4, 0.97),),
        half=played(1e-3, 0.5),
        predicted=PredictedShare(np.full(n, 0.03), np.full(n, 0.01), np.full(n, 0.05)),
        moving_error=np.full(n, 0.02),
        distance=0.5,
        controls=controls,
        heavier=HeavierLink("link 2", 1, played(2e-4, 0.88)),
    )


def evidence_of(example: Example, **changes: Any) -> Evidence:
    """What a report on an example rests on, some of it changed."""
    example = dataclasses.replace(example, **changes)
    runs = example.fit_run, example.validation, example.verification_run
    return Evidence(example.model, *runs, example.fit_run.excitation)


def recorded_run(robot: Robot, plan: Excitation, seed: int, name: str) -> Run:
    """One period of a plan as rigid links with friction would answer it, with noise of 1 % of the largest torque."""
    time = SAMPLE_PERIOD_S * np.arange(round(PERIOD_S / SAMPLE_PERIOD_S), dtype=np.float64)
    columns, _ = model_columns(robot, *plan.evaluate(time))
    drives = np.tile([1.2, 8.0, 5.0, 0.3], robot.n_joints)
    assert robot.standard_parameters is not None
    torque = (columns @ np.concatenate([robot.standard_parameters, drives])).reshape(-1, robot.n_joints)
    noise = np.random.default_rng(seed).standard_normal(torque.shape)
    samples = Samples(
        time=time, joint_names=robot.joint_names, motor_position=plan.evaluate(time)[0], link_position=None,
        motor_current=None, motor_torque=torque + 0.01 * np.abs(torque).max(axis=0) * noise, joint_torque=None,
        play_tick=np.arange(time.size), valid=np.ones(torque.shape, dtype=np.bool_), board_filters=None,
        sample_period=SAMPLE_PERIOD_S,
    )  # fmt: skip
    boards = [
        {"node": node, "joint": joint, "uid": f"{node:016x}", "firmware": "1.0.0"}
        for node, joint in enumerate(robot.joint_names, start=1)
    ]
    return Run(
        path=Path("runs") / name, robot=robot, samples=samples, ledger=whole_ledger(robot, time.size), excitation=plan,
        repeats=1, provenance={"version": 1, "robot": robot.name, "seed": seed, "clock": "virtual", "board": boards},
        sha256=f"{seed:064x}", warnings=(),
    )  # fmt: skip


def whole_ledger(robot: Robot, samples: int, lost: int = 0) -> Ledger:
    """A ledger that closes, with this many samples of the first board lost on the link."""
    boards = tuple(
        BoardLedger(
            node=node, joint=joint, frames_sent=samples // 50, frames_received=samples // 50 - (node == 1 and lost > 0),
            frames_damaged=0, frames_vanished=int(node == 1 and lost > 0), samples_taken=samples,
            samples_received=samples - (lost if node == 1 else 0), crc_lost=0, link_lost=lost if node == 1 else 0,
            board_dropped=0, ticks_missed=0,
        )
        for node, joint in enumerate(robot.joint_names, start=1)
    )  # fmt: skip
    return Ledger(boards)
