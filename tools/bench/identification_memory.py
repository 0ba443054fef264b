"""Programs of `./run bench identification` whose memory is measured, each run in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, chunks, release_pages, scratch_array
from jointbench.bench import Facts
from jointbench.identification.rows import MotionRows
from jointbench.model import BaseParameters, Robot, base_parameters, load_robot, model_columns
from jointbench.model.model_columns import drive_parameter_names
from jointbench.recording import FRAMES, Record, RecordKind, RecordWriter, Samples, create_run_directory, save_samples
from jointwire import CHANNELS, REGISTERS, MessageType, State, encode_frame, schema_hash
from jointwire.framing import HEAD
from tools.bench.peers import BenchmarkFailed

MANY_ROBOT, LONG_ROBOT = "tx40", "cobot6"
"""Of the library's six-axis arms the one with at least 60 base parameters of links and drives, and one with boards."""

SAMPLES = 100_000
PERIOD_S = 1e-3
_FREQUENCIES_HZ = np.array([0.05, 0.13, 0.21, 0.34, 0.55])
"""None a multiple of another: the motion does not come again within hours."""

_NOISE = 0.3
_CHUNK = 1000
"""Samples that are made together: of more, the making would be what takes the most memory."""


class Swings:
    """Each joint swings with five frequencies about its home."""

    def __init__(self, robot: Robot, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._home = np.array(robot.home)
        self._amplitudes = rng.normal(scale=0.25, size=(robot.n_joints, len(_FREQUENCIES_HZ)))
        self._phases = rng.uniform(0.0, 2.0 * np.pi, self._amplitudes.shape)

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at these times [s], shape (n, n_joints) each."""
        rate = 2.0 * np.pi * _FREQUENCIES_HZ
        angle = rate * time[:, None, None] + self._phases
        sine, cosine = self._amplitudes * np.sin(angle), self._amplitudes * np.cos(angle)
        return self._home + sine.sum(axis=2), (rate * cosine).sum(axis=2), -(rate**2 * sine).sum(axis=2)


def true_parameters(robot: Robot, seed: int) -> Array:
    """Full parameters of links and drives: the robot's own where its file has inertias, else made up."""
    rng = np.random.default_rng(seed)
    links, drives = robot.standard_parameters, rng.uniform(0.2, 2.0, len(drive_parameter_names(robot)))
    return np.concatenate([rng.normal(size=10 * robot.n_links) if links is None else links, drives])


def torque_of(robot: Robot, swings: Swings, parameters: Array, time: Array) -> Array:
    """Torque at these times without noise [N·m], shape (n, n_joints)."""
    columns, _ = model_columns(robot, *swings.at(time))
    return (columns @ parameters).reshape(len(time), -1)


def many_rows(seed: int, samples: int = SAMPLES) -> tuple[MotionRows, Array]:
    """Rows of a motion that is known, each joint with a noise of its own, and the parameters behind them."""
    robot = load_robot(MANY_ROBOT)
    base: BaseParameters = base_parameters(robot)
    swings, parameters = Swings(robot, seed), true_parameters(robot, seed)
    rng = np.random.default_rng(seed)
    q, dq, ddq, torque = np.empty((4, samples, robot.n_joints))
    for part in chunks(samples, _CHUNK):
        time = PERIOD_S * np.arange(part.start, part.stop, dtype=np.float64)
        q[part], dq[part], ddq[part] = swings.at(time)
        noise = rng.normal(scale=_NOISE, size=q[part].shape) / np.arange(1, robot.n_joints + 1)
        torque[part] = torque_of(robot, swings, parameters, time) + noise
    return MotionRows(base, q, dq, ddq, torque), base.group(parameters)


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


ROOT = Path(__file__).resolve().parents[2]
_LOOK_S = 0.01


def in_own_process(program: str, *arguments: str) -> dict[str, Any]:
    """Run one of the programs below in a fresh process.

    Raises:
        BenchmarkFailed: it ended with an error.
    """
    command = [sys.executable, "-P", "-m", "tools.bench.identification_memory", program, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise BenchmarkFailed(f"the measured process {program!r} ended with {ended.returncode}: {ended.stderr[-400:]}")
    return json.loads(ended.stdout.splitlines()[-1])


def fit_many_rows(seed: str) -> Mapping[str, Any]:
    """Weighted least squares of the many rows, nothing but them in memory."""
    from jointbench.identification.least_squares import least_squares

    rows, _ = many_rows(int(seed))
    return {"rows": rows.torque.size, "condition_number": least_squares([rows]).condition_number}


def fit_log(path: str) -> Mapping[str, Any]:
    """Fit the run of a directory and save its model."""
    from jointbench.identification import fit
    from jointbench.recording import open_run

    begin = time.perf_counter()
    run = open_run(path)
    opened = time.perf_counter()
    model = fit(run)
    fitted = time.perf_counter()
    model.save(Path(path) / "model.json")
    return {
        "samples": run.samples.n_samples,
        "rows": int(sum(model.rows)),
        "open_s": opened - begin,
        "fit_s": fitted - opened,
        "parameters": model.parameters.tolist(),
        "sigma": model.sigma.tolist(),
        "total_relative": model.error.total_relative,
    }


def make_log(kind: str, path: str, minutes: str, seed: str) -> Mapping[str, Any]:
    """Make a log of one kind."""
    made = {"imported": imported_log, "recorded": recorded_log}[kind](Path(path), float(minutes), int(seed))
    return {"bytes": sum(each.stat().st_size for each in made.iterdir())}


class _Peaks:
    """The most memory of this process that no file stands behind; the peak of all of it is kept by the kernel."""

    def __init__(self) -> None:
        self.without_file_MB = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.without_file_MB = max(self.without_file_MB, _megabytes("RssAnon"))
            time.sleep(_LOOK_S)


def _megabytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1]) * 1024.0 / 1e6
    raise BenchmarkFailed(f"/proc/self/status does not tell {name}; memory is measured on Linux only")


_PROGRAMS = {"many": fit_many_rows, "fit": fit_log, "make": make_log}


def main(program: str, *arguments: str) -> None:
    """Run a program, and print what it says and what it took."""
    peaks = _Peaks()
    said = _PROGRAMS[program](*arguments)
    print(json.dumps({**said, "resident_MB": _megabytes("VmHWM"), "without_file_MB": peaks.without_file_MB}))


if __name__ == "__main__":
    main(*sys.argv[1:])
