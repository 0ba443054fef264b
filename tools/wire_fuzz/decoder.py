"""A decoder under test: a process that is given batches and answers what it found in them, watched for progress."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.wire_fuzz.batch import Batch
from tools.wire_fuzz.errors import DecoderFailed

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
        """What it makes of the batch given last.

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
