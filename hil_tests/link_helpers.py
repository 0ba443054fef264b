"""Short motions and their recording for tests on a bench, and benches with one board that is not as it should be."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench import Bench, LockstepClock, open_bench
from jointbench.bench.clock import AttendedClock
from jointbench.recording import Recorder, Run, open_run
from jointbench.testing.roles import TakingTurns

HERE = Path(__file__).resolve().parent
COBOT = HERE / "benches" / "cobot6.toml"
COBOT_BUS = HERE / "benches" / "cobot6_bus.toml"
NURSING_ARM = HERE / "benches" / "nursing_arm.toml"
NURSING_DUAL = HERE / "benches" / "nursing_dual.toml"
REHAB_ARM = HERE / "benches" / "rehab_arm.toml"
REHAB_PLANT = HERE / "virtual_bench" / "plants" / "rehab_arm.toml"

WAY = 0.1  # [rad], of each joint, or what the bench allows
PERIOD = 1.024  # [s], a whole number of knot steps


@dataclass(frozen=True, eq=False)
class Wave:
    """There and back, s(t) = (1 - cos wt)² / 4 of `way`: at rest and without acceleration at both ends."""

    start: Array
    way: Array
    period: float = 1.024

    def evaluate(self, time: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of all joints."""
        w = 2.0 * np.pi / self.period
        c, s = np.cos(w * time)[:, None], np.sin(w * time)[:, None]
        twice = np.cos(2.0 * w * time)[:, None]
        q = self.start + self.way * (1.0 - c) ** 2 / 4.0
        return q, self.way * w * s * (1.0 - c) / 2.0, self.way * w**2 * (c - twice) / 2.0


def wave(bench: Bench, way: float = 0.1, period: float = 1.024) -> Wave:
    """A wave of every joint from home by `way`, or as far as its acceleration limit allows in that time."""
    return Wave(np.array(bench.robot.home), np.minimum(way, widest_way(bench, period)), period)


def widest_way(bench: Bench, period: float) -> Array:
    """The way of a wave at 0.9 of each joint's acceleration limit: its largest acceleration is way (2 pi / period)²."""
    return 0.9 * bench.robot.acceleration_limits * (period / (2.0 * np.pi)) ** 2


def ripple(bench: Bench) -> Wave:
    """A small wave from where the joints are, over in half the time: for tests that ask only whether boards play."""
    return Wave(bench.positions(), np.full(bench.robot.n_joints, 0.02), period=0.512)


@contextmanager
def ready_bench(live: Path | str) -> Iterator[Bench]:
    """The bench of a live bench file, configured and at home."""
    with open_bench(live) as bench:
        get_ready(bench)
        yield bench


def get_ready(bench: Bench) -> None:
    """Connect and configure a bench, and move it home."""
    bench.connect()
    bench.configure()
    bench.move_to(bench.robot.home)


def record_wave(bench: Bench, directory: Path, repeats: int = 1, motion: Wave | None = None, **play) -> Run:
    """Record a wave on a connected and configured bench, or another motion."""
    recorder = Recorder(directory, bench.provenance(repeats=repeats))
    bench.play(motion or wave(bench), repeats, recorder, **play)
    return open_run(directory)


# The firmware, but for what is changed before it starts.
_VARIATION = """
from jointboard import wire
{before}
from board import Board
board = Board()
board.disable()
{board}
from jointboard import app
app.run(board)
"""


def variation(before: str = "", board: str = "") -> str:
    """A program that is the firmware with lines carried out before its wire is used, and on its `board`."""
    return _VARIATION.format(before=before, board=board)


def bench_with_program(folder: Path, joint: str, program: str, like: Path = COBOT) -> Path:
    """A bench file like another whose board of `joint` runs `program` (MicroPython) instead of the firmware."""
    folder.mkdir(parents=True, exist_ok=True)
    own = folder.resolve() / "program.py"
    own.write_text(program)
    text = like.read_text().replace('"../virtual_bench', f'"{HERE}/virtual_bench')
    entry = f'joint = "{joint}"\nurl = "unix:"\n'
    assert entry in text
    path = folder / "bench.toml"
    path.write_text(text.replace(entry, f'{entry}program = "{own}"\n'))
    return path


def rehab_arm_with_a_free_hand(folder: Path) -> Path:
    """A bench file, beside a robot's and a plant's, of the rehabilitation arm without the motor of its fifth joint."""
    folder.mkdir(parents=True, exist_ok=True)
    library = HERE.parent / "host" / "jointbench" / "model" / "library"
    robot, plant = folder / "rehab_arm.toml", folder / "plant.toml"
    robot.write_text(_without_motor(library / "rehab_arm.toml", "[joints.drive]", "\n\n"), encoding="utf-8")
    plant.write_text(_without_motor(REHAB_PLANT, "rotor_inertia_kg_m2", "torque_range_Nm = 5\n"), encoding="utf-8")
    with plant.open("a", encoding="utf-8") as file:
        file.write("coulomb_Nm = 0.006\nviscous_Nms_rad = 0.01\n")  # of plain ball bearings
    path = folder / "bench.toml"
    text = REHAB_ARM.read_text(encoding="utf-8").replace('robot = "rehab_arm"', f'robot = "{robot}"')
    path.write_text(text.replace("../virtual_bench/plants/rehab_arm.toml", str(plant)), encoding="utf-8")
    return path


def _without_motor(path: Path, begin: str, end: str) -> str:
    """A file's text without the lines of the fifth joint from `begin` to `end`."""
    text = path.read_text(encoding="utf-8")
    first = text.index(begin, text.index('name = "j5"'))
    return text[:first] + text[text.index(end, first) + len(end) :]


def inject(bench: Bench, fault: str, node: int, **value: float) -> None:
    """Break something at a board of a virtual bench (docs/faults.md) until the bench is left."""
    ask_bench(bench, {"inject": {"node": node, "fault": fault, **value}})


def ask_bench(bench: Bench, request: dict[str, Any]) -> dict[str, Any]:
    """Ask the control socket of a virtual bench that a test plays on."""
    clock = bench.clock
    while isinstance(clock, (AttendedClock, TakingTurns)):
        clock = clock.clock
    assert isinstance(clock, LockstepClock)
    return clock.ask(request)


def at_rest(bench: Bench, period: float) -> Wave:
    """Every joint held where it is."""
    return Wave(bench.positions(), np.zeros(bench.robot.n_joints), period)


def small_wave(bench: Bench, way: float = WAY, period: float = PERIOD) -> Wave:
    """Every joint there and back by `way` [rad], or as far as bench and robot allow, towards its window's middle."""
    start, way = bench.positions(), min(way, 0.9 * bench.file.terms.limits.get("position_rad", way))
    middle = bench.robot.position_limits.mean(axis=1)
    return Wave(start, np.where(start > middle, -1.0, 1.0) * np.minimum(way, widest_way(bench, period)), period)


def record(bench: Bench, motion: Wave, folder: Path, repeats: int = 1) -> Run:
    """Play a motion and record it."""
    bench.play(motion, repeats, Recorder(folder, bench.provenance(repeats=repeats)))
    return open_run(folder)
