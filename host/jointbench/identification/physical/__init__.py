"""Physically possible parameters: links that are bodies, no negative friction, nearest to an estimate."""

from jointbench.identification.physical.base_estimate import BaseEstimate
from jointbench.identification.physical.physical_parameters import PhysicalParameters
from jointbench.identification.physical.search import physical_parameters

__all__ = ["BaseEstimate", "PhysicalParameters", "physical_parameters"]
