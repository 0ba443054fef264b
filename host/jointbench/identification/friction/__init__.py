"""Friction of joints: its laws, their fits, which of them explains best, and the sweep of speeds that shows them."""

from jointbench.identification.friction.data import (
    FrictionData,
    Stroke,
    combine_directions,
    read_friction_csv,
    steady_strokes,
)
from jointbench.identification.friction.experiment import WAYS, RunFriction, SpeedSweep, friction_of_run
from jointbench.identification.friction.fit import METHODS, Comparison, FrictionFit, compare_laws, fit_friction
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.terms import EXTRAS, SPEED_TERMS, friction_law, laws_for

__all__ = [
    "EXTRAS",
    "METHODS",
    "SPEED_TERMS",
    "WAYS",
    "Comparison",
    "FrictionData",
    "FrictionFit",
    "Law",
    "RunFriction",
    "SpeedSweep",
    "Stroke",
    "combine_directions",
    "compare_laws",
    "fit_friction",
    "friction_law",
    "friction_of_run",
    "laws_for",
    "read_friction_csv",
    "steady_strokes",
]
