"""A mission: a recorded motion, and by how much a model's torque misses the measured one along it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters, kane_dynamics
from jointbench.errors import FitError
from jointbench.identification.observations import Observations, observe
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.robot import Robot
from jointbench.signals import Motion

TorqueModel = Callable[[Array, Array, Array], Array]
"""Joint torque [N·m or N] of position, velocity and acceleration, shape (n, n_joints) each: `Model.predict` is one."""

MotionColumns = Callable[[Motion], Mapping[int, Array]]
"""By joint, columns of a motion of n samples, shape (m, n) each."""


@dataclass(frozen=True, eq=False)
class Mission:
    """A recorded motion beside a model's torque, on an even grid of times.

    error = measured torque - model's torque, both through the same filters.

    Attributes:
        name: of its run.
        motion: what was played, the same for each playing of it; the hash of the recording where that is not known.
        model: whose torque is compared.
        observations: of the run.
    """

    name: str
    motion: str
    model: TorqueModel
    observations: Observations

    @property
    def robot(self) -> Robot:
        """What moved."""
        return self.observations.filter.base.robot

    @property
    def settings(self) -> FitSettings:
        """As decided, for other missions to be looked at alike."""
        return dataclasses.replace(self.observations.settings, interval=None)

    @cached_property
    def time(self) -> Array:
        """Since the mission began [s], shape (n,)."""
        return self.observations.time - self.observations.time[0]

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Rows away from gaps and ends, shape (n,)."""
        return self.observations.complete

    @cached_property
    def compared(self) -> NDArray[np.bool_]:
        """Rows of each modelled joint that the measured torque is known of, shape (n, n_joints)."""
        return self.complete[:, None] & self.robot.modelled

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Those of them away from rest, shape (n, n_joints)."""
        return self.observations.moving

    @cached_property
    def error(self) -> Array:
        """Torque that the model lacks [N·m or N], shape (n, n_joints); zero where not compared."""
        lacking = self.observations.torque - self.filtered(self.model)
        return np.where(self.compared, lacking, 0.0)

    def filtered(self, torque: TorqueModel) -> Array:
        """Torque of the mission's motion through the filters of the measured one, shape (n, n_joints)."""
        columns = self.columns(lambda motion: dict(enumerate(torque(motion.q, motion.dq, motion.ddq).T[:, None])))
        return np.stack([columns[joint][0] for joint in range(self.robot.n_joints)], axis=1)

    def columns(self, of_motion: MotionColumns) -> dict[int, Array]:
        """Columns of the mission's motion, computed at every sample and filtered as its torque was.

        Returns:
            By joint, shape (m, n) each, zero where not complete.
        """
        n, whole = self.observations.n_rows, dict[int, Array]()
        for stretch in self.observations.stretches:
            if stretch.n_rows:
                for joint, values in self.observations.filter.of_motion(stretch, of_motion).items():
                    whole.setdefault(joint, np.zeros((len(values), n)))[:, stretch.rows] = values
        return whole


def mission_of(
    run: Run, robot: Robot | None = None, model: TorqueModel | None = None, settings: FitSettings | None = None
) -> Mission:
    """Compare a run with a model.

    Args:
        run: the recording.
        robot: that was recorded; None: the run's own.
        model: None: Kane's equations with the inertias of the robot's file, without drives.
        settings: as of a fit; for a mission to be compared with another, that one's.

    Raises:
        FitError: the run cannot give what the settings ask for, or the robot's file gives no inertias for a model.
        SignalError: the cut-off does not suit the sample rate.
        UnclearRank: the robot's geometry is nearly degenerate.
    """
    robot = robot or run.robot
    played = None if run.excitation is None else json.dumps(run.excitation.to_dict(), sort_keys=True)
    return Mission(
        name=run.path.name,
        motion=played or run.sha256,
        model=model or printed_model(robot),
        observations=observe(run, robot, base_parameters(robot), settings or FitSettings()),
    )


def printed_model(robot: Robot) -> TorqueModel:
    """Kane's equations with the inertias of the robot's file: what is said of the links, and nothing of the drives.

    Raises:
        FitError: the file does not give the inertia of every link.
    """
    parameters = robot.standard_parameters
    if parameters is None:
        missing = ", ".join(j.link.name for j in robot.joints if j.link.standard_parameters is None)
        raise FitError(
            f"the file of robot {robot.name!r} gives no inertia of {missing}; add it, or give a model of your own"
        )
    return lambda q, dq, ddq: kane_dynamics(robot, q, dq, ddq, parameters)
