"""Boards whose clocks run alike, and so tick together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hil_tests.virtual_bench.board import Board
from hil_tests.virtual_bench.board_clock import BoardClock
from hil_tests.virtual_bench.edge_times import EdgeTimes
from hil_tests.virtual_bench.hardware_faults import HardwareFaults
from hil_tests.virtual_bench.pipe_layout import TICK_IN
from hil_tests.virtual_bench.sensors import Readings


@dataclass(frozen=True)
class Seat:
    """A board with its clock; of each of its motors the node, and the joint it sits on (an index into the robot's).

    A foot's board has no joints, and sits on the foot of this index. `on_sync`: whether the SYNC line goes to it.
    """

    nodes: tuple[int, ...]
    board: Board
    joints: tuple[int, ...]
    clock: BoardClock
    foot: int | None = None
    on_sync: bool = True

    @cached_property
    def node(self) -> int:
        """The first motor's: the board's where all its motors are meant."""
        return self.nodes[0]


class Cohort:
    """The boards of one clock: when they tick next, and what they are told then.

    Attributes:
        seats: the boards, those of feet last.
        boards: their nodes, of several motors the first one's.
        due_us: true time of their next tick [µs].
    """

    def __init__(
        self, seats: Sequence[Seat], faults: HardwareFaults, service_us: int, sync_us: int, tick_us: int
    ) -> None:
        """Start before the first tick at or after true time zero.

        Args:
            seats: boards with equal clocks.
            faults: what is wrong with the hardware around them.
            service_us: from a tick until a board serves what it has received.
            sync_us: period of SYNC pulses, 0 for none.
            tick_us: from tick to tick, by the boards' clock.
        """
        self.seats = tuple(sorted(seats, key=lambda seat: seat.foot is not None))  # boards of feet last
        seats = self.seats
        self.boards = [seat.node for seat in seats]
        self._clock = seats[0].clock
        self._faults = faults
        self._nodes = [node for seat in seats for node in seat.nodes]
        self._joints = np.array([joint for seat in seats for joint in seat.joints], dtype=int)
        self._feet = np.array([seat.foot for seat in seats if seat.foot is not None], dtype=int)
        self._inputs = np.zeros(len(self._nodes), TICK_IN)
        # Views, made once: to look up a field takes as long as to fill it.
        fields, n_joints = list(TICK_IN.names or ()), len(self._joints)
        self._of_all = {field: self._inputs[field] for field in fields}
        self._of_joints = {field: self._inputs[field][:n_joints] for field in fields}
        self._of_feet = self._inputs["foot_force"][n_joints:]
        self._edge_times = EdgeTimes(len(self._joints), 1e-6 * tick_us)
        ends = TICK_IN.itemsize * np.cumsum([0, *[len(seat.nodes) for seat in seats]])
        self._parts = [slice(start, end) for start, end in pairwise(ends.tolist())]  # of all inputs, by board
        self._firsts = [self._nodes.index(seat.node) for seat in seats]
        self._unwired = [self._nodes.index(node) for seat in seats if not seat.on_sync for node in seat.nodes]
        self._service_us = service_us
        self._sync_us = sync_us
        self._tick_us = tick_us
        self._count = self._clock.offset_us // tick_us
        self.due_us = 0
        self.next_tick()

    @property
    def tick(self) -> int:
        """Number of the next tick, as the boards count it."""
        return _wrapped(self._count)

    def next_tick(self) -> None:
        """Go on to the tick after this one."""
        self._count += 1
        self.due_us = self._clock.reaches(self._tick_us * self._count)

    def messages(self, readings: Readings, received: Sequence[bytes]) -> list[bytes]:
        """Return the tick's message for each board, `received` being what each one's serial line brings."""
        inputs, joints, clock = self._inputs, self._joints, self._clock
        of_all, of_joints = self._of_all, self._of_joints
        all_struck = self._faults.struck
        struck = [place for place, node in enumerate(self._nodes) if node in all_struck] if all_struck else []
        before = inputs[struck]
        of_all["tick"].fill(self.tick)
        of_all["time_us"].fill(_wrapped(self._tick_us * self._count))
        of_all["now_us"].fill(_wrapped(clock.reads(self.due_us + self._service_us)))
        if self._sync_us and self.due_us >= self._sync_us:
            edges = self.due_us // self._sync_us
            of_all["sync_edges"].fill(edges)
            of_all["sync_us"].fill(_wrapped(clock.reads(edges * self._sync_us)))
            for place in self._unwired:
                inputs["sync_edges"][place] = inputs["sync_us"][place] = 0
        of_joints["motor_count"][:] = readings.motor_count[joints]
        of_joints["motor_edge"][:] = self._edge_times.at(self._count, readings.motor_exact[joints])
        of_joints["link_count"][:] = readings.link_count[joints]
        of_joints["bus_voltage"][:] = readings.bus_voltage[joints]
        of_joints["temperature"][:] = readings.temperature[joints]
        of_joints["adc"][:] = readings.adc[joints]
        if len(self._feet):
            self._of_feet[:] = readings.foot_force[self._feet]
        of_all["received"][self._firsts] = [len(data) for data in received]
        for place, earlier in zip(struck, before, strict=True):
            self._faults.alter(self._nodes[place], inputs[place], earlier)
        together = inputs.tobytes()
        return [together[part] + data for part, data in zip(self._parts, received, strict=True)]


def _wrapped(count: int) -> int:
    """Return the count as the 32-bit signed word of a board, whose counters wrap."""
    return (count + 2**31) % 2**32 - 2**31
