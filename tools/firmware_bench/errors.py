"""What goes wrong while counting."""


class CountFailed(Exception):
    """Base of the errors of this package."""


class PeerFailed(CountFailed):
    """A compiler refused a kernel; what it said is in the text."""


class KernelsDiffer(CountFailed):
    """Two versions of one kernel left different memory or another result: their costs cannot be compared."""


class LoopStopped(CountFailed):
    """The main loop did something else than what was to be counted."""
