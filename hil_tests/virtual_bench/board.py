"""What the bench asks of an emulated board, whatever it runs on."""

from typing import Protocol

from hil_tests.virtual_bench.pipe_layout import Answer


class Board(Protocol):
    """A running board, from tick to tick; once dead it stays dead until it is restarted.

    A board whose program has ended in its interpreter's prompt is alive: its motor is off, and its line is its console.
    """

    @property
    def death(self) -> str | None:
        """Why it died; None while it lives."""
        ...

    @property
    def pid(self) -> int:
        """Process number."""
        ...

    def send_tick(self, message: bytes) -> None:
        """Give it one tick: TICK_IN of pipe_layout for each motor, and the bytes it receives; a chip what its pins see.

        Raises:
            BoardDied: the board is no longer there to take it.
        """
        ...

    def receive_tick(self, tick: int) -> Answer:
        """Wait for its answer to `tick`.

        Raises:
            BoardDied: it ended, hangs, or does not speak this bench's layout.
        """
        ...

    def restart(self) -> None:
        """Take the power and give it back: the board starts from what its flash holds.

        Raises:
            BoardStartError: it cannot be started.
        """
        ...

    def close(self) -> None:
        """End the board."""
        ...
