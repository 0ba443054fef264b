"""Every error of `./run hil` that its user can act on."""


class SuiteNotRun(Exception):
    """Raised when pytest ended before it had a result: a bench, test or option that is not there."""
