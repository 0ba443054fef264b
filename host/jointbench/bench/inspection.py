"""A bench looked over before it moves: each board greeted, read, listened to and judged, with its motor off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.bench.bench_checks import check_joints, check_lines
from jointbench.bench.bench_file import BenchFile
from jointbench.bench.board import Board
from jointbench.bench.connections import Connections
from jointbench.bench.fitness import (
    BoardFinding,
    Observation,
    board_findings,
    joint_angle,
    listen,
    position_findings,
    settings_findings,
)
from jointbench.bench.gate import Trajectory
from jointbench.bench.settings import default_settings
from jointbench.errors import BoardError, BoardRefused
from jointbench.model import Robot, load_robot

__all__ = ["BoardFinding", "check_up"]


def check_up(file: BenchFile, plan: Trajectory | None = None, seconds: float = 1.0) -> list[BoardFinding]:
    """Look a bench over; no motor is switched on, and what boards are set to stays as it is.

    Args:
        file: where the boards are.
        plan: also whether they can play this.
        seconds: how long to listen to each board.

    Returns:
        What was found, board by board in the order of the file.

    Raises:
        FileError, RobotError: the file, or its robot, is wrong.
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
) -> list[BoardFinding]:
    findings = [BoardFinding(joint, "port", False, "–", error.text) for joint, error in connections.unopened.items()]
    answering: list[Board] = []
    for board in connections.boards.values():
        try:
            board.greet()
            answering.append(board)
            if board.identity and board.identity.has_our_schema:
                board.read_registers()
        except BoardError as error:
            findings.append(BoardFinding(board.joint, "answer", False, "–", error.text))
    fit = [board for board in answering if board.facts and not board.is_driving]
    observed = listen(fit, connections.clock, seconds)
    joints = list(robot.joint_names)
    first = next((board.facts for board in answering if board.facts and board.joint in joints), None)
    for board in answering:
        joint = joints.index(board.joint) if board.joint in joints else None
        findings += board_findings(board, observed.get(board.joint), robot, joint, first)
    if all(joint in observed for joint in joints):
        drivers = [connections.boards[joint] for joint in joints]
        findings += _together(
            file, robot, drivers, [board for board in answering if board not in drivers], observed, plan
        )
    elif plan is not None:
        findings.append(BoardFinding("plan", "playable", False, "–", "not known while boards are missing"))
    order = [entry.joint for entry in file.boards]
    return sorted(findings, key=lambda each: order.index(each.joint) if each.joint in order else len(order))


def _together(
    file: BenchFile,
    robot: Robot,
    drivers: Sequence[Board],
    feet: Sequence[Board],
    observed: dict[str, Observation],
    plan: Trajectory | None,
) -> list[BoardFinding]:
    """Findings of all boards together: the joints' positions, and whether lines, limits and plan suit them."""
    settings = default_settings(robot, file.servos, file.terms.limits)
    findings = position_findings(drivers, [observed[board.joint] for board in drivers], robot)
    findings += settings_findings(drivers, robot, settings)
    try:
        check_lines(file, [board.facts for board in (*drivers, *feet) if board.facts])
    except BoardRefused as error:
        findings.append(BoardFinding(error.joint, "line", False, "–", error.text))
    if plan is None:
        return findings
    from jointbench.bench.gate import Gate  # brings the proofs of excitations: only where a plan is looked at

    drivers_observed = [observed[board.joint] for board in drivers]
    stands = np.array([joint_angle(drivers, drivers_observed, robot, joint)[-1] for joint in range(len(drivers))])
    gate = Gate.of_boards(robot, drivers, settings, file.terms.limits, stands)
    refusals = gate.refusals(plan) or ("",)
    length = f"{plan.period:g} s"
    return [*findings, *(BoardFinding("plan", "playable", not why, length, why or length) for why in refusals)]
