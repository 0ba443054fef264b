"""The common timeline of a run: samples of all boards in SI units, late ones read off at their ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, chunks, release_pages, scratch_array
from jointbench.bench import FOOT_CHANNELS, BoardClock, Facts
from jointbench.errors import RunError
from jointbench.model import Robot
from jointbench.recording.board_record import BoardRecord, LateSample, Ticks, Track, clocks_of
from jointbench.recording.samples import Samples
from jointbench.signals import BiquadCoefficients, BoardFilter
from jointwire import CHANNELS

_REACH = 2
"""Samples from a late one back to the nearest that it may be joined to; of a longer gap nothing is made up."""

_TOGETHER = 1 << 16
"""Ticks whose late samples are looked at together."""

RESIDUAL_LIMIT_US = 200.0  # a fifth of a tick: the error of a torque at 10 Hz by it is about 1 %
_WORD = 1 << 32
_CHANNELS = {channel.name: channel for channel in CHANNELS}
_SAME_TICK = 1e-6  # ticks; what a float makes of a day of microseconds
# A channel that one joint with a motor lacks is none; joints without a motor may lack them all but one position.
_OF_ALL = ("motor_position", "link_position", "motor_current", "joint_torque")
_OF_ANY = ("bus_voltage", "temperature")
_MEASURED = (
    "motor_position", "link_position", "motor_current", "motor_torque", "joint_torque", "bus_voltage", "temperature",
    "foot_force",
)  # fmt: skip


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


@dataclass(frozen=True)
class BoardFacts(Facts):
    """A board as run.toml knows it: its registers, raw, and its joint, or its foot."""

    joint: str
    on_foot: bool = False

    @property
    def filter(self) -> BoardFilter:
        """The board's filter of current and torque, with the coefficients that it computes with."""
        return BoardFilter(
            sections=tuple(self._section(number) for number in (1, 2)),
            cic_order=self.registers["adc.cic_order"],
            window=self.si("adc.window"),
            sample_period=self.si("board.tick_period"),
        )

    def _section(self, number: int) -> BiquadCoefficients:
        b0, b1, b2, a1, a2 = (self.si(f"filter.{number}.{name}") for name in ("b0", "b1", "b2", "a1", "a2"))
        return (b0, b1, b2), (1.0, a1, a2)

    def scaled(self, name: str, raw: Array) -> Array:
        """Counts of a sampled channel in its SI unit (an encoder's in radians of what it sits on)."""
        if name in ("motor_position", "link_position"):
            return raw * (2.0 * np.pi / self.si(f"encoder.{name.removesuffix('_position')}_counts"))
        channel = _CHANNELS[name]
        zero = self.registers[channel.zero] if channel.zero else 0
        return (raw - float(zero)) * self.si(channel.scale)


@dataclass(frozen=True)
class Timeline:
    """Samples of a run on its common timeline, with the clocks behind it.

    Attributes:
        samples: all joints on one timeline.
        clocks: of each joint's board, by joint; empty where all boards count the same ticks.
        starts: how much later than the row of trajectory tick 0 each joint's board began to play, by joint [samples].
        warnings: about the alignment.
    """

    samples: Samples
    clocks: Mapping[str, BoardClock]
    starts: Mapping[str, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Rows:
    """Rows of the timeline on one board's ticks: row r at `first` + r, or in between, by two clocks."""

    count: int
    first: int
    clocks: tuple[BoardClock, BoardClock] | None = None

    def take(self, track: Track, part: slice) -> Array:
        """A channel's value in some rows, NaN where there is none."""
        first, end = self.first + part.start, self.first + part.stop
        values = np.full(part.stop - part.start, np.nan)
        if not len(track.ticks):
            return values
        if self.clocks is not None:
            master, own = self.clocks
            if track.has_gaps:
                return self._nearest(track, values, first)
            due = np.arange(-first % track.ticks.every, len(values), track.ticks.every)
            values[due] = _interpolated(track, np.asarray(own.ticks_at(master.tick_host_us(first + due))))
            return values
        ticks, found = track.between(first, end)
        values[ticks - first] = found
        return values

    def _nearest(self, track: Track, values: Array, first: int) -> Array:
        """Put what was measured now and then into the rows that are nearest in time: between them nothing is known."""
        assert self.clocks is not None
        master, own = self.clocks
        ends = np.asarray(own.ticks_at(master.tick_host_us(np.array([first, first + len(values)]))))
        ticks, found = track.between(int(np.floor(ends[0])) - 1, int(np.ceil(ends[1])) + 1)
        rows = np.rint(np.asarray(master.ticks_at(own.tick_host_us(ticks)))).astype(np.int64) - first
        known = np.isfinite(found) & (rows >= 0) & (rows < len(values))
        values[rows[known]] = found[known]
        return values

    def sampled(self, ticks: Ticks, part: slice) -> NDArray[np.bool_]:
        """Return in which of some rows the board sampled."""
        return np.isfinite(self.take(Track(ticks, np.broadcast_to(1.0, len(ticks))), part))


def assemble(robot: Robot, boards: Sequence[tuple[BoardFacts, BoardRecord]], common_ticks: bool) -> Timeline:
    """Samples of a run from its boards' records.

    Args:
        robot: its couplings turn motor angles into joint positions and motor torques into joint torques.
        boards: facts and record of each joint's board, in joint order, and of each foot's.
        common_ticks: whether all boards count the same ticks; else their PONGs and SYNC pulses align them.

    Raises:
        RunError: no samples, boards with different sampling periods, or a board whose clock is not known.
    """
    boards = sorted(boards, key=lambda board: board[0].on_foot)
    facts = [fact for fact, _ in boards]
    period = facts[0].si("board.tick_period")
    for fact in facts:
        if fact.si("board.tick_period") != period:
            raise RunError(f"{fact.joint} samples each {fact.si('board.tick_period')} s, {facts[0].joint} {period} s")
    boards = [(fact, put_in_place(record, 1e6 * period)) for fact, record in boards]
    records = [record for _, record in boards]
    if not any(len(record.ticks) for record in records):
        raise RunError("the run holds no samples; nothing was streamed before it ended")
    by_joint = {} if common_ticks else clocks_of({fact.joint: record for fact, record in boards}, round(period * 1e6))
    clocks = list(by_joint.values())
    rows = _rows_by_clock(records, clocks) if clocks else _rows_by_tick(records)
    count = rows[0].count
    n_joints = sum(not fact.on_foot for fact in facts)
    joints, feet = boards[:n_joints], boards[n_joints:]
    at_joints, at_feet = rows[:n_joints], rows[n_joints:]
    names = _streamed(joints, feet)
    columns: dict[str, NDArray[Any]] = {
        "time": scratch_array((count,), np.float64),
        "play_tick": scratch_array((count,), np.int64),
        "valid": scratch_array((count, n_joints), np.bool_),
    }
    play = _playing(boards, clocks, rows)
    for part in chunks(count):
        row = np.arange(part.start, part.stop)
        sampled = [own.sampled(record.ticks, part) for own, (_, record) in zip(at_joints, joints, strict=True)]
        scaled = _scaled(joints, at_joints, names, part)
        values, valid = _to_si(robot, facts[:n_joints], scaled, np.stack(sampled, axis=1))
        if feet:
            values["foot_force"] = _forces(feet, at_feet, part)
        played = np.where((row >= play.start) & (row < play.stop), row - play.origin, -1)
        values |= {"time": row * period, "play_tick": played}
        for name, each in (values | {"valid": valid}).items():
            if name not in columns:
                columns[name] = scratch_array((count, *each.shape[1:]), np.float64)
            columns[name][part] = each
            release_pages(columns[name])
    samples = Samples(
        joint_names=tuple(fact.joint for fact, _ in joints),
        foot_names=tuple(fact.joint for fact, _ in feet),
        board_filters=tuple(fact.filter for fact, _ in joints),
        sample_period=period,
        **{name: columns.get(name) for name in _MEASURED},
        **{name: columns[name] for name in ("time", "play_tick", "valid")},
    )
    return Timeline(samples, by_joint, play.starts, (*_clock_warnings(by_joint), *_start_warnings(play.starts)))


def doubtful_clocks(clocks: Mapping[str, BoardClock]) -> dict[str, BoardClock]:
    """Clocks that are known too badly to align their boards; never that of a single board, whose ticks are the rows."""
    if len(clocks) < 2:
        return {}
    return {joint: clock for joint, clock in clocks.items() if clock.residual_us > RESIDUAL_LIMIT_US}


def _clock_warnings(clocks: Mapping[str, BoardClock]) -> list[str]:
    return [
        f"{joint}: its clock leaves {clock.residual_us:.0f} µs of doubt on the common timeline, more than "
        f"{RESIDUAL_LIMIT_US:.0f}; use a SYNC wire, or a link with less delay"
        for joint, clock in doubtful_clocks(clocks).items()
    ]


def _start_warnings(starts: Mapping[str, float]) -> list[str]:
    apart = {joint: ticks for joint, ticks in starts.items() if abs(ticks) >= 1.0}
    return [f"{joint} started {ticks:+.4g} samples from the others" for joint, ticks in apart.items()]


def _rows_by_tick(records: Sequence[BoardRecord]) -> list[_Rows]:
    """Rows of boards that count the same ticks; those of one that wrapped before it was heard are whole turns off."""
    heard = [record.ticks for record in records if len(record.ticks)]
    turns = [
        round((int(record.ticks.first[0]) - int(heard[0].first[0])) / _WORD) * _WORD if len(record.ticks) else 0
        for record in records
    ]
    spans = [
        (record.ticks.span[0] - turn, record.ticks.span[1] - turn)
        for record, turn in zip(records, turns, strict=True)
        if len(record.ticks)
    ]
    start, end = min(first for first, _ in spans), max(last for _, last in spans)
    return [_Rows(end - start + 1, start + turn) for turn in turns]


def _rows_by_clock(records: Sequence[BoardRecord], clocks: Sequence[BoardClock]) -> list[_Rows]:
    """Rows at the ticks of the first board, over all the time that any board sampled."""
    spans = [
        clocks[0].ticks_at(clock.tick_host_us(np.array(record.ticks.span)))
        for clock, record in zip(clocks, records, strict=True)
        if len(record.ticks)
    ]
    start = int(np.ceil(min(float(first) for first, _ in spans) - _SAME_TICK))
    count = int(np.floor(max(float(last) for _, last in spans) + _SAME_TICK)) - start + 1
    return [_Rows(count, start), *(_Rows(count, start, (clocks[0], clock)) for clock in clocks[1:])]


def _interpolated(track: Track, at: Array) -> Array:
    """Values at fractional ticks; NaN where a neighbour is missing."""
    values = np.full(len(at), np.nan)
    if not len(at):
        return values
    every = track.ticks.every
    ticks, found = track.between(int(np.floor(at.min())) - 3 * every, int(np.ceil(at.max())) + 3 * every + 1)
    if not len(ticks):
        return values
    grid = ticks // every
    first = int(grid.min()) - 2  # two missing ones at either end, so that each place has four neighbours
    known = np.full(int(grid.max()) - first + 3, np.nan)
    known[grid - first] = found
    place = at / every - first
    wanted = (place >= 1.0) & (place < len(known) - 2)
    left = np.floor(place[wanted]).astype(np.int64)
    f = place[wanted] - left
    before, here, there, after = (known[left + step] for step in (-1, 0, 1, 2))
    line = np.where(f == 0.0, here, (1.0 - f) * here + f * there)
    cubic = (
        before * (f * (f - 1.0) * (f - 2.0) / -6.0)
        + here * ((f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0)
        + there * ((f + 1.0) * f * (f - 2.0) / -2.0)
        + after * ((f + 1.0) * f * (f - 1.0) / 6.0)
    )
    values[wanted] = np.where(np.isfinite(cubic), cubic, line)
    return values


class _Playing(NamedTuple):
    """Rows from `start` up to but without `stop` were played; trajectory tick 0 lies at the row `origin`.

    Each board's own tick 0 lies `starts` rows behind it, by joint.
    """

    start: int
    stop: int
    origin: int
    starts: Mapping[str, float]


def _playing(
    boards: Sequence[tuple[BoardFacts, BoardRecord]], clocks: Sequence[BoardClock], rows: Sequence[_Rows]
) -> _Playing:
    """Return which rows the trajectory was played in: boards start together, so one origin holds for all."""
    origins: list[tuple[str, float]] = []
    for index, (fact, record) in enumerate(boards):
        for tick in record.played:
            at = clocks[0].ticks_at(clocks[index].tick_host_us(tick)) if clocks and index else tick
            origins.append((fact.joint, float(at) - (rows[0] if clocks else rows[index]).first))
    if not origins:
        return _Playing(0, 0, 0, {})
    # With clocks of their own, boards start at their nearest ticks: the first board's are those of the rows.
    own = [value for joint, value in origins if joint == boards[0][0].joint] if clocks else []
    origin = round(float(np.median(own or [value for _, value in origins])))
    last = max(record.last_play_tick for _, record in boards)
    starts = {joint: value - origin for joint, value in origins}
    return _Playing(max(origin, 0), min(origin + last + 1, rows[0].count), origin, starts)


def _streamed(
    joints: Sequence[tuple[BoardFacts, BoardRecord]], feet: Sequence[tuple[BoardFacts, BoardRecord]]
) -> list[str]:
    """Channels of the joints that can be used.

    Raises:
        RunError: a board sent nothing, or not where its joint is, or not all forces at its foot.
    """
    if silent := [fact.joint for fact, record in (*joints, *feet) if not record.channels]:
        raise RunError(f"no samples of {', '.join(silent)}: it ended before their first block came; record again")
    needed = [(board, (board[0].position_channel,)) for board in joints] + [(board, FOOT_CHANNELS) for board in feet]
    for (fact, record), channels in needed:
        for name in channels:
            if name not in record.channels:
                raise RunError(
                    f"{fact.joint}'s board did not stream {name}; set register stream.channels with bit "
                    f"{_CHANNELS[name].bit} set and run again"
                )
    drivers = [record for fact, record in joints if fact.has_motor] or [record for _, record in joints]
    names = [name for name in _OF_ALL if all(_source(record, name) in record.channels for record in drivers)]
    return names + [name for name in _OF_ANY if any(name in record.channels for _, record in joints)]


def _forces(feet: Sequence[tuple[BoardFacts, BoardRecord]], rows: Sequence[_Rows], part: slice) -> Array:
    """Return the forces at the corners of feet in some rows [N], NaN where missing, shape (rows, feet, corners)."""
    corners = [
        [fact.scaled(name, row.take(record.channels[name], part)) for name in FOOT_CHANNELS]
        for (fact, record), row in zip(feet, rows, strict=True)
    ]
    return np.moveaxis(np.array(corners), 2, 0)


def _source(record: BoardRecord, name: str) -> str:
    """The channel that says what a name means, as a board has it: a torque sensor may have a converter of its own."""
    return "bridge_torque" if name == "joint_torque" and "bridge_torque" in record.channels else name


def _scaled(
    boards: Sequence[tuple[BoardFacts, BoardRecord]], rows: Sequence[_Rows], names: Sequence[str], part: slice
) -> dict[str, Array]:
    """Each of these channels in some rows, in SI, NaN where it is missing, shape (rows, boards)."""
    nothing = np.full(part.stop - part.start, np.nan)

    def column(name: str, fact: BoardFacts, record: BoardRecord, row: _Rows) -> Array:
        # Where a joint has no motor, what would be its motor's position is what its own encoder says.
        source = fact.position_channel if name == "motor_position" else _source(record, name)
        return fact.scaled(source, row.take(record.channels[source], part)) if source in record.channels else nothing

    return {
        name: np.stack([column(name, *board, row) for row, board in zip(rows, boards, strict=True)], axis=1)
        for name in names
    }


def _to_si(
    robot: Robot, facts: Sequence[BoardFacts], scaled: dict[str, Array], valid: NDArray[np.bool_]
) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """Motor and link sides of the joints; a joint whose coupled neighbour is missing is missing itself."""
    order = [robot.joint_index(fact.joint) for fact in facts]
    matrix: Array = robot.transmission_matrix[np.ix_(order, order)]
    inverse: Array = np.linalg.inv(matrix).astype(np.float64)
    valid = _whole(valid, (inverse != 0.0) | (matrix.T != 0.0))

    def joint(name: str, mix: Array | None = None) -> Array | None:
        values = scaled.get(name)
        if values is None:
            return None
        if mix is not None:
            known = np.isfinite(values)
            values = np.where(_whole(known, mix != 0.0), np.where(known, values, 0.0) @ mix.T, np.nan)
        return np.where(valid, values, np.nan)

    constants = np.array([robot.drives[index].torque_constant for index in order])
    torque_mix: Array = np.asarray(matrix.T * constants, dtype=np.float64)
    columns = {
        "motor_position": joint("motor_position", inverse),
        "link_position": joint("link_position"),
        "motor_current": joint("motor_current"),
        "motor_torque": joint("motor_current", torque_mix),
        "joint_torque": joint("joint_torque"),
        "bus_voltage": scaled.get("bus_voltage"),
        "temperature": scaled.get("temperature"),
    }
    return {name: values for name, values in columns.items() if values is not None}, valid


def _whole(known: NDArray[np.bool_], mixed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where all that is mixed into a joint is known."""
    return (~known).astype(int) @ mixed.T.astype(int) == 0
