"""Inertias that a test knows to be given."""

from jointbench.arrays import Array
from jointbench.robot import Link, Robot


def parameters_of(what: Robot | Link) -> Array:
    """Its standard parameters."""
    parameters = what.standard_parameters
    assert parameters is not None
    return parameters
