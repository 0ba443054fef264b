"""Models of robots: links, joints, drives and limits from robot files, and their dynamics, linear in the parameters."""

from jointbench.model.adjoint import inverse_dynamics_adjoint, regressor_adjoint
from jointbench.model.base_parameters import BaseParameters, base_parameters
from jointbench.model.compensation import Compensation, sine_spring, spring
from jointbench.model.drive import BevelDifferential, Coupling, Drive, DriveTrain
from jointbench.model.energy import energy, energy_regressor, momentum_regressor
from jointbench.model.equations_of_motion import EquationsOfMotion, equations_of_motion, kane_dynamics
from jointbench.model.external import Wrench, external_torques
from jointbench.model.floating_base import (
    FreeBaseMotion,
    floating_base_parameters,
    floating_inverse_dynamics,
    floating_momentum_regressor,
    floating_regressor,
    floating_standard_parameters,
)
from jointbench.model.inverse_dynamics import gravity_torques, hanging_pose, inverse_dynamics
from jointbench.model.joint import Joint, Mimic, modified_dh
from jointbench.model.kinematics import forward_kinematics
from jointbench.model.link import CORNERS, PARAMETER_NAMES, Capsule, Foot, Link, LinkAxis, LinkKind
from jointbench.model.load import from_folder, library_names, load_robot
from jointbench.model.model_columns import (
    compensation_columns,
    compensation_parameter_names,
    drive_columns,
    drive_parameter_names,
    known_beside_links,
    known_drive_parameters,
    model_columns,
    model_parameter_names,
)
from jointbench.model.module import Module, ModuleType, assemble, module_types
from jointbench.model.regressor import NormalEquations, StreamingQR, normal_equations, regressor
from jointbench.model.robot import Frame, Robot, robot_digests
from jointbench.model.variants import (
    chain_of,
    on_free_base,
    split_reference,
    with_compensations,
    with_passive,
    with_payload,
    with_reduced_limits,
)
from jointbench.model.zero_moment_point import (
    ZeroMomentPoint,
    base_wrench_regressor,
    center_of_mass,
    zero_moment_point,
)

__all__ = [
    "CORNERS",
    "PARAMETER_NAMES",
    "BaseParameters",
    "BevelDifferential",
    "Capsule",
    "Compensation",
    "Coupling",
    "Drive",
    "DriveTrain",
    "EquationsOfMotion",
    "Foot",
    "Frame",
    "FreeBaseMotion",
    "Joint",
    "Link",
    "LinkAxis",
    "LinkKind",
    "Mimic",
    "Module",
    "ModuleType",
    "NormalEquations",
    "Robot",
    "StreamingQR",
    "Wrench",
    "ZeroMomentPoint",
    "assemble",
    "base_parameters",
    "base_wrench_regressor",
    "center_of_mass",
    "chain_of",
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
    "from_folder",
    "gravity_torques",
    "hanging_pose",
    "inverse_dynamics",
    "inverse_dynamics_adjoint",
    "kane_dynamics",
    "known_beside_links",
    "known_drive_parameters",
    "library_names",
    "load_robot",
    "model_columns",
    "model_parameter_names",
    "modified_dh",
    "module_types",
    "momentum_regressor",
    "normal_equations",
    "on_free_base",
    "regressor",
    "regressor_adjoint",
    "robot_digests",
    "sine_spring",
    "split_reference",
    "spring",
    "with_compensations",
    "with_passive",
    "with_payload",
    "with_reduced_limits",
    "zero_moment_point",
]
