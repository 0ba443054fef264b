"""Judge a model on motion it was not fitted to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.fit import predicted_rows
from jointbench.identification.judgement import (
    InformationSums,
    TorqueError,
    TorqueInformation,
    TwoErrors,
    Verdict,
    judge_joints,
    judge_whole,
    noise_in_band,
    torque_error,
)
from jointbench.identification.model import Model
from jointbench.identification.observations import observe
from jointbench.identification.settings import FitSettings, provenance
from jointbench.identification.whiteness import Whiteness, whiteness
from jointbench.recording import Run


@dataclass(frozen=True, eq=False)
class Validation:
    """A model's torque against the measured one, both filtered alike.

    Attributes:
        joint_names: in the order of the columns.
        modelled: which of them are not passive, shape (n_joints,).
        time: [s], shape (n,).
        measured, predicted: joint torque [N·m or N], shape (n, n_joints).
        complete: rows away from gaps and ends, the others are zero, shape (n,).
        moving: rows of joints away from rest, shape (n, n_joints).
        error: over the moving rows; its `share` says how many of the complete ones they are.
        error_all: over all complete rows.
        coulomb_viscous: both errors of the model without memory, None where its friction has none.
        information: whether each joint's measured torque varies more than its noise.
        reasons: of the joints whose torque does not, by name: why nothing can be judged by it.
        provenance: of the run it was judged on.

    >>> check = jb.validate(jb.fit(jb.open_run("runs/arm")), jb.open_run("runs/other"))
    >>> (check.relative < 0.01).tolist(), check.predicted.shape == check.measured.shape
    ([True, True], True)
    >>> [f"{verdict.name}: {verdict.word}" for verdict in check.joint_verdicts]
    ['j1: identified', 'j2: identified']
    """

    joint_names: tuple[str, ...]
    modelled: NDArray[np.bool_]
    time: Array
    measured: Array
    predicted: Array
    complete: NDArray[np.bool_]
    moving: NDArray[np.bool_]
    error: TorqueError
    error_all: TorqueError
    coulomb_viscous: TwoErrors | None
    information: TorqueInformation
    reasons: Mapping[str, str]
    provenance: Mapping[str, Any]

    @property
    def rms(self) -> Array:
        """Torque error per joint where it moves, root mean square [N·m or N]."""
        return self.error.rms

    @property
    def relative(self) -> Array:
        """Torque error per joint where it moves, as a share of the torque."""
        return self.error.relative

    @property
    def r_squared(self) -> Array:
        """Share of the torque's variance about its mean that is predicted, per joint where it moves."""
        return self.error.r_squared

    @cached_property
    def whiteness(self) -> Whiteness:
        """Correlation in time of what is left unexplained where the joints move."""
        return whiteness(self.measured - self.predicted, self.moving)

    @property
    def total_relative(self) -> float:
        """Torque error of all joints together where they move, as a share of the torque."""
        return self.error.total_relative

    @cached_property
    def joint_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each joint's torque."""
        return judge_joints(
            self.joint_names,
            self.error.relative,
            self.error.share,
            self.modelled,
            self.reasons,
            self.error_all.relative,
        )

    @property
    def verdict(self) -> Verdict:
        """The word on the whole: that on its worst joint."""
        return judge_whole(self.joint_verdicts, self.error.relative)


def validate(model: Model, run: Run, *, settings: FitSettings | None = None) -> Validation:
    """Predict the torque of a run and compare it with the measured one.

    Args:
        model: to be judged.
        run: preferably another motion than the model was fitted to.
        settings: None: the model's own, but for `interval`, so that the error is that of the same band of
            frequencies and the same speeds.

    Returns:
        The comparison.

    Raises:
        FitError: the run has other joints than the model or lacks a signal.
        SignalError: the cut-off does not suit the sample rate.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> jb.validate(model, jb.open_run("runs/other")).verdict.word  # another motion
    'identified'
    >>> jb.validate(model, jb.open_run("runs/after")).verdict.word  # the same motion, with more friction in j1
    'poor fit'
    """
    used = settings or dataclasses.replace(model.settings, interval=None)
    rows = observe(run, model.robot, model.base, used)
    shape = (rows.n_rows, rows.n_joints)
    measured, predicted, plain = np.zeros((3, *shape))
    moving, complete = np.zeros(shape, dtype=np.bool_), np.zeros(rows.n_rows, dtype=np.bool_)
    sums = InformationSums(rows.n_joints)
    friction = model.memory or model.friction
    predicting = predicted_rows(rows, rows, model.parameters, friction)
    parameters = model.parameters if friction is None else np.ones(1)
    for block in predicting.blocks():
        part = slice(block.start, block.stop)
        measured[part], predicted[part] = block.torque, block.predict(parameters)
        moving[part], complete[part] = block.used, block.complete
        sums.add(block.start, block.torque, block.used)
    for block in rows.blocks() if model.memory is not None else ():
        plain[block.start : block.stop] = block.predict(model.parameters)
    everywhere = complete[:, None] & model.robot.modelled
    if not moving.any():
        raise FitError(f"run {run.path}: no joint moves faster than its threshold; validate on a run with motion")
    information = sums.result(noise_in_band(rows.noise, rows.filter.low_pass))
    return Validation(
        joint_names=model.robot.joint_names,
        modelled=model.robot.modelled,
        time=rows.time,
        measured=measured,
        predicted=predicted,
        complete=complete,
        moving=moving,
        error=torque_error(measured, predicted, moving, complete),
        error_all=torque_error(measured, predicted, everywhere, complete),
        coulomb_viscous=None
        if model.memory is None
        else TwoErrors(
            torque_error(measured, plain, everywhere, complete), torque_error(measured, plain, moving, complete)
        ),
        information=information,
        reasons=information.reasons(model.robot, rows.settings.torque),
        provenance=provenance(run),
    )
