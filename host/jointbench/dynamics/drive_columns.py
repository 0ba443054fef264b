"""What the drives add to the joint torque, linear in its parameters: rotor inertia, friction, offset."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.shapes import motion_arrays
from jointbench.robot import Drive, Robot

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
        robot: its joints and couplings; passive joints, and those that nothing drives, have no columns of their own,
            and rows of passive joints are zero.
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
    names, driven = drive_parameter_names(robot), _driven_joints(robot)
    columns = np.zeros((*dq.shape, len(names)))
    for place, j in enumerate(driven):
        quantities = (ddq[:, j], dq[:, j], sign(signed[:, j]), 1.0)
        for offset, quantity in enumerate(quantities):
            columns[:, j, len(_OF_JOINT) * place + offset] = quantity
    first = len(_OF_JOINT) * len(driven)
    for motor in _coupled_motors(robot):
        shares = motor.shares
        rubbing = sign(signed @ shares)
        for j in np.flatnonzero((shares != 0.0) & robot.modelled):
            others = shares.copy()
            others[j] = 0.0
            columns[:, j, first] = shares[j] * (ddq @ others)
            columns[:, j, first + 1] = shares[j] * (dq @ others)
            columns[:, j, first + 2] = shares[j] * rubbing
        first += len(_OF_COUPLED_MOTOR)
    return columns.reshape(dq.size, len(names)), names


def drive_parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the columns of `drive_columns`."""
    own = [f"{robot.joint_names[joint]}.{quantity}" for joint in _driven_joints(robot) for quantity in _OF_JOINT]
    shared = [f"{motor.name}.{quantity}" for motor in _coupled_motors(robot) for quantity in _OF_COUPLED_MOTOR]
    return tuple(own + shared)


def known_drive_parameters(robot: Robot) -> Array:
    """Values of the parameters of `drive_columns` as far as the drives give them, nan where they do not.

    A quantity that several motors and the link side add up to is known only where all of them are; offsets never are.

    Returns:
        Values [SI], at the joint side, shape (n_drive_parameters,), in the order of `drive_parameter_names`.
    """
    train, shared = robot.drive_train, _coupled_motors(robot)
    alone = np.ones(train.n_motors, dtype=np.bool_)
    alone[[motor.row for motor in shared]] = False
    values: list[float] = []
    for j in _driven_joints(robot):
        turned = np.flatnonzero(train.matrix[:, j])
        squares, own = train.matrix[turned, j] ** 2, turned[alone[turned]]
        motors, link = [train.drives[i] for i in turned], robot.drives[j]
        values += [
            float(squares @ [_or_nan(motor.rotor_inertia) for motor in motors]),
            float(squares @ [_or_nan(motor.motor_viscous) for motor in motors]) + _or_nan(link.link_viscous),
            # That of coupled motors goes by their own speed.
            sum(abs(train.matrix[i, j]) * _or_nan(train.drives[i].motor_coulomb) for i in own)
            + _or_nan(link.link_coulomb),
            np.nan,
        ]
    for motor in shared:
        drive, ratio = motor.drive, abs(motor.ratio)
        inertia, viscous, coulomb = map(_or_nan, (drive.rotor_inertia, drive.motor_viscous, drive.motor_coulomb))
        values += [inertia * ratio**2, viscous * ratio**2, coulomb * ratio]
    return np.array(values)


class _CoupledMotor(NamedTuple):
    """A motor that more than one joint turns: its row of M, turns per turn of its own joint, speed relative to it."""

    name: str
    drive: Drive
    row: int
    ratio: float
    shares: Array


def _coupled_motors(robot: Robot) -> tuple[_CoupledMotor, ...]:
    train, found = robot.drive_train, list[_CoupledMotor]()
    beyond = robot.n_joints
    for coupling in robot.couplings:
        joints = [robot.joint_index(name) for name in coupling.joints]
        rows = [*joints, *range(beyond, beyond + len(coupling.more))]
        beyond += len(coupling.more)
        coupled = [row for row in rows if np.count_nonzero(train.matrix[row]) > 1]
        for row in coupled:
            turns = train.matrix[row]
            own = row if row < robot.n_joints else int(np.argmax(np.abs(turns)))
            name = coupling.name if len(coupled) == 1 else f"{coupling.name}.{train.drives[row].name}"
            found.append(_CoupledMotor(name, train.drives[row], row, float(turns[own]), turns / turns[own]))
    return tuple(found)


def _driven_joints(robot: Robot) -> list[int]:
    """Indices of the joints with columns of their own."""
    return [j for j, drive in enumerate(robot.drives) if drive.kind != "none" and robot.modelled[j]]


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value
