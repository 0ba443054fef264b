"""Plants of another make than the one that a plant file describes."""

from dataclasses import replace

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.kinds import Variant
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, Scatter
from jointbench.robot import Robot

PUBLISHED_LINKS = 0.12
"""Share of their mass that links have in the "published" variant, see `in_variant`."""


def in_variant(truth: PlantFile, robot: Robot, variant: Variant) -> PlantFile:
    """A plant of another make.

    - "frictionless": what its links are, and rotors and gears, but nothing rubs: for models of bodies alone.
    - "unmodelled": the same with effects that no candidate law contains (`unmodelled.py`).
    - "published": friction and rotors are a1 … a4 of the plant file, those that the robot's paper prints, for every
      seed: of the motor's torque a share a1 does not arrive, Coulomb a2, viscous a3, reflected rotor inertia a4. Links
      have PUBLISHED_LINKS of their masses, which the paper does not print: motors of which 20 % arrives carry no more.
      Their inertias about the mass centres stay, or gears would vibrate faster than a step of the plant follows.

    Raises:
        BenchFileError: the plant file has no published parameters, and they are asked for.
    """
    if variant == "unmodelled":
        return replace(truth, unmodelled=0)
    if variant == "frictionless":
        none = {"coulomb": 0.0, "viscous": 0.0, "stribeck": 0.0, "load_friction": 0.0, "makkar": None}
        joints = tuple(replace(part, **none, grease_drag=0.0) for part in truth.joints)
        return replace(truth, joints=joints, mesh_ripple=0.0)
    parts: list[JointTruth] = []
    for part, drive in zip(truth.joints, robot.drives, strict=True):
        if part.published is None:
            raise BenchFileError(f'variant "published": the plant file of {robot.name!r} has no published parameters')
        lost, coulomb, viscous, rotor = part.published
        link = part.link
        assert link.mass is not None
        parts.append(
            replace(
                part,
                link=replace(link, mass=PUBLISHED_LINKS * link.mass),
                lost_torque=lost,
                coulomb=coulomb,
                viscous=viscous,
                rotor_inertia=rotor / drive.ratio**2,
                stribeck=0.0,
                load_friction=0.0,
            )
        )
    return replace(truth, joints=tuple(parts), scatter=Scatter())
