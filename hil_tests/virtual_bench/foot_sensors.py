"""The force sensors under the corners of feet: true forces to the integers a foot's board gets."""

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.plant_file import TICK, ForceTruth
from jointwire import CHANNELS

Array = NDArray[np.float64]
_TOP_COUNT = 2**15 - 1  # of a sample's 16 bits
_DRAWN_TICKS = 64  # noise is drawn for many ticks at once, which is faster
_CHANNELS = sum(1 << channel.bit for channel in CHANNELS if channel.name.startswith("foot_force_"))


class FootSensors:
    """The four load cells of each foot, drawn from one seed: round((gain f + offset + noise) / step), clipped.

    A cell's gain and offset are drawn once. The board's facts hold the nominal step and the zero as a laboratory would
    have found it on the unloaded foot.

    Attributes:
        gain: shape (n_feet, 4).
    """

    def __init__(
        self,
        truth: ForceTruth,
        n_feet: int,
        boards: np.random.Generator,
        noise: np.random.Generator,
        tick: float = TICK,
    ) -> None:
        """Draw the cells of all feet from `boards`; `noise` is drawn on. A tick lasts so long [s]."""
        self._tick_us = round(1e6 * tick)
        shape = (n_feet, 4)
        self._step = truth.step
        self._noise_rms, self._noise = truth.noise / truth.step, noise
        self._top = min(truth.range / truth.step, _TOP_COUNT)
        self.gain = 1.0 + boards.uniform(-truth.gain_spread, truth.gain_spread, shape)
        self._offset = boards.uniform(-truth.offset_spread, truth.offset_spread, shape) / truth.step
        calibrations = truth.zero_calibration / truth.step * boards.standard_normal(shape)
        self._zero = np.rint(self._offset + calibrations).astype(int)
        self._at_rest = np.empty((_DRAWN_TICKS, *shape))  # offset and noise of the ticks to come
        self._used = _DRAWN_TICKS

    @property
    def zero_error(self) -> Array:
        """What a calibrated cell reads at no force [N], shape (n_feet, 4)."""
        return (self._offset - self._zero) * self._step

    def read(self, force: Array) -> NDArray[np.int32]:
        """Counts at forces [N], shape (n_feet, 4); each call has noise of its own."""
        if self._used == _DRAWN_TICKS:
            self._noise.standard_normal(out=self._at_rest)
            self._at_rest *= self._noise_rms
            self._at_rest += self._offset
            self._used = 0
        counts = self._at_rest[self._used]
        self._used += 1
        counts += self.gain / self._step * force
        np.rint(counts, counts)
        np.minimum(counts, self._top, out=counts)
        return np.maximum(counts, -self._top, out=counts).astype(np.int32)

    def facts(self, foot: int) -> dict[str, int]:
        """Facts of a foot's board: raw values of the registers that only its hardware and calibration know."""
        zeros = {f"force.zero_{k + 1}": int(zero) for k, zero in enumerate(self._zero[foot])}
        return {
            "board.channels": _CHANNELS,
            "board.tick_period": self._tick_us,
            "force.scale": round(1e6 * self._step),
            **zeros,
        }
