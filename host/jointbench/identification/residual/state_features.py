"""What a state-dependent residual is made of: functions of position, velocity and acceleration for each joint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.dynamics.chosen_columns import ChosenColumns
from jointbench.identification.residual.mission import Mission, TorqueModel
from jointbench.identification.rows import JointRows
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
        """Of the parameters: base parameters by the one that leads each group, then such as "j2.load_friction"."""
        joints = self.base.robot.joint_names
        return (*self.base.leading_names, *(f"{joint}.{extra}" for joint in joints for extra in EXTRAS))

    def __call__(self, motion: Motion) -> tuple[JointRows, ...]:
        """Each joint's columns along a motion, with the parameters they are of."""
        values = self._chosen.values((motion.q, motion.dq, motion.ddq), self._sign)
        sign = np.tanh(motion.dq / (TURN * self.speeds))
        slow = sign * np.exp(-((motion.dq / (SLOW * self.speeds)) ** 2))
        load = sign * np.abs(self.model(motion.q, motion.dq, motion.ddq))
        ends, found = self._chosen.slots.of_row, list[JointRows]()
        for joint, (start, stop) in enumerate(pairwise(ends)):
            more = self.base.rank + len(EXTRAS) * joint + np.arange(len(EXTRAS))
            parameters = np.concatenate([self._chosen.slots.parameter[start:stop], more])
            found.append(JointRows(parameters, np.vstack([values[start:stop], slow[:, joint], load[:, joint]])))
        return tuple(found)

    def _sign(self, speed: Array) -> Array:
        """Sign of the speeds at which drives rub, smooth through standstill."""
        return np.tanh(speed / self._turns)

    @cached_property
    def _turns(self) -> Array:
        return TURN * (self.speeds @ np.abs(self._chosen.drives.speeds))

    @cached_property
    def _chosen(self) -> ChosenColumns:
        return ChosenColumns.of(self.base.robot, self.base.columns, np.ones(self.base.robot.n_joints))
