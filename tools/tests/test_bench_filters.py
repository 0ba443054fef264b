"""What `./run bench filters` is made of: errors in decibels against SciPy, checks, tables."""

import numpy as np
import pytest

from tools.bench import filters as accuracy
from tools.bench.filters import (
    CUTOFFS_HZ,
    FILTERS,
    PEER,
    PLAIN,
    Accuracy,
    Exactness,
    accuracies,
    accuracy_table,
    butterworth_accuracy,
    decibel,
    make_checks,
    race,
    speed_table,
)

LIMIT_DB = -80.0  # what is promised of every filter
SEED = 4


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("cutoff_hz", CUTOFFS_HZ)
def test_designed_filters_are_as_designed(order: int, cutoff_hz: float) -> None:
    found = butterworth_accuracy(order, cutoff_hz, np.random.default_rng(SEED), 20_000)
    assert decibel(found.peak) < LIMIT_DB, f"seed {SEED}"
    assert found.rms < found.peak


def test_decimators_and_velocities_are_as_designed() -> None:
    found = {each.name: each for each in accuracies(SEED, 5_000)}
    assert found["boxcar"].peak == 0.0
    others = [name for name in found if name != "boxcar"]
    assert len(others) == 1 + 2 + 3 + 1
    for name in others:
        assert found[name].peak > 0.0, name
        assert decibel(found[name].peak) < LIMIT_DB, name


def test_coefficients_of_half_the_bits_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge can say no: Q14 for Q27, as little as the coefficients' upper halves."""
    whole = accuracy.butterworth_sections

    def coarse(*design):
        return tuple(tuple(c >> 13 << 13 for c in section) for section in whole(*design))

    monkeypatch.setattr(accuracy, "butterworth_sections", coarse)
    found = butterworth_accuracy(2, 10.0, np.random.default_rng(SEED), 20_000)
    assert decibel(found.peak) > -40.0


def test_checks_say_which_filter_and_where() -> None:
    million, none = np.full(len(FILTERS), 1_000_000), np.zeros(len(FILTERS), np.int64)
    whole, plain = Exactness("unix, viper", million, none), Exactness(PLAIN, million // 100, none)
    good = [
        Accuracy("boxcar", None, 0.0, 0.0),
        Accuracy("low-pass", 5.0, 1e-5, 1e-6),
        Accuracy("low-pass", 9.0, 2e-5, 1e-6),
    ]
    checks = make_checks([plain, whole], good)
    assert all(check.ok for check in checks)
    assert len(checks) == 1 + 2 + 2
    assert checks[-1].value == pytest.approx(20.0 * np.log10(2e-5))
    one = np.eye(len(FILTERS), dtype=np.int64)[3]
    few, one_off = Exactness("qemu, viper", million - one, none), Exactness("qemu, compiled", million, one)
    too_far = Accuracy("low-pass", 5.0, 1.1e-4, 1e-6)
    failed = [check.name for check in make_checks([whole, few, one_off], [too_far]) if not check.ok]
    assert failed == [
        "qemu, viper: samples of each filter",
        "qemu, compiled: samples that differ",
        "low-pass: largest error",
    ]


def test_tables_hold_every_filter() -> None:
    text = accuracy_table([Accuracy("boxcar", None, 0.0, 0.0), Accuracy("low-pass", 5.0, 1e-5, 1e-6)])
    assert "none" in text
    assert "-100.0" in text
    speeds = race(SEED, n_samples=2_000, rounds=1)
    assert all(speed.best > 0.0 for speed in speeds)
    assert speed_table(speeds).count("\n") == len(speeds) + 1
    assert PEER in speed_table(speeds)
