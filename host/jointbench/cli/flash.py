"""Put the firmware onto the boards of a bench, or onto the board at a port, so that each always has one that starts."""

from __future__ import annotations

import argparse
from pathlib import Path

from serial.tools.list_ports import comports

from jointbench.bench import BenchFile, BenchTerms, BoardEntry, Identity, read_bench_file
from jointbench.bench.flash import (
    BOARD_KINDS,
    FIRMWARE,
    FlashOptions,
    FlashReport,
    StepDone,
    ask_boards,
    boards_of,
    flash_board,
)
from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import BoardLost, FlashError, RobotError

VERB = "flash"
EXAMPLE = "jointbench flash bench.toml --joint j3"
_BAR = 20  # characters
_LAST_NODE = 254


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH or PORT, which boards, and how."""
    parser.add_argument("target", metavar="BENCH|PORT", help="a bench .toml, or the serial port of one board")
    kinds = tuple(BOARD_KINDS)
    parser.add_argument("--board", choices=kinds, help="what kind the boards must be; needed for a bare one")
    parser.add_argument("--joint", metavar="JOINT", help="only the board of this joint, with all of its motors")
    parser.add_argument("--node", type=int, default=1, metavar="N", help="number of the board at PORT (%(default)s)")
    parser.add_argument("--baud", type=int, default=921600, metavar="N", help="speed of PORT (%(default)s)")
    parser.add_argument("--config", metavar="FILE", help="the board's config.json; a bare board needs one")
    parser.add_argument("--sim-joint", action="store_true", help="let the board simulate a joint: it needs no motor")
    parser.add_argument("--firmware", metavar="DIR", help="sources of the firmware (those that came along)")
    parser.add_argument("--backup", metavar="DIR", default="runs/flash", help="for the boards' own files (%(default)s)")
    parser.add_argument("--key", metavar="FILE", help="the boards' key: images are signed by it")
    parser.add_argument(
        "--new-key", metavar="FILE", help="the key that the boards are given, to start only what it signed"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and write nothing")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Flashes board after board, ending with the first that does not take its image; exit code 1 for that."""
    file = _bench_file(options)
    boards, said = _ask(file, _chosen(file, options.joint))
    if options.config and len(boards) > 1:
        raise FlashError(f"--config is one board's; {file.path} has {len(boards)}: choose one with --joint")
    config, key, new_key = (Path(path) if path else None for path in (options.config, options.key, options.new_key))
    how = FlashOptions(
        options.board, Path(options.firmware or FIRMWARE), config, options.sim_joint, options.dry_run,
        Path(options.backup), key, new_key,
    )  # fmt: skip
    reports: list[FlashReport] = []
    for board in boards:
        joint = board[0].joint
        reports.append(flash_board(file, board, said[joint], how, _progress_bar(console, joint)))
        _tell(reports[-1], console, options.dry_run)
        if not reports[-1].ok:
            break
    untouched = [entry.joint for board in boards[len(reports) :] for entry in board]
    if untouched:
        console.say(f"not flashed, because a board before did not take its image: {', '.join(untouched)}")
    fields = {"boards": [report.to_dict() for report in reports], "not_flashed": untouched, "dry_run": options.dry_run}
    return Result("flash", fields=fields, refused=not all(report.ok for report in reports))


def _bench_file(options: argparse.Namespace) -> BenchFile:
    if options.target.endswith(".toml"):
        return read_bench_file(options.target)
    if not 1 <= options.node <= _LAST_NODE:
        raise FlashError(
            f"--node is {options.node}; it must be from 1 to {_LAST_NODE}, as config.json of the board has it"
        )
    if options.baud < 1:
        raise FlashError(f"--baud is {options.baud}; it must be the speed of the board's line, such as 921600")
    entry = BoardEntry(options.node, options.joint or "board", options.target, options.baud)
    return BenchFile(options.target, "", BenchTerms(), None, (entry,), {}, {}, False, 1, Path(options.target))


def _ask(file: BenchFile, entries: list[BoardEntry]) -> tuple[list[tuple[BoardEntry, ...]], dict[str, Identity | None]]:
    """The boards of these entries, each with all of its motors, and what was answered."""
    lines = {entry.url for entry in entries}
    together = [entry for entry in file.boards if entry.url in lines]
    try:
        said = ask_boards(file, [entry.joint for entry in together])
    except BoardLost as error:
        ports = ", ".join(sorted(port.device for port in comports())) or "none"
        raise FlashError(f"{error}. Serial ports of this machine: {ports}") from error
    return [board for board in boards_of(together, said) if any(entry in entries for entry in board)], said


def _chosen(file: BenchFile, joint: str | None) -> list[BoardEntry]:
    entries = [entry for entry in file.boards if joint in (None, entry.joint)]
    if not entries:
        joints = ", ".join(entry.joint for entry in file.boards)
        raise RobotError(f"bench {file.name!r} has no board for joint {joint!r}; its joints: {joints}")
    return entries


def _tell(report: FlashReport, console: Console, steps: bool) -> None:
    console.say(report.text)
    for step in report.steps if steps else ():
        console.say(f"  {step}")
    if report.backup:
        console.say(f"  the files of the board's owner are kept in {report.backup}")
    for note in report.notes:
        console.say(f"  note: {note}")


def _progress_bar(console: Console, joint: str) -> StepDone:
    def show(number: int, steps: int, text: str) -> None:
        done = _BAR * (number - 1) // steps
        console.progress(f"{joint} [{'#' * done}{'.' * (_BAR - done)}] {number}/{steps} {text}")

    return show
