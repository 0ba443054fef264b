"""The friction experiment of system A as printed, on the plant's own laws: strokes of ±90°, 61 speeds, pauses.

It takes 55 minutes of the robot's time an axis, which emulated boards and the physics of six joints pass in about as
long; so it is not played on them. Nothing accelerates in the steady part of a stroke, and gravity turns nothing in the
paper's pose: what motors give there is friction, the current's own errors, and no more. The quicker stairs of
`friction_experiment`, which are played, stand beside it.

Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024, eq. 17 to 21.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hil_tests.virtual_bench.friction import MeshRipple
from jointbench.arrays import Array
from jointbench.identification.friction import FrictionData, FrictionFit, SpeedSweep, fit_friction, friction_law

POINTS = 90
"""Of a stroke's steady part that are looked at: two degrees apart."""

OFFSET_SHARE = 0.01
"""Of the largest friction, by which the two directions differ alike: what the paper calls modelling error, τn."""


@dataclass(frozen=True, eq=False)
class PrintedExperiment:
    """What both directions of each speed gave.

    Attributes:
        speeds: of the strokes [rad/s], shape (n_speeds,).
        friction: by eq. 20, at each of POINTS places of a stroke [N·m], shape (n_speeds, POINTS).
        truth: what rubbed then, the mean over a tooth [N·m], shape (n_speeds,).
    """

    speeds: Array
    friction: Array
    truth: Array

    @property
    def means(self) -> FrictionData:
        """A row for each speed."""
        return FrictionData(self.speeds, self.friction.mean(axis=1))

    @property
    def samples(self) -> FrictionData:
        """All points of all strokes."""
        return FrictionData(np.repeat(self.speeds, self.friction.shape[1]), self.friction.ravel())

    def error(self, fit: FrictionFit) -> float:
        """RMS of a law's difference to what rubbed, as a share of the RMS of that."""
        off = fit.torque(FrictionData(self.speeds, self.truth)) - self.truth
        return float(np.sqrt(np.mean(off**2) / np.mean(self.truth**2)))

    def r_squared_of_samples(self, fit: FrictionFit) -> float:
        """R² of a law over all points of all strokes."""
        samples = self.samples
        left = samples.torque - fit.torque(samples)
        return float(1.0 - np.mean(left**2) / np.var(samples.torque))


def combined(first: tuple[Array, Array], second: tuple[Array, Array], *, pitch: bool) -> Array:
    """Friction of one axis of a pair by eq. 20, of the torques of its motors one way and back [N·m].

    τf1 = (T1(+) - T2(+) - T1(-) + T2(-))/2 of the rotation, τf2 = (T1(+) + T2(+) - T1(-) - T2(-))/2 of the pitch.

    Args:
        first, second: of motor 1 and of motor 2, each one way and back.
        pitch: which of the two.
    """
    sign = 1.0 if pitch else -1.0
    there, back = (one + sign * other for one, other in zip(first, second, strict=True))
    return 0.5 * (there - back)


def experiment(
    friction: Mapping[str, Any], *, pitch: bool, noise: float, seed: int, sweep: SpeedSweep | None = None
) -> PrintedExperiment:
    """Move one axis of a pair to and fro at each speed, and combine what its motors give.

    Args:
        friction: of the plant's joint, as `read_truth` tells it.
        pitch: whether it is the pair's pitch.
        noise: rms of a motor's torque at one point [N·m].
        seed: of the noise.
        sweep: the strokes; None: as printed.
    """
    sweep = sweep or SpeedSweep()
    rng = np.random.default_rng(seed)
    ripple = MeshRipple(
        friction["mesh_ripple"],
        friction["mesh_teeth"],
        1,
        second=friction["mesh_second"],
        phases=np.array(friction["mesh_phases"])[:, None],
        warming=friction["warming"],
        warming_time=friction["warming_time"],
    )
    steady = mean_friction(friction, sweep.speeds)
    offset = OFFSET_SHARE * float(steady.max())
    found, truth = np.empty((len(steady), POINTS)), np.empty(len(steady))
    time = 0.0
    for k, speed in enumerate(sweep.speeds.tolist()):
        ramp = 0.5 * speed**2 / sweep.acceleration
        places = np.linspace(sweep.lower + ramp, sweep.upper - ramp, POINTS)
        ways: list[tuple[Array, Array]] = []
        warmth: list[float] = []
        for direction in (1.0, -1.0):
            swell = np.ones(POINTS)
            for i, place in enumerate(places.tolist()):
                at = (place - sweep.lower if direction > 0.0 else sweep.upper - place) / speed
                ripple.turn_to(np.array([place]), time + at)
                swell[i] = ripple.swell(np.ones(1))[0]
            rubbing = direction * (swell * (steady[k] - viscous(friction, speed)) + viscous(friction, speed))
            needed = rubbing + offset
            # Each motor gives half of it, with the sign that its bevel has in the joint's motion.
            ways.append(tuple(0.5 * needed * sign + noise * rng.standard_normal(POINTS) for sign in _signs(pitch)))  # type: ignore[arg-type]
            warmth.append(warm(friction, time + 0.5 * (sweep.upper - sweep.lower) / speed))
            time += (sweep.upper - sweep.lower) / speed + speed / sweep.acceleration + sweep.pause
        (first_there, second_there), (first_back, second_back) = ways
        found[k] = combined((first_there, first_back), (second_there, second_back), pitch=pitch)
        rub = viscous(friction, speed)
        truth[k] = rub + (steady[k] - rub) * float(np.mean(warmth))
    return PrintedExperiment(sweep.speeds, found, truth)


def _signs(pitch: bool) -> tuple[float, float]:
    return (1.0, 1.0) if pitch else (1.0, -1.0)


def mean_friction(friction: Mapping[str, Any], speed: Array) -> Array:
    """What rubs at steady speeds above zero, the mean over a tooth of cold gears [N·m]."""
    g1, g2, g3, g4, g5, g6 = friction["gammas"]
    grease = friction["grease_drag"] * speed ** (2.0 / 3.0)
    return g1 * (np.tanh(g2 * speed) - np.tanh(g3 * speed)) + g4 * np.tanh(g5 * speed) + g6 * speed + grease


def viscous(friction: Mapping[str, Any], speed: float) -> float:
    """The part that neither teeth nor warmth change in the plant [N·m]."""
    return friction["gammas"][5] * speed


def warm(friction: Mapping[str, Any], time: float) -> float:
    """What is left of the rest of it after so long [s], as a share."""
    return float(1.0 + friction["warming"] * np.expm1(-time / friction["warming_time"]))


def papers_law(found: PrintedExperiment, seed: int) -> FrictionFit:
    """Makkar's law by the paper's swarm: six dimensions, 200 iterations, constriction; of all points of all strokes."""
    samples = found.samples
    return fit_friction(samples, friction_law("makkar", samples), method="particle_swarm", seed=seed)


def our_law(found: PrintedExperiment) -> FrictionFit:
    """The same law by variable projection, of the means over whole teeth."""
    means = found.means
    return fit_friction(means, friction_law("makkar", means))
