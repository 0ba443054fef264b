"""Friction of each joint from a run: what the motors give, less what the rest of the robot takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.directions import combine_directions, steady_strokes
from jointbench.identification.friction.stairs import played_stairs, stairs_friction
from jointbench.identification.friction.subtraction import concatenate, rigid_torque, sensor_torque, subtracted
from jointbench.identification.model import Model
from jointbench.recording.run import Run
from jointbench.signals import LowPass, moving_mask, rest_threshold, smooth_motion, valid_spans

Way = Literal["sweep", "sensor", "model"]
WAYS: tuple[Way, ...] = ("sweep", "sensor", "model")

LEAST_PAIRS = 5
"""Pairs of steady strokes, each to and fro, from which on a motion counts as a sweep of speeds."""


@dataclass(frozen=True)
class RunFriction:
    """Friction of the joints of a run.

    Attributes:
        way: how it was told from all else: "sweep", "sensor" or "model".
        joints: data of each joint it could be told of, by name.
        left_out: why it could not, by name of the other joints.
    """

    way: Way
    joints: Mapping[str, FrictionData]
    left_out: Mapping[str, str]


def friction_of_run(
    run: Run, *, way: Way | None = None, model: Model | None = None, cutoff_Hz: float = 20.0
) -> RunFriction:
    """Tell friction from the other torques of a run.

    "sweep": steady strokes in both directions, or a stair of speeds that was played; half their difference. "sensor":
    motor torque less that of the joint's torque sensor, which is also the load. "model": motor torque less the rigid
    bodies', of a fitted model without its friction, or of the robot's nominal inertias; that is also the load. Rows
    near rest are left out of the last two.

    Args:
        run: with motor torque, that is current.
        way: None: the first of the three that the run can give.
        model: for "model".
        cutoff_Hz: of the zero-phase low-pass on position and torques.

    Raises:
        FitError: the run cannot give friction in this way, or in any.
        SignalError: the cut-off does not suit the sample rate.
    """
    samples = run.samples
    if samples.motor_torque is None:
        raise FitError(f"run {run.path} has no motor_torque, and friction lies between motor and joint; record current")
    if way not in (None, *WAYS):
        raise FitError(f"friction cannot be told by {way!r}; the ways are {', '.join(WAYS)}")
    low_pass = LowPass(cutoff_Hz, samples.sample_period)
    valid = np.asarray(samples.valid.all(axis=1))
    parts = list(valid_spans(valid, min_length=2 * low_pass.settling + low_pass.stride + 2))
    if not parts:
        raise FitError(f"run {run.path} has no stretch long enough for a low-pass at {cutoff_Hz:g} Hz; record longer")
    if way in (None, "sweep"):
        found = _by_stairs(run, samples.motor_torque, valid) or _by_sweep(run, samples.motor_torque, parts, low_pass)
        if found.joints or way == "sweep":
            return _not_empty(run, found)
    if way is None:
        way = "sensor" if samples.joint_torque is not None and model is None else "model"
    return _not_empty(run, _by_subtraction(run, samples.motor_torque, parts, low_pass, way, model))


def _not_empty(run: Run, found: RunFriction) -> RunFriction:
    if not found.joints:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise FitError(f"run {run.path} shows no joint's friction by {found.way} ({reasons}); record other motion")
    return found


def _by_stairs(run: Run, torque: Array, valid: NDArray[np.bool_]) -> RunFriction | None:
    """None where no stair of speeds was played, or cut off too early."""
    stairs = played_stairs(run)
    joints = {} if stairs is None else stairs_friction(run, stairs, torque, valid)
    if not joints or any(data.n_rows < LEAST_PAIRS for data in joints.values()):
        return None
    still = {name: "it stands still" for name in run.samples.joint_names if name not in joints}
    return RunFriction("sweep", joints, still)


def _by_sweep(run: Run, torque: Array, parts: list[slice], low_pass: LowPass) -> RunFriction:
    joints: dict[str, FrictionData] = {}
    left_out: dict[str, str] = {}
    motions = [smooth_motion(run.samples.motor_position[part], low_pass) for part in parts]
    for j, name in enumerate(run.samples.joint_names):
        strokes = [
            stroke
            for part, motion in zip(parts, motions, strict=True)
            for stroke in steady_strokes(motion.q[:, j], motion.dq[:, j], torque[part, j])
        ]
        data = combine_directions(strokes)
        if data.n_rows >= LEAST_PAIRS:
            joints[name] = data
        else:
            left_out[name] = f"{data.n_rows} speeds steady in both directions, {LEAST_PAIRS} are needed"
    return RunFriction("sweep", joints, left_out)


def _by_subtraction(
    run: Run, torque: Array, parts: list[slice], low_pass: LowPass, way: Way, model: Model | None
) -> RunFriction:
    rest = sensor_torque if way == "sensor" else rigid_torque
    rows = concatenate([subtracted(run, part, torque[part], low_pass, rest, model) for part in parts])
    joints: dict[str, FrictionData] = {}
    left_out: dict[str, str] = {}
    moves = moving_mask(rows.motion.dq, rest_threshold(rows.motion.dq), guard=1)
    for j, name in enumerate(run.samples.joint_names):
        if not run.robot.modelled[j]:
            left_out[name] = "it is passive"
        elif not moves[:, j].any():
            left_out[name] = "it never moves"
        else:
            inertia_unknown = model is None and run.robot.drives[j].rotor_inertia is None
            joints[name] = rows.of_joint(j, moves[:, j], inertia_unknown)
    return RunFriction(way, joints, left_out)
