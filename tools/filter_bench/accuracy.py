"""How far the board's whole numbers are from the filter that was meant: against SciPy in float64, in decibels.

The reference has the design's own coefficients, not those that the board rounds them to, so that both the coefficients'
and the signal's rounding count. 0 dB is full scale: 32768 of current and torque, 4096 counts per tick of velocity.
Signals keep within full scale behind each section; what does not is clipped, on a board as in its converter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal

from jointbench.arrays import Array
from jointbench.signals import (
    ADC_MIDSCALE,
    OVERSAMPLING,
    Biquads,
    Cic,
    MtVelocity,
    TrackingObserver,
    boxcar,
    butterworth_sections,
)

RATE_HZ = 1000.0
CUTOFFS_HZ = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 300.0, 400.0)
ORDERS = (2, 4)
_SAMPLES = 200_000
_FULL_SCALE = 32768.0
_FASTEST = 4096.0 * 256.0  # counts/tick, Q8
_STEP_SAMPLES = 2000
_CLOCKS = 125_000  # of a 125 MHz capture clock in a tick


@dataclass(frozen=True)
class Accuracy:
    """Error of one filter, the worst of several signals.

    Attributes:
        name: of the filter.
        cutoff_Hz: None where it has none to choose.
        peak, rms: relative to full scale.
    """

    name: str
    cutoff_Hz: float | None
    peak: float
    rms: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values; no error at all is no number of decibels."""
        levels = {name: decibel(value) if value else None for name, value in (("peak", self.peak), ("rms", self.rms))}
        return {"filter": self.name, "cutoff_Hz": self.cutoff_Hz} | {f"{name}_dB": x for name, x in levels.items()}


def decibel(ratio: float) -> float:
    """Of amplitudes; the ratio is above 0."""
    return 20.0 * math.log10(ratio)


def accuracies(seed: int, n_samples: int = _SAMPLES) -> list[Accuracy]:
    """Errors of all filters.

    Args:
        seed: of the random signals.
        n_samples: of each signal.
    """
    rng = np.random.default_rng(seed)
    found = _decimators(rng, n_samples)
    found += [butterworth_accuracy(order, cutoff, rng, n_samples) for order in ORDERS for cutoff in CUTOFFS_HZ]
    return found + _velocities(rng, n_samples)


def butterworth_accuracy(order: int, cutoff_hz: float, rng: np.random.Generator, n_samples: int) -> Accuracy:
    """Error of the two sections, as designed for this cut-off, over noise, a sweep, steps and a slow swing."""
    sos = signal.butter(order, cutoff_hz, fs=RATE_HZ, output="sos")
    sections = butterworth_sections(order, cutoff_hz, RATE_HZ)
    errors: list[Array] = []
    for values in _signals(rng, n_samples):
        given = np.rint(values * _largest(sos, values)).astype(np.int64)
        errors.append(Biquads(sections).run(given) - signal.sosfilt(sos, given.astype(np.float64)))
    return _worst(f"Butterworth, order {order}", cutoff_hz, errors, _FULL_SCALE)


def _largest(sos: Array, values: Array) -> float:
    """Factor that keeps the signal and what is behind each section, at a gain of one, within full scale."""
    nodes, peak = values, float(np.abs(values).max())
    for b, a in zip(sos[:, :3], sos[:, 3:], strict=True):
        nodes = signal.lfilter(b * (a.sum() / b.sum()), a, nodes)
        peak = max(peak, float(np.abs(nodes).max()))
    return (_FULL_SCALE - 2.0) / peak


def _signals(rng: np.random.Generator, n: int) -> list[Array]:
    time = np.arange(n) / RATE_HZ
    return [
        rng.uniform(-1.0, 1.0, n),
        rng.standard_normal(n),
        np.asarray(signal.chirp(time, 0.5, time[-1], 0.499 * RATE_HZ)),
        np.repeat(rng.uniform(-1.0, 1.0, n // _STEP_SAMPLES + 1), _STEP_SAMPLES)[:n],
        np.sin(2.0 * np.pi * 1.3 * time),
    ]


def _decimators(rng: np.random.Generator, n: int) -> list[Accuracy]:
    samples = rng.integers(0, 2 * ADC_MIDSCALE, (n, OVERSAMPLING))
    line = samples.ravel() - float(ADC_MIDSCALE)
    mean = signal.lfilter(np.ones(OVERSAMPLING), 1.0, line)
    triangle = signal.lfilter(np.ones(OVERSAMPLING) / OVERSAMPLING, 1.0, mean)
    # The triangle's newest sample has no weight: it ends one sample before the tick. The first two ticks fill it.
    errors = (
        boxcar(samples) - mean[OVERSAMPLING - 1 :: OVERSAMPLING],
        (Cic().run(samples) - triangle[OVERSAMPLING - 2 :: OVERSAMPLING])[2:],
    )
    names = ("boxcar", "CIC 2")
    return [_worst(name, None, [error], _FULL_SCALE) for name, error in zip(names, errors, strict=True)]


def _velocities(rng: np.random.Generator, n: int) -> list[Accuracy]:
    """Errors against the same gains in float64, and against true division, of the same counts."""
    time = np.arange(n)
    counts = np.floor(20_000.0 * np.sin(2.0 * np.pi * 0.002 * time) + np.cumsum(rng.uniform(-30.0, 30.0, n)))
    counts = counts.astype(np.int64) - int(counts[0])
    moves = np.diff(counts, prepend=0).astype(np.float64)
    found: list[Accuracy] = []
    for alpha, beta in ((128, 512), (32, 64), (255, 1023)):
        a, b = alpha / 256, beta / 4096
        exact = 256.0 * signal.lfilter([b], [1.0, a + b - 2.0, 1.0 - a], moves)
        error = TrackingObserver(alpha, beta).run(counts % 2**16) - exact
        found.append(_worst(f"tracking observer {alpha}, {beta}", None, [error], _FASTEST))
    edges = time * _CLOCKS + rng.integers(_CLOCKS // 2, _CLOCKS, n)
    board = MtVelocity(_CLOCKS).run(counts % 2**16, edges % 2**32)
    exact = 256.0 * moves[1:] * _CLOCKS / np.diff(edges)
    moved = (moves[1:] != 0.0) & (moves[:-1] != 0.0)
    return [*found, _worst("M/T counting", None, [(board[1:] - exact)[moved]], _FASTEST)]


def _worst(name: str, cutoff_hz: float | None, errors: list[Array], full_scale: float) -> Accuracy:
    peak = max(float(np.abs(error).max()) for error in errors)
    rms = max(float(np.sqrt(np.mean(error**2))) for error in errors)
    return Accuracy(name, cutoff_hz, peak / full_scale, rms / full_scale)
