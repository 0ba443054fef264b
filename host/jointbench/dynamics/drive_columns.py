"""What the drives add to the joint torque, linear in its parameters: rotor inertia, friction, offset."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from jointbench.dynamics.shapes import motion_arrays
from jointbench.robot import Array, Robot

_OF_JOINT = ("rotor_inertia", "viscous", "coulomb", "offset")
_OF_COUPLED_MOTOR = ("rotor_inertia", "viscous", "coulomb")

Sign = Callable[[Array], Array]


def drive_columns(
    robot: Robot,
    dq: ArrayLike,
    ddq: ArrayLike,
    sign_velocity: ArrayLike | None = None,
    *,
    sign: Sign = np.sign,
) -> tuple[Array, tuple[str, ...]]:
    """Regressor of the drives, to stand beside that of the links.

    Per joint: tau_j = rotor_inertia ddq_j + viscous dq_j + coulomb sign(dq_j) + offset. A motor of a coupling that
    several joints turn adds what it shares between them: with s = Σ c_j dq_j its speed relative to its own joint,
    tau_j += c_j (rotor_inertia Σ_{k≠j} c_k ddq_k + viscous Σ_{k≠j} c_k dq_k + coulomb sign(s)).
    In a wrist whose motor 6 turns with joint 5 (c = 1, 1): tau_5 += rotor_inertia ddq_6 + viscous dq_6 +
    coulomb sign(dq_5 + dq_6), and likewise tau_6 with joint 5. The terms k = j are in the joints' own columns.

    Args:
        robot: its joints and couplings.
        dq, ddq: joint velocity [rad/s] and acceleration [rad/s²], shape (n_samples, n_joints).
        sign_velocity: velocity whose sign the Coulomb columns take, such as the commanded one; dq where not given.
        sign: the sign function; a smooth stand-in such as tanh(v / v0) serves optimisers.

    Returns:
        D, shape (n_samples * n_joints, n_drive_parameters), rows as in `regressor`; and the names of its columns,
        such as "j3.coulomb" and "wrist.coulomb".

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Khalil & Dombre, Modeling, Identification and Control of Robots, 2002, ch. 12; for the coupled wrist
    Gautier, Janot & Vandanjon, IEEE Trans. Control Systems Technology 21(2), 2013.
    """
    dq, ddq = motion_arrays(robot, dq=dq, ddq=ddq)
    signed = dq if sign_velocity is None else motion_arrays(robot, sign_velocity=sign_velocity, dq=dq)[0]
    names = drive_parameter_names(robot)
    columns = np.zeros((*dq.shape, len(names)))
    for j in range(robot.n_joints):
        quantities = (ddq[:, j], dq[:, j], sign(signed[:, j]), 1.0)
        for offset, quantity in enumerate(quantities):
            columns[:, j, len(_OF_JOINT) * j + offset] = quantity
    first = len(_OF_JOINT) * robot.n_joints
    for _, shares in _coupled_motors(robot):
        rubbing = sign(signed @ shares)
        for j in np.flatnonzero(shares):
            others = shares.copy()
            others[j] = 0.0
            columns[:, j, first] = shares[j] * (ddq @ others)
            columns[:, j, first + 1] = shares[j] * (dq @ others)
            columns[:, j, first + 2] = shares[j] * rubbing
        first += len(_OF_COUPLED_MOTOR)
    return columns.reshape(-1, len(names)), names


def drive_parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the columns of `drive_columns`."""
    own = [f"{joint}.{quantity}" for joint in robot.joint_names for quantity in _OF_JOINT]
    shared = [f"{motor}.{quantity}" for motor, _ in _coupled_motors(robot) for quantity in _OF_COUPLED_MOTOR]
    return tuple(own + shared)


def _coupled_motors(robot: Robot) -> Iterator[tuple[str, Array]]:
    """Yield each motor that more than one joint turns: its name, and its speed per joint speed (own joint: 1)."""
    for coupling in robot.couplings:
        joints = [robot.joint_index(name) for name in coupling.joints]
        rows = np.array(coupling.matrix)
        coupled = [i for i in range(len(joints)) if np.count_nonzero(rows[i]) > 1]
        for i in coupled:
            shares = np.zeros(robot.n_joints)
            shares[joints] = rows[i] / rows[i, i]
            name = coupling.name if len(coupled) == 1 else f"{coupling.name}.{robot.drives[joints[i]].name}"
            yield name, shares
