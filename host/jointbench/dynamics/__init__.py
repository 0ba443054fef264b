"""Batch rigid-body maths: kinematics, inverse dynamics, regressors, drives, compensations, base parameters."""

from jointbench.dynamics.adjoint import inverse_dynamics_adjoint, regressor_adjoint
from jointbench.dynamics.base_parameters import BaseParameters, base_parameters
from jointbench.dynamics.energy import energy, energy_regressor, momentum_regressor
from jointbench.dynamics.equations_of_motion import EquationsOfMotion, equations_of_motion, kane_dynamics
from jointbench.dynamics.external import Wrench, external_torques
from jointbench.dynamics.floating_base import (
    FreeBaseMotion,
    floating_base_parameters,
    floating_inverse_dynamics,
    floating_momentum_regressor,
    floating_regressor,
    floating_standard_parameters,
)
from jointbench.dynamics.inverse_dynamics import gravity_torques, hanging_pose, inverse_dynamics
from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.dynamics.model_columns import (
    compensation_columns,
    compensation_parameter_names,
    drive_columns,
    drive_parameter_names,
    known_beside_links,
    known_drive_parameters,
    model_columns,
    model_parameter_names,
)
from jointbench.dynamics.regressor import NormalEquations, StreamingQR, normal_equations, regressor
from jointbench.dynamics.zero_moment_point import (
    ZeroMomentPoint,
    base_wrench_regressor,
    center_of_mass,
    zero_moment_point,
)

__all__ = [
    "BaseParameters",
    "EquationsOfMotion",
    "FreeBaseMotion",
    "NormalEquations",
    "StreamingQR",
    "Wrench",
    "ZeroMomentPoint",
    "base_parameters",
    "base_wrench_regressor",
    "center_of_mass",
    "compensation_columns",
    "compensation_parameter_names",
    "drive_columns",
    "drive_parameter_names",
    "energy",
    "energy_regressor",
    "equations_of_motion",
    "external_torques",
    "floating_base_parameters",
    "floating_inverse_dynamics",
    "floating_momentum_regressor",
    "floating_regressor",
    "floating_standard_parameters",
    "forward_kinematics",
    "gravity_torques",
    "hanging_pose",
    "inverse_dynamics",
    "inverse_dynamics_adjoint",
    "kane_dynamics",
    "known_beside_links",
    "known_drive_parameters",
    "model_columns",
    "model_parameter_names",
    "momentum_regressor",
    "normal_equations",
    "regressor",
    "regressor_adjoint",
    "zero_moment_point",
]
