"""A run with the motion that a robot with given parameters would have made instead of the measured one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.closed_loop import Plant
from jointbench.identification.estimators.moved_run import with_positions
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.estimators.reference_motion import (
    Reference,
    is_planned,
    measured_references,
    planned_reference,
    planned_run,
)
from jointbench.identification.estimators.servo import Servo, board_servo
from jointbench.identification.least_squares import Estimate
from jointbench.identification.physical import BaseEstimate, physical_parameters
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.signals import interpolate_samples

BENCH_BANDWIDTH_HZ = 10.0
"""Of a servo that follows a plan and is not known: what the bench's own rule gives its boards."""

_TIMES_CUTOFF = 3.0
"""Bandwidth of a servo that follows a measured motion, in cut-offs of the fit: motion is a tenth of the cut-off at
most, and 3 times 10 squared is a lag of 0.1 % there."""

_ANGLE_A_STEP = 0.1
"""Largest bandwidth times step [rad]: a servo that looks more seldom than this is not the one it stands for."""

_WARM_UP_S = 0.5
"""At the first position before a plan begins, so that the robot hangs in its servo as it does on the bench."""

_MOST_STEPS = 2_000_000
"""Some twenty seconds a pass for six joints."""

_POSES = 64

MADE_POSSIBLE = ", moving the nearest parameters that bodies can have"
"""Said of simulations with other parameters than those that were found."""


@dataclass(frozen=True)
class Follower:
    """How a run's motion is simulated: which reference, which servo.

    Attributes:
        run: the recording.
        settings: of its observation, decided.
        planned: whether the reference is the plan; the measured motion otherwise.
        servo: of its boards; None: one of second order with `bandwidth_Hz` and gravity taken off it.
        bandwidth_Hz: of the latter.
    """

    run: Run
    settings: FitSettings
    planned: bool
    servo: Servo | None
    bandwidth_Hz: float

    @classmethod
    def of(cls, run: Run, settings: FitSettings, bandwidth_Hz: float | None, *, plan_needs_servo: bool) -> Follower:
        """Choose reference and servo from what is known of a run.

        Args:
            run, settings: the recording and how it is observed.
            bandwidth_Hz: of the servo, where the user knows better.
            plan_needs_servo: whether a plan is only followed by a servo that is known.
        """
        at_motors = settings.torque == "motor"  # what a servo gives is not what a sensor behind the gear feels
        servo = board_servo(run) if is_planned(run) and at_motors and bandwidth_Hz is None else None
        planned = is_planned(run) and (servo is not None or bandwidth_Hz is not None or not plan_needs_servo)
        assert settings.cutoff_Hz is not None, "settings of an observation are decided"
        guess = BENCH_BANDWIDTH_HZ if planned else _TIMES_CUTOFF * settings.cutoff_Hz
        return cls(run, settings, planned, servo, bandwidth_Hz or guess)

    @property
    def words(self) -> str:
        """What follows what, for a reader."""
        guess = f"a servo of {self.bandwidth_Hz:.3g} Hz, which stands for one that is not known, follows"
        if not self.planned:
            return f"{guess} the measured motion, whose slower errors stay"
        return "the boards' servo follows the planned motion" if self.servo else f"{guess} the planned motion"

    def unsimulated(self) -> Run:
        """The run with the planned positions, or itself where none are: near enough to begin with."""
        return planned_run(self.run) if self.planned else self.run

    def simulate(self, plant: Plant) -> Run:
        """The run with the simulated positions.

        Raises:
            FitError: the simulation would take too long.
            NotSimulable: the parameters cannot be simulated.
        """
        position = np.full(self.run.samples.motor_position.shape, np.nan)
        for reference in self._references():
            position[reference.samples] = self._follow(plant, reference)[reference.places]
        return with_positions(self.run, position)

    def _references(self) -> Iterator[Reference]:
        if self.planned:
            yield planned_reference(self.run)
        else:
            yield from measured_references(self.run, self.settings)

    def _follow(self, plant: Plant, reference: Reference) -> Array:
        """Simulated positions of a stretch, shape as its reference."""
        step = self.run.samples.sample_period
        finer = 1 if self.servo else int(np.ceil(2.0 * np.pi * self.bandwidth_Hz * step / _ANGLE_A_STEP))
        before = round(_WARM_UP_S / step) if self.planned else 0
        if (before + len(reference.q)) * finer > _MOST_STEPS:
            raise FitError(
                f"run {self.run.path} takes {(before + len(reference.q)) * finer} steps to simulate, more than "
                f'{_MOST_STEPS}; fit a part of it by interval, or choose "wls"'
            )
        q = np.vstack([np.repeat(reference.q[:1], before, axis=0), reference.q])
        dq = np.vstack([np.zeros((before, q.shape[1])), reference.dq])
        if finer > 1:
            places = np.arange((len(q) - 1) * finer + 1) / finer
            q, dq = interpolate_samples(q, places), interpolate_samples(dq, places)
        servo, feedforward = self.servo, None
        if servo is None:
            poses = q[:: max(1, len(q) // _POSES)]
            servo, feedforward = Servo.second_order(plant.inertia(poses), self.bandwidth_Hz), plant.gravity(q)
        motion = plant.follow(servo, q, dq, step / finer, start=q[0], feedforward=feedforward)
        return motion.q[::finer][before:]


class Simulated(NamedTuple):
    """Runs with simulated positions, and whether these are of the nearest parameters that bodies can have instead."""

    runs: list[Run]
    made_possible: bool


def simulate_runs(problem: Problem, followers: Sequence[Follower], estimate: Estimate) -> Simulated:
    """Simulate all runs with the parameters nearest to an estimate that bodies can have.

    Of weakly excited parameters an estimate may say nearly any inertia, and none that its servo would hold; while the
    motion, and so the regressor, hangs little on them as long as it does.

    Raises:
        FitError: the simulation would take too long.
        NotSimulable: not even these can be simulated.
        PhysicalSolverFailed: they cannot be found.
    """
    parameters, changed = _possible(problem, estimate)
    plant = Plant(problem.robot, problem.base, parameters)
    return Simulated([follower.simulate(plant) for follower in followers], changed)


def _possible(problem: Problem, estimate: Estimate) -> tuple[Array, bool]:
    """Base parameters that bodies can have, and whether they are others than the estimate's."""
    told = np.isfinite(np.diag(estimate.covariance))
    if not (np.diag(estimate.covariance)[told] > 0.0).all():
        return estimate.parameters, False  # of torques without noise there is no nearest but themselves
    given = BaseEstimate.of_covariance(problem.base, estimate.parameters, estimate.covariance)
    found = physical_parameters(given)
    return found.base_parameters, not found.unchanged
