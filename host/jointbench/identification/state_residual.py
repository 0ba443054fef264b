"""A state-dependent residual: functions of position, velocity and acceleration for each joint, and their fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.regularised import RelativeSigma, parameter_prior, posterior
from jointbench.identification.judgement import Verdict, judge_parameters
from jointbench.identification.least_squares import Estimate
from jointbench.identification.residual import Mission, TorqueModel
from jointbench.identification.rows import Block, JointRows
from jointbench.identification.triangles import Triangles, compress
from jointbench.model import BaseParameters
from jointbench.model.chosen_columns import ChosenColumns
from jointbench.signals import Motion

TURN = 0.01
"""Share of its largest speed over which friction turns its sign: a third of what counts as rest."""

SLOW = 0.05
"""Share of a joint's largest speed at which the friction of slow motion has fallen to 1/e."""

_STILL = 1e-3
"""Share of the fastest joint's speed below which a joint's own largest one is noise."""

EXTRAS = ("slow_friction", "load_friction")


@dataclass(frozen=True, eq=False)
class StateFeatures:
    """Columns that the torque error of each joint is made of, linear in their parameters.

    First those of the base parameters: an error of a mass, of an inertia, a rotor or a friction that the model leaves
    out. Then two more a joint, with s = tanh(dq / (TURN v)), v its largest speed: friction that is there in slow motion
    only, s exp(-(dq / (SLOW v))²), and friction that grows with the load, s |model's torque|.

    Attributes:
        base: of the robot, links and drives.
        model: whose error it is.
        speeds: each joint's largest [rad/s or m/s], shape (n_joints,).
    """

    base: BaseParameters
    model: TorqueModel
    speeds: Array

    @classmethod
    def of(cls, mission: Mission) -> StateFeatures:
        """Those that suit a mission's speeds."""
        speeds = np.abs(mission.observations.motion.dq[mission.complete]).max(axis=0)
        least = _STILL * float(speeds.max()) or 1.0
        return cls(mission.observations.filter.base, mission.model, np.maximum(speeds, least))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters: base parameters by their leading ones, then such as "j2.load_friction"."""
        joints = self.base.robot.joint_names
        return (*self.base.leading_names, *(f"{joint}.{extra}" for joint in joints for extra in EXTRAS))

    def __call__(self, motion: Motion) -> tuple[JointRows, ...]:
        """Each joint's columns along a motion, with the parameters they are of."""
        values = self._chosen.values((motion.q, motion.dq, motion.ddq), self._sign)
        sign = np.tanh(motion.dq / (TURN * self.speeds))
        slow = sign * np.exp(-((motion.dq / (SLOW * self.speeds)) ** 2))
        load = sign * np.abs(self.model(motion.q, motion.dq, motion.ddq))
        ends, rows = self._chosen.slots.of_row, list[JointRows]()
        for joint, (start, stop) in enumerate(pairwise(ends)):
            more = self.base.rank + len(EXTRAS) * joint + np.arange(len(EXTRAS))
            parameters = np.concatenate([self._chosen.slots.parameter[start:stop], more])
            rows.append(JointRows(parameters, np.vstack([values[start:stop], slow[:, joint], load[:, joint]])))
        return tuple(rows)

    def _sign(self, speed: Array) -> Array:
        """Sign of the speeds at which drives rub, smooth through standstill."""
        return np.tanh(speed / self._turns)

    @cached_property
    def _turns(self) -> Array:
        return TURN * (self.speeds @ np.abs(self._chosen.drives.speeds))

    @cached_property
    def _chosen(self) -> ChosenColumns:
        return ChosenColumns.of(self.base.robot, self.base.columns, np.ones(self.base.robot.n_joints))


_PLAUSIBLE = RelativeSigma(mass=1.0, first_moment=1.0, inertia=1.0, drive=1.0)
"""What the model says may be wrong by as much as itself."""


@dataclass(frozen=True, eq=False)
class StateResidual:
    """Σ_i parameter_i feature_i(q, dq, ddq), `StateFeatures`, fitted to a model's torque error along one mission.

    The posterior of a prior that says: masses, inertias and what drives add are wrong by about their own size. So what
    the mission tells is taken from it, and what it does not tell stays near zero.

    Attributes:
        mission: name of the mission it was fitted to.
        features: its terms.
        estimate: of their parameters, with the covariance.
        reach: F of each joint with |Fᵀ x|² the leverage of a state with the features x, shape (n_joints, p, n).
        largest_leverage: of the rows that were fitted, of each joint; nan of those without, shape (n_joints,).

    Source: Gelman et al., Bayesian Data Analysis, 3rd ed., 2013, ch. 14.8, for the posterior; Montgomery, Peck &
    Vining, Introduction to Linear Regression Analysis, 5th ed., 2012, sec. 3.8, for states beyond those fitted.
    """

    mission: str
    features: StateFeatures
    estimate: Estimate
    reach: Array
    largest_leverage: Array

    @classmethod
    def fit(cls, mission: Mission, prior: RelativeSigma = _PLAUSIBLE) -> StateResidual:
        """Fit it to the rows of one mission in which the joints move.

        Args:
            mission: to learn from.
            prior: how far what the model says may be wrong, relative to the size of each parameter.

        Raises:
            FitError: no joint moves.
        """
        features = StateFeatures.of(mission)
        rows = _ErrorRows(mission, features)
        triangles = compress([rows])
        if not triangles.counts.any():
            raise FitError(f"mission {mission.name!r}: no joint moves faster than its threshold; record a livelier one")
        fitted = posterior([rows], triangles, _known(features, prior, triangles))
        reach = fitted.weights[:, None, None] * fitted.solution.factor
        largest = np.full(mission.robot.n_joints, np.nan)
        for joint, columns in enumerate(rows.block.joints):
            used = rows.block.used[:, joint]
            if used.any():
                largest[joint] = _leverages(reach[joint], columns)[used].max()
        return cls(mission.name, features, fitted.estimate, reach, largest)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.features.names

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter: whether it differs from what the model says of it."""
        return judge_parameters(self.names, self.estimate.parameters, np.sqrt(np.diag(self.estimate.covariance)))

    def torque(self, time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque in these states; the time does not matter. Arguments and result as of `Residual`."""
        return self._of(self.features(Motion(q, dq, ddq)))

    def along(self, mission: Mission) -> Array:
        """Torque at a mission's rows, filtered as its measured torque was."""
        return self._of(_error_columns(mission, self.features))

    def sigma(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Standard deviation of measured torque around model and residual [N·m or N], shape (n, n_joints).

        σ² = xᵀ C x + s_j², with C the covariance of the parameters and s_j what the joint's torque differed by along
        the mission; infinite of joints that were not fitted.
        """
        covariance = np.where(np.isfinite(self.estimate.covariance), self.estimate.covariance, 0.0)
        variances = [
            np.sum(columns * (covariance[np.ix_(parameters, parameters)] @ columns), axis=0)
            for parameters, columns in self.features(Motion(q, dq, ddq))
        ]
        noise = np.where(np.isfinite(self.estimate.joint_sigma), self.estimate.joint_sigma, np.inf)
        return np.sqrt(np.stack(variances, axis=1) + noise**2)

    def distance(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the distance of states from those that were fitted, shape (n, n_joints): up to 1 inside, more outside.

        Root of a state's leverage over the largest one of the rows that were fitted: 1 is the ellipsoid of features
        that just holds all of these. Infinite of joints that were not fitted.
        """
        return self._distance(self.features(Motion(q, dq, ddq)))

    def distance_along(self, mission: Mission) -> Array:
        """Return the distance along a mission's rows."""
        return self._distance(_error_columns(mission, self.features))

    def _of(self, columns: tuple[JointRows, ...]) -> Array:
        return np.stack([self.estimate.parameters[of] @ values for of, values in columns], axis=1)

    def _distance(self, columns: tuple[JointRows, ...]) -> Array:
        leverages = [_leverages(self.reach[joint], rows) for joint, rows in enumerate(columns)]
        largest = np.where(np.isfinite(self.largest_leverage), self.largest_leverage, 0.0)
        squares = np.stack(leverages, axis=1)
        ratio = np.divide(squares, largest, out=np.full_like(squares, np.inf), where=largest > 0.0)
        return np.sqrt(ratio)


@dataclass(frozen=True, eq=False)
class _ErrorRows:
    """A mission's torque error as rows of a least-squares problem over the features: one block."""

    mission: Mission
    features: StateFeatures

    @property
    def n_joints(self) -> int:
        return self.mission.robot.n_joints

    @property
    def n_parameters(self) -> int:
        return len(self.features.names)

    def blocks(self) -> Iterator[Block]:
        yield self.block

    @cached_property
    def block(self) -> Block:
        mission = self.mission
        return Block(
            start=0,
            joints=_error_columns(mission, self.features),
            n_parameters=self.n_parameters,
            torque=mission.error,
            used=mission.moving,
            complete=mission.complete,
        )


def _error_columns(mission: Mission, features: StateFeatures) -> tuple[JointRows, ...]:
    """The features at a mission's rows, filtered as its torque was."""
    parameters: list[JointRows] = []

    def columns(motion: Motion) -> dict[int, Array]:
        parameters[:] = features(motion)
        return {joint: values for joint, (_, values) in enumerate(parameters)}

    filtered = mission.columns(columns)
    return tuple(JointRows(of, filtered[joint]) for joint, (of, _) in enumerate(parameters))


def _known(features: StateFeatures, prior: RelativeSigma, triangles: Triangles) -> Array:
    """Rows that hold each parameter to zero within its σ; of a further term what alone would make up the error."""
    base, n = features.base, len(features.names)
    of_base = parameter_prior(base, prior, triangles).rows(base)[:, :-1]
    columns = np.linalg.norm(triangles.matrices[:, :, :-1], axis=(0, 1))[base.rank :]
    errors = np.repeat(np.linalg.norm(triangles.matrices[:, :, -1], axis=1), len(EXTRAS))
    acting = (columns > 0.0) & (errors > 0.0)
    known = np.zeros((len(of_base) + int(acting.sum()), n + 1))
    known[: len(of_base), : base.rank] = of_base
    places = base.rank + np.flatnonzero(acting)
    known[len(of_base) + np.arange(len(places)), places] = columns[acting] / errors[acting] / prior.drive
    return known


def _leverages(reach: Array, rows: JointRows) -> Array:
    """|Fᵀ x|² of each row, shape (n,)."""
    return np.sum((reach[rows.parameters].T @ rows.columns) ** 2, axis=0)
