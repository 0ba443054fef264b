"""Checks that a bench's boards are together those of the robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.bench_file import BenchFile
from jointbench.bench.board import Board
from jointbench.bench.identity import FOOT_CHANNELS, Facts
from jointbench.errors import BoardRefused, FileError
from jointbench.model import Drive, Robot


def check_joints(file: BenchFile, robot: Robot) -> None:
    """Refuse a bench file that does not give each joint of its robot one board, or a board to a foot that is none.

    Raises:
        FileError: names the boards' joints and the robot's, or the foot.
    """
    feet = [foot.name for foot in robot.feet]
    for entry in file.boards:
        if entry.on_foot and entry.joint not in feet:
            known = f"its feet: {', '.join(feet)}" if feet else "it has none"
            raise FileError(f"bench {file.name!r} has a board for foot {entry.joint!r} of {robot.name!r}; {known}")
    joints = [entry.joint for entry in file.boards if not entry.on_foot]
    missing = [joint for joint in robot.joint_names if joint not in joints]
    unknown = [joint for joint in joints if joint not in robot.joint_names]
    if missing or unknown:
        raise FileError(
            f"bench {file.name!r} has boards for {', '.join(joints)}; robot {robot.name!r} needs one each for "
            f"{', '.join(robot.joint_names)}"
        )
    if robot.drive_train.n_motors > robot.n_joints:
        raise FileError(
            f"robot {robot.name!r} has {robot.drive_train.n_motors} motors for {robot.n_joints} joints; a bench drives "
            "one for each joint. Import recordings of it instead"
        )


def check_boards(robot: Robot, boards: Sequence[Board], facts: Sequence[Facts]) -> None:
    """Refuse boards that are others than the bench file says, by what they say of themselves.

    Args:
        robot: the bench's.
        boards, facts: of each joint.

    Raises:
        BoardRefused: names the board, what it says and what is expected.
    """
    for joint, (board, board_facts) in enumerate(zip(boards, facts, strict=True)):
        check_board(robot, joint, board, board_facts, facts[0])


def check_board(robot: Robot, joint: int, board: Board, facts: Facts, first: Facts) -> None:
    """Refuse one board that is another than the bench file says.

    Args:
        robot: the bench's.
        joint: index of the joint that it is to drive.
        board, facts: what it says of itself.
        first: of the first joint's board.

    Raises:
        BoardRefused: as in `check_boards`.
    """
    _check_facts(board, facts, first, float(board_ratios(robot)[joint]))
    _check_motor(board, facts, robot.drives[joint])


def check_feet(boards: Sequence[Board], facts: Sequence[Facts], first: Facts) -> None:
    """Refuse boards at feet that do not read four forces, or drive a motor.

    Args:
        boards, facts: of each foot that has one.
        first: of the first joint's board.

    Raises:
        BoardRefused: names the foot, what its board says and what is expected.
    """
    for board, board_facts in zip(boards, facts, strict=True):
        _check_common(board, board_facts, first)
        if board_facts.has_motor:
            raise BoardRefused(
                board.joint, board.node, "drives a motor (board.channels), the bench file has it read a foot's sensors"
            )
        if missing := [name for name in FOOT_CHANNELS if not board_facts.has(name)]:
            raise BoardRefused(
                board.joint,
                board.node,
                f"does not measure {', '.join(missing)} (board.channels); a foot's board reads all four corners",
            )


def check_lines(file: BenchFile, facts: Sequence[Facts]) -> None:
    """Refuse boards that are set up for another kind of line than the bench file gives them.

    Raises:
        BoardRefused: names the board and its line.
    """
    by_node = {board_facts.registers["board.node"]: board_facts for board_facts in facts}
    for entries in file.lines:
        for entry in entries:
            shares = bool(by_node[entry.node].registers["board.shared_line"])
            if shares == (len(entries) > 1):
                continue
            text = (
                f"is set up for a shared line (board.shared_line = 1), but is alone at {entry.url!r}; give the others "
                "of its line the same url, or set its fact board.shared_line = 0"
                if shares
                else f"is not set up for a shared line, but the bench file gives {entry.url!r} to {len(entries)} "
                "boards; set its fact board.shared_line = 1, or give each board a url of its own"
            )
            raise BoardRefused(entry.joint, entry.node, text)


def board_ratios(robot: Robot) -> Array:
    """Expected drive.ratio of each board: the largest of its motor's row of M, signed as the diagonal.

    Args:
        robot: of as many motors as joints.

    Returns:
        Ratios, shape (n_joints,).
    """
    matrix = robot.transmission_matrix
    return np.abs(matrix).max(axis=1) * np.where(np.diag(matrix) < 0.0, -1.0, 1.0)


def _check_common(board: Board, facts: Facts, first: Facts) -> None:
    if facts.registers["board.node"] != board.node:
        raise BoardRefused(
            board.joint,
            board.node,
            f"is node {facts.registers['board.node']} by its own register; correct the bench file",
        )
    for name in ("board.tick_period", "knots.ticks"):
        if facts.registers[name] != first.registers[name]:
            raise BoardRefused(
                board.joint,
                board.node,
                f"{name} = {facts.registers[name]}, the first board has {first.registers[name]}; they must be equal",
            )


def _check_facts(board: Board, facts: Facts, first: Facts, ratio: float) -> None:
    _check_common(board, facts, first)
    if abs(facts.ratio - ratio) > 0.5e-3:  # half of the register's step
        raise BoardRefused(
            board.joint,
            board.node,
            f"says drive.ratio = {facts.ratio:g}, the robot file {ratio:g}; is this the board of another joint?",
        )
    if any(facts.has(name) for name in FOOT_CHANNELS):
        raise BoardRefused(
            board.joint, board.node, "reads a foot's sensors (board.channels), the bench file has it drive a joint"
        )


def _check_motor(board: Board, facts: Facts, drive: Drive) -> None:
    """Refuse a joint that is driven by the robot's file and not by its board, or the other way round."""
    driven = drive.kind != "none"
    if facts.has_motor != driven:
        board_has = "drives a motor" if facts.has_motor else "has no motor"
        robot_has = "has a drive for it" if driven else "has no drive for it"
        raise BoardRefused(
            board.joint, board.node, f"{board_has} (board.channels), the robot file {robot_has}; correct one of them"
        )
    if not facts.has(facts.position_channel):
        raise BoardRefused(
            board.joint,
            board.node,
            f"does not measure {facts.position_channel}, so that its position is unknown; add it to board.channels",
        )
