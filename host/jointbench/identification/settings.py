"""Settings of a fit: how a recording becomes rows; and where a result comes from."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal, cast

import numpy as np
import scipy

from jointbench.errors import FitError
from jointbench.recording import Run

POSITIONS = ("motor", "link")
TORQUES = ("motor", "joint")
MOTIONS = ("filtered", "fourier")
VELOCITIES = ("differences", "logged")
DELAYS = ("estimate", "estimate_per_joint")


@dataclass(frozen=True)
class FitSettings:
    """Settings by which a recording becomes rows of a least-squares problem.

    Attributes:
        cutoff_Hz: of the zero-phase low-pass on positions, torques and regressor columns. None: of a log of which
            nothing but its samples is known, the one that predicts quarters of the time best that were left out
            (`choose_cutoff`); of a recording of boards, 10 times the frequency below which 99 % of the motion lies, but
            20 Hz at least and a fifth of the sample rate at most.
        filter_order: of that Butterworth filter's single pass.
        velocity_threshold: rows of a joint not faster than this are not fitted, per joint [rad/s or m/s].
            None: 3 % of the joint's largest speed.
        rest_guard: rows this close to such a slow row are not fitted either [s], because the low-pass smears what
            friction does at rest. None: half a period of the cut-off.
        average_periods: average the periods of a repeated excitation sample by sample before all else.
        reject_outliers: leave samples out of that average that lie far from the median of their phase; needs three
            periods.
        motion: where velocity and acceleration come from: "filtered" positions by differences, or the "fourier" series
            through the averaged positions, where a Fourier series was played.
        velocity: "differences" of the positions, or those "logged" beside them, shifted to the positions' time, of the
            joints that have some. None: of a log whose cut-off is chosen, those that predict time left out better;
            else differences.
        position: which encoder tells the motion, "motor" or "link".
        torque: "motor" (from motor current or torque, through the drives) or "joint" (from joint torque sensors;
            then friction of motor and gear, which acts before the sensor, is not part of what is identified).
        delay: how much later than the torque the motion was recorded [s]: one number, or one per joint; negative where
            the torque is the later one. "estimate": one for all joints, from the recording; "estimate_per_joint".
            None: 0 where it is known what the boards did to the torque, for then nothing else delays it; otherwise one
            for all joints, estimated, and taken out where it explains a fifth of the torque's squared error and is no
            longer than a quarter of the cut-off's period.
        interval: use only samples from..to these times of the recording [s], to hold the rest out. None: all.
        zeros: added to the recorded joint positions, one each [rad or m]. None: those that gravity shows where the
            calibration's tolerances are known, else none.
        tolerances: of the calibration, by the names that they have in files, such as {"zero_deg": 0.5}, over those of
            the robot's file. None: these; without them `Tolerances` for logs, and none for recordings of boards.
            "none": as if the calibration were exact.

    >>> FitSettings(cutoff_Hz=25.0, position="link").cutoff_Hz
    25.0
    """

    cutoff_Hz: float | None = None
    filter_order: int = 4
    velocity_threshold: tuple[float, ...] | None = None
    rest_guard: float | None = None
    average_periods: bool = True
    reject_outliers: bool = True
    motion: Literal["filtered", "fourier"] = "filtered"
    velocity: Literal["differences", "logged"] | None = None
    position: Literal["motor", "link"] = "motor"
    torque: Literal["motor", "joint"] = "motor"
    interval: tuple[float, float] | None = None
    delay: float | tuple[float, ...] | Literal["estimate", "estimate_per_joint"] | None = None
    zeros: tuple[float, ...] | None = None
    tolerances: Mapping[str, Any] | Literal["none"] | None = None

    def __post_init__(self) -> None:
        """Refuse settings that no recording can meet."""
        if isinstance(self.delay, str) and self.delay not in DELAYS:
            words = " or ".join(map(repr, DELAYS))
            raise FitError(f"delay = {self.delay!r} must be a number of seconds, one for each joint, or {words}")
        for name in ("cutoff_Hz", "filter_order", "rest_guard", "velocity_threshold", "interval", "delay", "zeros"):
            value = None if isinstance(getattr(self, name), str) and name == "delay" else getattr(self, name)
            numbers = cast(tuple[Any, ...], value) if isinstance(value, tuple) else () if value is None else (value,)
            if not all(_is_number(number, endless=name == "interval") for number in numbers):
                raise FitError(f"{name} = {value!r} must be made of numbers")
        self._check_shapes()
        for name, words in (("position", POSITIONS), ("torque", TORQUES), ("motion", MOTIONS)):
            if getattr(self, name) not in words:
                raise FitError(f"{name} = {getattr(self, name)!r} must be one of {', '.join(map(repr, words))}")
        if self.velocity is not None and self.velocity not in VELOCITIES:
            raise FitError(f"velocity = {self.velocity!r} must be one of {', '.join(map(repr, VELOCITIES))}")
        if self.rest_guard is not None and self.rest_guard < 0.0:
            raise FitError(f"rest_guard = {self.rest_guard:g} s must be 0 or more")
        if self.velocity_threshold is not None and min(self.velocity_threshold) < 0.0:
            raise FitError(f"velocity_threshold = {list(self.velocity_threshold)} must be 0 or more for each joint")
        if self.interval is not None and not self.interval[0] < self.interval[1]:
            raise FitError(f"interval = {list(self.interval)} must be [from, to] in seconds with from below to")

    def _check_shapes(self) -> None:
        """Refuse a number for several, and several for one."""
        given: dict[str, Any] = vars(self)
        for name in ("cutoff_Hz", "rest_guard"):
            if isinstance(given[name], tuple):
                raise FitError(f"{name} = {given[name]!r} must be one number")
        for name in ("average_periods", "reject_outliers"):
            if not isinstance(given[name], bool):
                raise FitError(f"{name} = {given[name]!r} must be true or false")
        order, speeds, interval = (given[name] for name in ("filter_order", "velocity_threshold", "interval"))
        tolerances, zeros = given["tolerances"], given["zeros"]
        if tolerances not in (None, "none") and not isinstance(tolerances, Mapping):
            raise FitError(f'tolerances = {tolerances!r} must be a table, such as {{"zero_deg": 0.5}}, or "none"')
        if zeros is not None and not (isinstance(zeros, tuple) and zeros):
            raise FitError(f"zeros = {zeros!r} must be a list, one position for each joint")
        if not isinstance(order, int):
            raise FitError(f"filter_order = {order!r} must be a whole number, 1 to 8")
        if speeds is not None and not (isinstance(speeds, tuple) and speeds):
            raise FitError(f"velocity_threshold = {speeds!r} must be a list, one speed for each joint")
        if interval is not None and not (isinstance(interval, tuple) and len(cast(tuple[Any, ...], interval)) == 2):
            raise FitError(f"interval = {interval!r} must be [from, to] in seconds with from below to")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FitSettings:
        """Read settings from plain values, as in a run's provenance or a model file.

        Raises:
            FitError: an unknown name, or a value no recording can meet.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise FitError(f"fit setting {name!r} is not known; the settings are {', '.join(known)}")
        plain: dict[str, Any] = {
            name: tuple(cast(list[float], value)) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**plain)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` reads; None is left out."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


def _is_number(value: object, *, endless: bool) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) or (endless and math.isinf(value))


def provenance(run: Run) -> dict[str, Any]:
    """Return the provenance of one run: its place and hash, its recording, and the versions that computed."""
    return _of_run(run) | {"versions": _versions()}


def provenance_of_all(runs: Sequence[Run], settings: Sequence[FitSettings]) -> dict[str, Any]:
    """Provenance of one run, or under "runs" of several, each with the settings it was observed with."""
    if len(runs) == 1:
        return provenance(runs[0])
    entries = [_of_run(run) | {"settings": chosen.to_dict()} for run, chosen in zip(runs, settings, strict=True)]
    return {"runs": entries, "versions": _versions()}


def _of_run(run: Run) -> dict[str, Any]:
    edits = {"edits": list(run.edits)} if run.edits else {}
    return {"run": str(run.path), "sha256": run.sha256, "recorded": dict(run.provenance), **edits}


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "jointbench": _installed_version(),
    }


def _installed_version() -> str:
    try:
        return metadata.version("jointbench")
    except metadata.PackageNotFoundError:
        return "not installed"
