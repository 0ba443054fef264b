"""Judgement of a result: verdicts, errors of the torque, and information in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.whiteness import RowsBefore, RunningVariance
from jointbench.model import BaseParameters, Robot, model_columns
from jointbench.signals import LowPass

Word = Literal[
    "identified", "poorly excited", "poor fit", "suspicious", "in-sample", "not observable", "refused", "passive"
]  # fmt: skip

_RANKS: dict[Word, int] = {
    "passive": 0, "identified": 1, "poorly excited": 2, "poor fit": 2, "suspicious": 2, "in-sample": 2,
    "not observable": 3, "refused": 3,
}  # fmt: skip

IDENTIFIED_RELATIVE_SIGMA = 0.2
"""A parameter is identified when its σ is at most this share of its value (then it is 5 σ from zero)."""

POORLY_EXCITED_RELATIVE_SIGMA = 0.5
"""… poorly excited up to this share (2 σ from zero), and refused beyond it: its value may be zero."""

GOOD_RELATIVE_ERROR = 0.10
"""A joint's torque is explained when the error is at most this share of the torque, root mean square …"""

POOR_RELATIVE_ERROR = 0.30
"""… a poor fit up to this share, and refused for this joint beyond it."""


GREATEST_OPTIMISM = 1.5
"""Most that a joint's error on time left out may be of that of the fit; beyond, it fits what will not come back."""

_NO_MODEL = "its position is measured, and its torque has no model to judge"
_NO_EFFECT = "it has no effect on the torques of this motion; plan one that moves its joints"


@dataclass(frozen=True)
class Verdict:
    """A judgement in one word, and the figures it rests on in a sentence.

    Attributes:
        name: of the parameter or joint.
        word: "identified"; "poorly excited" by this motion, so that σ is large; "poor fit" of the data, whatever σ is;
            "suspicious" of a log whose check found something; "in-sample" of a small error on motion that was fitted;
            "not observable", as it has no effect on the data; "refused", for the reason beside it; "passive" of a
            joint whose torque has no model to judge.
        reason: why, with the figures.
    """

    name: str
    word: Word
    reason: str

    @property
    def rank(self) -> int:
        """0: passive; 1: identified; 2: to be used with care; 3: not to be used."""
        return _RANKS[self.word]

    @property
    def is_refused(self) -> bool:
        """Return whether the value may not be used: it is refused, or not observable."""
        return self.rank == 3

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], weak: Word) -> Verdict:
        """Read a verdict from a file; `weak` is what this word of older files says here."""
        verdict = cls(**values)
        return replace(verdict, word=weak) if values["word"] == "weak" else verdict

    def __str__(self) -> str:
        return f"{self.name}: {self.word} ({self.reason})"


def judge_parameter(name: str, value: float, sigma: float, unseen: str = "") -> Verdict:
    """Judge one parameter by its value and standard deviation; `unseen` is why it has none, where that is known."""
    if not np.isfinite(sigma):
        return Verdict(name, "not observable", unseen or _NO_EFFECT)
    relative = sigma / abs(value) if value else float("inf")
    figures = f"{value:.4g} ± {sigma:.2g}"
    if relative <= IDENTIFIED_RELATIVE_SIGMA:
        return Verdict(name, "identified", f"{figures}, relative σ {relative:.1%}")
    if relative <= POORLY_EXCITED_RELATIVE_SIGMA:
        above = f"relative σ {relative:.0%} is above {IDENTIFIED_RELATIVE_SIGMA:.0%}"
        return Verdict(name, "poorly excited", f"{figures}, {above}")
    return Verdict(name, "refused", f"{figures} is within 2 σ of zero")


def judge_parameters(
    names: Sequence[str], values: Array, sigmas: Array, unseen: Mapping[str, str] | None = None
) -> tuple[Verdict, ...]:
    """Judge all parameters; `unseen` says of some why they have no σ, as `unseen_parameters` does."""
    why = unseen or {}
    return tuple(
        judge_parameter(name, float(value), float(sigma), why.get(name, ""))
        for name, value, sigma in zip(names, values, sigmas, strict=True)
    )


def judge_joint(
    name: str,
    relative_error: float,
    share: float,
    uninformative: str = "",
    everywhere: float = float("nan"),
    left_out: float = 0.0,
    optimism: float = 1.0,
) -> Verdict:
    """Judge one joint.

    The word is that of the rows where it moves, as which of the others there are depends on the pauses of a motion;
    the error over all rows stands before it.

    Args:
        name: of the joint.
        relative_error: of its torque over the rows where it moves, nan without such rows.
        share: of those rows among all.
        uninformative: why its measured torque tells nothing, where it does not: no error can make up for that.
        everywhere: error of its torque over all rows, nan where that is not known.
        left_out: the same on time left out of the fit, 0 where that is not known: the larger of the two is judged.
        optimism: the one as a multiple of the other; beyond `GREATEST_OPTIMISM` no joint is identified.
    """
    if uninformative:
        return Verdict(name, "refused", uninformative)
    if not np.isfinite(relative_error):
        return Verdict(name, "refused", "the joint never moves away from rest in this run")
    figures = f"torque error {relative_error:.1%} of the torque over {share:.0%} of the time"
    if np.isfinite(everywhere):
        moving = f"{relative_error:.1%} where it moves ({share:.0%} of the time)"
        figures = f"torque error {everywhere:.1%} of the torque, {moving}"
    expected = max(relative_error, left_out)
    if left_out > 0.0:
        figures = f"{figures}, {left_out:.1%} on time left out of the fit"
    if expected <= GOOD_RELATIVE_ERROR and optimism <= GREATEST_OPTIMISM:
        return Verdict(name, "identified", figures)
    if expected <= GOOD_RELATIVE_ERROR:
        return Verdict(name, "poor fit", f"{figures}, more than {GREATEST_OPTIMISM:g} times that of the fit")
    if expected <= POOR_RELATIVE_ERROR:
        return Verdict(name, "poor fit", f"{figures}, above {GOOD_RELATIVE_ERROR:.0%}")
    return Verdict(name, "refused", f"{figures}, above {POOR_RELATIVE_ERROR:.0%}")


def judge_joints(
    names: tuple[str, ...],
    relative_errors: Array,
    shares: Array,
    modelled: NDArray[np.bool_] | None = None,
    reasons: Mapping[str, str] | None = None,
    everywhere: Array | None = None,
    held_out: HeldOutError | None = None,
) -> tuple[Verdict, ...]:
    """Judge all joints of a robot.

    Args:
        names: of the joints.
        relative_errors, shares: as of `judge_joint`, shape (n_joints,).
        modelled: nothing is said against joints that are not (None: all are), shape (n_joints,).
        reasons: of joints whose torque tells nothing, as of `TorqueInformation.reasons`.
        everywhere: errors over all rows, where they are known, shape (n_joints,).
        held_out: errors with and without quarters of the time, where they are known.
    """
    known = np.ones(len(names), dtype=np.bool_) if modelled is None else modelled
    why, whole = reasons or {}, np.full(len(names), np.nan) if everywhere is None else everywhere
    left_out = np.zeros(len(names)) if held_out is None else np.nan_to_num(held_out.left_out)
    optimism = np.ones(len(names)) if held_out is None else held_out.optimism
    rows = zip(names, relative_errors, shares, known, whole, left_out, optimism, strict=True)
    return tuple(
        judge_joint(name, float(error), float(share), why.get(name, ""), float(of_all), float(left), float(times))
        if is_known
        else Verdict(name, "passive", _NO_MODEL)
        for name, error, share, is_known, of_all, left, times in rows
    )


def judge_whole(joints: tuple[Verdict, ...], relative_errors: Array) -> Verdict:
    """Judge a whole model by its worst joint; passive ones do not count, but there must be another."""
    worst = max(range(len(joints)), key=lambda j: (joints[j].rank, np.nan_to_num(relative_errors[j], nan=np.inf)))
    return Verdict("model", joints[worst].word, f"worst joint {joints[worst].name}: {joints[worst].reason}")


FOLDS = 5
"""Of rows, each held out once, to choose between candidates."""


def simplest_within_one_standard_error(held_out: Array) -> int:
    """Return the first candidate whose mean error is within one standard error of the least.

    Args:
        held_out: mean square error of each candidate on each fold, the simplest first, shape (n, n_folds).

    Source: Breiman et al., Classification and Regression Trees, 1984, sec. 3.4.3.
    """
    means = held_out.mean(axis=1)
    least = int(np.argmin(means))
    differences = held_out - held_out[least]
    standard_error = differences.std(axis=1, ddof=1) / held_out.shape[1] ** 0.5
    return int(np.flatnonzero(means - means[least] <= standard_error)[0])


@dataclass(frozen=True)
class TorqueError:
    """Errors of predicted torque over some rows; relative means rms error / rms measured torque.

    Attributes:
        rms: per joint [N·m or N], nan for a joint without rows, shape (n_joints,).
        relative: per joint, shape (n_joints,).
        total_relative: of all joints' torques together, ‖error‖ / ‖torque‖.
        share: of the joint's complete rows that are counted, shape (n_joints,).
        r_squared: per joint, what part of the torque's variance about its mean is predicted, negative where the mean
            alone would do better; nan where the torque does not vary, shape (n_joints,).
    """

    rms: Array
    relative: Array
    total_relative: float
    share: Array
    r_squared: Array

    def to_dict(self) -> dict[str, Any]:
        """Plain names and arrays, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TorqueError:
        """Read what `to_dict` wrote, None for nan; files of before there was R² have none."""
        total = values["total_relative"]
        rms = np.array(values["rms"], dtype=np.float64)
        return cls(
            rms=rms,
            relative=np.array(values["relative"], dtype=np.float64),
            total_relative=float("nan") if total is None else float(total),
            share=np.array(values["share"], dtype=np.float64),
            r_squared=np.array(values.get("r_squared", [None] * len(rms)), dtype=np.float64),
        )


class TwoErrors(NamedTuple):
    """Errors over all complete rows, those near rest included, and over those where the joints move."""

    all: TorqueError
    moving: TorqueError

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> TwoErrors:
        """Read both."""
        return TwoErrors(TorqueError.from_dict(values["all"]), TorqueError.from_dict(values["moving"]))


@dataclass(frozen=True)
class HeldOutError:
    """Errors over the fitted rows relative to the torque, of a fit to all of them and of fits without their quarter.

    Attributes:
        in_sample: error of the parameters fitted to all rows, nan for a joint without rows, shape (n_joints,).
        left_out: error of each quarter of the time by the parameters fitted to the other three, shape (n_joints,).
    """

    in_sample: Array
    left_out: Array

    @property
    def optimism(self) -> Array:
        """Error left out as a multiple of that of the fit, 1 where there is none, shape (n_joints,)."""
        known = self.in_sample > 0.0
        return np.divide(self.left_out, self.in_sample, out=np.ones(len(known)), where=known)

    def to_dict(self) -> dict[str, Any]:
        """Plain names and arrays, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HeldOutError:
        """Read what `to_dict` wrote, None for nan."""
        return cls(*(np.array(values[name], dtype=np.float64) for name in ("in_sample", "left_out")))


class ErrorSums:
    """Sums over blocks of rows, of which a `TorqueError` is made: no log is too long."""

    def __init__(self, n_joints: int) -> None:
        """Nothing counted yet."""
        self._squares, self._power = np.zeros((2, n_joints))
        self._torque = RunningVariance(n_joints)
        self._complete = 0

    def add(self, measured: Array, predicted: Array, counted: NDArray[np.bool_], complete: NDArray[np.bool_]) -> None:
        """Count a block.

        Args:
            measured, predicted: [N·m or N], shape (n, n_joints).
            counted: rows to compare, shape (n, n_joints).
            complete: rows that could be compared, shape (n,).
        """
        self._squares += np.sum(np.where(counted, predicted - measured, 0.0) ** 2, axis=0)
        self._power += np.sum(np.where(counted, measured, 0.0) ** 2, axis=0)
        self._torque.add(measured, counted)
        self._complete += int(complete.sum())

    def result(self) -> TorqueError:
        """The errors over all that was added."""
        rows, variation = self._torque.rows.astype(np.float64), self._torque.squares
        squares, power = self._squares.sum(), self._power.sum()
        return TorqueError(
            rms=np.sqrt(_ratio(self._squares, rows)),
            relative=np.sqrt(_ratio(self._squares, self._power)),
            total_relative=float(np.sqrt(squares / power)) if power > 0.0 else float("nan"),
            share=rows / max(1, self._complete),
            r_squared=1.0 - _ratio(self._squares, variation),
        )


def torque_error(
    measured: Array, predicted: Array, counted: NDArray[np.bool_], complete: NDArray[np.bool_]
) -> TorqueError:
    """Compare torques over the counted rows.

    Args:
        measured, predicted: [N·m or N], shape (n, n_joints).
        counted: rows to compare, shape (n, n_joints).
        complete: rows that could be compared, shape (n,).
    """
    sums = ErrorSums(measured.shape[1])
    sums.add(measured, predicted, counted, complete)
    return sums.result()


def _ratio(above: Array, below: Array) -> Array:
    """The quotient, nan where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0.0)


_DIFFERENCE = np.array([-1.0, 3.0, -3.0, 1.0])
"""Leaves of white noise √20 times its deviation, of what moves at a twentieth of the rows' rate 3 %: that is where the
default cut-off puts a motion's fastest part."""

_FEWEST = 50
"""Differences below which the noise is not judged: 50 tell a deviation to about 15 %."""

_STUCK = 1e-9
"""Variation, relative to the torque itself, that is rounding."""

_SIGNALS = {"motor": "current", "joint": "torque sensor"}


@dataclass(frozen=True)
class TorqueInformation:
    """Variation of each joint's torque over the rows where it moves, beside its noise in the same band.

    Attributes:
        variation: standard deviation about the mean, noise taken out [N·m or N]; nan without rows, shape (n_joints,).
        noise: standard deviation of what no smooth curve through neighbouring rows follows, or of what differs from
            repeat to repeat, whichever is larger [N·m or N]; nan where too few rows follow each other, (n_joints,).
    """

    variation: Array
    noise: Array

    @property
    def informative(self) -> NDArray[np.bool_]:
        """True for joints whose torque varies more than its noise, or may do so, shape (n_joints,)."""
        return ~(self.variation <= np.maximum(np.nan_to_num(self.noise), 0.0))

    def reasons(self, robot: Robot, torque: str = "motor") -> dict[str, str]:
        """Return the reason of each joint that is not informative; `torque` is the settings', "motor" or "joint"."""
        reasons: dict[str, str] = {}
        for joint in np.flatnonzero(~self.informative):
            name, signal = robot.joint_names[joint], _SIGNALS[torque]
            unit = "N·m" if robot.independent_joints[joint].kind == "revolute" else "N"
            variation, noise = float(self.variation[joint]), float(self.noise[joint])
            if variation == 0.0 and not noise > 0.0:
                reasons[name] = f"{name}'s {signal} does not vary: it is stuck, or not connected"
            else:
                reasons[name] = f"{name}'s {signal} is below its noise ({variation:.2g} of {noise:.2g} {unit})"
        return reasons

    def to_dict(self) -> dict[str, Any]:
        """Plain names and arrays, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TorqueInformation:
        """Read what `to_dict` wrote, None for nan."""
        return cls(*(np.array(values[name], dtype=np.float64) for name in ("variation", "noise")))

    @classmethod
    def unknown(cls, n_joints: int) -> TorqueInformation:
        """Return that of files from before this was computed: nan."""
        return cls(np.full(n_joints, np.nan), np.full(n_joints, np.nan))


class InformationSums:
    """Sums over blocks of torque rows, of which a `TorqueInformation` is made."""

    def __init__(self, n_joints: int) -> None:
        """No row yet."""
        self._torque = RunningVariance(n_joints)
        self._power, self._differences = np.zeros((2, n_joints))
        self._counted = np.zeros(n_joints, dtype=np.intp)
        self._before = RowsBefore(len(_DIFFERENCE) - 1, n_joints)

    def add(self, start: int, torque: Array, used: NDArray[np.bool_]) -> None:
        """Count a block.

        Args:
            start: place of its first row on the grid of times; blocks come in order.
            torque: [N·m or N], shape (n, n_joints).
            used: rows that are fitted, shape (n, n_joints).
        """
        self._torque.add(torque, used)
        self._power += np.sum(np.where(used, torque, 0.0) ** 2, axis=0)
        n = len(torque)
        torque, used = self._before.join(start, torque, used)
        counted = np.logical_and.reduce([used[lag : lag + n] for lag in range(len(_DIFFERENCE))])
        difference = sum(weight * torque[lag : lag + n] for lag, weight in enumerate(_DIFFERENCE))
        self._differences += np.sum(np.where(counted, difference, 0.0) ** 2, axis=0)
        self._counted += counted.sum(axis=0)

    def result(self, repeat_noise: Array | None = None) -> TorqueInformation:
        """Return the information of the rows so far.

        var = Σ (torque - mean)² / n;  noise² = Σ (Δ³ torque)² / (20 n);  variation² = var - noise².

        Args:
            repeat_noise: what differs from repeat to repeat, brought into the band of the rows by `noise_in_band`,
                nan where there are no repeats, shape (n_joints,).

        Source: differences as in von Neumann, Ann. Math. Statist. 12(4), 1941, and Gasser, Sroka & Jennen-Steinmetz,
        Biometrika 73(3), 1986. What the low-pass leaves of white noise is a tenth larger than they find.
        """
        rows = self._torque.rows
        enough = self._counted >= _FEWEST
        noise = np.full(len(rows), np.nan)
        noise[enough] = np.sqrt(self._differences[enough] / self._counted[enough] / np.sum(_DIFFERENCE**2))
        if repeat_noise is not None:
            noise = np.fmax(noise, repeat_noise)
        variance = self._torque.squares / np.maximum(rows, 1)
        # A stuck signal varies by rounding alone, which is neither variation nor noise.
        stuck = variance <= _STUCK**2 * self._power / np.maximum(rows, 1)
        noise[stuck & enough] = 0.0
        variation = np.sqrt(np.maximum(variance - np.nan_to_num(noise) ** 2, 0.0))
        variation[stuck] = 0.0
        return TorqueInformation(np.where(rows > 0, variation, np.nan), noise)


def noise_in_band(noise: Array, low_pass: LowPass) -> Array:
    """White noise of the raw samples, as the low-pass leaves it, standard deviation alike [N·m or N]."""
    reach = low_pass.settling + 1
    impulse = np.zeros(2 * reach + 1)
    impulse[reach] = 1.0
    return noise * float(np.linalg.norm(low_pass.apply(impulse)))


def unseen_parameters(base: BaseParameters, robot: Robot, reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the reason of each parameter that a fit without some joints' torques cannot tell.

    Args:
        base: the parameters.
        robot: whose they are.
        reasons: of the joints that were left out, as `TorqueInformation.reasons` has them.

    Returns:
        By leading name, of the parameters that act on a joint left out: why they are not told, if they are not.
    """
    if not reasons:
        return {}
    motion = np.random.default_rng(0).standard_normal((3, 4, robot.n_joints))
    columns = np.abs(base.project(model_columns(robot, *motion)[0])).reshape(4, robot.n_joints, base.rank).max(axis=0)
    # Beside rounding of the columns, whose largest entries are about one.
    acts = columns > 1e-9 * np.maximum(columns.max(axis=0), 1.0)
    names = robot.joint_names
    why: dict[str, str] = {}
    for name, joints in zip(base.leading_names, acts.T, strict=True):
        through = [names[joint] for joint in np.flatnonzero(joints)]
        missing = [reasons[joint] for joint in through if joint in reasons]
        if missing:
            where = "seen only through" if len(missing) == len(through) else "not told without"
            why[name] = f"{where} {', '.join(joint for joint in through if joint in reasons)}: {'; '.join(missing)}"
    return why
