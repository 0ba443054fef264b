"""Samples that a board took after their ticks: each is put where it was taken, and read off again at its tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.recording.decode import BoardRecord, LateSample
from jointbench.recording.tracks import Ticks, Track

_REACH = 2
"""Samples from a late one back to the nearest that it may be joined to; of a longer gap nothing is made up."""

_TOGETHER = 1 << 16
"""Ticks whose late samples are looked at together."""


def put_in_place(record: BoardRecord, tick_period_us: float) -> BoardRecord:
    """Return the record with values at the ticks of late samples, in ticks and channels.

    A late sample is one of the signal at t_k + d. The value at its tick t_k is read off the line from the sample before
    to this one. That is wrong by at most h d/2 times the signal's second derivative, with h from sample to sample:
    at 10 rad/s² and 1 kHz by 5 µrad. Taken for one of the tick it would be wrong by d times the velocity: at 1 rad/s by
    up to 1 mrad.

    Args:
        record: of a board, without its late samples.
        tick_period_us: from tick to tick.
    """
    if not record.late:
        return record
    ticks, _ = _at_their_ticks(Track(record.ticks, np.ones(len(record.ticks))), record.late, tick_period_us)
    known = frozenset(ticks.tolist())
    late = [sample for sample in record.late if sample.tick in known]
    channels: dict[str, Track] = {}
    for name, track in record.channels.items():
        own = [sample for sample in late if name in sample.values]
        at, values = _at_their_ticks(track, own, tick_period_us, name)
        channels[name] = replace(track, late=Track(Ticks.of(at, track.ticks.every), values)) if len(at) else track
    first, counts, steps = record.ticks.first, record.ticks.counts, record.ticks.steps
    every = np.concatenate([first, ticks]), np.concatenate([counts, np.ones_like(ticks)])
    return replace(record, ticks=Ticks(*every, np.concatenate([steps, np.ones_like(ticks)])), channels=channels)


def _at_their_ticks(
    track: Track, late: Sequence[LateSample], tick_period_us: float, name: str | None = None
) -> tuple[NDArray[np.int64], Array]:
    """Ticks of late samples that one before is near, and the values of a channel there; of none, ones."""
    ticks, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    if len(track.ticks) and late:
        by_tick = {sample.tick: sample for sample in late}  # a frame may come twice
        own = np.array(sorted(by_tick), dtype=np.int64)
        places = own + np.array([by_tick[int(tick)].late_us for tick in own]) / tick_period_us
        taken = np.array([1.0 if name is None else by_tick[int(tick)].values[name] for tick in own])
        for part in np.split(np.arange(len(own)), np.flatnonzero(np.diff(own // _TOGETHER)) + 1):
            at, found = _read_off(track, own[part], places[part], taken[part])
            ticks.append(at)
            values.append(found)
    return np.concatenate(ticks), np.concatenate(values)


def _read_off(track: Track, ticks: NDArray[np.int64], places: Array, taken: Array) -> tuple[NDArray[np.int64], Array]:
    reach = _REACH * track.ticks.every
    near, values = track.between(int(ticks[0]) - reach, int(ticks[-1]) + 1)
    late = ~np.isin(ticks, near)  # it may have come in time, too
    ticks, places, taken = ticks[late], places[late], taken[late]
    nodes, order = np.unique(np.concatenate([near, places]), return_index=True)
    at_nodes = np.concatenate([values, taken])[order].astype(np.float64)
    before = np.searchsorted(nodes, ticks) - 1
    known = (before >= 0) & (ticks - nodes[before] <= reach)
    ticks, places, taken, before = ticks[known], places[known], taken[known], before[known]
    share = (ticks - nodes[before]) / (places - nodes[before])
    return ticks, at_nodes[before] + share * (taken - at_nodes[before])
