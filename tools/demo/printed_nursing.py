"""System A as its paper prints it: what is taken off the motors' torque, and ridge regression on 70 % of all rows.

Our copy lacks the cells of table 2, of the components of a joint; the drawing's rotors stand in their place, as the
robot file has them.

Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024, sec. 3.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench import FitSettings, Robot, Run
from jointbench.arrays import Array
from jointbench.identification.friction import FrictionData, FrictionFit
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.model import BaseParameters, base_parameters, regressor
from jointbench.signals import LowPass, moving_mask, rest_threshold

CUTOFF_HZ = 15.0
"""Of the low-pass on currents, printed; a 4 dB ripple of its pass band is printed, too, and not made here."""

TRAINED_SHARE = 0.7
STRENGTHS = 10.0 ** np.arange(-8.0, 3.0)
"""Of the ridge, which is not in the paper's text: the one of these that predicts the other 30 % of the rows best."""


@dataclass(frozen=True, eq=False)
class PrintedRows:
    """Rows of the paper's regression: all of one averaged period, at rest too.

    Attributes:
        q, dq, ddq: motion of the joints, shape (n, n_joints).
        torque: tau = T - tau_f - J ddq of each joint [N·m], shape (n, n_joints).
        used: rows that no end of the recording is felt in, shape (n,).
        moving: of each joint, those away from rest, shape (n, n_joints).
        size: rms of the motors' whole torque [N·m], shape (n_joints,).
    """

    q: Array
    dq: Array
    ddq: Array
    torque: Array
    used: NDArray[np.bool_]
    moving: NDArray[np.bool_]
    size: Array


Law = Callable[[Array], Array]
"""Friction [N·m] of a joint at velocities [rad/s]."""


def as_law(fit: FrictionFit) -> Law:
    """A law that was fitted, of a joint without load."""
    return lambda velocity: fit.torque(FrictionData(velocity, velocity, np.zeros(len(velocity))))


def joint_inertia(robot: Robot, rotors: Sequence[float] | None = None) -> Array:
    """J of eq. 11 for all pairs: J11 = J22 = J1 + J2, J12 = J1 - J2 [kg·m²], shape (n, n).

    Args:
        robot: its couplings.
        rotors: of the motors, about their own axes; None: as drawn.
    """
    turns = robot.transmission_matrix
    about = [drive.rotor_inertia or 0.0 for drive in robot.drives] if rotors is None else rotors
    return turns.T @ np.diag(about) @ turns


def printed_rows(run: Run, friction: Mapping[str, Law], inertia: Array | None = None) -> PrintedRows:
    """Filter, average over the periods, and take friction and the joints' own dynamics off the motors' torque.

    Positions go through the boards' filter of the currents first, so that both are late alike.

    Args:
        run: of a motion that was played.
        friction: of each joint, by its name.
        inertia: what the joints' own dynamics are of, `joint_inertia`; None: as drawn.
    """
    robot = run.robot
    recorded = recorded_signals(run, robot, FitSettings())
    low_pass = LowPass(CUTOFF_HZ, recorded.sample_period)
    late = recorded.position
    if recorded.board_filters:
        filters = zip(recorded.board_filters, late.T, strict=True)
        late = np.stack([board.apply(column) for board, column in filters], axis=1)
    q, torque = low_pass.apply(late), low_pass.apply(recorded.torque)
    dq = np.gradient(q, recorded.sample_period, axis=0)
    ddq = np.gradient(dq, recorded.sample_period, axis=0)
    rubbing = [friction[name](dq[:, j]) for j, name in enumerate(robot.joint_names)]
    used = recorded.valid.copy()
    used[: low_pass.settling] = used[-low_pass.settling :] = False
    away = moving_mask(dq, rest_threshold(dq), round(0.5 / CUTOFF_HZ / recorded.sample_period))
    own = ddq @ (joint_inertia(robot) if inertia is None else inertia)
    left = torque - np.stack(rubbing, axis=1) - own
    return PrintedRows(q, dq, ddq, left, used, away & used[:, None], np.sqrt(np.mean(torque[used] ** 2, axis=0)))


@dataclass(frozen=True, eq=False)
class PrintedModel:
    """Torque of the links, tau = offset + Y U_min.

    Attributes:
        base: the 36 minimal parameters.
        parameters: U_min, shape (36,).
        offset: of the standardized regression [N·m].
        strength: of the ridge.
        tested: relative error of the rows that were held out.
    """

    base: BaseParameters
    parameters: Array
    offset: float
    strength: float
    tested: float

    def predict(self, robot: Robot, rows: PrintedRows) -> Array:
        """Torque of the links at the rows [N·m], shape (n, n_joints)."""
        table = self.base.project(regressor(robot, rows.q, rows.dq, rows.ddq))
        return (table @ self.parameters).reshape(rows.q.shape) + self.offset

    def rms(self, robot: Robot, rows: PrintedRows) -> tuple[Array, Array]:
        """RMSE of each joint over all rows and over moving ones [N·m], as the paper prints them: shape (n_joints,)."""
        return rms_of(self.predict(robot, rows) - rows.torque, rows)


def rms_of(error: Array, rows: PrintedRows) -> tuple[Array, Array]:
    """RMS of each joint over all rows and over moving ones, shape (n_joints,) each."""
    squares = error**2
    away = np.sum(squares * rows.moving, axis=0) / np.maximum(rows.moving.sum(axis=0), 1)
    return np.sqrt(squares[rows.used].mean(axis=0)), np.sqrt(away)


def plants_own_rms(run: Run, friction: Mapping[str, Law], rotors: Sequence[float], parameters: Array) -> Array:
    """Error of known means as shares of a run's torque, over all rows: the bound of any such fit.

    Args:
        run: of a motion that was played.
        friction: the plant's, the mean over a tooth.
        rotors: of the plant's motors about their own axes [kg·m²].
        parameters: ten of each link of the plant, shape (10 * n_joints,).
    """
    rows = printed_rows(run, friction, joint_inertia(run.robot, rotors))
    torque = (regressor(run.robot, rows.q, rows.dq, rows.ddq) @ parameters).reshape(rows.q.shape)
    return rms_of(torque - rows.torque, rows)[0] / rows.size


def fit_printed(robot: Robot, rows: PrintedRows, seed: int) -> PrintedModel:
    """Ridge regression of the links' torque: standardized, 70 % of the rows drawn to train, the others to test.

    With standardized columns z = (x - mean) / σ and target: w = (ZᵀZ + strength I)⁻¹ Zᵀ t.

    Args:
        robot: whose links.
        rows: of the excitation.
        seed: of the draw.
    """
    base = base_parameters(robot, drives=False)
    table = base.project(regressor(robot, rows.q[rows.used], rows.dq[rows.used], rows.ddq[rows.used]))
    target = rows.torque[rows.used].ravel()
    order = np.random.default_rng(seed).permutation(len(target))
    trained, tested = np.split(order, [round(TRAINED_SHARE * len(target))])
    mean, scale = table[trained].mean(axis=0), table[trained].std(axis=0)
    center, size = float(target[trained].mean()), float(target[trained].std())
    z, t = (table - mean) / scale, (target - center) / size
    normal, right = z[trained].T @ z[trained], z[trained].T @ t[trained]
    best: tuple[float, float, Array] | None = None
    for strength in STRENGTHS.tolist():
        weights = ridge(normal, right, strength)
        error = float(np.linalg.norm(z[tested] @ weights - t[tested]) / np.linalg.norm(t[tested]))
        if best is None or error < best[0]:
            best = (error, strength, weights)
    assert best is not None  # there are strengths to try
    error, strength, weights = best
    parameters = weights * size / scale
    return PrintedModel(base, parameters, center - float(mean @ parameters), strength, error)


def ridge(normal: Array, right: Array, strength: float) -> Array:
    """(ZᵀZ + strength I)⁻¹ Zᵀ t, of ZᵀZ and Zᵀ t."""
    return np.asarray(np.linalg.solve(normal + strength * np.eye(len(right)), right), dtype=np.float64)
