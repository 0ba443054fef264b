"""How fast the host's integer twins are, in turns with the float filter that everybody has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import signal

from jointbench.arrays import Array
from jointbench.signals import OVERSAMPLING, Biquads, Cic, MtVelocity, TrackingObserver, boxcar, butterworth_sections

PEER = "scipy sosfilt, float64"
_RATE_HZ, _CUTOFF_HZ, _ORDER = 1000.0, 100.0, 4


@dataclass(frozen=True)
class Speed:
    """Decimated samples, or ticks, a second in each of several rounds, shape (n_rounds,)."""

    name: str
    rounds: Array

    @property
    def best(self) -> float:
        """The round least disturbed by whatever else the machine did."""
        return float(self.rounds.max())


def race(seed: int, n_samples: int = 500_000, rounds: int = 7) -> list[Speed]:
    """Speeds of all twins and of the peer, which does what two biquads do, on one core."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-32768, 32768, n_samples)
    floats = values.astype(np.float64)
    samples = rng.integers(0, 4096, (n_samples, OVERSAMPLING)).astype(np.uint16)
    counters = np.cumsum(rng.integers(-30, 60, n_samples)) % 2**16
    edges = np.arange(n_samples) * 125_000 % 2**32
    sections = butterworth_sections(_ORDER, _CUTOFF_HZ, _RATE_HZ)
    sos = signal.butter(_ORDER, _CUTOFF_HZ, fs=_RATE_HZ, output="sos")
    runs: list[tuple[str, Callable[[], object]]] = [
        ("two biquads", lambda: Biquads(sections).run(values)),
        (PEER, lambda: signal.sosfilt(sos, floats)),
        ("boxcar", lambda: boxcar(samples)),
        ("CIC 2", lambda: Cic().run(samples)),
        ("tracking observer", lambda: TrackingObserver(128, 512).run(counters)),
        ("M/T counting", lambda: MtVelocity(125_000).run(counters, edges)),
    ]
    seconds = np.empty((rounds, len(runs)))
    for _, run in runs:  # the compiler does its work here, not below
        run()
    for each in seconds:
        for index, (_, run) in enumerate(runs):
            began = time.perf_counter()
            run()
            each[index] = time.perf_counter() - began
    return [Speed(name, n_samples / taken) for (name, _), taken in zip(runs, seconds.T, strict=True)]
