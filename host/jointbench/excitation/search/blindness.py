"""Refusing a motion from which some parameters cannot be told at all."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.limits.certificate import certify, motion_at
from jointbench.excitation.search.problem import Problem

_BLIND = 1e8
"""Condition number, all columns of one length, from which on a recording says nothing of some parameters: its noise,
or half the digits of a double, would have to be that much smaller than the torque."""

_NAMED = 3


def refuse_blind(problem: Problem, weights: Array) -> None:
    """Refuse feasible weights whose motion leaves parameters in the dark.

    Raises:
        InfeasibleExcitation: naming the parameters, and the limits that leave too little motion.
    """
    information = problem.objective.information
    q, dq, ddq, _ = motion_at(problem.basis, problem.home, weights, problem.basis.sample_times(problem.samples))
    columns = information.columns((q, dq, ddq))
    lengths = np.linalg.norm(columns, axis=0)
    directions = np.linalg.svd(columns / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    dark = directions[1] * _BLIND < directions[1][0]
    share = np.sqrt((directions[2][dark] ** 2).sum(axis=0))
    if not dark.any():
        return
    names = information.base.leading_names
    told = [names[i] for i in np.argsort(-share, kind="stable")[:_NAMED] if share[i] > 0.0]
    certificate = certify(problem.limits, problem.basis, problem.home, weights)
    tightest = certificate.names[int(np.argmax(certificate.usage))]
    held = [joint.name for joint in information.robot.independent_joints if joint.passive]
    passive = f". Passive joints are held at home: {', '.join(map(repr, held))}" if held else ""
    raise InfeasibleExcitation(
        f"robot {information.robot.name!r}: no motion was found from which {int(dark.sum())} of {len(names)} base "
        f"parameters can be told, {', '.join(told)} among them: too little can move, or in too few ways. The limit "
        f"that the best one comes nearest to is {tightest}, {100.0 * certificate.usage.max():.3g} % used; raise it, "
        f"take more harmonics or points, or another home{passive}"
    )
