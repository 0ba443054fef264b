"""Judge models on motion they were not fitted to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from jointbench.identification.log_check import run_parts
from jointbench.identification.model import Model
from jointbench.identification.model_file import as_model
from jointbench.identification.observations import Observations, observe
from jointbench.identification.settings import FitSettings, provenance
from jointbench.identification.verdict import Part, WholeVerdict
from jointbench.identification.whiteness import Whiteness, whiteness
from jointbench.model.model_columns import torque_unit
from jointbench.notebook import card, data_frame, need_figures
from jointbench.recording import Run, as_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        model: that was judged; its own verdict counts, too.
        in_sample: whether samples of this motion were fitted: nothing is "identified" then, as nothing follows for
            other motions.
        run_parts: what the run itself adds to the verdict, as `run_parts` of the log check has it.

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
    model: Model
    in_sample: bool
    run_parts: tuple[Part, ...]

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
        """The word on each joint's torque; "in-sample" instead of "identified" where it was fitted."""
        verdicts = judge_joints(
            self.joint_names,
            self.error.relative,
            self.error.share,
            self.modelled,
            self.reasons,
            self.error_all.relative,
        )
        return tuple(map(_in_sample, verdicts)) if self.in_sample else verdicts

    @cached_property
    def verdict(self) -> WholeVerdict:
        """The word on the whole: the worst of the model's own verdict, this run, its log and the errors on it."""
        own = self.model.verdict
        joints = judge_whole(self.joint_verdicts, self.error.relative)
        name = "in-sample error" if self.in_sample else "held-out error"
        advice = _RECORD_ANOTHER if self.in_sample else _NOT_PREDICTED
        of_run = [replace(part, name=f"{part.name} of this run") for part in self.run_parts]
        fitted = [replace(part, name=f"{part.name} of the fit") for part in own.parts]
        return WholeVerdict((*fitted, *of_run, Part.of(name, joints, advice)), own.condition)

    def __repr__(self) -> str:
        """Return one line: robot, run, and torque error of each joint."""
        errors = ", ".join(f"{name} {error:.1%}" for name, error in zip(self.joint_names, self.relative, strict=True))
        what = "in-sample torque error" if self.in_sample else "torque error"
        return f"<Validation of {self.model.robot.name} on {self.provenance['run']}: {what} {errors}>"

    def _repr_html_(self) -> str:
        facts = [
            ("verdict", f"{self.verdict.word}: {self.verdict.reason}"),
            *((verdict.name, f"{verdict.word}: {verdict.reason}") for verdict in self.joint_verdicts),
        ]
        return card(f"Validation of {self.model.robot.name} on {self.provenance['run']}", facts, self.plot)

    def plot(self) -> Figure:
        """Draw measured (wide, pale) and predicted (thin) torque of each joint, and the residual where it moves.

        Returns:
            The figure; a notebook shows it, `savefig` writes it.

        Raises:
            MissingExtra: matplotlib is not installed; names the extra.
        """
        need_figures("the picture of a validation")
        from jointbench.drawing import Curves, joint_figure

        units = [torque_unit(self.model.robot, joint) for joint in range(len(self.joint_names))]
        measured, predicted = (np.where(self.complete[:, None], one, np.nan) for one in (self.measured, self.predicted))
        torque = Curves("torque, measured and predicted", units, [measured, predicted])
        title = f"{self.model.robot.name} on {self.provenance['run']}"
        residual = Curves("residual where it moves", units, [np.where(self.moving, measured - predicted, np.nan)])
        return joint_figure(title, self.time, self.joint_names, [torque, residual])

    def to_pandas(self) -> Any:
        """Return the torques as a table of pandas (a DataFrame), indexed by time [s].

        Returns:
            A row for each sample; for "j1" j1.measured_Nm, j1.predicted_Nm and j1.moving, with N for a prismatic joint;
            NaN near gaps and ends.

        Raises:
            MissingExtra: pandas is not installed; names the extra.
        """
        columns: dict[str, Any] = {"time_s": self.time}
        for k, name in enumerate(self.joint_names):
            unit = torque_unit(self.model.robot, k).replace("·", "")
            for kind, torque in (("measured", self.measured), ("predicted", self.predicted)):
                columns[f"{name}.{kind}_{unit}"] = np.where(self.complete, torque[:, k], np.nan)
            columns[f"{name}.moving"] = self.moving[:, k]
        return data_frame(columns, "time_s", "the table of a validation")


_RECORD_ANOTHER = "record another motion and validate on that"
_NOT_PREDICTED = (
    "compare the residuals of both runs in the report: a joint that errs here alone saw motion or load that the fit "
    "did not; fit both runs with --together"
)


def _in_sample(verdict: Verdict) -> Verdict:
    """The same word, but for that of a good prediction, which this is not."""
    if verdict.word != "identified":
        return verdict
    return replace(verdict, word="in-sample", reason=f"{verdict.reason}, on motion that was fitted")


def shares_samples(model: Model, run: Run, interval: tuple[float, float] | None = None) -> bool:
    """Return whether a model was fitted to samples of this recording, whatever its folder is called.

    Args:
        model: whose runs are known by the SHA-256 of what was measured.
        run: to be judged on.
        interval: the time of it that is judged [s]; None: all.
    """
    first, last = interval or (run.samples.time[0], run.samples.time[-1])
    for fitted in fitted_runs(model):
        if fitted["sha256"] == run.sha256:
            begin, end = fitted["settings"].get("interval") or (-np.inf, np.inf)
            if max(first, begin) < min(last, end):
                return True
    return False


def fitted_runs(model: Model) -> list[dict[str, Any]]:
    """Return what a model says of each run it was fitted to: "run", "sha256", "settings"."""
    several = model.provenance.get("runs")
    return list(several) if several else [{"settings": model.settings.to_dict(), **model.provenance}]


def check_held_out(model: Model, run: Run, interval: tuple[float, float] | None = None, name: str = "") -> None:
    """Refuse to judge a model by the samples that made it.

    Args:
        model, run, interval: as of `shares_samples`.
        name: of the model, for the message; empty: that of the run that it was fitted to.

    Raises:
        FitError: they share samples; names model, run and digest, and what to do.
    """
    if not shares_samples(model, run, interval):
        return
    own = next(fitted for fitted in fitted_runs(model) if fitted["sha256"] == run.sha256)
    left = own["settings"].get("interval")
    rest = (
        f"judge rows outside {left[0]:g} to {left[1]:g} s, which the fit left out, by --interval FROM,TO"
        if left
        else "fit a part of it (jointbench fit --interval FROM,TO) and judge the rest by --interval"
    )
    called = f"of {own['run']}"
    known = "" if str(run.path) == own["run"] else f", there called {own['run']}"
    judged = "it" if interval is None else f"its {interval[0]:g} to {interval[1]:g} s"
    raise FitError(
        f"model {name or called} was fitted to run {run.path} (SHA-256 {run.sha256[:12]}…{known}), so that "
        f"errors on {judged} say nothing about other motions; validate on a run of another motion, or {rest}; "
        f"--in-sample (in_sample=True in Python) shows the errors nevertheless, labelled as such"
    )


def validate(
    model: Model | str | Path,
    run: Run | str | Path,
    *,
    settings: FitSettings | None = None,
    cutoff_Hz: float | None = None,
    interval: tuple[float, float] | None = None,
    in_sample: bool = False,
) -> Validation:
    """Predict the torque of a run and compare it with the measured one.

    Errors of models that were fitted with different cut-offs say nothing beside each other unless they are judged at
    one: see `validate_models`.

    Args:
        model: to be judged, or its file.
        run: another motion than the model was fitted to, or an interval of the same that the fit left out; or its
            directory.
        settings: None: as of `judging_settings`.
        cutoff_Hz, interval: as of `judging_settings`, in place of `settings`.
        in_sample: judge samples that were fitted, too; the result says so, and nothing in it is "identified".

    Returns:
        The comparison.

    Raises:
        RunError, FileError: a directory or file that is named cannot be read.
        FitError: the run has other joints than the model or lacks a signal; or `settings` are given beside others; or
            the model was fitted to these samples, as SHA-256 tells, and `in_sample` is not set.
        SignalError: the cut-off does not suit the sample rate.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> jb.validate(model, jb.open_run("runs/other")).verdict.word  # another motion
    'identified'
    >>> jb.validate(model, jb.open_run("runs/after")).verdict.word  # the same motion again, with more friction in j1
    'poor fit'
    >>> jb.validate(model, jb.open_run("runs/other"), cutoff_Hz=5.0).cutoff_Hz
    5.0
    """
    if settings is not None and (cutoff_Hz is not None or interval is not None):
        raise FitError("settings are given beside cutoff_Hz or interval; give these two in the settings")
    model, run = as_model(model), as_run(run)
    used = settings or judging_settings(model, cutoff_Hz, interval)
    if not in_sample:
        check_held_out(model, run, used.interval)
    rows = observe(run, model.robot, model.base, used)
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
        model=model,
        in_sample=shares_samples(model, run, used.interval),
        run_parts=run_parts([run], model.robot, [used.torque]),
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
    models: Sequence[Model | str | Path],
    run: Run | str | Path,
    *,
    cutoff_Hz: float | None = None,
    interval: tuple[float, float] | None = None,
    in_sample: bool = False,
) -> tuple[Validation, ...]:
    """Judge several models on one run, at one cut-off and over the same rows, whatever each was fitted with.

    Args:
        models: of the run's robot, with torques of one side; models or their files.
        run: the motion, or its directory.
        cutoff_Hz: None: `common_cutoff` of several models; of a single one its own, with its own speeds.
        interval: use only samples from..to these times [s]; None: all.
        in_sample: as of `validate`.

    Raises:
        FitError: there is no model, or one is of torques at motors and another of those at joints; and as of
            `validate`.
        SignalError: as of `validate`.

    >>> run, other = jb.open_run("runs/arm"), jb.open_run("runs/other")
    >>> models = [jb.fit(run, settings={"cutoff_Hz": cutoff}) for cutoff in (10.0, 40.0)]
    >>> [check.cutoff_Hz for check in jb.validate_models(models, other)]
    [10.0, 10.0]
    """
    run, opened = as_run(run), [as_model(model) for model in models]
    if not opened:
        raise FitError("no model is given to judge; give at least one")
    sides = [model.settings.torque for model in opened]
    if len(set(sides)) > 1:
        raise FitError(
            f"the models predict torques of different sides ({', '.join(sides)}), whose errors cannot be compared; "
            f"fit all with the same --torque"
        )
    if cutoff_Hz is None and len(opened) > 1:
        cutoff_Hz = common_cutoff(opened)
    return tuple(validate(model, run, cutoff_Hz=cutoff_Hz, interval=interval, in_sample=in_sample) for model in opened)


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
