"""Folders of runs of many arms of one kind, whose frictions and rotors differ by a known spread."""

from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import model_parameter_names
from jointbench.recording import save_samples
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

ARM = arm(3)
NAMES = model_parameter_names(ARM)

SPREADS = {"j1.coulomb": 0.3, "j2.viscous": 0.2, "j3.rotor_inertia": 0.003}
"""The last is twice the σ of one unit's estimate."""


def true_parameters(n_units: int, seed: int = 0) -> Array:
    """Full parameters of each unit, shape (n_units, n_full)."""
    parameters = np.tile(truth(ARM), (n_units, 1))
    rng = np.random.default_rng(seed)
    for name, spread in SPREADS.items():
        parameters[:, NAMES.index(name)] += spread * rng.standard_normal(n_units)
    return parameters


def make_run(directory: Path, parameters: Array, seed: int) -> Path:
    """A run of one unit, all of them on the same motion."""
    run = synthetic_run(ARM, motion_seed=1, noise_seed=seed, full_parameters=parameters, repeats=1)
    return save_samples(directory, run.samples, {"robot": "cobot6"})


def make_fleet(folder: Path, n_units: int) -> Array:
    """Runs unit00, unit01, … in a folder, and their true parameters."""
    parameters = true_parameters(n_units)
    for k, each in enumerate(parameters):
        make_run(folder / f"unit{k:02d}", each, k)
    return parameters
