"""Logs of any length, made without ever being in memory: imported samples, and frames as boards send them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.link.identity import Facts
from jointbench.memory_mapping import chunks, release_pages, scratch_array
from jointbench.recording import Samples, save_samples
from jointbench.recording.record_file import Record, RecordKind, RecordWriter
from jointbench.recording.run_directory import FRAMES, create_run_directory
from jointbench.robot import Robot, load_robot
from jointwire import CHANNELS, REGISTERS, MessageType, State, encode_frame, schema_hash
from jointwire.decoder import HEAD
from tools.identification_bench.motion import LONG_ROBOT, PERIOD_S, Swings, torque_of, true_parameters

_POSITION_NOISE, _TORQUE_NOISE = 1e-5, 0.3
_BLOCK = 64
_SENT = ("motor_current", "motor_position")
_REGISTERS = {register.name: register.default for register in REGISTERS}


def imported_log(directory: Path, minutes: float, seed: int) -> Path:
    """A run of samples that came from elsewhere, at 1 kHz."""
    robot = load_robot(LONG_ROBOT)
    n = round(minutes * 60.0 / PERIOD_S)
    position, torque = scratch_array((n, robot.n_joints), np.float64), scratch_array((n, robot.n_joints), np.float64)
    for part in chunks(n):
        position[part], torque[part] = _measured(robot, part, 0.0, seed)
        release_pages(position)
        release_pages(torque)
    samples = Samples(
        time=PERIOD_S * np.arange(n, dtype=np.float64), joint_names=robot.joint_names, motor_position=position,
        link_position=None, motor_current=None, motor_torque=torque, joint_torque=None, play_tick=np.full(n, -1),
        valid=np.ones((n, robot.n_joints), dtype=np.bool_), board_filters=None, sample_period=PERIOD_S,
    )  # fmt: skip
    return save_samples(directory, samples, {"robot": LONG_ROBOT, "kind": "import", "seed": seed})


def recorded_log(directory: Path, minutes: float, seed: int) -> Path:
    """A run of six boards' frames: position and current at each tick, 64 ticks in a frame."""
    robot = load_robot(LONG_ROBOT)
    nodes = range(1, robot.n_joints + 1)
    names = zip(nodes, robot.joint_names, strict=True)
    boards = [{"node": node, "joint": name, "registers": _REGISTERS} for node, name in names]
    about = {"robot": LONG_ROBOT, "clock": "virtual", "common_ticks": True, "schema_hash": f"{schema_hash():08x}"}
    path = create_run_directory(directory, {**about, "board": boards, "seed": seed})
    writer = RecordWriter(path / FRAMES)
    n_blocks = round(minutes * 60.0 / PERIOD_S) // _BLOCK
    for part in chunks(n_blocks, 1000):
        raw = _counts(robot, slice(part.start * _BLOCK, part.stop * _BLOCK), seed)
        for block in range(part.start, part.stop):
            within = slice((block - part.start) * _BLOCK, (block - part.start + 1) * _BLOCK)
            writer.write(*(_record(node, block, raw[within, node - 1]) for node in nodes))
    writer.close()
    return path


def _measured(robot: Robot, part: slice, torque_lag: float, seed: int) -> tuple[Array, Array]:
    """Positions, and torques of that many seconds before, with noise."""
    swings, parameters = Swings(robot, seed), true_parameters(robot, seed)
    time = PERIOD_S * np.arange(part.start, part.stop, dtype=np.float64)
    rng = np.random.default_rng([seed, part.start])
    position, torque = swings.at(time)[0], torque_of(robot, swings, parameters, time - torque_lag)
    return (
        position + _POSITION_NOISE * rng.standard_normal(position.shape),
        torque + _TORQUE_NOISE * rng.standard_normal(position.shape),
    )


def _counts(robot: Robot, part: slice, seed: int) -> NDArray[np.void]:
    """What the boards' channels are at these ticks, packed as in a frame, shape (n, n_joints)."""
    facts = Facts({name: int(raw) for name, raw in _REGISTERS.items()})
    # The converter's mean over a tick is the current half a tick before its end.
    position, torque = _measured(robot, part, 0.5 * facts.si("adc.window"), seed)
    motor = position @ np.asarray(robot.transmission_matrix).T
    constants = np.array([drive.torque_constant for drive in robot.drives])
    current = torque @ np.linalg.inv(robot.transmission_matrix) / constants
    channels = {channel.name: channel for channel in CHANNELS if channel.name in _SENT}
    raw = np.empty(position.shape, dtype=[(name, "<" + channel.format) for name, channel in channels.items()])
    raw["motor_current"] = np.rint(current / facts.si(channels["motor_current"].scale))
    raw["motor_position"] = np.rint(motor * facts.si("encoder.motor_counts") / (2.0 * np.pi))
    return raw


def _record(node: int, block: int, raw: NDArray[np.void]) -> Record:
    first = block * _BLOCK
    body = _head(first) + raw.tobytes()
    time_us = round(1e6 * PERIOD_S * (first + _BLOCK))
    frame = encode_frame(MessageType.DATA, node, block, time_us, payload=body)
    return Record(time_us, node, RecordKind.FRAME, frame[:-1])


def _head(first_tick: int) -> bytes:
    head = np.zeros(1, HEAD)
    head["first_tick"], head["play_tick"], head["count"], head["state"] = first_tick, -1, _BLOCK, State.RUNNING
    head["channels"] = sum(1 << channel.bit for channel in CHANNELS if channel.name in _SENT)
    return head.tobytes()
