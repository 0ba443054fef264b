"""An identified model: parameters with error bars, what they predict, and whether to believe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jointbench.arrays import Array
from jointbench.errors import FitError, JointbenchError
from jointbench.identification.calibration import Calibration
from jointbench.identification.delay import Delay
from jointbench.identification.judgement import (
    HeldOutError,
    TorqueError,
    TorqueInformation,
    Verdict,
    judge_joints,
    judge_parameters,
    judge_whole,
    unseen_parameters,
)
from jointbench.identification.least_squares import TOLD_BY_PRIOR
from jointbench.identification.settings import FitSettings
from jointbench.identification.verdict import (
    Part,
    WholeVerdict,
    condition,
    held_out_part,
    impossible_laws,
    impossible_signs,
    parameters_part,
)
from jointbench.identification.whiteness import Whiteness
from jointbench.model import BaseParameters, Robot, Wrench, external_torques, model_columns
from jointbench.model.model_columns import parameter_unit
from jointbench.model.tree import motion_arrays
from jointbench.notebook import card, data_frame, need_figures
from jointbench.recording import edit_sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jointbench.identification.friction import ModelFriction, ModelMemory
    from jointbench.identification.physical import PhysicalParameters


class FrictionState(NamedTuple):
    """Memory of friction.

    Attributes:
        position: of the joints at the last sample [rad or m], shape (n_joints,).
        stops: stop operators there, each over its threshold, in [-1, 1], shape (n_stops,).
    """

    position: Array
    stops: Array


class Prediction(NamedTuple):
    """Joint torque of a motion [N·m or N], shape (n, n_joints), and what friction remembers after it."""

    torque: Array
    state: FrictionState


_NORMAL_95 = float(special.ndtri(0.975))

_NOT_PHYSICAL = (
    "look for a wrong sign or unit of a torque, a joint exchanged with another, or friction that the model lacks"
)
_CALIBRATE = "calibrate what it names, or give its tolerance: fit --tolerance KEY=NUMBER"
_POOR_JOINT = (
    "look at this joint's residual in the report: friction (--friction choose), a wrong delay or unit, or too little "
    "motion; a joint that did not move needs a recording in which it does"
)
_BEFORE_SENSOR = "the rotor turns before the joint's torque sensor, which does not feel its inertia"


@dataclass(frozen=True, eq=False)
class Model:
    """Base parameters of a robot's links and drives, identified from one run or several.

    Attributes:
        robot: whose model it is.
        base: what the parameters stand for; `base.names` shows each group in full.
        parameters: values of the base parameters [SI], shape (rank,); 0 where `sigma` is infinite.
        covariance: of the parameters, shape (rank, rank).
        condition_number: of the base regressor over the rows that were fitted.
        error: of the fitted torque where the joints move.
        error_all: the same over all complete rows, those near rest included.
        whiteness: how far the residuals where the joints move are noise.
        information: whether each joint's torque varies more than its noise; of several runs in the one where it does so
            most.
        noise_rms: standard deviation between periods of the averaged torque, per joint; nan without repeats.
        lags: for how many rows the residuals count as correlated.
        rows: how many rows were fitted, per joint.
        estimator: its name.
        options: the estimator's, by name.
        figures: what the estimator found on its way, such as the weight it chose, by name.
        notes: what a reader must know, in sentences.
        settings: as used, nothing left open; of several runs those of the first whose kind of torque is modelled, the
            others' are in `provenance`.
        delays: of the motion behind the torque, of each run.
        outliers: samples that averages over periods left out, by each joint's position, then each one's torque,
            shape (2 n_joints,).
        provenance: the runs, their hashes, and the versions of what computed this.
        made_physical: the physically possible parameters, where the estimator made them.
        friction: laws that joints have in place of their Coulomb and viscous friction, where there are any.
        memory: friction with memory that predicts in place of Coulomb and viscous friction, where it errs less on rows
            held out: `error` and `error_all` are with it, `parameters` beside Coulomb and viscous friction.
        held_out: errors with and without quarters of the time, where the estimator left them out.
        calibration: what its tolerances add to the covariance, None where it counts as exact.
        run_parts: what the runs themselves add to the verdict, as `run_parts` of the log check has it; none of models
            that an earlier release wrote.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> [verdict.name for verdict in model.parameter_verdicts if verdict.word != "identified"]
    ['j2.Ixy', 'j2.Iyz']
    >>> low, high = model.confidence_interval("j1.coulomb")
    >>> round(low, 1), round(high, 1)  # [N·m]
    (6.0, 6.0)
    >>> model.predict([[0.0, -1.5]], [[0.1, 0.0]], [[0.0, 0.0]]).shape
    (1, 2)
    """

    robot: Robot
    base: BaseParameters
    parameters: Array
    covariance: Array
    condition_number: float
    error: TorqueError
    error_all: TorqueError
    whiteness: Whiteness
    information: TorqueInformation
    noise_rms: Array
    lags: int
    rows: tuple[int, ...]
    estimator: str
    settings: FitSettings
    delays: tuple[Delay, ...]
    outliers: NDArray[np.intp]
    provenance: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    made_physical: PhysicalParameters | None = None
    friction: ModelFriction | None = None
    memory: ModelMemory | None = None
    held_out: HeldOutError | None = None
    calibration: Calibration | None = None
    run_parts: tuple[Part, ...] = ()

    def __repr__(self) -> str:
        """Return one line: robot, how many parameters are identified, and torque error of each joint."""
        identified = sum(verdict.word == "identified" for verdict in self.parameter_verdicts)
        errors = ", ".join(
            f"{name} {error:.1%}" for name, error in zip(self.robot.joint_names, self.fit_relative, strict=True)
        )
        parameters = f"{identified} of {len(self.names)} base parameters identified"
        return f"<Model of {self.robot.name}: {parameters}; torque error of the fit {errors}>"

    def _repr_html_(self) -> str:
        runs = [str(run["run"]) for run in self.provenance.get("runs") or [self.provenance]]
        facts = [
            ("fitted to", ", ".join(runs)),
            ("verdict", f"{self.verdict.word}: {self.verdict.reason}"),
            *((verdict.name, f"{verdict.word}: {verdict.reason}") for verdict in self.joint_verdicts),
        ]
        return card(f"Model of {self.robot.name}", facts, self.plot)

    def plot(self) -> Figure:
        """Draw the standard error of each base parameter as a share of its value, by verdict.

        Returns:
            The figure; a notebook shows it, `savefig` writes it.

        Raises:
            MissingExtra: matplotlib is not installed; names the extra.
        """
        need_figures("the picture of a model")
        from jointbench.drawing import share_figure

        words = [verdict.word for verdict in self.parameter_verdicts]
        sizes = np.where(self.parameters == 0.0, np.inf, np.abs(self.parameters))
        shares = np.where(np.isfinite(self.sigma) & np.isfinite(sizes), self.sigma / sizes, np.inf)
        return share_figure(f"{self.robot.name}: standard error over value", self.names, shares, words)

    def to_pandas(self) -> Any:
        """Return the base parameters as a table of pandas (a DataFrame), indexed by name.

        Returns:
            A row for each: value, sigma and unit; low and high, its 95 % confidence interval; verdict and reason;
            group, the full parameters that it stands for. Friction laws' parameters are in `friction`.

        Raises:
            MissingExtra: pandas is not installed; names the extra.
        """
        half = _NORMAL_95 * self.sigma
        columns = {
            "name": self.names,
            "value": self.parameters,
            "sigma": self.sigma,
            "unit": [parameter_unit(self.robot, name) for name in self.names],
            "low": self.parameters - half,
            "high": self.parameters + half,
            "verdict": [verdict.word for verdict in self.parameter_verdicts],
            "reason": [verdict.reason for verdict in self.parameter_verdicts],
            "group": [group.formula for group in self.base.groups],
        }
        return data_frame(columns, "name", "the table of a model")

    @property
    def names(self) -> tuple[str, ...]:
        """Short name of each parameter: that of the full parameter which leads its group."""
        return self.base.leading_names

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, shape (rank,); infinite where not told."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def repeatability(self) -> Array:
        """Covariance of the parameters over recordings of the same robot, whose calibration stays, (rank, rank)."""
        return self.covariance if self.calibration is None else self.covariance - self.calibration.covariance

    @property
    def fit_rms(self) -> Array:
        """Torque error per joint over the fitted rows, root mean square [N·m or N]."""
        return self.error.rms

    @property
    def fit_relative(self) -> Array:
        """Torque error per joint over the fitted rows as a share of the torque."""
        return self.error.relative

    @property
    def delay(self) -> Delay:
        """Delay of the motion behind the torque; of several runs that of the first."""
        return self.delays[0]

    @property
    def edits(self) -> tuple[str, ...]:
        """Accepted edits of the runs it was fitted to, as they were then, a sentence each; see `Run.edits`."""
        runs = self.provenance.get("runs") or [self.provenance]
        return tuple(f"fitted to {run['run']}, {edit_sentence(edit)}" for run in runs for edit in run.get("edits", ()))

    @cached_property
    def physical(self) -> PhysicalParameters:
        """Parameters of all links and drives that a robot can have and that give these ones, or next to them.

        Raises:
            NumericalError: the search for them ends without an answer.
            FitError: the covariance is not that of an estimate from more rows than parameters.
        """
        if self.made_physical is not None:
            return self.made_physical
        from jointbench.identification.physical import BaseEstimate, physical_parameters

        return physical_parameters(BaseEstimate.of_covariance(self.base, self.parameters, self.repeatability))

    @cached_property
    def physical_verdict(self) -> Verdict:
        """The word on whether a robot can have these parameters; "refused" too where that cannot be found out."""
        try:
            return self.physical.verdict
        except JointbenchError as error:
            return Verdict("physical", "refused", f"not known: {error}")

    @cached_property
    def uninformative(self) -> Mapping[str, str]:
        """Joints whose torque tells nothing, by name, and why."""
        return self.information.reasons(self.robot, self.settings.torque)

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter, in the order of `names`."""
        unseen = unseen_parameters(self.base, self.robot, self.uninformative)
        if self.settings.torque == "joint":
            unseen |= {name: _BEFORE_SENSOR for name in self.names if name.endswith(".rotor_inertia")}
        if self.friction is not None:
            unseen |= self.friction.replaced
        verdicts = judge_parameters(self.names, self.parameters, self.sigma, unseen)
        if self.calibration is not None:
            conditions = [
                self.calibration.condition(k) if np.isfinite(self.sigma[k]) else "" for k in range(len(verdicts))
            ]
            verdicts = tuple(
                replace(verdict, reason=f"{verdict.reason}; {condition}") if condition else verdict
                for verdict, condition in zip(verdicts, conditions, strict=True)
            )
        return tuple(map(self._explained, verdicts))

    @cached_property
    def impossible(self) -> Mapping[str, str]:
        """Parameters below zero that cannot be, by name, and why; those that friction laws stand for are theirs."""
        impossible = impossible_signs(self.base, self.parameters, self.sigma)
        if self.friction is None:
            return impossible
        laws = self.friction
        own = {name: reason for name, reason in impossible.items() if name not in laws.replaced}
        return own | impossible_laws(laws.names, laws.parameters, laws.sigma)

    def _explained(self, verdict: Verdict) -> Verdict:
        """The verdict on a parameter, with what is known beside its σ: a law stands for it, or the prior tells it."""
        if self.friction is not None and verdict.name in self.friction.replaced and verdict.word == "not observable":
            return replace(verdict, word="refused")
        if verdict.name in self.impossible:
            return Verdict(verdict.name, "refused", self.impossible[verdict.name])
        if verdict.name not in self.figures.get(TOLD_BY_PRIOR, ()):
            return verdict
        word = "poorly excited" if verdict.word == "identified" else verdict.word
        return Verdict(
            verdict.name, word, f"{verdict.reason}; told by the prior of the robot's file more than by the data"
        )

    @cached_property
    def joint_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each joint's torque over the fitted motion."""
        return judge_joints(
            self.robot.joint_names,
            self.error.relative,
            self.error.share,
            self.robot.modelled,
            self.uninformative,
            self.error_all.relative,
            self.held_out,
        )

    @cached_property
    def verdict(self) -> WholeVerdict:
        """The word on the whole: the worst of recording, log check, physics, parameters, joints and held-out error."""
        parts = [
            *self.run_parts,
            *self._calibration_part(),
            Part.of("physical consistency", self.physical_verdict, _NOT_PHYSICAL),
            parameters_part(self.parameter_verdicts, self.impossible),
        ]
        if self.held_out is not None:
            judged = [verdict.word != "passive" for verdict in self.joint_verdicts]
            left_out = held_out_part(self.robot.joint_names, self.held_out, judged)
            parts += [] if left_out is None else [left_out]
        joints = judge_whole(self.joint_verdicts, self.error.relative)
        parts.append(Part.of("joints", joints, _POOR_JOINT))
        return WholeVerdict(tuple(parts), self.condition)

    def _calibration_part(self) -> tuple[Part, ...]:
        """What speaks against the tolerances of the calibration, where they were taken: no refusal, as σ grew by it."""
        if self.calibration is None:
            return ()
        if not self.calibration.contradictions:
            return (Part("calibration", "identified", "the recording contradicts no tolerance"),)
        return (Part("calibration", "suspicious", "; ".join(self.calibration.contradictions), _CALIBRATE),)

    @property
    def condition(self) -> str:
        """Condition under which the verdicts hold and that no residual shows; continues "if"."""
        runs = self.provenance.get("runs") or [self.provenance]
        is_log = not all("board" in run.get("recorded", {}) for run in runs)
        side = self.settings.torque
        tolerances = "" if self.calibration is None else self.calibration.words(self.robot, side)
        return condition(side, is_log, tolerances)

    def value(self, name: str) -> float:
        """Value of the parameter that leads the group of this name, such as "j3.coulomb", or of a friction law's [SI].

        Raises:
            FitError: no base parameter is led by it, and no law has it.
        """
        if self.friction is not None and name in self.friction.names:
            return self.friction.value(name)
        return float(self.parameters[self._index(name)])

    def confidence_interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Interval that holds the parameter's true value with probability `level`, for a model of the right form.

        Raises:
            FitError: no base parameter is led by this name; or the level is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise FitError(f"level = {level:g} must be between 0 and 1, such as 0.95")
        index = self._index(name)
        half = float(special.ndtri(0.5 + 0.5 * level)) * float(self.sigma[index])
        return float(self.parameters[index]) - half, float(self.parameters[index]) + half

    def is_identified(self, name: str) -> bool:
        """Return whether the parameter's verdict is "identified"."""
        return self.parameter_verdicts[self._index(name)].word == "identified"

    def deviations(self, full_parameters: ArrayLike) -> Array:
        """(parameters - truth) / sigma for a known truth, given as full parameters in the order of `base.full_names`.

        Within ±2 for about 95 % of them when the error bars are honest; 0 for parameters that are not told.
        """
        return (self.parameters - self.base.group(full_parameters)) / self.sigma

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, external: Wrench | None = None) -> Array:
        """Joint torque of a motion, drives included.

        Where friction has memory, rows are one motion, sample after sample, that had gone on for long as it begins;
        one row alone has the friction of steady velocity. `coulomb_viscous` predicts without memory.

        Args:
            q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n, n_joints).
            external: what acts on the robot from outside.

        Returns:
            Torque [N·m or N], zero of passive joints, shape (n, n_joints).

        Raises:
            FileError: the robot has no frame as `external` names.
            ShapeError: the arrays differ in shape or do not match the robot.
        """
        return self.predict_from(None, q, dq, ddq, external).torque

    def predict_from(
        self,
        state: FrictionState | None,
        q: ArrayLike,
        dq: ArrayLike,
        ddq: ArrayLike,
        external: Wrench | None = None,
    ) -> Prediction:
        """Joint torque of a motion that goes on from another one, and what friction remembers after it.

        Args:
            state: what friction remembers of before, as the prediction before gave it; None: as of a motion that had
                gone on for long as this one begins.
            q, dq, ddq, external: as of `predict`. Friction with memory that grows with the load grows with this, too.

        Raises:
            FileError: the robot has no frame as `external` names.
            ShapeError: the arrays differ in shape or do not match the robot; or the state is of another model.
        """
        q, dq, ddq = motion_arrays(self.robot, q=q, dq=dq, ddq=ddq)
        columns, _ = model_columns(self.robot, q, dq, ddq)
        projected = self.base.project(columns)
        against = 0.0 if external is None else external_torques(self.robot, q, external) * self.robot.modelled
        if self.memory is not None and len(q):
            own = projected @ np.stack([self.memory.parameters, self.memory.load], axis=1)
            torque, load = np.moveaxis(own.reshape(*q.shape, 2), 2, 0) + against
            friction = self.memory.torque(q, dq, load, self.memory.at(q[0], dq[0]) if state is None else state)
            return Prediction(torque + friction.torque, friction.state)
        torque = (projected @ self.parameters).reshape(-1, self.robot.n_joints) + against
        if self.friction is not None:
            torque = torque + self.friction.torque(projected, self.parameters, dq)
        last = q[-1].copy() if len(q) else np.zeros(self.robot.n_joints)
        return Prediction(torque, FrictionState(last, np.zeros(0)))

    @property
    def coulomb_viscous(self) -> Model:
        """Friction without memory: Coulomb and viscous friction, which `parameters` are beside, and their errors."""
        if self.memory is None:
            return self
        moving, everywhere = self.memory.plain.moving, self.memory.plain.all
        return replace(self, memory=None, error=moving, error_all=everywhere)

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON; `load_model` reads it."""
        from jointbench.identification.model_file import write_model

        return write_model(self, Path(path))

    def _index(self, name: str) -> int:
        if name not in self.names:
            grouped = [
                group
                for group, row in zip(self.base.names, self.base.grouping, strict=True)
                if name in self.base.full_names and row[self.base.full_names.index(name)] != 0.0
            ]
            where = f"; it is part of {', '.join(map(repr, grouped))}" if grouped else ""
            raise FitError(f"no base parameter is led by {name!r}{where}; the leaders are {', '.join(self.names)}")
        return self.names.index(name)
