"""The sensors: true motion, edges and forces to the integers a board's hardware gives, with its own imperfections."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.kinds import PlantKind
from hil_tests.virtual_bench.model import Transmission
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion
from hil_tests.virtual_bench.plant_file import TICK, ForceTruth, PlantFile
from jointbench.arrays import Array
from jointbench.model import Drive, Robot
from jointwire import CHANNEL_BY_NAME, CHANNELS, JOINT_BOARD_CHANNELS

CAPTURE_CLOCK = 16_000_000  # [Hz], of the board's own time


class EdgeTimes:
    """The times of one clock's boards, from tick to tick; positions run linearly in between."""

    def __init__(self, count: int, tick: float = TICK) -> None:
        """Start `count` encoders without any edge; a tick lasts so long [s]."""
        self._per_tick = round(CAPTURE_CLOCK * tick)
        self._before: Array | None = None
        self._floor, self._part = np.zeros((2, count))
        self._times = np.zeros(count, dtype=np.int64)

    def at(self, tick: int, exact: Array) -> NDArray[np.uint32]:
        """Times of the newest edges up to a tick [counts of the capture clock, modulo 2^32], shape (n,).

        Args:
            tick: of these boards, one more than in the call before.
            exact: motor encoder positions at it, unrounded [counts], shape (n,).
        """
        end = np.floor(exact)
        if self._before is not None:
            moved = self._floor != end
            if moved.any():
                # The last whole number that was passed: on the way up the one reached, on the way down the one left.
                edge = end + (end < self._floor)
                part = np.divide(edge - self._before, exact - self._before, where=moved, out=self._part)
                times = (tick - 1) * self._per_tick + np.ceil(part * self._per_tick).astype(np.int64)
                np.copyto(self._times, times, where=moved)
        self._before, self._floor = exact.copy(), end
        return (self._times & 0xFFFFFFFF).astype(np.uint32)


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
        self._counts_per_force = self.gain / truth.step
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
        counts += self._counts_per_force * force
        if self._has_loops:
            self._stops += force - self._before
            np.minimum(self._stops, self._reaches, out=self._stops)
            np.maximum(self._stops, -self._reaches, out=self._stops)
            self._before[:] = force
            counts -= self._loop * np.add.reduce(self._stops / self._reaches)
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


_CENTRE, _TOP = 2048, 4095  # 12-bit converters, zero in the middle
_TEMPERATURE_STEP = 0.01  # [K]
_ABSOLUTE_ZERO = -273.15  # [degC]
_TURN = 2.0 * np.pi
_NO_FEET = np.zeros((0, 4), dtype=np.int32)


@dataclass(frozen=True)
class Readings:
    """What the boards' hardware holds at a tick.

    Attributes:
        motor_count: 16-bit counters that wrap, shape (n,), uint16.
        motor_exact: the positions they count, unrounded [counts], shape (n,).
        link_count: absolute encoders, from zero on in each turn, shape (n,), int32.
        adc: shape (n, 2, OVERSAMPLES), uint16: motor current, then joint torque.
        bus_voltage: each board's own converter, counts of the fact `voltage.scale`, shape (n,), int32.
        temperature: of the motors [0.01 degC], shape (n,), int32.
        foot_force: at the corners of feet, counts of the fact `force.scale`, shape (n_feet, 4), int32.
    """

    motor_count: NDArray[np.uint16]
    motor_exact: Array
    link_count: NDArray[np.int32]
    adc: NDArray[np.uint16]
    bus_voltage: NDArray[np.int32]
    temperature: NDArray[np.int32]
    foot_force: NDArray[np.int32]


class Sensors:
    """The sensors of all joints and their drives, drawn from one seed.

    An ADC sample is round(centre + (gain x + offset + noise) / step), clipped to 12 bits. A board's gain and offset are
    drawn once; its calibration facts hold the nominal gain and the zero as a laboratory would have found it. The
    absolute encoder sits at the joint's link, or at the drive's input of a coupling, where boards have no torque
    sensor. A passive joint has the link's encoder alone.

    Attributes:
        feet: the sensors in the feet, None where the robot has none.
    """

    def __init__(
        self, robot: Robot, truth: PlantFile, kind: PlantKind, seed: int, noise_seed: int | None = None
    ) -> None:
        """Draw one set of boards from `seed`, and their noise from `noise_seed`, the same by default.

        An "ideal" plant has no gain error of its currents.
        """
        sensors, n = truth.sensors, robot.n_joints
        boards, _, _, feet, _ = np.random.default_rng(seed).spawn(5)
        _, noise, slow_noise, _, foot_noise = np.random.default_rng(seed if noise_seed is None else noise_seed).spawn(5)
        self.feet = FootSensors(sensors.force, len(robot.feet), feet, foot_noise, truth.tick) if sensors.force else None
        self._noise, self._slow_noise = noise, slow_noise
        self._tick_us = round(1e6 * truth.tick)
        self._transmission = Transmission(robot)
        self._ratio = self._transmission.ratio
        sharing = zip(robot.drives, self._transmission.shared, strict=True)
        self._channels = [_channels(drive, bool(shared), sensors.has_torque) for drive, shared in sharing]
        ranges = np.array([(joint.current_range, joint.torque_range) for joint in truth.joints])
        spreads = np.array((sensors.current_offset_spread, sensors.torque_offset_spread))
        calibrations = np.array((sensors.current_zero_calibration, sensors.torque_zero_calibration))
        step = 2.0 * ranges / (_TOP + 1)
        gain_spread = sensors.current_gain_spread if kind != "ideal" else 0.0
        gain = np.ones((n, 2))
        gain[:, 0] += boards.uniform(-gain_spread, gain_spread, n)
        self._offset = boards.uniform(-spreads, spreads, (n, 2))
        # A calibration knows the zero up to an error, in whole decimated counts.
        self._scale = step / OVERSAMPLES
        self._zero = np.rint((self._offset + calibrations * boards.standard_normal((n, 2))) / self._scale).astype(int)
        # All in converter steps, shaped to meet samples of shape (n, 2, OVERSAMPLES).
        self._gain = (gain / step)[:, :, None]
        self._centre = (_CENTRE + self._offset / step)[:, :, None]
        self._noise_rms = (np.array((sensors.current_noise, sensors.torque_noise)) / step)[:, :, None]
        self._samples = np.empty((n, 2, OVERSAMPLES))
        self._at_rest = np.empty((_DRAWN_TICKS, n, 2, OVERSAMPLES))  # centre and noise of the ticks to come
        self._voltage_step = _voltage_step(truth.power.supply)
        self._slow_at_rest = np.empty((_DRAWN_TICKS, 2, n))  # noise of bus voltage and temperature, counts
        rms = (sensors.bus_voltage_noise / self._voltage_step, sensors.temperature_noise / _TEMPERATURE_STEP)
        self._slow_rms = np.array(rms)[:, None]
        self._used = _DRAWN_TICKS
        self._motor_counts, self._link_counts = sensors.motor_encoder_counts, sensors.link_encoder_counts
        self._motor_phase = boards.uniform(0.0, 65536.0, n)
        self._link_zero = boards.integers(-self._link_counts // 2, self._link_counts // 2, n)

    @property
    def current_offset(self) -> Array:
        """What a board's calibrated current reads at no current [A], shape (n,)."""
        return (self._offset - self._zero * self._scale)[:, 0]

    @property
    def current_gain(self) -> Array:
        """Current that a board reads over the true one, shape (n,)."""
        return self._gain[:, 0, 0] * self._scale[:, 0] * OVERSAMPLES

    def read(self, motion: Motion) -> Readings:
        """Convert one tick's motion; each call has noise of its own."""
        if self._used == _DRAWN_TICKS:
            self._draw()
        slow = self._slow_at_rest[self._used]
        slow[0] += motion.bus_voltage / self._voltage_step
        slow[1] += motion.temperature * (1.0 / _TEMPERATURE_STEP)
        bus_voltage, temperature = np.rint(slow, slow).astype(np.int32)
        driven = self._transmission.at_drives(motion.motor_position)
        absolute = motion.link_position
        if self._transmission.coupled:
            absolute = np.where(self._transmission.shared, driven, absolute)
        motor_exact = driven * self._ratio * (self._motor_counts / _TURN) + self._motor_phase
        readings = Readings(
            motor_count=(np.floor(motor_exact).astype(np.int64) & 0xFFFF).astype(np.uint16),
            motor_exact=motor_exact,
            link_count=self._count_link(absolute),
            adc=self._convert(motion),
            bus_voltage=bus_voltage,
            temperature=temperature,
            foot_force=_NO_FEET if self.feet is None else self.feet.read(motion.foot_force),
        )
        self._used += 1
        return readings

    def facts(self, joint: int) -> dict[str, int]:
        """Facts of a joint's board: raw values of the registers that only its hardware and calibration know."""
        return {
            "board.channels": self._channels[joint],
            "board.tick_period": self._tick_us,
            "adc.oversamples": OVERSAMPLES,
            "adc.window": self._tick_us,
            "current.scale": round(1e9 * self._scale[joint, 0]),
            "current.zero": int(self._zero[joint, 0]),
            "torque.scale": round(1e6 * self._scale[joint, 1]),
            "torque.zero": int(self._zero[joint, 1]),
            "encoder.motor_counts": self._motor_counts,
            "encoder.link_counts": self._link_counts,
            "encoder.link_zero": int(self._link_zero[joint]),
            "encoder.capture_clock": CAPTURE_CLOCK,
            "drive.ratio": round(1e3 * self._ratio[joint]),
            "voltage.scale": round(1e6 * self._voltage_step),
            "temperature.scale": round(1e6 * _TEMPERATURE_STEP),
            "temperature.zero": round(_ABSOLUTE_ZERO / _TEMPERATURE_STEP),
        }

    def _count_link(self, position: Array) -> NDArray[np.int32]:
        counts = np.floor(position * (self._link_counts / _TURN)).astype(np.int64) + self._link_zero
        return (counts % self._link_counts).astype(np.int32)

    def _convert(self, motion: Motion) -> NDArray[np.uint16]:
        samples = self._samples
        samples[:, 0] = motion.current.T
        samples[:, 1] = motion.torque.T
        samples *= self._gain
        samples += self._at_rest[self._used]
        np.rint(samples, samples)
        np.maximum(samples, 0, out=samples)
        np.minimum(samples, _TOP, out=samples)
        return samples.astype(np.uint16)

    def _draw(self) -> None:
        self._noise.standard_normal(out=self._at_rest)
        self._at_rest *= self._noise_rms
        self._at_rest += self._centre
        self._slow_noise.standard_normal(out=self._slow_at_rest)
        self._slow_at_rest *= self._slow_rms
        self._used = 0


def _channels(drive: Drive, shared: bool, has_torque: bool) -> int:
    """Mask of what the board of a joint's drive measures."""
    if drive.kind == "none":
        return _mask("link_position", "bus_voltage")
    # At a coupling's input nothing tells where a link is, nor what torque it carries.
    missing = ["link_position"] * shared + ["joint_torque"] * (shared or not has_torque)
    return JOINT_BOARD_CHANNELS & ~_mask(*missing)


def _mask(*channels: str) -> int:
    return sum(1 << CHANNEL_BY_NAME[name].bit for name in channels)


def _voltage_step(supply: float) -> float:
    """Volts of one count: the fewest whole millivolts with which a 16-bit count reaches a quarter beyond `supply`."""
    return 1e-3 * math.ceil(1.25 * supply / 1e-3 / _TOP_COUNT)
