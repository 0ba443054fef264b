"""Friction laws as part of a model: their parameters with error bars, and the word on each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.joint_laws import JointLaws, LawPoint, PredictedRows, friction_data
from jointbench.identification.friction.law import LawElement
from jointbench.identification.friction.terms import friction_law
from jointbench.identification.friction.variable_projection import solve_bounded
from jointbench.identification.judgement import Verdict, judge_parameter
from jointbench.identification.observations import Observations
from jointbench.identification.rows import Rows
from jointbench.model import BaseParameters

_SPEEDS = 200
"""At which a law is looked at as a whole."""


class PlainFriction(NamedTuple):
    """Coulomb and viscous friction, and how far a law is from it at most over the speeds it was fitted to [SI]."""

    coulomb: float
    viscous: float
    farthest: float


@dataclass(frozen=True, eq=False)
class ModelFriction:
    """Friction laws of some joints of a model, in place of their Coulomb and viscous friction.

    Attributes:
        laws: by joint, with the base parameters beside them.
        parameters: of all laws [SI], in the order of `names`, shape (n,).
        covariance: of them, an infinite variance where not told, shape (n, n).
        with_base: covariance of the base parameters and these, shape (rank, n).
        at_bound: which parameters are at a bound of theirs, shape (n,).
        speeds: slowest and fastest row of each joint that was fitted [rad/s or m/s], by joint name.
        reasons: why each joint has its law, by joint name.
    """

    laws: JointLaws
    parameters: Array
    covariance: Array
    with_base: Array
    at_bound: NDArray[np.bool_]
    speeds: Mapping[str, tuple[float, float]]
    reasons: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, such as "j2.stribeck_speed"."""
        return self.laws.names

    @property
    def units(self) -> tuple[str, ...]:
        """Units of all parameters."""
        robot = self.laws.base.robot
        slides = {name: robot.independent_joints[j].kind == "prismatic" for name, j in self.laws.joints.items()}
        return tuple(
            parameter.unit[slides[name]] for name, law in self.laws.laws.items() for parameter in law.parameters
        )

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, infinite where not told, shape (n,)."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def replaced(self) -> Mapping[str, str]:
        """Base parameters that a law stands for, and why they have no value, by name."""
        return {
            name: f"the friction law {self.laws.laws[joint].name} of {joint} stands for it"
            for name, joint in self.laws.replaced.items()
        }

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter; a shape is refused, too, where the coefficient that it shapes is."""
        verdicts: list[Verdict] = []
        for joint, part in self.laws.parts.items():
            law, speeds = self.laws.laws[joint], f"the rows fitted are {self._fitted(joint)}"
            own: dict[str, Verdict] = {}
            for name, k in zip(law.names, range(part.start, part.stop), strict=True):
                bent = own.get(law.bends.get(name, ""))
                if bent is not None and bent.is_refused:
                    own[name] = Verdict(
                        self.names[k], "refused", f"{bent.name}, which it shapes, is not told; {speeds}"
                    )
                else:
                    own[name] = self._judged(k, speeds)
            verdicts += own.values()
        return tuple(verdicts)

    def of_joint(self, joint: str) -> tuple[Verdict, ...]:
        """The word on each parameter of a joint's law."""
        return self.parameter_verdicts[self.laws.parts[joint]]

    def of_law(self, joint: str) -> dict[str, float]:
        """The parameters of a joint's law by name [SI]."""
        part = self.laws.parts[joint]
        return dict(zip(self.laws.laws[joint].names, self.parameters[part].tolist(), strict=True))

    @cached_property
    def law_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each joint's law: the worst of its parameters, but refused where it would drive the joint."""
        verdicts: list[Verdict] = []
        for name in self.laws.laws:
            law = self.laws.laws[name].name
            gains = self._least_power(name)
            refused = [verdict.name for verdict in self.of_joint(name) if verdict.is_refused]
            if gains is not None:
                reason = f"{law} would drive the joint at {gains:.3g} {self._speed_unit(name)}, which no friction does"
                verdicts.append(Verdict(name, "refused", reason))
            elif refused:
                reason = f"{law}, of which the motion does not tell {', '.join(refused)}"
                verdicts.append(Verdict(name, "poorly excited", reason))
            else:
                poor = any(verdict.word == "poorly excited" for verdict in self.of_joint(name))
                word = "poorly excited" if poor else "identified"
                verdicts.append(Verdict(name, word, f"{law}; {self.reasons[name]}"))
        return tuple(verdicts)

    def value(self, name: str) -> float:
        """Value of the parameter of this name [SI].

        Raises:
            FitError: no law has such a parameter.
        """
        if name not in self.names:
            raise FitError(f"no friction law has {name!r}; the laws have {', '.join(self.names)}")
        return float(self.parameters[self.names.index(name)])

    def torque(self, columns: Array, base: Array, dq: ArrayLike) -> Array:
        """Friction that the laws add to the torque of base parameters [N·m or N], shape (n, n_joints).

        Args:
            columns: base regressor, shape (n * n_joints, rank).
            base: values of its parameters, shape (rank,).
            dq: joint velocity [rad/s or m/s], shape (n, n_joints).
        """
        velocity = np.atleast_2d(np.asarray(dq, dtype=np.float64))
        load = (columns @ np.where(self.laws.loading, base, 0.0)).reshape(velocity.shape)
        return self.laws.torque(velocity, load, self.parameters)

    def predicted(self, rows: Rows, observations: Observations, base: Array) -> PredictedRows:
        """Rows whose one column is the torque of base parameters and laws together; its parameter is 1.

        Args:
            rows: with the regressor of the base parameters.
            observations: that they are of.
            base: values of these, shape (rank,).
        """
        return PredictedRows(rows, observations, self.laws, LawPoint(base[self.laws.kept], self.parameters))

    @cached_property
    def elements(self) -> tuple[tuple[int, LawElement], ...]:
        """Joint and element of all that the laws consist of."""
        return tuple(
            (j, element)
            for name, j in self.laws.joints.items()
            for element in self.laws.laws[name].elements(self.parameters[self.laws.parts[name]])
        )

    @cached_property
    def nearest_plain(self) -> Mapping[str, PlainFriction]:
        """Coulomb and viscous friction next to each law without load, by joint: for files that know no more."""
        laws: dict[str, PlainFriction] = {}
        for name in self.laws.laws:
            speed, torque = self._curve(name)
            columns = np.stack([np.sign(speed), speed], axis=1)
            values, _ = solve_bounded(columns, torque, np.array([[0.0, np.inf], [0.0, np.inf]]))
            coulomb, viscous = values.tolist()
            laws[name] = PlainFriction(coulomb, viscous, float(np.abs(torque - columns @ values).max()))
        return laws

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` reads; arrays stay arrays."""
        return {
            "laws": {name: law.name for name, law in self.laws.laws.items()},
            "reasons": dict(self.reasons),
            "speeds": {name: list(speeds) for name, speeds in self.speeds.items()},
            "names": list(self.names),
            "parameters": self.parameters,
            "sigma": self.sigma,
            "covariance": self.covariance,
            "with_base": self.with_base,
            "at_bound": self.at_bound,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any], base: BaseParameters) -> ModelFriction:
        """Read them, with what the base parameters stand for.

        Raises:
            FitError: this release has no such law.
        """
        covariance = np.array(values["covariance"], dtype=np.float64)
        return ModelFriction(
            laws=JointLaws(base, {name: friction_law(law) for name, law in values["laws"].items()}),
            parameters=np.array(values["parameters"], dtype=np.float64),
            covariance=np.where(np.isnan(covariance), np.inf, covariance),
            with_base=np.array(values["with_base"], dtype=np.float64),
            at_bound=np.array(values["at_bound"], dtype=np.bool_),
            speeds={name: (float(low), float(high)) for name, (low, high) in values["speeds"].items()},
            reasons=dict(values["reasons"]),
        )

    def _judged(self, k: int, speeds: str) -> Verdict:
        name, value, sigma = self.names[k], float(self.parameters[k]), float(self.sigma[k])
        if self.at_bound[k]:
            return Verdict(name, "refused", f"at its bound {value:.4g}: the least error lies beyond it; {speeds}")
        if not math.isfinite(sigma):
            return Verdict(name, "not observable", f"friction is the same for other values; {speeds}")
        verdict = judge_parameter(name, value, sigma)
        return verdict if verdict.word == "identified" else Verdict(name, verdict.word, f"{verdict.reason}; {speeds}")

    def _fitted(self, joint: str) -> str:
        slowest, fastest = self.speeds[joint]
        return f"of {slowest:.3g} to {fastest:.3g} {self._speed_unit(joint)}"

    def _speed_unit(self, joint: str) -> str:
        robot = self.laws.base.robot
        return "m/s" if robot.independent_joints[self.laws.joints[joint]].kind == "prismatic" else "rad/s"

    def _curve(self, joint: str) -> tuple[Array, Array]:
        """Speeds of both directions and a law's torque there, without load."""
        slowest, fastest = self.speeds[joint]
        one_way = np.linspace(slowest, fastest, _SPEEDS)
        speed = np.concatenate([-one_way[::-1], one_way])
        law, part = self.laws.laws[joint], self.laws.parts[joint]
        return speed, law.torque(friction_data(speed, np.zeros_like(speed)), self.parameters[part])

    def _least_power(self, joint: str) -> float | None:
        """Speed at which a law gives power rather than takes it, or None."""
        speed, torque = self._curve(joint)
        worst = int(np.argmin(speed * torque))
        return float(speed[worst]) if torque[worst] * speed[worst] < 0.0 else None
