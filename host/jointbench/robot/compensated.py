"""Robots with springs and the like beside their links and drives."""

from dataclasses import replace

from jointbench.errors import BadCompensation
from jointbench.robot.compensation import Compensation
from jointbench.robot.robot import Robot


def with_compensations(robot: Robot, *compensations: Compensation) -> Robot:
    """The robot with these torques beside those of its links and drives, and beside the compensations it has.

    Raises:
        BadCompensation: a name is that of a joint, a coupling or another compensation.
        UnknownJoint: the robot has no such joint, or it mimics another one.

    >>> from jointbench.robot import load_robot, spring
    >>> robot = with_compensations(load_robot("cobot6"), spring("elbow_spring", "j3"))
    >>> robot.compensations[0].names
    ('elbow_spring.stiffness', 'elbow_spring.preload')
    """
    taken = [*(joint.name for joint in robot.joints), *(coupling.name for coupling in robot.couplings)]
    for each in (*robot.compensations, *compensations):
        if each.name in taken:
            raise BadCompensation(
                f"compensation {each.name!r} of robot {robot.name!r} has the name of a joint, a coupling or another "
                f"compensation; choose another"
            )
        taken.append(each.name)
        for joint in each.joints:
            robot.joint_index(joint)
    return replace(robot, compensations=(*robot.compensations, *compensations))
