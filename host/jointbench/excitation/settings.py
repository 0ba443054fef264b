"""What may be asked of an excitation."""

from jointbench.errors import ExcitationError

SHORTEST, LONGEST = 1e-3, 1e5
"""Durations [s] from where no joint can do anything to more than a day; far beyond them, numbers overflow."""

MOST = 200
"""Highest harmonic, or most way points: what a search can still hold in memory."""


def check_series(harmonics: int | tuple[int, ...], period: float, least: int = 2) -> None:
    """Refuse a Fourier series that is none, or cannot start and end at rest.

    Args:
        harmonics: how many, or the chosen multiples of the base frequency.
        period: [s].
        least: number of harmonics that is needed.

    Raises:
        ExcitationError: too few harmonics, one that is chosen twice, below 1 or above `MOST`, or a period that is no
            duration.
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
    if max(chosen, default=count) > MOST:
        raise ExcitationError(f"harmonics = {harmonics}: the highest may be number {MOST}; 5 is usual")
    check_duration("period", period, "10 to 20 s is usual")


def check_duration(name: str, value: float, usual: str) -> None:
    """Refuse what is no duration, or one that nothing can move in.

    Raises:
        ExcitationError: not a number of seconds from `SHORTEST` to `LONGEST`.
    """
    if not SHORTEST <= value <= LONGEST:
        raise ExcitationError(
            f"{name} = {value:g} s must be a positive number of seconds, from {SHORTEST:g} to {LONGEST:.0f}; {usual}"
        )


def check_share(name: str, value: float) -> None:
    """Refuse a share of limits that allows nothing, or more than they do.

    Raises:
        ExcitationError: not above 0 and at most 1.
    """
    if not 0.0 < value <= 1.0:
        raise ExcitationError(f"{name} = {value:g} must be above 0 and at most 1; less than 1 leaves room for errors")


def check_seed(seed: int) -> None:
    """Refuse what no random numbers come from.

    Raises:
        ExcitationError: below 0.
    """
    if seed < 0:
        raise ExcitationError(f"seed = {seed} must be 0 or above")
