"""Runs of simulated boards, recorded as a bench would record them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jointbench.recording import Recorder
from jointbench.recording.run_directory import FRAMES, PROVENANCE, RESULT, SAMPLES
from jointbench.recording.seal import file_sha256, write_result
from jointbench.tests.bench.wire import SimulatedBoard, motion
from jointwire import REGISTERS, FrameReader, schema_hash


def boards(count: int = 2, blocks: int = 10) -> dict[int, SimulatedBoard]:
    """Boards by node that all count the same ticks."""
    return {node: motion(blocks, node=node, tick=5000, taken=0, sequence=100 * node) for node in range(1, count + 1)}


def provenance(nodes: Mapping[int, Any], **more: Any) -> dict[str, Any]:
    """What run.toml holds of boards with default registers at the joints j1, j2 ... of cobot6."""
    registers = {register.name: register.default for register in REGISTERS}
    tables = [{"node": node, "joint": f"j{node}", "registers": registers} for node in nodes]
    about = {"robot": "cobot6", "clock": "virtual", "common_ticks": True, "schema_hash": f"{schema_hash():08x}"}
    return {**about, "board": tables, **more}


def feed(recorder: Recorder, streams: Mapping[int, SimulatedBoard], frames: int | None = None) -> None:
    """Give the recorder what the boards sent, in the order of time; `frames`: that many and no more."""
    readers = {node: FrameReader() for node in streams}
    sent = sorted(((each, node) for node, board in streams.items() for each in board.sent), key=lambda e: e[0].time_us)
    for each, node in sent[:frames]:
        for chunk in readers[node].feed(each.data):
            recorder.chunk(each.time_us, node, chunk)


def record(directory: Path, streams: Mapping[int, SimulatedBoard] | None = None) -> Path:
    """Record a whole motion of two boards, or of these."""
    streams = boards() if streams is None else streams
    with Recorder(directory, provenance(streams)) as recorder:
        recorder.event(4_900_000, "armed", node=1)
        feed(recorder, streams)
        recorder.event(6_000_000, "done")
    return directory


def seal_again(directory: Path) -> Path:
    """Seal a run's files as they are now, as if they had been so when it was made."""
    result = _unsealed(directory)
    if (directory / FRAMES).is_file():
        result["frames_sha256"] = file_sha256(directory / FRAMES)
    write_result(directory, result)
    return directory


def without_seal(directory: Path) -> Path:
    """Make of a run one of before runs had a seal; imports had no result.json either."""
    if (directory / SAMPLES).is_file():
        (directory / RESULT).unlink()
        about = directory / PROVENANCE
        about.write_text(about.read_text(encoding="utf-8").replace("sealed = true\n", ""), encoding="utf-8")
    else:
        (directory / RESULT).write_text(json.dumps(_unsealed(directory), indent=1), encoding="utf-8")
    return directory


def _unsealed(directory: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    return {name: result[name] for name in result if name not in ("files", "digests", "digest")}
