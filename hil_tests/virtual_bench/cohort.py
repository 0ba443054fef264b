"""Boards whose clocks run alike, and so tick together; those that are chips have what happens at their pins."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.board import TICK_IN, Board, BoardClock
from hil_tests.virtual_bench.hardware_faults import HardwareFaults
from hil_tests.virtual_bench.rp2040.board import Rp2040Board
from hil_tests.virtual_bench.rp2040.wiring import SLOW_SHIFT
from hil_tests.virtual_bench.sensors import EdgeTimes, Readings


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
        self._joints = _places([joint for seat in seats for joint in seat.joints])
        self._feet = _places([seat.foot for seat in seats if seat.foot is not None])
        self._inputs = np.zeros(len(self._nodes), TICK_IN)
        # Views, made once: to look up a field takes as long as to fill it.
        fields, n_joints = list(TICK_IN.names or ()), sum(len(seat.joints) for seat in seats)
        self._of_all = {field: self._inputs[field] for field in fields}
        self._of_joints = {field: self._inputs[field][:n_joints] for field in fields}
        self._of_feet = self._inputs["foot_force"][n_joints:]
        self._edge_times = EdgeTimes(n_joints, 1e-6 * tick_us)
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
        of_joints["adc"][:] = self._faults.currents_of_boards(readings.adc)[joints]
        if len(self._of_feet):
            self._of_feet[:] = readings.foot_force[self._feet]
        of_all["received"][self._firsts] = [len(data) for data in received]
        for place, earlier in zip(struck, before, strict=True):
            self._faults.alter(self._nodes[place], inputs[place], earlier)
        together = inputs.tobytes()
        return [together[part] + data for part, data in zip(self._parts, received, strict=True)]


def _places(indices: list[int]) -> slice | NDArray[np.int64]:
    """Return indices into an array as a slice where they follow each other, which takes a fifth of the time."""
    if indices and indices == list(range(indices[0], indices[0] + len(indices))):
        return slice(indices[0], indices[0] + len(indices))
    return np.array(indices, dtype=np.int64)


def _wrapped(count: int) -> int:
    """Return the count as the 32-bit signed word of a board, whose counters wrap."""
    return (count + 2**31) % 2**32 - 2**31


_TOP = 4095  # of 12-bit converters
_NS = 1000  # in a µs
_PINS = ("stop", "fault", "limit_low", "limit_high")  # by the bits of TICK_IN's pins
_CHANGE = 0.3  # of a tick: when they change


class PinCohort:
    """All chips of a bench.

    A tick's sensors reach the pins within it: the converters' samples each at its instant, the motor encoder's edges
    where a position that runs linearly passes them, a line's bytes when they arrive. Slower things are those of the
    tick's end.

    Attributes:
        seats: the boards.
        joints: where their motors sit, shape (n,), board by board.
    """

    def __init__(self, seats: Sequence[Seat], faults: HardwareFaults, link_counts: int, sync_us: int) -> None:
        """Start at true time zero.

        Args:
            seats: boards with a motor or two each.
            faults: what is wrong with the hardware around them.
            link_counts: counts a turn of link encoders, as `Readings` has them.
            sync_us: period of SYNC pulses, 0 for none.
        """
        self.seats = tuple(seats)
        self._faults = faults
        self._link_counts = link_counts
        self._sync_us = sync_us
        self.joints = np.array([joint for seat in seats for joint in seat.joints], dtype=int)
        self._nodes = [node for seat in seats for node in seat.nodes]
        self._inputs = np.zeros(len(self._nodes), TICK_IN)
        self._counts = np.zeros(len(self._nodes), dtype=np.int64)  # that motor encoders show, without wrapping
        self._edges = 0  # of SYNC
        self._end_us = 0  # true time of the last tick's end

    def messages(
        self, readings: Readings, arrivals: Sequence[Sequence[tuple[int, bytes]]], time_us: int
    ) -> list[bytes]:
        """Return a line for each board that says what its pins see of the tick until `time_us`.

        Args:
            readings: of the tick's end.
            arrivals: bytes that each board's line brings in it, with the true times [µs] at which they set out.
            time_us: true time of its end.
        """
        inputs, joints = self._inputs, self.joints
        before = inputs.copy()
        for field in ("motor_count", "link_count", "bus_voltage", "temperature", "adc"):
            inputs[field] = getattr(readings, field)[joints]
        for place, node in enumerate(self._nodes):
            if node in self._faults.struck:
                self._faults.alter(node, inputs[place], before[place])
        # A fault has the encoder count otherwise; where it is between two counts stays as it is.
        self._counts += (inputs["motor_count"] - self._counts + 2**15) % 2**16 - 2**15
        counts = self._counts + readings.motor_exact[joints] % 1.0
        pulses = self._pulses(time_us)
        changed_us = self._end_us + int(_CHANGE * (time_us - self._end_us))
        self._end_us = time_us
        lines: list[bytes] = []
        place = 0
        for seat, arrived in zip(self.seats, arrivals, strict=True):
            assert isinstance(seat.board, Rp2040Board)
            motors = [
                self._motor(config, inputs[place + k], float(counts[place + k]), self._nodes[place + k])
                for k, config in enumerate(seat.board.motors)
            ]
            first, place = place, place + len(motors)
            message: dict[str, Any] = {
                "chip": 0,
                "to": _own_time(seat, time_us),
                "levels": [
                    [_own_time(seat, changed_us), *change]
                    for k, config in enumerate(seat.board.motors)
                    for change in _levels(config, int(before[first + k]["pins"]), int(inputs[first + k]["pins"]))
                ],
                "sync": [_own_time(seat, pulse) for pulse in (pulses if seat.on_sync else [])],
                "line": [(_own_time(seat, at), data.hex()) for at, data in arrived],
                **motors[0],
            }
            if motors[1:]:
                message["partner"] = motors[1]
            lines.append(json.dumps(message).encode() + b"\n")
        return lines

    def _pulses(self, time_us: int) -> list[int]:
        """True times [µs] at which SYNC pulses begin in the tick until `time_us`."""
        first, self._edges = self._edges, time_us // self._sync_us if self._sync_us else 0
        return [self._sync_us * number for number in range(first + 1, self._edges + 1)]

    def _motor(self, config: Mapping[str, Any], inputs: np.void, count: float, node: int) -> dict[str, Any]:
        """What a motor's sensors show at the tick's end, by its part of config.json."""
        current, torque = inputs["adc"].tolist()
        slow = {name: [_slow_count(inputs[name])] for name in ("bus_voltage", "temperature")}
        return {
            "analog": {
                "current": current,
                "torque": torque,
                "supply": slow["bus_voltage"],
                "temperature": [_divider_count(config["ntc"], inputs["temperature"])]
                if "ntc" in config
                else slow["temperature"],
            },
            "count": count,
            "cut": self._faults.has_wire_cut(node, "encoder"),
            "linkCut": self._faults.has_wire_cut(node, "link"),
            "bridges": _bridges(config, torque),
            "link": int(inputs["link_count"]) * config["facts"]["encoder.link_counts"] // self._link_counts,
        }


def _levels(config: Mapping[str, Any], before: int, pins: int) -> list[tuple[int, bool]]:
    """Numbers and levels of a motor's pins that change."""
    changed = [(name, 1 << bit) for bit, name in enumerate(_PINS) if (before ^ pins) >> bit & 1]
    return [(config["pins"][name], not pins & bit) for name, bit in changed if name in config["pins"]]


def _bridges(config: Mapping[str, Any], samples: Sequence[int]) -> list[float]:
    """What a torque sensor's bridge gives in counts of 24 bits at a gain of 128, on average over a tick."""
    if "torque" not in config:
        return []
    gain, shift = config["torque"].get("gain", 128), config["torque"].get("shift", 8)
    return [(sum(samples) - (_TOP + 1) * len(samples) // 2) * 2**shift * 128 / gain]


def _divider_count(ntc: Mapping[str, Any], temperature: int) -> int:
    """The count of a 12-bit converter at a thermistor's divider, at a temperature [0.01 degC]."""
    kelvin = 0.01 * temperature + 273.15
    ohm = ntc["ohm_25"] * math.exp(ntc["beta_K"] * (1.0 / kelvin - 1.0 / 298.15))
    own, other = (ohm, ntc["resistor_ohm"]) if ntc["side"] == "low" else (ntc["resistor_ohm"], ohm)
    return min(round((_TOP + 1) * own / (own + other)), _TOP)


def _slow_count(count: int) -> int:
    return min(max(int(count) >> SLOW_SHIFT, 0), _TOP)


def _own_time(seat: Seat, time_us: int) -> int:
    """What the crystal of a board has counted [ns] at a true time [µs]."""
    board = seat.board
    assert isinstance(board, Rp2040Board)
    return seat.clock.reads(_NS * time_us) + board.lead_ns
