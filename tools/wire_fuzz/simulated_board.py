"""Valid frames of every type in the order one board would number them, with its counters kept as a board keeps them."""

from __future__ import annotations

import struct
from random import Random

from jointwire import ALL_CHANNELS, BODIES, CHANNELS, MAX_BODY, MessageType, State, encode_frame
from jointwire.channels import HIGHEST_DIVIDER, ChannelKind
from jointwire.channels import divider as ticks_between
from jointwire.schema import struct_fields

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
    """What one board sends.

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
