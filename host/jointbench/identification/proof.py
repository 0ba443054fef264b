"""Proof of a model on the arm: how much feedback still supplies where the model's feed-forward plays along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench import Trajectory
from jointbench.errors import FitError
from jointbench.identification.feedforward import MotorReference, motion_times
from jointbench.identification.validation import Validation
from jointbench.model import Robot
from jointbench.recording import Run
from jointbench.signals import LowPass

SETTLED_S = 0.25
"""Time from the start until a feed-forward that came in with ARM has settled [s]."""

BAND_HZ = 10.0
"""Band in which the share of feedback is taken: above it the servo answers to noise and quantisation."""

MOST_MORE = 0.04
"""By how much of the torque the share may exceed the error that a validation found where the joints move."""

HALF, HALF_TOLERANCE = 0.5, 0.1
"""Error with half the feed-forward over that without, and how far from it still shows sign, scale and order right."""

MOST_WIND_UP = 0.95
"""Share of a measured wind-up that a gear's stiffness may leave unexplained for motors to lead by it: at a correct
stiffness noise and teeth leave most of a small one, at half of the stiffness all of it is left, with the other sign."""

BLOCKS = 20
"""Number of blocks of a validation's time, by whose errors the share is predicted with an interval."""

LEAST_DISTANCE = 0.1
"""Lower quartile of the distances of a new motion from the fitted one, in standard deviations of that one."""

_GRID_S = 0.02


def motion_distance(new: Trajectory, fitted: Trajectory) -> float:
    """Return how far a motion stays from another one in the space of position and velocity.

    At each time of the new motion d = min over the other's times of |x - x'| / √(2 n_joints), where x is position and
    velocity of all joints, each over its standard deviation in the other motion. A motion that is played again has 0,
    whatever its order or direction in time. The result is the lower quartile of d over the time: a quarter of the new
    motion is nearer.

    Args:
        new: the motion that shall prove a model.
        fitted: the motion that the model was fitted to.
    """
    states = [
        np.hstack(motion.evaluate(np.arange(0.0, motion.period, _GRID_S))[:2]).astype(np.float64)
        for motion in (new, fitted)
    ]
    spread = states[1].std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0) * np.sqrt(states[1].shape[1])
    distances, _ = scipy.spatial.cKDTree(states[1] / scale).query(states[0] / scale)
    return float(np.quantile(distances, 0.25))


@dataclass(frozen=True, eq=False)
class Tracking:
    """Errors and torques of a motion as it was played, from `SETTLED_S` on.

    Attributes:
        error: reference of the motors less position by their encoders [rad or m], shape (n, n_joints).
        link_error: reference of the links less position by theirs [rad or m], None where they have none.
        wind_up: lead of the motors over the links by their encoders [rad or m], None where the links have none.
        time: since the start [s], shape (n,).
        torque: of the motors at the joints, less the sensors' offsets [N·m or N], shape (n, n_joints).
        fed_forward: part of it that the model supplied, filtered on the way as the torque was [N·m or N].
        sample_period: [s].
    """

    error: Array
    link_error: Array | None
    wind_up: Array | None
    time: Array
    torque: Array
    fed_forward: Array
    sample_period: float

    @property
    def rms(self) -> Array:
        """Root mean square of the error by joint [rad or m], shape (n_joints,)."""
        return np.sqrt(np.mean(self.error**2, axis=0))

    @property
    def link_rms(self) -> Array | None:
        """Root mean square of the links' error by joint [rad or m], None where they have no encoders."""
        return None if self.link_error is None else np.sqrt(np.mean(self.link_error**2, axis=0))

    @cached_property
    def in_band(self) -> tuple[Array, Array]:
        """Torque of feedback and whole torque, both below 10 Hz [N·m or N], shape (m, n_joints) each."""
        low_pass = LowPass(BAND_HZ, self.sample_period)
        ends = low_pass.settling
        fed_back, whole = (
            low_pass.apply(part)[ends : len(part) - ends] for part in (self.torque - self.fed_forward, self.torque)
        )
        return fed_back, whole

    @property
    def share(self) -> Array:
        """Share of each joint's torque below 10 Hz that feedback supplied, shape (n_joints,)."""
        return _share(*(np.mean(part**2, axis=0) for part in self.in_band))


def _share(fed_back: Array, whole: Array) -> Array:
    """Root of the ratio of two mean squares, 0 where there is no torque."""
    return np.sqrt(np.divide(fed_back, whole, out=np.zeros_like(fed_back), where=whole > 0.0))


def tracking(
    run: Run,
    motors: Trajectory,
    links: Trajectory,
    robot: Robot,
    supplied_A: Array | None,
    knot_period: float,
    offset: Array | float = 0.0,
) -> Tracking:
    """Take from a recording how a motion was tracked, each joint beside what its board played at that time.

    Args:
        run: in which it was played once.
        motors: what was played.
        links: where the links should have been; another than that of the motors where these lead by the gears' wind-up.
        robot: of the bench.
        supplied_A: motor currents of the model's torque at the knots [A], shape (n_knots, n_motors); None for none.
        knot_period: time between its knots [s].
        offset: what the torque of each joint reads at no torque [N·m or N].

    Raises:
        FitError: the motion is too short, or the run has no motor torque.
    """
    samples = run.samples
    if samples.motor_torque is None:
        raise FitError(f"run {run.path} has no motor torque; record the motors' currents")
    rows = (samples.play_tick >= round(SETTLED_S / samples.sample_period)) & samples.valid.all(axis=1)
    times = motion_times(run)[rows]
    time = np.asarray(samples.play_tick[rows] * samples.sample_period, dtype=np.float64)
    shortest = 2.0 * LowPass(BAND_HZ, samples.sample_period).settling * samples.sample_period + 1.0
    if not len(time) or time[-1] - time[0] < shortest:
        raise FitError(
            f"run {run.path} plays for too short a time; a proof needs a motion of {SETTLED_S + shortest:.3g} s or more"
        )
    of_motors, of_links = (_positions(part, times) for part in (motors, links))
    torque = samples.motor_torque[rows] - offset
    fed_forward = np.zeros_like(torque)
    if supplied_A is not None:
        knots = knot_period * np.arange(len(supplied_A))
        pairs = zip(times.T, supplied_A.T, strict=True)
        at_samples = np.stack([np.interp(own_time, knots, own) for own_time, own in pairs], axis=1)
        fed_forward = robot.drive_train.joint_torque_of_current(at_samples)
        for j, board_filter in enumerate(samples.board_filters or ()):
            fed_forward[:, j] = board_filter.apply(fed_forward[:, j])
    motor, link = samples.motor_position[rows], samples.link_position
    return Tracking(
        of_motors - motor,
        None if link is None else of_links - link[rows],
        None if link is None else motor - link[rows],
        time,
        torque,
        fed_forward,
        samples.sample_period,
    )


def _positions(motion: Trajectory, times: Array) -> Array:
    """Positions of a motion where each joint has a time of its own [rad or m], shape (n, n_joints)."""
    times = np.clip(times, 0.0, motion.period)
    if np.array_equal(times, np.broadcast_to(times[:, :1], times.shape)):
        return motion.evaluate(times[:, 0])[0]
    return np.stack([motion.evaluate(own)[0][:, j] for j, own in enumerate(times.T)], axis=1)


class PredictedShare(NamedTuple):
    """Share of feedback that a validation lets expect, and its 95 % interval, shape (n_joints,) each."""

    share: Array
    low: Array
    high: Array


def predicted_share(validation: Validation, planned: Array, between_knots: Array, period: float) -> PredictedShare:
    """Predict how much feedback will supply where the validated motion is played with the model's feed-forward.

    share² = (rms of the model's error / rms τ)² + (rms of what knots leave out / rms τ)², all below 10 Hz. The interval
    is that of the same in single twentieths of the time, over the torque of the whole.

    Args:
        validation: at 10 Hz, on the motion as it was played without feed-forward.
        planned: the model's torque along the planned motion [N·m or N], shape (n, n_joints).
        between_knots: the same as it is fed forward, linear between knots, of that shape.
        period: of their rows [s].
    """
    low_pass = LowPass(BAND_HZ, period)
    left_out = low_pass.apply(planned - between_knots)[round(SETTLED_S / period) :]
    rows = np.flatnonzero(validation.complete)
    error = (validation.predicted - validation.measured)[rows]
    powers = [np.mean(low_pass.apply(planned) ** 2, axis=0), np.mean(validation.measured[rows] ** 2, axis=0)]
    blocks = np.hypot(
        *(
            np.array([_share(np.mean(block**2, axis=0), power) for block in np.array_split(part, BLOCKS)])
            for part, power in zip((left_out, error), powers, strict=True)
        )
    )
    low, high = np.quantile(blocks, (0.025, 0.975), axis=0)
    shares = [_share(np.mean(part**2, axis=0), power) for part, power in zip((left_out, error), powers, strict=True)]
    return PredictedShare(np.hypot(*shares), low, high)


@dataclass(frozen=True, eq=False)
class Control:
    """A feed-forward that is wrong on purpose.

    Attributes:
        name: what is wrong.
        tracking: of the motion, None where the boards stopped it.
        tripped: why they did, empty where they did not.
    """

    name: str
    tracking: Tracking | None
    tripped: str = ""


@dataclass(frozen=True, eq=False)
class HeavierLink:
    """The model with one link 20 % heavier.

    Attributes:
        link: its name.
        joint: whose torque it changes most, index.
        tracking: of the motion, None where the boards stopped it.
    """

    link: str
    joint: int
    tracking: Tracking | None


@dataclass(frozen=True, eq=False)
class Proof:
    """A motion played without and with a model's feed-forward, and what should have failed.

    Attributes:
        joint_names: of the joints.
        modelled: which of them are judged, shape (n_joints,).
        without, fed: the motion without and with feed-forward, as often as it was played.
        half: with half of it, before.
        predicted: share of feedback, made before the first run with feed-forward.
        moving_error: of the validation, relative, where the joints move, shape (n_joints,).
        distance: of the motion from the nearest fitted one, as of `motion_distance`.
        controls: feed-forward that must fail.
        heavier: the model with a heavier link, None where it was not played.
        stiffness: of the gears by whose wind-up the motors led in runs with feed-forward [N·m/rad], inf where they did
            not, shape (n_joints,); None: of no gear.
        unexpected_limit_A: of each motor [A], shape (n_motors,): beyond this current boards tripped UNEXPECTED in the
            last run with feed-forward; it suits other motions as lively. None: no band could be made.
    """

    joint_names: tuple[str, ...]
    modelled: NDArray[np.bool_]
    without: Sequence[Tracking]
    fed: Sequence[Tracking]
    half: Tracking
    predicted: PredictedShare
    moving_error: Array
    distance: float
    controls: Sequence[Control] = field(default_factory=tuple[Control, ...])
    heavier: HeavierLink | None = None
    stiffness: Array | None = None
    unexpected_limit_A: Array | None = None

    @property
    def leads(self) -> NDArray[np.bool_]:
        """Mask of the motors that led by the wind-up of their gears in runs with feed-forward, shape (n_joints,)."""
        return np.zeros_like(self.modelled) if self.stiffness is None else np.isfinite(self.stiffness)

    @property
    def ratio(self) -> Array:
        """Error without over that with feed-forward by joint, shape (n_joints,)."""
        return _pooled([played.rms for played in self.without]) / _pooled([played.rms for played in self.fed])

    @property
    def _link_rms(self) -> tuple[Array, Array] | None:
        without = [own for played in self.without if (own := played.link_rms) is not None]
        fed = [own for played in self.fed if (own := played.link_rms) is not None]
        return (_pooled(without), _pooled(fed)) if without and fed else None

    @property
    def link_ratio(self) -> Array | None:
        """Error of the links without over that with feed-forward by joint, None where they have no encoders."""
        return None if self._link_rms is None else self._link_rms[0] / self._link_rms[1]

    @property
    def pooled_ratio(self) -> float:
        """Ratio of the root mean squares over all judged joints."""
        without, fed = (_pooled([played.rms for played in runs])[self.modelled] for runs in (self.without, self.fed))
        return float(np.linalg.norm(without) / np.linalg.norm(fed))

    @property
    def pooled_link_ratio(self) -> float | None:
        """Pooled ratio of the links, None where they have no encoders."""
        if self._link_rms is None:
            return None
        without, fed = (rms[self.modelled] for rms in self._link_rms)
        return float(np.linalg.norm(without) / np.linalg.norm(fed))

    @property
    def worst_ratio(self) -> float:
        """Least ratio of the judged joints."""
        return float(self.ratio[self.modelled].min())

    @property
    def worst_link_ratio(self) -> float | None:
        """Least ratio of the judged joints by the links, None where they have no encoders."""
        return None if self.link_ratio is None else float(self.link_ratio[self.modelled].min())

    @property
    def share(self) -> Array:
        """Share of each joint's torque below 10 Hz that feedback still supplied, shape (n_joints,)."""
        return _pooled([played.share for played in self.fed])

    @property
    def limit(self) -> Array:
        """Largest share of feedback that the validation lets expect, shape (n_joints,)."""
        return self.moving_error + MOST_MORE

    @property
    def half_ratio(self) -> Array:
        """Error with half the feed-forward over that without, shape (n_joints,)."""
        return self.half.rms / self.without[0].rms

    @property
    def is_as_predicted(self) -> NDArray[np.bool_]:
        """Mask of the joints whose share lies in the predicted interval, shape (n_joints,)."""
        return (self.predicted.low <= self.share) & (self.share <= self.predicted.high)

    def passes(self, share: Array) -> bool:
        """Return whether feedback supplies no more than can be expected on every judged joint."""
        return bool(np.all((share <= self.limit)[self.modelled]))

    def fails(self, control: Control) -> bool:
        """Return whether a control failed, as it must: a trip is a failure."""
        return control.tracking is None or not self.passes(control.tracking.share)

    @property
    def heavier_shows(self) -> bool | None:
        """True if the heavier link shows as a larger share on the joint it loads most; None where not played."""
        if self.heavier is None:
            return None
        played, joint = self.heavier.tracking, self.heavier.joint
        return played is None or bool(played.share[joint] > self.share[joint])

    @property
    def against(self) -> tuple[str, ...]:
        """Evidence against the model, a sentence each; empty where it is proven."""
        sentences: list[str] = []
        for j in np.flatnonzero(self.modelled).tolist():
            share, name = 100.0 * self.share[j], self.joint_names[j]
            if self.share[j] > self.limit[j]:
                sentences.append(f"{name}: feedback supplies {share:.1f} %, allowed are {100.0 * self.limit[j]:.1f} %")
            if not self.is_as_predicted[j]:
                low, high = 100.0 * self.predicted.low[j], 100.0 * self.predicted.high[j]
                sentences.append(f"{name}: its share of {share:.1f} % was predicted as {low:.1f} to {high:.1f} %")
        sentences += [f"control passes: {control.name}" for control in self.controls if not self.fails(control)]
        return tuple(sentences)

    @property
    def is_proven(self) -> bool:
        """Return whether the model passes as predicted, and every control fails."""
        return not self.against


def check_half(half_ratio: Array, joint_names: Sequence[str], modelled: NDArray[np.bool_]) -> None:
    """Refuse to go on to full current where half the feed-forward does not halve the error.

    Args:
        half_ratio: error with half the feed-forward over that without, shape (n_joints,).
        joint_names: of the joints.
        modelled: which of them are judged, shape (n_joints,).

    Raises:
        FitError: the error of a joint is not 0.5 ± 0.1 of that without; names the joint and the likely cause.
    """
    off = np.where(modelled, np.abs(half_ratio - HALF), 0.0)
    joint = int(off.argmax())
    if off[joint] <= HALF_TOLERANCE:
        return
    ratio, name = float(half_ratio[joint]), joint_names[joint]
    if ratio > 1.1:
        cause = f"its sign is likely wrong (direction of {name}'s motor or encoder), or the order of the joints"
    elif ratio > 0.9:
        cause = "it acts on another joint or on none: look at the order of the joints, and at the torque constant"
    elif ratio > HALF:
        cause = f"its scale is likely {2.0 * (1.0 - ratio):.2g} of what it should be: torque constant or gear ratio"
    else:
        cause = "its scale is likely too large: torque constant or gear ratio"
    others = [own for k, own in enumerate(joint_names) if off[k] > HALF_TOLERANCE and k != joint]
    also = f"; also {', '.join(others)}" if others else ""
    raise FitError(
        f"half the feed-forward leaves {ratio:.2f} of {name}'s tracking error, where {HALF:g} ± {HALF_TOLERANCE:g} "
        f"shows a right model; {cause}{also}. Stopped before full current: correct it and fit anew, or fit this bench"
    )


class ExplainedWindUp(NamedTuple):
    """Conclusion from a measured wind-up on the stiffness that motors shall lead by.

    Attributes:
        stiffness: of the gears [N·m/rad], inf of each whose lead would leave its link further from the reference than
            none, shape (n_joints,).
        zeros: what the motors' encoders read more than the links' at no torque [rad], 0 of gears without a lead.
        sentences: on each gear whose stiffness is left out.
    """

    stiffness: Array
    zeros: Array
    sentences: tuple[str, ...]


def explained_wind_up(
    without: Tracking, reference: MotorReference, joint_names: Sequence[str], stiffness: Array
) -> ExplainedWindUp:
    """Leave out the stiffness of gears whose measured wind-up it does not explain, before their motors lead by it.

    The stiffness may be wrong, or the torque through the gear: of a first vertical joint no motion tells the rotor's
    inertia from that of the links behind the gear. Links without encoders are taken on trust.

    Args:
        without: the motion without feed-forward.
        reference: of the motors, with their lead.
        joint_names: of the joints.
        stiffness: of the gears [N·m/rad], inf where not known, shape (n_joints,).
    """
    if without.wind_up is None:
        return ExplainedWindUp(stiffness, np.zeros_like(stiffness), ())
    lead = reference.wind_up(np.minimum(without.time, reference.period))
    rest = without.wind_up - lead
    measured, left = without.wind_up.std(axis=0), rest.std(axis=0)
    off = np.isfinite(stiffness) & (left > MOST_WIND_UP * measured)
    sentences = tuple(
        f"the motor of {joint_names[j]} does not lead: a stiffness of {stiffness[j]:.4g} N·m/rad leaves "
        f"{1e3 * left[j]:.3g} mrad of the {1e3 * measured[j]:.3g} mrad by which motor and link move apart (rms). Look "
        "at stiffness_Nm_rad in the robot's file, or identify it anew (`jointbench drives`)"
        for j in np.flatnonzero(off).tolist()
    )
    kept = np.where(off, np.inf, stiffness)
    return ExplainedWindUp(kept, np.where(np.isfinite(kept), rest.mean(axis=0), 0.0), sentences)


def _pooled(values: Sequence[Array]) -> Array:
    return np.sqrt(np.mean(np.square(values), axis=0))
