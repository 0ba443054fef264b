"""What may be asked of an excitation."""

import math

from jointbench.errors import ExcitationError

OBJECTIVES = ("condition_number",)


def check_series(harmonics: int, period: float) -> None:
    """Refuse a Fourier series that cannot start and end at rest.

    Raises:
        ExcitationError: fewer than two harmonics, or a period that is not a positive number.
    """
    if harmonics < 2:
        raise ExcitationError(
            f"harmonics = {harmonics}: at least 2 are needed, as the motion must start and end at rest; 5 is usual"
        )
    if not (math.isfinite(period) and period > 0.0):
        raise ExcitationError(f"period = {period:g} s must be a positive number of seconds; 10 to 20 s is usual")


def check_search(objective: str, starts: int, iterations: int, time_limit: float | None) -> None:
    """Refuse a search for nothing known, or with nothing to do.

    Raises:
        ExcitationError: an unknown objective, no starts, no iterations or no time.
    """
    if objective not in OBJECTIVES:
        raise ExcitationError(f"objective {objective!r} is not known; there is {', '.join(map(repr, OBJECTIVES))}")
    if starts < 1 or iterations < 1:
        raise ExcitationError(f"starts = {starts} and iterations = {iterations} must both be at least 1")
    if time_limit is not None and not time_limit > 0.0:
        raise ExcitationError(f"time_limit = {time_limit:g} s must be above 0, or None for no limit")


def check_samples(samples: int, n_joints: int, n_parameters: int) -> None:
    """Refuse fewer equations than parameters.

    Raises:
        ExcitationError: too few samples.
    """
    if samples * n_joints < n_parameters:
        least = -(-n_parameters // n_joints)
        raise ExcitationError(
            f"samples = {samples} gives {samples * n_joints} equations for {n_parameters} base parameters; "
            f"at least {least} samples are needed, 150 is usual"
        )
