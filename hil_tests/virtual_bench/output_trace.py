"""What boards do to their drives, tick by tick, for who wants to know exactly when a motor lost its power."""

from collections import deque

_LONGEST = 20_000  # ticks that are kept; the oldest go first


class OutputTrace:
    """The outputs of boards as their drives have them; of a board that misses a tick or dies, too."""

    def __init__(self) -> None:
        """Note nothing until somebody asks."""
        self._noted: dict[int, deque[tuple[int, int, int]]] = {}

    @property
    def asked(self) -> bool:
        """Whether anybody asked for any board's."""
        return bool(self._noted)

    def note(self, node: int, tick: int, enable: int, command_mA: int) -> None:
        """Take a drive's outputs after a board's tick; of a chip the duty of its bridge in units of 1 / FULL_DUTY."""
        if node in self._noted:
            self._noted[node].append((tick, enable, command_mA))

    def take(self, node: int) -> list[tuple[int, int, int]]:
        """Tick, enable and command [mA] of the ticks since this was last asked of the board; at first none."""
        noted = list(self._noted.get(node, ()))
        self._noted[node] = deque(maxlen=_LONGEST)
        return noted

    def forget(self) -> None:
        """Note nothing more, until somebody asks again."""
        self._noted.clear()
