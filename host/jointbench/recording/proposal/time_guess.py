"""Which column tells the time, in which unit, and how evenly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import Array
from jointbench.recording.mapping import TIME_UNITS, TO_FILL_IN
from jointbench.recording.proposal.column_words import ColumnName
from jointbench.recording.proposal.csv_columns import CsvColumns
from jointbench.recording.proposal.proposal import Entry

_USUAL_HZ = (10.0, 10_000.0)
"""Sample rates of robots' logs; just below three decades apart, so that one unit at most is possible."""

_NEAR = 1.25
"""Factor up to which a sample period by motion is that of a column of times: logs lose and double rows."""

_EVEN = 0.1
"""Deviation of a step from a sample period, as a share of it, up to which times are even, as `import` has it."""


@dataclass(frozen=True, eq=False)
class TimeGuess:
    """When the rows were sampled.

    Attributes:
        entries: of the mapping.
        sample_period: [s], or None where nothing tells.
        of_time: name of the column, or None.
    """

    entries: tuple[Entry, ...]
    sample_period: float | None
    column: str | None


def guess_time(
    tables: Sequence[CsvColumns], others: Sequence[Sequence[ColumnName]], period_by_motion: float | None
) -> TimeGuess:
    """Find the time.

    Args:
        tables: the files.
        others: of each file, the columns that are not one for each joint.
        period_by_motion: sample period that logged velocities and positions agree on [s], None where unknown.
    """
    for table, columns in zip(tables, others, strict=True):
        for named in columns:
            column = replace(named, quantity="time", unit="s") if named.name in table.moments else named
            values = table.values[:, table.names.index(column.name)]
            if column.quantity == "time" and bool(np.all(np.diff(values) >= 0.0)) and np.ptp(values) > 0.0:
                return _of_column(table, column, values, period_by_motion)
    if period_by_motion is None:
        why = "no column tells the time, nor do logged velocities; write how many rows a second the log has"
        return TimeGuess((Entry("", "sample_rate_Hz", TO_FILL_IN, why, "to fill in"),), None, None)
    return _of_motion("no column tells the time", period_by_motion, None)


def _of_motion(seen: str, period: float, column: str | None) -> TimeGuess:
    """The sample rate that positions and logged velocities agree on."""
    rate = float(f"{1.0 / period:.3g}")
    why = f"{seen}; the positions change as the logged velocities say at {1.0 / period:.4g} rows a second"
    return TimeGuess((Entry("", "sample_rate_Hz", rate, why, "guessed"),), 1.0 / rate, column)


def _of_column(table: CsvColumns, column: ColumnName, values: Array, by_motion: float | None) -> TimeGuess:
    steps = np.diff(values)
    repeats = int(np.sum(steps == 0.0))
    if repeats:
        return _of_mean_step(column, float(np.mean(steps)), repeats, by_motion)
    step = float(np.median(steps))
    counts = bool(np.all(steps == 1.0))
    if counts and by_motion is not None and not _agreeing(step, by_motion):
        return _of_motion(f"{column.name} only counts rows", by_motion, column.name)
    entries: list[Entry] = [] if table.label is None else [Entry("time", "file", table.label)]
    seen = f"its values rise by {step:.6g} from row to row"
    unit, why, sure = _unit(column, step, by_motion)
    entries.append(Entry("time", "column", column.name, seen))
    state = "to fill in" if unit == TO_FILL_IN else "read" if sure else "guessed"
    entries.append(Entry("time", "unit", unit, why, state))
    periods = np.maximum(np.round(steps / step), 1.0)
    worst = float(np.max(np.abs(steps - periods * step))) / step
    if worst > _EVEN:
        why = f"steps differ from the usual one by up to {worst:.0%} of it; values are interpolated onto even times"
        entries.append(Entry("time", "resample", True, why))
    elif np.any(periods > 1.0):
        missing = int(np.sum(periods - 1.0))
        entries.append(Entry("", "allow_gaps", True, f"{missing} rows are missing; their places are marked invalid"))
    return TimeGuess(tuple(entries), None if unit == TO_FILL_IN else TIME_UNITS[unit] * step, column.name)


def _of_mean_step(column: ColumnName, step: float, repeats: int, by_motion: float | None) -> TimeGuess:
    """Times that repeat are of no use one by one; their mean step may be."""
    unit, why, _ = _unit(column, step, by_motion)
    seen = f"{repeats} times of {column.name} repeat the one before, so rows are taken for evenly spaced"
    if unit == TO_FILL_IN:
        return TimeGuess((Entry("", "sample_rate_Hz", TO_FILL_IN, f"{seen}; {why}", "to fill in"),), None, None)
    rate = float(f"{1.0 / (TIME_UNITS[unit] * step):.6g}")
    why = f"{seen} by the mean step, in {unit}: {why}"
    return TimeGuess((Entry("", "sample_rate_Hz", rate, why, "guessed"),), 1.0 / rate, column.name)


def _unit(column: ColumnName, step: float, by_motion: float | None) -> tuple[str, str, bool]:
    """Unit of a time column, why, and whether that is sure."""
    agree = ""
    if by_motion is not None:
        near = _agreeing(step, by_motion)
        if near:
            return near, f"the positions change as the logged velocities say at {1e3 * by_motion:.4g} ms a row", True
        agree = f"; the logged velocities would have {1e3 * by_motion:.4g} ms a row"
    if column.unit in TIME_UNITS:
        return str(column.unit), f"its name or type says so{agree}", not agree
    usual = [unit for unit, factor in TIME_UNITS.items() if _USUAL_HZ[0] <= 1.0 / (factor * step) < _USUAL_HZ[1]]
    if len(usual) != 1:
        return TO_FILL_IN, f"no unit makes a usual sample rate of steps of {step:.6g}; s, ms, us or ns{agree}", False
    rate = 1.0 / (TIME_UNITS[usual[0]] * step)
    count = "; if it only counts rows, write sample_rate_Hz in place of this table" if step == 1.0 else ""
    why = f"the only unit that makes a usual sample rate, {rate:.4g} Hz{count}{agree}"
    return usual[0], why, not count and not agree


def _agreeing(step: float, period: float) -> str | None:
    """The unit in which a step is a sample period [s], nearly."""
    near = min(TIME_UNITS, key=lambda unit: abs(math.log(TIME_UNITS[unit] * step / period)))
    return near if 1.0 / _NEAR < TIME_UNITS[near] * step / period < _NEAR else None
