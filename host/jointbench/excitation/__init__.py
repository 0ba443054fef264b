"""Motions that make a robot's parameters visible: families of motion, limits, objectives, the search for the best."""

from jointbench.excitation.excitation import Excitation, JointMargins, Support, motion_margins
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.families.catalogue import FAMILIES, make_basis
from jointbench.excitation.families.fourier import RampedFourier, RestToRestFourier
from jointbench.excitation.families.speed_stairs import SpeedStairs
from jointbench.excitation.families.splines import PointToPoint, UniformSpline
from jointbench.excitation.limits.certificate import Certificate, certify
from jointbench.excitation.limits.motion_limits import Limit
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace, WorkspacePoint, read_workspace
from jointbench.excitation.objectives.objective import CRITERIA, Objective
from jointbench.excitation.objectives.weak_parameters import WeakParameters, weak_parameters
from jointbench.excitation.plan import plan_excitation, plan_speed_sweep, random_excitation
from jointbench.excitation.single_support.balance import Balance
from jointbench.excitation.single_support.plan import plan_single_support, support_workspace
from jointbench.excitation.single_support.task import SupportRanges

__all__ = [
    "CRITERIA",
    "FAMILIES",
    "Balance",
    "Basis",
    "Certificate",
    "Excitation",
    "JointMargins",
    "Limit",
    "Objective",
    "PointToPoint",
    "RampedFourier",
    "RestToRestFourier",
    "SpeedStairs",
    "Support",
    "SupportRanges",
    "UniformSpline",
    "WeakParameters",
    "Workspace",
    "WorkspacePoint",
    "certify",
    "make_basis",
    "motion_margins",
    "plan_excitation",
    "plan_single_support",
    "plan_speed_sweep",
    "random_excitation",
    "read_workspace",
    "support_workspace",
    "usable_limits",
    "weak_parameters",
]
