"""A running virtual bench: boards, plant and ports, moved by a control client or by the wall clock."""

import contextlib
import select
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.bench_file import BenchFile, write_live_file
from hil_tests.virtual_bench.control import ControlSocket, parse_request
from hil_tests.virtual_bench.emulated_board import EmulatedBoard, prepare_flash
from hil_tests.virtual_bench.errors import BenchError, ControlError
from hil_tests.virtual_bench.folder import claim_folder
from hil_tests.virtual_bench.interpreter import find_interpreter
from hil_tests.virtual_bench.lockstep import Lockstep, Seat
from hil_tests.virtual_bench.model import TICK, PlantKind
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.ports import Port
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.stop import Stop
from hil_tests.virtual_bench.truth import true_parameters

_RUN_ON_TICKS = 3000  # how long boards may take to notice that their client has gone
_BYTES_LATE = 5.0  # [s] of the wall clock that announced bytes may be under way between two processes
_TICK_US = round(1e6 * TICK)


class Bench:
    """All that runs; `boards` and `ports` by node, in the bench file's order."""

    def __init__(self, description: BenchFile, kind: PlantKind, seed: int, folder: Path) -> None:
        """Start the boards; their folders ("flash") lie in `folder`/boards.

        Raises:
            BenchError: the interpreter is missing or wrong, or a board cannot be started.
        """
        interpreter = find_interpreter()
        robot = description.robot
        self.description = description
        self._sensors = Sensors(robot, description.plant, kind, seed)
        self._truth = true_parameters(robot, description.plant, kind, self._sensors)
        plant = Plant(robot, description.plant, kind)
        self.boards: dict[int, EmulatedBoard] = {}
        self.ports: dict[int, Port] = {}
        self._told_dead: set[int] = set()
        try:
            for entry in description.boards:
                flash = folder / "boards" / entry.joint
                uid = f"{seed & 0xFFFFFFFF:08x}{entry.node:08x}"
                facts = {"board.node": entry.node, **self._sensors.facts(entry.joint_index)}
                prepare_flash(flash, {"node": entry.node, "uid": uid, "facts": facts}, entry.program)
                self.boards[entry.node] = EmulatedBoard(interpreter, flash)
                self.ports[entry.node] = Port()
        except BenchError:
            self.close()
            raise
        seats = [Seat(self.boards[entry.node], entry.joint_index) for entry in description.boards]
        self._lockstep = Lockstep(plant, self._sensors, seats, description.plant.supply, robot.n_joints)

    @property
    def dead(self) -> dict[str, str]:
        """Why each dead board died, by node."""
        return {str(node): board.death for node, board in self.boards.items() if board.death is not None}

    def serve_control(self, control: ControlSocket, stop: Stop) -> None:
        """Serve control clients, one after the other, until told to stop."""
        nodes = frozenset(str(node) for node in self.boards)
        while not stop.requested:
            # Ports are emptied while a client writes, so that no client can block on a full one.
            sources = [*stop.sources, *control.sources(), *(self.ports.values() if control.connected else ())]
            ready, _, _ = select.select(sources, [], [])
            if stop.told_by(ready):
                return
            self._take_from(ready)
            had_client = control.connected
            for line in control.serve(ready):
                try:
                    control.answer(self._carry_out(parse_request(line, nodes), control, stop))
                except ControlError as error:
                    control.answer({"error": str(error)})
            if had_client and not control.connected:
                self._run_on()

    def serve_wall_clock(self, stop: Stop) -> None:
        """Run in real time until told to stop; a bench that falls behind by 0.1 s goes on from there."""
        for port in self.ports.values():
            port.granted = None
        due = time.monotonic()
        while True:
            due += TICK
            late = time.monotonic() - due
            if late > 0.1:
                due += late
            ready, _, _ = select.select([*stop.sources, *self.ports.values()], [], [], 0.0)
            if stop.told_by(ready):
                return
            self._take_from(ready)
            self._step()
            self._report_deaths()
            time.sleep(max(0.0, due - time.monotonic()))

    def close(self) -> None:
        """End the boards and close their ports."""
        for board in self.boards.values():
            board.close()
        for port in self.ports.values():
            port.close()

    def _carry_out(self, request: dict[str, Any], control: ControlSocket, stop: Stop) -> dict[str, Any]:
        if "truth" in request:
            return {"truth": self._truth}
        self._await_bytes({int(node): total for node, total in request["written"].items()})
        end = self._lockstep.time_us + request["wait_us"]
        while self._lockstep.time_us < end and control.client_waits() and not stop.requested:
            if any(self._step()) or self._report_deaths():
                break
        sent_totals = {str(node): port.sent for node, port in self.ports.items()}
        return {"time_us": self._lockstep.time_us, "sent": sent_totals, "dead": self.dead}

    def _step(self) -> list[bytes]:
        """Let one tick pass between ports and boards; return what each board sent."""
        sent = self._lockstep.step([port.for_board() for port in self.ports.values()])
        for port, data in zip(self.ports.values(), sent, strict=True):
            port.put(data)
        return sent

    def _await_bytes(self, written: dict[int, int]) -> None:
        deadline = time.monotonic() + _BYTES_LATE
        for node, total in written.items():
            port = self.ports[node]
            while port.taken < total:
                if not select.select([port], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise ControlError(
                        f"node {node}: the client says it wrote {total} bytes since it connected, but only "
                        f"{port.taken} came; count what the port's write() returned"
                    )
                port.take()
            port.granted = total

    def _run_on(self) -> None:
        """Let time pass without a client until no board drives its motor, and forget the client's bytes."""
        for port in self.ports.values():
            port.restart()
        nothing = [b""] * len(self.ports)
        for _ in range(_RUN_ON_TICKS):
            if not self._lockstep.driving:
                break
            self._lockstep.step(nothing)

    def _take_from(self, ready: list[Any]) -> None:
        for port in self.ports.values():
            if port in ready:
                port.take()

    def _report_deaths(self) -> bool:
        """Print deaths that are news, and say whether there are any."""
        news = {node: board.death for node, board in self.boards.items() if board.death and node not in self._told_dead}
        for node, death in news.items():
            print(f"board of node {node} died: {death}", flush=True)
            self._told_dead.add(node)
        return bool(news)


@contextlib.contextmanager
def running_bench(
    description: BenchFile, kind: PlantKind, seed: int, realtime: bool, folder: Path
) -> Generator[tuple[Path, Bench, ControlSocket | None]]:
    """Start a bench in `folder` and write its live file; on leaving, take the file away and end the boards."""
    folder = folder.resolve()
    lock = claim_folder(folder)
    live = folder / "bench.toml"
    live.unlink(missing_ok=True)
    bench = Bench(description, kind, seed, folder)
    control = None
    settings: dict[str, str | int] = {"clock": "wall" if realtime else "virtual", "plant": kind, "seed": seed}
    try:
        if not realtime:
            control = ControlSocket(folder / "control")
            settings["control"] = str(control.path)
        ports = {node: port.path for node, port in bench.ports.items()}
        write_live_file(live, description, settings, ports, {node: board.pid for node, board in bench.boards.items()})
        yield live, bench, control
    finally:
        live.unlink(missing_ok=True)
        if control:
            control.close()
        bench.close()
        lock.close()
