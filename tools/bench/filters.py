"""`./run bench filters`: the boards' filters, bit for bit and against SciPy.

The board's whole numbers are compared with the filter that was meant, SciPy's in float64, in decibels.
The reference has the design's own coefficients, not those that the board rounds them to, so that both the coefficients'
and the signal's rounding count. 0 dB is full scale: 32768 of current and torque, 4096 counts per tick of velocity.
Signals keep within full scale behind each section; what does not is clipped, on a board as in its converter.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from hil_tests.virtual_bench.errors import QemuMissing
from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
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
from tools.bench.filter_twins import Case, host_outputs, on_qemu, on_unix, plain_outputs, random_cases

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
        """The record as plain values; no error at all is no number of decibels."""
        levels = {name: decibel(value) if value else None for name, value in (("peak", self.peak), ("rms", self.rms))}
        return {"filter": self.name, "cutoff_Hz": self.cutoff_Hz} | {f"{name}_dB": x for name, x in levels.items()}


def decibel(ratio: float) -> float:
    """Ratio of amplitudes in decibels; it is above 0."""
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


FILTERS = ("boxcar", "CIC 2", "biquad", "two biquads", "tracking observer", "M/T counting")
"""By the names that tables have."""

Run = Callable[[Sequence[Case]], Iterable[NDArray[Any]]]


@dataclass(frozen=True)
class Exactness:
    """Number of samples of each filter that were compared, and of those that were not equal.

    Attributes:
        where: what computed them beside the host.
        compared, different: by filter, in the order of FILTERS, shape (n_filters,).
    """

    where: str
    compared: NDArray[np.int64]
    different: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        counts = zip(FILTERS, self.compared.tolist(), self.different.tolist(), strict=True)
        return {name: {"samples": compared, "different": different} for name, compared, different in counts}


def compare(where: str, run: Run, cases: Sequence[Case], at_once: int = 50) -> Exactness:
    """Run cases elsewhere and on the host's twins.

    Args:
        where: name of what `run` runs them on.
        run: gives outputs of each case, dtype OUTPUTS.
        cases: as many as wanted; they run some at a time.
        at_once: how many.
    """
    compared, different = np.zeros((2, len(FILTERS)), np.int64)
    for start in range(0, len(cases), at_once):
        some = cases[start : start + at_once]
        for case, found in zip(some, run(some), strict=True):
            expected = host_outputs(case)
            for name in expected.dtype.names or ():
                index = _filter_of(name, case)
                compared[index] += len(expected)
                different[index] += int(np.sum(found[name] != expected[name]))
    return Exactness(where, compared, different)


def _filter_of(output: str, case: Case) -> int:
    if output == "velocity":
        return 4 + case.registers["velocity.source"]
    if output.endswith("_middle"):
        return 2
    return 3 if output.endswith("_filtered") else case.registers["adc.cic_order"] - 1


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


SAMPLES = 1_000_000
ERROR_DB = -80.0
# The velocity's two sources take turns, so that each has a quarter of what the sections of both signals have.
_TICKS, _CASES = 5_200, 400
_TICKS_PLAIN, _CASES_PLAIN = 1_500, 16
PLAIN = "plain Python"


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Exactness, accuracy and speed, one after the other.

    Raises:
        BenchError: no interpreter to compare with; under CI, no QEMU either.
    """
    exact = list(exactness(options.seed, console))
    console.say(exactness_table(exact))
    console.say("error against the design in float64 (scipy.signal)")
    errors = accuracies(options.seed)
    console.say(accuracy_table(errors))
    console.say("speed of the host's twins")
    speeds = race(options.seed)
    console.say(speed_table(speeds))
    checks = make_checks(exact, errors)
    fields: dict[str, Any] = {
        "exactness": {each.where: each.to_dict() for each in exact},
        "error": [each.to_dict() for each in errors],
        "speed": {speed.name: {"samples_per_s": speed.best, "rounds": speed.rounds} for speed in speeds},
    }
    return Result("bench filters", options.seed, checks, fields)


def exactness(seed: int, console: Console) -> Iterable[Exactness]:
    """On everything that is there: the same cases on all boards, and some in Python, which is too slow for as many."""
    console.say("some ticks of the firmware in plain Python, and on the host")
    plain = random_cases(_CASES_PLAIN, _TICKS_PLAIN, seed + 1)
    yield compare(PLAIN, lambda some: map(plain_outputs, some), plain)
    console.say(f"{_CASES * _TICKS} ticks on the 32-bit unix port, and on the emulated Cortex-M3")
    cases = random_cases(_CASES, _TICKS, seed)
    yield compare("unix, viper", on_unix, cases)
    try:
        yield compare("qemu, viper", on_qemu, cases)
    except QemuMissing as error:
        if os.environ.get("CI"):
            raise
        console.say(f"not on QEMU: {error}")


def make_checks(exact: Sequence[Exactness], errors: Sequence[Accuracy]) -> tuple[Check, ...]:
    """Checks against the limits."""
    boards = [each for each in exact if each.where != PLAIN]
    worst: dict[str, float] = {}
    for each in errors:
        worst[each.name] = max(each.peak, worst.get(each.name, 0.0))
    return (
        *(Check(f"{each.where}: samples of each filter", int(each.compared.min()), ">=", SAMPLES) for each in boards),
        *(Check(f"{each.where}: samples that differ", int(each.different.sum()), "==", 0) for each in exact),
        *(_error_check(f"{name}: largest error", peak) for name, peak in worst.items()),
    )


def _error_check(name: str, peak: float) -> Check:
    if peak == 0.0:  # less than any number of decibels
        return Check(name, peak, "==", 0.0, "of full scale")
    return Check(name, decibel(peak), "<=", ERROR_DB, "dB")


def exactness_table(exact: Sequence[Exactness]) -> str:
    """A line per filter: differing of compared samples, wherever it ran."""
    rows = [
        [name, *(f"{each.different[index]} of {each.compared[index]}" for each in exact)]
        for index, name in enumerate(FILTERS)
    ]
    return table(("samples that differ", *(each.where for each in exact)), rows)


def accuracy_table(errors: Sequence[Accuracy]) -> str:
    """A line per filter and cut-off."""
    rows = [
        [each.name, "" if each.cutoff_Hz is None else f"{each.cutoff_Hz:g}", _level(each.peak), _level(each.rms)]
        for each in errors
    ]
    return table(("error", "cut-off [Hz]", "peak [dB]", "rms [dB]"), rows)


def speed_table(speeds: Sequence[Speed]) -> str:
    """A line per twin, and how it compares with the peer."""
    peer = next(speed.best for speed in speeds if speed.name == PEER)
    rows = [[speed.name, f"{speed.best / 1e6:.1f}", f"{speed.best / peer:.2f}"] for speed in speeds]
    return table(("twin", "M samples/s", "times the peer"), rows)


def _level(ratio: float) -> str:
    return f"{decibel(ratio):.1f}" if ratio else "none"
