"""Boards and plant in lockstep: the plant gives each board its tick and waits for its outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil_tests.virtual_bench.emulated_board import EmulatedBoard
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.pipe_layout import TICK_IN
from hil_tests.virtual_bench.plant import Motion, Plant
from hil_tests.virtual_bench.sensors import Sensors

_TICK_US = round(1e6 * TICK)


@dataclass(frozen=True)
class Seat:
    """A board and the joint it sits on (an index into the robot's joints)."""

    board: EmulatedBoard
    joint: int


class Lockstep:
    """Virtual time of a bench. A joint without a living board has its drive off and its brake closed."""

    def __init__(self, plant: Plant, sensors: Sensors, seats: Sequence[Seat], supply: float, n_joints: int) -> None:
        """Stand at tick 0; the first `step` is tick 1."""
        self._plant = plant
        self._sensors = sensors
        self._seats = tuple(seats)
        self._joints = np.array([seat.joint for seat in seats], dtype=int)
        self._inputs = np.zeros(len(seats), TICK_IN)
        self._inputs["supply_mV"] = round(1e3 * supply)
        self._enabled = np.zeros(n_joints, dtype=bool)
        self._command = np.zeros(n_joints)
        self._motion: Motion | None = None
        self.tick = 0

    @property
    def time_us(self) -> int:
        """Virtual time [µs]."""
        return self.tick * _TICK_US

    @property
    def driving(self) -> bool:
        """Whether any board drives its motor."""
        return bool(self._enabled.any())

    def step(self, received: Sequence[bytes]) -> list[bytes]:
        """Advance by one tick.

        Args:
            received: what each board's serial line receives in this tick.

        Returns:
            What each board sends in this tick; nothing from the dead, whose boards say why in `death`.
        """
        motion = self._plant.advance(self._enabled, self._command)
        self.tick += 1
        self._give(motion, received)
        return [self._take(seat) for seat in self._seats]

    def _give(self, motion: Motion, received: Sequence[bytes]) -> None:
        readings = self._sensors.read(motion)
        inputs = self._inputs
        inputs["tick"] = _wrapped(self.tick)
        inputs["time_us"] = _wrapped(self.time_us)
        inputs["received"] = [len(data) for data in received]
        inputs["motor_count"] = readings.motor_count[self._joints]
        inputs["link_count"] = readings.link_count[self._joints]
        inputs["adc"] = readings.adc[self._joints]
        messages, size = inputs.tobytes(), TICK_IN.itemsize
        for index, (seat, data) in enumerate(zip(self._seats, received, strict=True)):
            if seat.board.death is None:
                try:
                    seat.board.send_tick(messages[index * size : (index + 1) * size] + data)
                except BoardDied:
                    self._switch_off(seat.joint)

    def _take(self, seat: Seat) -> bytes:
        if seat.board.death is not None:
            return b""
        try:
            enable, command_mA, sent = seat.board.receive_tick(_wrapped(self.tick))
        except BoardDied:
            self._switch_off(seat.joint)
            return b""
        self._enabled[seat.joint] = enable
        self._command[seat.joint] = 1e-3 * command_mA
        return sent

    def _switch_off(self, joint: int) -> None:
        self._enabled[joint] = False
        self._command[joint] = 0.0


def _wrapped(count: int) -> int:
    """Return the count as the 32-bit signed word of a board, whose counters wrap."""
    return (count + 2**31) % 2**32 - 2**31
