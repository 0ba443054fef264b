"""What a board's ADC measures, by the names config.json gives it under "analog"."""

from drivers.errors import WiringError

SAMPLES = 16  # of a fast input in its window
ROLES = ("current", "torque", "supply", "temperature")  # the first two in blocks of 16, the others once a tick


def check_roles(given):
    """Raise WiringError unless a mapping by role has the motor current, and nothing unknown."""
    if "current" not in given or any(role not in ROLES for role in given):
        names = ", ".join(sorted(given))
        raise WiringError("config.json: analog has %s; current it must have, of %s it may" % (names, ", ".join(ROLES)))


def check_window(frequency_Hz, spans, a_second):
    """Raise WiringError unless the window of `spans` / `a_second` seconds is whole periods of a drive's PWM.

    The current has a ripple of that frequency. Over whole periods its mean is none; over others, or where all samples
    fall on one point of it, it would show as a current that slowly comes and goes (aliasing).
    """
    window_us, product = spans * 1000000 // a_second, frequency_Hz * spans
    where = "config.json: drive.frequency_Hz %d: the %d samples of the current span %d us, " % (
        frequency_Hz, SAMPLES, window_us,
    )  # fmt: skip
    if product % a_second:
        raise WiringError(
            where + "%.2f periods of the PWM, whose ripple would alias into their mean; whole ones are needed: take a "
            "multiple of %.0f Hz" % (product / a_second, a_second / spans)
        )
    if product // a_second % SAMPLES == 0:
        raise WiringError(
            where
            + "%d periods of the PWM, so all fall on one point of its ripple and their mean is not the current's; "
            "take another number of periods than a multiple of %d" % (product // a_second, SAMPLES)
        )
