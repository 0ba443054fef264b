"""The newest state of a bench's boards as lines of its feed: each quantity in SI, at its joint."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.bench.board import Board
from jointbench.bench.identity import FOOT_CHANNELS, Facts
from jointbench.bench.sync import Exchange, board_clock
from jointbench.bench.tally import Counts
from jointbench.model import Robot
from jointwire import ChannelKind, Frame, FrameError, State, decode_samples, divider

if TYPE_CHECKING:
    from jointbench.bench.bench import Bench
    from jointbench.bench.feed_server import Activity

_KELVIN = 273.15  # 0 °C [K]
_EXCHANGES = 512  # a minute of them while boards move: enough to tell a crystal's drift
_CLOCK_EVERY = 10  # states between two estimates of clocks, each of another board's
_HALF_WORD = 1 << 31
_UNKNOWN = {"position_rad": None, "velocity_rad_s": None, "torque_Nm": None}


class BenchView:
    """The boards of a connected bench, as they can be shown at any moment, by one thread that is not their owner's."""

    def __init__(self, bench: Bench) -> None:
        """Look at nothing yet."""
        self._bench = bench
        facts = bench.facts + bench.foot_facts
        self._boards = [_BoardView(board, fact) for board, fact in zip(bench.all_boards, facts, strict=True)]
        self._joints = _Joints(bench.robot)
        self._states = 0

    def boards(self) -> list[dict[str, Any]]:
        """Return what does not change of each board."""
        robot, n_joints = self._bench.robot, len(self._bench.boards)
        return [
            {
                "node": view.board.node,
                "joint": view.board.joint,
                "on_foot": index >= n_joints,
                "has": view.quantities(),
                "limits": _limits(robot, index, view.facts) if index < n_joints else {},
            }
            for index, view in enumerate(self._boards)
        ]

    def state(self, activity: Activity, counts: Mapping[int, Counts]) -> dict[str, Any]:
        """The line of this moment."""
        now_us = self._bench.clock.now_us()
        for view in self._boards:
            view.look()
        self._states += 1
        if self._states % _CLOCK_EVERY == 0:
            self._boards[self._states // _CLOCK_EVERY % len(self._boards)].estimate_clock()
        joints = self._joints.states(self._boards[: len(self._bench.boards)])
        elapsed = 0.0 if activity.start_us is None else (now_us - activity.start_us) * 1e-6
        return {
            "kind": "state",
            "time_us": now_us,
            "doing": activity.doing,
            "run": activity.run,
            "elapsed_s": round(min(max(elapsed, 0.0), activity.duration_us * 1e-6), 3),
            "duration_s": activity.duration_us * 1e-6,
            "boards": [
                view.line(now_us, joints[index] if index < len(joints) else _UNKNOWN, counts.get(view.board.node))
                for index, view in enumerate(self._boards)
            ],
        }


class _BoardView:
    """One board: its newest block, decoded once, and the PINGs that it has answered."""

    def __init__(self, board: Board, facts: Facts) -> None:
        self.board = board
        self._first_facts = facts
        self.position = self.velocity = self.current = None  # of the motor, without one of the joint
        self._frame: Frame | None = None
        self._rest: dict[str, Any] = dict.fromkeys(("force_N", "temperature_C", "voltage_V"))
        self._pong: tuple[Frame, int] | None = None
        self._exchanges: deque[Exchange] = deque(maxlen=_EXCHANGES)
        self._clock: dict[str, float | None] = {"clock_offset_us": None, "clock_drift_ppm": None}

    @property
    def facts(self) -> Facts:
        """Its registers as its owner last read or wrote them."""
        return self.board.facts or self._first_facts

    def quantities(self) -> list[str]:
        """Names of what the board measures, in a state's words."""
        facts = self.facts
        position = ["position_rad", "velocity_rad_s"] if facts.has(facts.position_channel) else []
        current = ["current_A", "torque_Nm"] if facts.has_motor else []
        named = {"force_N": FOOT_CHANNELS[0], "temperature_C": "temperature", "voltage_V": "bus_voltage"}
        return position + current + [name for name, channel in named.items() if facts.has(channel)]

    def look(self) -> None:
        """Take note of what came since the last look."""
        frame, pong = self.board.newest_data, self.board.newest_pong
        try:
            if frame is not None and frame is not self._frame:
                self._frame = frame
                self._decode(frame)
            if pong is not None and pong is not self._pong:
                self._pong = pong
                self._add(Exchange.from_pong(*pong))
        except FrameError:  # a faulty board's: the recording counts it
            pass

    def estimate_clock(self) -> None:
        """Estimate its clock on the host's, by the answers to PINGs of the last minute."""
        if self._exchanges:
            clock = board_clock(tuple(self._exchanges), self.facts.tick_period * 1e6)
            drift = clock.drift_ppm if clock.drift_ppm else None
            self._clock = {"clock_offset_us": round(clock.offset_us, 1), "clock_drift_ppm": _short(drift)}

    def line(self, now_us: int, joint: Mapping[str, float | None], counts: Counts | None) -> dict[str, Any]:
        """The board's part of a state; `joint` is what only all boards together tell."""
        board, lost = self.board, self.board.why_lost
        state = board.state
        fault = board.fault_error().text if state is State.FAULT else None
        return {
            "node": board.node,
            "joint": board.joint,
            "state": "LOST" if lost else state.name if state is not None else "UNKNOWN",
            "fault": lost or fault,
            **joint,
            "current_A": _short(self.current),
            **self._rest,
            **(asdict(counts) if counts else dict.fromkeys(("samples", "samples_lost", "frames_bad"))),
            **self._clock,
            "age_s": round((now_us - board.last_frame_us) * 1e-6, 3),
        }

    def _decode(self, frame: Frame) -> None:
        block, facts = decode_samples(frame), self.facts
        newest = {name: int(column[-1]) for name, column in block.columns.items() if len(column)}
        positions = block.columns.get(facts.position_channel, np.empty(0))
        if len(positions):
            turn = 2.0 * np.pi / facts.position_counts
            kind = ChannelKind.MOTOR_ENCODER if facts.has_motor else ChannelKind.LINK_ENCODER
            span = (len(positions) - 1) * divider(block.dividers, kind) * facts.tick_period
            self.position = float(positions[-1]) * turn
            if span:
                self.velocity = float(positions[-1] - positions[0]) * turn / span
        if facts.has_motor and "motor_current" in newest:
            self.current = _scaled(newest["motor_current"], facts, "current")
        if "temperature" in newest:
            self._rest["temperature_C"] = _short(_scaled(newest["temperature"], facts, "temperature") - _KELVIN)
        if "bus_voltage" in newest:
            self._rest["voltage_V"] = _short(newest["bus_voltage"] * facts.si("voltage.scale"))
        if all(name in newest for name in FOOT_CHANNELS):
            zeros = (facts.registers[f"force.zero_{k}"] for k in range(1, len(FOOT_CHANNELS) + 1))
            counts = [newest[name] - zero for name, zero in zip(FOOT_CHANNELS, zeros, strict=True)]
            self._rest["force_N"] = [_short(count * facts.si("force.scale")) for count in counts]

    def _add(self, exchange: Exchange) -> None:
        """Keep an exchange; a board whose ticks fall has started again, and its clock with it."""
        if self._exchanges and (exchange.tick - self._exchanges[-1].tick) % (2 * _HALF_WORD) >= _HALF_WORD:
            self._exchanges.clear()
        self._exchanges.append(exchange)


class _Joints:
    """Joints from their motors: of joints that share motors each one needs several."""

    def __init__(self, robot: Robot) -> None:
        self._to_motors = robot.transmission_matrix
        self._to_joints = np.linalg.inv(self._to_motors)
        self._constants = [drive.torque_constant for drive in robot.drives]

    def states(self, views: list[_BoardView]) -> list[dict[str, float | None]]:
        """Position, velocity and torque of each joint, None where a board that it takes has not said its part."""
        torques = [
            None if view.current is None else view.current * constant
            for view, constant in zip(views, self._constants, strict=True)
        ]
        positions, velocities = [view.position for view in views], [view.velocity for view in views]
        return [
            {
                "position_rad": _sum(self._to_joints[joint], positions),
                "velocity_rad_s": _sum(self._to_joints[joint], velocities),
                "torque_Nm": _sum(self._to_motors[:, joint], torques),
            }
            for joint in range(len(views))
        ]


def _sum(weights: Any, values: list[float | None]) -> float | None:
    total = 0.0
    for weight, value in zip(weights, values, strict=True):
        if weight:
            if value is None:
                return None
            total += float(weight) * value
    return _short(total)


def _scaled(count: int, facts: Facts, quantity: str) -> float:
    return (count - facts.registers[f"{quantity}.zero"]) * facts.si(f"{quantity}.scale")


def _limits(robot: Robot, index: int, facts: Facts) -> dict[str, Any]:
    joint = robot.joints[index]
    limits: dict[str, Any] = {"position_rad": list(joint.position_limits), "velocity_rad_s": joint.velocity_limit}
    return limits | ({"current_A": facts.si("limit.current")} if facts.has_motor else {})


def _short(value: float | None) -> float | None:
    """Seven digits: more than any of this is known to, and half as long to send."""
    return None if value is None else float(f"{value:.7g}")
