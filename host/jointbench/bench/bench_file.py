"""Bench files: where each joint's board is, and the bench's clock, features, limits, wiring and faults on its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jointbench.bench.fault import is_fault_url, parse_fault_url
from jointbench.bench.line import refused_scheme
from jointbench.bench.settings import SAMPLE_EVERY, ServoOverride
from jointbench.errors import FileError
from jointbench.model import from_folder
from jointbench.model.table import Table, read_table

CLOCKS = ("virtual", "icount", "wall")
PINS = ("sync",)
LIMITS = {
    "position_rad": "how far a joint may go from where it stands, either way",
    "velocity_rad_s": "how fast a joint may move",
    "current_A": "how much current a motor may be given",
}
EMULATED = ("unix:", "qemu:", "rp2040:")  # of a bench file that a virtual bench is started from
HOST = "host"  # as one end of a wire: where SYNC pulses may come from
_SEEDS_APART = 256  # lines of one seed differ by their lowest node, which is less
VERSION = 1
SIM_LOG = "bench.log"
"""What a virtual bench leaves in its folder."""


@dataclass(frozen=True)
class Wire:
    """A wire between two pins, each "JOINT.PIN"; `source` may be a pin of the host."""

    source: str
    target: str


@dataclass(frozen=True)
class BenchTerms:
    """Terms of a bench file that hold for all its boards.

    Attributes:
        clock: "virtual" or "icount" where a control socket gives the time (boards that compute in no time, or that
            count their instructions), "wall" for real time.
        features: what the file says in words that the bench has.
        limits: what the bench allows, by the names of LIMITS.
        wires: between boards.
        fault_seed, fault_profile: faults of every line that has none of its own (docs/faults.md); "" for none.
    """

    clock: str = "wall"
    features: frozenset[str] = frozenset()
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    wires: tuple[Wire, ...] = ()
    fault_seed: int = 0
    fault_profile: str = ""

    def joined_with(self, end: str) -> set[str]:
        """Every "JOINT.PIN" that wires join with this one, itself too."""
        reached = {end}
        for _ in self.wires:
            for wire in self.wires:
                if reached & {wire.source, wire.target}:
                    reached |= {wire.source, wire.target}
        return reached

    def join_all(self, pin: str, joints: Iterable[str]) -> bool:
        """True if wires join this pin of all of these boards, of two at least."""
        ends = {f"{joint}.{pin}" for joint in joints}
        return len(ends) > 1 and ends <= self.joined_with(min(ends))


@dataclass(frozen=True)
class LineFaults:
    """Faults that a board's entry puts on its line.

    Attributes:
        prefix: what stands before the port in a fault:// URL, "" where the URL is none.
        profile: of the key `fault`, None without the key.
    """

    prefix: str = ""
    profile: str | None = None


def read_terms(table: Table, clock: str) -> BenchTerms:
    """Read the keys `clock`, `features`, `limits`, `wire` and `fault`; `clock` is it where the file does not say.

    Raises:
        FileError: an entry is mistyped, unknown or repeated.
    """
    clock = table.text("clock", clock, CLOCKS)
    features = table.texts("features") if table.has("features") else ()
    twice = next((name for name in features if features.count(name) > 1), None)
    if twice is not None:
        table.fault(f"features name {twice!r} twice")
    seed, profile = _faults(table.table("fault")) if table.has("fault") else (0, "")
    wires = tuple(_wire(entry) for entry in table.tables("wire"))
    return BenchTerms(clock, frozenset(features), _limits(table), wires, seed, profile)


def check_wires(table: Table, terms: BenchTerms, joints: Iterable[str]) -> None:
    """Refuse a wire to a board or pin that is not there; `joints` are where the bench's boards sit.

    Raises:
        FileError: names the wire, and what there is.
    """
    boards = (*joints, HOST)
    for wire in terms.wires:
        for end in (wire.source, wire.target):
            joint, _, pin = end.rpartition(".")
            if joint not in boards:
                table.fault(f"wire from {wire.source!r} to {wire.target!r}: there is no board {joint!r}; there are "
                            f"{', '.join(boards)}")  # fmt: skip
            if pin not in PINS:
                table.fault(f"wire from {wire.source!r} to {wire.target!r}: a board has no pin {pin!r} for the bench; "
                            f"it has {', '.join(PINS)}")  # fmt: skip


def read_port(table: Table) -> tuple[str, LineFaults]:
    """Read a board's `url` and `fault`: its port, and what it says of faults on the way there.

    Raises:
        FileError: the URL is missing, faults that cannot be, or faults twice.
    """
    url = table.text("url")
    profile = table.text("fault") if table.has("fault") else None
    port = url.rpartition(";")[2] if is_fault_url(url) else url
    if not port.strip().startswith(EMULATED) and (why := refused_scheme(port)):
        table.fault(f"url = {url!r}: {why}")
    if not is_fault_url(url):
        if profile:
            _check_profile(table, f"fault://seed=0&{profile};{url}")
        return url, LineFaults("", profile)
    if profile is not None:
        table.fault(f"has fault = {profile!r} beside a fault:// URL; write all faults into one of the two")
    _check_profile(table, url)
    options, _, port = url.partition(";")
    return port.strip(), LineFaults(f"{options};")


def fault_prefix(table: Table, terms: BenchTerms, said: Mapping[str, LineFaults], lowest_node: int) -> str:
    """Begin the URL of a line with its faults, "" for none: its boards' own, or else the bench's.

    Args:
        table: of the bench.
        terms: of the bench.
        said: by where each of the line's boards sits, what it says of faults.
        lowest_node: of the line, which makes its seed another than that of other lines.

    Raises:
        FileError: the boards say different things.
    """
    if len(set(said.values())) > 1:
        table.fault(f"boards {' and '.join(said)} share a line, but not its faults; give all the same")
    faults = next(iter(said.values()))
    profile = terms.fault_profile if faults.profile is None else faults.profile
    if faults.prefix or not profile:
        return faults.prefix
    return f"fault://seed={_SEEDS_APART * terms.fault_seed + lowest_node}&{profile};"


def _limits(table: Table) -> dict[str, float]:
    if not table.has("limits"):
        return {}
    limits = table.table("limits")
    values = {name: limits.positive(name) for name in LIMITS if limits.has(name)}
    limits.finish()
    return values


def _wire(entry: Table) -> Wire:
    wire = Wire(entry.text("from"), entry.text("to"))
    if wire.source == wire.target:
        entry.fault(f"from and to are both {wire.source!r}; a wire joins two pins")
    entry.finish()
    return wire


def _faults(entry: Table) -> tuple[int, str]:
    seed = entry.whole("seed", 0, 2**32 - 1, default=0)
    profile = entry.text("profile")
    _check_profile(entry, f"fault://seed=0&{profile};port")
    entry.finish()
    return seed, profile


def _check_profile(table: Table, url: str) -> None:
    try:
        parse_fault_url(url)
    except FileError as error:
        table.fault(str(error))


@dataclass(frozen=True)
class BoardEntry:
    """Entry of one board: its joint and its port.

    Attributes:
        node: its number on the wire.
        joint: name of the joint it drives, or of the foot whose sensors it reads.
        url: a serial device or any URL that pyserial opens; boards with the same share a line.
        baud: of a serial port.
        flash: folder that is the board's file system, where it is an emulated board of that kind.
        on_foot: whether it is a foot's.
    """

    node: int
    joint: str
    url: str
    baud: int
    flash: Path | None = None
    on_foot: bool = False


@dataclass(frozen=True)
class BenchFile:
    """A bench file's contents.

    Attributes:
        name: of the bench.
        robot: a name of the library, or the path of a robot file; ":N" behind it leaves its first N joints.
        terms: its clock, stated features, limits, wiring and faults.
        control: path of the virtual bench's control socket, None on a wall clock.
        boards: in the order of the file.
        servos: overrides by joint.
        information: what a virtual bench says of itself (plant, seed, the file it was started from).
        common_ticks: whether all boards count the same ticks, as on a virtual bench without clocks of their own.
        sample_every: ticks from one sample that boards stream to the next: more where they share lines.
        path: of the file.
    """

    name: str
    robot: str
    terms: BenchTerms
    control: Path | None
    boards: tuple[BoardEntry, ...]
    servos: dict[str, ServoOverride]
    information: dict[str, Any]
    common_ticks: bool
    sample_every: int
    path: Path

    @property
    def clock(self) -> str:
        """Its time: "virtual" or "icount" where the bench gives it through `control`, "wall" for real time."""
        return self.terms.clock

    @property
    def features(self) -> frozenset[str]:
        """Features of the bench: those that the file states, and those that follow from its boards and wiring."""
        joints = [board.joint for board in self.boards]
        implied = {
            "fault_transport": True,  # any port can have fault:// before it
            "several_boards": len(joints) > 1,
            "shared_line": any(len(line) > 1 for line in self.lines),
            "foot_force": any(board.on_foot for board in self.boards),
            "sync": self.terms.join_all("sync", joints),
        }
        return self.terms.features | {feature for feature, is_there in implied.items() if is_there}

    @property
    def lines(self) -> tuple[tuple[BoardEntry, ...], ...]:
        """The boards by line, each line's in the order of their nodes."""
        urls = dict.fromkeys(board.url for board in self.boards)
        groups = ([board for board in self.boards if board.url == url] for url in urls)
        return tuple(tuple(sorted(group, key=lambda board: board.node)) for group in groups)

    def how_to_update(self, board: BoardEntry) -> str:
        """Commands that bring this board to the firmware of this host's release."""
        if "plant" in self.information:
            return (
                "It is emulated: end its bench with Ctrl-C and start it again with "
                f"`./run sim {self.information.get('started_from', 'BENCH')}`"
            )
        return f"Put this release's firmware on it: `jointbench flash {self.path} --joint {board.joint}`"


def read_bench_file(path: str | Path) -> BenchFile:
    """Read a live bench file.

    Raises:
        FileError: the file cannot be read, or an entry is missing, unknown, mistyped or contradicts another.
    """
    path = Path(path)
    if not path.is_file() and (path.parent / SIM_LOG).is_file():
        raise FileError(
            f"the virtual bench of {path} has ended, and took its bench file with it; start it again with `./run sim`, "
            f"or look into {path.parent / SIM_LOG} for why"
        )
    if not path.is_file():
        raise FileError(
            f"there is no bench file {path}; it says where each joint's board is, and `jointbench` alone shows those "
            "that are here"
        )
    return _bench(read_table(path, "bench"), path)


def _bench(table: Table, path: Path) -> BenchFile:
    folder = path.parent
    table.version(VERSION)
    terms = read_terms(table, "wall")
    control = Path(table.text("control")) if terms.clock != "wall" else None
    robot = table.text("robot")
    boards = _boards(table, terms)
    _check_boards(table, boards)
    check_wires(table, terms, [board.joint for board in boards])
    information = {
        "plant": table.text("plant") if table.has("plant") else None,
        "seed": int(table.number("seed")) if table.has("seed") else None,
        "noise_seed": int(table.number("noise_seed")) if table.has("noise_seed") else None,
        "started_from": table.text("started_from") if table.has("started_from") else None,
    }
    bench = BenchFile(
        name=table.text("name"),
        robot=from_folder(robot, folder),
        terms=terms,
        control=folder / control if control else None,
        boards=boards,
        servos=_servos(table, [board.joint for board in boards if not board.on_foot]),
        information={key: value for key, value in information.items() if value is not None},
        common_ticks=table.flag("common_ticks", terms.clock != "wall"),
        sample_every=_sample_every(table),
        path=path,
    )
    table.finish()
    return bench


def _boards(table: Table, terms: BenchTerms) -> tuple[BoardEntry, ...]:
    """Read the boards, and put before the URL of each line the faults it has from the bench or a board."""
    read = [_board(entry) for entry in table.tables("board")]
    prefixes: dict[str, str] = {}
    for port in {board.url for board, _ in read}:
        line_faults = {board.joint: faults for board, faults in read if board.url == port}
        prefixes[port] = fault_prefix(
            table, terms, line_faults, min(board.node for board, _ in read if board.url == port)
        )
    return tuple(replace(board, url=prefixes[board.url] + board.url) for board, _ in read)


def _board(table: Table) -> tuple[BoardEntry, LineFaults]:
    """Read a board, its port as the URL, and what it says of faults on the way there."""
    on_foot = table.has("foot")
    if on_foot and table.has("joint"):
        table.fault("has joint beside foot; a board drives a joint or reads a foot's sensors")
    joint = table.text("foot" if on_foot else "joint")
    table.where = f"{table.where} of {joint}"
    node = table.whole("node", 1, 254)
    baud = table.positive("baud", 921600)
    table.has("pid")  # information for whoever wants to end an emulated board
    flash = Path(table.text("flash")) if table.has("flash") else None
    url, faults = read_port(table)
    if url.startswith(("unix:", "qemu:")):
        table.fault(
            f"url = {url!r} asks for an emulated board, which a virtual bench must start first: run "
            "`./run sim` on this file and give the live bench file it prints"
        )
    table.finish()
    return BoardEntry(node, joint, url.removeprefix("serial:"), int(baud), flash, on_foot), faults


def _sample_every(table: Table) -> int:
    ticks = table.number("sample_every", 1)
    if ticks not in SAMPLE_EVERY:
        table.fault(f"sample_every = {ticks:g} must be one of {', '.join(map(str, SAMPLE_EVERY))} ticks")
    return int(ticks)


def _check_boards(table: Table, boards: tuple[BoardEntry, ...]) -> None:
    if not boards:
        table.fault("no boards; give each board a [[board]] table with node, joint (or foot) and url")
    for key in ("node", "joint"):
        values = [getattr(board, key) for board in boards]
        for value, board in zip(values, boards, strict=True):
            if values.count(value) > 1:
                name = "foot" if key == "joint" and board.on_foot else key
                table.fault(f"{name} = {value!r} is given to {values.count(value)} boards; it must differ")
    for board in boards:
        first = next(entry for entry in boards if entry.url == board.url)
        if board.baud != first.baud:
            table.fault(
                f"boards {first.joint} and {board.joint} share the line {board.url!r}, but one has baud = {first.baud} "
                f"and one {board.baud}; give both the same"
            )


def _servos(table: Table, joints: list[str]) -> dict[str, ServoOverride]:
    if not table.has("servo"):
        return {}
    servos = table.table("servo")
    overrides: dict[str, ServoOverride] = {}
    for joint in joints:
        if servos.has(joint):
            entry = servos.table(joint)
            overrides[joint] = ServoOverride(
                entry.positive_or_none("stiffness_Nm_rad"), entry.positive_or_none("damping_Nms_rad")
            )
            entry.finish()
    servos.finish()
    return overrides
