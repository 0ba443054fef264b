"""Friction laws of a model's joints: what gives way to them among the base parameters, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law, Parameter
from jointbench.identification.friction.terms import SPEED_TERMS, friction_law
from jointbench.identification.observations import Observations
from jointbench.identification.rows import BaseColumns, Block, JointRows, PredictedTorqueRows, Rows
from jointbench.model import BaseParameters
from jointbench.signals import Motion

PLAIN = "coulomb_viscous"
"""What a joint has without a law: two of the base parameters."""

CHOOSE = "choose"

ALLOWED = ("load",)
"""Of the extras; a model has offsets and rotor inertias of its own, and is told no temperature."""

_FRICTION = (".viscous", ".coulomb")


@dataclass(frozen=True, eq=False)
class JointLaws:
    """Friction laws of some joints; their parameters come one joint after the other.

    torque_j = links, rotors and offset + law_j(velocity_j, load_j), where load_j is all that comes before it.

    Attributes:
        base: of the robot, links and drives.
        laws: by joint name, in the order of the joints.
    """

    base: BaseParameters
    laws: Mapping[str, Law]

    def __post_init__(self) -> None:
        """Refuse joints that have no friction of their own, and laws that a model cannot hold.

        Raises:
            FitError: names the joint.
        """
        for name, law in self.laws.items():
            if not {f"{name}{end}" for end in _FRICTION} <= set(self.base.leading_names):
                joints = ", ".join(joints_with_friction(self.base))
                raise FitError(
                    f"joint {name!r} has no friction of its own in the model of {self.base.robot.name!r}, so it can "
                    f"have no law {law.name!r}; the joints that have: {joints}"
                )
            for extra in law.name.split("+")[1:]:
                if extra not in ALLOWED:
                    raise FitError(
                        f"friction law {law.name!r} of joint {name!r}: a model has offsets and rotor inertias of its "
                        f"own and knows no temperature; give one of {', '.join(law_names())}, and +load after it"
                    )

    @property
    def n_parameters(self) -> int:
        """Number of parameters of all laws together."""
        return len(self.parameters)

    @cached_property
    def joints(self) -> dict[str, int]:
        """Place of each joint with a law."""
        return {name: self.base.robot.joint_index(name) for name in self.laws}

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Places of each joint's parameters."""
        ends = [0, *accumulate(len(law.parameters) for law in self.laws.values())]
        return {name: slice(*part) for name, *part in zip(self.laws, ends[:-1], ends[1:], strict=True)}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All of them; of each joint first the coefficients, then the shapes."""
        return tuple(parameter for law in self.laws.values() for parameter in law.parameters)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, such as "j2.stribeck_speed"."""
        return tuple(f"{joint}.{name}" for joint, law in self.laws.items() for name in law.names)

    @cached_property
    def is_shape(self) -> NDArray[np.bool_]:
        """True for parameters that the torque is not linear in, shape (n_parameters,)."""
        counts = [(len(law.coefficients), len(law.shapes)) for law in self.laws.values()]
        return np.concatenate([np.repeat([False, True], count) for count in counts]).astype(np.bool_)

    @cached_property
    def replaced(self) -> dict[str, str]:
        """Joint of each base parameter that its law stands for; one of both directions has the offset, too."""
        ends = {
            name: (*_FRICTION, ".offset") if "asymmetric" in law.name else _FRICTION for name, law in self.laws.items()
        }
        return {f"{name}{end}": name for name, each in ends.items() for end in each}

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Base parameters that no law stands for, shape (rank,)."""
        return np.array([name not in self.replaced for name in self.base.leading_names], dtype=np.bool_)

    @cached_property
    def loading(self) -> NDArray[np.bool_]:
        """Base parameters whose torque is load to friction: all but friction, shape (rank,)."""
        return self.kept & np.array([not name.endswith(_FRICTION) for name in self.base.leading_names], dtype=np.bool_)

    def extended_base(self, held: NDArray[np.bool_]) -> BaseParameters:
        """Return the base parameters that no law stands for, and behind them the laws' parameters that are not held.

        They are what the columns of `LawRows` stand for: an estimator then keeps links possible and laws' parameters
        from being negative in the same problem.

        Args:
            held: shape (n_parameters,).
        """
        return self.base.extended(
            self.kept, [name for name, is_held in zip(self.names, held, strict=True) if not is_held]
        )

    def full(self, kept: Array) -> Array:
        """All base parameters, shape (rank,), of those that are kept: the others are zero."""
        values = np.zeros(self.base.rank)
        values[self.kept] = kept
        return values

    def needs_load(self, joint: str) -> bool:
        """Return whether a joint's law depends on its load."""
        return "load" in self.laws[joint].name.split("+")

    def load_slope(self, joint: str, data: FrictionData, parameters: Array) -> Array:
        """Derivative of a joint's friction by its load, shape (n,).

        Args:
            joint: with a law.
            data: the joint's velocity and load.
            parameters: of all laws, shape (n_parameters,).
        """
        if not self.needs_load(joint) or data.load is None:
            return np.zeros_like(data.velocity)
        share = parameters[self.parts[joint]][self.laws[joint].names.index("load_share")]
        return share * np.sign(data.load * data.velocity)

    def torque(self, velocity: Array, load: Array, parameters: Array) -> Array:
        """Friction of all joints, zero of those without a law [N·m or N], shape (n, n_joints).

        Args:
            velocity: [rad/s or m/s], shape (n, n_joints).
            load: torque before friction [N·m or N], shape (n, n_joints).
            parameters: of all laws, shape (n_parameters,).
        """
        torque = np.zeros_like(velocity)
        for name, j in self.joints.items():
            torque[:, j] = self.laws[name].torque(
                friction_data(velocity[:, j], load[:, j]), parameters[self.parts[name]]
            )
        return torque


def joints_with_friction(base: BaseParameters) -> tuple[str, ...]:
    """Joints whose Coulomb and viscous friction are base parameters."""
    leading = set(base.leading_names)
    return tuple(name for name in base.robot.joint_names if {f"{name}{end}" for end in _FRICTION} <= leading)


def law_names() -> tuple[str, ...]:
    """Return the names that the law of a joint begins with in a model."""
    return tuple(SPEED_TERMS)


def asked_laws(friction: str | Mapping[str, str], base: BaseParameters) -> dict[str, str]:
    """The law asked for of each joint that is to have one, or "choose", in the order of the joints.

    Args:
        friction: for all joints with friction, or by joint name; "coulomb_viscous" asks for none.
        base: of the robot, links and drives.

    Raises:
        FitError: no joint or law has such a name, or a model cannot hold it.
    """
    robot = base.robot
    by_joint = dict.fromkeys(joints_with_friction(base), friction) if isinstance(friction, str) else dict(friction)
    for name, law in by_joint.items():
        if name not in robot.joint_names:
            raise FitError(
                f"a friction law is given for {name!r}, but the joints of {robot.name!r} are "
                f"{', '.join(robot.joint_names)}"
            )
        if law != CHOOSE:
            JointLaws(base, {name: friction_law(law)})
    return {name: by_joint[name] for name in robot.joint_names if by_joint.get(name, PLAIN) != PLAIN}


def friction_data(velocity: Array, load: Array) -> FrictionData:
    """Return the data that a law's torque is asked of."""
    return FrictionData(velocity=velocity, torque=np.zeros_like(velocity), load=load)


_KEPT = 8e6
"""Bytes of laws' columns up to which they are kept."""


class LawPoint(NamedTuple):
    """Values of the base parameters that no law stands for, (n_kept,), and of all laws' parameters, (n_parameters,)."""

    base: Array
    laws: Array

    @property
    def all(self) -> Array:
        """Both, one behind the other."""
        return np.concatenate(self)


@dataclass(frozen=True, eq=False)
class LawRows:
    """Rows of the model torque = f(base parameters, laws' parameters) made linear around a point.

    torque - f(at) + J at ≈ J (parameters), where J is f's derivative by the base parameters that no law stands for,
    then by the laws' that are not held. The laws' columns are computed at every sample of the motion and filtered as
    the regressor's are.

    Attributes:
        rows: with the regressor of the base parameters.
        observations: that they are of.
        laws: of some joints.
        at: the point.
        held: parameters of laws that stay as they are, shape (n_parameters,).
    """

    rows: Rows
    observations: Observations
    laws: JointLaws
    at: LawPoint
    held: NDArray[np.bool_]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.rows.n_joints

    @property
    def n_parameters(self) -> int:
        """Base parameters that are kept and laws' that are free."""
        return len(self.at.base) + int(np.count_nonzero(~self.held))

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        places = {place: name for name, place in self.laws.joints.items()}
        kept, number = self.laws.kept, np.cumsum(self.laws.kept) - 1
        numbers = len(self.at.base) + np.cumsum(~self.held) - 1
        for block, columns_of_joint in self._with_columns():
            torque, joints = block.torque.copy(), list[JointRows]()
            for j, (which, columns) in enumerate(block.joints):
                own = kept[which]
                which, columns = which[own], columns[own]
                if j in places:
                    free = self._free[places[j]]
                    shift, by_laws, by_load = np.split(columns_of_joint[j], [1, 1 + len(free)])
                    torque[:, j] += shift[0]
                    if len(by_load):
                        columns = columns + by_load[np.searchsorted(self._regressor.parameters[j], which)]
                    joints.append(
                        JointRows(np.concatenate([number[which], numbers[free]]), np.concatenate([columns, by_laws]))
                    )
                else:
                    joints.append(JointRows(number[which], columns))
            yield replace(block, joints=tuple(joints), n_parameters=self.n_parameters, torque=torque)

    def _with_columns(self) -> Iterator[tuple[Block, dict[int, Array]]]:
        """Each block with its laws' columns; those of a short log are kept, as an estimator asks for them often."""
        width = sum(2 + len(law.parameters) for law in self.laws.laws.values())
        if 8 * width * sum(stretch.n_rows for stretch in self.observations.stretches) > _KEPT:
            return _with_columns(self.rows, self.observations, self._columns)
        return zip(self.rows.blocks(), self._kept, strict=True)

    @cached_property
    def _kept(self) -> list[dict[int, Array]]:
        return [found for _, found in _with_columns(self.rows, self.observations, self._columns)]

    @cached_property
    def _free(self) -> dict[str, NDArray[np.intp]]:
        """Laws' parameters that have a column, of each joint."""
        return {name: part.start + np.flatnonzero(~self.held[part]) for name, part in self.laws.parts.items()}

    def _columns(self, motion: Motion) -> dict[int, Array]:
        """Shift of the torque, columns of the law and slope by load of each joint that has a law."""
        loads = _loads(self.laws, self._regressor, motion, self.at.base)
        columns: dict[int, Array] = {}
        for name, j in self.laws.joints.items():
            law, part = self.laws.laws[name], self.laws.parts[name]
            load, regressor = loads[name]
            data, values = friction_data(motion.dq[:, j], load), self.at.laws[part]
            jacobian = law.jacobian(data, values)[:, self._free[name] - part.start]
            shift = jacobian @ self.at.laws[self._free[name]] - law.torque(data, values)
            by_load = np.zeros((0, len(load)))
            if regressor is not None:
                slope = self.laws.load_slope(name, data, self.at.laws)
                by_load = slope * np.where(self.laws.loading[regressor.parameters, None], regressor.columns, 0.0)
                shift = shift + slope * load
            columns[j] = np.vstack([shift, jacobian.T, by_load])
        return columns

    @cached_property
    def _regressor(self) -> BaseColumns:
        return BaseColumns(self.laws.base)


@dataclass(frozen=True, eq=False)
class PredictedRows(PredictedTorqueRows):
    """Rows whose one column is the torque that a model with friction laws gives; its parameter is 1.

    Attributes:
        rows, observations, laws, at: as of `LawRows`.
    """

    observations: Observations
    laws: JointLaws
    at: LawPoint

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        for block, found in _with_columns(self.rows, self.observations, self._columns):
            torque = block.predict(self.laws.full(self.at.base))
            for j, friction in found.items():
                torque[:, j] += friction[0]
            joints = tuple(JointRows(np.zeros(1, dtype=np.intp), column[None]) for column in torque.T)
            yield replace(block, joints=joints, n_parameters=1)

    def _columns(self, motion: Motion) -> dict[int, Array]:
        loads = _loads(self.laws, self._regressor, motion, self.at.base)
        load = np.zeros_like(motion.dq)
        for name, j in self.laws.joints.items():
            load[:, j] = loads[name][0]
        friction = self.laws.torque(motion.dq, load, self.at.laws)
        return {j: friction[:, j][None] for j in self.laws.joints.values()}

    @cached_property
    def _regressor(self) -> BaseColumns:
        return BaseColumns(self.laws.base)


def _with_columns(
    rows: Rows, observations: Observations, columns: Callable[[Motion], dict[int, Array]]
) -> Iterator[tuple[Block, dict[int, Array]]]:
    """Each block with filtered columns of its stretch."""
    stretches = {stretch.rows.start: stretch for stretch in observations.stretches if stretch.n_rows}
    for block in rows.blocks():
        yield block, observations.filter.of_motion(stretches[block.start], columns)


def _loads(
    laws: JointLaws, regressor: BaseColumns, motion: Motion, base: Array
) -> dict[str, tuple[Array, JointRows | None]]:
    """Load of each joint with a law and the columns it is made of; zero and None where the law does not ask for it."""
    nothing = np.zeros(len(motion.dq))
    if not any(map(laws.needs_load, laws.laws)):
        return {name: (nothing, None) for name in laws.laws}
    joints = regressor(motion.q, motion.dq, motion.ddq)
    loading = np.where(laws.loading, laws.full(base), 0.0)
    return {
        name: (loading[joints[j].parameters] @ joints[j].columns, joints[j])
        if laws.needs_load(name)
        else (nothing, None)
        for name, j in laws.joints.items()
    }
