"""Random excitations: motions to verify a model on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jointbench.dynamics import base_parameters
from jointbench.excitation.assemble import assemble
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.basis import check_seed
from jointbench.excitation.families.catalogue import make_basis
from jointbench.excitation.limits.motion_limits import joint_limits
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.samples import least_samples
from jointbench.robot import Robot

_SAMPLES = 150
_FILLED = 0.6, 1.0


def random_excitation(
    robot: Robot,
    harmonics: int | Sequence[int] = 5,
    period: float = 20.0,
    seed: int = 0,
    *,
    family: str = "fourier",
    ramp: float = 2.0,
    periods: int = 1,
    points: int = 10,
    workspace: Workspace | None = None,
    prior: Mapping[str, float] | None = None,
) -> Excitation:
    """Draw a feasible excitation at random: for verification on motion that a model was not fitted to.

    Every joint uses between 60 and 100 % of what it may use of its tightest limit, unless torque or the workspace ask
    for less: `usable_limits` says how much that is.

    Args:
        robot: the robot.
        harmonics: of a Fourier series: their number, at least 2, or the chosen multiples of its base frequency.
        period: of a series, or of all moves together [s].
        seed: same seed, same motion.
        family: "fourier", "ramped_fourier" or "point_to_point".
        ramp: of each ramp of a ramped series [s].
        periods: how often a ramped series is repeated between its ramps.
        points: number of way points between moves.
        workspace: where the robot may move; anywhere where not given.
        prior: values of full parameters that torque is predicted from, as in `plan_excitation`.

    Returns:
        The excitation.

    Raises:
        ExcitationError: an unknown family, a setting that is impossible for it, an unknown parameter in `prior`, or a
            seed below 0.
        InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.
        WorkspaceError: the workspace does not suit the robot.

    >>> from jointbench.robot import load_robot
    >>> motion = random_excitation(load_robot("cobot6"), period=4.0, seed=1)
    >>> q, dq, ddq = motion.evaluate(np.linspace(0.0, 4.0, 9))
    >>> q.shape, bool(np.allclose(dq[0], 0.0))
    ((9, 6), True)
    """
    check_seed(seed)
    basis = make_basis(family, harmonics=harmonics, period=period, ramp=ramp, periods=periods, points=points)
    limits = (*usable_limits(robot, prior=prior), *(workspace.limits(robot) if workspace else ()))
    samples = max(_SAMPLES, least_samples(basis))
    rng = np.random.default_rng(seed)
    # Passive joints are held at home.
    weights = rng.standard_normal((robot.n_joints, basis.size)) * robot.modelled[:, None]
    weights = scale_into_limits(joint_limits(robot), basis, np.array(robot.home), weights, fill=1.0)
    weights *= rng.uniform(*_FILLED, (robot.n_joints, 1))
    weights = scale_into_limits(limits, basis, np.array(robot.home), weights)
    return assemble(robot, base_parameters(robot), basis, weights, samples, seed, limits=limits)
