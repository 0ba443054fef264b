"""The whole torque model, linear in its parameters: links, drives and compensations side by side, with their units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import RobotError
from jointbench.model.compensation import Compensation
from jointbench.model.drive import Drive
from jointbench.model.inverse_dynamics import regressor
from jointbench.model.joint import PARAMETER_NAMES
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays

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
    names, actuated = drive_parameter_names(robot), _actuated_joints(robot)
    columns = np.zeros((*dq.shape, len(names)))
    for position, j in enumerate(actuated):
        quantities = (ddq[:, j], dq[:, j], sign(signed[:, j]), 1.0)
        for offset, quantity in enumerate(quantities):
            columns[:, j, len(_OF_JOINT) * position + offset] = quantity
    first = len(_OF_JOINT) * len(actuated)
    for motor in _coupled_motors(robot):
        shares = motor.shares
        rubbing = sign(signed @ shares)
        for j in np.flatnonzero((shares != 0.0) & robot.modelled):
            other_shares = shares.copy()
            other_shares[j] = 0.0
            columns[:, j, first] = shares[j] * (ddq @ other_shares)
            columns[:, j, first + 1] = shares[j] * (dq @ other_shares)
            columns[:, j, first + 2] = shares[j] * rubbing
        first += len(_OF_COUPLED_MOTOR)
    return columns.reshape(dq.size, len(names)), names


def drive_parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the columns of `drive_columns`."""
    joint_names = [
        f"{robot.joint_names[joint]}.{quantity}" for joint in _actuated_joints(robot) for quantity in _OF_JOINT
    ]
    motor_names = [f"{motor.name}.{quantity}" for motor in _coupled_motors(robot) for quantity in _OF_COUPLED_MOTOR]
    return tuple(joint_names + motor_names)


def known_drive_parameters(robot: Robot) -> Array:
    """Values of the parameters of `drive_columns` as far as the drives give them, nan where they do not.

    A quantity that several motors and the link side add up to is known only where all of them are; offsets never are.

    Returns:
        Values [SI], at the joint side, shape (n_drive_parameters,), in the order of `drive_parameter_names`.
    """
    train, coupled_motors = robot.drive_train, _coupled_motors(robot)
    is_uncoupled = np.ones(train.n_motors, dtype=np.bool_)
    is_uncoupled[[motor.row for motor in coupled_motors]] = False
    values: list[float] = []
    for j in _actuated_joints(robot):
        motor_rows = np.flatnonzero(train.matrix[:, j])
        squares, uncoupled_rows = train.matrix[motor_rows, j] ** 2, motor_rows[is_uncoupled[motor_rows]]
        motors, link = [train.drives[i] for i in motor_rows], robot.drives[j]
        values += [
            float(squares @ [_or_nan(motor.rotor_inertia) for motor in motors]),
            float(squares @ [_or_nan(motor.motor_viscous) for motor in motors]) + _or_nan(link.link_viscous),
            # That of coupled motors goes by their own speed.
            sum(abs(train.matrix[i, j]) * _or_nan(train.drives[i].motor_coulomb) for i in uncoupled_rows)
            + _or_nan(link.link_coulomb),
            np.nan,
        ]
    for motor in coupled_motors:
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
    train, motors = robot.drive_train, list[_CoupledMotor]()
    next_row = robot.n_joints
    for coupling in robot.couplings:
        joints = [robot.joint_index(name) for name in coupling.joints]
        rows = [*joints, *range(next_row, next_row + len(coupling.more))]
        next_row += len(coupling.more)
        coupled = [row for row in rows if np.count_nonzero(train.matrix[row]) > 1]
        for row in coupled:
            ratios = train.matrix[row]
            own_joint = row if row < robot.n_joints else int(np.argmax(np.abs(ratios)))
            name = coupling.name if len(coupled) == 1 else f"{coupling.name}.{train.drives[row].name}"
            motors.append(
                _CoupledMotor(name, train.drives[row], row, float(ratios[own_joint]), ratios / ratios[own_joint])
            )
    return tuple(motors)


def _actuated_joints(robot: Robot) -> list[int]:
    """Indices of the joints with columns of their own."""
    return [j for j, drive in enumerate(robot.drives) if drive.kind != "none" and robot.modelled[j]]


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


_STEP = 1e-5
"""Of central differences [rad, rad/s, …]: of smooth functions about one in size they are right to 1e-10, in which
truncation and rounding have like shares."""


def compensation_columns(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> tuple[Array, tuple[str, ...]]:
    """Regressor of a robot's compensations, to stand beside those of links and drives: E = C @ parameters.

    Args:
        robot: its compensations and joints; rows of passive joints are zero.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).

    Returns:
        C, shape (n_samples * n_joints, n_compensation_parameters), rows as in `regressor`; and the names of its
        columns, such as "elbow_spring.stiffness".

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.
        RobotError: a function of one's own gives another shape, or values that are not finite.
    """
    motion = motion_arrays(robot, q=q, dq=dq, ddq=ddq)
    names, terms = compensation_parameter_names(robot), CompensationTerms.of(robot)
    columns = np.zeros((*motion[0].shape, len(names)))
    columns[:, terms.row, terms.column] = terms.values(*motion)
    return columns.reshape(motion[0].size, len(names)), names


def compensation_parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the columns of `compensation_columns`."""
    return tuple(name for compensation in robot.compensations for name in compensation.names)


class _SelectedElements(NamedTuple):
    """A compensation, its joints, and a mask of the elements that are needed, shape (n_joints, n_parameters)."""

    compensation: Compensation
    joints: list[int]
    selected: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CompensationTerms:
    """The elements of the compensations' columns that are not always zero: of a row (joint) and a column.

    Attributes:
        blocks: elements of each compensation that are needed, one behind the other.
        row, column: of each element, shape (n_entries,).
    """

    blocks: tuple[_SelectedElements, ...]
    row: NDArray[np.intp]
    column: NDArray[np.intp]

    @classmethod
    def of(cls, robot: Robot, columns: ArrayLike | None = None) -> CompensationTerms:
        """Find the terms of a robot in columns of `compensation_columns`, in all where none are given."""
        blocks, rows, element_columns, first = list[_SelectedElements](), list[int](), list[int](), 0
        selected_columns = np.arange(len(compensation_parameter_names(robot))) if columns is None else columns
        for compensation in robot.compensations:
            joints = [robot.joint_index(name) for name in compensation.joints]
            width = len(compensation.parameters)
            selected = np.outer(robot.modelled[joints], np.isin(np.arange(first, first + width), selected_columns))
            joint_numbers, parameter_numbers = np.nonzero(selected)
            rows += [joints[j] for j in joint_numbers]
            element_columns += [first + int(k) for k in parameter_numbers]
            blocks.append(_SelectedElements(compensation, joints, selected))
            first += width
        return cls(tuple(blocks), np.array(rows, dtype=np.intp), np.array(element_columns, dtype=np.intp))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        """All elements, shape (n_samples, n_entries), of a motion of arrays (n_samples, n_joints).

        Raises:
            RobotError: a function of one's own gives another shape, or values that are not finite.
        """
        values = [_columns(block, *(quantity[:, block.joints] for quantity in (q, dq, ddq))) for block in self.blocks]
        return np.concatenate(values, axis=1) if values else np.zeros((len(q), 0))

    def pull_back(self, q: Array, dq: Array, ddq: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Derivatives of Σ weights * elements by q, dq and ddq, by central differences.

        Args:
            q, dq, ddq: shape (n_samples, n_joints) each.
            weights: of each element, shape (n_samples, n_entries).
        """
        gradients = np.zeros((3, *q.shape))
        first = 0
        for block in self.blocks:
            element_weights = weights[:, first : first + int(block.selected.sum())]
            first += element_weights.shape[1]
            motion = np.stack([quantity[:, block.joints] for quantity in (q, dq, ddq)])
            for order, joint, step in _steps(motion):
                change = _columns(block, *(motion + step)) - _columns(block, *(motion - step))
                gradients[order, :, block.joints[joint]] += np.sum(element_weights * change, axis=1) / (2.0 * _STEP)
        return gradients[0], gradients[1], gradients[2]


def _steps(motion: Array) -> Iterator[tuple[int, int, Array]]:
    """Iterate over the derivatives and joints, each with a step of it alone."""
    for order in range(3):
        for joint in range(motion.shape[2]):
            step = np.zeros((3, 1, motion.shape[2]))
            step[order, 0, joint] = _STEP
            yield order, joint, step


def _columns(block: _SelectedElements, q: Array, dq: Array, ddq: Array) -> Array:
    """Columns of a compensation that are selected, shape (n, n_selected)."""
    compensation = block.compensation
    values = np.asarray(compensation.columns(q, dq, ddq), dtype=np.float64)
    expected_shape = (*q.shape, len(compensation.parameters))
    if values.shape != expected_shape:
        raise RobotError(
            f"the columns of compensation {compensation.name!r} have shape {values.shape} for motion of shape "
            f"{q.shape}; needed is (samples, joints, parameters) = {expected_shape}"
        )
    if not np.isfinite(values).all():
        raise RobotError(
            f"the columns of compensation {compensation.name!r} are not finite everywhere; they must be for positions "
            f"from -π to π and whatever else is fitted"
        )
    return values[:, block.selected]


def model_columns(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    sign_velocity: ArrayLike | None = None,
    *,
    sign: Sign = np.sign,
) -> tuple[Array, tuple[str, ...]]:
    """Regressor of links, drives and compensations, [W | D | C], and the names of its columns.

    Args:
        robot: the robot; rows of its passive joints are zero.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).
        sign_velocity, sign: as in `drive_columns`.

    Returns:
        [W | D | C], shape (n_samples * n_joints, 10 * n_links + n_drive_parameters + n_compensation_parameters), rows
        as in `regressor`; and names such as "j1.m", "j1.mcx", …, "j6.Izz", "j1.rotor_inertia", …, "wrist.coulomb",
        "elbow_spring.stiffness".

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.
        RobotError: as of `compensation_columns`.
    """
    links = regressor(robot, q, dq, ddq)
    drives, _ = drive_columns(robot, dq, ddq, sign_velocity, sign=sign)
    if not robot.compensations:
        return np.hstack([links, drives]), model_parameter_names(robot)
    compensations, _ = compensation_columns(robot, q, dq, ddq)
    return np.hstack([links, drives, compensations]), model_parameter_names(robot)


def model_parameter_names(robot: Robot, *, drives: bool = True) -> tuple[str, ...]:
    """Names of the columns of `model_columns`; those of the links alone where `drives` is False."""
    links = tuple(f"{joint.name}.{parameter}" for joint in robot.joints for parameter in PARAMETER_NAMES)
    return links + drive_parameter_names(robot) + compensation_parameter_names(robot) if drives else links


def known_beside_links(robot: Robot) -> Array:
    """Values of the parameters behind the links' as far as the robot's drives give them, nan where not known.

    Returns:
        Values [SI], shape (n_drive_parameters + n_compensation_parameters,).
    """
    unknown = np.full(len(compensation_parameter_names(robot)), np.nan)
    return np.concatenate([known_drive_parameters(robot), unknown])


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
