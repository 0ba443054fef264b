"""Scores of predicted torque on a recording: at a fixed bandwidth, on all rows, and with refusals counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import foreign_code
from jointbench.recording import Run
from jointbench.signals import LowPass, moving_mask, rest_threshold, smooth_motion, valid_spans

Predictor = Callable[[Array, Array, Array, Array], Array]
"""predictor(time [s], q [rad or m], dq, ddq) → torque [N·m or N], nan where refused: shapes (n,), then (n, n_joints).

Times are evenly spaced. A call is one unbroken stretch of motion, so that a predictor may have a memory or a delay."""


class Trained(NamedTuple):
    """A trained method.

    Attributes:
        predict: the torque of all joints; a joint that is nan in any row is refused, too.
        refused: names of joints whose prediction the method says not to use.
    """

    predict: Predictor
    refused: tuple[str, ...] = ()


ORDER = 4
"""Of the Butterworth low-pass, each way."""


@dataclass(frozen=True)
class Errors:
    """Errors over some rows: RMS [N·m or N] and RMS error / RMS torque per joint, and ‖error‖ / ‖torque‖ of all."""

    rms: Array
    relative: Array
    total: float

    @classmethod
    def of(cls, measured: Array, predicted: Array, rows: NDArray[np.bool_]) -> Errors:
        """Compare torques, shape (n, n_joints), over the rows that are True, of that shape."""
        squares = np.sum(np.where(rows, predicted - measured, 0.0) ** 2, axis=0)
        power = np.sum(np.where(rows, measured, 0.0) ** 2, axis=0)
        count = np.maximum(rows.sum(axis=0), 1)
        relative = np.sqrt(np.divide(squares, power, out=np.full(len(power), np.nan), where=power > 0.0))
        total = float(np.sqrt(squares.sum() / power.sum())) if power.sum() > 0.0 else float("nan")
        return cls(np.sqrt(squares / count), relative, total)

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """For JSON."""
        return {
            "rms": dict(zip(names, self.rms.tolist(), strict=True)),
            "relative": dict(zip(names, self.relative.tolist(), strict=True)),
            "total_relative": self.total,
        }


KINDS = ("moving filtered", "moving as measured", "all filtered", "all as measured", "all as measured, none refused")
"""Rows, torque, and in the last one what the method predicts of joints that it refuses in place of their mean."""


@dataclass(frozen=True)
class Entry:
    """Score of a method on a split.

    Attributes:
        split: name of it.
        method: name of it.
        joints: names of the joints.
        refused: joints that were, shape (n_joints,).
        errors: by `KINDS`.
        seconds: that training took.
        reason: why all were refused, where the method failed.
    """

    split: str
    method: str
    joints: tuple[str, ...]
    refused: NDArray[np.bool_]
    errors: Mapping[str, Errors]
    seconds: float
    reason: str = ""

    @property
    def score(self) -> float:
        """Geometric mean over joints of the relative error, all rows, torque filtered."""
        return geometric_mean(self.errors["all filtered"].relative)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "split": self.split,
            "method": self.method,
            "score": self.score,
            "refused": [name for name, no in zip(self.joints, self.refused, strict=True) if no],
            "reason": self.reason,
            "seconds": self.seconds,
            **{
                kind.replace(",", "").replace(" ", "_"): errors.to_dict(self.joints)
                for kind, errors in self.errors.items()
            },
        }


def geometric_mean(values: Array | Sequence[float]) -> float:
    """Geometric mean of positive numbers; nan of joints whose torque is zero throughout is left out."""
    return float(np.exp(np.nanmean(np.log(np.maximum(values, 1e-12)))))


def torque_of(run: Run, side: str) -> Array:
    """Measured torque of the side that is modelled [N·m or N], shape (n, n_joints).

    Raises:
        FileError: the run has none.
    """
    torque = run.samples.joint_torque if side == "joint" else run.samples.motor_torque
    if torque is None:
        raise FileError(f"run {run.path} has no torque of the {side}; record it, or model the other side")
    return torque


def judge(
    trained: Trained, training: Run, test: Run, side: str, bandwidth_Hz: float
) -> tuple[dict[str, Errors], NDArray[np.bool_]]:
    """Compare predicted with measured torque of a recording.

    Args:
        trained: a method's predictor, and what it refuses.
        training: whose mean torque stands in for joints that are refused.
        test: the recording.
        side: whose torque is modelled, "motor" or "joint".
        bandwidth_Hz: of the low-pass.

    Returns:
        The errors by `KINDS`, and which joints are refused, shape (n_joints,).

    Raises:
        FileError: the predictor fails, or its array has another shape than the motion; a joint that is refused is none
            of the robot's; or no stretch of the test is long enough.
    """
    samples, torque, mean = test.samples, torque_of(test, side), np.nanmean(torque_of(training, side), axis=0)
    if unknown := set(trained.refused) - set(samples.joint_names):
        raise FileError(f"refused {', '.join(sorted(unknown))}: the joints are {', '.join(samples.joint_names)}")
    h = samples.sample_period
    low_pass = LowPass(bandwidth_Hz, h, ORDER)
    ends = max(1, round(1.0 / (bandwidth_Hz * h)))
    known = samples.valid.all(axis=1)
    for values in (samples.motor_position, torque):
        known = known & np.isfinite(values).all(axis=1)
    motions: list[tuple[Array, Array, Array]] = []
    for span in valid_spans(np.asarray(known), 2 * ends + 2):
        motion = smooth_motion(samples.motor_position[span], low_pass)
        with foreign_code(FileError, "the predictor failed", "mend it, or let it return nan for joints it refuses"):
            predicted = np.array(trained.predict(samples.time[span], motion.q, motion.dq, motion.ddq), dtype=np.float64)
        if predicted.shape != motion.q.shape:
            raise FileError(f"the predictor returned an array of shape {predicted.shape}; it must be {motion.q.shape}")
        motions.append((torque[span], predicted, motion.dq))
    if not motions:
        raise FileError(f"run {test.path} has no stretch of {2 * ends + 2} samples without a gap; take a longer one")
    absent = np.any([~np.isfinite(predicted).all(axis=0) for _, predicted, _ in motions], axis=0)
    refused = np.array([name in trained.refused for name in samples.joint_names]) | absent
    threshold = rest_threshold(np.concatenate([dq for _, _, dq in motions]))
    rows: list[list[Array]] = []
    for measured_part, predicted_part, dq in motions:
        charged, raw = (np.where(joints, mean, predicted_part) for joints in (refused, absent))
        smoothed = (low_pass.apply(measured_part), low_pass.apply(charged))
        rows.append([values[ends:-ends] for values in (measured_part, charged, raw, *smoothed, dq)])
    measured, predicted, unrefused, smooth, smooth_predicted, speed = (
        np.concatenate(part) for part in zip(*rows, strict=True)
    )
    moving = moving_mask(speed, threshold)
    everywhere = np.ones_like(moving)
    errors = (
        Errors.of(smooth, smooth_predicted, moving),
        Errors.of(measured, predicted, moving),
        Errors.of(smooth, smooth_predicted, everywhere),
        Errors.of(measured, predicted, everywhere),
        Errors.of(measured, unrefused, everywhere),
    )
    return dict(zip(KINDS, errors, strict=True)), refused


def refuse_all(times: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Predict nothing: the predictor of a method that failed."""
    return np.full(q.shape, np.nan)
