"""Pseudo-terminals: where clients find the boards' serial lines, like any other."""

import os
import pty
import termios
import tty

from hil_tests.virtual_bench.errors import BenchError

_MAX_WAITING = 65536  # bytes kept for a client that does not read, as a USB host would


class Port:
    """The bench's end of one serial line, with the totals that a lockstep client counts in."""

    def __init__(self) -> None:
        """Open a pseudo-terminal in raw mode; its client end stays open here, so that clients may come and go.

        Raises:
            BenchError: the system has no pseudo-terminal left.
        """
        try:
            self._bench, self._client = pty.openpty()
        except OSError as error:
            raise BenchError(f"no pseudo-terminal for a board ({error}); end other programs that use some") from error
        tty.setraw(self._client, termios.TCSANOW)
        os.set_blocking(self._bench, False)
        self.path = os.ttyname(self._client)
        self._from_client = bytearray()
        self._to_client = bytearray()
        self.taken = 0  # bytes taken from the client since `restart`
        self.sent = 0  # bytes the client can read since `restart`

    def fileno(self) -> int:
        """Return the descriptor that is readable when the client has written."""
        return self._bench

    def take(self) -> None:
        """Take what the client has written so far."""
        try:
            data = os.read(self._bench, _MAX_WAITING)
        except BlockingIOError:
            return
        self.taken += len(data)
        self._from_client += data

    def release(self, total: int, most: int = _MAX_WAITING) -> bytes:
        """Taken bytes up to the `total`-th since `restart` that were not released before, at most so many."""
        count = min(max(0, len(self._from_client) - max(0, self.taken - total)), most)
        data = bytes(self._from_client[:count])
        del self._from_client[:count]
        return data

    @property
    def waiting(self) -> bool:
        """Whether bytes for the client did not fit yet."""
        return bool(self._to_client)

    def put(self, data: bytes) -> None:
        """Give the client bytes; what does not fit waits, and beyond a limit is lost."""
        self._to_client += data[: _MAX_WAITING - len(self._to_client)]
        try:
            count = os.write(self._bench, self._to_client)
        except BlockingIOError:
            return
        self.sent += count
        del self._to_client[:count]

    def restart(self) -> None:
        """Forget what is under way in both directions and count from zero: the next client starts clean."""
        self.take()
        termios.tcflush(self._client, termios.TCIFLUSH)
        self._from_client.clear()
        self._to_client.clear()
        self.taken = self.sent = 0

    def close(self) -> None:
        """Close both ends."""
        os.close(self._bench)
        os.close(self._client)
