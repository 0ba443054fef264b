"""What boards are given to filter: everything that a sensor can say, at the extremes as often as in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.pipe_layout import TICK_IN
from jointbench.signals import OVERSAMPLING, PASS_THROUGH, QuantisedBiquad, butterworth_sections
from jointwire import BY_NAME

_REGISTERS = 128  # the firmware's table
_TOP = 4095  # of a 12-bit converter
_RATE_HZ = 1000.0
_COEFFICIENTS = ("b0", "b1", "b2", "a1", "a2")
_CLOCKS_HZ = (1_000_000, 16_000_000, 125_000_000)


@dataclass(frozen=True)
class Case:
    """One board's registers, and what its sensors say.

    Attributes:
        registers: raw values by name, those that filters depend on.
        inputs: of each tick, shape (n,), dtype TICK_IN.
    """

    registers: dict[str, int]
    inputs: NDArray[Any]

    @property
    def sections(self) -> tuple[QuantisedBiquad, ...]:
        """The filter's coefficients."""
        return tuple(_section(self.registers, number) for number in (1, 2))

    @property
    def cells(self) -> NDArray[np.int32]:
        """All registers by id, the others at their defaults, shape (128,)."""
        cells = np.zeros(_REGISTERS, np.int32)
        for name, register in BY_NAME.items():
            cells[register.id] = self.registers.get(name, register.default)
        return cells

    @property
    def capture_clocks(self) -> int:
        """Counts of the capture clock in a tick."""
        return self.registers["encoder.capture_clock"] * self.registers["board.tick_period"] // 10**6


def random_cases(count: int, ticks: int, seed: int) -> list[Case]:
    """Cases that take turns in decimator and source of velocity, so that each gets the same share of the ticks.

    Args:
        count: how many.
        ticks: of each, at least 1.
        seed: of all that is random in them.
    """
    return [_case(number, ticks, np.random.default_rng([seed, number])) for number in range(count)]


def _case(number: int, ticks: int, rng: np.random.Generator) -> Case:
    registers = {
        "board.tick_period": 1000,
        "adc.cic_order": 1 + number % 2,
        "velocity.source": number // 2 % 2,
        "velocity.alpha": _one_of(rng, 1, 128, 256, int(rng.integers(1, 257))),
        "velocity.beta": _one_of(rng, 1, 512, 1023, int(rng.integers(1, 1024))),
        "encoder.capture_clock": _one_of(rng, *_CLOCKS_HZ, int(rng.integers(10_000, 400_000_000))),
    }
    for section, coefficients in enumerate(_sections(rng), start=1):
        names = (f"filter.{section}.{name}" for name in _COEFFICIENTS)
        registers |= dict(zip(names, coefficients, strict=True))
    inputs = np.zeros(ticks, TICK_IN)
    inputs["tick"] = 1 + np.arange(ticks)
    for signal in (0, 1):
        inputs["adc"][:, signal] = _converter(rng, ticks)
    position, edge = _motion(rng, ticks, registers["encoder.capture_clock"] // 1000)
    inputs["motor_count"] = position % 2**16
    inputs["motor_edge"] = edge % 2**32
    return Case(registers, inputs)


def _section(registers: dict[str, int], number: int) -> QuantisedBiquad:
    b0, b1, b2, a1, a2 = (registers[f"filter.{number}.{name}"] for name in _COEFFICIENTS)
    return b0, b1, b2, a1, a2


def _sections(rng: np.random.Generator) -> tuple[QuantisedBiquad, ...]:
    """Filters as they are designed, and as only a mistake would write them: within the registers' bounds, but wild."""
    kind = ("designed", "designed", "none", "wild", "bounds")[rng.integers(5)]
    if kind == "designed":
        cutoff_hz = float(np.exp(rng.uniform(np.log(1.0), np.log(450.0))))
        return butterworth_sections(_one_of(rng, 2, 4), cutoff_hz, _RATE_HZ)
    if kind == "none":
        return PASS_THROUGH, PASS_THROUGH
    ranges = [(BY_NAME[f"filter.1.{name}"].minimum, BY_NAME[f"filter.1.{name}"].maximum) for name in _COEFFICIENTS]

    def one(low: int, high: int) -> int:
        return _one_of(rng, low, high) if kind == "bounds" else int(rng.integers(low, high, endpoint=True))

    return tuple(cast(QuantisedBiquad, tuple(one(*each) for each in ranges)) for _ in range(2))


def _converter(rng: np.random.Generator, ticks: int) -> NDArray[np.int64]:
    """ADC samples: noise over the whole range, a swing with noise on it, or rails, in stretches."""
    whole = rng.integers(0, _TOP, (ticks, OVERSAMPLING), endpoint=True)
    time = np.arange(ticks * OVERSAMPLING).reshape(ticks, OVERSAMPLING) / (OVERSAMPLING * _RATE_HZ)
    swing = 2048 + rng.uniform(100, 2400) * np.sin(2 * np.pi * rng.uniform(0.1, 500.0) * time + rng.uniform(0, 6.3))
    swing += rng.normal(0, rng.uniform(0, 40), swing.shape)
    rails = _TOP * rng.integers(0, 2, (ticks, 1)) * np.ones(OVERSAMPLING, np.int64)
    kinds = np.stack([whole, np.clip(np.rint(swing), 0, _TOP).astype(np.int64), rails])
    return kinds[_stretches(rng, ticks, 3), np.arange(ticks)]


def _motion(rng: np.random.Generator, ticks: int, clocks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts, and when the newest of them came: swings, rests, jumps of all sizes; edge times true or of any value."""
    time = np.arange(ticks)
    swing = rng.uniform(10, 30000) * np.sin(2 * np.pi * rng.uniform(1e-4, 5e-2) * time)
    jumps = np.cumsum(rng.choice([-32768, 32767, 0, 0, 1, -1, int(rng.integers(-32768, 32768))], ticks))
    creep = np.cumsum(rng.random(ticks) < rng.uniform(0.0, 0.1))
    kinds = np.stack([np.floor(swing).astype(np.int64), jumps, creep, np.zeros(ticks, np.int64)])
    moves = np.diff(kinds, axis=1, prepend=0)[_stretches(rng, ticks, 4), time]
    position = np.cumsum(moves)
    edge = (time + rng.random(ticks)) * clocks
    newest = np.maximum.accumulate(np.where(moves != 0, edge, 0.0)).astype(np.int64) + int(rng.integers(2**32))
    anything = rng.random(ticks) < 0.02
    return position, np.where(anything, rng.integers(0, 2**32, ticks), newest)


def _stretches(rng: np.random.Generator, ticks: int, kinds: int) -> NDArray[np.int64]:
    """Which kind each tick has, some hundred ticks at a time."""
    lengths = rng.integers(1, 700, ticks // 300 + 2)
    return np.resize(np.repeat(rng.integers(0, kinds, len(lengths)), lengths), ticks)


def _one_of(rng: np.random.Generator, *values: int) -> int:
    return values[rng.integers(len(values))]
