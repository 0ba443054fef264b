"""What may be asked of an excitation."""

import math

from jointbench.errors import ExcitationError


def check_series(harmonics: int | tuple[int, ...], period: float, least: int = 2) -> None:
    """Refuse a Fourier series that is none, or cannot start and end at rest.

    Args:
        harmonics: how many, or the chosen multiples of the base frequency.
        period: [s].
        least: number of harmonics that is needed.

    Raises:
        ExcitationError: too few harmonics, one that is chosen twice or below 1, or a period that is not a positive
            number.
    """
    count = harmonics if isinstance(harmonics, int) else len(harmonics)
    if count < least:
        rest = ", as the motion must start and end at rest" if least > 1 else ""
        raise ExcitationError(f"harmonics = {harmonics}: at least {least} are needed{rest}; 5 is usual")
    chosen = () if isinstance(harmonics, int) else harmonics
    if len(set(chosen)) < len(chosen) or any(order < 1 or order % 1 for order in chosen):
        raise ExcitationError(
            f"harmonics = {harmonics}: chosen harmonics are whole numbers from 1 on, each once, such as (1, 2, 3, 5, 7)"
        )
    if not (math.isfinite(period) and period > 0.0):
        raise ExcitationError(f"period = {period:g} s must be a positive number of seconds; 10 to 20 s is usual")


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
