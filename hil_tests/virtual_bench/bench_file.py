"""Bench files: the one a person writes, and the live one a running bench writes for its clients."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hil_tests.virtual_bench.board import BoardClock
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.kinds import EMULATED as EMULATED
from hil_tests.virtual_bench.kinds import QEMU as QEMU
from hil_tests.virtual_bench.kinds import RP2040 as RP2040
from hil_tests.virtual_bench.kinds import SERVOS, VESC, Variant
from hil_tests.virtual_bench.kinds import UNIX as UNIX
from hil_tests.virtual_bench.plant_file import TICK, PlantFile, read_plant_file
from hil_tests.virtual_bench.plant_variants import in_variant
from jointbench.bench import BenchTerms
from jointbench.bench.bench_file import HOST, LineFaults, check_wires, fault_prefix, read_port, read_terms
from jointbench.errors import FileError, JointbenchError, RobotError
from jointbench.model import Robot, chain_of, load_robot, split_reference
from jointbench.model.table import Table, read_table
from jointwire import HIGHEST_DIVIDER

VERSION = 1
BAUD = 921600  # what a real board's UART is set to, and the speed of a shared line
_SAMPLE_EVERY = tuple(1 << exponent for exponent in range(HIGHEST_DIVIDER + 1))
_MOTORS = 2  # of a board whose joints are coupled
_HIGHEST_NODE = 254  # 255 addresses every board
_LOWEST_BAUD = 1200
_SHORTEST_TICK_US, _LONGEST_TICK_US = 100, 10_000
_LARGEST_DRIFT_PPM = 10_000.0  # a hundred crystals' worth
_LONGEST_BRAKE_MS = 2000
_LARGEST_OFFSET_S = 2**32 * TICK  # by then both counters of a board have wrapped
_LONGEST_DELAY_US = 1_000_000


@dataclass(frozen=True)
class MotorEntry:
    """A motor of a board: its number on the line, its joint, and that joint's place in the robot.

    Of a foot's board, which has no motor, it is the foot, and its place among the robot's feet.
    """

    node: int
    joint: str
    joint_index: int


@dataclass(frozen=True)
class BoardEntry:
    """One board of a bench file.

    Attributes:
        node, joint: its number on its line, and where it sits, a joint or a foot; of two motors the first one's.
        url: what emulates it, UNIX, QEMU or RP2040.
        joint_index: the joint's place in the robot, or the foot's among its feet.
        program: what runs instead of the firmware.
        line: name of the line it shares with the others that name it; None for a line of its own.
        baud: speed of its line; None for a line that is never the limit.
        clock: how its clock runs against true time.
        partner: its second motor, None where it has none.
        on_foot: whether it reads a foot's sensors and drives nothing.
        faults: of its line, as the beginning of its client's URL (docs/faults.md); "" for none.
        wiring: of a chip, what differs from the example of docs/boards.md; None for nothing.
        brake_ms: engage and release time of brakes that it opens; of a chip they are in its wiring. None for brakes
            that hold whenever a motor has no power.
        module: the module it is built into, type and serial, as its config.json has it; None for none.
        drive: the smart drive that is its motor and has all its sensors, one of SERVOS or a VESC; None for none.
    """

    node: int
    joint: str
    url: str
    joint_index: int
    program: Path | None
    line: str | None
    baud: int | None
    clock: BoardClock
    partner: MotorEntry | None = None
    on_foot: bool = False
    faults: str = ""
    wiring: Path | None = None
    brake_ms: tuple[int, int] | None = None
    module: Mapping[str, str] | None = None
    drive: str | None = None

    @property
    def motors(self) -> tuple[MotorEntry, ...]:
        """Its motors, one or two; of a foot's board where it sits."""
        first = MotorEntry(self.node, self.joint, self.joint_index)
        return (first,) if self.partner is None else (first, self.partner)

    @property
    def line_key(self) -> int | str:
        """What boards of one line have in common."""
        return self.line or self.node

    @property
    def shares_line(self) -> bool:
        """Whether its line has other nodes: then it speaks in its turn only."""
        return self.line is not None or self.partner is not None


@dataclass(frozen=True)
class LinkModel:
    """What all adapters and boards have in common on the way of a byte, in µs.

    Attributes:
        latency_us, jitter_us: a transfer through an adapter takes the first, and up to the second more.
        service_us: from a board's tick until it serves what it has received, and sends.
        sync_us: period of the pulses on the SYNC line; 0 where there are none.
    """

    latency_us: int
    jitter_us: int
    service_us: int
    sync_us: int


@dataclass(frozen=True)
class BenchFile:
    """A bench of emulated boards.

    `robot_reference` is the robot as the file names it, absolute when it is a path; `modules` is how many joints are
    left of it where it was cut afterwards; `sample_every` is for clients: ticks from one sample to the next; boards and
    plant tick each `tick_us`.
    """

    path: Path
    name: str
    robot: Robot
    robot_reference: str
    plant_path: Path
    plant: PlantFile
    boards: tuple[BoardEntry, ...]
    link: LinkModel
    servo: Mapping[str, Mapping[str, float]]
    terms: BenchTerms
    modules: int | None = None
    sample_every: int = 1
    tick_us: int = round(1e6 * TICK)

    @property
    def started_from(self) -> str:
        """What `./run sim` was told of it."""
        return str(self.path) if self.modules is None else f"{self.path} --modules {self.modules}"

    @property
    def lines(self) -> list[tuple[BoardEntry, ...]]:
        """The boards of each serial line, in the order of the file."""
        lines: dict[int | str, tuple[BoardEntry, ...]] = {}
        for board in self.boards:
            lines[board.line_key] = (*lines.get(board.line_key, ()), board)
        return list(lines.values())

    def hears_sync(self, board: BoardEntry) -> bool:
        """Whether pulses on the SYNC line reach a board: all boards, where the file has no wires."""
        pins = {f"{motor.joint}.sync" for motor in board.motors}
        return not self.terms.wires or not pins.isdisjoint(self.terms.joined_with(f"{HOST}.sync"))

    @property
    def common_ticks(self) -> bool:
        """Whether all boards count the same ticks, those of true time; chips count from when their program begins."""
        return all(board.clock == BoardClock() and board.url != RP2040 for board in self.boards)

    def with_boards_at(self, url: str) -> "BenchFile":
        """The same bench with every board on another emulator, a key of EMULATED.

        Raises:
            BenchFileError: there are boards that cannot be on it.
        """
        boards = tuple(replace(board, url=EMULATED[url]) for board in self.boards)
        if fault := _misfit(boards, self.robot):
            raise BenchFileError(f"{self.path.name}: {fault}")
        clock = "wall" if self.terms.clock == "wall" else _lockstep_clock(boards)
        return replace(self, boards=boards, terms=replace(self.terms, clock=clock))

    def in_variant(self, variant: Variant | None) -> "BenchFile":
        """The same bench on a plant of another make; None: as the file says.

        Raises:
            BenchFileError: the plant file says nothing of this make.
        """
        return self if variant is None else replace(self, plant=in_variant(self.plant, self.robot, variant))

    def with_modules(self, modules: int | str) -> "BenchFile":
        """The same bench of an arm that ends behind so many joints: robot, plant, boards and servos of these alone.

        Raises:
            BenchFileError: the robot has no such chain.
        """
        try:
            robot = chain_of(self.robot, modules)
        except RobotError as error:
            raise BenchFileError(str(error)) from error
        boards = tuple(_boards_of_chain(self.boards, robot))
        ends = {HOST, *(motor.joint for board in boards for motor in board.motors)}
        wires = (wire for wire in self.terms.wires if {_joint(wire.source), _joint(wire.target)} <= ends)
        return replace(
            self,
            robot=robot,
            robot_reference=f"{split_reference(self.robot_reference)[0]}:{robot.n_joints}",
            plant=self.plant.of_chain(robot),
            modules=robot.n_joints,
            boards=boards,
            terms=replace(self.terms, wires=tuple(wires)),
            servo={joint: values for joint, values in self.servo.items() if joint in robot.joint_names},
        )


def _joint(end: str) -> str:
    """Where the pin "JOINT.PIN" of a wire is."""
    return end.rpartition(".")[0]


def _boards_of_chain(boards: Iterable[BoardEntry], robot: Robot) -> Iterator[BoardEntry]:
    """Those whose joint or foot the robot still has."""
    feet = [foot.name for foot in robot.feet]
    for board in boards:
        if board.on_foot and board.joint in feet:
            yield replace(board, joint_index=feet.index(board.joint))
        elif not board.on_foot and board.joint in robot.joint_names:
            yield board


def read_bench_file(path: Path) -> BenchFile:
    """Read a bench file with its robot and plant.

    Raises:
        BenchFileError: it cannot be read, an entry is wrong, or the robot or plant it names is.
    """
    try:
        return _bench(read_table(path, "bench"), _whole(path))
    except FileError as error:
        raise BenchFileError(str(error)) from error


def _whole(path: Path) -> Path:
    """Where a path leads; of a link in a circle, which `Path.resolve` raises at, the path itself."""
    return Path(os.path.realpath(path))


def _bench(table: Table, path: Path) -> BenchFile:
    folder = path.parent
    table.version(VERSION)
    reference = table.text("robot")
    if split_reference(reference)[0].endswith((".toml", ".urdf")):
        reference = str(_whole(folder / reference))
    try:
        robot, whole_robot = load_robot(reference), load_robot(split_reference(reference)[0])
    except JointbenchError as error:
        raise BenchFileError(f"{table.where}: {error}") from error
    plant_path = _whole(folder / table.text("plant"))
    name = table.text("name")
    read = [_board(entry, robot, folder) for entry in table.tables("board")]
    boards = tuple(board for board, _ in read)
    _check_boards(table, boards)
    if fault := _misfit(boards, robot):
        table.fault(fault)
    terms = read_terms(table, _lockstep_clock(boards))
    boards = tuple(_with_faults(table, terms, board, read) for board in boards)
    tick_us = table.whole("tick_us", _SHORTEST_TICK_US, _LONGEST_TICK_US, default=round(1e6 * TICK))
    link = _link(table.table("link") if table.has("link") else Table({}, table.where), tick_us)
    _check_terms(table, terms, boards, link)
    servo = table.values("servo") if table.has("servo") else {}
    for joint in servo:  # numbers by joint; which of them there are is the client's matter
        entry = table.table("servo").table(joint)
        for setting in servo[joint]:
            entry.number(setting)
    sample_every = table.whole("sample_every", 1, default=1)
    if sample_every not in _SAMPLE_EVERY:
        table.fault(f"sample_every = {sample_every} must be one of {', '.join(map(str, _SAMPLE_EVERY))} ticks")
    table.finish()
    plant = read_plant_file(plant_path, whole_robot).of_chain(robot).on_ticks_of(1e-6 * tick_us)
    return BenchFile(
        path, name, robot, reference, plant_path, plant, boards, link, servo, terms, None, sample_every, tick_us
    )


def _check_boards(table: Table, boards: Sequence[BoardEntry]) -> None:
    """Refuse boards that cannot be on one bench."""
    if not boards:
        table.fault("a bench needs at least one table [[board]]")
    motors = [motor for board in boards for motor in board.motors]
    for kind, values in (("node", [str(motor.node) for motor in motors]), ("joint", [motor.joint for motor in motors])):
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            table.fault(f"{kind} {twice} has two boards; every board needs its own")
    for board in boards:
        other = next(other for other in boards if other.line_key == board.line_key)
        if other.baud != board.baud:
            table.fault(f"line {board.line!r} has baud {other.baud} and {board.baud}; boards of a line share its speed")


def _misfit(boards: Sequence[BoardEntry], robot: Robot) -> str:
    """What an emulator on this bench is asked and cannot be, in words; "" for nothing."""
    for board in boards:
        if board.drive is not None and board.url != UNIX:
            return f"board {board.node} has the drive {board.drive!r}; only one at {UNIX!r} has a bus for it"
        if board.url != RP2040:
            if board.wiring:
                return f"board {board.node} has a wiring; only one at {RP2040!r} has pins"
            continue
        reasons = {
            "has a line of its own": board.line is not None,
            "sits on a joint of a robot whose base is fixed": board.on_foot or robot.base_link or robot.feet,
            "starts with the bench, so it takes no clock_offset_s": board.clock.offset_us,
        }
        for reason, wrong in reasons.items():
            if wrong:
                return f"board {board.node} at {RP2040!r} {reason}"
    return ""


def _lockstep_clock(boards: Sequence[BoardEntry]) -> str:
    """What time is on these boards where a client gives it."""
    return "icount" if any(board.url in (QEMU, RP2040) for board in boards) else "virtual"


def _check_terms(table: Table, terms: BenchTerms, boards: Sequence[BoardEntry], link: LinkModel) -> None:
    """Refuse a clock that these boards do not have, and wires that lead nowhere."""
    clock = _lockstep_clock(boards)
    if terms.clock not in (clock, "wall"):
        table.fault(f"clock = {terms.clock!r} is not that of these boards; it is {clock!r}, or 'wall' for real time")
    check_wires(table, terms, [motor.joint for board in boards for motor in board.motors])
    if terms.wires and not (link.sync_us and len(terms.joined_with(f"{HOST}.sync")) > 1):
        table.fault(f"wires join SYNC pins that get no pulses; set sync_s in [link], and wire one to '{HOST}.sync'")


def _with_faults(
    table: Table, terms: BenchTerms, board: BoardEntry, read: Sequence[tuple[BoardEntry, LineFaults]]
) -> BoardEntry:
    line = [(other, faults) for other, faults in read if other.line_key == board.line_key]
    lowest_node = min(motor.node for other, _ in line for motor in other.motors)
    return replace(board, faults=fault_prefix(table, terms, {each.joint: said for each, said in line}, lowest_node))


def _board(table: Table, robot: Robot, folder: Path) -> tuple[BoardEntry, LineFaults]:
    on_foot = table.has("foot")
    first, *others = [_foot(table, robot)] if on_foot else _motors(table, robot)
    url, faults = read_port(table)
    if url not in EMULATED:
        table.fault(
            f"url = {url!r} is not emulated; the virtual bench starts chips at {RP2040!r}, boards at "
            f"{', '.join(repr(known) for known in EMULATED if known != RP2040)}, clients open others"
        )
    program = _whole(folder / table.text("program")) if table.has("program") else None
    line = table.text("line") if table.has("line") else None
    if line == "":
        table.fault("line = '' must name the line that boards share; leave it out for a line of its own")
    wiring = _whole(folder / table.text("wiring")) if table.has("wiring") else None
    baud = table.whole("baud", _LOWEST_BAUD) if table.has("baud") else BAUD if line is not None else None
    brake_ms = None
    if table.has("brake_ms"):
        engage, release = (round(each) for each in table.numbers("brake_ms", 2))
        if url == RP2040 or on_foot or not (1 <= engage <= _LONGEST_BRAKE_MS and 1 <= release <= _LONGEST_BRAKE_MS):
            table.fault(
                f"brake_ms = [{engage}, {release}] must be engage and release time of a motor's brake, each from 1 to "
                f"{_LONGEST_BRAKE_MS} ms; a chip has them in its wiring"
            )
        brake_ms = engage, release
    clock = BoardClock(
        offset_us=round(1e6 * _within(table, "clock_offset_s", 0.0, _LARGEST_OFFSET_S)),
        drift_ppb=round(1e3 * _within(table, "clock_ppm", -_LARGEST_DRIFT_PPM, _LARGEST_DRIFT_PPM)),
    )
    module = _module(table.table("module")) if table.has("module") else None
    drive = table.text("drive", allowed=(*SERVOS, VESC)) if table.has("drive") else None
    if drive is not None and (on_foot or others):
        table.fault(f"drive = {drive!r} is for a board with one motor")
    table.finish()
    partner = others[0] if others else None
    return BoardEntry(
        first.node, first.joint, EMULATED[url], first.joint_index, program, line, baud, clock, partner, on_foot,
        wiring=wiring, brake_ms=brake_ms, module=module, drive=drive,
    ), faults  # fmt: skip


def _module(table: Table) -> Mapping[str, str]:
    module = {key: table.text(key) for key in ("type", "serial")}
    table.finish()
    return module


def _foot(table: Table, robot: Robot) -> MotorEntry:
    node = table.whole("node", 1, _HIGHEST_NODE)
    table.where += f" (node {node})"
    foot, feet = table.text("foot"), [foot.name for foot in robot.feet]
    if foot not in feet:
        table.fault(f"foot = {foot!r}: robot {robot.name!r} has {', '.join(feet) or 'no feet'}")
    return MotorEntry(node, foot, feet.index(foot))


def _motors(table: Table, robot: Robot) -> list[MotorEntry]:
    """Read node and joint, or nodes and joints of a board with two motors."""
    if table.has("nodes") or table.has("joints"):
        if table.has("node") or table.has("joint"):
            table.fault("has node or joint beside nodes and joints; write node and joint for one motor")
        nodes = [table.whole_of("nodes", node, 1, _HIGHEST_NODE) for node in table.numbers("nodes", _MOTORS)]
        joints = table.texts("joints")
        if len(joints) != _MOTORS:
            table.fault(f"joints = {list(joints)} must name {_MOTORS} joints, one for each of nodes = {nodes}")
        for key, pair in (("nodes", nodes), ("joints", joints)):
            if len(set(pair)) < _MOTORS:
                table.fault(f"{key} = {list(pair)} must differ; each motor has its own")
        table.where += f" (nodes {nodes[0]} and {nodes[1]})"
    else:
        nodes = [table.whole("node", 1, _HIGHEST_NODE)]
        table.where += f" (node {nodes[0]})"
        joints = (table.text("joint"),)
    for joint in joints:
        if joint not in robot.joint_names:
            key = "joint" if len(joints) == 1 else "joints"
            table.fault(f"{key} = {joint!r}: robot {robot.name!r} has {', '.join(robot.joint_names)}")
    return [MotorEntry(node, joint, robot.joint_index(joint)) for node, joint in zip(nodes, joints, strict=True)]


def _link(table: Table, tick_us: int) -> LinkModel:
    model = LinkModel(
        latency_us=round(_within(table, "latency_us", 0.0, _LONGEST_DELAY_US)),
        jitter_us=round(_within(table, "jitter_us", 0.0, _LONGEST_DELAY_US)),
        service_us=round(_within(table, "service_us", 0.0, tick_us)),
        sync_us=round(1e6 * _within(table, "sync_s", 0.0, 3600.0)),
    )
    if 0 < model.sync_us < tick_us:
        table.fault(
            f"sync_s = {1e-6 * model.sync_us:g} must be 0 for no pulses, or at least a tick of {1e-6 * tick_us:g} s"
        )
    table.finish()
    return model


def _within(table: Table, key: str, lowest: float, highest: float) -> float:
    value = table.number(key, 0.0)
    if not lowest <= value <= highest:
        table.fault(f"{key} = {value:g} must be from {lowest:g} to {highest:g}")
    return value
