"""A biped's inertia from the forces under the foot it stands on, without any joint's torque or friction."""

from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, load_stance_estimate
from jointbench.identification.zero_moment_point.full_estimate import FullStanceEstimate, fit_stance_full
from jointbench.identification.zero_moment_point.published_methods import (
    TorqueRows,
    averaged,
    joint_torque_estimate,
    projected_newton,
)
from jointbench.identification.zero_moment_point.recorded_stance import (
    BalanceTracking,
    StanceSettings,
    contact_of_run,
    planned_point,
    stance_of_run,
)
from jointbench.identification.zero_moment_point.reduced_parameters import (
    ReducedParameters,
    mean_distance,
    theoretical_point,
)
from jointbench.identification.zero_moment_point.stance import Stance, joined
from jointbench.identification.zero_moment_point.trust_region import fit_stance

__all__ = [
    "BalanceTracking",
    "FullStanceEstimate",
    "ReducedParameters",
    "Stance",
    "StanceSettings",
    "TorqueRows",
    "ZmpEstimate",
    "averaged",
    "contact_of_run",
    "fit_stance",
    "fit_stance_full",
    "joined",
    "joint_torque_estimate",
    "load_stance_estimate",
    "mean_distance",
    "planned_point",
    "projected_newton",
    "stance_of_run",
    "theoretical_point",
]
