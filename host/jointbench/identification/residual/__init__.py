"""Residual models: torque that a model lacks, learnt from its error along one mission and judged on others."""

from jointbench.identification.residual.gain import ResidualGain, gain_of
from jointbench.identification.residual.mission import Mission, mission_of, printed_model
from jointbench.identification.residual.residual import Residual
from jointbench.identification.residual.state_residual import StateResidual
from jointbench.identification.residual.time_polynomial import TimePolynomial

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
