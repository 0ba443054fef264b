"""What a robot is: links, joints, drives (direct, coupled, harmonic), limits, read from robot files."""

from jointbench.robot.arrays import Array
from jointbench.robot.drive import Coupling, Drive
from jointbench.robot.joint import Joint, Mimic, modified_dh
from jointbench.robot.link import PARAMETER_NAMES, Link
from jointbench.robot.load import library_names, load_robot
from jointbench.robot.payload import with_payload
from jointbench.robot.robot import Frame, Robot

__all__ = [
    "PARAMETER_NAMES",
    "Array",
    "Coupling",
    "Drive",
    "Frame",
    "Joint",
    "Link",
    "Mimic",
    "Robot",
    "library_names",
    "load_robot",
    "modified_dh",
    "with_payload",
]
