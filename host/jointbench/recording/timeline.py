"""All boards on one timeline, in SI: where raw counts become physical quantities, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import RunError
from jointbench.link.identity import Facts
from jointbench.link.sync import tick_offset
from jointbench.recording.decode import BoardRecord
from jointbench.recording.samples import BiquadCoefficients, Samples
from jointbench.robot import Array, Robot


@dataclass(frozen=True)
class BoardFacts(Facts):
    """A board as run.toml knows it: its registers, raw, and its joint."""

    joint: str

    @property
    def current_filter(self) -> BiquadCoefficients:
        """(b, a) of the board's filter, exactly as the board computes with them."""
        b0, b1, b2, a1, a2 = (self.si(f"filter.{name}") for name in ("b0", "b1", "b2", "a1", "a2"))
        return (b0, b1, b2), (1.0, a1, a2)


def assemble(
    robot: Robot, boards: Sequence[tuple[BoardFacts, BoardRecord]], clock: str
) -> tuple[Samples, tuple[str, ...]]:
    """Samples of a run from its boards' records.

    Args:
        robot: its couplings turn motor angles into joint positions and motor torques into joint torques.
        boards: facts and record of each joint's board, in joint order.
        clock: "virtual" where all boards count the same ticks, "wall" where they are aligned by their PONGs.

    Returns:
        The samples, and warnings about the alignment.

    Raises:
        RunError: no samples, or boards with different sampling periods.
    """
    facts = [fact for fact, _ in boards]
    period = facts[0].si("board.tick_period")
    for fact in facts:
        if fact.si("board.tick_period") != period:
            raise RunError(f"{fact.joint} samples each {fact.si('board.tick_period')} s, {facts[0].joint} {period} s")
    shifts, warnings = _shifts(boards, clock, period * 1e6)
    ticks = [(tick - shift, block) for (_, record), shift in zip(boards, shifts, strict=True)
             for tick, block in record.blocks.items()]  # fmt: skip
    if not ticks:
        raise RunError("the run holds no samples; nothing was streamed before it ended")
    start = min(tick for tick, _ in ticks)
    rows = max(tick + len(block) for tick, block in ticks) - start
    channels = [_fill(record, shift + start, rows) for (_, record), shift in zip(boards, shifts, strict=True)]
    play_tick, play_warnings = _play_ticks(boards, shifts, start, rows)
    valid = np.stack([filled["valid"] for filled in channels], axis=1).astype(bool)
    raw = {name: _stack(channels, name) for name in channels[0] if name != "valid"}
    missing = [name for name in ("motor_position",) if raw.get(name) is None]
    if missing:
        raise RunError(f"not every board streamed {missing[0]}; set register stream.channels to 31 and run again")
    columns, valid = _to_si(robot, facts, raw, valid)
    samples = Samples(
        time=np.arange(rows, dtype=np.float64) * period,
        joint_names=tuple(fact.joint for fact in facts),
        play_tick=play_tick,
        valid=valid,
        current_filter=tuple(fact.current_filter for fact in facts),
        adc_window=facts[0].si("adc.window"),
        sample_period=period,
        **columns,
    )
    return samples, (*warnings, *play_warnings)


def _shifts(
    boards: Sequence[tuple[BoardFacts, BoardRecord]], clock: str, period_us: float
) -> tuple[list[int], list[str]]:
    """Ticks by which each board runs ahead of the first one."""
    if clock == "virtual":
        return [0] * len(boards), []
    warnings: list[str] = []
    for fact, record in boards:
        if not record.exchanges:
            raise RunError(f"{fact.joint}: no PING was answered, so its ticks cannot be put on the common timeline")
    offsets = [tick_offset(record.exchanges, period_us) for _, record in boards]
    for (fact, record), offset in zip(boards, offsets, strict=True):
        span = (record.exchanges[-1].received_us - record.exchanges[0].sent_us) * 1e-6
        slip = (offset.drift - offsets[0].drift) * span
        if abs(slip) > 0.5:
            warnings.append(
                f"{fact.joint}: its clock slips {slip:+.1f} samples against {boards[0][0].joint} during the run; "
                "samples of these joints are aligned in the middle only, use shorter runs"
            )
    return [round(offset.offset - offsets[0].offset) for offset in offsets], warnings


def _fill(record: BoardRecord, start: int, rows: int) -> dict[str, Array]:
    """Each channel of a board by row, NaN where nothing came."""
    names = {name for block in record.blocks.values() for name in block.dtype.names or ()}
    filled = {name: np.full(rows, np.nan) for name in sorted(names)}
    filled["valid"] = np.zeros(rows)
    for tick, block in record.blocks.items():
        row = slice(tick - start, tick - start + len(block))
        for name in block.dtype.names or ():
            filled[name][row] = block[name]
        filled["valid"][row] = 1.0
    return filled


def _stack(channels: Sequence[dict[str, Array]], name: str) -> Array | None:
    return np.stack([filled[name] for filled in channels], axis=1) if all(name in c for c in channels) else None


def _play_ticks(
    boards: Sequence[tuple[BoardFacts, BoardRecord]], shifts: Sequence[int], start: int, rows: int
) -> tuple[NDArray[np.int64], list[str]]:
    """Trajectory tick of each row: boards start together, so one origin holds for all."""
    play_tick = np.full(rows, -1, dtype=np.int64)
    origins = [
        (fact.joint, origin - shift - start)
        for (fact, record), shift in zip(boards, shifts, strict=True)
        for origin in record.played
    ]
    if not origins:
        return play_tick, []
    origin = int(np.median([value for _, value in origins]))
    last = max(record.last_play_tick for _, record in boards)
    first_row, end_row = max(origin, 0), min(origin + last + 1, rows)
    play_tick[first_row:end_row] = np.arange(first_row, end_row) - origin
    apart = {joint: value - origin for joint, value in origins if value != origin}
    return play_tick, [f"{joint} started {ticks:+d} samples from the others" for joint, ticks in apart.items()]


def _to_si(
    robot: Robot, facts: Sequence[BoardFacts], raw: dict[str, Array | None], valid: NDArray[np.bool_]
) -> tuple[dict[str, Any], NDArray[np.bool_]]:
    """Scale the channels; a joint whose coupled neighbour is missing is missing itself."""
    order = [robot.joint_index(fact.joint) for fact in facts]
    matrix: Array = robot.transmission_matrix[np.ix_(order, order)]
    inverse: Array = np.linalg.inv(matrix).astype(np.float64)
    mixed = (inverse != 0.0) | (matrix.T != 0.0)
    valid = (~valid).astype(int) @ mixed.T.astype(int) == 0

    def scaled(name: str, zeros: list[float], scales: list[float], mix: Array | None) -> Array | None:
        values = raw.get(name)
        if values is None:
            return None
        values = (np.where(np.isnan(values), 0.0, values) - zeros) * scales
        return np.where(valid, values if mix is None else values @ mix.T, np.nan)

    def each(name: str) -> list[float]:
        return [fact.si(name) for fact in facts]

    none, turn = [0.0] * len(facts), 2.0 * np.pi
    constants = np.array([robot.drives[index].torque_constant for index in order])
    torque_mix: Array = np.asarray(matrix.T * constants, dtype=np.float64)
    current = (each("current.zero"), each("current.scale"))
    columns = {
        "motor_position": scaled(
            "motor_position", none, [turn / n for n in each("encoder.motor_counts")], inverse
        ),
        "link_position": scaled("link_position", none, [turn / n for n in each("encoder.link_counts")], None),
        "motor_current": scaled("motor_current", *current, None),
        "motor_torque": scaled("motor_current", *current, torque_mix),
        "joint_torque": scaled("joint_torque", each("torque.zero"), each("torque.scale"), None),
    }
    return columns, valid
