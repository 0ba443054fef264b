"""Friction of joints: its laws, their fits by an experiment or with all else of a model, and friction with memory."""

from jointbench.identification.friction.data import (
    FrictionData,
    Stroke,
    combine_directions,
    read_friction_csv,
    steady_strokes,
)
from jointbench.identification.friction.experiment import WAYS, RunFriction, SpeedSweep, friction_of_run
from jointbench.identification.friction.fit import METHODS, FrictionFit, LawComparison, compare_laws, fit_friction
from jointbench.identification.friction.joint_laws import CHOOSE, JointLaws, PredictedRows, asked_laws
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.model_friction import ModelFriction
from jointbench.identification.friction.model_memory import ModelMemory
from jointbench.identification.friction.simultaneous_fit import FrictionLaws, LawFit, fit_with_laws
from jointbench.identification.friction.terms import EXTRAS, SPEED_TERMS, friction_law, laws_for

__all__ = [
    "CHOOSE",
    "EXTRAS",
    "METHODS",
    "SPEED_TERMS",
    "WAYS",
    "FrictionData",
    "FrictionFit",
    "FrictionLaws",
    "JointLaws",
    "Law",
    "LawComparison",
    "LawFit",
    "ModelFriction",
    "ModelMemory",
    "PredictedRows",
    "RunFriction",
    "SpeedSweep",
    "Stroke",
    "asked_laws",
    "combine_directions",
    "compare_laws",
    "fit_friction",
    "fit_with_laws",
    "friction_law",
    "friction_of_run",
    "laws_for",
    "read_friction_csv",
    "steady_strokes",
]
