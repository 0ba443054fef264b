"""From recorded bytes to each board's samples, still in raw counts on the board's own ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jointbench.link.ledger import DEFAULT_LIMIT, Ledger
from jointbench.link.sync import Exchange, Pulse
from jointbench.link.tally import Tally
from jointbench.recording.clock_notes import ClockNotes
from jointbench.recording.record_file import Record, RecordKind, read_records
from jointwire import (
    CHANNEL_BY_NAME,
    Blocks,
    BodyError,
    Chunk,
    Frame,
    FrameError,
    MessageType,
    decode_frame,
    decode_samples,
    decode_stream,
)


@dataclass(frozen=True, eq=False)
class Track:
    """Values of one channel: raw, at these ticks of the board, due each `every` ticks (those that it divides)."""

    ticks: NDArray[np.int64]
    values: NDArray[np.generic]
    every: int = 1


@dataclass(frozen=True, eq=False)
class BoardRecord:
    """What one board sent during a run; ticks are continued past their 32 bits.

    Attributes:
        ticks: of which a sample came, in the order they came.
        channels: what came of each channel.
        played: ticks at which trajectory tick 0 lay, by the blocks that were played.
        last_play_tick: the last trajectory tick reported, -1 for none.
        exchanges: answered PINGs.
        stamps: ticks, and the low 32 bits of the board's clock exactly at them.
        pulses: edges seen on the SYNC wire.
        restarted: whether its ticks started again; what came after that is left out.
    """

    ticks: NDArray[np.int64]
    channels: dict[str, Track]
    played: tuple[int, ...]
    last_play_tick: int
    exchanges: tuple[Exchange, ...]
    stamps: tuple[tuple[int, int], ...]
    pulses: tuple[Pulse, ...]
    restarted: bool


@dataclass(frozen=True)
class Recording:
    """frames.bin, decoded: boards by node in joint order, their ledger and what could not be read.

    Attributes:
        undecoded: records of frames that this schema does not decode.
    """

    boards: dict[int, BoardRecord]
    ledger: Ledger
    n_records: int
    undecoded: int
    warnings: tuple[str, ...]


def decode_recording(
    path: Path, joints: Mapping[int, str], schema: int | None = None, limit: float = DEFAULT_LIMIT
) -> Recording:
    """Decode a frames.bin; damage is named in `warnings` and counted as loss, never repaired.

    Args:
        path: of the frames.bin.
        joints: joint of each node, in joint order.
        schema: hash of the schema it was recorded with; None: this version's.
        limit: largest fraction of samples that may be lost in a valid run.
    """
    warnings: list[str] = []
    read = list(read_records(path.read_bytes(), warnings))
    records = [record for record in read if record.kind is not RecordKind.REST]
    boards = {node: _Heard() for node in joints}
    tally = Tally(joints, limit)
    strangers: set[int] = set()
    undecoded = 0
    for record, content in zip(records, _contents(records, schema), strict=True):
        if isinstance(content, str):
            tally.add_noise(record.node)
            undecoded += _note(content, record.node, warnings)
        elif content.node not in boards:
            strangers.add(content.node)
        elif tally.add(content):
            boards[content.node].add(content, record)
    if strangers:
        warnings.append(f"frames of nodes {sorted(strangers)}, which are no boards of this run, are left out")
    decoded = {node: heard.record(schema, joints[node], warnings) for node, heard in boards.items()}
    again = [joints[node] for node, board in decoded.items() if board.restarted]
    warnings += [f"{joint}: the board started again during the run" for joint in again]
    return Recording(decoded, tally.ledger(), len(read), undecoded, tuple(warnings))


def _contents(records: Sequence[Record], schema: int | None) -> Sequence[Frame | str]:
    """The frame in each record, or why there is none (nothing for bytes recorded as noise).

    All frames are decoded at once, as one stream; where that does not fall into the same pieces, one by one.
    """
    frames = [record.payload for record in records if record.kind is RecordKind.FRAME]
    stream = decode_stream(b"".join(payload + b"\0" for payload in frames), schema)
    whole = len(stream) == len(frames) and np.array_equal(stream.end - stream.start, [len(each) for each in frames])
    decoded = iter(stream if whole else [_decoded(each, schema) for each in frames])
    return [_content(next(decoded)) if record.kind is RecordKind.FRAME else "" for record in records]


def _decoded(payload: bytes, schema: int | None) -> Frame | str:
    try:
        return decode_frame(payload, schema)
    except FrameError as error:
        return str(error)


def _content(found: Chunk | Frame | str) -> Frame | str:
    content = found.content if isinstance(found, Chunk) else found
    return content if isinstance(content, Frame | str) else content.reason


def _note(reason: str, node: int, warnings: list[str]) -> bool:
    """Warn of a recorded frame that cannot be decoded, once for each reason; noise is none."""
    if reason and not any(reason in warning for warning in warnings):
        warnings.append(f"recorded frames of node {node} cannot be decoded by this release: {reason}")
    return bool(reason)


@dataclass
class _Heard:
    """What a board is heard to say, frame by frame."""

    data: list[tuple[Frame, bytes, int]] = field(default_factory=list[tuple[Frame, bytes, int]])
    notes: ClockNotes = field(default_factory=ClockNotes)

    def add(self, frame: Frame, record: Record) -> None:
        """Take what this frame says."""
        tick = self.notes.add(frame, record.time_us)
        if tick is not None and frame.type is MessageType.DATA:
            self.data.append((frame, record.payload, tick))

    def record(self, schema: int | None, joint: str, warnings: list[str]) -> BoardRecord:
        """Everything it said, its blocks decoded together."""
        blocks = self._blocks(schema, joint, warnings)
        first = np.array([tick for _, _, tick in self.data], dtype=np.int64)
        heads = [frame.body for frame, _, _ in self.data]
        play = [(tick, head) for tick, head in zip(first.tolist(), heads, strict=True) if head.play_tick >= 0]
        # A block's ticks follow its first one, which stands in the frame without what was above its 32 bits.
        over = first - blocks.heads["first_tick"].astype(np.int64)
        counts = blocks.heads["count"].astype(np.int64)
        return BoardRecord(
            ticks=_runs(first, counts),
            channels={name: _track(blocks, name, over) for name in blocks.columns},
            played=tuple(dict.fromkeys(tick - head.play_tick for tick, head in play)),
            last_play_tick=max((head.play_tick + head.count - 1 for _, head in play), default=-1),
            exchanges=tuple(self.notes.exchanges),
            stamps=tuple(self.notes.stamps),
            pulses=tuple(self.notes.pulses),
            restarted=self.notes.restarted,
        )

    def _blocks(self, schema: int | None, joint: str, warnings: list[str]) -> Blocks:
        """All blocks; one whose length is not what its head says is left out."""
        node = self.data[0][0].node if self.data else 0
        try:
            return decode_stream(b"".join(payload + b"\0" for _, payload, _ in self.data), schema).samples(node)
        except BodyError:
            good: list[tuple[Frame, bytes, int]] = []
            for each in self.data:
                try:
                    decode_samples(each[0])
                    good.append(each)
                except BodyError as error:
                    warnings.append(f"{joint}: {error}; the frame is left out")
            self.data = good
            return self._blocks(schema, joint, warnings)


def _track(blocks: Blocks, name: str, over: NDArray[np.int64]) -> Track:
    """A channel of all blocks, its ticks moved by what stands above their 32 bits."""
    channel = CHANNEL_BY_NAME[name]
    has = blocks.heads["channels"] >> channel.bit & 1 == 1
    heads, over = blocks.heads[has], over[has]
    every = 1 << (heads["dividers"].astype(np.int64) >> 4 * channel.kind & 0xF)
    first = heads["first_tick"].astype(np.int64)
    counts = (first + heads["count"] - 1) // every - (first - 1) // every
    return Track(blocks.ticks(name) + np.repeat(over, counts), blocks.columns[name], int(every.min()))


def _runs(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """first[0], first[0] + 1, … (counts[0] of them), first[1], …"""
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(first, counts) + within
