"""What can be wrong with a campaign, as told from a cell of it that fails."""

from jointbench.errors import JointbenchError


class MatrixError(JointbenchError, ValueError):
    """The matrix of faults has a missing, unknown, mistyped or contradictory entry."""


class UnknownCell(JointbenchError, KeyError):
    """There is no such fault, state or group."""


class StateNotReached(JointbenchError):
    """A board was not in the state in which a fault was to strike it."""


class CellNotRun(JointbenchError):
    """A cell could not be run, so that nothing can be said of it."""


class WorkerLost(JointbenchError):
    """A process in which a cell ran has ended without its verdict."""
