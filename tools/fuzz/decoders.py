"""A decoder under test in a process of its own, watched for progress, and what it found held against the truth.

`python -m tools.fuzz.decoders` is the host's reader and ledger as such a process; board_program.py is the firmware's.

Its answer: ``<I`` number of chunks, for each ``<II`` encoded bytes and CRC-32 of the frame found in it (0: none), then
the bytes left unread and the board's ledger as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from jointbench.bench import Tally
from jointwire import HEADER, PROTOCOL_MAJOR, Chunk, Frame, FrameReader
from tools.fuzz.frames import Batch, DecoderFailed

PATIENCE_S = 60.0  # of the wall clock, without one byte taken or given: a batch takes well under a second
_LENGTH = struct.Struct("<I")


class DecoderProcess:
    """A program whose standard input and output are one socket.

    It reads batches: ``<II`` number of pieces and node, then each piece as ``<H`` its size and its bytes. To each it
    answers ``<I`` a size and that many bytes.
    """

    def __init__(
        self, name: str, command: Sequence[str | os.PathLike[str]], folder: Path, patience_s: float = PATIENCE_S
    ) -> None:
        """Start the program in a folder."""
        self.name, self._patience_s = name, patience_s
        self._socket, its_end = socket.socketpair()
        self._socket.settimeout(patience_s)
        self._log = tempfile.TemporaryFile()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _module_path()))}
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=its_end.fileno(), stdout=its_end.fileno(), stderr=self._log, env=environment
        )
        its_end.close()

    def give(self, batch: Batch) -> None:
        """Hand over a batch.

        Raises:
            DecoderFailed: it crashed, or takes no more bytes.
        """
        stream, at = batch.stream, 0
        message = bytearray(struct.pack("<II", len(batch.pieces), batch.node))
        for size in batch.pieces:
            message += struct.pack("<H", size)
            message += stream[at : at + size]
            at += size
        try:
            self._socket.sendall(message)
        except TimeoutError:
            raise self._failed(hangs=True) from None
        except OSError:
            raise self._failed(hangs=False) from None

    def answer(self) -> bytes:
        """The decoder's answer to the batch given last.

        Raises:
            DecoderFailed: it crashed, or does not answer.
        """
        return self._read(_LENGTH.unpack(self._read(_LENGTH.size))[0])

    def close(self) -> None:
        """End the program; closing twice is harmless."""
        self._socket.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except TimeoutError:
                raise self._failed(hangs=True) from None
            except OSError:
                part = b""
            if not part:
                raise self._failed(hangs=False)
            data += part
        return bytes(data)

    def _failed(self, hangs: bool) -> DecoderFailed:
        if hangs:
            self._process.kill()
            return DecoderFailed(self.name, True, f"no progress for {self._patience_s:g} s of the wall clock")
        status = self._process.wait(self._patience_s)
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines()[-3:]
        return DecoderFailed(self.name, False, f"it ended with status {status} and said: {' | '.join(said) or '-'}")


def _module_path() -> list[Path]:
    root = Path(__file__).resolve().parents[2]
    return [root, root / "host", root / "protocol"]


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
    """The host's result of a batch: (encoded bytes, CRC-32 of the frame or 0) of each chunk, and the ledger."""

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
    """Faults of the host's reader and its ledger."""
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
    """Faults of the board's decoder."""
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


def main() -> None:
    """Answer batches until there are no more."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints does not answer
    reader = FrameReader()
    while head := incoming.read(8):
        answer = _answer(reader, incoming, *struct.unpack("<II", head))
        outgoing.write(struct.pack("<I", len(answer)) + answer)
        outgoing.flush()


def _answer(reader: FrameReader, incoming: BinaryIO, pieces: int, node: int) -> bytes:
    tally = Tally({node: "joint"})
    found: list[tuple[int, int]] = []
    for _ in range(pieces):
        (size,) = struct.unpack("<H", incoming.read(2))
        for chunk in reader.feed(incoming.read(size)):
            found.append((len(chunk.encoded), _checksum(chunk)))
            if isinstance(chunk.content, Frame):
                tally.add(chunk.content)
            else:
                tally.add_noise(node)
    verdicts = b"".join(struct.pack("<II", *each) for each in found)
    ledger = tally.ledger().boards[0]
    counts = {**asdict(ledger), "frames_lost": ledger.frames_lost, "bad_frames": ledger.bad_frames}
    rest = {"pending": len(reader.pending), "closes": ledger.closes, "ledger": counts}
    return struct.pack("<I", len(found)) + verdicts + json.dumps(rest).encode()


def _checksum(chunk: Chunk) -> int:
    """CRC-32 of header and body as the frame's fields say they were: what was understood, not what came."""
    frame = chunk.content
    if not isinstance(frame, Frame):
        return 0
    header = HEADER.build(
        {
            "protocol": PROTOCOL_MAJOR, "type": frame.type, "node": frame.node, "flags": frame.flags,
            "seq": frame.seq, "length": len(frame.payload), "time_us": frame.time_us,
        }
    )  # fmt: skip
    return zlib.crc32(header + frame.payload)


if __name__ == "__main__":
    main()
