"""Drives with sensors and a current loop of their own, at the bus of an emulated board."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hil_tests.virtual_bench.board import TICK_IN

_MIDDLE = 2**15  # of the sum of a tick's converter samples


@dataclass(frozen=True)
class Present:
    """What a drive's sensors have: current [A], position [counts], supply [V] and temperature [degC]."""

    current: float
    position: int
    supply: float
    temperature: float


class SmartDrive(Protocol):
    """An emulated drive of one make."""

    def hear(self, data: bytes) -> bytes:
        """Take the bytes of a burst from the bus, and return what it puts there in answer."""
        ...

    def see(self, present: Present) -> None:
        """Let its sensors have these values."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def outputs(self, enable: int, /) -> tuple[int, float]:
        """Whether its motor has power, of a board that has its ENABLE so, and the current that it is asked for [A]."""
        ...


class DriveOfBoard:
    """A drive at the bus of an emulated board: it sees what the plant's sensors give that board, which does not.

    Args:
        drive: as it comes from the factory.
        facts: what the counts of the plant's sensors are, as registers of a board with sensors of its own.
    """

    def __init__(self, drive: SmartDrive, facts: Mapping[str, int]) -> None:
        """Wait for the first tick."""
        self._drive = drive
        self.hear = drive.hear
        self._facts = facts
        self._position = self._count = -1

    def begin_tick(self, message: bytes) -> None:
        """Let the drive see the sensors of a tick's message (TICK_IN), and the time since the one before pass."""
        facts, inputs = self._facts, np.frombuffer(message, TICK_IN, 1)[0]
        count = int(inputs["motor_count"])
        if self._count < 0:
            self._position = int(inputs["link_count"])
        else:
            self._position += (count - self._count + 2**15) % 2**16 - 2**15
        self._count = count
        current = int(inputs["adc"][0].sum()) - _MIDDLE - facts["current.zero"]
        kelvin = 1e-6 * facts["temperature.scale"] * (int(inputs["temperature"]) - facts["temperature.zero"])
        supply = 1e-6 * facts["voltage.scale"] * int(inputs["bus_voltage"])
        self._drive.see(Present(1e-9 * facts["current.scale"] * current, self._position, supply, kelvin - 273.15))
        self._drive.wait(1e-6 * facts["board.tick_period"])

    def outputs(self, enable: int) -> tuple[int, int]:
        """Power and current [mA] that the drive gives its motor, of a board that has its ENABLE so."""
        power, current = self._drive.outputs(enable)
        return power, round(1e3 * current)
