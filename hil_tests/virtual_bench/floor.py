"""The floor that robots with feet stand on, and the sensors of what it presses at the corners of their soles."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

from typing import Any

import mujoco
import numpy as np

from jointbench.robot import Robot

_PAD = 1e-3  # radius of what touches the floor at a corner [m]
_BODY = 0.04  # radius of what a fallen robot lands on, at each link's centre of mass [m]
# Contact as rubber has it: a corner gives way by 20 µm under a quarter of 28 kg, critically damped within 5 ms.
_CONTACT = {"solref": (0.005, 1.0), "solimp": (0.97, 0.97, 1e-3, 0.5, 2.0), "condim": 3}
_GRIP = 10.0  # by how much the floor is stiffer along itself than across it, so that feet do not creep


def add_floor(spec: Any, robot: Robot, bodies: list[Any], friction: float) -> None:
    """Add a floor, the robot's soles, the ends of their cables and what it would land on.

    Args:
        spec: of the model.
        robot: with feet.
        bodies: of its links, the base's first.
        friction: coefficient of the floor.
    """
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = _GRIP
    contact = {**_CONTACT, "friction": (friction, 0.0, 0.0)}
    plane, sphere = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_SPHERE
    spec.worldbody.add_geom(type=plane, size=(0.0, 0.0, 1.0), contype=1, conaffinity=0, **contact)
    touching = {"type": sphere, "contype": 0, "conaffinity": 1, "mass": 0.0, **contact}
    for foot in robot.feet:
        body = bodies[foot.joint + 1]
        body.add_body(name=cable_of(foot.name))  # of no mass, at the origin of the link's frame
        for k, corner in enumerate(foot.corners):
            body.add_geom(size=(_PAD, 0.0, 0.0), pos=np.array(corner) + _PAD * foot.axes[:, 2], **touching)
            name = f"{foot.name}.{k + 1}"
            body.add_site(name=name, type=sphere, size=(2.0 * _PAD, 0.0, 0.0), pos=corner)
            spec.add_sensor(
                name=name, type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=name
            )
    soles = {foot.joint + 1 for foot in robot.feet}
    for index in set(range(len(bodies))) - soles:
        bodies[index].add_geom(size=(_BODY, 0.0, 0.0), pos=bodies[index].ipos, **touching)


def lowest_corner(model: Any, data: Any) -> float:
    """Height of the lowest corner of all feet above the floor [m], as the robot is."""
    corners = [data.site(sensor).xpos[2] for sensor in model.sensor_objid]
    return float(min(corners))


def cable_of(foot: str) -> str:
    """Name of the body that a foot's cable pulls at."""
    return f"{foot}.cable"
