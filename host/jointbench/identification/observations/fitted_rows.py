"""Which rows of a recording are fitted: those of joints whose torque says something, of the side that is modelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointbench.dynamics import BaseParameters
from jointbench.identification.judgement.torque_error import InformationSums, TorqueInformation, noise_in_band
from jointbench.identification.observations.observations import Observations
from jointbench.identification.rows import Block, ChangedRows, Rows
from jointbench.identification.rows.motor_side import AtSensor, WithoutMotorSide


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run's observations, and what a look at its torques tells.

    Attributes:
        observations: of the run.
        information: whether each joint's torque varies more than its noise.
        moving: rows of each joint away from rest, shape (n_joints,).
    """

    observations: Observations
    information: TorqueInformation
    moving: NDArray[np.intp]

    @classmethod
    def of(cls, observations: Observations) -> Recorded:
        """Look at the torques, in one pass."""
        sums, moving = InformationSums(observations.n_joints), np.zeros(observations.n_joints, dtype=np.intp)
        for block in observations.blocks():
            sums.add(block.start, block.torque, block.used)
            moving += block.used.sum(axis=0)
        noise = noise_in_band(observations.noise, observations.filter.low_pass)
        return cls(observations, sums.result(noise), moving)

    @property
    def torque(self) -> str:
        """On which side torque was measured: "motor" or "joint"."""
        return self.observations.settings.torque

    @property
    def rows(self) -> tuple[int, ...]:
        """How many rows of each joint are fitted."""
        return tuple(int(n) for n in np.where(self.information.informative, self.moving, 0))

    def measured(self, base: BaseParameters) -> Rows:
        """All rows, as the sensor feels them: a torque sensor at the joint does not feel the rotor before it."""
        return AtSensor(self.observations, base) if self.torque == "joint" else self.observations


@dataclass(frozen=True, eq=False)
class OfJoints(ChangedRows):
    """Rows of some joints only.

    Attributes:
        rows: of all joints.
        joints: whose are fitted, shape (n_joints,).
    """

    joints: NDArray[np.bool_]

    def blocks(self) -> Iterator[Block]:
        """The rows, of the other joints none used."""
        for block in self.rows.blocks():
            yield replace(block, used=block.used & self.joints)


def modelled_torque(recorded: Sequence[Recorded]) -> str:
    """On which side torque is modelled: at the joints' sensors where any recording has them."""
    return "joint" if any(each.torque == "joint" for each in recorded) else "motor"


def fitted_rows(recorded: Sequence[Recorded], base: BaseParameters) -> tuple[Rows, ...]:
    """The rows to fit, recording by recording.

    Joints whose torque does not vary more than its noise have none. Where some recordings have torque sensors at the
    joints, what motors add before these is taken out of the others, which then tell of the links alone.

    Args:
        recorded: the recordings.
        base: what the columns stand for at the motors, rotors included.
    """
    at_joint = modelled_torque(recorded) == "joint"
    parts: list[Rows] = []
    for each in recorded:
        told = each.information.informative
        rows = each.measured(base) if told.all() else OfJoints(each.measured(base), told)
        parts.append(WithoutMotorSide(rows, base) if at_joint and each.torque == "motor" else rows)
    return tuple(parts)


def best_information(recorded: Sequence[Recorded]) -> TorqueInformation:
    """Of each joint what the recording tells in which its torque varies most beside its noise."""
    variation = np.array([each.information.variation for each in recorded])
    noise = np.array([each.information.noise for each in recorded])
    best = np.argmax(np.nan_to_num(variation) - np.nan_to_num(noise), axis=0)
    joints = np.arange(len(best))
    return TorqueInformation(variation[best, joints], noise[best, joints])
