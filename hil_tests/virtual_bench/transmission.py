"""Between drives and joints: each drive turns a joint of its own, or shares joints with others through a coupling."""

import numpy as np

from hil_tests.virtual_bench.errors import BenchFileError
from jointbench.arrays import Array
from jointbench.errors import RedundantDrives
from jointbench.robot import Robot


class Transmission:
    """Motions and torques of joints seen at the drives, and back: phi = B q and tau = Bᵀ T.

    A drive's quantities are behind its own gear: at its joint where nothing is coupled, at its input bevel in a
    differential. B is the matrix of motor turns per joint turn with each row divided by its drive's ratio.

    Attributes:
        coupled: whether any joints share drives; B is the identity where not.
        shared: which drives do, shape (n,).
        ratio: motor turns per turn behind the gear, signed, shape (n,).
        matrix: B, shape (n, n).
    """

    def __init__(self, robot: Robot) -> None:
        """Take the robot's drives and couplings.

        Raises:
            BenchFileError: it has more drives than joints.
        """
        try:
            turns = robot.transmission_matrix
        except RedundantDrives as error:
            raise BenchFileError(f"{error}; the virtual bench has one drive for each joint") from error
        self.coupled = bool(robot.couplings)
        joints = {joint for coupling in robot.couplings for joint in coupling.joints}
        self.shared = np.array([name in joints for name in robot.joint_names])
        self.ratio: Array = np.copysign(np.abs(turns).max(axis=1), np.diag(turns))
        self.matrix: Array = turns / self.ratio[:, None]
        self._inverse = np.linalg.inv(self.matrix)

    def at_drives(self, motion: Array) -> Array:
        """Positions or velocities of the drives for those of the joints, shape (n,)."""
        return self.matrix @ motion if self.coupled else motion

    def at_joints(self, torque: Array) -> Array:
        """Torque at the joints [N·m] of that of the drives, shape (n,)."""
        return torque @ self.matrix if self.coupled else torque

    def torque_at_drives(self, torque: Array) -> Array:
        """Torque of the drives [N·m] that balances `torque` at the joints, shape (n,)."""
        return torque @ self._inverse if self.coupled else torque
