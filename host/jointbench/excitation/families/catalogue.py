"""Families of motion by name, and the stored form of their motions.

Stored are the weights, which give the very same motion back, and the series or way points that follow from them, for
other readers. Motions stored before weights were are read from their series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.families.fourier import RampedFourier, RestToRestFourier
from jointbench.excitation.families.speed_stairs import SpeedStairs
from jointbench.excitation.families.splines import PointToPoint, UniformSpline

FAMILIES: dict[str, type[Basis]] = {
    "fourier": RestToRestFourier,
    "ramped_fourier": RampedFourier,
    "point_to_point": PointToPoint,
}
"""Families that a planner can search in."""

STORED_FAMILIES: dict[str, type[Basis]] = FAMILIES | {"speed_stairs": SpeedStairs, "spline": UniformSpline}
"""Families that can be stored."""


DEFAULT_PERIOD = 20.0
"""Default period [s]."""

_ROUNDING = 1e-9
"""Share by which numbers that follow from each other may differ: rounding is below 1e-13 of them, a slip far above."""

_STAIRS_KEYS = {
    "first": "first_rad_s",
    "step": "step_rad_s",
    "hold": "hold_s",
    "change": "change_s",
    "reach": "reach_rad",
    "acceleration": "acceleration_rad_s2",
}
"""Keys of a stair's settings where they are stored."""

StoredMotion = tuple[Basis, Array, Array]
"""Basis, home and weights."""


def make_basis(
    family: str = "fourier",
    *,
    harmonics: int | Sequence[int] = 5,
    period: float = DEFAULT_PERIOD,
    ramp: float = 2.0,
    periods: int = 1,
    points: int = 10,
) -> Basis:
    """Make a family of motions from what a user says of it; what does not concern the family is not looked at.

    Args:
        family: "fourier", a series that is itself at rest where it begins and ends; "ramped_fourier", a free series
            between two ramps; "point_to_point", moves through way points.
        harmonics: of a series: their number, or the chosen multiples of its base frequency.
        period: of a series, or of all moves together [s].
        ramp: of each ramp [s].
        periods: how often a series is repeated between its ramps.
        points: number of way points.

    Raises:
        ExcitationError: an unknown family, or a setting that is impossible for it.
    """
    harmonics = harmonics if isinstance(harmonics, int) else tuple(harmonics)
    match family:
        case "fourier":
            return RestToRestFourier(harmonics, period)
        case "ramped_fourier":
            return RampedFourier(harmonics, period, ramp, periods)
        case "point_to_point":
            return PointToPoint(points, period / max(points + 1, 1))
        case _:
            raise unknown_family(family)


def family_name(basis: Basis) -> str:
    """Name of a basis' family.

    Raises:
        ExcitationError: it is of none of the families.
    """
    for name, kind in STORED_FAMILIES.items():
        if isinstance(basis, kind):
            return name
    raise unknown_family(type(basis).__name__)


def unknown_family(name: object) -> ExcitationError:
    """Return the error that says which families there are."""
    return ExcitationError(f"family is {name!r}; there is {', '.join(map(repr, FAMILIES))}")


def motion_to_dict(basis: Basis, home: Array, weights: Array) -> dict[str, Any]:
    """Return a motion as plain numbers, lists and strings.

    Raises:
        ExcitationError: the basis is of none of the families.
    """
    values: dict[str, Any] = {"family": family_name(basis), "home": home.tolist(), "weights": weights.tolist()}
    match basis:
        case RestToRestFourier():
            sine, cosine = basis.coefficients(weights)
            center = home + (cosine / basis.frequencies).sum(axis=1)
            return values | {"period_s": basis.period} | _series(basis, center, sine, cosine)
        case RampedFourier():
            center, sine, cosine = basis.coefficients(weights)
            durations = {"period_s": basis.period, "ramp_s": basis.ramp, "periods": basis.periods}
            return values | durations | _series(basis, home + center, sine, cosine)
        case PointToPoint():
            return values | {"segment_s": basis.segment, "way_points": (home[:, None] + weights).T.tolist()}
        case SpeedStairs():
            settings = {key: getattr(basis, name) for name, key in _STAIRS_KEYS.items()}
            return values | settings | {"n_speeds": basis.n_speeds, "directions": weights[:, 0].tolist()}
        case UniformSpline():
            return values | {"duration_s": basis.duration, "steps": basis.steps}
        case _:
            raise unknown_family(type(basis).__name__)


def motion_from_dict(values: Mapping[str, Any]) -> StoredMotion:
    """Make a motion from what `motion_to_dict` returned, or what was stored of a Fourier series before.

    Raises:
        ExcitationError: an unknown family, or entries that are missing, damaged or contradict each other.
    """
    readers_in_order = _read_fourier, _read_ramped_fourier, _read_point_to_point, _read_stairs, _read_spline
    readers = dict(zip(STORED_FAMILIES, readers_in_order, strict=True))
    try:
        if values["family"] not in readers:
            raise unknown_family(values["family"])
        basis, home, weights = readers[values["family"]](values)
        return basis, _checked_against(values, "home", home), _checked_against(values, "weights", weights)
    except KeyError as error:
        raise ExcitationError(f"the stored excitation has no {error}; it was not written by to_dict") from error
    except (TypeError, ValueError) as error:
        raise ExcitationError(f"the stored excitation is damaged: {error}") from error


def _series(basis: RestToRestFourier | RampedFourier, center: Array, sine: Array, cosine: Array) -> dict[str, Any]:
    return {
        "harmonics": basis.orders.astype(int).tolist(),
        "center": center.tolist(),
        "sine": sine.tolist(),
        "cosine": cosine.tolist(),
    }


def _read_fourier(values: Mapping[str, Any]) -> StoredMotion:
    period, harmonics, center, sine, cosine = _read_series(values)
    basis = RestToRestFourier(harmonics, period)
    for row, coefficients in ((np.ones_like(basis.orders), sine), (basis.orders, cosine)):
        if np.any(np.abs(coefficients @ row) > _ROUNDING * (np.abs(coefficients) @ row)):
            raise ValueError("its series is not at rest where a period begins")
    home = center - (cosine / basis.frequencies).sum(axis=1)
    return basis, home, basis.weights_of(sine, cosine)


def _read_ramped_fourier(values: Mapping[str, Any]) -> StoredMotion:
    period, harmonics, center, sine, cosine = _read_series(values)
    basis = RampedFourier(harmonics, period, float(values["ramp_s"]), int(values["periods"]))
    home = _read_finite(values, "home", 1)  # a free series does not say where it was entered from
    if home.shape != center.shape:
        raise ValueError(f"home {home.shape} and center {center.shape} should both be (n_joints,)")
    return basis, home, basis.weights_of(center - home, sine, cosine)


def _read_point_to_point(values: Mapping[str, Any]) -> StoredMotion:
    home, way_points = _read_finite(values, "home", 1), _read_finite(values, "way_points", 2)
    if way_points.shape[1] != len(home):
        raise ValueError(f"way_points {way_points.shape} and home {home.shape} should be (points, n) and (n,)")
    basis = PointToPoint(len(way_points), float(values["segment_s"]))
    return basis, home, way_points.T - home[:, None]


def _read_stairs(values: Mapping[str, Any]) -> StoredMotion:
    home, directions = _read_finite(values, "home", 1), _read_finite(values, "directions", 1)
    if directions.shape != home.shape:
        raise ValueError(f"directions {directions.shape} and home {home.shape} should both be (n_joints,)")
    settings = {name: float(values[key]) for name, key in _STAIRS_KEYS.items()}
    return SpeedStairs(n_speeds=int(values["n_speeds"]), **settings), home, directions[:, None]


def _read_spline(values: Mapping[str, Any]) -> StoredMotion:
    home, weights = _read_finite(values, "home", 1), _read_finite(values, "weights", 2)
    basis = UniformSpline(int(values["steps"]), float(values["duration_s"]))
    if weights.shape != (len(home), basis.size):
        raise ValueError(f"weights {weights.shape} should be {(len(home), basis.size)}, of its joints and steps")
    return basis, home, weights


def _read_series(values: Mapping[str, Any]) -> tuple[float, int | tuple[int, ...], Array, Array, Array]:
    """Period, harmonics, center, sine and cosine; before harmonics could be chosen they were 1 to n."""
    center, sine, cosine = (_read_finite(values, name) for name in ("center", "sine", "cosine"))
    chosen = tuple(int(order) for order in values["harmonics"]) if "harmonics" in values else None
    count = sine.shape[-1] if chosen is None and sine.ndim else len(chosen or ())
    if center.ndim != 1 or sine.shape != (len(center), count) or cosine.shape != sine.shape:
        raise ValueError(
            f"center {center.shape}, sine {sine.shape} and cosine {cosine.shape} must be (n_joints,), "
            f"(n_joints, harmonics) and (n_joints, harmonics)"
        )
    harmonics = count if chosen is None or chosen == tuple(range(1, count + 1)) else chosen
    return float(values["period_s"]), harmonics, center, sine, cosine


def _read_finite(values: Mapping[str, Any], name: str, dimensions: int | None = None) -> Array:
    array = np.array(values[name], dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds a value that is no finite number")
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"{name} has shape {array.shape}; {dimensions} dimension(s) are needed")
    return array


def _checked_against(values: Mapping[str, Any], name: str, derived: Array) -> Array:
    """Read a stored array that must equal what follows from the rest; return that where nothing is stored."""
    if name not in values:
        return derived
    stored = _read_finite(values, name)
    size = float(np.abs(derived).max(initial=1.0))
    if stored.shape != derived.shape or float(np.abs(stored - derived).max(initial=0.0)) > _ROUNDING * size:
        raise ValueError(
            f"its {name} does not agree with the rest of the motion: the file was edited; plan the motion again"
        )
    return stored
