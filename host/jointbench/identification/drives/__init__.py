"""Drives: what a motor current is worth at the joint, and what a harmonic gear loses and gives on the way."""

from jointbench.identification.drives.drive_signals import DriveSignals, GearTorque, RowFilter, drive_signals
from jointbench.identification.drives.gains import DriveGains, MotorGain, identify_gains
from jointbench.identification.drives.harmonic import (
    GearStiffness,
    HarmonicModel,
    MemoryJoint,
    RmsError,
    fit_harmonic,
    fit_stiffness,
)
from jointbench.identification.drives.harmonic_joint import HarmonicJoint, fit_harmonic_joint
from jointbench.identification.drives.prediction import HARMONIC_PARAMETERS, LinearTorque

__all__ = [
    "HARMONIC_PARAMETERS",
    "DriveGains",
    "DriveSignals",
    "GearStiffness",
    "GearTorque",
    "HarmonicJoint",
    "HarmonicModel",
    "LinearTorque",
    "MemoryJoint",
    "MotorGain",
    "RmsError",
    "RowFilter",
    "drive_signals",
    "fit_harmonic",
    "fit_harmonic_joint",
    "fit_stiffness",
    "identify_gains",
]
