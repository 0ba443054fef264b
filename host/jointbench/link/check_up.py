"""A bench looked over before it moves: each board greeted, read, listened to and judged, with its motor off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.errors import BoardError, ConfigurationDiffers, TrajectoryError
from jointbench.link.bench_checks import check_joints, check_lines
from jointbench.link.bench_file import BenchFile
from jointbench.link.board import Board
from jointbench.link.connections import Connections
from jointbench.link.fitness import Finding, board_findings, position_findings, settings_findings
from jointbench.link.identity import Facts
from jointbench.link.knots import Trajectory, trajectory_knots
from jointbench.link.listening import Heard, listen
from jointbench.link.servo import default_settings
from jointbench.link.settings import JointSettings
from jointbench.robot import Robot, load_robot

__all__ = ["Finding", "check_up"]


def check_up(file: BenchFile, plan: Trajectory | None = None, seconds: float = 1.0) -> list[Finding]:
    """Look a bench over; no motor is switched on, and what boards are set to stays as it is.

    Args:
        file: where the boards are.
        plan: also whether they can play this.
        seconds: how long to listen to each board.

    Returns:
        What was found, board by board in the order of the file.

    Raises:
        BenchFileError, UnknownRobot, RobotFileError: the file, or its robot, is wrong.
        BenchLost: the virtual bench does not answer.
    """
    robot = load_robot(file.robot)
    check_joints(file, robot)
    connections = Connections(file, whole=False)
    try:
        return _check_up(file, robot, connections, plan, seconds)
    finally:
        connections.close()


def _check_up(
    file: BenchFile, robot: Robot, connections: Connections, plan: Trajectory | None, seconds: float
) -> list[Finding]:
    findings = [Finding(joint, "port", False, "–", error.text) for joint, error in connections.unopened.items()]
    there: list[Board] = []
    for board in connections.boards.values():
        try:
            board.greet()
            there.append(board)
            if board.identity and board.identity.has_our_schema:
                board.read_registers()
        except BoardError as error:
            findings.append(Finding(board.joint, "answer", False, "–", error.text))
    fit = [board for board in there if board.facts and not board.is_driving]
    heard = listen(fit, connections.clock, seconds)
    joints = list(robot.joint_names)
    first = next((board.facts for board in there if board.facts and board.joint in joints), None)
    for board in there:
        joint = joints.index(board.joint) if board.joint in joints else None
        findings += board_findings(board, heard.get(board.joint), robot, joint, first)
    if all(joint in heard for joint in joints):
        drivers = [connections.boards[joint] for joint in joints]
        findings += _together(file, robot, drivers, [board for board in there if board not in drivers], heard, plan)
    elif plan is not None:
        findings.append(Finding("plan", "playable", False, "–", "not known while boards are missing"))
    order = [entry.joint for entry in file.boards]
    return sorted(findings, key=lambda each: order.index(each.joint) if each.joint in order else len(order))


def _together(
    file: BenchFile,
    robot: Robot,
    drivers: Sequence[Board],
    feet: Sequence[Board],
    heard: dict[str, Heard],
    plan: Trajectory | None,
) -> list[Finding]:
    """What only all boards together show: where the joints are, and whether lines, limits and plan suit them."""
    settings = default_settings(robot, file.servos)
    findings = position_findings(drivers, [heard[board.joint] for board in drivers], robot)
    findings += settings_findings(drivers, robot, settings)
    try:
        check_lines(file, [board.facts for board in (*drivers, *feet) if board.facts])
    except ConfigurationDiffers as error:
        findings.append(Finding(error.joint, "line", False, "–", error.text))
    return findings if plan is None else [*findings, _playable(plan, robot, drivers, settings)]


def _playable(plan: Trajectory, robot: Robot, drivers: Sequence[Board], settings: Sequence[JointSettings]) -> Finding:
    """Whether the boards can hold a plan and keep it within what they allow."""
    facts = [board.facts for board in drivers if board.facts]
    why = _why_not(plan, robot, drivers, facts, settings)
    return Finding("plan", "playable", not why, f"{plan.period:g} s", why or f"{plan.period:g} s")


def _why_not(
    plan: Trajectory, robot: Robot, drivers: Sequence[Board], facts: Sequence[Facts], settings: Sequence[JointSettings]
) -> str:
    named = getattr(plan, "robot_name", robot.name)
    if named != robot.name:
        return f"it is a plan for robot {named!r}, the bench's is {robot.name!r}; plan for that one"
    try:
        knots = trajectory_knots(plan, robot, facts, settings)
    except TrajectoryError as error:
        return str(error)
    limits = zip(drivers, facts, settings, knots, strict=True)
    for joint, (board, own, wanted, each) in enumerate(limits):
        room = board.identity.max_knots if board.identity else 0
        if len(each) > room:
            return f"it has {len(each)} knots, the board of {board.joint} holds {room}; plan a shorter one"
        if own.has_motor and np.abs(each[:, 1]).max() > own.registers["hard.velocity"]:
            return f"{board.joint} is asked to go faster than hard.velocity of its board allows; plan a slower one"
        low, high = wanted.position_limits
        angles = plan.evaluate(np.linspace(0.0, plan.period, len(each)))[0][:, joint]
        if angles.min() < low or angles.max() > high:
            return (
                f"{board.joint} is asked to go from {angles.min():.3g} to {angles.max():.3g} rad, its window is "
                f"{low:.3g} to {high:.3g} rad; plan with this robot's limits"
            )
    return ""
