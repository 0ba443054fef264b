"""Motions that make a robot's parameters visible: Fourier series, limits, optimisation."""

from jointbench.excitation.fourier import FourierExcitation
from jointbench.excitation.margins import JointMargins, motion_margins
from jointbench.excitation.plan import plan_excitation
from jointbench.excitation.random_motion import random_excitation

__all__ = ["FourierExcitation", "JointMargins", "motion_margins", "plan_excitation", "random_excitation"]
