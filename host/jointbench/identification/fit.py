"""Identify a robot's model from one run or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, base_parameters
from jointbench.dynamics.base_parameters import doubled_compensations
from jointbench.errors import FitError
from jointbench.foreign import foreign_code
from jointbench.identification.estimators import Estimator, Problem, make_estimator
from jointbench.identification.estimators.estimator import DEFAULT, ESTIMATORS, estimator_options
from jointbench.identification.friction import FrictionLaws, fit_with_laws
from jointbench.identification.friction.memory_fit import ESTIMATORS as MEMORY_BESIDE
from jointbench.identification.friction.memory_fit import MEMORY, fit_memory
from jointbench.identification.judgement import ErrorSums, TorqueError, TwoErrors
from jointbench.identification.model import Model
from jointbench.identification.observations import Recorded, best_information, fitted_rows, modelled_torque, observe
from jointbench.identification.rows import Rows, felt_by_sensor
from jointbench.identification.settings import FitSettings, provenance, provenance_of_all
from jointbench.identification.whiteness import Whiteness, WhitenessSums
from jointbench.recording.run import Run
from jointbench.robot import Robot

Settings = FitSettings | Mapping[str, Any] | None
"""All of them, or those that are not to be the run's own."""

__all__ = ["ESTIMATORS", "fit", "provenance", "run_settings"]


def fit(
    runs: Run | Sequence[Run],
    robot: Robot | None = None,
    *,
    estimator: str | Estimator = DEFAULT,
    options: Mapping[str, Any] | None = None,
    settings: Settings | Sequence[Settings] = None,
    friction: FrictionLaws | None = None,
) -> Model:
    """Identify base parameters of links and drives from runs, with error bars and a verdict.

    tau = regressor(q, dq, ddq) @ parameters, by the estimator of this name. Several runs are observed each by itself,
    with a cut-off, a delay and noise levels of its own, and make one model. Where some have torque sensors at the
    joints and others motor currents, the model is that of the sensors, and the currents tell of the links alone.

    Args:
        runs: one, or several of the same robot, of motions that excite it.
        robot: the robot that was recorded; None: the one the first run names.
        estimator: "wls" where nothing else is said, or another of `ESTIMATORS`; or an estimator's record itself.
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
        FitError: a run lacks a signal, has too few rows, or does not belong to the robot; an estimator or option is not
            known, or cannot do this.
        SignalError: the cut-off does not suit the sample rate.
        UnclearRank: the robot's geometry is nearly degenerate.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> model.verdict.word, round(model.value("j1.coulomb"), 1)  # [N·m]
    ('identified', 6.0)
    >>> both = jb.fit([jb.open_run("runs/arm"), jb.open_run("runs/other")])
    >>> bool((both.sigma < model.sigma).all())  # two motions tell more than one
    True
    """
    chosen = make_estimator(estimator, options)
    given = (runs,) if isinstance(runs, Run) else tuple(runs)
    if not given:
        raise FitError("no run is given to fit; give one or more")
    robot = robot or given[0].robot
    base = base_parameters(robot)
    recorded = [
        Recorded.of(observe(run, robot, base, each)) for run, each in zip(given, _each(given, settings), strict=True)
    ]
    _check_enough(given, base, recorded)
    side, parts = modelled_torque(recorded), fitted_rows(recorded, base)
    if side == "joint":
        base = felt_by_sensor(base)
    observations = tuple(each.observations for each in recorded)
    problem = Problem(robot, base, given, observations, parts)
    with foreign_code(
        FitError,
        f"the equations of {', '.join(str(run.path) for run in given)} have no solution",
        "look for spikes and dead joints with `jointbench doctor RUN`, or leave their time out by interval",
        (LinAlgError,),
    ):
        estimate, laws = (
            (chosen(problem), None) if friction in (None, MEMORY) else fit_with_laws(chosen, problem, friction)
        )
    judged = [each for each in recorded if each.torque == side]
    measured: list[Rows] = [each.measured(base) for each in judged]
    values = estimate.parameters
    if laws is not None:
        measured = [
            laws.predicted(rows, each.observations, values) for rows, each in zip(measured, judged, strict=True)
        ]
        values = np.ones(1)
    error, error_all, white = _errors(judged, measured, robot.modelled, values)
    memory, notes = None, tuple(_notes(given, recorded, base))
    if friction == MEMORY:
        _check_memory(side, chosen.name)
    if friction in (None, MEMORY) and side == "motor" and chosen.name in MEMORY_BESIDE:
        memory, why = fit_memory(base, judged, measured, estimate, TwoErrors(error_all, error))
        notes += (why,)
        if memory is not None:
            measured = [
                memory.predicted(rows, each.observations) for rows, each in zip(measured, judged, strict=True)
            ]
            error, error_all, white = _errors(judged, measured, robot.modelled, np.ones(1))
    return Model(
        robot=robot,
        base=base,
        parameters=estimate.parameters,
        covariance=estimate.covariance,
        condition_number=estimate.condition_number,
        error=error,
        error_all=error_all,
        whiteness=white,
        information=best_information(judged),
        noise_rms=_root_mean_square(np.array([each.observations.noise for each in judged])),
        lags=estimate.lags,
        rows=tuple(int(n) for n in np.sum([each.rows for each in recorded], axis=0)),
        estimator=chosen.name,
        options=estimator_options(chosen),
        figures=estimate.figures,
        notes=(*estimate.notes, *notes),
        settings=judged[0].observations.settings,
        delays=tuple(each.observations.delay for each in recorded),
        outliers=np.array([each.observations.outliers for each in recorded]).sum(axis=0),
        provenance=provenance_of_all(given, [each.observations.settings for each in recorded]),
        made_physical=estimate.physical,
        friction=laws,
        memory=memory,
    )


def run_settings(run: Run) -> FitSettings:
    """The settings a run was imported with, or the defaults."""
    given: Mapping[str, Any] = run.provenance.get("fit", {})
    return FitSettings.from_dict(given)


def _each(runs: Sequence[Run], settings: Settings | Sequence[Settings]) -> list[FitSettings]:
    """Settings of each run."""
    if settings is None or isinstance(settings, (FitSettings, Mapping)):
        return [_chosen(run, settings) for run in runs]
    if len(settings) != len(runs):
        raise FitError(f"{len(settings)} settings are given for {len(runs)} runs; give one for all, or one for each")
    return [_chosen(run, each) for run, each in zip(runs, settings, strict=True)]


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


def _errors(
    recorded: Sequence[Recorded], measured: Sequence[Rows], modelled: NDArray[np.bool_], parameters: Array
) -> tuple[TorqueError, TorqueError, Whiteness]:
    """Errors of the torque where the joints move and over all complete rows, and how far they are noise.

    A joint is judged where its torque says something, if it does in any recording.
    """
    n = len(modelled)
    moving, everywhere, white, free = ErrorSums(n), ErrorSums(n), WhitenessSums(n), 0
    silent = ~np.any([each.information.informative for each in recorded], axis=0)
    for each, rows in zip(recorded, measured, strict=True):
        joints, start = each.information.informative | silent, free
        for block in rows.blocks():
            predicted, used = block.predict(parameters), block.used & joints
            complete = block.complete[:, None] & modelled & joints
            moving.add(block.torque, predicted, used, block.complete)
            everywhere.add(block.torque, predicted, complete, block.complete)
            white.add(start + block.start, block.torque - predicted, used)
            free = start + block.stop + 1  # a gap before the next recording
    return moving.result(), everywhere.result(), white.result()


def _root_mean_square(noise: Array) -> Array:
    """Over runs that know it, nan where none does."""
    known = np.isfinite(noise)
    squares = np.sum(np.where(known, noise, 0.0) ** 2, axis=0)
    count = known.sum(axis=0)
    return np.sqrt(np.divide(squares, count, out=np.full(noise.shape[1], np.nan), where=count > 0))


def _notes(runs: Sequence[Run], recorded: Sequence[Recorded], base: BaseParameters) -> list[str]:
    """What a reader must know of the runs, in sentences."""
    notes = list(doubled_compensations(base))
    for run, each in zip(runs, recorded, strict=True):
        where = f"run {run.path}: " if len(runs) > 1 else ""
        notes += [
            f"{where}{reason}; its rows are left out"
            for reason in each.information.reasons(base.robot, each.torque).values()
        ]
    if len({each.torque for each in recorded}) > 1:
        motors = ", ".join(str(run.path) for run, each in zip(runs, recorded, strict=True) if each.torque == "motor")
        notes.append(
            f"the model is that of the joint torque sensors; of the motor currents of {motors} all that drives add is "
            f"taken out, so that they tell of the links alone"
        )
    return notes


def _check_enough(runs: Sequence[Run], base: BaseParameters, recorded: Sequence[Recorded]) -> None:
    """Refuse a fit with fewer rows than parameters that act on them."""
    rows = np.sum([each.rows for each in recorded], axis=0)
    if rows.sum() > base.rank:
        return
    per_joint = ", ".join(f"{name} {count}" for name, count in zip(base.robot.joint_names, rows, strict=True))
    reasons = [why for each in recorded for why in each.information.reasons(base.robot, each.torque).values()]
    silent = f"; {'; '.join(reasons)}" if reasons else ""
    which = f"run {runs[0].path} gives" if len(runs) == 1 else f"the {len(runs)} runs give"
    raise FitError(
        f"{which} {rows.sum()} rows away from rest ({per_joint}) for {base.rank} parameters; "
        f"record more motion, or lower velocity_threshold{silent}"
    )
