"""Holding what two decoders found against the truth, chunk by chunk, and the ledger against what happened."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tools.wire_fuzz.batch import Batch

VERDICTS = {"mutant accepted": "mutants_accepted", "frame refused": "frames_refused", "frame altered": "frames_altered"}
KINDS = {**VERDICTS, "bytes lost": "bytes_lost", "ledger": "ledgers_wrong"}
"""What can be found wrong, and under which name it is counted; verdicts are what both decoders must agree on."""


@dataclass(frozen=True)
class Finding:
    """Something a decoder or the ledger did wrong."""

    kind: str
    decoder: str
    text: str


@dataclass(frozen=True)
class HostAnswer:
    """What the host made of a batch: (encoded bytes, CRC-32 of the frame or 0) of each chunk, and the ledger."""

    chunks: list[tuple[int, int]]
    pending: int
    closes: bool
    ledger: dict[str, Any]

    @staticmethod
    def read(answer: bytes) -> HostAnswer:
        """Take an answer of host_program.py apart."""
        (count,) = struct.unpack_from("<I", answer)
        rest = json.loads(answer[4 + 8 * count :])
        return HostAnswer(list(struct.iter_unpack("<II", answer[4 : 4 + 8 * count])), **rest)  # pyright: ignore[reportArgumentType]


def judge_host(batch: Batch, answer: HostAnswer) -> Iterator[Finding]:
    """What the host's reader and its ledger did wrong."""
    verdicts, pieces = [], iter(answer.chunks)
    for expected_length, _ in _expected(batch):
        # What is longer than any frame may be handed out in parts before its delimiter comes.
        length, checksum = next(pieces, (0, 0))
        while 0 < length < expected_length and not checksum and (part := next(pieces, None)):
            length, checksum = length + part[0], part[1]
        if length != expected_length:
            yield Finding("bytes lost", "host", f"{length} bytes handed out of a chunk of {expected_length}")
            return
        verdicts.append(checksum)
    if answer.pending or next(pieces, None):
        yield Finding("bytes lost", "host", "chunks handed out that nobody sent")
    yield from _judge(batch, "host", verdicts)
    yield from _judge_ledger(batch, answer)


def judge_board(batch: Batch, answer: bytes) -> Iterator[Finding]:
    """What the board's decoder did wrong."""
    verdicts = [checksum for (checksum,) in struct.iter_unpack("<I", answer)]
    if len(verdicts) != len(expected := _expected(batch)):
        yield Finding("bytes lost", "board", f"{len(verdicts)} chunks seen, {len(expected)} came")
        return
    yield from _judge(batch, "board", verdicts)


def _expected(batch: Batch) -> list[tuple[int, int]]:
    return [chunk for unit in batch.units for chunk in unit.chunks]


def _judge(batch: Batch, decoder: str, verdicts: Sequence[int]) -> Iterator[Finding]:
    found = iter(verdicts)
    for number, unit in enumerate(batch.units):
        for _, expected in unit.chunks:
            checksum = next(found)
            if checksum == expected:
                continue
            kind = "mutant accepted" if not expected else "frame altered" if checksum else "frame refused"
            what = f"unit {number} ({unit.mutation or 'as it was sent'})"
            yield Finding(kind, decoder, f"{kind}: {what} {unit.arrived[:48].hex()}, {len(unit.arrived)} bytes")


def _judge_ledger(batch: Batch, answer: HostAnswer) -> Iterator[Finding]:
    if not answer.closes:
        yield Finding("ledger", "host", f"does not close: {answer.ledger['fault']}")
    # What is longer than any frame comes in parts, each of them no frame.
    bad_frames = sum(1 for _, checksum in answer.chunks if not checksum)
    for name, true in {**asdict(batch.truth), "bad_frames": bad_frames}.items():
        if answer.ledger[name] != true:
            yield Finding("ledger", "host", f"{name} is {answer.ledger[name]} in the ledger and was {true}")
