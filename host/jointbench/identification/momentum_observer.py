"""Pushes from outside, by the momentum that an identified model expects: which joint, when, and with what force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.identification.model import FrictionState, Model
from jointbench.identification.predictor import DriveTorque, leading_parameters
from jointbench.model import Wrench, external_torques, inverse_dynamics, model_columns
from jointbench.recording import Run

_STEP = 1e-6
"""Of a derivative along the motion [s]: a part in 10⁶ of a radian at a radian a second."""

_AFTER_REST_S = 0.1
"""For how long after a joint was near rest its residual remembers friction's turn, and after the first sample that all
began there [s]."""

_BLOCK_S = 0.5
"""Time over which the largest residual is taken: longer than the residual remembers."""

_FEWEST_BLOCKS = 10

_RELEASED = 0.5
"""Share of its threshold below which a push counts as over …"""

_RELEASED_S = 0.1
"""… once it has been for so long [s]."""

_NAMED_S = 0.03
"""Time from its beginning by which a push's joint is named [s]."""

_SIGMAS = 2.0
"""Of the predicted torque, within which a model may be off without anything pushing."""


@dataclass(frozen=True, eq=False)
class Observed:
    """An observer's estimates for some samples.

    Attributes:
        torque: measured torque beyond the model's [N·m or N], of what pushes from outside and what the model lacks,
            behind a first-order low-pass, shape (n, n_joints).
        q, dq: filtered position [rad or m] and velocity, of that shape.
        near_rest: samples in or shortly after which a joint is slower than friction's sign can be told, of that shape.
    """

    torque: Array
    q: Array
    dq: Array
    near_rest: NDArray[np.bool_]


class MomentumObserver:
    """Torque from outside, without differentiating velocities: r = K (p - ∫ (tau - tau_0 + Ṁ dq + r) dt).

    p = M(q) dq is the momentum of links and rotors; tau_0 the model's torque without M ddq: gravity, Coriolis,
    friction, springs. dr/dt = K (tau_ext - r), so that r is what pushes behind a low-pass of `gain_Hz`.

    Positions and torques go through one causal low-pass, of which velocities are differences; then all that is
    integrated through the same once more. So nothing is late beside the rest, and where friction turns over the
    model's step is about as smooth as the measured one. Samples come in any portions, in order.

    Source: De Luca & Mattone, IEEE ICRA, 2003; Haddadin, De Luca & Albu-Schäffer, IEEE T-RO 33(6), 2017, sec. IV.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> observer = MomentumObserver(model, period=0.001)
    >>> still = np.zeros((50, 2)) + [0.0, -1.5]
    >>> observer.update(still, model.predict(still, 0 * still, 0 * still)).torque.shape
    (50, 2)
    """

    def __init__(
        self, model: Model, period: float, *, torque_delay: float = 0.0, cutoff_Hz: float = 100.0, gain_Hz: float = 15.0
    ) -> None:
        """Prepare for a model.

        Args:
            model: whose torque is expected.
            period: of the samples [s].
            torque_delay: by how much torques are later than positions, as boards' filters make them [s]; 0 or more.
            cutoff_Hz: of the second-order low-pass on positions and torques.
            gain_Hz: K / 2π.

        Raises:
            FitError: the period is too long for these frequencies, or the delay is negative.
        """
        if not 0.0 <= torque_delay < 1.0:
            raise FitError(f"torque_delay = {torque_delay:g} s must be 0 or more, and below 1 s")
        if not 0.0 < period * max(cutoff_Hz, gain_Hz) < 0.2:
            raise FitError(
                f"period = {period:g} s is too long for an observer of {max(cutoff_Hz, gain_Hz):g} Hz, which needs "
                f"five samples a period; record faster, or lower cutoff_Hz and gain_Hz"
            )
        self.model: Model = model
        self.period: float = period
        whole, self._fraction = divmod(torque_delay / period, 1.0)
        self._whole = int(whole)
        self._positions: Array | None = None
        self._links, drives, _ = leading_parameters(model)
        self._rotors = DriveTorque.of(model.robot, drives).inertia
        self._sections = scipy.signal.butter(2, cutoff_Hz, fs=1.0 / period, output="sos")
        self._rest: Array = scipy.signal.sosfilt_zi(self._sections)[:, :, None]
        self._gain = 2.0 * np.pi * gain_Hz
        self._filters: Array | None = None
        self._later: Array | None = None
        self._last: Array | None = None
        self._velocity: Array | None = None
        self._friction: FrictionState | None = None
        self._since_rest = np.zeros(model.robot.n_joints)
        self._settling = round(_AFTER_REST_S / period)
        self._slow = np.array(model.settings.velocity_threshold or np.zeros(model.robot.n_joints))
        self._integral = np.zeros(model.robot.n_joints)
        self._residual = np.zeros(model.robot.n_joints)

    def update(self, position: Array, torque: Array) -> Observed:
        """Observe the next samples.

        Args:
            position: of the joints as recorded [rad or m], shape (n, n_joints), n > 0.
            torque: measured at them [N·m or N], of that shape.

        Raises:
            ShapeError: the arrays differ in shape, or do not match the robot, or are not finite.
        """
        n_joints = self.model.robot.n_joints
        if position.shape != torque.shape or position.shape[1:] != (n_joints,) or not len(position):
            raise ShapeError(
                f"position and torque have shapes {position.shape} and {torque.shape}; both must be (n, {n_joints})"
            )
        if not (np.isfinite(position).all() and np.isfinite(torque).all()):
            raise ShapeError("position or torque is not finite; leave out the samples that are missing, and begin anew")
        zeros = self.model.settings.zeros
        both = np.hstack([self._late(position + (0.0 if zeros is None else np.array(zeros))), torque])
        if self._filters is None:
            self._filters = self._rest * both[0]
        smooth, self._filters = scipy.signal.sosfilt(self._sections, both, axis=0, zi=self._filters)
        # Velocities are of the middle between two samples: so is all else.
        before = smooth[:1] if self._last is None else self._last[:1]
        pairs = np.vstack([before, smooth])
        self._last, middle = smooth[-1:].copy(), 0.5 * (pairs[1:] + pairs[:-1])
        q, tau = np.split(middle, 2, axis=1)
        dq = np.diff(pairs[:, :n_joints], axis=0) / self.period
        slower = np.zeros((1, n_joints)) if self._velocity is None else self._velocity
        ddq = np.diff(np.vstack([slower, dq]), axis=0) / self.period
        self._velocity = dq[-1:].copy()
        return Observed(self._residuals(q, dq, ddq, tau), q, dq, self._near_rest(dq))

    def _late(self, position: Array) -> Array:
        """Positions as late as torques are, between samples linearly."""
        if self._positions is None:
            self._positions = np.repeat(position[:1], self._whole + 1, axis=0)
        whole = np.vstack([self._positions, position])
        self._positions = whole[len(whole) - self._whole - 1 :]
        n = len(position)
        return (1.0 - self._fraction) * whole[1 : n + 1] + self._fraction * whole[:n]

    def _near_rest(self, dq: Array) -> NDArray[np.bool_]:
        """Samples less than `_AFTER_REST_S` after a joint was slow."""
        since = np.empty_like(dq)
        for k, slow in enumerate(np.abs(dq) <= self._slow):
            self._since_rest = np.where(slow, 0.0, self._since_rest + self.period)
            since[k] = self._since_rest
        return np.asarray(since < _AFTER_REST_S)

    def lagged(self, values: Array) -> Array:
        """Return torques of the samples observed as late and smooth as what is observed of them, shape (n, …)."""
        flat = values.reshape(len(values), -1)
        later, _ = scipy.signal.sosfilt(self._sections, flat, axis=0, zi=self._rest * flat[0])
        pole = 1.0 - self._gain * self.period
        last, _ = scipy.signal.lfilter([1.0 - pole], [1.0, -pole], later, axis=0, zi=pole * later[:1])
        return np.asarray(last).reshape(values.shape)

    def friction_at_rest(self) -> Array:
        """Torque by which friction may be off while its sign is not told [N·m or N], shape (n_joints,)."""
        model = self.model.coulomb_viscous
        home, slow = np.array(model.robot.home)[None], np.maximum(self._slow, 1e-6)[None]
        still = np.zeros_like(home)
        there, back = (model.predict(home, sign * slow, still) for sign in (1.0, -1.0))
        return np.abs(there - back)[0]

    def _residuals(self, q: Array, dq: Array, ddq: Array, torque: Array) -> Array:
        """R of filtered samples; accelerations only tell the load that friction goes by."""
        prediction = self.model.predict_from(self._friction, q, dq, ddq)
        self._friction = prediction.state
        momentum = self._momentum(q, dq)
        without = prediction.torque - self._momentum(q, ddq)
        # Ṁ dq, by how the momentum changes where positions go on and velocities stay.
        turned = (self._momentum(q + _STEP * dq, dq) - momentum) / _STEP
        parts = np.hstack([momentum, torque - without + turned])
        if self._later is None:
            self._later = self._rest * parts[0]
        smooth, self._later = scipy.signal.sosfilt(self._sections, parts, axis=0, zi=self._later)
        momentum, pushed = np.split(smooth, 2, axis=1)
        residual = np.zeros_like(q)
        unsettled, self._settling = min(self._settling, len(q)), max(0, self._settling - len(q))
        if unsettled:  # what moves as it begins has no velocity before two samples
            self._integral = momentum[unsettled - 1].copy()
        for k in range(unsettled, len(q)):
            self._integral += self.period * (pushed[k] + self._residual)
            self._residual = self._gain * (momentum[k] - self._integral)
            residual[k] = -self._residual
        return np.where(self.model.robot.modelled, residual, 0.0)

    def _momentum(self, q: Array, v: Array) -> Array:
        """M(q) v of links and rotors, shape (n, n_joints)."""
        robot, still = self.model.robot, np.zeros_like(q)
        at_rest = inverse_dynamics(robot, q, still, still, self._links)
        return inverse_dynamics(robot, q, still, v, self._links) - at_rest + v @ self._rotors.T


def observe_run(model: Model, run: Run) -> tuple[MomentumObserver, Observed]:
    """Observe a recording sample by sample, its torques as late as the boards' filters make them.

    Args:
        model: of the run's robot.
        run: with torques of the side that the model is of, and no sample missing.

    Raises:
        FitError: the run has other joints, lacks that torque, or a sample of it.
    """
    samples = run.samples
    if samples.joint_names != model.robot.joint_names:
        raise FitError(
            f"run {run.path} has joints {', '.join(samples.joint_names)}, and the model's robot has "
            f"{', '.join(model.robot.joint_names)}; give a run of that robot"
        )
    side = model.settings.torque
    torque = samples.joint_torque if side == "joint" else samples.motor_torque
    position = samples.motor_position if model.settings.position == "motor" else samples.link_position
    if torque is None or position is None:
        raise FitError(f"run {run.path} has no torque of the {side}s, or no such positions, as the model is of")
    torque = np.where(model.robot.modelled, torque, 0.0)
    whole = np.isfinite(position).all(axis=1) & np.isfinite(torque).all(axis=1)
    if not whole.all():
        raise FitError(
            f"run {run.path}: {np.count_nonzero(~whole)} samples are missing, the first at "
            f"{samples.time[np.argmin(whole)]:g} s; an observer needs all, so record it again"
        )
    filters = samples.board_filters or ()
    late = float(np.mean([board_filter.delay for board_filter in filters])) if filters else 0.0
    late = max(0.0, late - float(np.mean(model.delay.seconds)))
    observer = MomentumObserver(model, samples.sample_period, torque_delay=late)
    return observer, observer.update(position, torque)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Torque beyond the model's that nothing pushing makes, but rarely.

    Attributes:
        torque: of each joint that moves [N·m or N], infinite of passive ones, shape (n_joints,).
        at_rest: by how much friction may be off beside that near rest [N·m or N], shape (n_joints,).
        covariance: of the torques beyond the model's while nothing pushes, and of the model's own,
            shape (n_joints, n_joints).
        false_alarms_per_hour: of all joints together, if the model errs later as it did here.
        period: of the samples [s].
    """

    torque: Array
    at_rest: Array
    covariance: Array
    false_alarms_per_hour: float
    period: float

    def of(self, observed: Observed) -> Array:
        """Return the threshold of each sample [N·m or N], shape (n, n_joints)."""
        return self.torque + np.where(observed.near_rest, self.at_rest, 0.0)


def quiet_thresholds(observer: MomentumObserver, quiet: Observed, *, false_alarms_per_hour: float = 0.1) -> Thresholds:
    """Set thresholds by a motion during which nothing pushed.

    Of joints that move, the largest residuals of half-second blocks follow Gumbel's law; the threshold is the one that
    a joint passes in its share of the false alarms allowed, and two standard deviations of the torque that the model
    predicts more. Near rest the sign of a joint's friction is not told, and its whole range is added.

    Args:
        observer: of the model.
        quiet: what it made of that motion: ten seconds at least, as lively as what it will watch.
        false_alarms_per_hour: of all joints together.

    Raises:
        FitError: the motion is too short, or the rate is not above 0.

    Source: Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, ch. 3.
    """
    model = observer.model
    modelled = np.asarray(model.robot.modelled)
    at_rest = observer.friction_at_rest()
    beyond = np.maximum(np.abs(quiet.torque) - np.where(quiet.near_rest, at_rest, 0.0), 0.0)
    limits = rarely_passed(beyond, observer.period, false_alarms_per_hour, int(modelled.sum()))
    some = slice(None, None, max(1, len(quiet.q) // 500))
    variance = predicted_covariance(model, quiet.q[some], quiet.dq[some], np.zeros_like(quiet.q[some]))
    predicted = np.sqrt(np.maximum(np.einsum("kjj->kj", variance), 0.0).mean(axis=0))
    torque = np.where(modelled, limits + _SIGMAS * predicted, np.inf)
    moving = quiet.torque[~quiet.near_rest.any(axis=1)]  # with its mean, which is what the model lacks
    covariance = moving.T @ moving / max(1, len(moving)) + np.diag(predicted**2)
    return Thresholds(torque, at_rest, covariance, false_alarms_per_hour, observer.period)


def rarely_passed(sizes: Array, period: float, false_alarms_per_hour: float, channels: int) -> Array:
    """Level of each channel that it passes in its share of the false alarms allowed, by Gumbel's law of block maxima.

    Args:
        sizes: of residuals while nothing pushes, 0 or more, shape (n, n_channels).
        period: of the samples [s].
        false_alarms_per_hour: of all channels together.
        channels: that may give an alarm.

    Returns:
        Levels in the unit of the sizes, shape (n_channels,).

    Raises:
        FitError: the samples are of too short a time, or the rate is not above 0.

    Source: Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, ch. 3.
    """
    length = round(_BLOCK_S / period)
    blocks = len(sizes) // length
    if blocks < _FEWEST_BLOCKS:
        raise FitError(
            f"the quiet motion lasts {len(sizes) * period:.3g} s; thresholds need at least "
            f"{_FEWEST_BLOCKS * _BLOCK_S:g} s"
        )
    if not false_alarms_per_hour > 0.0:
        raise FitError(f"false_alarms_per_hour = {false_alarms_per_hour:g} must be above 0")
    largest = sizes[: blocks * length].reshape(blocks, length, -1).max(axis=1)
    chance = false_alarms_per_hour / 3600.0 * _BLOCK_S / max(1, channels)
    return np.array(
        [float(scipy.stats.gumbel_r.isf(chance, *scipy.stats.gumbel_r.fit(own[own > 0.0]))) for own in largest.T]
    )


def predicted_covariance(model: Model, q: Array, dq: Array, ddq: Array) -> Array:
    """Covariance of the joint torque that a model predicts, of its parameters' [N²·m² or N²].

    Args:
        model: with the covariance of its parameters.
        q, dq, ddq: of the joints [rad or m, and per s, s²], shape (n, n_joints).

    Returns:
        Shape (n, n_joints, n_joints).
    """
    columns, _ = model_columns(model.robot, q, dq, ddq)
    told = np.isfinite(model.sigma)
    own = model.base.project(columns).reshape(-1, model.robot.n_joints, model.base.rank)[:, :, told]
    return np.einsum("kji,il,kml->kjm", own, model.covariance[np.ix_(told, told)], own)


@dataclass(frozen=True)
class Push:
    """Something that pushed.

    Attributes:
        joint: whose torque is the farthest beyond its threshold.
        start, end: seconds from the first sample.
        torque: largest beyond the model's at that joint [N·m or N].
        threshold: there.
    """

    joint: str
    start: float
    end: float
    torque: float
    threshold: float

    def __str__(self) -> str:
        return (
            f"{self.start:.3f} s to {self.end:.3f} s: {self.joint} feels {self.torque:+.3g} beyond its model "
            f"(threshold {self.threshold:.3g})"
        )


def pushes(observed: Observed, thresholds: Thresholds, joint_names: tuple[str, ...]) -> tuple[Push, ...]:
    """Find what pushes: from where a joint passes its threshold until all have been below half of theirs for a while.

    Args:
        observed: by the observer that the thresholds are of.
        thresholds: of the joints.
        joint_names: in order.
    """
    limit = thresholds.of(observed)
    ratio = np.abs(observed.torque) / limit
    above, largest = ratio.max(axis=1) > 1.0, ratio.max(axis=1)
    h = thresholds.period
    quiet, named = max(1, round(_RELEASED_S / h)), max(1, round(_NAMED_S / h))
    found: list[Push] = []
    k = 0
    while k < len(above):
        if not above[k]:
            k += 1
            continue
        end, last = k, k
        while end < len(above) and end - last < quiet:
            last = end if largest[end] > _RELEASED else last
            end += 1
        joint = int(np.argmax(ratio[k : min(k + named, end)].max(axis=0)))
        own = observed.torque[k:end, joint]
        peak = float(own[np.argmax(np.abs(own))])
        found.append(Push(joint_names[joint], k * h, last * h, peak, float(limit[k, joint])))
        k = end
    return tuple(found)


@dataclass(frozen=True, eq=False)
class HandForce:
    """A force at a frame, by the torques beyond the model's.

    Attributes:
        frame: its name.
        force: on the robot, in the axes of its base [N], shape (n, 3).
        sigma: standard deviations, infinite where no joint feels a direction, shape (n, 3).
    """

    frame: str
    force: Array
    sigma: Array


def hand_force(observer: MomentumObserver, observed: Observed, thresholds: Thresholds, frame: str) -> HandForce:
    """Estimate the force at a frame, if all that pushes is one force there.

    argmin (r - T f)ᵀ C⁻¹ (r - T f) with T f the joint torques that balance a force f, and C their covariance while
    nothing pushes.

    Args:
        observer: of the model.
        observed: n samples.
        thresholds: with the covariance.
        frame: name of a link or another frame of the robot.

    Raises:
        FileError: the robot has no such frame.
    """
    robot = observer.model.robot
    units = [external_torques(robot, observed.q, Wrench(frame, axis)) for axis in np.eye(3)]
    # What a lasting force makes of the observed torque while the arm moves, as late as that is.
    columns = observer.lagged(np.stack(units, axis=-1))[:, robot.modelled]
    inverse = np.linalg.inv(thresholds.covariance[np.ix_(robot.modelled, robot.modelled)])
    information = np.einsum("kia,ij,kjb->kab", columns, inverse, columns)
    pull = np.einsum("kia,ij,kj->ka", columns, inverse, observed.torque[:, robot.modelled])
    values, vectors = np.linalg.eigh(information)
    is_told = values > 1e-9 * values[:, -1:]
    reciprocal = np.where(is_told, 1.0 / np.where(is_told, values, 1.0), 0.0)
    force = np.einsum("kab,kb,kcb,kc->ka", vectors, reciprocal, vectors, pull)
    variance = np.einsum("kab,kb,kab->ka", vectors, np.where(is_told, reciprocal, np.inf), vectors)
    return HandForce(frame, force, np.sqrt(variance))
