"""Random excitations: where optimisation starts, and motions to verify a model on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jointbench.dynamics import base_parameters
from jointbench.excitation.assemble import assemble
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.families.make_basis import make_basis
from jointbench.excitation.limits import Limit, joint_limits, usable_limits
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.robot import Array, Robot

_SAMPLES = 150


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
        ExcitationError: an unknown family, or a setting that is impossible for it.
        InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.
        WorkspaceError: the workspace does not suit the robot.
    """
    basis = make_basis(family, harmonics=harmonics, period=period, ramp=ramp, periods=periods, points=points)
    limits = (*usable_limits(robot, prior=prior), *(workspace.limits(robot) if workspace else ()))
    rng = np.random.default_rng(seed)
    weights = random_weights(robot, basis, rng, joint_limits(robot))
    weights *= rng.uniform(0.6, 1.0, (robot.n_joints, 1))
    weights = scale_into_limits(limits, basis, np.array(robot.home), weights)
    return assemble(robot, base_parameters(robot), basis, weights, _SAMPLES, seed, limits=limits)


def random_weights(
    robot: Robot, basis: Basis, rng: np.random.Generator, limits: Sequence[Limit] | None = None
) -> Array:
    """Feasible random weights, each joint up to its tightest limit unless others ask for less.

    Args:
        robot: the robot.
        basis: of the motion.
        rng: what is drawn from.
        limits: to keep; `usable_limits` where not given.

    Returns:
        Shape (n_joints, basis.size).

    Raises:
        InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.
    """
    # Passive joints are held at home.
    weights = rng.standard_normal((robot.n_joints, basis.size)) * robot.modelled[:, None]
    kept = usable_limits(robot) if limits is None else limits
    return scale_into_limits(kept, basis, np.array(robot.home), weights, fill=1.0)
