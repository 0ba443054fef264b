"""A recording of one simulated board in which many frames are mutants, with the truth about each chunk of bytes."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from cobs import cobs

from jointwire import ALL_CHANNELS, BODIES, CHANNELS, MAX_BODY, MessageType, State, encode_frame
from jointwire.channels import HIGHEST_DIVIDER, ChannelKind
from jointwire.channels import divider as ticks_between
from jointwire.schema import struct_fields
from tools.fuzz.frame_mutations import mutate, mutate_pair


class FuzzError(Exception):
    """Base of this package's errors."""


class DecoderFailed(FuzzError):
    """The decoder under test crashed or hangs; `hangs` tells which."""

    def __init__(self, decoder: str, hangs: bool, what: str) -> None:
        super().__init__(f"{decoder} {'hangs' if hangs else 'crashed'}: {what}")
        self.decoder, self.hangs = decoder, hangs


class CaseError(FuzzError):
    """A saved case that cannot be read."""


_WORD = 2**32
_BLOCK = 64
_HEAD = BODIES[MessageType.DATA].sizeof()


def _item_size(kind: MessageType) -> int:
    """Bytes of the repeated item a body ends in, 0 where there is none."""
    code = struct_fields(BODIES[kind])[-1][1] if struct_fields(BODIES[kind]) else ""
    return struct.calcsize("<" + code[1:-1]) if code.startswith("[") else 0


_ITEMS = {kind: _item_size(kind) for kind in MessageType}
_HEADS = {
    kind: "<" + "".join(code for _, code in struct_fields(BODIES[kind]) if not code.startswith("["))
    for kind in MessageType
}


class SimulatedBoard:
    """The frames of one board.

    Every type of message comes in its stream, those of the host too: a decoder must find them all. Ticks, sequence
    numbers and counters start anywhere, so that some wrap.

    Attributes:
        node: its number.
        frames_sent, samples_taken, samples_dropped, ticks_missed: since the stream began.
    """

    def __init__(self, random: Random) -> None:
        """Start at any tick, any sequence number and any count."""
        self.node = random.randrange(1, 255)
        self.frames_sent = self.samples_taken = self.samples_dropped = self.frames_dropped = self.ticks_missed = 0
        self._random = random
        self._sequence = random.choice((0, 65_500, random.randrange(1 << 16)))
        self._tick = random.choice((0, _WORD - 5000, random.randrange(_WORD)))
        self._before = [random.choice((0, _WORD - 1000, random.randrange(_WORD))) for _ in range(5)]
        self._unreported = 0  # ticks missed since the last block sent

    def frame(self, kind: MessageType) -> bytes:
        """The board's next frame, encoded, without its delimiter."""
        if kind is MessageType.STATUS:
            return self.status(State.RUNNING)
        body = self._block() if kind is MessageType.DATA else self._body(kind)
        return self._send(kind, body)

    def status(self, state: State) -> bytes:
        """A STATUS frame with the counts so far."""
        counts = (
            self.samples_taken, self.samples_dropped, self.frames_sent, self.frames_dropped, self.ticks_missed,
        )  # fmt: skip
        samples_taken, samples_dropped, frames_sent, frames_dropped, ticks_missed = (
            (count + before) % _WORD for count, before in zip(counts, self._before, strict=True)
        )
        fields = {"state": state, "trip": 0, "reserved": 0, "tick": self._tick, "frames_received": 0, "bad_frames": 0}
        body = BODIES[MessageType.STATUS].build(
            {
                **fields, "samples_taken": samples_taken, "samples_dropped": samples_dropped,
                "frames_sent": frames_sent, "frames_dropped": frames_dropped, "ticks_missed": ticks_missed,
                "heap_free": self._random.randrange(1 << 20),
                "longest_tick_us": self._random.randrange(1 << 20),
                "longest_gc_us": self._random.randrange(1 << 20),
                "mean_tick_us": self._random.randrange(1 << 20),
            }
        )  # fmt: skip
        return self._send(MessageType.STATUS, body)

    def drop_block(self) -> None:
        """A block that the board's transmit buffer had no room for."""
        count = self._random.randint(1, _BLOCK)
        self._take(count)
        self.samples_dropped += count
        self.frames_dropped += 1

    def miss_ticks(self) -> None:
        """Some ticks that went by unseen."""
        missed = self._random.randint(1, 20)
        self._tick = (self._tick + missed) % _WORD
        self.ticks_missed += missed
        self._unreported += missed

    def _send(self, kind: MessageType, body: bytes) -> bytes:
        random = self._random
        encoded = encode_frame(
            kind, self.node, self._sequence, random.randrange(_WORD), random.choice((0, 0, 255)), payload=body
        )
        self._sequence = (self._sequence + 1) & 0xFFFF
        self.frames_sent += 1
        return encoded[:-1]

    def _take(self, count: int) -> None:
        self._tick = (self._tick + count) % _WORD
        self.samples_taken += count

    def _block(self) -> bytes:
        """Body of a DATA frame: any channels at any dividers, as many ticks as fit."""
        random = self._random
        channels = random.randint(1, ALL_CHANNELS)
        dividers = sum(random.choice((0, 0, random.randint(0, HIGHEST_DIVIDER))) << 4 * kind for kind in ChannelKind)
        count = random.choice((1, _BLOCK, random.randint(1, _BLOCK), random.randint(1, 8)))
        while (size := _sample_bytes(self._tick, count, channels, dividers)) > MAX_BODY - _HEAD:
            count -= 1
        play_tick = random.choice((-1, random.randrange(1 << 31)))
        head = struct.pack(
            _HEADS[MessageType.DATA], self._tick, dividers, play_tick, channels, self._unreported, count,
            State.RUNNING, random.choice((0, 0, random.randrange(1 << 16))),
        )  # fmt: skip
        self._unreported = 0
        self._take(count)
        return head + _filling(random, size)

    def _body(self, kind: MessageType) -> bytes:
        """Any body of the right form."""
        random, item, head = self._random, _ITEMS[kind], _HEADS[kind]
        if not item:
            return random.randbytes(struct.calcsize(head))
        most = (MAX_BODY - struct.calcsize(head)) // item
        count = random.choice((0, most, random.randint(0, most), random.randint(0, 9), random.randint(0, 9)))
        fields = random.randbytes(struct.calcsize(head) - 2)  # all but the count, which is the last
        return fields + struct.pack("<H", count) + _filling(random, count * item)


def _sample_bytes(first: int, count: int, channels: int, dividers: int) -> int:
    size = 0
    for channel in CHANNELS:
        if channels >> channel.bit & 1:
            every = ticks_between(dividers, channel.kind)
            due = (first + count - 1) // every - (first - 1) // every
            size += due * struct.calcsize("<" + channel.format)
    return size


def _filling(random: Random, size: int) -> bytes:
    """Bytes that COBS treats in different ways: any, many zeros, none at all, all alike."""
    match random.randrange(6):
        case 0:
            return bytes(size)
        case 1:
            return random.randbytes(size).replace(b"\0", b"\x03")
        case 2:
            return bytes(random.choices((0, 0, 0, 1, 255), k=size))
        case _:
            return random.randbytes(size)


LARGEST_PIECE = 512  # bytes a line gives a board in a tick
# Blocks of samples are what a ledger is about; all other types come alike.
_KINDS = [*MessageType, *[MessageType.DATA] * 5]


@dataclass(frozen=True)
class Unit:
    """Bytes that arrive in one place.

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
    """The board's true counts, as its ledger must have them; the closing STATUS counts those before it."""

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
        """Number of mutants of each kind."""
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
