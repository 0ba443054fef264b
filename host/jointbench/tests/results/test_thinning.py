"""A thinned line keeps what an eye would have seen: peaks and gaps."""

import numpy as np

from jointbench.results.thinning import thin


def test_short_record_comes_back_as_it_is() -> None:
    time = np.arange(10.0)
    kept_time, kept = thin(time, time**2, bins=5)
    assert np.array_equal(kept_time, time)
    assert np.array_equal(kept, time**2)


def test_single_peaks_survive_in_their_place() -> None:
    time = np.arange(10_000) / 1000.0
    values = np.sin(time)
    values[4321], values[8765] = 50.0, -40.0
    kept_time, kept = thin(time, values, bins=100)
    assert kept.size <= 200
    assert np.all(np.diff(kept_time) > 0.0)
    assert kept_time[np.argmax(kept)] == 4.321
    assert kept_time[np.argmin(kept)] == 8.765


def test_gap_breaks_the_line() -> None:
    time = np.arange(10_000) / 1000.0
    values = np.sin(time)
    values[3000:5000] = np.nan
    kept_time, kept = thin(time, values, bins=100)
    inside = (kept_time >= 3.0) & (kept_time < 5.0)
    assert inside.any()
    assert np.isnan(kept[inside]).all()
    assert np.isfinite(kept[~inside]).all()
