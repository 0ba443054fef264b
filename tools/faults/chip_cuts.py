"""Power cuts at every write of a flash of an emulated RP2040: of what its flash holds then, a whole image starts.

The writes of one update are taken down, from the first file that is emptied to the board's own note that the new image
is confirmed. Of each the flash is made anew as it is before it, after half of it, and after any of its bits, and the
chip starts on that until it answers HELLO.

A chip that reads nothing of what differs between two flashes does the same on both: such a boot is not made twice. At
each boot the pages of its files that the chip reads are taken down in order, until it answers. The first page is the
same for all memories; which page follows depends on nothing but what those before it hold. So boots form a tree, with a
page at each node and its contents as branches, and a memory that leads to a leaf starts as the one that made the leaf.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hil_tests.flash_helpers import changed_firmware
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import RP2040
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.flash import (
    PAGE,
    SECTOR,
    FlashWrite,
    flash_after_cut,
    read_flash,
    read_flash_log,
    write_flash,
    write_flash_log,
)
from jointbench.bench import BenchFile, Connections, read_bench_file
from jointbench.bench.flash import FlashOptions, Image, ask_boards, build_image, flash_board
from jointbench.errors import BoardError
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR, Frame, FrameReader, MessageType, encode_frame
from tools.faults.cell import CellNotRun

HOW = ("before", "half", "bits")
_NODE = 1
_ASK_EVERY_NS = 100_000_000
_ASKED = 60  # times: 6 s, of which a chip that hashes both slots takes half
_INPUTS: dict[str, Any] = {"analog": {"current": [2048], "supply": [3000], "temperature": [275]}, "count": 0.25}


@dataclass(frozen=True)
class Update:
    """One flash of a chip.

    Attributes:
        before: content of its memory.
        writes: that followed, in order.
        old, new: SHA-256 of the images.
        config: its config.json.
    """

    before: bytes
    writes: tuple[FlashWrite, ...]
    old: str
    new: str
    config: Mapping[str, Any]

    def save(self, folder: Path) -> None:
        """Write it into a folder, for `load`."""
        (folder / "before.bin").write_bytes(self.before)
        write_flash_log(folder / "writes.log", self.writes)
        facts = {"old": self.old, "new": self.new, "config": self.config}
        (folder / "update.json").write_text(json.dumps(facts), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Update:
        """Read what `save` wrote.

        Raises:
            CellNotRun: the folder holds none.
        """
        try:
            facts = json.loads((folder / "update.json").read_text(encoding="utf-8"))
            before, writes = (folder / "before.bin").read_bytes(), tuple(read_flash_log(folder / "writes.log"))
        except OSError as error:
            raise CellNotRun(f"{folder} holds no update to go on with ({error}); begin without --resume") from error
        return cls(before, writes, facts["old"], facts["new"], facts["config"])

    @property
    def cuts(self) -> list[Cut]:
        """All of them."""
        every = [Cut(number, how) for number in range(len(self.writes)) for how in HOW]
        return [*every, Cut(len(self.writes), HOW[0])]

    @property
    def pages(self) -> frozenset[int]:
        """Pages that are written, by number from the flash's begin: in no other do two memories differ."""
        spans = [(write.at, SECTOR if write.data is None else len(write.data)) for write in self.writes]
        return frozenset(page for at, size in spans for page in range(at // PAGE, -(-(at + size) // PAGE)))


@dataclass(frozen=True)
class Cut:
    """Of the power, when `number` writes were done; `how` much of the next is, one of HOW."""

    number: int
    how: str

    @property
    def name(self) -> str:
        """In words."""
        return f"write {self.number}, {self.how}"


@dataclass(frozen=True)
class Boot:
    """How a chip started.

    Attributes:
        image: SHA-256 of what answers, empty for nothing.
        problem: why nothing does.
        reads: pages that it has read of its files, by number from the flash's begin, in the order of their first reads.
        resets: before it answered.
        memory: its flash then.
    """

    image: str
    problem: str
    reads: tuple[int, ...]
    resets: int
    memory: bytes


@dataclass(frozen=True)
class CutVerdict:
    """What a chip did after a cut.

    Attributes:
        image: SHA-256 of what answers, empty for nothing.
        booted: whether it was started on this very memory; else it reads what another one read.
        problem: what is wrong, empty for nothing.
        reads: where it was booted, the pages it read of those that the update writes, in order.
    """

    cut: Cut
    image: str
    booted: bool
    problem: str
    reads: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As a result has it."""
        return asdict(self)

    @classmethod
    def of_dict(cls, fields: Mapping[str, Any]) -> CutVerdict:
        """The one of which `to_dict` made this."""
        reads = tuple(fields.get("reads", ()))
        return cls(Cut(**fields["cut"]), fields["image"], fields["booted"], fields["problem"], reads)


def read_verdicts(path: Path) -> list[CutVerdict]:
    """Read the verdicts of an interrupted campaign, and take off the file what is left of a line half written."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    path.write_text(whole, encoding="utf-8")
    return [CutVerdict.of_dict(json.loads(line)) for line in whole.splitlines()]


@dataclass
class _Reading:
    """Where chips that have read the same so far go on: with this page, or they answer."""

    page: int
    after: dict[bytes, _Reading | CutVerdict] = field(default_factory=dict[bytes, "_Reading | CutVerdict"])


class BootTree:
    """Boots by what the chips read, in order."""

    def __init__(self) -> None:
        self._root: _Reading | CutVerdict | None = None

    def find(self, memory: bytes) -> CutVerdict | None:
        """Return the verdict on a chip that has read the same as one would on this memory; None where there is none."""
        place = self._root
        while isinstance(place, _Reading):
            place = place.after.get(_page(memory, place.page))
        return place

    def add(self, memory: bytes, verdict: CutVerdict) -> None:
        """Add a boot on a memory; `verdict.reads` has the pages it read.

        Raises:
            CellNotRun: another chip has read the same up to some page, and went on with another one.
        """
        if self._root is None:
            self._root = _way(memory, verdict.reads, verdict)
            return
        place = self._root
        for number, page in enumerate(verdict.reads):
            if not isinstance(place, _Reading) or place.page != page:
                break
            content, rest = _page(memory, page), verdict.reads[number + 1 :]
            if content not in place.after:
                place.after[content] = _way(memory, rest, verdict)
                return
            place = place.after[content]
        else:
            if isinstance(place, CutVerdict) and place.image == verdict.image:
                return
        raise CellNotRun(f"after {verdict.cut.name} the chip does other things than another one that has read the same")


def _way(memory: bytes, reads: Sequence[int], verdict: CutVerdict) -> _Reading | CutVerdict:
    """The nodes from some page on to a leaf."""
    place: _Reading | CutVerdict = verdict
    for page in reversed(reads):
        place = _Reading(page, {_page(memory, page): place})
    return place


def _page(memory: bytes, number: int) -> bytes:
    return memory[number * PAGE : (number + 1) * PAGE]


def take_down_update(folder: Path, is_used: bool = True) -> Update:
    """Flash a chip of a bench, and return what its memory was given to do.

    Args:
        folder: for the bench's files.
        is_used: whether the slot to be written holds another image, which is emptied first.

    Raises:
        CellNotRun: the new image does not run afterwards, or the writes do not make the memory that it has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    firmware = changed_firmware(folder / "changed", "changed = 1")
    bench = folder / "chip.toml"
    bench.write_text(
        f'version = 1\nname = "chip"\nrobot = "cobot6:1"\nplant = {json.dumps(str(COBOT6_PLANT))}\n'
        f'[[board]]\nnode = {_NODE}\njoint = "j1"\nurl = "{RP2040}"\n',
        encoding="utf-8",
    )
    with virtual_bench(bench, out=folder / "sim") as live:
        memory, file = live.parent / "boards" / "j1" / "flash.bin", read_bench_file(live)
        if is_used:
            older = changed_firmware(folder / "older", "older = 1")
            _use(memory, build_image("rp2", architecture="armv6m", firmware=older))
            _restart(file)
        log = memory.with_name(f"{memory.name}.log")
        before, done = memory.read_bytes(), len(read_flash_log(log))
        config = json.loads(read_flash(memory)["config.json"])
        said = ask_boards(file, ["j1"])["j1"]
        report = flash_board(file, file.boards, said, FlashOptions(firmware=firmware, backups=folder / "backup"))
        after, writes = memory.read_bytes(), tuple(read_flash_log(log)[done:])
    if report.outcome != "updated":
        raise CellNotRun(f"the chip could not be flashed: {report.outcome}")
    if flash_after_cut(before, writes, len(writes), HOW[0]) != after:
        raise CellNotRun(f"the {len(writes)} writes taken down are not all that was done to {memory}")
    return Update(before, writes, report.before, report.image, config)


def cut_power(
    cuts: Sequence[Cut],
    update: Update,
    out: Path,
    seed: int = 0,
    workers: int = 1,
    done: Sequence[CutVerdict] = (),
    note: Callable[[CutVerdict], None] = lambda _: None,
) -> list[CutVerdict]:
    """Start a chip after each of some cuts, but where another has read the same.

    Args:
        cuts: in order.
        update: that is cut.
        out: folder for the chips' files.
        seed: of the bits that a cut leaves done.
        workers: chips that run at a time. Each has its own part of the cuts, as neighbours mostly read the same.
        done: verdicts of an earlier campaign, whose boots are not made again.
        note: called with each verdict as it comes, by one thread at a time.

    Returns:
        The verdicts, in the order of the cuts.
    """
    tree, lock = BootTree(), threading.Lock()
    over, pages = threading.Event(), update.pages

    def memory_of(cut: Cut) -> bytes:
        return flash_after_cut(update.before, update.writes, cut.number, cut.how, seed)

    for verdict in done:
        if verdict.reads:
            tree.add(memory_of(verdict.cut), verdict)

    def judge(cut: Cut, folder: Path) -> CutVerdict:
        memory = memory_of(cut)
        with lock:
            same = tree.find(memory)
        if same:
            verdict = CutVerdict(cut, same.image, False, same.problem)
        else:
            verdict = _verdict(cut, boot_chip(memory, update.config, folder), update, pages)
        with lock:
            if verdict.reads:
                tree.add(memory, verdict)
            note(verdict)
        return verdict

    def judge_all(part: Sequence[Cut], folder: Path) -> list[CutVerdict]:
        try:
            return [judge(cut, folder) for cut in part if not over.is_set()]
        except BaseException:
            over.set()
            raise

    share = -(-len(cuts) // workers)
    parts = [cuts[start : start + share] for start in range(0, len(cuts), max(share, 1))]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(judge_all, part, out / f"chip{number}") for number, part in enumerate(parts)]
        try:
            return [verdict for future in futures for verdict in future.result()]
        finally:
            over.set()


def _verdict(cut: Cut, boot: Boot, update: Update, pages: frozenset[int]) -> CutVerdict:
    """Judge a boot; `pages` are those that the update writes."""
    problem = boot.problem
    if not problem and boot.image not in (update.old, update.new):
        problem = f"image {boot.image[:16]} is neither of the two"
    return CutVerdict(cut, boot.image, True, problem, tuple(page for page in boot.reads if page in pages))


def cut_table(verdicts: Sequence[CutVerdict], update: Update) -> str:
    """Of each way of cutting, how often which image started."""
    lines = [f"{'the write cut':14} {'cuts':>6} {'old image':>10} {'new image':>10} {'neither':>8} {'boots':>6}"]
    for how in HOW:
        of = [verdict for verdict in verdicts if verdict.cut.how == how]
        counts = [sum(v.image == image and not v.problem for v in of) for image in (update.old, update.new)]
        bad = sum(bool(verdict.problem) for verdict in of)
        lines.append(f"{how:14} {len(of):6} {counts[0]:10} {counts[1]:10} {bad:8} {sum(v.booted for v in of):6}")
    return "\n".join(lines)


def boot_chip(memory: bytes, config: Mapping[str, Any], folder: Path) -> Boot:
    """Start a chip on a memory, and ask until it says its image."""
    board = Rp2040Board(find_rp2040(), folder / "chip", memory, config, note_reads=True)
    try:
        hello = encode_frame(MessageType.HELLO, _NODE, 1, major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR)
        board.see(_INPUTS)
        reader = FrameReader()
        for _ in range(_ASKED):
            for chunk in reader.feed(board.run_alone(_ASK_EVERY_NS, hello)):
                if isinstance(chunk.content, Frame) and chunk.content.type == MessageType.HELLO_ACK:
                    image = chunk.content.body.image_sha256.hex()
                    return Boot(image, "", board.reads(), board.resets, board.flash.read_bytes())
        silent = f"nothing answers within {1e-9 * _ASKED * _ASK_EVERY_NS:g} s"
        return Boot("", silent, board.reads(), board.resets, board.flash.read_bytes())
    except BoardDied as error:
        return Boot("", str(error), (), board.resets, board.flash.read_bytes())
    finally:
        board.close()


def _use(memory: Path, older: Image) -> None:
    """Let slot b hold another image, as on a board that was flashed before."""
    files = read_flash(memory)
    write_flash(memory, find_rp2040().firmware, files | older.in_slot("b"))


def _restart(file: BenchFile) -> None:
    """Take the chip's power, give it back, and wait until it answers."""
    with contextlib.closing(Connections(file)) as connections:
        connections.restart(_NODE)
        for _ in range(_ASKED):
            with contextlib.suppress(BoardError):
                connections.boards["j1"].greet()
                return
    raise CellNotRun("the chip does not start again")
