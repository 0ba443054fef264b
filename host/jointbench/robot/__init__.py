"""What a robot is: links, joints, drives (direct, coupled, harmonic), limits, read from robot files."""

from jointbench.robot.bevel_differential import BevelDifferential
from jointbench.robot.capsule import Capsule
from jointbench.robot.chain import chain_of, split_reference
from jointbench.robot.compensated import with_compensations
from jointbench.robot.compensation import Compensation, sine_spring, spring
from jointbench.robot.coupling import Coupling
from jointbench.robot.digest import robot_digests
from jointbench.robot.drive import Drive
from jointbench.robot.drive_train import DriveTrain
from jointbench.robot.foot import CORNERS, Foot
from jointbench.robot.free_base import on_free_base
from jointbench.robot.joint import Joint, Mimic, modified_dh
from jointbench.robot.link import PARAMETER_NAMES, Link
from jointbench.robot.link_kind import LinkAxis, LinkKind
from jointbench.robot.load import from_folder, library_names, load_robot
from jointbench.robot.module import Module, ModuleType, assemble, module_types
from jointbench.robot.passive import with_passive
from jointbench.robot.payload import with_payload
from jointbench.robot.reduced_limits import with_reduced_limits
from jointbench.robot.robot import Frame, Robot

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
