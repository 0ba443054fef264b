"""The course of a bench's true time: boards tick, bytes are under way, and the client gets them when they arrive."""

from collections.abc import Sequence

from hil_tests.virtual_bench.lockstep import Lockstep, NoLine
from hil_tests.virtual_bench.serial_link import SerialLink


class Timeline:
    """Events of lockstep and serial links in the order of their times; `now_us` is the true time [µs]."""

    def __init__(self, lockstep: Lockstep, links: Sequence[SerialLink]) -> None:
        """Stand at time 0."""
        self._lockstep = lockstep
        self._links = tuple(links)
        self._wired = tuple(link for link in links if link.wired)
        self._lines = {node: link for link in links for node in link.nodes}
        self.now_us = 0

    def advance(self, until_us: int) -> bool:
        """Go to the next event, at most to `until_us`, and say whether bytes have reached the client there."""
        next_us = min(self._lockstep.next_us, *[link.next_us for link in self._links])
        if next_us > until_us:
            self.now_us = until_us
            return False
        self.now_us = next_us
        if next_us == self._lockstep.next_us:
            self._lockstep.step(self._lines)
            if next_us % self._lockstep.tick_us == 0:
                for link in self._wired:
                    link.collect(next_us)
        arrived = False
        for link in self._links:
            if link.next_us <= next_us or link.port.waiting:
                arrived = link.deliver(next_us) or arrived
        return arrived

    def run_on(self, longest_us: int) -> None:
        """Let time pass without a client until no board drives its motor; forget the client's bytes."""
        nobody, end_us = dict.fromkeys(self._lines, NoLine()), self.now_us + longest_us
        while self._lockstep.driving and self._lockstep.next_us <= end_us:
            self.now_us = self._lockstep.next_us
            self._lockstep.step(nobody)
        for link in self._links:
            link.restart()
