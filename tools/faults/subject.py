"""What a fault strikes: one joint with its board, limits and motion; the clock that strikes, and the host after."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.link_helpers import Wave
from hil_tests.small_bench import PROGRAMS
from hil_tests.virtual_bench.bench_file import BenchFile, read_bench_file
from hil_tests.virtual_bench.board import BoardClock
from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.arrays import Array
from jointbench.bench import Bench, Clock, Feedforward, LockstepClock, RegisterName, open_bench, trajectory_knots
from jointbench.bench.floating import FloatTable
from jointbench.errors import JointbenchError
from jointbench.model import inverse_dynamics, load_robot
from jointbench.recording import Recorder
from jointwire import Chunk, Frame, MessageType, State
from tools.faults.cell import Cell, CellNotRun
from tools.faults.mutations import MUTATIONS


class MomentClock:
    """The target's clock, with something that happens at a moment, whoever waits on it then.

    Attributes:
        target: the clock behind.
        moment_us: when it is to happen [µs].
        struck_us: when it happened [µs], None before.
    """

    def __init__(self, clock: Clock, moment_us: int, strike: Callable[[], None]) -> None:
        """Wait for the moment; it may be now."""
        assert isinstance(clock, LockstepClock)
        self.target = clock
        self.name = clock.name
        self.common_ticks = clock.common_ticks
        self.struck_us: int | None = None
        self.moment_us = moment_us
        self._strike = strike

    def now_us(self) -> int:
        """Time of the target [µs]."""
        return self.target.now_us()

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """As any clock, but never past the moment; what happens there happens before time goes on."""
        left_us = self.moment_us - self.target.now_us()
        if self.struck_us is None and left_us <= 0:
            self.struck_us = self.target.now_us()
            self._strike()
        self.target.wait(min(timeout_us, left_us) if left_us > 0 else timeout_us, gather_us, timed_us)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have the bench do something besides."""
        return self.target.ask(request)

    def close(self) -> None:
        """Let the target go."""
        self.target.close()


class CountedRecorder(Recorder):
    """Writes a run.

    Attributes:
        taken: frames and byte strings that were none, so far.
        blocks: frames of samples among them.
        begins_at: the board's tick at which the motion begins, as START said; 0 before.
    """

    def __init__(self, directory: Path, provenance: Mapping[str, Any]) -> None:
        """Create the run's directory."""
        super().__init__(directory, provenance)
        self.taken = self.blocks = self.begins_at = 0

    def event(self, time_us: int, event: str, **fields: Any) -> None:
        """Record it, and note when the motion begins."""
        if event == "start":
            self.begins_at = fields["at_tick"]
        super().event(time_us, event, **fields)

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Count it, then record it."""
        self.taken += 1
        self.blocks += isinstance(chunk.content, Frame) and chunk.content.type is MessageType.DATA
        super().chunk(time_us, node, chunk)


BENCH = Path(__file__).parents[2] / "hil_tests" / "benches" / "modular7.toml"
BREAKING = PROGRAMS / "breaking.py"
_PLANT = BENCH.parents[1] / "virtual_bench" / "plants" / "modular7.toml"
ROBOT = "modular7:1"
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


WATCHED_A = 0.5  # limit.unexpected of a motion with feed-forward; friction alone takes more than 1 A
_SIGN_WITHIN = 0.01  # [rad/s], of the planned velocity, over which friction turns its sign


def right_feedforward(bench: Bench, of: Wave | None = None) -> Feedforward:
    """The feed-forward of the motion by what the emulated joint really is, friction included; boards watch.

    Args:
        bench: of the joint.
        of: another motion with as many knots, of which the currents are; None: of the one that is played.
    """
    part = read_plant_file(_PLANT, load_robot(ROBOT.partition(":")[0])).joints[0]
    _, velocity, acceleration = _at_knots(bench, of)
    assert part.link.standard_parameters is not None
    rigid = inverse_dynamics(bench.robot, *_at_knots(bench, of), part.link.standard_parameters)
    rotor = part.rotor_inertia * bench.robot.drives[0].ratio ** 2 * acceleration
    size = part.coulomb + part.stribeck * np.exp(-((velocity / part.stribeck_velocity) ** 2))
    friction = size * np.tanh(velocity / _SIGN_WITHIN) + part.viscous * velocity
    return _watched(bench, rigid + rotor + friction, WATCHED_A)


def feedforward_of(bench: Bench, robot: str, unexpected_A: float) -> Feedforward:
    """The feed-forward of another robot's links along the motion; boards watch beyond this current, at 0 none does."""
    other = load_robot(robot)
    assert other.standard_parameters is not None
    return _watched(bench, inverse_dynamics(other, *_at_knots(bench), other.standard_parameters), unexpected_A)


def other_motion(bench: Bench) -> Wave:
    """A motion of as many knots to the other side."""
    played = motion(bench)
    return Wave(played.start, -played.way, played.period)


def _at_knots(bench: Bench, of: Wave | None = None) -> tuple[Array, Array, Array]:
    n_knots = trajectory_knots(motion(bench), bench.robot, bench.facts).shape[1]
    return (of or motion(bench)).evaluate(np.linspace(0.0, PERIOD, n_knots))


def _watched(bench: Bench, torque: Array, unexpected_A: float) -> Feedforward:
    limit_A = np.array([unexpected_A or np.inf])
    return replace(Feedforward.of_joint_torque(torque, bench.robot), unexpected_limit_A=limit_A)


def load(bench: Bench, feedforward: Feedforward | None = None, repeats: int = 0) -> None:
    """Upload the motion, as playing does; with feed-forward twice, for boards watch the second repeat alone."""
    knots = trajectory_knots(motion(bench), bench.robot, bench.facts)
    (board,), currents = bench.boards, None
    if feedforward is not None:
        (sent,) = feedforward.for_boards(bench.robot, bench.facts, knots.shape[1])
        currents = sent.currents_mA
        for name, raw in sent.registers.items():
            board.write_register(name, raw)
    board.upload(knots[0], repeats or (1 if feedforward is None else REPEATS), currents)


FLOAT_SECONDS = 2.0
_FLOAT_ROWS, _FLOAT_MA = 64, 200  # of its table, far below friction


def float_table(bench: Bench) -> FloatTable:
    """A table by which the joint floats: the same current everywhere, for nothing pulls at it."""
    registers = bench.facts[0].registers
    low, high = registers["limit.position_min"], registers["limit.position_max"]
    step = 1 << int(np.ceil(np.log2((high - low) / (_FLOAT_ROWS - 2))))
    positions = (low // step + np.arange(_FLOAT_ROWS)) * step
    return FloatTable(
        positions.astype(np.int32), np.full(_FLOAT_ROWS, _FLOAT_MA, dtype=np.int16),
        {"limit.float": 1000, "float.timeout": 200, "float.velocity": registers["limit.velocity"], "stream.block": 16},
    )  # fmt: skip


TOLD_US = 1_200_000  # a board in FAULT tells it each second
REST_US = 50_000


@dataclass(frozen=True)
class Recovery:
    """How a board was found, and whether it plays again.

    Attributes:
        since_us: the bench's time when the second host came; motors that were on are off by then.
        latched: number of the trip that it had, 0 without one.
        problem: why it does not play again; empty where it does.
        image: SHA-256 of the firmware that the board says it runs; empty where it does not answer.
    """

    since_us: int
    latched: int
    problem: str
    image: str = ""


def recover(live: Path, power: bool) -> Recovery:
    """Be the second host, on a good line, with everything healed.

    Args:
        live: the bench.
        power: whether the board's power has to be taken first; that of one that is gone is taken anyhow.
    """
    with open_bench(live) as bench:
        clock, (board,) = bench.clock, bench.boards
        assert isinstance(clock, LockstepClock)
        since_us, latched, image = clock.now_us(), 0, ""
        try:
            _pass(clock, REST_US)  # a board that is gone says so
            if power or board.why_lost:
                clock.restart(board.node)
            bench.connect()
            image = bench.identities[0].image_sha256
            if board.state is State.FAULT:
                _pass(clock, TOLD_US)
                latched = board.fault.trip if board.fault else -1
            _play_again(bench, clock)
        except JointbenchError as error:
            return Recovery(since_us, latched, f"does not play again: {error}", image)
        return Recovery(since_us, latched, _judge_outputs(clock, board.node), image)


def _play_again(bench: Bench, clock: LockstepClock) -> None:
    """What anybody does after a fault, from where the joint was left."""
    if bench.boards[0].state is State.FAULT:
        bench.clear()
    set_up(bench)
    start = float(bench.positions()[0])
    clock.ask({"outputs": bench.boards[0].node})
    bench.play(motion(bench, start))


def _judge_outputs(clock: LockstepClock, node: int) -> str:
    outputs = clock.ask({"outputs": node})["outputs"]
    driven = [command for _, enable, command in outputs if enable]
    if len(driven) < LEAST_DRIVEN or not any(driven):
        return f"says that it played, but its motor was on for {len(driven)} ticks of {LEAST_DRIVEN}"
    return "" if outputs[-1][1:] == [0, 0] else "played again, and its motor is on yet"


def _pass(clock: LockstepClock, for_us: int) -> None:
    end_us = clock.now_us() + for_us
    while (left_us := end_us - clock.now_us()) > 0:
        clock.wait(left_us)
