"""The joint-torque regressor: torque as a linear function of the inertial parameters."""

from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.batch import motion_batch, result_array
from jointbench.dynamics.tree import tree_of
from jointbench.robot import Robot


def regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, out: Array | None = None) -> Array:
    """Joint-torque regressor W of a rigid-body robot, stacked over samples.

    tau = W(q, dq, ddq) @ pi, with pi the ten standard parameters of each link in link order:
    m, m*cx, m*cy, m*cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz (inertia about the link frame). The base stands still;
    `floating_regressor` is of one that moves.

    Args:
        robot: the kinematic tree; only modelled joints contribute rows: those of passive joints are zero, and so are
            the columns of neglected links.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        out: filled and returned where given, float64 and C-contiguous, of the shape of the result.

    Returns:
        W, shape (n_samples * n_joints, 10 * n_links), row k*n_joints + j is joint j at sample k.

    Raises:
        ShapeError: the three arrays differ in shape, or do not match the robot; or `out` does not match them.

    Source: Atkeson, An & Hollerbach, IJRR 5(3), 1986; joint axes carried outward as twists as in
    Featherstone, RBDA, 2008, sec. 5.3.

    >>> from jointbench.robot import load_robot
    >>> motion = [[0.1] * 6] * 5
    >>> regressor(load_robot("cobot6"), motion, motion, motion).shape
    (30, 60)
    """
    from jointbench.dynamics.kernels import fill_regressor

    q, dq, ddq = motion_batch(robot, q=q, dq=dq, ddq=ddq)
    out = result_array(out, (len(q) * robot.n_joints, 10 * robot.n_links))
    fill_regressor(tree_of(robot), q, dq, ddq, out.reshape(len(q), robot.n_joints, robot.n_links, 10))
    for link in robot.neglected_links:
        out[:, 10 * link : 10 * link + 10] = 0.0
    return out
