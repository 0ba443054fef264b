"""What must never become an estimate: each is brought about on a bench of its own, and has to be refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hil_tests.link_helpers import inject
from hil_tests.virtual_bench import virtual_bench
from jointbench import Excitation
from jointbench.errors import FootOffGround, JointbenchError, RobotFalls, StuckFootSensor, WrongTotalMass
from jointbench.identification.zero_moment_point import stance_of_run
from jointbench.link import Bench, open_bench
from jointbench.link.playback import Progress
from jointbench.recording import Run, record
from tools.demo.story import Stage

TRUNK, SUPPORT_FOOT = 6, 13
"""Nodes of the boards that a fault strikes."""

SHOVE_N, SHOVED_AFTER = 60.0, 3.0
"""How hard, and how long after the motion's start [s]."""

WRONG_SHARE = 0.9
"""Of the robot's mass that is told instead of it."""


@dataclass(frozen=True)
class Refusal:
    """What was wrong, how it was named, and in which words.

    Attributes:
        what: was brought about.
        named: the class of the error that came of it, "nothing" where none came.
        wanted: the one it should be.
        words: the message.
    """

    what: str
    named: str
    wanted: str
    words: str

    @property
    def ok(self) -> bool:
        """Whether it was named as what it is."""
        return self.named == self.wanted


def refusals(stage: Stage, bench_file: Path, motion: Excitation, good: Run, total_mass: float) -> tuple[Refusal, ...]:
    """Break a foot's sensor, weigh wrongly, shove the robot over, and try to go on with it lying there.

    Args:
        stage: where and how.
        bench_file: of the emulated boards.
        motion: what is played meanwhile.
        good: a recording without a fault, for what only the host is told wrongly.
        total_mass: of the robot [kg].
    """
    found = [
        _refusal("total mass told 10 % too low", WrongTotalMass, lambda: stance_of_run(good, WRONG_SHARE * total_mass))
    ]
    with virtual_bench(bench_file, stage.plant, stage.seed, out=stage.out / "faults", board=stage.board) as live:
        with open_bench(live) as bench:
            _ready(bench)
            inject(bench, "foot_force_1_stuck", SUPPORT_FOOT)
            found.append(
                _refusal(
                    "sensor of the front left corner stuck",
                    StuckFootSensor,
                    lambda: stance_of_run(_play(bench, motion, stage, "stuck"), total_mass),
                )
            )
        with open_bench(live) as bench:
            _ready(bench)
            shove = _Shove(bench)
            found.append(
                _refusal("robot shoved over", RobotFalls, lambda: _play(bench, motion, stage, "shoved", shove))
            )
        with open_bench(live) as bench:
            _ready(bench)
            found.append(_refusal("foot off the ground", FootOffGround, lambda: _play(bench, motion, stage, "lying")))
    return tuple(found)


def _ready(bench: Bench) -> None:
    bench.connect()
    bench.clear()
    bench.configure()


@dataclass
class _Shove:
    """Pushes at the trunk, once the robot has moved for a while."""

    bench: Bench
    done: bool = False

    def __call__(self, progress: Progress) -> None:
        if not self.done and progress.elapsed >= SHOVED_AFTER:
            self.done = True
            inject(self.bench, "shove", TRUNK, force_N=SHOVE_N)


def _play(
    bench: Bench, motion: Excitation, stage: Stage, name: str, progress: Callable[[Progress], None] | None = None
) -> Run:
    return record(bench, motion, stage.out / name, 1, progress, seed=stage.seed)


def _refusal(what: str, wanted: type[JointbenchError], attempt: Callable[[], object]) -> Refusal:
    try:
        attempt()
    except JointbenchError as error:
        return Refusal(what, type(error).__name__, wanted.__name__, str(error))
    return Refusal(what, "nothing", wanted.__name__, "")
