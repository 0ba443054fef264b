"""Friction laws as part of a model: fitted together with all else, with error bars and verdicts."""

from jointbench.identification.friction_in_model.fit import FrictionLaws, LawFit, fit_with_laws
from jointbench.identification.friction_in_model.joint_laws import CHOOSE, JointLaws, PredictedRows, asked_laws
from jointbench.identification.friction_in_model.model_friction import ModelFriction
from jointbench.identification.friction_in_model.model_memory import ModelMemory
from jointbench.identification.model import FrictionState, Prediction

__all__ = [
    "CHOOSE",
    "FrictionLaws",
    "FrictionState",
    "JointLaws",
    "LawFit",
    "ModelFriction",
    "ModelMemory",
    "PredictedRows",
    "Prediction",
    "asked_laws",
    "fit_with_laws",
]
