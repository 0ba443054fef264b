"""Batch rigid-body maths: kinematics, inverse dynamics, regressors, drives, base parameters."""

from jointbench.dynamics.base_parameters import BaseParameters, base_parameters
from jointbench.dynamics.drive_columns import drive_columns, drive_parameter_names
from jointbench.dynamics.energy import energy, energy_regressor
from jointbench.dynamics.kane import kane_dynamics
from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.dynamics.lagrange import EquationsOfMotion, equations_of_motion
from jointbench.dynamics.model_columns import model_columns, model_parameter_names
from jointbench.dynamics.momentum import momentum_regressor
from jointbench.dynamics.newton_euler import gravity_torques, inverse_dynamics
from jointbench.dynamics.normal_equations import NormalEquations, normal_equations
from jointbench.dynamics.regressor import regressor
from jointbench.dynamics.streaming_qr import StreamingQR
from jointbench.dynamics.zero_moment_point import (
    ZeroMomentPoint,
    base_wrench_regressor,
    center_of_mass,
    zero_moment_point,
)

__all__ = [
    "BaseParameters",
    "EquationsOfMotion",
    "NormalEquations",
    "StreamingQR",
    "ZeroMomentPoint",
    "base_parameters",
    "base_wrench_regressor",
    "center_of_mass",
    "drive_columns",
    "drive_parameter_names",
    "energy",
    "energy_regressor",
    "equations_of_motion",
    "forward_kinematics",
    "gravity_torques",
    "inverse_dynamics",
    "kane_dynamics",
    "model_columns",
    "model_parameter_names",
    "momentum_regressor",
    "normal_equations",
    "regressor",
    "zero_moment_point",
]
