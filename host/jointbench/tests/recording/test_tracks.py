"""What boards sent is the same on the timeline however much of it is decoded and laid out together."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jointbench.memory_mapping import chunks
from jointbench.recording import decode, open_run, timeline
from jointbench.recording.board_record import Packed, Ticks, Track, TrackSpool
from jointbench.recording.samples import Samples
from jointbench.tests.recording.board_stream import motion, record

RNG = np.random.default_rng(0)


def late_blocks(n: int = 200) -> Ticks:
    """Blocks of up to nine ticks, some of every second tick, some empty, neighbours exchanged here and there."""
    counts, steps = RNG.integers(0, 10, n), RNG.integers(1, 3, n)
    first = 5000 + np.concatenate([[0], np.cumsum(counts * steps + RNG.integers(0, 3, n))[:-1]])
    order = np.arange(n)
    order[50:60] = order[50:60][::-1]
    return Ticks(first[order], counts[order], steps[order])


def test_ticks_between_are_those_of_all():
    ticks = late_blocks()
    every = ticks.all()
    assert len(ticks) == len(every)
    assert ticks.span == (every.min(), every.max())
    for low in RNG.integers(every.min() - 50, every.max() + 50, 50):
        for width in (0, 1, 30, 300):
            found, within, place = ticks.between(int(low), int(low) + width)
            np.testing.assert_array_equal(found, every[place])
            np.testing.assert_array_equal(found[within], every[(every >= low) & (every < low + width)])


def test_a_track_put_away_block_by_block_comes_back():
    ticks = late_blocks()
    values = RNG.integers(-1000, 1000, len(ticks)).astype(np.int32)
    spool, stop = TrackSpool(), np.cumsum(ticks.counts)
    for part in chunks(len(ticks.first), 7):
        some = Ticks(ticks.first[part], ticks.counts[part], ticks.steps[part])
        spool.append(some, values[stop[part.start] - ticks.counts[part.start] : stop[part.stop - 1]])
    track = spool.track()
    assert isinstance(track, Track)
    np.testing.assert_array_equal(track.ticks.all(), ticks.all())
    np.testing.assert_array_equal(track.values, values)


def test_samples_do_not_depend_on_how_much_is_worked_on_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    late = motion(2)
    late[3] = dataclasses.replace(late[3], time_us=late[6].time_us)
    del late[7]
    path = record(tmp_path / "run", [motion(1), late], (1, 2))
    whole = open_run(path).samples
    monkeypatch.setattr(decode, "_TOGETHER", 3)
    monkeypatch.setattr(timeline, "chunks", lambda n: chunks(n, 37))
    parts = open_run(path).samples
    for field in dataclasses.fields(Samples):
        one, other = getattr(whole, field.name), getattr(parts, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
        else:
            assert one == other


def test_packed_items_are_a_sequence():
    packed = Packed(2, lambda a, b: (a, b))
    for k in range(5):
        packed.append(k, -k)
    assert list(packed) == [(k, -k) for k in range(5)]
    assert packed[-1] == (4, -4)
    assert packed[1:3] == [(1, -1), (2, -2)]
    with pytest.raises(IndexError):
        packed[5]
