"""The families of motion by name."""

from collections.abc import Sequence

from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.families.point_to_point import PointToPoint
from jointbench.excitation.families.ramped_fourier import RampedFourier
from jointbench.excitation.families.rest_to_rest_fourier import RestToRestFourier
from jointbench.excitation.families.speed_stairs import SpeedStairs
from jointbench.excitation.families.uniform_spline import UniformSpline

FAMILIES: dict[str, type[Basis]] = {
    "fourier": RestToRestFourier,
    "ramped_fourier": RampedFourier,
    "point_to_point": PointToPoint,
}
"""What a planner can search in."""

STORED: dict[str, type[Basis]] = FAMILIES | {"speed_stairs": SpeedStairs, "spline": UniformSpline}
"""All that can be written down."""


PERIOD = 20.0
"""Where nothing else is said [s]."""


def make_basis(
    family: str = "fourier",
    *,
    harmonics: int | Sequence[int] = 5,
    period: float = PERIOD,
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


def family_of(basis: Basis) -> str:
    """Name of a basis' family.

    Raises:
        ExcitationError: it is of none of the families.
    """
    for name, kind in STORED.items():
        if isinstance(basis, kind):
            return name
    raise unknown_family(type(basis).__name__)


def unknown_family(name: object) -> ExcitationError:
    """Return the error that says which families there are."""
    return ExcitationError(f"family is {name!r}; there is {', '.join(map(repr, FAMILIES))}")
