"""What a bench file says of its bench as a whole: its clock, features, limits, wiring, and faults on its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jointbench.errors import FaultUrlError
from jointbench.link.fault import is_fault_url, parse_fault_url
from jointbench.link.serial_port import refused_scheme
from jointbench.robot.table import Table

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


@dataclass(frozen=True)
class Wire:
    """A wire between two pins, each "JOINT.PIN"; `source` may be a pin of the host."""

    source: str
    target: str


@dataclass(frozen=True)
class BenchTerms:
    """What holds for all boards of a bench.

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
        """Whether wires join this pin of all of these boards, of two at least."""
        ends = {f"{joint}.{pin}" for joint in joints}
        return len(ends) > 1 and ends <= self.joined_with(min(ends))


@dataclass(frozen=True)
class LineFaults:
    """What a board says of faults on its line.

    Attributes:
        prefix: what stands before the port in a fault:// URL, "" where the URL is none.
        profile: of the key `fault`, None without the key.
    """

    prefix: str = ""
    profile: str | None = None


def read_terms(table: Table, clock: str) -> BenchTerms:
    """Read the keys `clock`, `features`, `limits`, `wire` and `fault`; `clock` is it where the file does not say.

    Raises:
        RobotFileError: an entry is mistyped, unknown or repeated.
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
        RobotFileError: names the wire, and what there is.
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
        RobotFileError: the URL is missing, faults that cannot be, or faults twice.
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
        RobotFileError: the boards say different things.
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
    found = {name: limits.positive(name) for name in LIMITS if limits.has(name)}
    limits.finish()
    return found


def _wire(entry: Table) -> Wire:
    wire = Wire(entry.text("from"), entry.text("to"))
    if wire.source == wire.target:
        entry.fault(f"from and to are both {wire.source!r}; a wire joins two pins")
    entry.finish()
    return wire


def _faults(entry: Table) -> tuple[int, str]:
    seed = entry.number("seed", 0)
    if not (seed.is_integer() and 0 <= seed < 2**32):
        entry.fault(f"seed = {seed:g} must be a whole number from 0 to {2**32 - 1}")
    profile = entry.text("profile")
    _check_profile(entry, f"fault://seed=0&{profile};port")
    entry.finish()
    return int(seed), profile


def _check_profile(table: Table, url: str) -> None:
    try:
        parse_fault_url(url)
    except FaultUrlError as error:
        table.fault(str(error))
