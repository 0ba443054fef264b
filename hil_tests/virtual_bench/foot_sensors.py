"""The force sensors under the corners of feet: true forces to the integers a foot's board gets."""

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.plant_file import TICK, ForceTruth
from jointbench.arrays import Array
from jointwire import CHANNELS

_TOP_COUNT = 2**15 - 1  # of a sample's 16 bits
_LOOPS = np.array([1.0 / 9.0, 1.0 / 3.0, 1.0]).reshape(3, 1, 1)
_DRAWN_TICKS = 64  # noise is drawn for many ticks at once, which is faster
_CHANNELS = sum(1 << channel.bit for channel in CHANNELS if channel.name.startswith("foot_force_"))


class FootSensors:
    """The four load cells of each foot, drawn from one seed: round((gain f + offset + noise) / step), clipped.

    A cell's gain and offset are drawn once. The board's facts hold the nominal step and the zero as a laboratory would
    have found it on the unloaded foot.

    Of two things no calibration knows. A cell reads less while its force grows than while it shrinks, by loops of all
    sizes: f - Σ (width / 6 r) s_r over stop operators s_r[k] = clip(s_r[k-1] + f[k] - f[k-1], ±r) of the reaches
    reach / 9, reach / 3 and reach. And its zero goes with the warmth of the board: drift (1 - exp(-t / warming)), t
    since the bench began.

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
        self._at_rest = np.empty((_DRAWN_TICKS, *shape))  # offset, drift and noise of the ticks to come
        self._used = _DRAWN_TICKS
        width = truth.hysteresis_width * boards.uniform(0.5, 1.5, shape)
        self._has_loops = truth.hysteresis_width > 0.0
        self._reaches = truth.hysteresis_reach * _LOOPS
        self._loop = width * self.gain / truth.step / (2.0 * len(_LOOPS))
        self._stops, self._before = np.zeros((len(_LOOPS), *shape)), np.zeros(shape)
        self._drift = truth.drift / truth.step * boards.standard_normal(shape)
        self._warming_ticks = truth.warming / tick
        self._ticks = np.arange(_DRAWN_TICKS, dtype=np.float64)[:, None, None]

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
            self._at_rest += self._drift * -np.expm1(-self._ticks / self._warming_ticks)
            self._ticks += _DRAWN_TICKS
            self._used = 0
        counts = self._at_rest[self._used]
        self._used += 1
        counts += self.gain / self._step * force
        if self._has_loops:
            self._stops += force - self._before
            np.clip(self._stops, -self._reaches, self._reaches, out=self._stops)
            self._before[:] = force
            counts -= self._loop * np.sum(self._stops / self._reaches, axis=0)
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
