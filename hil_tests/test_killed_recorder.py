"""kill -9 of a recorder at any moment: the run is readable, next to nothing is lost, and the doctor says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT
from hil_tests.virtual_bench.start import virtual_bench
from jointbench.errors import RunError
from jointbench.recording import examine, open_run, read_records
from jointbench.testing.measured import Measured
from jointwire import MessageType, decode_frame

KILLS, SEED = 20, 3
MOTION_US = 1_800_000  # of the motion recorded, from its first sample

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Killed:
    """A run whose recorder was killed.

    Attributes:
        path: of the run.
        received: how much the process said that it had received and written.
        time_us: the clock's time that it said last.
    """

    path: Path
    received: int
    time_us: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Killed]]:
    """Twenty runs of six boards on one bench, each killed at a random moment after its first sample."""
    folder, rng = tmp_path_factory.mktemp("killed"), np.random.default_rng(SEED)
    with virtual_bench(COBOT, out=folder / "sim") as live:
        process = subprocess.Popen(
            [sys.executable, "-m", "hil_tests.recorder_to_kill", str(live)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
        try:
            yield [_kill(process, folder / f"run{k}", int(rng.integers(MOTION_US))) for k in range(KILLS)]
        finally:
            process.communicate()


def _kill(process: subprocess.Popen[str], path: Path, after_us: int) -> Killed:
    assert process.stdin is not None
    assert process.stdout is not None
    print(path, file=process.stdin)
    pid, first_us, killed, said = 0, 0, False, {"received": 0, "time": 0}
    for line in process.stdout:
        word, number = line.split()
        if word == "pid":
            pid = int(number)
        elif word == "ended":
            assert (killed, number) == (True, "-9"), line
            break
        else:
            said[word] = int(number)
            first_us = first_us or said["time"]
            if not killed and first_us and said["time"] - first_us >= after_us:
                os.kill(pid, signal.SIGKILL)
                killed = True
    return Killed(path, said["received"], said["time"])


def test_every_run_is_readable_and_lacks_next_to_nothing(killed: list[Killed], measured: Measured) -> None:
    """Held against what the process had received, and against the clock's time when it was killed."""
    assert len(killed) == KILLS
    losses_us: list[int] = []
    for each in killed:
        records = list(read_records((each.path / "frames.bin").read_bytes(), []))
        run = open_run(each.path)
        assert run.samples.valid.any()
        assert run.samples.joint_names == ("j1", "j2", "j3", "j4", "j5", "j6")
        assert len(records) >= each.received
        losses_us.append(each.time_us - records[-1].time_us)
    measured("recording.killed_loss", np.array(losses_us) / 1000.0, "ms")


def test_the_doctor_says_that_the_recorder_was_killed(killed: list[Killed]) -> None:
    for each in killed:
        diagnosis = examine(each.path)
        wrong = {finding.name for finding in diagnosis.findings if not finding.ok}
        assert {"result.json", "ledger"} <= wrong <= {"result.json", "ledger", "end of frames.bin"}, diagnosis.text()
        assert "the recorder was killed" in diagnosis.text()


def test_torn_at_any_byte_the_doctor_names_it_and_the_run_opens(killed: list[Killed]) -> None:
    """As a power cut may leave it: any of the bytes of the last records, none of them twice."""
    rng = np.random.default_rng(SEED)
    for each in killed:
        path = each.path / "frames.bin"
        whole = path.read_bytes()
        records = list(read_records(whole, []))
        ends = np.cumsum([record.size for record in records])
        cut = int(rng.integers(ends[-4] + 1, ends[-1]))
        kept = int(np.searchsorted(ends, cut, side="right"))
        path.write_bytes(whole[:cut])
        end = next(finding for finding in examine(each.path).findings if finding.name == "end of frames.bin")
        if cut == ends[kept - 1]:
            assert end.ok
        else:
            assert not end.ok
            assert f"{cut - ends[kept - 1]} bytes are left out" in end.what
            assert f"from byte {ends[kept - 1]}" in end.where
        frames = [decode_frame(record.payload) for record in records[:kept]]
        if len({frame.node for frame in frames if frame.type is MessageType.DATA}) == 6:
            assert open_run(each.path).samples.valid.any()
        else:
            with pytest.raises(RunError, match="it ended before their first block came"):
                open_run(each.path)
        path.write_bytes(whole)
