"""Identify a robot's model from one run or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.files import foreign_code
from jointbench.identification.calibration import Calibration, CalibrationProblem, Zeros, tolerances_of
from jointbench.identification.estimators import Estimator, Problem, make_estimator
from jointbench.identification.estimators.estimator import DEFAULT, FOR_LOGS, estimator_options
from jointbench.identification.friction import FrictionLaws, LawFit, ModelFriction, ModelMemory, fit_with_laws
from jointbench.identification.friction.memory_fit import ESTIMATORS as MEMORY_BESIDE
from jointbench.identification.friction.memory_fit import MEMORY, fit_memory
from jointbench.identification.judgement import ErrorSums, TorqueError, TwoErrors
from jointbench.identification.least_squares import Estimate
from jointbench.identification.log_check import run_parts
from jointbench.identification.log_sampling import cutoff_notes
from jointbench.identification.model import Model
from jointbench.identification.observations import (
    Observations,
    best_information,
    fitted_rows,
    is_unknown,
    modelled_torque,
    observe,
)
from jointbench.identification.rows import Rows, felt_by_sensor
from jointbench.identification.settings import FitSettings, provenance_of_all
from jointbench.identification.whiteness import Whiteness, WhitenessSums
from jointbench.model import BaseParameters, Robot, as_robot, base_parameters
from jointbench.model.base_parameters import doubled_compensations
from jointbench.recording import Run, as_run
from jointbench.signals import valid_spans

_ZERO_PASSES = 3
"""Most fits of the joints' zeros, each about those of the one before."""

_SETTLED = 0.1
"""Change of zeros, in their standard deviations, that is none."""

Settings = FitSettings | Mapping[str, Any] | None
"""All of them, or those that are not to be the run's own."""


def fit(
    runs: Run | str | Path | Sequence[Run | str | Path],
    robot: Robot | str | Path | None = None,
    *,
    estimator: str | Estimator | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Settings | Sequence[Settings] = None,
    friction: FrictionLaws | None = None,
) -> Model:
    """Identify base parameters of links and drives from runs, with error bars and a verdict.

    tau = regressor(q, dq, ddq) @ parameters, by the estimator of this name. Several runs are observed each by itself,
    with a cut-off, a delay and noise levels of its own, and make one model. Where some have torque sensors at the
    joints and others motor currents, the model is that of the sensors, and the currents tell of the links alone.

    Args:
        runs: one, or several of the same robot, of motions that excite it; runs or their directories.
        robot: the robot that was recorded, or what `load_robot` takes; None: the one the first run names.
        estimator: one of `ESTIMATORS`, or an estimator's record itself. None: "map" for logs whose noise nothing tells,
            "wls" where all runs are of boards whose filters or repeats are known.
        options: of the estimator by name, such as {"loss": "bisquare"}; they are the fields of its record.
        settings: for all runs, or one for each. None: those of a run's mapping where it was imported with some, else
            `FitSettings()`; a mapping, such as {"cutoff_Hz": 30.0}: the same but for these.
        friction: None: parameters beside Coulomb and viscous friction, and of motors' torques friction with memory,
            too, fitted to all rows, which predicts where it errs less on rows held out; "memory": the same, refused
            where it cannot be; "coulomb_viscous": none but that. A law for all joints, such as "stribeck" or
            "makkar+load", or laws by joint, in place of Coulomb and viscous friction; "choose" leaves a joint's to the
            data. Fits of a friction experiment by joint are held as they are, and all else is fitted beside them.

    Returns:
        The model; look at its verdicts before using it.

    Raises:
        RunError, FileError, RobotError: a directory or robot that is named cannot be read.
        FitError: a run lacks a signal, has too few rows, or does not belong to the robot; an estimator or option is not
            known, or cannot do this.
        SignalError: the cut-off does not suit the sample rate.
        NumericalError: the robot's geometry is nearly degenerate.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> model.verdict.word, round(model.value("j1.coulomb"), 1)  # [N·m]
    ('identified', 6.0)
    >>> both = jb.fit([jb.open_run("runs/arm"), jb.open_run("runs/other")])
    >>> bool((both.sigma < model.sigma).all())  # two motions tell more than one
    True
    """
    several = (runs,) if isinstance(runs, (Run, str, Path)) else runs
    if not isinstance(several, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FitError(f"{type(several).__name__} is given to fit; give a run, its directory, or several")
    given = tuple(several)
    if not given:
        raise FitError("no run is given to fit; give at least one")
    if estimator is not None:
        make_estimator(estimator, options)  # a wrong word is refused before the recordings are read
    opened = tuple(map(as_run, given))
    robot = opened[0].robot if robot is None else as_robot(robot)
    base = base_parameters(robot)
    # More BLAS threads take longer: a fit of seven joints and 80 s 2 s with one, 12 s with two on two cores.
    with threadpool_limits(1, user_api="blas"):
        return _fit(opened, robot, base, settings_of_runs(opened, settings), estimator, options, friction)


def _fit(
    runs: tuple[Run, ...],
    robot: Robot,
    base: BaseParameters,
    settings: Sequence[FitSettings],
    estimator: str | Estimator | None,
    options: Mapping[str, Any] | None,
    friction: FrictionLaws | None,
) -> Model:
    """Identify the model of runs, each with its settings."""
    recordings = [observe(run, robot, base, of_run) for run, of_run in zip(runs, settings, strict=True)]
    check_enough(runs, base, recordings)
    if estimator is None:
        is_log = any(is_unknown(each.filter.signals) for each in recordings)
        estimator = FOR_LOGS if is_log else DEFAULT
    chosen = make_estimator(estimator, options)
    side, parts = modelled_torque(recordings), fitted_rows(recordings, base)
    if side == "joint":
        base = felt_by_sensor(base)
    problem = Problem(robot, base, runs, tuple(recordings), parts)
    problem, (estimate, laws, _), calibration = _calibrated(chosen, problem, friction, side)
    recordings = list(problem.observations)
    judged = [observations for observations in recordings if observations.settings.torque == side]
    prediction = _predict(base, judged, estimate.parameters, laws)
    memory, notes = None, tuple(_notes(runs, recordings, base))
    if calibration is not None:
        notes += calibration.contradictions
        notes += () if calibration.zeros is None else tuple(calibration.zeros.sentences(robot))
    if friction == MEMORY:
        _check_memory(side, chosen.name)
    if friction in (None, MEMORY) and side == "motor" and chosen.name in MEMORY_BESIDE:
        without = TwoErrors(prediction.error_all, prediction.error)
        memory, reason = fit_memory(base, judged, prediction.rows, estimate, without)
        notes += (reason,)
        if memory is not None and chosen.name == FOR_LOGS:
            memory = memory.with_parameters(_beside(chosen, problem, memory).parameters)
        if memory is not None:
            prediction = _predict(base, judged, estimate.parameters, memory)
    return Model(
        robot=robot,
        base=base,
        parameters=estimate.parameters,
        covariance=estimate.covariance if calibration is None else estimate.covariance + calibration.covariance,
        condition_number=estimate.condition_number,
        error=prediction.error,
        error_all=prediction.error_all,
        whiteness=prediction.whiteness,
        information=best_information(judged),
        noise_rms=_root_mean_square(np.array([observations.noise for observations in judged])),
        lags=estimate.lags,
        rows=tuple(int(n) for n in np.sum([observations.n_fitted for observations in recordings], axis=0)),
        estimator=chosen.name,
        options=estimator_options(chosen),
        figures={**estimate.figures, **_cutoff_figures(recordings)},
        notes=(*estimate.notes, *notes),
        settings=judged[0].settings,
        delays=tuple(observations.delay for observations in recordings),
        outliers=np.array([observations.outliers for observations in recordings]).sum(axis=0),
        provenance=provenance_of_all(runs, [observations.settings for observations in recordings]),
        made_physical=estimate.physical,
        held_out=estimate.held_out,
        run_parts=run_parts(runs, robot, [observations.settings.torque for observations in recordings]),
        friction=laws,
        memory=memory,
        calibration=calibration,
    )


def _solve(
    estimator: Estimator, problem: Problem, friction: FrictionLaws | None, plain: Estimate | None = None
) -> LawFit:
    """Estimate base parameters, and friction laws beside them where any are asked for.

    Args:
        estimator: of them.
        problem: without laws.
        friction: as of `fit`.
        plain: the estimate without laws, where it is known already.
    """
    with foreign_code(
        FitError,
        f"the equations of {', '.join(str(run.path) for run in problem.runs)} have no solution",
        "look for spikes and dead joints with `jointbench doctor RUN`, or leave their time out by interval",
        (LinAlgError,),
    ):
        if friction in (None, MEMORY):
            return LawFit(estimator(problem) if plain is None else plain, None)
        return fit_with_laws(estimator, problem, friction, plain)


def _calibrated(
    estimator: Estimator, problem: Problem, friction: FrictionLaws | None, side: str
) -> tuple[Problem, LawFit, Calibration | None]:
    """Solve a problem, with the joints' zeros where gravity shows them, and tell what calibration adds to error bars.

    The zeros are fitted beside Coulomb and viscous friction, then friction laws once beside these zeros.

    Returns:
        The problem and its solution with these zeros; and the calibration, None where it counts as exact.
    """
    first = problem.observations[0]
    is_log = any(is_unknown(each.filter.signals) for each in problem.observations)
    tolerances = tolerances_of(problem.robot, first.settings.tolerances, is_log=is_log)
    if tolerances is None:
        return problem, _solve(estimator, problem, friction), None
    fitted, zeros = _solve(estimator, problem, None), None
    about = CalibrationProblem.of(problem, fitted.estimate, tolerances, side)
    for _ in range(_ZERO_PASSES if first.settings.zeros is None else 0):
        further = about.zeros(zeros)
        if further is None:
            break
        moved = further.values - (0.0 if zeros is None else zeros.values)
        zeros = further
        problem = _with_zeros(problem, zeros)
        fitted = _solve(estimator, problem, None)
        about = CalibrationProblem.of(problem, fitted.estimate, tolerances, side)
        if np.all(np.abs(moved) <= _SETTLED * zeros.sigma):
            break
    fitted = _solve(estimator, problem, friction, fitted.estimate)
    if fitted.friction is None or fitted.around is None:
        return problem, fitted, about.calibration(problem.robot, tolerances, fitted.estimate.covariance, zeros)
    around, estimate = fitted.around
    about = CalibrationProblem.of(around, estimate, tolerances, side)
    calibration = about.calibration(problem.robot, tolerances, estimate.covariance, zeros)
    kept = fitted.friction.laws.kept
    return problem, fitted.with_calibration(calibration.covariance), calibration.spread(kept)


def _with_zeros(problem: Problem, zeros: Zeros) -> Problem:
    """The same problem of positions from other zeros, with the cut-off and the delay that it has."""
    values = tuple(zeros.values.tolist())
    recordings = [
        replace(
            observe(run, problem.robot, seen.filter.base, replace(seen.settings, zeros=values)),
            delay=seen.delay,
            choice=seen.choice,
        )
        for run, seen in zip(problem.runs, problem.observations, strict=True)
    ]
    parts = fitted_rows(recordings, recordings[0].filter.base)
    return replace(problem, observations=tuple(recordings), parts=parts)


def _beside(estimator: Estimator, problem: Problem, memory: ModelMemory) -> Estimate:
    """Estimate base parameters anew beside friction with memory, so that they are those of bodies here, too."""
    rows = zip(problem.parts, problem.observations, strict=True)
    return estimator(replace(problem, parts=tuple(memory.without_friction(part, seen) for part, seen in rows)))


def run_settings(run: Run) -> FitSettings:
    """The settings a run was imported with, or the defaults."""
    given: Mapping[str, Any] = run.provenance.get("fit", {})
    return FitSettings.from_dict(given)


def settings_of_runs(runs: Sequence[Run], settings: Settings | Sequence[Settings]) -> list[FitSettings]:
    """Return the settings of each run: what is given, else what it was imported with.

    Raises:
        FitError: there are not as many as runs, or one of them is unknown.
    """
    if settings is None or isinstance(settings, (FitSettings, Mapping)):
        return [_chosen(run, settings) for run in runs]
    if len(settings) != len(runs):
        raise FitError(f"{len(settings)} settings are given for {len(runs)} runs; give one for all, or one for each")
    return [_chosen(run, of_run) for run, of_run in zip(runs, settings, strict=True)]


def _chosen(run: Run, settings: Settings) -> FitSettings:
    if isinstance(settings, FitSettings):
        return settings
    return FitSettings.from_dict(run_settings(run).to_dict() | dict(settings or {}))


def _check_memory(side: str, estimator: str) -> None:
    """Refuse what cannot have friction with memory."""
    if side != "motor":
        raise FitError(
            "friction with memory was asked for, but it lies before the joints' torque sensors, whose torque is "
            'modelled; fit with torque = "motor", or leave friction out'
        )
    if estimator not in MEMORY_BESIDE:
        raise FitError(
            f"estimator {estimator!r} fits no friction with memory beside its parameters; take one of "
            f"{', '.join(MEMORY_BESIDE)}, or leave friction out"
        )


class _Prediction(NamedTuple):
    """Predicted rows of torque and their errors, where the joints move and over all complete rows."""

    rows: Sequence[Rows]
    error: TorqueError
    error_all: TorqueError
    whiteness: Whiteness


def _predict(
    base: BaseParameters,
    recordings: Sequence[Observations],
    parameters: Array,
    friction: ModelFriction | ModelMemory | None,
) -> _Prediction:
    """Predict the torque of all rows, and judge it.

    A joint is judged where its torque says something, if it does in any recording.
    """
    rows = [
        predicted_rows(observations.measured(base), observations, parameters, friction) for observations in recordings
    ]
    row_parameters = parameters if friction is None else np.ones(1)
    modelled = base.robot.modelled
    n = len(modelled)
    moving, everywhere, white, free = ErrorSums(n), ErrorSums(n), WhitenessSums(n), 0
    silent = ~np.any([observations.information.informative for observations in recordings], axis=0)
    for observations, part in zip(recordings, rows, strict=True):
        joints, start = observations.information.informative | silent, free
        for block in part.blocks():
            predicted, used = block.predict(row_parameters), block.used & joints
            complete = block.complete[:, None] & modelled & joints
            moving.add(block.torque, predicted, used, block.complete)
            everywhere.add(block.torque, predicted, complete, block.complete)
            white.add(start + block.start, block.torque - predicted, used)
            free = start + block.stop + 1  # a gap before the next recording
    return _Prediction(rows, moving.result(), everywhere.result(), white.result())


def predicted_rows(
    rows: Rows, observations: Observations, parameters: Array, friction: ModelFriction | ModelMemory | None
) -> Rows:
    """Return rows that predict torque: with friction laws or memory, one column whose parameter is 1.

    Args:
        rows: with the regressor of the base parameters.
        observations: of the same recording.
        parameters: base parameters, shape (rank,).
        friction: beside them, or None.
    """
    if friction is None:
        return rows
    if isinstance(friction, ModelMemory):
        return friction.predicted(rows, observations)
    return friction.predicted(rows, observations, parameters)


def _root_mean_square(noise: Array) -> Array:
    """Over runs that know it, nan where none does."""
    known = np.isfinite(noise)
    squares = np.sum(np.where(known, noise, 0.0) ** 2, axis=0)
    count = known.sum(axis=0)
    return np.sqrt(np.divide(squares, count, out=np.full(noise.shape[1], np.nan), where=count > 0))


def _notes(runs: Sequence[Run], recordings: Sequence[Observations], base: BaseParameters) -> list[str]:
    """Sentences that a reader of the model must know of the runs."""
    notes = list(doubled_compensations(base))
    for run, observations in zip(runs, recordings, strict=True):
        where = f"run {run.path}: " if len(runs) > 1 else ""
        if observations.choice is not None:
            notes.append(f"{where}{observations.choice.reason}")
            notes += [f"{where}{observations.choice.states}"] if observations.choice.states else []
            signals, cutoff = observations.filter.signals, observations.choice.cutoff_Hz
            bounds = cutoff_notes(signals, list(valid_spans(signals.valid)), base.robot, cutoff)
            notes += [f"{where}{bound}" for bound in bounds]
        gaps = observations.filter.signals.gaps
        if gaps is not None and gaps != (0, 0):
            notes.append(
                f"{where}{gaps.bridged} gaps of at most half a period of the cut-off are bridged, "
                f"{gaps.split} longer ones split the recording"
            )
        notes += [
            f"{where}{reason}; its rows are left out"
            for reason in observations.information.reasons(base.robot, observations.settings.torque).values()
        ]
    sides = [observations.settings.torque for observations in recordings]
    if len(set(sides)) > 1:
        motors = ", ".join(str(run.path) for run, side in zip(runs, sides, strict=True) if side == "motor")
        notes.append(
            f"the model predicts joint torque sensors; what drives add to the motor currents of {motors} is projected "
            f"out, so that these runs inform the links' parameters only"
        )
    return notes


def _cutoff_figures(recordings: Sequence[Observations]) -> dict[str, Any]:
    """Cut-offs that were tried, and the error of each relative to the least, of each recording that chose one."""
    choices = [each.choice for each in recordings if each.choice is not None]
    if not choices:
        return {}
    return {
        "cutoffs_tried": [[[tried.cutoff_Hz, tried.error] for tried in choice.tried] for choice in choices],
        "cutoffs_chosen": [choice.cutoff_Hz for choice in choices],
    }


def check_enough(runs: Sequence[Run], base: BaseParameters, recordings: Sequence[Observations]) -> None:
    """Refuse a fit with fewer rows than parameters that act on them.

    Raises:
        FitError: names the rows of each joint.
    """
    rows = np.sum([observations.n_fitted for observations in recordings], axis=0)
    if rows.sum() > base.rank:
        return
    per_joint = ", ".join(f"{name} {count}" for name, count in zip(base.robot.joint_names, rows, strict=True))
    reasons = [
        reason
        for observations in recordings
        for reason in observations.information.reasons(base.robot, observations.settings.torque).values()
    ]
    silent = f"; {'; '.join(reasons)}" if reasons else ""
    which = f"run {runs[0].path} gives" if len(runs) == 1 else f"the {len(runs)} runs give"
    raise FitError(
        f"{which} {rows.sum()} rows away from rest ({per_joint}) for {base.rank} parameters; "
        f"record more motion, or lower velocity_threshold{silent}"
    )
