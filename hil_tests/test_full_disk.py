"""A disk that fills up while motors move: they are switched off, the error says why, and the run stays readable."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hil_tests.link_helpers import COBOT, wave
from hil_tests.virtual_bench.start import virtual_bench
from jointbench.bench import open_bench
from jointbench.errors import RunError
from jointbench.recording import Recorder, examine, open_run

ROOM = 20_000  # bytes of frames.bin: some half a second of two boards


@contextmanager
def no_file_grows_past(size: int) -> Iterator[None]:
    """Have the operating system refuse to let any file of this process grow further, as a full disk does."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_motors_stop_and_the_run_stays_readable(tmp_path: Path) -> None:
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        recorder = Recorder(tmp_path / "run", bench.provenance(repeats=3))
        with (
            no_file_grows_past(ROOM),
            pytest.raises(RunError, match=r"recording stopped: .*frames\.bin cannot be written: File too large"),
        ):
            bench.play(wave(bench), 3, recorder)
        for board in bench.boards:
            board.hello()
            assert not board.is_driving
    assert ROOM - 2000 < (tmp_path / "run" / "frames.bin").stat().st_size <= ROOM
    run = open_run(tmp_path / "run")
    assert run.samples.valid.any()
    assert any("stopped by RunError: recording stopped" in warning for warning in run.warnings)
    findings = {finding.name: finding for finding in examine(tmp_path / "run").findings}
    assert findings["frames.bin"].ok
    assert findings["end of frames.bin"].ok
    assert not findings["result.json"].ok
