"""Physically possible parameters: links that are bodies, no negative friction, nearest to an estimate."""

from jointbench.identification.physical.physical_parameters import BaseEstimate, PhysicalParameters
from jointbench.identification.physical.problem import physical_parameters

__all__ = ["BaseEstimate", "PhysicalParameters", "physical_parameters"]
