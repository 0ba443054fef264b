"""Record one motion of a bench: go to its start, play it, and open what was recorded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from jointbench.errors import StopAsked
from jointbench.excitation import Excitation
from jointbench.link import Bench, Progress
from jointbench.link.playback import ProgressCallback
from jointbench.recording.recorder import Recorder
from jointbench.recording.run import Run, open_run
from jointbench.stopping import SafeInterrupt

__all__ = ["Progress", "record"]


def record(
    bench: Bench,
    excitation: Excitation,
    directory: str | Path,
    repeats: int = 2,
    progress: ProgressCallback | None = None,
    **provenance: Any,
) -> Run:
    """Play an excitation on a configured bench and record it; motors are off before and afterwards.

    Args:
        bench: connected and configured.
        excitation: what to play.
        directory: of the run, to create.
        repeats: how often to play it in a row; two or more show how much of the torque repeats.
        progress: called some times a second.
        provenance: what else run.toml shall hold, such as the command and its seed.

    Stopped (by Ctrl-C, a signal, or who looks on) before the first sample, it leaves no directory.

    Returns:
        The run, as `open_run` gives it.

    Raises:
        BoardFault, BoardLost, BoardSilent, BoardRefused: the motion was stopped; what was recorded until then is in
            the directory.
        TrajectoryError: the motion may not be played on this bench (`Bench.admit`); nothing has moved.
        RunError: the directory exists already.

    >>> with jb.open_bench("bench.toml") as bench:
    ...     jb.record(bench, jb.random_excitation(bench.robot, period=5.024), "runs/first")
    Traceback (most recent call last):
        ...
    jointbench.errors.BenchFileError: bench 'arm' is open but not connected; call connect() first
    """
    bench.admit(excitation, repeats)
    bench.move_to(excitation.home)
    about = bench.provenance(excitation=excitation.to_dict(), repeats=repeats, **provenance)
    with SafeInterrupt() as interrupt:  # or a STOP may come before there is anybody to take the directory away again
        recorder = Recorder(directory, about)
        try:
            with recorder:
                interrupt.check()
                bench.play(excitation, repeats, recorder, progress)
        except (KeyboardInterrupt, SystemExit, StopAsked):
            if recorder.tally.ledger().samples_received == 0:
                shutil.rmtree(recorder.path)
            raise
    return open_run(directory)
