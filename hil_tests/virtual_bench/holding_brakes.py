"""Holding brakes that boards open by a pin: how long they take for it, and which motors they hold."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

OPENED = 2  # bit of a board's outputs, beside 1 for power


class HoldingBrakes:
    """The brakes of all joints, from tick to tick.

    One that a board has a pin for is open when the pin has said so for its release time, and holds again its engage
    time after the pin said otherwise. Every other joint's holds while its drive is off.

    Args:
        times: of the brakes with a pin, by joint: engage and release time [ms].
        tick_us: how long a tick is.
    """

    def __init__(self, times: Mapping[int, tuple[int, int]], tick_us: int) -> None:
        """Begin with all of them engaged."""
        self._ticks = {
            joint: tuple(-(-1000 * each // tick_us) for each in engage_release)
            for joint, engage_release in times.items()
        }
        self._still = dict.fromkeys(times, 0)  # ticks until the brake is as the pin says
        self._opened = dict.fromkeys(times, False)  # as the pin says
        self._holds = dict.fromkeys(times, True)

    def held(self, outputs: Sequence[int]) -> NDArray[np.bool_] | None:
        """Let a tick begin under the boards' outputs; which joints' brakes hold in it, None for those without power."""
        if not self._ticks:
            return None
        held = np.array([not output & 1 for output in outputs], dtype=bool)
        for joint, (engage, release) in self._ticks.items():
            opened = bool(outputs[joint] & OPENED)
            if opened is not self._opened[joint]:
                self._opened[joint] = opened
                self._still[joint] = release if opened else engage
            if self._still[joint]:
                self._still[joint] -= 1
            else:
                self._holds[joint] = not opened
            held[joint] = self._holds[joint]
        return held
