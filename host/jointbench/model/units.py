"""Units of joint torques and of the parameters of links, drives and compensations."""

from __future__ import annotations

from jointbench.model.robot import Robot

_OF_LINK = {"m": "kg", "mcx": "kg·m", "mcy": "kg·m", "mcz": "kg·m"}
_OF_DRIVE = {
    "revolute": {"rotor_inertia": "kg·m²", "viscous": "N·m·s/rad", "coulomb": "N·m", "offset": "N·m"},
    "prismatic": {"rotor_inertia": "kg", "viscous": "N·s/m", "coulomb": "N", "offset": "N"},
}
_OF_COMPENSATION = {
    "revolute": {"stiffness": "N·m/rad", "preload": "N·m", "sine": "N·m", "cosine": "N·m"},
    "prismatic": {"stiffness": "N/m", "preload": "N", "sine": "N", "cosine": "N"},
}


def torque_unit(robot: Robot, joint: int) -> str:
    """Unit of a joint's torque."""
    return "N·m" if robot.independent_joints[joint].kind == "revolute" else "N"


def torque_units(robot: Robot) -> str:
    """Unit at the head of a column of joint torques."""
    return " or ".join(dict.fromkeys(torque_unit(robot, joint) for joint in range(robot.n_joints)))


def parameter_unit(robot: Robot, name: str) -> str:
    """Unit of a full parameter such as "j2.Izz", "j3.coulomb", "wrist.viscous" or "elbow_spring.stiffness"."""
    owner, _, quantity = name.rpartition(".")
    for compensation in robot.compensations:
        if compensation.name == owner:
            at = robot.independent_joints[robot.joint_index(compensation.joints[0])].kind
            return "SI" if compensation.kind == "own" else _OF_COMPENSATION[at][quantity]
    kind = robot.independent_joints[robot.joint_index(owner)].kind if owner in robot.joint_names else "revolute"
    return _OF_DRIVE[kind].get(quantity) or _OF_LINK.get(quantity, "kg·m²")
