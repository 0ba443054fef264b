"""A pseudo-terminal per board: to a client it is a serial port like any other."""

import os
import pty
import termios
import tty

from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.pipe_layout import MAX_SERIAL

_MAX_WAITING = 65536  # bytes kept for a client that does not read, as a USB host would


class Port:
    """The bench's end of one board's serial line, with the totals that a lockstep client counts in."""

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
        self._to_board = bytearray()
        self._to_client = bytearray()
        self.taken = 0  # bytes taken from the client since `restart`
        self.granted: int | None = 0  # how many of them the board may have; None: all
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
        self._to_board += data

    def for_board(self) -> bytes:
        """Next bytes for the board: granted, and at most a tick's worth."""
        if not self._to_board:
            return b""
        withheld = 0 if self.granted is None else max(0, self.taken - self.granted)
        count = max(0, min(MAX_SERIAL, len(self._to_board) - withheld))
        data = bytes(self._to_board[:count])
        del self._to_board[:count]
        return data

    def put(self, data: bytes) -> None:
        """Give the client what the board sent; what does not fit waits, and beyond a limit is lost."""
        if not data and not self._to_client:
            return
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
        self._to_board.clear()
        self._to_client.clear()
        self.taken = self.granted = self.sent = 0

    def close(self) -> None:
        """Close both ends."""
        os.close(self._bench)
        os.close(self._client)
