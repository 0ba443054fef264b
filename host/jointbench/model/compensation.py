"""Torques that act at joints beside links and drives, as those of springs: further terms of a robot's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import RobotError
from jointbench.model.joint import PARAMETER_NAMES

Columns = Callable[[Array, Array, Array], Array]
"""Position [rad or m], velocity and acceleration of some joints, shape (n, n_joints) each, to an array of shape
(n, n_joints, n_parameters)."""

OWN = "own"
_RESERVED = (*PARAMETER_NAMES, "rotor_inertia", "viscous", "coulomb", "offset")
"""Names of the parameters of links and drives."""


@dataclass(frozen=True)
class Compensation:
    """A torque E = columns(q, dq, ddq) @ parameters at some joints, which their motors have to bring up.

    It is another block of the model, tau = [links | drives | compensations] @ parameters, and is fitted, judged and
    predicted with the rest. `spring` and `sine_spring` make the usual ones; with a function of one's own any torque
    that is linear in its parameters can be one, such as that of a spring between two joints, or of a cable.

    Attributes:
        name: of what acts; its parameters are called after it: "elbow_spring.stiffness".
        joints: at which it acts, and of whose motion alone it is a function.
        parameters: their names.
        columns: of the motion of `joints`, in their order.
        kind: "spring" or "sine_spring", as robot files know them; "own" with a function of one's own, which no file
            can hold.

    Raises:
        RobotError: no joint, no parameter, or a name that is empty, there twice or one of a link's or drive's.

    >>> import numpy as np
    >>> def pull(q, dq, ddq):
    ...     both = q[:, 0] + q[:, 1]  # a tendon over two joints, and its stretch to the third power
    ...     return np.stack([np.stack([both, both**3], axis=1)] * 2, axis=1)
    >>> Compensation("tendon", ("j2", "j3"), ("stiffness", "hardening"), pull).names
    ('tendon.stiffness', 'tendon.hardening')
    """

    name: str
    joints: tuple[str, ...]
    parameters: tuple[str, ...]
    columns: Columns
    kind: str = OWN

    def __post_init__(self) -> None:
        """Refuse what could not be told apart by name."""
        about = f"compensation {self.name!r}"
        if not self.name.strip():
            raise RobotError(f"{about} has no name; write at least one letter")
        for kind, names in (("joint", self.joints), ("parameter", self.parameters)):
            if not names or not all(names) or len(set(names)) < len(names):
                raise RobotError(f"{about}: {kind}s = {names!r} must be one {kind} or more, each named once")
        reserved = [parameter for parameter in self.parameters if parameter in _RESERVED or "." in parameter]
        if reserved:
            raise RobotError(
                f"{about}: parameter {reserved[0]!r} would be taken for one of a link or drive; choose another word "
                f"than {', '.join(_RESERVED)}, without a dot"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its parameters among all of the model."""
        return tuple(f"{self.name}.{parameter}" for parameter in self.parameters)


def spring(name: str, joint: str) -> Compensation:
    """A spring whose torque is linear in the position of its joint: E = stiffness q + preload.

    That is k (q - q0) with stiffness k [N·m/rad] and preload -k q0 [N·m] (N/m and N where the joint slides). A drive's
    offset acts like a preload; where the joint has one, both are one base parameter.
    """
    return Compensation(name, (joint,), ("stiffness", "preload"), _linear, "spring")


def sine_spring(name: str, joint: str) -> Compensation:
    """A gravity-compensating spring: E = sine sin q + cosine cos q.

    That is k sin(q - q0) with sine k cos q0 and cosine -k sin q0 [N·m]: the torque of a spring without free length
    between two points that the joint moves apart. It may be what gravity does, too; then both are one base parameter.
    """
    return Compensation(name, (joint,), ("sine", "cosine"), _harmonic, "sine_spring")


KINDS: dict[str, Callable[[str, str], Compensation]] = {"spring": spring, "sine_spring": sine_spring}
"""Makers of the kinds that a file can name, each from a name and a joint."""


def _linear(q: Array, dq: Array, ddq: Array) -> Array:
    return np.stack([q, np.ones_like(q)], axis=2)


def _harmonic(q: Array, dq: Array, ddq: Array) -> Array:
    return np.stack([np.sin(q), np.cos(q)], axis=2)
