"""A robot on its feet as it really is: the base is free to move, and nothing but the floor holds it."""

# MuJoCo's names come from an extension module without types.
# pyright: reportAttributeAccessIssue=false

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.drive import Drives, Windings
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.kinds import PlantKind
from hil_tests.virtual_bench.model import BASE, Transmission, build_model, cable_of, lowest_corner
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion, column, joint_friction
from hil_tests.virtual_bench.plant_file import PlantFile
from jointbench.arrays import Array
from jointbench.model import Robot

_BASE = 6  # velocities of the base, before those of the joints
_STANDSTILL = 1e-6  # [rad/s], below which friction is as steep as it gets
_SETTLING = 0.5  # [s], in which soles and gears give way to the weight,
_CALMED = 0.9  # and no motion outlasts a few ticks


class StandingPlant:
    """A robot on its feet with its drives, from tick to tick; joints are as in `Plant`, gears bend in "harmonic" ones.

    Contacts are stiff, so steps are linearly implicit; forces at the feet are those of a tick's last step.
    Friction is a damper whose strength follows the speed, friction(v) / v: however steep it turns its sign, it takes
    energy only, and no joint creeps on its brake. Steps are half a tick: with ten times as many the pressure point is
    the same within half a millimetre, on motions faster than those in use (test_plant_feet.py).
    """

    def __init__(self, robot: Robot, truth: PlantFile, kind: PlantKind) -> None:
        """Stand the robot on its lowest foot at its home position, at rest on its brakes.

        Raises:
            BenchFileError: the robot has joints the plant cannot build, or nothing to stand on.
        """
        _check_stands(robot, truth)
        transmission = Transmission(robot)
        self.kind: PlantKind = kind
        self.model = build_model(robot, truth, kind)
        self._data: Any = mujoco.MjData(self.model)
        self._steps = truth.steps_per_tick
        if kind == "presliding":
            raise BenchFileError(
                f'plant "presliding" is of arms on a base; robot {robot.name!r} stands on its feet: take "harmonic"'
            )
        self._friction = joint_friction(truth, kind, transmission, self._data.qpos)
        self._viscous = column(truth, "viscous")
        self._armature = column(truth, "rotor_inertia") * transmission.ratio**2
        self._stiffness, self._gear_damping = column(truth, "stiffness"), column(truth, "damping")
        self.drives = Drives(
            torque_per_current=transmission.ratio * np.array([drive.torque_constant for drive in robot.drives]),
            current_limit=np.array([drive.current_limit for drive in robot.drives]),
            rotor_inertia=self._armature,
            lag=truth.current_lag,
            brake_frequency=truth.brake_frequency,
        )
        # Views of MuJoCo's own memory: they follow the simulation.
        every = 2 if kind != "ideal" else 1
        data = self._data
        self._motor_position, self._motor_velocity = data.qpos[_BASE + 1 :: every], data.qvel[_BASE::every]
        self._flex_position, self._flex_velocity = data.qpos[_BASE + 2 :: 2], data.qvel[_BASE + 1 :: 2]
        self._applied = data.qfrc_applied[_BASE:].reshape(robot.n_joints, every)
        self._velocity = np.zeros(robot.n_joints)
        self._driving = np.zeros(robot.n_joints)  # torque of motors and brakes
        self._damping = self.model.dof_damping[_BASE::every]
        self._acceleration = data.qacc[_BASE::every]
        self._bodies = [self.model.body(name).id for name in (BASE, *robot.joint_names)]
        self._cables = [self.model.body(cable_of(foot.name)).id for foot in truth.feet]
        self._pulls = np.array([foot.cable_pull for foot in truth.feet])
        self._cable_stiffness = np.array([[foot.cable_stiffness] for foot in truth.feet])
        self._cables_give = bool(self._cable_stiffness.any())
        data.xfrc_applied[self._cables, :3] = self._pulls
        self._power = truth.power
        self._windings = Windings(truth.power, robot.n_joints, truth.tick)
        self._tick = truth.tick
        self._instants = truth.tick * (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES
        self._touch = data.sensordata.reshape(len(robot.feet), 4)
        self._each_instant = np.ones((OVERSAMPLES, 1))
        self._stand(np.array(robot.home))
        self._cables_at_home = data.xpos[self._cables].copy()

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

    @property
    def base_pose(self) -> Array:
        """Where the base frame is [m] and how it is turned (quaternion, w first), shape (7,)."""
        return self._data.qpos[:7].copy()

    def advance(
        self,
        enabled: NDArray[np.bool_],
        command: Array,
        torque: Array | None = None,
        force: Array | None = None,
        held: NDArray[np.bool_] | None = None,
        pull: None = None,
    ) -> Motion:
        """Let one tick pass under the boards' outputs.

        Args:
            enabled, command, torque, force, held: as in `Plant.advance`.
            pull: of an arm alone.
        """
        start = self._data.time
        self.drives.begin_tick(start, enabled, command, self._motor_position, held)
        if force is not None:
            self._data.xfrc_applied[self._bodies, :3] = force
        if self._cables_give:
            away = self._data.xpos[self._cables] - self._cables_at_home
            self._data.xfrc_applied[self._cables, :3] = self._pulls - self._cable_stiffness * away
        self._step(torque)
        if self.drives.any_braked:
            self.drives.slip(self._motor_position)
        current = self.drives.currents_at(start + self._instants)
        return self._motion(current, self._windings.advance(current))

    def standing(self) -> Motion:
        """Motion of a tick in which nothing moves and no current flows: the robot as it stands on its brakes."""
        return self._motion(np.zeros((OVERSAMPLES, len(self._motor_position))), 0.0)

    def _stand(self, home: Array) -> None:
        """Put the robot on its lowest foot, and let it come to rest on its brakes and bent gears."""
        model, data, drives = self.model, self._data, self.drives
        self._motor_position[:] = home
        mujoco.mj_forward(model, data)
        data.qpos[2] = -lowest_corner(model, data)
        mujoco.mj_forward(model, data)
        load = self._applied_load()
        if self.kind != "ideal":
            self._flex_position[:] = -load / self._stiffness
            load = self._applied_load()
        drives.close_brakes(self._motor_position, load)
        for _ in range(round(_SETTLING / self._tick)):
            self._step(None)
            data.qvel[:] *= _CALMED
        data.time = 0.0

    def _applied_load(self) -> Array:
        """Torque that holds the joints while the base stands [N·m], shape (n,)."""
        mujoco.mj_forward(self.model, self._data)
        return self._data.qfrc_bias[_BASE :: self._applied.shape[1]].copy()

    def _step(self, torque: Array | None) -> None:
        """Let a tick pass, in which motors and brakes give what they do at its begin or on its mean."""
        drives, data, velocity, driving = self.drives, self._data, self._velocity, self._driving
        np.maximum(np.abs(self._motor_velocity, velocity), _STANDSTILL, out=velocity)
        np.copysign(velocity, self._motor_velocity, velocity)
        friction = self._friction.torque(velocity, self._flex_position)
        np.add(np.divide(friction, velocity, friction), self._viscous, self._damping)
        self._applied[:] = 0.0 if torque is None else torque[:, None]
        driving[:] = drives.mean_torque(data.time, self._tick)
        if drives.any_braked:
            driving += drives.brake_torque(self._motor_position, self._motor_velocity)
        self._applied[:, 0] += driving
        mujoco.mj_step(self.model, data, self._steps)

    def _motion(self, current: Array, copper_loss: float) -> Motion:
        mechanical = float(self.drives.torque_at(self._data.time) @ self._motor_velocity)
        return Motion(
            motor_position=self.motor_position,
            link_position=self.link_position,
            current=current,
            torque=self._each_instant * self._joint_torque(),
            temperature=self._windings.temperature,
            bus_voltage=self._power.voltage_under(copper_loss + mechanical),
            foot_force=self._touch.copy(),
        )

    def _joint_torque(self) -> Array:
        """Torque through the gear onto the link at the tick's end [N·m], shape (n,)."""
        if self.kind != "ideal":
            return -self._stiffness * self._flex_position - self._gear_damping * self._flex_velocity
        return self._driving - self._damping * self._motor_velocity - self._armature * self._acceleration


def _check_stands(robot: Robot, truth: PlantFile) -> None:
    """Refuse what this plant has not."""
    gravity = np.array(robot.gravity)
    faults = {
        "its base does not move": robot.base_link is None,
        "its base's z is not up": gravity[2] > -0.999 * np.linalg.norm(gravity),
        "it has no feet": not robot.feet,
        "joints are coupled or passive": bool(robot.couplings) or any(drive.kind == "none" for drive in robot.drives),
        "joints have springs or teeth that swell friction": truth.mesh_ripple > 0.0
        or any(joint.torsion_spring or joint.sine_spring for joint in truth.joints),
    }
    for fault, present in faults.items():
        if present:
            raise BenchFileError(f"the plant cannot let robot {robot.name!r} stand on a floor: {fault}")
