"""Power cuts at every write of a flash of an emulated RP2040: of what its flash holds then, a whole image starts.

The writes of one update are taken down, from the first file that is emptied to the board's own note that the new image
is confirmed. Of each the flash is made anew as it is before it, after half of it, and after any of its bits, and the
chip starts on that until it answers HELLO.

A chip that reads nothing of what differs between two flashes does the same on both: such a boot is not made twice. What
it reads of its files is taken down at each boot.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hil_tests.flash_helpers import changed_firmware
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import RP2040
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.flash import (
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
_REMEMBERED = 8  # boots that others are held against
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
        reads: sectors that it has read of its files.
        resets: before it answered.
        memory: its flash then.
    """

    image: str
    problem: str
    reads: frozenset[int]
    resets: int
    memory: bytes


@dataclass(frozen=True)
class CutVerdict:
    """What a chip did after a cut.

    Attributes:
        image: SHA-256 of what answers, empty for nothing.
        booted: whether it was started on this very memory; else it reads what another one read.
        problem: what is wrong, empty for nothing.
    """

    cut: Cut
    image: str
    booted: bool
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """As a result has it."""
        return asdict(self)

    @classmethod
    def of_dict(cls, fields: Mapping[str, Any]) -> CutVerdict:
        """The one of which `to_dict` made this."""
        return cls(Cut(**fields["cut"]), fields["image"], fields["booted"], fields["problem"])


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


def cut_power(cuts: Sequence[Cut], update: Update, out: Path, seed: int = 0) -> list[CutVerdict]:
    """Start a chip after each of some cuts, but where another has read the same; its files lie in `out`."""
    folder = out / f"cut{cuts[0].number}{cuts[0].how}"
    touched = sorted({write.at // SECTOR for write in update.writes})
    boots: list[tuple[bytes, frozenset[int], str, str]] = []
    verdicts: list[CutVerdict] = []
    for cut in cuts:
        memory = flash_after_cut(update.before, update.writes, cut.number, cut.how, seed)
        for before, reads, image, problem in boots:
            if not any(_sector(before, k) != _sector(memory, k) for k in touched if k in reads):
                verdicts.append(CutVerdict(cut, image, False, problem))
                break
        else:
            boot = boot_chip(memory, update.config, folder)
            problem = boot.problem
            if not problem and boot.image not in (update.old, update.new):
                problem = f"image {boot.image[:16]} is neither of the two"
            boots = [(memory, boot.reads, boot.image, problem), *boots][:_REMEMBERED]
            verdicts.append(CutVerdict(cut, boot.image, True, problem))
    return verdicts


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
        return Boot("", str(error), frozenset(), board.resets, board.flash.read_bytes())
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


def _sector(memory: bytes, number: int) -> bytes:
    return memory[number * SECTOR : (number + 1) * SECTOR]
