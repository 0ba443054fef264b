"""The joint inside a board in plain Python: what jointboard/sim_joint.py must compute, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

from firmware.tests.twin import wrap

FASTEST = 4096 * 2**16


@dataclass(frozen=True)
class Gains:
    """Numbers of the model, as sim_joint.gains() makes them."""

    lag: int
    push: int
    drag: int
    coulomb: int
    measured: int
    link: int
    turn: int = 524_288
    clocks: int = 16_000


@dataclass
class SimTwin:
    """State of the model between ticks, in unbounded integers; Q16 is 1/65536 of a count."""

    gains: Gains
    current: int = 0  # 1/16 mA
    velocity: int = 0  # Q16
    count: int = 0
    part: int = 0  # Q16
    link_count: int = 0
    link_part: int = 0  # Q16
    edge: int = 0

    def step(self, tick: int, enable: int, command: int) -> tuple[int, int, int, int]:
        """A tick under these outputs; motor counter, link encoder, time of the newest edge, sum of 16 ADC samples."""
        g = self.gains
        if enable:
            self.current += (16 * command - self.current) * g.lag // 2**11
            speed = self.velocity + self.current * g.push // 2**8 - self.velocity // 2**8 * g.drag // 2**7
            speed -= max(-g.coulomb, min(g.coulomb, speed))
            self.velocity = max(-FASTEST, min(FASTEST, speed))
        else:
            self.current = self.velocity = 0
        moved, self.part = divmod(self.part + self.velocity, 2**16)
        self.count = wrap(self.count + moved)
        if moved:
            since = self.part if self.velocity > 0 else 2**16 - self.part
            self.edge = wrap(tick * g.clocks - since * g.clocks // abs(self.velocity))
        turned, self.link_part = divmod(self.link_part + moved * g.link, 2**16)
        self.link_count = (self.link_count + turned) % g.turn
        total = max(0, min(65520, 2**15 + self.current * g.measured // 2**12))
        return self.count % 2**16, self.link_count, self.edge, total
