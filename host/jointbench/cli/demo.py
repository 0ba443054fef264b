"""Go the whole way with an arm that is not there: simulate two recordings, identify, judge on the second, report."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import FileNotWritten, RobotError
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import fit, validate
from jointbench.model import Robot, inverse_dynamics, load_robot
from jointbench.recording import Samples, open_run, save_samples
from jointbench.results import Evidence, headline, write_report

VERB = "demo"
EXAMPLE = "jointbench demo --out demo"

_PERIOD_S = 2e-3
_COULOMB, _VISCOUS, _NOISE = 0.02, 0.01, 0.002
"""Friction of the simulated joints [N·m, N·m·s/rad] and noise of their torque, as shares of the largest torque."""

_LINKS = 0.1
"""By how much the simulated links are heavier or lighter than the robot's file says, at most, as a share."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Robot, folder and seed."""
    parser.add_argument(
        "robot", metavar="ROBOT", nargs="?", default="cobot6", help="whose file has inertias (%(default)s)"
    )
    parser.add_argument("--out", metavar="DIR", default="demo", help="folder to create (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draws motions and noise (%(default)s)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Simulates, fits, validates, reports; exit code 1 when the model does not hold on the second motion."""
    robot, out = load_robot(options.robot), Path(options.out)
    if out.exists():
        raise FileNotWritten(f"{out} exists; name another folder by --out")
    if robot.standard_parameters is None or robot.base_link is not None:
        raise RobotError(f"robot {robot.name!r} cannot be simulated: its file needs a fixed base and inertias")
    runs = [_record(robot, options.robot, out, name, options.seed + k) for k, name in enumerate(("first", "second"))]
    console.say(f"two motions of a simulated {robot.name}, with friction and noise: {', '.join(map(str, runs))}")
    first, second = (open_run(path) for path in runs)
    model = fit(first)
    path = model.save(out / "model.json")
    validation = validate(model, second)
    console.say(headline(Evidence(model, first, validation, second, None)))
    console.say(f"verdict: {validation.verdict.word} ({validation.verdict.reason})")
    console.say(f"model: {path}")
    report = None
    if find_spec("matplotlib") and find_spec("jinja2"):
        report = write_report(out / "report.html", model, first, validation, second)
        console.say(f"report: {report}")
    else:
        console.say("no report: it needs matplotlib and jinja2; run: pip install 'jointbench[report]'")
    fields = {"model": path, "runs": runs, "report": report, "verdict": validation.verdict.word}
    return Result("demo", options.seed, fields=fields, refused=validation.verdict.is_refused)


def _record(robot: Robot, named: str, out: Path, name: str, seed: int) -> Path:
    """Simulate the recording of a random motion; return its run directory."""
    motion = random_excitation(robot, period=10.016, seed=seed)
    return save_samples(out / name, simulate(robot, motion, seed), {"robot": named, "simulated": True, "seed": seed})


def simulate(robot: Robot, motion: Excitation, seed: int) -> Samples:
    """Return positions and joint torques of a motion that is played twice, by links other than those of the file.

    Args:
        robot: with inertias; the same robot has the same true links, whatever the seed.
        motion: to be played.
        seed: of the noise.
    """
    assert robot.standard_parameters is not None
    time = np.arange(0.0, 2.0 * motion.period, _PERIOD_S)
    q, dq, ddq = motion.evaluate(time % motion.period)
    links = 1.0 + _LINKS * np.random.default_rng(robot.n_links).uniform(-1.0, 1.0, robot.n_links)
    torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters * np.repeat(links, 10))
    torque += robot.torque_limits * (_COULOMB * np.tanh(dq / 1e-3) + _VISCOUS * dq)
    torque += _NOISE * robot.torque_limits * np.random.default_rng(seed).standard_normal(torque.shape)
    return Samples(
        time=time, joint_names=robot.joint_names, motor_position=q, link_position=None, motor_current=None,
        motor_torque=torque, joint_torque=None, play_tick=np.full(len(time), -1), valid=np.ones(q.shape, np.bool_),
        board_filters=None, sample_period=_PERIOD_S,
    )  # fmt: skip
