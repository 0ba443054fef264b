"""Which joints of a robot have a friction law of their own, and what gives way to it among the base parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law, Parameter
from jointbench.identification.friction.terms import SPEED_TERMS, friction_law

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
            if not {f"{name}{each}" for each in _FRICTION} <= set(self.base.leading_names):
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
        """Of all laws together."""
        return len(self.parameters)

    @cached_property
    def joints(self) -> dict[str, int]:
        """Place of each joint with a law."""
        return {name: self.base.robot.joint_index(name) for name in self.laws}

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where each joint's parameters are."""
        ends = [0, *accumulate(len(law.parameters) for law in self.laws.values())]
        return {name: slice(*part) for name, *part in zip(self.laws, ends[:-1], ends[1:], strict=True)}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All of them; of each joint first the coefficients, then the shapes."""
        return tuple(parameter for law in self.laws.values() for parameter in law.parameters)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Such as "j2.stribeck_speed"."""
        return tuple(f"{joint}.{name}" for joint, law in self.laws.items() for name in law.names)

    @cached_property
    def is_shape(self) -> NDArray[np.bool_]:
        """Which parameters the torque is not linear in, shape (n_parameters,)."""
        counts = [(len(law.coefficients), len(law.shapes)) for law in self.laws.values()]
        return np.concatenate([np.repeat([False, True], each) for each in counts]).astype(np.bool_)

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

    def full(self, kept: Array) -> Array:
        """All base parameters, shape (rank,), of those that are kept: the others are zero."""
        values = np.zeros(self.base.rank)
        values[self.kept] = kept
        return values

    def needs_load(self, joint: str) -> bool:
        """Whether a joint's law depends on what it carries."""
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
    """What a joint's law in a model begins with."""
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
    """What a law's torque is asked of."""
    return FrictionData(velocity=velocity, torque=np.zeros_like(velocity), load=load)
