"""What a robot is: links, joints, drives (direct, coupled, harmonic), limits, read from robot files."""

from jointbench.robot.compensation import Compensation, sine_spring, spring
from jointbench.robot.drive import BevelDifferential, Coupling, Drive, DriveTrain
from jointbench.robot.joint import Joint, Mimic, modified_dh
from jointbench.robot.link import CORNERS, PARAMETER_NAMES, Capsule, Foot, Link, LinkAxis, LinkKind
from jointbench.robot.load import from_folder, library_names, load_robot
from jointbench.robot.module import Module, ModuleType, assemble, module_types
from jointbench.robot.robot import Frame, Robot, robot_digests
from jointbench.robot.variants import (
    chain_of,
    on_free_base,
    split_reference,
    with_compensations,
    with_passive,
    with_payload,
    with_reduced_limits,
)

__all__ = [
    "CORNERS",
    "PARAMETER_NAMES",
    "BevelDifferential",
    "Capsule",
    "Compensation",
    "Coupling",
    "Drive",
    "DriveTrain",
    "Foot",
    "Frame",
    "Joint",
    "Link",
    "LinkAxis",
    "LinkKind",
    "Mimic",
    "Module",
    "ModuleType",
    "Robot",
    "assemble",
    "chain_of",
    "from_folder",
    "library_names",
    "load_robot",
    "modified_dh",
    "module_types",
    "on_free_base",
    "robot_digests",
    "sine_spring",
    "split_reference",
    "spring",
    "with_compensations",
    "with_passive",
    "with_payload",
    "with_reduced_limits",
]
