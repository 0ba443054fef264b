"""Batch rigid-body maths: kinematics, inverse dynamics, regressors, drives, base parameters."""

from jointbench.dynamics.base_parameters import BaseParameters, base_parameters
from jointbench.dynamics.drive_columns import drive_columns, drive_parameter_names
from jointbench.dynamics.energy import energy
from jointbench.dynamics.kane import kane_dynamics
from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.dynamics.lagrange import EquationsOfMotion, equations_of_motion
from jointbench.dynamics.model_columns import model_columns, model_parameter_names
from jointbench.dynamics.newton_euler import gravity_torques, inverse_dynamics
from jointbench.dynamics.regressor import regressor

__all__ = [
    "BaseParameters",
    "EquationsOfMotion",
    "base_parameters",
    "drive_columns",
    "drive_parameter_names",
    "energy",
    "equations_of_motion",
    "forward_kinematics",
    "gravity_torques",
    "inverse_dynamics",
    "kane_dynamics",
    "model_columns",
    "model_parameter_names",
    "regressor",
]
