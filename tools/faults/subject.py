"""What a fault strikes: one joint with its board, its limits, and the motion it plays."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from hil_tests.link_helpers import Wave
from hil_tests.small_bench import PROGRAMS
from hil_tests.virtual_bench.bench_file import BenchFile, read_bench_file
from hil_tests.virtual_bench.board_clock import BoardClock
from jointbench.link import Bench
from jointbench.link.client import RegisterName
from jointbench.link.trajectory import trajectory_knots
from jointwire import State
from tools.faults.cell import Cell
from tools.faults.errors import CellNotRun
from tools.faults.mutations import MUTATIONS

BENCH = Path(__file__).parents[2] / "hil_tests" / "benches" / "modular7.toml"
BREAKING = PROGRAMS / "breaking.py"
MODULES = 1  # of the arm: its first joint, about a vertical axis
WAY = 0.08  # [rad], of a motion that is there and back again
PERIOD = 0.768  # [s]
REPEATS = 2  # of it, where it is struck while it moves
LEAST_DRIVEN = round(0.9e3 * PERIOD)  # ticks with the motor on in each period that was played
JOINT, NODE = "j1", 1
HOT = {"fault": "temperature", "temperature_degC": 150}  # how its board gets into FAULT
CLAMP_MA = 10_000  # limit.current; the motion needs 1500
# Limits that a sound joint keeps in this motion, raw; the others are what the host sets or a board has by default.
LIMITS: dict[RegisterName, int] = {
    "limit.current": CLAMP_MA,
    "limit.continuous_current": CLAMP_MA,
    "limit.following": 2000,  # counts; the motion makes 700
    "limit.jump": 200,  # counts in a tick; the motion makes 40
    "limit.stuck_current": 1000,  # mA; what moves the joint at all
    "limit.stuck_time": 20,  # ticks
    "limit.supply_min": 40_000,  # mV, of 48 V
    "limit.supply_max": 55_000,
}


def bench_of(cell: Cell, folder: Path) -> BenchFile:
    """The bench of a cell: one board, which may run a program that breaks, or by a clock of its own."""
    description = read_bench_file(BENCH).with_modules(MODULES).with_boards_at(cell.board)
    (board,) = description.boards
    if cell.fault.way == "echo" or cell.mutation:
        program = folder / "program.py"
        program.write_text(_program(cell), encoding="utf-8")
        board = replace(board, program=program)
    if cell.fault.way == "drift_ppm":
        board = replace(board, clock=BoardClock(0, 1000 * cell.fault.setting))
    return replace(description, boards=(board,))


def _program(cell: Cell) -> str:
    """The firmware that can be broken, without the rule that a mutation takes out."""
    at_boot = cell.fault.setting if cell.fault.way == "echo" and cell.state is State.BOOT else 0
    text = BREAKING.read_text(encoding="utf-8").replace("AT_BOOT = 0", f"AT_BOOT = {at_boot}")
    return text.replace("# MUTATION", MUTATIONS[cell.mutation].code) if cell.mutation else text


def with_faulty_line(live: Path, cell: Cell, moment_us: int) -> Path:
    """The live bench file, with the cell's faults on its line where it has any.

    Raises:
        CellNotRun: it does not have exactly one board's URL.
    """
    if not cell.fault.line:
        return live
    options = f"seed={cell.own_seed % 2**31}&" + cell.fault.line.replace("{at}", f"{moment_us}us")
    path = live.with_name("faulty.toml")
    text, lines = re.subn(r'\burl = "([^"]*)"', rf'url = "fault://{options};\1"', live.read_text(encoding="utf-8"))
    if lines != 1:
        raise CellNotRun(f"{cell.id}: {live} has {lines} URLs of boards; its line's fault needs exactly one")
    path.write_text(text, encoding="utf-8")
    return path


def set_up(bench: Bench) -> None:
    """Connect to the board, and set servo and limits."""
    bench.connect()
    bench.configure()
    for register, value in LIMITS.items():
        bench.boards[0].write_register(register, value)


def motion(bench: Bench, start: float | None = None) -> Wave:
    """There and back again from where it is to stand, home unless told otherwise, and always towards home."""
    begin = float(bench.robot.home[0]) if start is None else start
    return Wave(np.array([begin]), np.array([-WAY if begin > bench.robot.home[0] else WAY]), PERIOD)


def load(bench: Bench) -> None:
    """Upload the motion, as playing does."""
    knots = trajectory_knots(motion(bench), bench.robot, bench.facts)
    bench.boards[0].upload(knots[0], 1)
