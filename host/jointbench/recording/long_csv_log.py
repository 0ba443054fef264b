"""Logs in CSV with one value a line, or one joint a line: what each line is of stands in columns of names.

t,signal,value          or    t,joint,position,effort
0.00,q1,0.1                   0.00,elbow,0.1,2.5
0.00,q2,0.2                   0.00,wrist,0.2,0.3

Lines of one time become one row. Where each signal has times of its own, as on a bus, the others are interpolated
linearly onto those of the first one that a mapping names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import number
from jointbench.recording.log_table import FEWEST, missing_column
from jointbench.recording.mapping import LongLayout

_MOST_SIGNALS = 512
"""Names up to which a column of words tells signals rather than remarks."""

_CHANGING = 0.5
"""Share of the lines whose name is not that of the line before: a column of modes changes seldom."""

_TOGETHER = 0.9
"""Share of times that have all signals from which on these were sampled together."""

_GAP = 5.0
"""Times the usual step between values of a signal, from which on nothing is interpolated between them."""

_KEYS = frozenset(("joint", "axis", "motor", "name", "signal", "channel", "topic", "id", "key", "variable", "field"))
"""Words that name a column of names; one of these may hold numbers, too."""

_TIMES = frozenset(("t", "time", "stamp", "timestamp", "timestamps", "seconds", "secs"))


def find_layout(names: Sequence[str], rows: Sequence[Sequence[str]]) -> LongLayout | None:
    """Find out whether a table has one value a line; None where it has one sample a line, as most do.

    Args:
        names: of the columns.
        rows: their cells.
    """
    columns = list(zip(*rows, strict=True))
    times = [k for k, name in enumerate(names) if _words(name) & _TIMES and _all_numbers(columns[k])]
    if not times:
        return None
    time = np.array([number(cell) for cell in columns[times[0]]])
    keys = [k for k in range(len(names)) if k not in times and _is_key(names[k], columns[k], time)]
    values = [k for k in range(len(names)) if k not in (*times, *keys) and _some_numbers(columns[k])]
    if not keys or not values:
        return None
    layout = LongLayout(names[times[0]], tuple(names[k] for k in keys))
    pivoted = pivot(names, rows, layout, "the log")
    complete = np.isfinite(pivoted.values).all(axis=1).mean()
    return layout if complete > _TOGETHER else LongLayout(layout.time, layout.keys, interpolate=True)


def _is_key(name: str, cells: Sequence[str], time: Array) -> bool:
    """Return whether a column tells what the values beside it are of."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell] = counts.get(cell, 0) + 1
    if not 2 <= len(counts) <= _MOST_SIGNALS or min(counts.values()) < FEWEST:
        return False
    numbers = _all_numbers(cells)
    if numbers and not (_words(name) & _KEYS and all(cell.strip().isdigit() for cell in counts)):
        return False
    changes = [k + 1 for k, (before, after) in enumerate(pairwise(cells)) if before != after]
    one_after_the_other = all(time[k] < time[k - 1] for k in changes)  # all of a signal, then all of the next one
    return len(changes) > _CHANGING * len(cells) or one_after_the_other


@dataclass(frozen=True, eq=False)
class Pivoted:
    """Signals of a table with one value a line.

    Attributes:
        names: of the signals, after that of the time.
        values: one row a time, nan where a signal has none there, shape (rows, n).
        lines: of the file from which each row's time is, by index in the rows given.
    """

    names: tuple[str, ...]
    values: Array
    lines: NDArray[np.intp]


def pivot(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    layout: LongLayout,
    file: str,
    wanted: Sequence[str] | None = None,
) -> Pivoted:
    """Turn a table with one value a line into one with a column a signal.

    A signal is called by the cells of the key columns, with dots between them; and by the column of its values behind
    that, where there are several such columns.

    Args:
        names: of the columns.
        rows: their cells.
        layout: what they are.
        file: its name, for messages.
        wanted: signals to return, perhaps the time among them; None for all, the time first.

    Returns:
        The signals. Where the layout says so, they are interpolated onto the times of the first one wanted.

    Raises:
        FileError: a column is missing, or a signal that is wanted; or a time is no number.
    """
    for name in (layout.time, *layout.keys):
        if name not in names:
            raise missing_column(file, name, names)
    at, keys = names.index(layout.time), [names.index(name) for name in layout.keys]
    places = [k for k in range(len(names)) if k != at and k not in keys and _some_numbers([row[k] for row in rows])]
    signals: dict[str, dict[float, float]] = {}
    first_line: dict[float, int] = {}
    for line, row in enumerate(rows):
        time = _number(row[at])
        if np.isnan(time):
            raise FileError(f"{file}, data row {line}, column {layout.time!r}: {row[at]!r} is no time; mend that line")
        first_line.setdefault(time, line)
        of = ".".join(row[k].strip() for k in keys)
        for k in places:
            if not np.isnan(value := _number(row[k])):
                signals.setdefault(of if len(places) == 1 else f"{of}.{names[k].strip()}", {})[time] = value
    chosen = tuple(wanted) if wanted is not None else (layout.time, *signals)
    if absent := [name for name in chosen if name != layout.time and name not in signals]:
        raise missing_column(file, absent[0], [layout.time, *signals])
    of_values = [name for name in chosen if name != layout.time]
    if layout.interpolate and of_values:
        base = max(of_values, key=lambda name: len(signals[name])) if wanted is None else of_values[0]
        start, end = max(min(signals[name]) for name in of_values), min(max(signals[name]) for name in of_values)
        times = np.array([time for time in sorted(signals[base]) if start <= time <= end])
        columns = [times if name == layout.time else _interpolated(signals[name], times) for name in chosen]
    else:
        times = np.array(list(first_line))
        if np.any(np.diff(times) < 0.0) and len(of_values) > 1:
            times = np.sort(times)  # signals one after the other
        columns = [times if name == layout.time else _at(signals[name], times) for name in chosen]
    lines = np.array([first_line[time] for time in times.tolist()], dtype=np.intp)
    return Pivoted(chosen, np.column_stack(columns), lines)


def _at(signal: dict[float, float], times: Array) -> Array:
    """Values of a signal at these times, nan where it has none."""
    return np.array([signal.get(time, np.nan) for time in times.tolist()])


def _interpolated(signal: dict[float, float], times: Array) -> Array:
    """Values of a signal at other times, nan in its gaps."""
    own = np.array(sorted(signal))
    values = np.interp(times, own, [signal[time] for time in own.tolist()])
    behind = np.clip(np.searchsorted(own, times), 1, len(own) - 1)
    spacing = own[behind] - own[behind - 1]
    values[(spacing > _GAP * np.median(np.diff(own))) & ~np.isin(times, own)] = np.nan
    return values


def _number(cell: str) -> float:
    try:
        return number(cell)
    except ValueError:
        return np.nan


def _all_numbers(cells: Sequence[str]) -> bool:
    return not any(np.isnan(_number(cell)) for cell in cells)


def _some_numbers(cells: Sequence[str]) -> bool:
    return any(not np.isnan(_number(cell)) for cell in cells)


def _words(name: str) -> set[str]:
    return set("".join(c if c.isalnum() else " " for c in name.lower()).split())
