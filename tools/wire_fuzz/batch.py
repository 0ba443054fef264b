"""A recording of one board in which many frames are mutants, with the truth about each of its chunks."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from cobs import cobs

from jointwire import MessageType, State
from tools.wire_fuzz.errors import CaseError
from tools.wire_fuzz.mutations import mutate, mutate_pair
from tools.wire_fuzz.simulated_board import SimulatedBoard

LARGEST_PIECE = 512  # bytes a line gives a board in a tick
# Blocks of samples are what a ledger is about; all other types come alike.
_KINDS = [*MessageType, *[MessageType.DATA] * 5]


@dataclass(frozen=True)
class Unit:
    """What arrives in one place.

    Attributes:
        arrived: the bytes, delimiters included.
        mutation: what was done to them; empty for a frame as it was sent.
    """

    arrived: bytes
    mutation: str = ""

    @cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """Encoded bytes of each chunk, and CRC-32 of the frame it must be taken for; 0: it is none."""
        pieces = [piece for piece in self.arrived.split(b"\0") if piece]
        if self.mutation:
            return [(len(piece), 0) for piece in pieces]
        return [(len(piece), zlib.crc32(cobs.decode(piece)[:-4])) for piece in pieces]


@dataclass(frozen=True)
class Truth:
    """What the board did and what became of it, as its ledger must say; the closing STATUS counts those before it."""

    frames_sent: int
    frames_received: int
    frames_lost: int
    samples_taken: int
    samples_received: int
    board_dropped: int
    ticks_missed: int


@dataclass(frozen=True)
class Batch:
    """One recording.

    Attributes:
        name: what it was made from.
        node: the board's.
        units: what arrives, in order.
        pieces: sizes in which the bytes reach a decoder.
        truth: for the ledger.
    """

    name: str
    node: int
    units: tuple[Unit, ...]
    pieces: tuple[int, ...]
    truth: Truth

    @property
    def stream(self) -> bytes:
        """All that arrives."""
        return b"".join(unit.arrived for unit in self.units)

    @property
    def mutations(self) -> Counter[str]:
        """How many mutants of each kind."""
        return Counter(unit.mutation for unit in self.units if unit.mutation)

    def save(self, path: Path) -> None:
        """Write it as a case, to be run again."""
        units = [[unit.mutation, unit.arrived.hex()] for unit in self.units]
        case = {"name": self.name, "node": self.node, "truth": asdict(self.truth), "pieces": self.pieces}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**case, "units": units}), encoding="utf-8")


def read_case(path: Path) -> Batch:
    """Read a saved batch.

    Raises:
        CaseError: the file is none.
    """
    try:
        case = json.loads(path.read_text(encoding="utf-8"))
        units = tuple(Unit(bytes.fromhex(arrived), mutation) for mutation, arrived in case["units"])
        return Batch(case["name"], case["node"], units, tuple(case["pieces"]), Truth(**case["truth"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CaseError(f"{path} is not a case that `./run fuzz wire` saved: {error}") from error


def make_batch(seed: int, number: int, mutants: int) -> Batch:
    """Batch `number` of a seed, with this many mutants and about as many frames as they were sent.

    Between two STATUS frames of a board at rest everything may happen to what is sent: mutants, damaged copies of
    frames that come whole, too, blocks that the board drops and ticks it misses.
    """
    random = Random(f"{seed}/{number}")
    board = SimulatedBoard(random)
    units: list[Unit] = []
    samples_lost = 0
    made = 0

    def send(kind: MessageType) -> tuple[bytes, int]:
        before = board.samples_taken
        return board.frame(kind), board.samples_taken - before

    units.append(Unit(board.status(State.DISARMED) + b"\0"))
    while made < mutants:
        frame, samples = send(random.choice(_KINDS))
        match random.randrange(32):
            case 0:
                board.drop_block()
                units.append(Unit(frame + b"\0"))
            case 1:
                board.miss_ticks()
                units.append(Unit(frame + b"\0"))
            case 2:
                name, arrived = mutate(random, frame)
                units += (Unit(frame + b"\0"), Unit(arrived, name))
                made += 1
            case 3 | 4 | 5:
                second, more = send(random.choice(_KINDS))
                name, arrived = mutate_pair(random, frame, second)
                units.append(Unit(arrived, name))
                samples_lost += samples + more
                made += 1
            case choice if choice < 20:
                name, arrived = mutate(random, frame)
                units.append(Unit(arrived, name))
                samples_lost += samples
                made += 1
            case _:
                units.append(Unit(frame + b"\0"))
    units.append(Unit(board.status(State.DISARMED) + b"\0"))
    frames_received = sum(1 for unit in units if not unit.mutation)
    truth = Truth(
        frames_sent=board.frames_sent - 1,
        frames_received=frames_received - 1,
        frames_lost=board.frames_sent - frames_received,
        samples_taken=board.samples_taken,
        samples_received=board.samples_taken - samples_lost - board.samples_dropped,
        board_dropped=board.samples_dropped,
        ticks_missed=board.ticks_missed,
    )
    size = sum(len(unit.arrived) for unit in units)
    return Batch(f"seed {seed} batch {number}", board.node, tuple(units), _pieces(random, size), truth)


def _pieces(random: Random, size: int) -> tuple[int, ...]:
    """Sizes of at most a tick's bytes; a few runs of single bytes among them."""
    pieces: list[int] = []
    while size:
        piece = min(size, random.choice((1, LARGEST_PIECE, LARGEST_PIECE, random.randint(1, LARGEST_PIECE))))
        pieces.append(piece)
        size -= piece
    return tuple(pieces)
