"""A run with the motion that a robot with given parameters would have made instead of the measured one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError, RunError
from jointbench.identification.estimators.closed_loop import Servo, SimulatedPlant, check_can_be_simulated
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.paired_rows import (
    Chosen,
    OtherRegressor,
    PairedRows,
    measured,
    measured_positions,
    with_positions,
)
from jointbench.identification.least_squares import Estimate, least_squares
from jointbench.identification.observations import observe
from jointbench.identification.physical import BaseEstimate, physical_parameters
from jointbench.identification.settings import FitSettings
from jointbench.recording import Run, boards_of
from jointbench.signals import LowPass, interpolate_samples, smooth_motion, valid_spans

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
    """Reference and servo by which a run's motion is simulated.

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
        """Sentence that names the reference and the servo."""
        guess = f"a servo of {self.bandwidth_Hz:.3g} Hz, which stands for one that is not known, follows"
        if not self.planned:
            return f"{guess} the measured motion, whose slower errors stay"
        return "the boards' servo follows the planned motion" if self.servo else f"{guess} the planned motion"

    def unsimulated(self) -> Run:
        """The run with the planned positions, or itself where none are: near enough to begin with."""
        return planned_run(self.run) if self.planned else self.run

    def simulate(self, plant: SimulatedPlant) -> Run:
        """The run with the simulated positions.

        Raises:
            FitError: the simulation would take too long; or the parameters cannot be simulated.
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

    def _follow(self, plant: SimulatedPlant, reference: Reference) -> Array:
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
        FitError: the simulation would take too long; or not even these can be simulated.
        NumericalError: they cannot be found.
    """
    parameters, changed = _possible(problem, estimate)
    plant = SimulatedPlant(problem.robot, problem.base, parameters)
    return Simulated([follower.simulate(plant) for follower in followers], changed)


def _possible(problem: Problem, estimate: Estimate) -> tuple[Array, bool]:
    """Base parameters that bodies can have, and whether they are others than the estimate's."""
    finite = np.isfinite(np.diag(estimate.covariance))
    if not (np.diag(estimate.covariance)[finite] > 0.0).all():
        return estimate.parameters, False  # of torques without noise there is no nearest but themselves
    given = BaseEstimate.of_covariance(problem.base, estimate.parameters, estimate.covariance)
    physical = physical_parameters(given)
    return physical.base_parameters, not physical.unchanged


class Reference(NamedTuple):
    """A stretch of a reference.

    Attributes:
        samples: of the run that it is for, shape (m,); each repetition of a plan has the same.
        places: which of the stretch each of them is, shape (m,).
        q, dq: position and velocity [rad, rad/s; or m], shape (n, n_joints).
    """

    samples: NDArray[np.intp]
    places: NDArray[np.intp]
    q: Array
    dq: Array


def is_planned(run: Run) -> bool:
    """Return whether the motion that was played is known."""
    return run.excitation is not None and bool((run.samples.play_tick >= 0).any())


def planned_reference(run: Run) -> Reference:
    """One playing of the run's excitation, for all of its repetitions.

    Raises:
        FitError: nothing was played.
    """
    if run.excitation is None or not is_planned(run):
        raise FitError(
            f"run {run.path} holds no planned motion; only runs that jointbench recorded hold one. Choose "
            f'instruments = "simulated", which follows the measured motion'
        )
    period = run.samples.sample_period
    once = round(run.excitation.duration / period)
    q, dq, _ = run.excitation.evaluate(period * np.arange(once))
    samples = np.flatnonzero(run.samples.play_tick >= 0)
    return Reference(samples, run.samples.play_tick[samples] % once, q, dq)


def planned_run(run: Run) -> Run:
    """The run with its planned positions.

    Raises:
        FitError: nothing was played.
    """
    reference = planned_reference(run)
    position = np.full(run.samples.motor_position.shape, np.nan)
    position[reference.samples] = reference.q[reference.places]
    return with_positions(run, position)


def measured_references(run: Run, settings: FitSettings) -> Iterator[Reference]:
    """The measured motion, low-passed as for the fit, of each gapless stretch that is fitted."""
    samples = run.samples
    assert settings.cutoff_Hz is not None, "settings of an observation are decided"
    low_pass = LowPass(settings.cutoff_Hz, samples.sample_period, settings.filter_order)
    valid = measured(run, settings)
    if settings.interval is not None:
        valid = valid & (samples.time >= settings.interval[0]) & (samples.time < settings.interval[1])
    position = measured_positions(run, settings)
    for part in valid_spans(valid, min_length=2 * low_pass.settling + low_pass.stride + 2):
        motion = smooth_motion(position[part], low_pass)
        places = np.arange(part.stop - part.start)
        yield Reference(places + part.start, places, motion.q, motion.dq)


def board_servo(run: Run) -> Servo | None:
    """The servo as the registers of a run's boards had it, or None where the run was not made with boards.

    The board's current follows its command at once here, and its velocity is the true one: what it takes to measure
    them, some milliseconds, is left out.

    Raises:
        FitError: its boards' registers are damaged.
    """
    if "board" not in run.provenance:
        return None
    try:
        boards, _ = boards_of(run.path, run.provenance)
        robot = run.robot
        of_joint = {robot.joint_index(facts.joint): facts for facts in boards.values() if not facts.on_foot}
        rows: list[list[float]] = []
        for joint, drive in enumerate(robot.drives):
            facts = of_joint[joint]
            per_ampere = drive.torque_constant
            counts = facts.motor_counts / (2.0 * np.pi)  # [1/rad]
            per_count = counts * per_ampere  # A/count to N·m/rad
            per_rate = per_count * facts.tick_period
            rows.append(
                [
                    facts.si("servo.kp") * per_count,
                    facts.si("servo.kd") * per_rate,
                    facts.si("servo.velocity_feedforward") * per_rate,
                    facts.si("servo.friction") * per_ampere,
                    facts.si("servo.friction_band") / (counts * facts.tick_period),
                    facts.si("servo.ki") * per_count / facts.tick_period,
                    facts.si("limit.current") * per_ampere,
                ]
            )
    except (KeyError, RunError) as error:
        raise FitError(
            f"run {run.path}: its boards' servo cannot be read from {error}; choose an estimator that needs none, "
            f'such as "wls"'
        ) from error
    return Servo(robot.transmission_matrix, *np.array(rows).T.copy())


SETTLED = 0.1
"""Change of each parameter, in its own σ, under which another pass is not worth it: it adds a hundredth to the squared
error. Simulated joints that turn back a sample earlier or later change them by some hundredths."""


class Pass(Protocol):
    """Whatever a pass finds, an estimate among it."""

    @property
    def estimate(self) -> Estimate:
        """Estimate of this pass."""
        ...


_Pass = TypeVar("_Pass", bound=Pass)


def iterate(
    step: Callable[[Estimate], _Pass], start: Estimate, passes: int, *, estimator: str, names: Sequence[str]
) -> tuple[_Pass, int]:
    """Make passes until no parameter changes by more than `SETTLED` of its σ.

    Args:
        step: a pass, of the estimate before it.
        start: the estimate before the first one.
        passes: at most.
        estimator: its name, for the error.
        names: of the parameters, likewise.

    Returns:
        The last pass, and how many there were.

    Raises:
        FitError: they do not settle.
    """
    last, at, change = start, 0, np.inf
    for number in range(1, passes + 1):
        result = step(last)
        change, at = largest_change(result.estimate, last.parameters)
        if change < SETTLED:
            return result, number
        last = result.estimate
    raise FitError(
        f"{estimator}: after {passes} passes {names[at]} still changes by {change:.2g} σ; allow more passes, or choose "
        f'an estimator that simulates nothing, such as "wls"'
    )


def largest_change(estimate: Estimate, before: Array) -> tuple[float, int]:
    """Largest difference of an estimate from other parameters, in its own σ, and of which parameter.

    Parameters that are not told, or known exactly, do not count.
    """
    sigma = np.sqrt(np.diag(estimate.covariance))
    counts = np.isfinite(sigma) & (sigma > 0.0)
    changes = np.abs(estimate.parameters - before) / np.where(counts, sigma, np.inf)
    at = int(np.argmax(changes))
    return float(changes[at]), at


@dataclass(frozen=True)
class OutputError:
    """For torques alone: positions are not differentiated, and not even used where plan and servo are known (DIDIM).

    min over pi of Σ (torque - torque of a simulation with pi)² / sigma². A servo makes the simulated motion nearly the
    same whatever pi is, so that the simulated torque's derivative by pi is the regressor at the simulated motion; with
    it each Gauss-Newton step is a weighted least-squares fit of the measured torque on that regressor.

    Attributes:
        passes: at most; three or four are usual.
        bandwidth_Hz: of the simulated servo; None: the boards' own along the plan. Where that is not known, one of 3
            cut-offs along the measured motion: then errors of position slower than it get through.

    Raises:
        FitError: an option that is not one of these.

    Source: Gautier, Janot & Vandanjon, A new closed-loop output error method for parameter identification of robot
    dynamics, IEEE Trans. Control Systems Technology 21(2), 2013.
    """

    passes: int = 20
    bandwidth_Hz: float | None = None
    name: ClassVar[str] = "output_error"

    def __post_init__(self) -> None:
        """Refuse options that nobody can mean."""
        if self.passes < 1:
            raise FitError(f"output_error: passes = {self.passes} must be 1 or more")
        if self.bandwidth_Hz is not None and not 0.0 < self.bandwidth_Hz < np.inf:
            raise FitError(f"output_error: bandwidth_Hz = {self.bandwidth_Hz:g} must be a number above 0, or None")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate a problem's parameters, beginning with weighted least squares on the planned or measured motion.

        Raises:
            FitError: the robot or a run cannot be simulated, or the parameters do not settle.
        """
        check_can_be_simulated(problem.robot)
        if len({observed.settings.torque for observed in problem.observations}) > 1:
            raise FitError(
                "output_error: runs with motor torques beside runs with joint torques are not simulated by one model; "
                'fit them apart, or choose "wls"'
            )
        followers = [
            Follower.of(run, observed.settings, self.bandwidth_Hz, plan_needs_servo=True)
            for run, observed in zip(problem.runs, problem.observations, strict=True)
        ]
        chosen = [Chosen() for _ in problem.runs]

        def fitted(moved: Sequence[Run], used: Sequence[Chosen | None]) -> tuple[Estimate, list[PairedRows]]:
            rows = [
                observe(run, problem.robot, problem.base, follower.settings)
                for run, follower in zip(moved, followers, strict=True)
            ]
            pairs = [PairedRows(*each) for each in zip(problem.parts, rows, used, strict=True)]
            return least_squares([OtherRegressor(pair) for pair in pairs]), pairs

        def one_pass(last: Estimate) -> _Iteration:
            simulated = simulate_runs(problem, followers, last)
            return _Iteration(*fitted(simulated.runs, chosen), simulated.made_possible)

        names, plain = problem.base.leading_names, least_squares(problem.parts)
        start, _ = fitted([follower.unsimulated() for follower in followers], [None] * len(followers))
        last, number = iterate(one_pass, start, self.passes, estimator=self.name, names=names)
        moved_by, which = largest_change(last.estimate, plain.parameters)
        away = _tracking(last.pairs)
        words = "; ".join(dict.fromkeys(follower.words for follower in followers))
        words += MADE_POSSIBLE if last.made_possible else ""
        notes = (
            f"{words}; {number} passes until the parameters settled within {SETTLED:g} σ",
            f"regressors of simulated and measured motion differ by {100.0 * away:.2g} %",
            f"largest difference from wls {moved_by:.1f} σ, {names[which]}",
        )
        figures = {
            "passes": number, "regressor_difference": away, "largest_difference_from_wls_sigma": moved_by,
        }  # fmt: skip
        return replace(last.estimate, notes=notes, figures=figures)


class _Iteration(NamedTuple):
    """Rows of a simulation with the parameters of the previous pass."""

    estimate: Estimate
    pairs: list[PairedRows]
    made_possible: bool


def _tracking(pairs: list[PairedRows]) -> float:
    """Return the distance of the simulated motion from the measured one, as a share of the regressor, columns alike."""
    p = pairs[0].n_parameters
    apart, whole = np.zeros(p), np.zeros(p)
    for part in pairs:
        for pair in part.pairs():
            measured = pair.measured[pair.used]
            apart += np.sum((pair.other[pair.used] - measured) ** 2, axis=0)
            whole += np.sum(measured**2, axis=0)
    present = whole > 0.0
    return float(np.sqrt(np.mean(apart[present] / whole[present]))) if present.any() else 0.0
