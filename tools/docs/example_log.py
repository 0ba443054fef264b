"""`python -m tools.docs.example_log ROBOT FILE.csv`: a log as another program might have written it.

The arm is not there. Its links are heavier or lighter than the robot's file says, by up to a tenth, the same in each
log; its joints rub.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import jointbench as jb
from jointbench.model.variants import with_payload

ARM = 7  # draws the links
SAMPLE_PERIOD_S = 2e-3


def main(arguments: list[str] | None = None) -> int:
    """Write the log."""
    options = argparse.ArgumentParser(prog="python -m tools.docs.example_log", description=__doc__)
    options.add_argument("robot")
    options.add_argument("file", type=Path)
    options.add_argument("--seed", type=int, default=0, help="draws the motion and the noise")
    options.add_argument("--payload", type=float, default=0.0, metavar="KG", help="held by the last link")
    given = options.parse_args(arguments)
    given.file.parent.mkdir(parents=True, exist_ok=True)
    write_log(given.file, jb.load_robot(given.robot), given.seed, given.payload)
    return 0


def write_log(path: Path, robot: jb.Robot, seed: int, payload: float = 0.0) -> None:
    """Write time, positions, velocities and joint torques of a random motion within the robot's limits."""
    assert robot.standard_parameters is not None  # a log is made of a robot whose file gives its inertias
    motion = jb.random_excitation(robot, period=10.016, seed=seed)
    time = np.arange(0.0, 2.0 * motion.period, SAMPLE_PERIOD_S)
    q, dq, ddq = motion.evaluate(time)
    links = 1.0 + 0.1 * np.random.default_rng(ARM).uniform(-1.0, 1.0, robot.n_links)
    parameters = robot.standard_parameters * np.repeat(links, 10)
    if payload:
        loaded = with_payload(robot, "payload", robot.joints[-1].link.name, payload, (0.0, 0.0, 0.05))
        assert loaded.standard_parameters is not None
        parameters += loaded.standard_parameters - robot.standard_parameters
    torque = jb.inverse_dynamics(robot, q, dq, ddq, parameters)
    torque += robot.torque_limits * (0.02 * np.tanh(dq / 1e-3) + 0.01 * dq)
    noise = np.random.default_rng(seed)
    torque += 0.002 * robot.torque_limits * noise.standard_normal(torque.shape)
    columns = {"position": q, "velocity": dq, "torque": torque}
    header = ["time", *(f"{name}_{joint}" for name in columns for joint in robot.joint_names)]
    table = np.column_stack([time, *columns.values()])
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")


if __name__ == "__main__":
    sys.exit(main())
