"""Residual models: torque that a model lacks, learnt from its error along one mission and judged on others."""

from jointbench.identification.residual.mission import Mission, mission_of, printed_model
from jointbench.identification.residual.residual import Residual, ResidualGain, TimePolynomial, gain_of
from jointbench.identification.residual.state_residual import StateResidual

__all__ = [
    "Mission",
    "Residual",
    "ResidualGain",
    "StateResidual",
    "TimePolynomial",
    "gain_of",
    "mission_of",
    "printed_model",
]
