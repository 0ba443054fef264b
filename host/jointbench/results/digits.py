"""Numbers and units as text: digits that are worth reading, in the unit of what they measure."""

import math
import re
from collections.abc import Sequence

NOT_A_NUMBER = "–"
"""What stands where there is no number."""


def fixed(value: float, decimals: int) -> str:
    """Return a value with this many decimals and a true minus sign; a dash for what is not finite."""
    if not math.isfinite(value):
        return NOT_A_NUMBER
    return f"{value:.{decimals}f}".replace("-", "−")


def decimals_for(value: float, digits: int) -> int:
    """Return how many decimals show this many significant digits of a value: 0.0432 to two digits needs 3."""
    if value == 0.0 or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def column(values: Sequence[float], digits: int = 2, most: int = 4) -> list[str]:
    """Return a table's column with one number of decimals, so that its points stand above each other.

    Args:
        values: the cells; what is not finite becomes a dash.
        digits: significant digits of the smallest magnitude.
        most: never more decimals than these.
    """
    finite = [abs(value) for value in values if math.isfinite(value) and value != 0.0]
    decimals = min(most, decimals_for(min(finite), digits)) if finite else 0
    return [fixed(value, decimals) for value in values]


def percent(fraction: float) -> str:
    """Return a fraction in per cent, with at least two significant digits; the sign never starts a line by itself."""
    if not math.isfinite(fraction):
        return NOT_A_NUMBER
    value = 100.0 * fraction
    return f"{fixed(value, min(2, decimals_for(value, 2)))}\u00a0%"


def value_and_sigma(value: float, sigma: float) -> tuple[str, str]:
    """Return an estimate and its standard error, both to the error's second significant digit.

    An infinite error means that nothing is known of the value; then neither is shown. Below a millionth both are
    written with the same power of ten, as in ("1.20e−7", "0.03e−7").
    """
    if not math.isfinite(value) or math.isinf(sigma):
        return NOT_A_NUMBER, NOT_A_NUMBER
    if not sigma > 0.0:
        return f"{value:.4g}".replace("-", "−"), NOT_A_NUMBER
    decimals = decimals_for(sigma, 2)
    if decimals <= 7:
        return fixed(value, decimals), fixed(sigma, decimals)
    exponent = math.floor(math.log10(max(abs(value), sigma)))
    scale = 10.0**-exponent
    shown = decimals_for(sigma * scale, 2)
    suffix = f"e{exponent}".replace("-", "−")
    return fixed(value * scale, shown) + suffix, fixed(sigma * scale, shown) + suffix


def typeset(sentence: str) -> str:
    """Return a sentence with its per-cent signs set as in `percent`, and true minus signs before numbers."""
    return re.sub(r"(?<=\d)%", "\u00a0%", re.sub(r"(?<![\w.])-(?=\d)", "−", sentence))


def count(number: int) -> str:
    """Return a whole number in groups of three, separated by thin no-break spaces."""
    return f"{number:,}".replace(",", "\u202f")
