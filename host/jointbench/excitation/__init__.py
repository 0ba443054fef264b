"""Motions that make a robot's parameters visible: families of motion, limits, objectives, the search for the best."""

from jointbench.excitation.excitation import Excitation, JointMargins, Support, motion_margins
from jointbench.excitation.families.basis import Basis, fine_times
from jointbench.excitation.families.catalogue import DEFAULT_PERIOD, FAMILIES, make_basis
from jointbench.excitation.families.fourier import RampedFourier, RestToRestFourier
from jointbench.excitation.families.speed_stairs import SpeedStairs
from jointbench.excitation.families.splines import PointToPoint, UniformSpline
from jointbench.excitation.limits.certificate import Certificate, certify, motion_at
from jointbench.excitation.limits.motion_limits import USABLE_MOTION, Limit, Motion
from jointbench.excitation.limits.torque_limits import USABLE_TORQUE, TorqueLimit, torque_limit, usable_limits
from jointbench.excitation.limits.workspace import DEFAULT_CLEARANCE, Workspace, WorkspacePoint, read_workspace
from jointbench.excitation.objectives.information import Information, WeakParameters, weak_parameters
from jointbench.excitation.objectives.objective import CRITERIA, Objective
from jointbench.excitation.plan import (
    DEFAULT_STARTS,
    as_excitation,
    check_samples,
    load_excitation,
    plan_excitation,
    plan_speed_sweep,
    random_excitation,
)
from jointbench.excitation.search.multistart import local_search, worker_pool
from jointbench.excitation.search.problem import ExcitationProblem
from jointbench.excitation.search.sqp import solve_qp
from jointbench.excitation.single_support.balance import ZMP_TOLERANCE, Balance, sole_half_lengths
from jointbench.excitation.single_support.plan import plan_single_support, support_workspace
from jointbench.excitation.single_support.task import SupportRanges
from jointbench.excitation.taught import taught_excitation

__all__ = [
    "CRITERIA",
    "DEFAULT_CLEARANCE",
    "DEFAULT_PERIOD",
    "DEFAULT_STARTS",
    "FAMILIES",
    "USABLE_MOTION",
    "USABLE_TORQUE",
    "ZMP_TOLERANCE",
    "Balance",
    "Basis",
    "Certificate",
    "Excitation",
    "ExcitationProblem",
    "Information",
    "JointMargins",
    "Limit",
    "Motion",
    "Objective",
    "PointToPoint",
    "RampedFourier",
    "RestToRestFourier",
    "SpeedStairs",
    "Support",
    "SupportRanges",
    "TorqueLimit",
    "UniformSpline",
    "WeakParameters",
    "Workspace",
    "WorkspacePoint",
    "as_excitation",
    "certify",
    "check_samples",
    "fine_times",
    "load_excitation",
    "local_search",
    "make_basis",
    "motion_at",
    "motion_margins",
    "plan_excitation",
    "plan_single_support",
    "plan_speed_sweep",
    "random_excitation",
    "read_workspace",
    "sole_half_lengths",
    "solve_qp",
    "support_workspace",
    "taught_excitation",
    "torque_limit",
    "usable_limits",
    "weak_parameters",
    "worker_pool",
]
