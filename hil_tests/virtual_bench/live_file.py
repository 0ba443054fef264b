"""The live bench file, which a running bench writes for its clients: where its boards are and what it has."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from hil_tests.virtual_bench.bench_file import BAUD, UNIX, VERSION, BenchFile, BoardEntry
from hil_tests.virtual_bench.errors import BenchError
from jointwire import CHANNEL_BY_NAME

_MEASURED = {  # feature: channel
    "motor": "current_command",
    "current": "motor_current",
    "link_encoder": "link_position",
    "torque_sensor": "joint_torque",
    "supply": "bus_voltage",
    "temperature": "temperature",
}
_BY_CONTROL = {"faults", "outputs", "power"}  # what a client may ask of the control socket
_ALWAYS = {"flash"}


def features_of(channels: Iterable[int], has_control: bool, has_sync: bool) -> set[str]:
    """Name what all boards of joints have, and what can be done to them.

    Args:
        channels: masks of what each joint's board measures, its register `board.channels`.
        has_control: whether there is a control socket.
        has_sync: whether pulses on the SYNC line reach all boards.
    """
    masks = list(channels)
    measured = {
        feature for feature, name in _MEASURED.items() if all(mask >> CHANNEL_BY_NAME[name].bit & 1 for mask in masks)
    }
    return measured | _ALWAYS | (_BY_CONTROL if has_control else set()) | ({"sync"} if has_sync else set())


def write_live_file(
    path: Path,
    bench: BenchFile,
    settings: Mapping[str, str | int],
    features: Collection[str],
    ports: Mapping[int, str],
    pids: Mapping[int, int],
) -> None:
    """Write the live bench file by rename, so that a client that sees it sees it whole.

    Args:
        path: where clients look for it.
        bench: what runs.
        settings: clock, plant, seed and the like, written at the top beside what `bench` itself tells.
        features: what its boards have, beside what the bench file states.
        ports, pids: of each board by node.

    Raises:
        BenchError: the file cannot be written.
    """
    content: dict[str, Any] = {"version": VERSION, "name": bench.name, "robot": bench.robot_reference, **settings}
    content["common_ticks"] = bench.common_ticks
    content["sample_every"] = bench.sample_every
    content["features"] = sorted(bench.terms.features.union(features))
    if bench.terms.limits:
        content["limits"] = dict(bench.terms.limits)
    if bench.terms.wires:
        content["wire"] = [{"from": wire.source, "to": wire.target} for wire in bench.terms.wires]
    content["board"] = [entry for board in bench.boards for entry in _entries(path, board, ports, pids)]
    if bench.servo:
        content["servo"] = {joint: dict(values) for joint, values in bench.servo.items()}
    draft = path.with_suffix(".draft")
    try:
        draft.write_text(tomli_w.dumps(content), encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise BenchError(f"live bench file {path} cannot be written: {error.strerror}") from error


def _entries(path: Path, board: BoardEntry, ports: Mapping[int, str], pids: Mapping[int, int]) -> list[dict[str, Any]]:
    """One for each motor of the board, or for its foot."""
    flash = {"flash": str(path.parent / "boards" / board.joint)} if board.url == UNIX else {}
    return [
        {
            "node": motor.node,
            "foot" if board.on_foot else "joint": motor.joint,
            "url": board.faults + ports[motor.node],
            "baud": board.baud or BAUD,
            "pid": pids[motor.node],
            **flash,
        }
        for motor in board.motors
    ]
