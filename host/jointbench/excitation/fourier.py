"""The excitation motion: one finite Fourier series per joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointbench.errors import ExcitationError
from jointbench.excitation.margins import JointMargins
from jointbench.robot import Array


@dataclass(frozen=True, eq=False)
class FourierExcitation:
    """A periodic motion, the same each period, that is at rest at home when a period begins and ends.

    q_i(t) = center_i + Σ_l [ a_il/(ωl) sin(ωlt) - b_il/(ωl) cos(ωlt) ],  ω = 2π/period.

    Attributes:
        robot_name: the robot it was made for.
        period: [s].
        center: q_i0 [rad], shape (n_joints,).
        sine, cosine: a and b [rad/s], shape (n_joints, harmonics).
        condition_number: of the base regressor with the drives' columns over one period, columns not scaled.
        margins: per joint, what is left to each limit.
        seed: that it came from.

    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997.
    """

    robot_name: str
    period: float
    center: Array
    sine: Array
    cosine: Array
    condition_number: float
    margins: tuple[JointMargins, ...]
    seed: int

    @property
    def harmonics(self) -> int:
        """Number of harmonics."""
        return self.sine.shape[1]

    @property
    def home(self) -> Array:
        """Position at the beginning and end of a period [rad], shape (n_joints,)."""
        return self.evaluate([0.0])[0][0]

    def evaluate(self, time: ArrayLike) -> tuple[Array, Array, Array]:
        """Position [rad], velocity [rad/s] and acceleration [rad/s²] at times [s], shape (n_times, n_joints) each.

        Raises:
            ExcitationError: time is not one-dimensional.
        """
        times = np.asarray(time, dtype=np.float64)
        if times.ndim != 1:
            raise ExcitationError(f"time has shape {times.shape}; give the times as one row, shape (n_times,)")
        frequencies = 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        angle = np.outer(times, frequencies)
        sin, cos = np.sin(angle), np.cos(angle)
        position = self.center + (sin / frequencies) @ self.sine.T - (cos / frequencies) @ self.cosine.T
        velocity = cos @ self.sine.T + sin @ self.cosine.T
        acceleration = (frequencies * cos) @ self.cosine.T - (frequencies * sin) @ self.sine.T
        return position, velocity, acceleration

    def to_dict(self) -> dict[str, Any]:
        """Return the motion as plain numbers, lists and strings, for JSON or TOML."""
        return {
            "family": "fourier",
            "robot": self.robot_name,
            "period_s": self.period,
            "center": self.center.tolist(),
            "sine": self.sine.tolist(),
            "cosine": self.cosine.tolist(),
            "condition_number": self.condition_number,
            "margins": [
                {key: value for key, value in asdict(margins).items() if value is not None} for margins in self.margins
            ],
            "seed": self.seed,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> FourierExcitation:
        """Make a motion from what `to_dict` returned.

        Raises:
            ExcitationError: an entry is missing, or the coefficients do not fit each other.
        """
        if values.get("family") != "fourier":
            raise ExcitationError(f"family is {values.get('family')!r}; only 'fourier' is known")
        try:
            excitation = FourierExcitation(
                robot_name=str(values["robot"]),
                period=float(values["period_s"]),
                center=np.array(values["center"], dtype=np.float64),
                sine=np.array(values["sine"], dtype=np.float64),
                cosine=np.array(values["cosine"], dtype=np.float64),
                condition_number=float(values["condition_number"]),
                margins=tuple(JointMargins(**margins) for margins in values["margins"]),
                seed=int(values["seed"]),
            )
        except KeyError as error:
            raise ExcitationError(f"the stored excitation has no {error}; it was not written by to_dict") from error
        except (TypeError, ValueError) as error:
            raise ExcitationError(f"the stored excitation is damaged: {error}") from error
        n_joints = excitation.center.shape[0] if excitation.center.ndim == 1 else -1
        shapes = (excitation.sine.shape, excitation.cosine.shape)
        if excitation.sine.ndim != 2 or shapes[0] != shapes[1] or shapes[0][0] != n_joints:
            raise ExcitationError(
                f"the stored excitation is damaged: center {excitation.center.shape}, sine {shapes[0]} and cosine "
                f"{shapes[1]} should be (n_joints,), (n_joints, harmonics) and (n_joints, harmonics)"
            )
        return excitation
