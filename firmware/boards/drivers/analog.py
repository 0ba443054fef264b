"""What a board's ADC measures, by the names config.json gives it under "analog"."""

from drivers.errors import WiringError

ROLES = ("current", "torque", "supply", "temperature")  # the first two in blocks of 16, the others once a tick


def check_roles(given):
    """Raise WiringError unless a mapping by role has the motor current, and nothing unknown."""
    if "current" not in given or any(role not in ROLES for role in given):
        names = ", ".join(sorted(given))
        raise WiringError("config.json: analog has %s; current it must have, of %s it may" % (names, ", ".join(ROLES)))
