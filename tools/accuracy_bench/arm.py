"""Arms whose truth is known: the virtual bench's, and others like it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.truth import true_parameters
from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.robot import PARAMETER_NAMES, Robot, load_robot

ROBOT = "cobot6"
PLANT = Path(__file__).resolve().parents[2] / "hil_tests" / "virtual_bench" / "plants" / "cobot6.toml"
_SPREAD = 0.3
"""Most that an arm's masses, rotor inertias and friction differ from the plant file's, as a share."""

_DRIVE = ("rotor_inertia", "viscous", "coulomb", "offset")


@dataclass(frozen=True)
class Arm:
    """A robot as its file knows it, and as it truly is.

    Attributes:
        robot: geometry, ratios and torque constants are true; its inertias are not.
        truth: what the virtual bench emulates.
    """

    robot: Robot
    truth: PlantFile

    def base_truth(self, base: BaseParameters, sensors: Sensors) -> Array:
        """True base parameters as a set of boards sees them: offsets are its own; shape (rank,)."""
        values: dict[str, float] = {}
        for joint, known in true_parameters(self.robot, self.truth, "ideal", sensors).items():
            standard = zip(PARAMETER_NAMES, known["standard_parameters"], strict=True)
            values |= {f"{joint}.{name}": value for name, value in standard}
            values |= {f"{joint}.{name}": known[name] for name in _DRIVE}
        return base.group([values[name] for name in base.full_names])


def arms(count: int, seed: int) -> list[Arm]:
    """The plant file's arm, then others: each link denser or lighter, each drive with other inertia and friction.

    Args:
        count: how many, at least 1.
        seed: of what is drawn.
    """
    robot = load_robot(ROBOT)
    truth = read_plant_file(PLANT, robot)
    rng = np.random.default_rng(seed)
    others = (replace(truth, joints=tuple(_like(joint, rng) for joint in truth.joints)) for _ in range(count - 1))
    return [Arm(robot, each) for each in (truth, *others)]


def _like(joint: JointTruth, rng: np.random.Generator) -> JointTruth:
    """A joint like this one. Density scales mass and inertia alike, so that the link stays a possible body."""
    density, rotor, viscous, coulomb = rng.uniform(1.0 - _SPREAD, 1.0 + _SPREAD, 4).tolist()
    body = joint.link.inertia_about_center_of_mass
    assert body is not None  # the plant file requires every inertia
    inertia = tuple(tuple(density * each for each in row) for row in body)
    link = replace(joint.link, mass=density * joint.link.mass, inertia_about_center_of_mass=inertia)
    return replace(
        joint, link=link, rotor_inertia=rotor * joint.rotor_inertia, viscous=viscous * joint.viscous,
        coulomb=coulomb * joint.coulomb,
    )  # fmt: skip
