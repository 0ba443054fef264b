"""Friction of a robot over dates and temperatures, from the models of its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.comparison import check_comparable
from jointbench.identification.model import Model
from jointbench.identification.torque_difference import AllParameters, MotionTorque
from jointbench.recording import Run
from jointbench.signals import Motion

Word: TypeAlias = Literal["steady", "grown", "fallen", "not known"]

STANDS_OUT = 3.0
"""Number of σ from which on a change of friction is one."""

MATTERS = 0.1
"""Share of the friction from which on a change that stands out is worth an alarm."""

_FEWEST = 4
"""Sessions before the last one that a law of temperature takes: a line through two leaves no doubt about itself."""

_WARMTH = 4.0
"""Spread of their temperatures that it takes [K]: sensors on motors follow the gears' oil to some 2 K."""

SPEED = 0.25
"""Share of the velocity limit at which friction is compared, where nobody says another."""


class Session(NamedTuple):
    """A recording of a robot, and the model that was fitted to it.

    Attributes:
        name: of its folder or file.
        model: as fitted.
        run: what it was fitted to; None where that is gone.
    """

    name: str
    model: Model
    run: Run | None

    @property
    def date(self) -> str:
        """Date and time of the recording (UTC, ISO 8601); empty where no file says it."""
        return "" if self.run is None else str(self.run.provenance.get("recorded", ""))

    @property
    def temperature(self) -> Array:
        """Mean temperature of each motor during the recording [K], nan where not measured, shape (n_joints,)."""
        n = self.model.robot.n_joints
        if self.run is None or self.run.samples.temperature is None:
            return np.full(n, np.nan)
        measured = self.run.samples.temperature
        known = np.isfinite(measured)
        counts = known.sum(axis=0)
        return np.divide(np.where(known, measured, 0.0).sum(axis=0), counts, out=np.full(n, np.nan), where=counts > 0)


class Change(NamedTuple):
    """Friction of one joint in the last session, beside what those before let expect.

    Attributes:
        word: "steady", "grown", "fallen", or "not known".
        friction, sigma: in the last session [N·m or N].
        expected, expected_sigma: by the sessions before, at the last one's temperature where they show its effect.
        per_kelvin, per_kelvin_sigma: change of friction with temperature [N·m/K or N/K]; nan where it is not seen.
    """

    word: Word
    friction: float
    sigma: float
    expected: float
    expected_sigma: float
    per_kelvin: float
    per_kelvin_sigma: float


@dataclass(frozen=True, eq=False)
class History:
    """Friction of a robot's joints over its sessions, in order of their dates.

    Attributes:
        sessions: oldest first.
        speeds: at which friction is compared [rad/s or m/s], shape (n_joints,).
        friction: torque of friction at these speeds, mean of both directions [N·m or N], nan where a model does not
            tell it, shape (n_sessions, n_joints).
        sigma: its standard deviation, infinite there, shape (n_sessions, n_joints).
        temperature: of each motor [K], nan where not measured, shape (n_sessions, n_joints).
    """

    sessions: tuple[Session, ...]
    speeds: Array
    friction: Array
    sigma: Array
    temperature: Array

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.sessions[0].model.robot.joint_names

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Change of each joint's friction up to the last session.

        The sessions before are averaged, each by its σ; where they scatter by more, their mean's σ grows accordingly.
        Where four or more of them cover 4 K and the slope stands out of three σ, a line over temperature takes the
        place of the mean. Friction has changed when it is three σ of the difference and a tenth from that.
        """
        columns = zip(self.friction.T, self.sigma.T, self.temperature.T, strict=True)
        return tuple(_change(*of_joint) for of_joint in columns)

    @property
    def grown(self) -> tuple[str, ...]:
        """Joints whose friction has grown."""
        pairs = zip(self.joint_names, self.changes, strict=True)
        return tuple(name for name, change in pairs if change.word == "grown")


def history(sessions: Sequence[Session], speed: float = SPEED) -> History:
    """Put the friction of a robot's joints beside each other, session by session.

    Friction of a joint is (τ(+v) - τ(-v)) / 2 with the others at rest: what all its parameters and laws make of it at
    one speed. Coulomb and viscous friction by themselves are correlated, and may change against each other by nothing
    but noise. σ is that of repeated recordings of one robot, as a calibration that is wrong stays so.

    Args:
        sessions: in any order where all have dates, else oldest first.
        speed: share of each joint's velocity limit (1 rad/s or 1 m/s where it has none) at which friction is compared.

    Returns:
        The history, which judges the last session.

    Raises:
        FitError: there are none, two are of one recording, their parameters do not stand for the same, or the speed is
            not above 0.

    >>> from jointbench.identification.history import Session, history
    >>> run = jb.open_run("runs/arm")
    >>> [change.word for change in history([Session("arm", jb.fit(run), run)]).changes]  # there is nothing before it
    ['not known', 'not known']
    """
    if not sessions:
        raise FitError("a history needs at least one recording with its model; `jointbench fit` writes model.json")
    if not 0.0 < speed <= 1.0:
        raise FitError(f"speed = {speed:g} must be a share of the velocity limit above 0 and up to 1, such as {SPEED}")
    by_run: dict[str, str] = {}
    for name, model, _ in sessions:
        check_comparable(sessions[0].model, model)
        digest = str(model.provenance.get("sha256", name))
        if digest in by_run:
            raise FitError(f"{by_run[digest]} and {name} are models of one recording; leave one out")
        by_run[digest] = name
    dated = all(session.date for session in sessions)
    ordered = tuple(sorted(sessions, key=lambda session: session.date) if dated else sessions)
    limits = sessions[0].model.robot.velocity_limits
    speeds = speed * np.where(np.isfinite(limits), limits, 1.0)
    values, sigmas = zip(*(friction_at(session.model, speeds) for session in ordered), strict=True)
    temperature = np.stack([session.temperature for session in ordered])
    return History(ordered, speeds, np.stack(values), np.stack(sigmas), temperature)


def friction_at(model: Model, speeds: Array) -> tuple[Array, Array]:
    """Torque of each joint's friction at a speed, mean of both directions, and its σ.

    Args:
        model: with Coulomb and viscous friction, or laws in their place.
        speeds: [rad/s or m/s], shape (n_joints,).

    Returns:
        Friction [N·m or N], nan where the model does not tell it, and σ, infinite there, shape (n_joints,) each.
    """
    robot, parameters = model.robot, AllParameters.of(model)
    n = robot.n_joints
    velocity = np.vstack([np.diag(speeds), -np.diag(speeds)])
    rest = np.zeros_like(velocity)
    torque = MotionTorque(model, Motion(rest + np.asarray(robot.home), velocity, rest))
    joints = np.arange(n)

    def odd(values: Array) -> Array:
        """Half the difference of both directions at each joint: what is even in velocity, such as weight, is gone."""
        return 0.5 * (values[joints, joints] - values[n + joints, joints])

    known = np.isfinite(parameters.sigma)
    columns = odd(torque.columns(parameters.values))
    told = ~(np.abs(columns[:, ~known]) > 0.0).any(axis=1) & robot.modelled
    covariance = np.where(np.outer(known, known), parameters.covariance, 0.0)
    variance = np.einsum("jp,pr,jr->j", columns, covariance, columns, optimize=True)
    friction = np.where(told, odd(torque.at(parameters.values)), np.nan)
    return friction, np.where(told, np.sqrt(np.maximum(variance, 0.0)), np.inf)


def _change(friction: Array, sigma: Array, temperature: Array) -> Change:
    """Judge the last session of one joint by those before, shape (n_sessions,) each."""
    before = np.isfinite(sigma[:-1])
    last, last_sigma = float(friction[-1]), float(sigma[-1])
    if not before.any() or not np.isfinite(last_sigma):
        return Change("not known", last, last_sigma, *[float("nan")] * 4)
    values, sigmas, warm = friction[:-1][before], sigma[:-1][before], temperature[:-1][before]
    expected, expected_sigma = _weighted(np.ones((len(values), 1)), values, sigmas, np.ones(1))
    slope = slope_sigma = float("nan")
    if np.isfinite(temperature[-1]) and np.isfinite(warm).all() and len(warm) >= _FEWEST and np.ptp(warm) >= _WARMTH:
        columns = np.stack([np.ones(len(warm)), warm - temperature[-1]], axis=1)
        b, b_sigma = _weighted(columns, values, sigmas, np.array([0.0, 1.0]))
        if abs(b) > STANDS_OUT * b_sigma:
            slope, slope_sigma = b, b_sigma
            expected, expected_sigma = _weighted(columns, values, sigmas, np.array([1.0, 0.0]))
    step = last - expected
    real = abs(step) > STANDS_OUT * np.hypot(last_sigma, expected_sigma) and abs(step) > MATTERS * abs(expected)
    word: Word = "steady" if not real else "grown" if step > 0.0 else "fallen"
    return Change(word, last, last_sigma, expected, expected_sigma, slope, slope_sigma)


def _weighted(columns: Array, values: Array, sigmas: Array, combination: Array) -> tuple[float, float]:
    """Weighted least squares: value and σ of a combination of its parameters; σ grows where values scatter by more."""
    weighted = columns / sigmas[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted)
    parameters = covariance @ weighted.T @ (values / sigmas)
    freedom = len(values) - len(combination)
    scatter = float(np.sum((values / sigmas - weighted @ parameters) ** 2)) / freedom if freedom > 0 else 1.0
    variance = float(combination @ covariance @ combination) * max(scatter, 1.0)
    return float(combination @ parameters), float(np.sqrt(variance))
