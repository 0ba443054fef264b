"""A payload: a body of known inertia that is fixed to a link."""

from dataclasses import replace

import numpy as np

from jointbench.arrays import Matrix3, Vector3
from jointbench.errors import RobotFileError
from jointbench.robot.link import Link
from jointbench.robot.rigid import Placed, joined
from jointbench.robot.robot import Robot

_POINT: Matrix3 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def with_payload(
    robot: Robot, name: str, on: str, mass: float, center_of_mass: Vector3, inertia: Matrix3 = _POINT
) -> Robot:
    """The robot with a body fixed to one of its links.

    Args:
        robot: without it.
        name: of the payload.
        on: name of the frame it is fixed to: a link, or a link that is fixed to another.
        mass: [kg].
        center_of_mass: in that frame [m].
        inertia: about the centre of mass, in the axes of that frame [kg·m²]; none for a point mass.

    Returns:
        Another robot whose link is link and payload in one; its name stays.

    Raises:
        RobotFileError: there is no such frame, it is the base's, its link has no inertia to add to, or no body has such
            a mass or inertia.
    """
    frame = robot.frame(on)
    about = f"payload {name!r} of {robot.name!r}"
    payload = Link(name, mass, center_of_mass, inertia)
    fault = payload.physical_fault if np.any(inertia) or mass <= 0.0 else None
    if fault:
        raise RobotFileError(f"{about}: {fault}")
    link = robot.base_link if frame.joint < 0 else robot.joints[frame.joint].link
    if link is None:
        raise RobotFileError(f"{about}: frame {on!r} is the base's, which does not move; name one of a link that does")
    if link.mass is None:
        raise RobotFileError(f"{about}: link {link.name!r} has no inertia to add it to; give its mass first")
    loaded = joined(link, [Placed(payload, frame.rotation, frame.origin)])
    if link.physical_fault:  # the payload must not cover it
        robot = replace(robot, part_faults=(*robot.part_faults, (link.name, link.physical_fault)))
    if frame.joint < 0:
        return replace(robot, base_link=loaded)
    joints = list(robot.joints)
    joints[frame.joint] = replace(joints[frame.joint], link=loaded)
    return replace(robot, joints=tuple(joints))
