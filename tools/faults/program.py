"""A host that is `jointbench run` itself, on a terminal of its own: what it must refuse, and what it must obey."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, cast

from jointbench import bench as bench_room
from jointbench.bench import Bench, BenchFile, Clock, open_bench
from jointbench.cli.console import Console
from jointbench.cli.main import main
from jointbench.excitation import Excitation, random_excitation
from jointbench.files import sealed_json, write_file
from jointbench.model import load_robot
from jointbench.recording import read_result
from jointbench.stopping import STOPPING, exit_code
from jointwire import State
from tools.faults.cell import Cell, CellNotRun, StateNotReached, WorkerLost
from tools.faults.subject import HOT, JOINT, NODE, PERIOD, ROBOT, CountedRecorder, MomentClock, load, set_up
from tools.faults.verdict import Evidence, read_recorded

AWAY = 0.1  # [rad], from where the joint stands to where the motion begins: what is refused must not go there either
SHARE = 0.3  # of its limits, of a motion that is stopped
REPEATS = 2
LATER_US = 400_000, 900_000  # from a motion's START to its STOP; in other states it comes as soon as they do
HOLD_US = 100_000
KEEP_ALIVE_US = 50_000
REST_US = 20_000
NEVER_US = 1 << 62
PATIENCE_S = 120.0  # of the wall clock

STOPS = ("hangup", "terminal_closed", "connection_lost")
EDITED_ROBOTS: dict[str, tuple[str, str]] = {  # of the robot file's first joint
    "limits_lowered": ("acceleration_deg_s2 = 600", "acceleration_deg_s2 = 10"),
    "kinematics_edited": ("a_mm = 0", "a_mm = 50"),
    "drive_edited": ("torque_constant_Nm_A = 0.35", "torque_constant_Nm_A = 0.30"),
}


def planned(robot: str, away: float) -> Excitation:
    """A motion of a robot about a place so far away from its home, within all of its limits."""
    loaded = load_robot(robot)
    return random_excitation(replace(loaded, home=tuple(home + away for home in loaded.home)), period=1.6)


_PLANS: dict[str, Callable[[], Excitation]] = {
    "": lambda: planned(ROBOT, AWAY),
    "other_robot": lambda: planned("cobot6:1", AWAY),
    "other_joints": lambda: replace(planned("cobot6", AWAY), robot_name=ROBOT, digests={}),
    # Its file still says that it was proved.
    "forged": lambda: replace(planned(ROBOT, AWAY), weights=3.0 * planned(ROBOT, AWAY).weights),
    **dict.fromkeys(STOPS, lambda: planned(ROBOT, 0.0).scaled(SHARE)),
}


def files_of(cell: Cell, live: Path, folder: Path) -> tuple[Path, Path]:
    """The bench file and the plan that the program of a cell is given."""
    what, text = str(cell.fault.setting), live.read_text(encoding="utf-8")
    if what == "bench_lowered":
        text += "\n[limits]\nvelocity_rad_s = 0.05\n"
    if what in EDITED_ROBOTS:
        name, _, modules = ROBOT.partition(":")
        robot = (resources.files("jointbench.model") / "library" / f"{name}.toml").read_text(encoding="utf-8")
        write_file(folder / f"{name}.toml", robot.replace(*EDITED_ROBOTS[what], 1))
        text = re.sub(r"^robot = .*$", f'robot = "{folder / name}.toml:{modules}"', text, flags=re.MULTILINE)
    bench = write_file(live.with_name("given.toml"), text)
    return bench, write_file(folder / "plan.json", plan_text(what if what in _PLANS else ""))


@cache
def plan_text(what: str) -> str:
    """Content of a plan's file, by what is wrong with it, if anything."""
    # In a process of its own: planning starts threads, and this one forks.
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as elsewhere:
        return elsewhere.submit(_make_plan, what).result()


def _make_plan(what: str) -> str:
    return sealed_json(_PLANS[what]().to_dict())


def meet_program(cell: Cell, live: Path, folder: Path) -> Evidence:
    """Have the program play on a bench, and hear of what came of it.

    Raises:
        CellNotRun: it did not say how it ended.
        WorkerLost: it did not end.
    """
    bench, plan = files_of(cell, live, folder)
    _on_a_terminal(cell, partial(_be_program, cell, bench, plan, folder))
    try:
        report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CellNotRun(f"{cell.id}: the program did not say how it ended; see {folder}") from None
    recorded = read_recorded(folder / "run", JOINT, NODE)
    if recorded is None and not report["samples"]:
        report["taken"] = 0  # a STOP before the first sample leaves no run, as it must
    return Evidence(
        outputs=tuple((tick, enable, command) for tick, enable, command in report["outputs"]),
        shown=report["shown"],
        armed=0,
        started=0,
        off_after=None,
        error=_error_in(report, folder / "run"),
        trip=0,
        second_error="",
        latched=0,
        taken=report["taken"],
        recorded=recorded,
        recovery="",
        text=report["text"],
        strikes=report["strikes"],
        done=False,
    )


def _error_in(report: Mapping[str, Any], run: Path) -> str:
    """The error that ended the program; of a STOP also what the run says of it, where that is something else."""
    outcome = (read_result(run) or {}).get("outcome", "none") if run.exists() else ""
    if report["error"] not in STOPPING or outcome in ("", "finished") or report["error"] in outcome:
        return report["error"]
    return f"{report['error']}, though the run says {outcome}"


def _be_program(cell: Cell, bench: Path, plan: Path, folder: Path, tells: int, hears: int) -> NoReturn:
    def ask_to_close() -> None:
        os.write(tells, b"!")
        os.read(hears, 1)

    try:
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
        _CellProgram(cell, bench, plan, folder, ask_to_close).run()
    except BaseException:
        (folder / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(0)


def _on_a_terminal(cell: Cell, act: Callable[[int, int], NoReturn]) -> None:
    """Do something in a process of its own on a terminal of its own, which is closed when it asks for that."""
    hears, tells = os.pipe()
    asks, answers = os.pipe()
    leader, terminal = os.forkpty()
    if leader == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if cell.fault.setting == "connection_lost" and (job := os.fork()):  # as the shell that ssh has started
            os.waitpid(job, 0)
            os._exit(0)
        act(tells, asks)
    os.close(tells)
    os.close(asks)
    closed = waited = False
    try:
        while True:
            ready, _, _ = select.select([hears, *([] if closed else [terminal])], [], [], PATIENCE_S)
            if not ready:
                raise WorkerLost(f"{cell.id}: the program did not end within {PATIENCE_S:g} s")
            if terminal in ready and not closed:
                try:
                    os.read(terminal, 1 << 16)
                except OSError:  # nobody has it open any more
                    os.close(terminal)
                    closed = True
            if hears in ready:
                if not os.read(hears, 1):
                    return
                if not closed:
                    os.close(terminal)
                    closed = True
                if cell.fault.setting == "connection_lost":
                    os.waitpid(leader, 0)  # whose end tells its jobs
                    waited = True
                os.write(answers, b"!")
    finally:
        for descriptor in (hears, answers, *([] if closed else [terminal])):
            os.close(descriptor)
        if not waited:
            if sys.exc_info()[0]:
                os.kill(leader, signal.SIGKILL)
            os.waitpid(leader, 0)


class WatchedClock(MomentClock):
    """A clock that has somebody look after each wait, and before it is let go."""

    def __init__(
        self, clock: Clock, look: Callable[[], None], strike: Callable[[], None], leave: Callable[[], None]
    ) -> None:
        super().__init__(clock, NEVER_US, strike)
        self._look, self._leave = look, leave

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """As any clock."""
        super().wait(timeout_us, gather_us, timed_us)
        self._look()

    def close(self) -> None:
        """Look a last time."""
        self._leave()
        super().close()


class Program:
    """`jointbench run` in this process, with an eye on its only board.

    Attributes:
        folder: where its run goes, as "run", and its report, as "report.json".
        report: what came of it.
        bench, recorder: once it has them.
        begun: whether the program has its bench, and what it does is noted.
    """

    def __init__(self, bench: Path, plan: Path, folder: Path) -> None:
        """Take what it will be given."""
        self.live, self.plan, self.folder = bench, plan, folder
        self.bench: Bench | None = None
        self.begun = False
        self.recorder: CountedRecorder | None = None
        self.report: dict[str, Any] = {
            "error": "", "text": "", "strikes": 0, "shown": 0, "outputs": [], "taken": 0, "samples": 0,
        }  # fmt: skip

    def run(self) -> int:
        """Be the program; returns its exit code, when it has said in a file how it ended."""
        bench_room.open_bench = self._open
        sys.modules["jointbench.recording.recorder"].Recorder = self._record  # type: ignore[attr-defined]
        cast(Any, Console).alarm = self._noted(Console.alarm)
        words = ["run", str(self.live), "--plan", str(self.plan), "--repeats", str(REPEATS), "--clear"]
        code = main([*words, "--out", str(self.folder / "run")])
        (self.folder / "report.json").write_text(json.dumps(self.report), encoding="utf-8")
        return code

    def begin(self) -> None:
        """Do what is to be done before the program has its bench."""

    def look(self) -> None:
        """Look around, after each wait."""

    def strike(self) -> None:
        """Do what is to be done at the clock's moment; then it can be told from the report when that was."""
        self.report |= {"strikes": 1, "shown": self.ask({"heal": NODE})["tick"]}
        if self.recorder:
            self.report |= {"taken": self.recorder.taken, "samples": self.recorder.blocks}

    def leave(self) -> None:
        """Note what the motor was given, to the end."""
        if self.bench is None:
            return
        self.ask({"wait_us": REST_US, "written": {}})  # its ports are closed, and it stays as it is
        self.report["outputs"] += self.ask({"outputs": NODE})["outputs"]

    @property
    def clock(self) -> WatchedClock:
        """Of the bench."""
        assert self.bench is not None
        assert isinstance(self.bench.clock, WatchedClock)
        return self.bench.clock

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the bench."""
        return self.clock.ask(request)

    def _open(self, path: str) -> Bench:
        bench = open_bench(path, around=lambda clock: WatchedClock(clock, self.look, self.strike, self.leave))
        self.bench = bench
        self.begin()
        self.ask({"outputs": NODE})  # from now on they are noted
        self.report["shown"] = self.ask({"heal": NODE})["tick"]
        self.begun = True
        return bench

    def _record(self, directory: Path, provenance: Mapping[str, Any]) -> CountedRecorder:
        self.recorder = CountedRecorder(directory, provenance)
        return self.recorder

    def _noted(self, alarm: Callable[[Console, str, str], None]) -> Callable[[Console, str, str], None]:
        def noted(console: Console, who: str, text: str) -> None:
            error = sys.exc_info()[1]
            code = exit_code(error) if isinstance(error, (KeyboardInterrupt, SystemExit)) else None
            name = type(error).__name__ if code is None else signal.Signals(code - 128).name
            self.report |= {"error": name, "text": text}
            alarm(console, who, text)

        return noted


class _CellProgram(Program):
    """The program of a cell: it finds its board in a state, or is stopped when the board is in it."""

    def __init__(self, cell: Cell, bench: Path, plan: Path, folder: Path, asks_to_close: Callable[[], None]) -> None:
        super().__init__(bench, plan, folder)
        self.cell, self.asks_to_close = cell, asks_to_close
        self.stops = cell.fault.setting in STOPS

    def run(self) -> int:
        """Be the program."""
        if not self.stops:
            self.report["strikes"] = 1  # it is given it
        return super().run()

    def begin(self) -> None:
        """Leave the board in the state in which what must be refused finds it."""
        bench = self.bench
        assert bench is not None
        if not self.stops:
            edited, bench.robot, bench.file = (bench.robot, bench.file), load_robot(ROBOT), _unlimited(bench.file)
            leave_in(bench, self.cell.state)
            bench.robot, bench.file = edited
        elif self.cell.state is State.FAULT:
            leave_in(bench, State.FAULT)
        elif self.cell.state is State.BOOT:
            self.clock.moment_us = 0  # the first wait

    def look(self) -> None:
        """Set the moment of the STOP, when the board has come into the cell's state."""
        if not (self.stops and self.begun) or self.report["strikes"] or self.clock.moment_us < NEVER_US:
            return
        assert self.bench is not None
        if self.bench.boards[0].state is not self.cell.state:
            return
        if self.cell.state is State.RUNNING:
            self.clock.moment_us = self.clock.now_us() + random.Random(self.cell.own_seed).randint(*LATER_US)
        else:
            self.strike()

    def strike(self) -> None:
        """Let the STOP come, now."""
        assert self.bench is not None
        if self.cell.state not in (State.BOOT, self.bench.boards[0].state):
            raise StateNotReached(f"{self.cell.id}: the board is {self.bench.boards[0].state!r} already")
        super().strike()
        if self.cell.fault.setting == "hangup":
            os.kill(os.getpid(), signal.SIGHUP)
        else:
            self.asks_to_close()

    def leave(self) -> None:
        """Note what the motor was given, if there was a STOP."""
        super().leave()
        if self.stops and not self.report["strikes"]:
            raise StateNotReached(f"{self.cell.id}: all was over before its STOP")


def _unlimited(file: BenchFile) -> BenchFile:
    return replace(file, terms=replace(file.terms, limits={}))


def leave_in(bench: Bench, state: State) -> None:
    """Leave the only board of a bench in a state, as another program did that has just ended."""
    if state is State.BOOT:
        return
    (board,) = bench.boards
    set_up(bench)
    if state is State.DISARMED:
        return
    load(bench)
    if state is State.LOADED:
        return
    board.arm()
    if state is State.FAULT:
        assert isinstance(bench.clock, MomentClock)
        bench.clock.ask({"inject": {"node": board.node, **HOT}})
        _hold(bench, HOLD_US)
        bench.clock.ask({"heal": board.node})
        return
    _hold(bench, HOLD_US)
    if state is not State.ARMED:
        board.start()
        _hold(bench, HOLD_US if state is State.RUNNING else round(1e6 * PERIOD) + HOLD_US)
    if board.state is not state:
        raise StateNotReached(f"the board is {board.state!r}, and should be left {state!r}")


def _hold(bench: Bench, for_us: int) -> None:
    end_us = bench.clock.now_us() + for_us
    while (left_us := end_us - bench.clock.now_us()) > 0:
        bench.boards[0].keep_alive()
        step_end_us = bench.clock.now_us() + min(left_us, KEEP_ALIVE_US)
        while (step_us := step_end_us - bench.clock.now_us()) > 0:
            bench.clock.wait(step_us)
