"""What a plan can be judged by before anything moves: how far it goes, what it asks for, and what it will tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters
from jointbench.excitation import (
    Certificate,
    Excitation,
    Information,
    Objective,
    WeakParameters,
    Workspace,
    certify,
    fine_times,
    motion_at,
    usable_limits,
    weak_parameters,
)
from jointbench.results.plan_traces import Trace, plan_traces
from jointbench.results.support_evidence import SupportEvidence
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class PlanEvidence:
    """A plan, and everything that says whether to play it.

    Attributes:
        robot: the robot.
        excitation: the plan.
        workspace: where the robot may move, None for anywhere.
        certificate: that the plan keeps every limit at every time.
        samples: at how many times the regressor is taken.
        weak: the parameters that it leaves weak, as far as these samples tell.
        scaled_condition_number: of the base regressor with all columns made one long.
        singular_values: of the base regressor, shape (rank,), and of that with all columns made one long.
        time: of what is shown [s], shape (n_samples,).
        traces: what the joints do then.
        support: how it stands and what the foot tells, of a motion on one foot; else None.
    """

    robot: Robot
    excitation: Excitation
    workspace: Workspace | None
    certificate: Certificate
    samples: int
    weak: WeakParameters
    scaled_condition_number: float
    singular_values: tuple[Array, Array]
    time: Array
    traces: tuple[Trace, ...]
    support: SupportEvidence | None = None

    @classmethod
    def of(
        cls,
        robot: Robot,
        excitation: Excitation,
        *,
        workspace: Workspace | None = None,
        noise: ArrayLike | None = None,
        prior: Mapping[str, float] | None = None,
        samples: int = 150,
    ) -> PlanEvidence:
        """Look at a plan.

        Args:
            robot: the robot.
            excitation: the plan.
            workspace: where the robot may move, None for anywhere.
            noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,), where it is known.
            prior: values of full parameters that the robot's file does not know, or better ones (SI).
            samples: at which the regressor is taken.

        Raises:
            InfeasibleExcitation: home breaks a limit of a joint.
            WorkspaceError: the workspace does not suit the robot.
            ExcitationError: the noise or the prior is none, the samples are too few, or the motion makes no torque.
        """
        limits = (*usable_limits(robot, prior=prior), *(workspace.limits(robot) if workspace else ()))
        basis, home, weights = excitation.basis, excitation.home, excitation.weights
        base = base_parameters(robot)
        sampled = motion_at(basis, home, weights, basis.sample_times(samples))[:3]
        columns = Information.of(robot, base).columns(sampled)
        lengths = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(np.float64).tiny)
        time = fine_times(basis)  # what is proved is proved at every time
        return cls(
            robot=robot,
            excitation=excitation,
            workspace=workspace,
            certificate=certify(limits, basis, home, weights),
            samples=samples,
            weak=weak_parameters(robot, base, sampled, noise=noise, prior=prior),
            scaled_condition_number=Objective.of(robot, base, "scaled_condition_number").value(sampled),
            singular_values=(_singular_values(columns), _singular_values(columns / lengths)),
            time=time,
            traces=plan_traces(robot, motion_at(basis, home, weights, time), limits),
            support=excitation.support and SupportEvidence.of(robot, excitation, excitation.support),
        )

    @property
    def smallest_margin(self) -> float:
        """Share of the tightest usable limit that is certain to be left."""
        return float(1.0 - self.certificate.usage.max(initial=0.0))

    @property
    def answer(self) -> str:
        """Whether every limit is kept between samples too, in one sentence."""
        certificate = self.certificate
        if not certificate.feasible:
            return f"not feasible: {'; '.join(certificate.violations)}"
        return (
            f"feasible at every time, between samples too: {len(certificate.names)} limits proved over "
            f"{certificate.samples} samples; least is left of {certificate.worst}: {self.smallest_margin:.2%} of what "
            f"a plan may use"
        )


def _singular_values(columns: Array) -> Array:
    return np.asarray(np.linalg.svd(columns, compute_uv=False), dtype=np.float64)
