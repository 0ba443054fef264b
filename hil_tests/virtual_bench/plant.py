"""The robot as it really is: MuJoCo integrates bodies, gears and friction between the boards' ticks."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.drive import Bridges, Drives, Windings
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.friction import (
    CoulombFriction,
    Friction,
    GearLoss,
    MakkarFriction,
    MeshRipple,
    PreslidingFriction,
    PreslidingMakkarFriction,
    StribeckFriction,
    Unmodelled,
)
from hil_tests.virtual_bench.kinds import PlantKind
from hil_tests.virtual_bench.model import Springs, Transmission, build_model
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile
from jointbench.arrays import Array, Vector3
from jointbench.model import Joint, Robot

OVERSAMPLES = 16
# Runge-Kutta of order 4 is stable for decay rates up to 2.78 / step; beyond 2.5 friction would ring at standstill.
_LARGEST_DECAY = 2.5


@dataclass(frozen=True)
class Motion:
    """What sensors see of a tick: positions at its end [rad], currents [A] and torques [N·m] at the ADC's instants.

    Attributes:
        motor_position, link_position: at the joint side, shape (n,); of coupled joints the first is where their motors
            would put them with rigid gears.
        current, torque: shape (OVERSAMPLES, n); the instants are the middles of OVERSAMPLES equal parts of the tick.
        temperature: of the motors at its end [degC], shape (n,).
        bus_voltage: supply of the drives at its end [V].
        foot_force: of the ground at the corners of feet, along its normal [N], shape (n_feet, 4).
    """

    motor_position: Array
    link_position: Array
    current: Array
    torque: Array
    temperature: Array
    bus_voltage: float
    foot_force: Array = field(default_factory=lambda: np.zeros((0, 4)))


class Plant:
    """A robot with its drives, from tick to tick.

    "harmonic": two hinges on each axis, first the motor with its reflected rotor inertia, then the flexibility of gear
    and torque sensor; friction acts on the motor. "presliding": the same, with friction that turns its sign over
    distance, not speed. "ideal": one rigid hinge with rotor inertia, Coulomb and viscous friction. A passive joint
    turns freely in all of them, but for its bearing's friction.

    Coupled joints share their drives. Rotors, currents and brakes are the drives' own, and what a drive does at the
    joints goes through the coupling's matrix: with one motor held, the other one moves all of them. So it is with what
    gears lose of their load; the rest of the friction is of the joints.

    Friction, drives and brakes are evaluated at every stage of the Runge-Kutta step (MuJoCo's passive-force hook), so
    that torque and motion are of the same instant to the integrator's order.
    """

    def __init__(
        self, robot: Robot, truth: PlantFile, kind: PlantKind, by_voltage: NDArray[np.bool_] | None = None
    ) -> None:
        """Build the robot at its home position, at rest on its brakes.

        Args:
            robot: its joints and drives.
            truth: what it is like.
            kind: the physics of its joints.
            by_voltage: drives that are given a voltage in place of a current, shape (n,); none by default.

        Raises:
            BenchFileError: the robot has joints the plant cannot build, or the step is too long for its friction.
        """
        self.kind: PlantKind = kind
        self._steps = truth.steps_per_tick
        self._transmission = transmission = Transmission(robot)
        self._model = build_model(robot, truth, kind)
        self._data: Any = mujoco.MjData(self._model)
        self._armature = column(truth, "rotor_inertia") * transmission.ratio**2
        every = 1 if kind == "ideal" else 2
        # Views of MuJoCo's own memory: they follow the simulation.
        self._motor_position = self._data.qpos[::every]
        self._friction = joint_friction(truth, kind, transmission, self._motor_position)
        self._gear_loss = _gear_loss(truth, transmission) if kind != "ideal" and transmission.coupled else None
        meshes = kind != "ideal" and truth.mesh_ripple > 0.0
        self._ripple = mesh_ripple(truth) if meshes else None
        self._unmodelled = (
            None
            if kind == "ideal" or truth.unmodelled is None
            else Unmodelled(column(truth, "coulomb"), transmission.ratio, truth.unmodelled)
        )
        self._check_step(robot, truth)
        torque_constants = np.array([drive.torque_constant for drive in robot.drives])
        torque_per_current = transmission.ratio * torque_constants * (1.0 - column(truth, "lost_torque"))
        self._bridges = None if by_voltage is None else Bridges(by_voltage, torque_per_current, truth.power)
        self.drives = Drives(
            torque_per_current=torque_per_current,
            current_limit=np.array([drive.current_limit for drive in robot.drives]),
            rotor_inertia=self._armature,
            lag=truth.current_lag if self._bridges is None else self._bridges.lags(truth.current_lag),
            brake_frequency=truth.brake_frequency,
            by_voltage=by_voltage,
        )
        self._motor_velocity = self._data.qvel[::every]
        self._motor_force = self._data.qfrc_passive[::every]
        self._motor_acceleration = self._data.qacc[::every]
        self._pushes = self._data.qfrc_applied.reshape(robot.n_joints, every)
        self._pulls = self._data.qfrc_passive.reshape(robot.n_joints, every)
        self._flex_position = self._data.qpos[1::2]
        self._flex_velocity = self._data.qvel[1::2]
        self._stiffness, self._damping = column(truth, "stiffness"), column(truth, "damping")
        springs = _springs(truth)
        self._springs = springs if springs.any else None
        self._pull: Array | None = None
        self._held_at = np.zeros((robot.n_joints, 3))
        for frame in robot.frames:
            if frame.joint >= 0:
                self._held_at[frame.joint] = frame.origin
        self._driving = np.zeros(robot.n_joints)  # all torque on the rotors, at the joints, but the inertial one
        self._viscous = column(truth, "viscous")
        self._power = truth.power
        self._supply = truth.power.supply  # as the tick before left it [V]
        self._windings = Windings(truth.power, robot.n_joints, truth.tick)
        parts = (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES
        self._instants = truth.tick * parts
        self._torques = np.zeros((self._steps + 1, robot.n_joints))
        self._between = _interpolation(parts * self._steps, self._steps + 1)
        self._motor_position[:] = robot.home
        if isinstance(self._friction, PreslidingFriction):
            self._friction.begin()
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
        flexed = self._motor_position + self._flex_position if self.kind != "ideal" else self._motor_position
        return np.array(flexed)

    def advance(
        self,
        enabled: NDArray[np.bool_],
        command: Array,
        torque: Array | None = None,
        force: Array | None = None,
        held: NDArray[np.bool_] | None = None,
        pull: Array | None = None,
    ) -> Motion:
        """Let one tick pass under the boards' outputs.

        Args:
            enabled: drives that are on, shape (n,), in the robot's order; the others carry no current and their brakes
                hold.
            command: currents asked of the drives [A], shape (n,); of those that are given a voltage, a part of the
                supply's from -1 to 1.
            torque: of what pushes at the links from outside, about the joints [N·m], shape (n,); none by default.
            force: of what pushes at the base and the links, at their centres of mass and in the world's axes [N], shape
                (1 + n, 3); none by default.
            held: drives whose brakes hold, shape (n,); by default those that are off.
            pull: of what pulls along the world's z at the last frame that is fixed to each link, at the link's own
                where there is none [N], shape (n,); none by default.
        """
        start = self._data.time
        self._push(torque)
        self._pull = pull
        if force is not None:
            self._data.xfrc_applied[1:, :3] = force[1:]
        at_drives = self._transmission.at_drives
        if self._bridges is not None:
            command = self._bridges.steady_currents(command, self._supply, at_drives(self._motor_velocity))
        self.drives.begin_tick(start, enabled, command, at_drives(self._motor_position), held)
        if self._ripple is not None:
            self._ripple.turn_to(self._motor_position, start)
        mujoco.set_mjcb_passive(self._act)  # the hook belongs to the process: every plant takes it and gives it back
        try:
            for step in range(self._steps):
                mujoco.mj_step(self._model, self._data)
                if isinstance(self._friction, PreslidingFriction):
                    self._friction.step()
                self._torques[step + 1] = self._joint_torque()
        finally:
            mujoco.set_mjcb_passive(None)
        if self.drives.any_braked:
            self.drives.slip(at_drives(self._motor_position))
        current = self.drives.currents_at(start + self._instants)
        copper_loss = self._windings.advance(current)
        self._supply = self._power.voltage_under(copper_loss + self._mechanical_power())
        motion = Motion(
            motor_position=self.motor_position,
            link_position=self.link_position,
            current=current,
            torque=self._between @ self._torques,
            temperature=self._windings.temperature,
            bus_voltage=self._supply,
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
        """Kinetic and potential energy of bodies, rotors, gears and springs [J]."""
        mujoco.mj_energyPos(self._model, self._data)
        mujoco.mj_energyVel(self._model, self._data)
        sprung = self._springs.energy(self.link_position) if self._springs else 0.0
        return float(self._data.energy.sum()) + sprung

    def _push(self, torque: Array | None) -> None:
        """Load the links; what turns a link turns both its hinges, the motor's and the flexibility's."""
        self._pushes[:] = 0.0 if torque is None else torque[:, None]

    def _act(self, _model: Any, data: Any) -> None:
        """Add motor, friction and brake torque to MuJoCo's passive forces (springs and dampers) at any stage."""
        torque, drives, transmission = self._driving, self.drives, self._transmission
        friction = self._friction.torque(self._motor_velocity, self._flex_position)
        if self._ripple is not None:
            friction = self._ripple.swell(friction)
        driven = drives.torque_at(data.time)
        if self._unmodelled is not None:
            friction = self._unmodelled.rub(friction, self._motor_position, data.time)
            driven = self._unmodelled.drive(driven, transmission.at_drives(self._motor_position))
        if self._gear_loss is not None:
            driven -= self._gear_loss.torque(transmission.at_drives(self._motor_velocity), self._flex_position)
        np.subtract(transmission.at_joints(driven), friction, torque)
        if drives.any_braked:
            position, velocity = self._motor_position, self._motor_velocity
            torque += transmission.at_joints(
                drives.brake_torque(transmission.at_drives(position), transmission.at_drives(velocity))
            )
        np.add(self._motor_force, torque, self._motor_force)
        if self._pull is not None:
            self._hang(data)
        if self._springs is not None:
            self._pulls += self._springs.torque(self.link_position)[:, None]

    def _hang(self, data: Any) -> None:
        """Add what pulls at the links, at any stage: the place goes with the link."""
        assert self._pull is not None
        for joint in np.flatnonzero(self._pull):
            body = int(joint) + 1
            place = data.xpos[body] + data.xmat[body].reshape(3, 3) @ self._held_at[joint]
            force = np.array([0.0, 0.0, self._pull[joint]])
            mujoco.mj_applyFT(self._model, data, force, np.zeros(3), place, body, data.qfrc_passive)

    def _mechanical_power(self) -> float:
        """Power of all motors [W]; that of braking ones is negative."""
        return float(self.drives.torque_at(self._data.time) @ self._transmission.at_drives(self._motor_velocity))

    def _joint_torque(self) -> Array:
        """Torque through gear and sensor onto the link [N·m], shape (n,)."""
        if self.kind != "ideal":
            return -self._stiffness * self._flex_position - self._damping * self._flex_velocity
        mujoco.mj_forward(self._model, self._data)  # accelerations of the new state, not of the last stage
        inertial = self._armature * self._transmission.at_drives(self._motor_acceleration)
        return self._driving - self._viscous * self._motor_velocity - self._transmission.at_joints(inertial)

    def _rest_on_brakes(self) -> None:
        """Bend the gears and load the brakes by gravity, so that boards start on a robot that stands still."""
        load = self._weight()
        if self.kind != "ideal":
            for _ in range(5):  # bending moves the weight a little; each round leaves a thousandth of the error before
                self._flex_position[:] = -load / self._stiffness
                load = self._weight()
            self._flex_position[:] = -load / self._stiffness
        transmission = self._transmission
        self.drives.close_brakes(transmission.at_drives(self._motor_position), transmission.torque_at_drives(load))
        self._torques[0] = load

    def _weight(self) -> Array:
        """Torque that holds the links against gravity and springs [N·m], shape (n,)."""
        mujoco.mj_forward(self._model, self._data)
        weight = self._data.qfrc_bias[:: 2 if self.kind != "ideal" else 1].copy()
        return weight if self._springs is None else weight - self._springs.torque(self.link_position)

    def _check_step(self, robot: Robot, truth: PlantFile) -> None:
        """Refuse friction that is steeper through standstill than the step can follow, gears at the torque limit."""
        matrix, torque = self._transmission.matrix, robot.torque_limits
        slope = self._friction.slope(torque / column(truth, "stiffness"))
        if self._ripple is not None:
            slope = slope * (1.0 + self._ripple.share)
        if self._unmodelled is not None:
            slope = slope * self._unmodelled.largest_swell
        if self._gear_loss is not None:
            reach = np.abs(matrix)
            load = np.abs(np.linalg.inv(matrix)).T @ torque
            slope = slope + reach.T @ (self._gear_loss.slope(load) * reach.sum(axis=1))
        bare = [0.0 if part.rotor_inertia else _inertia_about(joint.axis, part) for joint, part in _pairs(robot, truth)]
        inertia = matrix.T @ np.diag(self._armature) @ matrix + np.diag(bare)
        decay = np.abs(np.linalg.inv(inertia)) @ slope * truth.tick / self._steps
        if isinstance(self._friction, PreslidingFriction):
            stiffness = self._friction.stiffness(torque / column(truth, "stiffness"))
            swing = np.sqrt(np.abs(np.linalg.inv(inertia)) @ stiffness) * truth.tick / self._steps
            decay = np.maximum(decay, swing)
        worst = int(decay.argmax())
        if decay[worst] > _LARGEST_DECAY:
            needed = math.ceil(decay[worst] / _LARGEST_DECAY * self._steps)
            within = f"{truth.ideal_transition if self.kind == 'ideal' else truth.transition:g} rad/s"
            if self.kind == "presliding":
                within = f"{PreslidingFriction.REACH[0, 0]:g} rad"
            raise BenchFileError(
                f"friction of joint {robot.joint_names[worst]!r} turns its sign within {within}, too steep "
                f"for steps_per_tick = {self._steps}; use at least {needed}, or a wider transition"
            )


def column(truth: PlantFile, name: str) -> Array:
    """One number of each joint, shape (n,)."""
    return np.array([getattr(joint, name) for joint in truth.joints])


def _pairs(robot: Robot, truth: PlantFile) -> Iterator[tuple[Joint, JointTruth]]:
    return zip(robot.independent_joints, truth.joints, strict=True)


def _inertia_about(axis: Vector3, part: JointTruth) -> float:
    """Inertia of a joint's own link about the joint's axis [kg·m²]."""
    inertia, mass, center = part.link.inertia_about_center_of_mass, part.link.mass, part.link.center_of_mass
    assert mass is not None  # the plant file requires every inertia
    assert center is not None
    return float(axis @ np.array(inertia) @ axis + mass * np.sum(np.cross(center, axis) ** 2))


def joint_friction(truth: PlantFile, kind: PlantKind, transmission: Transmission, position: Array) -> Friction:
    """Friction of the joints; where drives are coupled, what depends on load is a matter of their gears."""
    if kind == "ideal":
        return CoulombFriction(column(truth, "coulomb"), truth.ideal_transition)
    share = np.where(transmission.shared, 0.0, column(truth, "load_friction"))
    load = share * column(truth, "stiffness")
    if any(joint.makkar for joint in truth.joints):
        plain = 1.0 / truth.transition  # of a bearing, which has Coulomb friction alone
        laws = np.array([joint.makkar or (0.0, plain, plain, joint.coulomb, plain) for joint in truth.joints]).T
        grease = column(truth, "grease_drag")
        if kind == "presliding":
            return PreslidingMakkarFriction(laws, grease, load, position)
        return MakkarFriction(laws, grease, load, truth.transition)
    if kind == "presliding":
        rise = (column(truth, "stribeck"), column(truth, "stribeck_velocity"))
        return PreslidingFriction(column(truth, "coulomb"), *rise, load, position)
    return StribeckFriction(
        coulomb=column(truth, "coulomb"),
        transition=truth.transition,
        stribeck=column(truth, "stribeck"),
        stribeck_velocity=column(truth, "stribeck_velocity"),
        load=load,
    )


def mesh_ripple(truth: PlantFile) -> MeshRipple:
    """How friction of the joints swells and shrinks."""
    return MeshRipple(
        truth.mesh_ripple,
        truth.mesh_teeth,
        len(truth.joints),
        second=truth.mesh_second,
        phases=np.array([joint.mesh_phases for joint in truth.joints]).T,
        warming=truth.warming,
        warming_time=truth.warming_time,
    )


def _gear_loss(truth: PlantFile, transmission: Transmission) -> GearLoss:
    share = np.where(transmission.shared, column(truth, "load_friction"), 0.0)
    loads = np.linalg.inv(transmission.matrix).T * column(truth, "stiffness")
    return GearLoss(share, loads, truth.transition)


def _springs(truth: PlantFile) -> Springs:
    names = ("torsion_spring", "torsion_zero", "sine_spring", "sine_zero")
    return Springs(*(column(truth, name) for name in names))


def _interpolation(places: Array, count: int) -> Array:
    """Matrix that interpolates linearly from `count` equally spaced values to fractional `places` among them."""
    return np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(count)))
