"""A run on which something from outside acted, and the same run without that."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics.external import Wrench, external_torques
from jointbench.errors import FitError, RobotFileError, ShapeError
from jointbench.memory_mapping import chunks, read_rows, release_pages, scratch_array
from jointbench.recording.run import Run


def without_external(run: Run, wrench: Wrench) -> Run:
    """The run with the joint torques that it would have had without a known wrench on the robot.

    For a fit, a validation and all else that takes runs: tau - tau_ext(q), with tau_ext filtered as the boards filtered
    the torque. A friction that grows with the load was that of the loaded joint, and stays.

    Args:
        run: of which all torques are changed, from motors and of sensors at joints.
        wrench: constant, or one for each of the run's samples.

    Raises:
        FitError: the run's robot has no such frame, its base moves, or the wrench does not match the samples.

    >>> pushed = jb.open_run("runs/arm")
    >>> free = jb.without_external(pushed, jb.Wrench("upper_arm", [0.0, 0.0, -20.0], moment=[2.0, 2.0, 2.0]))
    >>> bool(np.any(free.samples.motor_torque != pushed.samples.motor_torque)), free.warnings
    (True, ("a known force at 'upper_arm' was taken off its torques",))
    """
    samples, robot = run.samples, run.robot
    if robot.base_link is not None:
        raise FitError(f"run {run.path}: the base of {robot.name!r} moves, so joints do not balance a wrench alone")
    try:
        torque = _torques(run, wrench)
    except (RobotFileError, ShapeError) as error:
        raise FitError(f"run {run.path}: {error}") from error
    changed: dict[str, Any] = {
        name: _less(values, torque)
        for name in ("motor_torque", "joint_torque")
        if (values := getattr(samples, name)) is not None
    }
    force = np.asarray(wrench.force)
    said = {"frame": wrench.frame, "force_N": force.tolist() if force.ndim == 1 else "recorded"}
    return dataclasses.replace(
        run,
        samples=dataclasses.replace(samples, **changed),
        provenance={**run.provenance, "external": said},
        warnings=(*run.warnings, f"a known force at {wrench.frame!r} was taken off its torques"),
    )


def _torques(run: Run, wrench: Wrench) -> Array:
    """What the joints gave against the wrench, as the boards filtered it, shape (n, n_joints)."""
    samples, robot = run.samples, run.robot
    for name, value in (("force", np.asarray(wrench.force)), ("moment", np.asarray(wrench.moment))):
        if value.shape not in ((3,), (samples.n_samples, 3)):
            raise ShapeError(f"{name} has shape {value.shape}; it must be (3,), or ({samples.n_samples}, 3)")
    torque = scratch_array((samples.n_samples, robot.n_joints), np.float64)
    for part in chunks(samples.n_samples):
        torque[part] = external_torques(robot, _between(read_rows(samples.motor_position, part)), wrench.part(part))
        release_pages(torque)
    for joint, board_filter in enumerate(samples.board_filters or ()):
        torque[:, joint] = board_filter.apply(torque[:, joint])
    return torque


def _between(position: Array) -> Array:
    """Positions of which those that are missing are between their neighbours, or 0 where there are none."""
    rows = np.arange(len(position))
    joints: list[Array] = []
    for joint in position.T:
        known = np.isfinite(joint)
        joints.append(np.interp(rows, rows[known], joint[known]) if known.any() else np.zeros(len(joint)))
    return np.stack(joints, axis=1)


def _less(values: Array, torque: Array) -> Array:
    changed = scratch_array(values.shape, np.float64)
    for part in chunks(len(values)):
        changed[part] = read_rows(values, part) - torque[part]
        release_pages(changed)
    return changed
