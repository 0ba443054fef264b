"""Friction of joints: its laws, their fits, which of them explains best, and the sweep of speeds that shows them."""

from jointbench.identification.friction.comparison import Comparison, compare_laws
from jointbench.identification.friction.csv_file import read_friction_csv
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.directions import Stroke, combine_directions, steady_strokes
from jointbench.identification.friction.fit import METHODS, fit_friction
from jointbench.identification.friction.friction_fit import FrictionFit
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.laws import EXTRAS, SPEED_TERMS, friction_law, laws_for
from jointbench.identification.friction.of_run import WAYS, RunFriction, friction_of_run
from jointbench.identification.friction.speed_sweep import SpeedSweep

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
