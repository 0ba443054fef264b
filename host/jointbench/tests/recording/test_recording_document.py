"""The program that docs/recording.md shows reads what was recorded, and stops at a torn end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from jointbench.recording import open_run
from jointbench.tests.recording.simulated_run import record

DOCUMENT = Path(__file__).parents[4] / "docs" / "recording.md"


def _printed(tmp_path: Path, run: Path) -> list[tuple[str, int, int]]:
    program = tmp_path / "reader.py"
    program.write_text(DOCUMENT.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", program, run], capture_output=True, text=True, check=True)
    return [(joint, int(tick), int(value)) for joint, tick, value in map(str.split, done.stdout.splitlines())]


def test_it_reads_every_sample(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    samples = open_run(path).samples
    printed = _printed(tmp_path, path)
    assert len(printed) == samples.valid.sum()
    for joint, name in enumerate(samples.joint_names):
        mine = sorted((tick, value) for said, tick, value in printed if said == name)
        assert [tick for tick, _ in mine] == list(range(5000, 5000 + samples.n_samples))
        counts = np.array([value for _, value in mine])
        scale = samples.motor_position[:, joint] / counts
        np.testing.assert_allclose(scale, scale[0], rtol=1e-12)  # one factor: counts to radians of the joint


def test_it_reads_up_to_a_torn_end(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    whole = _printed(tmp_path, path)
    frames = path / "frames.bin"
    frames.write_bytes(frames.read_bytes()[:-300])
    torn = _printed(tmp_path, path)
    assert torn == whole[: len(torn)]
    assert len(whole) // 2 < len(torn) < len(whole)
