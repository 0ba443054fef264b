"""Judge models on motion they were not fitted to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

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
from jointbench.identification.observations import Observations, observe
from jointbench.identification.settings import FitSettings, provenance
from jointbench.identification.whiteness import Whiteness, whiteness
from jointbench.recording import Run


@dataclass(frozen=True, eq=False)
class Validation:
    """A model's torque against the measured one, both filtered alike, and its errors against the unfiltered torque.

    Attributes:
        joint_names: in the order of the columns.
        modelled: which of them are not passive, shape (n_joints,).
        time: [s], shape (n,).
        measured, predicted: joint torque [N·m or N], shape (n, n_joints).
        complete: rows away from gaps and ends, the others are zero, shape (n,).
        moving: rows of joints away from rest, shape (n, n_joints).
        error: over the moving rows; its `share` says how many of the complete ones they are.
        error_all: over all complete rows.
        as_measured: both errors of the same motion where neither torque goes through the low-pass, over all rows of the
            same time, one in 10 ms at least.
        cutoff_Hz: of the low-pass on positions and on both torques.
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
    as_measured: TwoErrors
    cutoff_Hz: float
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


def validate(
    model: Model,
    run: Run,
    *,
    settings: FitSettings | None = None,
    cutoff_Hz: float | None = None,
    interval: tuple[float, float] | None = None,
) -> Validation:
    """Predict the torque of a run and compare it with the measured one.

    Errors of models that were fitted with different cut-offs say nothing beside each other unless they are judged at
    one: see `validate_models`.

    Args:
        model: to be judged.
        run: preferably another motion than the model was fitted to.
        settings: None: as of `judging_settings`.
        cutoff_Hz, interval: as of `judging_settings`, in place of `settings`.

    Returns:
        The comparison.

    Raises:
        FitError: the run has other joints than the model or lacks a signal; or `settings` are given beside others.
        SignalError: the cut-off does not suit the sample rate.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> jb.validate(model, jb.open_run("runs/other")).verdict.word  # another motion
    'identified'
    >>> jb.validate(model, jb.open_run("runs/after")).verdict.word  # the same motion, with more friction in j1
    'poor fit'
    >>> jb.validate(model, jb.open_run("runs/other"), cutoff_Hz=5.0).cutoff_Hz
    5.0
    """
    if settings is not None and (cutoff_Hz is not None or interval is not None):
        raise FitError("settings are given beside cutoff_Hz or interval; give these two in the settings")
    rows = observe(run, model.robot, model.base, settings or judging_settings(model, cutoff_Hz, interval))
    predicted = _predicted(model, rows)
    moving, complete = predicted.moving, predicted.complete
    everywhere = complete[:, None] & model.robot.modelled
    if not moving.any():
        raise FitError(f"run {run.path}: no joint moves faster than its threshold; validate on a run with motion")
    unfiltered = _predicted(model, rows.unfiltered)
    unfiltered_everywhere = unfiltered.complete[:, None] & model.robot.modelled
    sums = InformationSums(rows.n_joints)
    for block in rows.blocks():
        sums.add(block.start, block.torque, block.used)
    information = sums.result(noise_in_band(rows.noise, rows.filter.low_pass))
    return Validation(
        joint_names=model.robot.joint_names,
        modelled=model.robot.modelled,
        time=rows.time,
        measured=predicted.measured,
        predicted=predicted.torque,
        complete=complete,
        moving=moving,
        error=torque_error(predicted.measured, predicted.torque, moving, complete),
        error_all=torque_error(predicted.measured, predicted.torque, everywhere, complete),
        as_measured=TwoErrors(
            torque_error(unfiltered.measured, unfiltered.torque, unfiltered_everywhere, unfiltered.complete),
            torque_error(unfiltered.measured, unfiltered.torque, unfiltered.moving, unfiltered.complete),
        ),
        cutoff_Hz=rows.filter.low_pass.cutoff_Hz,
        coulomb_viscous=None if model.memory is None else _plain_errors(model, rows, predicted),
        information=information,
        reasons=information.reasons(model.robot, rows.settings.torque),
        provenance=provenance(run),
    )


def judging_settings(
    model: Model, cutoff_Hz: float | None = None, interval: tuple[float, float] | None = None
) -> FitSettings:
    """Return the settings that a model is judged with.

    Args:
        model: whose side of the torque, encoder and delay stay as they were fitted.
        cutoff_Hz: of the low-pass. None: the model's own, and with it the speeds below which it took joints for at
            rest. With a number, these speeds are 3 % of the run's largest: the same for every model.
        interval: use only samples from..to these times of the run [s]; None: all.
    """
    own = dataclasses.replace(model.settings, interval=interval)
    if cutoff_Hz is None:
        return own
    order = FitSettings().filter_order
    return dataclasses.replace(own, cutoff_Hz=cutoff_Hz, filter_order=order, velocity_threshold=None, rest_guard=None)


def common_cutoff(models: Sequence[Model]) -> float:
    """Return the cut-off that several models are judged at where none is asked for: the lowest of theirs [Hz]."""
    return min(model.settings.cutoff_Hz or np.inf for model in models)


def validate_models(
    models: Sequence[Model],
    run: Run,
    *,
    cutoff_Hz: float | None = None,
    interval: tuple[float, float] | None = None,
) -> tuple[Validation, ...]:
    """Judge several models on one run, at one cut-off and over the same rows, whatever each was fitted with.

    Args:
        models: of the run's robot, with torques of one side.
        run: the motion.
        cutoff_Hz: None: `common_cutoff` of several models; of a single one its own, with its own speeds.
        interval: use only samples from..to these times [s]; None: all.

    Raises:
        FitError: a model is of torques at motors and another of those at joints; and as of `validate`.
        SignalError: as of `validate`.

    >>> run, other = jb.open_run("runs/arm"), jb.open_run("runs/other")
    >>> models = [jb.fit(run, settings={"cutoff_Hz": cutoff}) for cutoff in (10.0, 40.0)]
    >>> [check.cutoff_Hz for check in jb.validate_models(models, other)]
    [10.0, 10.0]
    """
    sides = [model.settings.torque for model in models]
    if len(set(sides)) > 1:
        raise FitError(
            f"the models predict torques of different sides ({', '.join(sides)}), whose errors cannot be compared; "
            f"fit all with the same --torque"
        )
    if cutoff_Hz is None and len(models) > 1:
        cutoff_Hz = common_cutoff(models)
    return tuple(validate(model, run, cutoff_Hz=cutoff_Hz, interval=interval) for model in models)


class _Predicted(NamedTuple):
    """Torques of all rows, zero where there is none, shape (n, n_joints), and which rows count."""

    measured: Array
    torque: Array
    moving: NDArray[np.bool_]
    complete: NDArray[np.bool_]


def _predicted(model: Model, rows: Observations) -> _Predicted:
    """Predict the torque of all rows."""
    shape = (rows.n_rows, rows.n_joints)
    made = _Predicted(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_), np.zeros(rows.n_rows, np.bool_))
    friction = model.memory or model.friction
    parameters = model.parameters if friction is None else np.ones(1)
    for block in predicted_rows(rows, rows, model.parameters, friction).blocks():
        part = slice(block.start, block.stop)
        made.measured[part], made.torque[part] = block.torque, block.predict(parameters)
        made.moving[part], made.complete[part] = block.used, block.complete
    return made


def _plain_errors(model: Model, rows: Observations, predicted: _Predicted) -> TwoErrors:
    """Errors of a model's Coulomb and viscous friction in place of that with memory."""
    plain = np.zeros_like(predicted.torque)
    for block in rows.blocks():
        plain[block.start : block.stop] = block.predict(model.parameters)
    everywhere = predicted.complete[:, None] & model.robot.modelled
    return TwoErrors(
        torque_error(predicted.measured, plain, everywhere, predicted.complete),
        torque_error(predicted.measured, plain, predicted.moving, predicted.complete),
    )
