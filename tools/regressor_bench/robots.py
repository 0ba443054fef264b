"""The two arms that regressors are usually timed on; of their kinematics alone, which is all that a regressor is of.

Sources: UR10, "Parameters for calculations of kinematics and dynamics", Universal Robots (Denavit-Hartenberg rows, here
shifted to the modified form); Panda, Franka Control Interface documentation, "Robot and interface specifications".
"""

import math

from jointbench.robot import Drive, Joint, Link, Robot, modified_dh

_Q = math.pi / 2
_UR10 = (
    (0.0, 0.0, 0.1273),
    (_Q, 0.0, 0.0),
    (0.0, -0.612, 0.0),
    (0.0, -0.5723, 0.163941),
    (_Q, 0.0, 0.1157),
    (-_Q, 0.0, 0.0922),
)
_PANDA = (
    (0.0, 0.0, 0.333),
    (-_Q, 0.0, 0.0),
    (_Q, 0.0, 0.316),
    (_Q, 0.0825, 0.0),
    (-_Q, -0.0825, 0.384),
    (_Q, 0.0, 0.0),
    (_Q, 0.088, 0.0),
)


def robots() -> tuple[Robot, Robot]:
    """UR10 and Panda."""
    return _arm("UR10", _UR10), _arm("Panda", _PANDA)


def _arm(name: str, rows: tuple[tuple[float, float, float], ...]) -> Robot:
    """A chain of revolute joints, (alpha [rad], a [m], d [m]) each; its limits are of no matter here."""
    joints: list[Joint] = []
    for i, (alpha, a, d) in enumerate(rows):
        rotation, origin = modified_dh(alpha, a, d, 0.0)
        link = Link(f"link{i + 1}")
        joint = Joint(f"j{i + 1}", "revolute", i - 1, rotation, origin, (-math.pi, math.pi), 2.0, 5.0, 100.0, link)
        joints.append(joint)
    drives = tuple(Drive(joint.name, joint.name, "direct", 100.0, 0.1, 10.0) for joint in joints)
    home = (0.0,) * len(joints)
    return Robot(name, tuple(joints), drives, (), (0.0, 0.0, -9.81), home, "its maker's documentation", f"{name} arm")
