"""Joints that are measured, but not modelled."""

from dataclasses import replace

from jointbench.robot.link import Link
from jointbench.robot.robot import Robot


def with_passive(robot: Robot, *joints: str, neglected: bool = False) -> Robot:
    """The robot with passive joints: their positions are measured, their torques have no model.

    They move in kinematics and dynamics like any other; but they contribute no rows to a regressor, and so no
    parameters of their drives.

    Args:
        robot: from any file; a robot file can also say `passive = true` itself.
        joints: names of independent joints.
        neglected: whether what moves with them, up to the next joint, is taken for nothing: then it has no parameters.

    Raises:
        UnknownJoint: the robot has no such joint.

    >>> from jointbench.robot import load_robot
    >>> with_passive(load_robot("cobot6"), "j6").modelled.tolist()
    [True, True, True, True, True, False]
    """
    named = {robot.independent_joints[robot.joint_index(name)].name for name in joints}
    changed = tuple(
        replace(joint, passive=True, link=Link(joint.link.name, neglected=True) if neglected else joint.link)
        if joint.name in named
        else joint
        for joint in robot.joints
    )
    return replace(robot, joints=changed)
