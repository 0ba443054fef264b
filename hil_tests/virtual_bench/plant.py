"""The robot as it really is: MuJoCo integrates bodies, gears and friction between the boards' ticks."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

import math
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.drive import Drives
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.friction import Friction
from hil_tests.virtual_bench.model import TICK, PlantKind, build_model
from hil_tests.virtual_bench.plant_file import PlantFile
from hil_tests.virtual_bench.windings import Windings
from jointbench.robot import Robot

Array = NDArray[np.float64]
OVERSAMPLES = 16
# Runge-Kutta of order 4 is stable for decay rates up to 2.78 / step; beyond 2.5 friction would ring at standstill.
_LARGEST_DECAY = 2.5


@dataclass(frozen=True)
class Motion:
    """What sensors see of a tick: positions at its end [rad], currents [A] and torques [N·m] at the ADC's instants.

    Attributes:
        motor_position, link_position: at the joint side, shape (n,).
        current, torque: shape (OVERSAMPLES, n); the instants are the middles of OVERSAMPLES equal parts of the tick.
        temperature: of the motors at its end [degC], shape (n,).
        bus_voltage: supply of the drives at its end [V].
    """

    motor_position: Array
    link_position: Array
    current: Array
    torque: Array
    temperature: Array
    bus_voltage: float


class Plant:
    """A robot with its drives, from tick to tick.

    "harmonic": two hinges on each axis, first the motor with its reflected rotor inertia, then the flexibility of gear
    and torque sensor; friction acts on the motor. "ideal": one rigid hinge with rotor inertia, Coulomb and viscous
    friction.

    Friction, drives and brakes are evaluated at every stage of the Runge-Kutta step (MuJoCo's passive-force hook), so
    that torque and motion are of the same instant to the integrator's order.
    """

    def __init__(self, robot: Robot, truth: PlantFile, kind: PlantKind) -> None:
        """Build the robot at its home position, at rest on its brakes.

        Raises:
            BenchFileError: the robot has joints the plant cannot build, or the step is too long for its friction.
        """
        self.kind: PlantKind = kind
        self._steps = truth.steps_per_tick
        self._model = build_model(robot, truth, kind)
        self._data: Any = mujoco.MjData(self._model)
        self._armature = _column(truth, "rotor_inertia") * np.array([drive.ratio for drive in robot.drives]) ** 2
        _check_step(truth, kind, robot, self._armature)
        self._friction = _friction(truth, kind)
        self.drives = Drives(
            torque_per_current=np.array([drive.torque_per_current for drive in robot.drives]),
            current_limit=np.array([drive.current_limit for drive in robot.drives]),
            rotor_inertia=self._armature,
            lag=truth.current_lag,
            brake_frequency=truth.brake_frequency,
        )
        # Views of MuJoCo's own memory: they follow the simulation.
        every = 2 if kind == "harmonic" else 1
        self._motor_position = self._data.qpos[::every]
        self._motor_velocity = self._data.qvel[::every]
        self._motor_force = self._data.qfrc_passive[::every]
        self._motor_acceleration = self._data.qacc[::every]
        self._pushes = self._data.qfrc_applied.reshape(robot.n_joints, every)
        self._flex_position = self._data.qpos[1::2]
        self._flex_velocity = self._data.qvel[1::2]
        self._stiffness, self._damping = _column(truth, "stiffness"), _column(truth, "damping")
        self._driving = np.zeros(robot.n_joints)  # all torque on the rotor but the inertial one
        self._viscous = _column(truth, "viscous")
        self._power = truth.power
        self._windings = Windings(truth.power, robot.n_joints)
        self._instants = TICK * (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES
        self._torques = np.zeros((self._steps + 1, robot.n_joints))
        self._between = _interpolation(self._instants / TICK * self._steps, self._steps + 1)
        self._motor_position[:] = robot.home
        self._rest_on_brakes()

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self._data.time)

    @property
    def motor_position(self) -> Array:
        """Motor positions at the joint side [rad], shape (n,)."""
        return self._motor_position.copy()

    @property
    def link_position(self) -> Array:
        """Link positions [rad], shape (n,)."""
        flexed = self._motor_position + self._flex_position if self.kind == "harmonic" else self._motor_position
        return np.array(flexed)

    def advance(self, enabled: NDArray[np.bool_], command: Array, outside: Array | None = None) -> Motion:
        """Let one tick pass under the boards' outputs.

        Args:
            enabled: drives that are on, shape (n,); the others carry no current and their brakes hold.
            command: currents asked of the drives [A], shape (n,).
            outside: torques that push at the links from outside, about the joints [N·m], shape (n,); none by default.
        """
        start = self._data.time
        self._push(outside)
        self.drives.begin_tick(start, enabled, command, self._motor_position)
        mujoco.set_mjcb_passive(self._act)  # the hook belongs to the process: every plant takes it and gives it back
        try:
            for step in range(self._steps):
                mujoco.mj_step(self._model, self._data)
                self._torques[step + 1] = self._joint_torque()
        finally:
            mujoco.set_mjcb_passive(None)
        if self.drives.any_braked:
            self.drives.slip(self._motor_position)
        current = self.drives.currents_at(start + self._instants)
        copper_loss = self._power.winding_resistance / OVERSAMPLES * np.einsum("ij,ij->j", current, current)
        self._windings.advance(copper_loss)
        motion = Motion(
            motor_position=self.motor_position,
            link_position=self.link_position,
            current=current,
            torque=self._between @ self._torques,
            temperature=self._windings.temperature,
            bus_voltage=self._bus_voltage(copper_loss),
        )
        self._torques[0] = self._torques[-1]
        return motion

    def standing(self) -> Motion:
        """Motion of a tick in which nothing moves and no current flows: the robot as it stands on its brakes."""
        n = len(self._motor_position)
        return Motion(
            motor_position=self.motor_position,
            link_position=self.link_position,
            current=np.zeros((OVERSAMPLES, n)),
            torque=np.tile(self._torques[0], (OVERSAMPLES, 1)),
            temperature=self._windings.temperature,
            bus_voltage=self._power.supply,
        )

    def energy(self) -> float:
        """Kinetic and potential energy of bodies, rotors and gears [J]."""
        mujoco.mj_energyPos(self._model, self._data)
        mujoco.mj_energyVel(self._model, self._data)
        return float(self._data.energy.sum())

    def _push(self, torque: Array | None) -> None:
        """Load the links; what turns a link turns both its hinges, the motor's and the flexibility's."""
        self._pushes[:] = 0.0 if torque is None else torque[:, None]

    def _act(self, _model: Any, data: Any) -> None:
        """Add motor, friction and brake torque to MuJoCo's passive forces (springs and dampers) at any stage."""
        torque = self._driving
        if self.kind == "harmonic":
            friction = self._friction.torque(self._motor_velocity, self._flex_position)
        else:
            friction = self._friction.coulomb_torque(self._motor_velocity)
        np.subtract(self.drives.torque_at(data.time), friction, torque)
        if self.drives.any_braked:
            torque += self.drives.brake_torque(self._motor_position, self._motor_velocity)
        np.add(self._motor_force, torque, self._motor_force)

    def _bus_voltage(self, copper_loss: Array) -> float:
        """Supply voltage as the drives' power leaves it [V]; braking motors raise it."""
        mechanical = self.drives.torque_at(self._data.time) @ self._motor_velocity
        current = (float(copper_loss.sum()) + float(mechanical)) / self._power.supply
        return self._power.supply - self._power.source_resistance * current

    def _joint_torque(self) -> Array:
        """Torque through gear and sensor onto the link [N·m], shape (n,)."""
        if self.kind == "harmonic":
            return -self._stiffness * self._flex_position - self._damping * self._flex_velocity
        mujoco.mj_forward(self._model, self._data)  # accelerations of the new state, not of the last stage
        return self._driving - self._viscous * self._motor_velocity - self._armature * self._motor_acceleration

    def _rest_on_brakes(self) -> None:
        """Bend the gears and load the brakes by gravity, so that boards start on a robot that stands still."""
        gravity = self._data.qfrc_bias[:: 2 if self.kind == "harmonic" else 1]
        for _ in range(6):  # bending moves the weight a little; each round leaves a thousandth of the error before
            mujoco.mj_forward(self._model, self._data)
            if self.kind == "harmonic":
                self._flex_position[:] = -gravity / self._stiffness
        self.drives.close_brakes(self._motor_position, gravity)
        self._torques[0] = gravity


def _column(truth: PlantFile, name: str) -> Array:
    return np.array([getattr(joint, name) for joint in truth.joints])


def _friction(truth: PlantFile, kind: PlantKind) -> Friction:
    return Friction(
        coulomb=_column(truth, "coulomb"),
        transition=truth.transition if kind == "harmonic" else truth.ideal_transition,
        stribeck=_column(truth, "stribeck"),
        stribeck_velocity=_column(truth, "stribeck_velocity"),
        load=_column(truth, "load_friction") * _column(truth, "stiffness"),
    )


def _check_step(truth: PlantFile, kind: PlantKind, robot: Robot, armature: Array) -> None:
    """Refuse friction that is steeper through standstill than the step can follow, gears loaded to the torque limit."""
    largest, transition = _column(truth, "coulomb"), truth.ideal_transition
    if kind == "harmonic":
        largest = largest + _column(truth, "stribeck") + _column(truth, "load_friction") * robot.torque_limits
        transition = truth.transition
    decay = largest / transition / armature * TICK / truth.steps_per_tick
    worst = int(decay.argmax())
    if decay[worst] > _LARGEST_DECAY:
        needed = math.ceil(decay[worst] / _LARGEST_DECAY * truth.steps_per_tick)
        raise BenchFileError(
            f"friction of joint {robot.joint_names[worst]!r} turns its sign within {transition:g} rad/s, too steep for "
            f"steps_per_tick = {truth.steps_per_tick}; use at least {needed}, or a wider transition"
        )


def _interpolation(places: Array, count: int) -> Array:
    """Matrix that interpolates linearly from `count` equally spaced values to fractional `places` among them."""
    return np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(count)))
