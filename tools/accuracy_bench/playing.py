"""A motion as an arm truly plays it: positions, and the currents that MuJoCo says it takes."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from hil_tests.virtual_bench.model import TICK, build_model
from hil_tests.virtual_bench.plant import OVERSAMPLES
from jointbench.arrays import Array
from jointbench.excitation import Excitation
from tools.accuracy_bench.arm import Arm


@dataclass(frozen=True, eq=False)
class Playing:
    """One playing of a motion, from rest to rest, free of noise; the next one is the same again.

    Attributes:
        position: at the ticks [rad], shape (n, n_joints).
        current: of the motors at the ADC's instants, the middles of equal parts of the tick before [A],
            shape (n, OVERSAMPLES, n_joints).
    """

    position: Array
    current: Array


def play(arm: Arm, excitation: Excitation) -> Playing:
    """Drive an arm along a motion exactly, by MuJoCo's inverse dynamics of the virtual bench's "ideal" plant.

    current = (M(q) ddq + c(q, dq) + g(q) + rotor inertia, viscous and Coulomb friction) / torque per current.
    """
    ticks = TICK * np.arange(round(excitation.duration / TICK))
    parts = (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES - 1.0
    instants = np.ravel(ticks[:, None] + TICK * parts)  # before the first tick the one of the last playing
    torque = _torque(arm, *excitation.evaluate(np.mod(instants, excitation.duration)))
    current = torque / np.array([drive.torque_per_current for drive in arm.robot.drives])
    return Playing(excitation.evaluate(ticks)[0], current.reshape(len(ticks), OVERSAMPLES, -1))


def _torque(arm: Arm, q: Array, dq: Array, ddq: Array) -> Array:
    """Motor torque at the joints [N·m], shape (n, n_joints)."""
    model = build_model(arm.robot, arm.truth, "ideal")
    data: Any = mujoco.MjData(model)
    torque = np.empty_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        torque[k] = data.qfrc_inverse
    coulomb = np.array([joint.coulomb for joint in arm.truth.joints])
    return torque + coulomb * np.tanh(dq / arm.truth.ideal_transition)
