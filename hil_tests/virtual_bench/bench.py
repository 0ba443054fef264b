"""A running virtual bench: boards, plant and ports, moved by a control client or by the wall clock."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hil_tests.virtual_bench.bench_file import QEMU, RP2040, BenchFile
from hil_tests.virtual_bench.board import Board
from hil_tests.virtual_bench.cohort import Seat
from hil_tests.virtual_bench.consoles import Consoles
from hil_tests.virtual_bench.control import ControlSocket, parse_request
from hil_tests.virtual_bench.emulators import Emulators
from hil_tests.virtual_bench.errors import BenchError, BoardStartError, ControlError
from hil_tests.virtual_bench.hardware_faults import HardwareFaults
from hil_tests.virtual_bench.kinds import PlantKind
from hil_tests.virtual_bench.live_file import features_of, write_live_file
from hil_tests.virtual_bench.lockstep import HoldingBrakes, Lockstep, NoLine
from hil_tests.virtual_bench.model import Transmission
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_variants import plant_of_seed, true_robot
from hil_tests.virtual_bench.rp2040.wiring import channels_missing, read_wiring
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.serial_link import Port, SerialLink
from hil_tests.virtual_bench.standing_plant import StandingPlant
from hil_tests.virtual_bench.start import Stop, claim_folder
from hil_tests.virtual_bench.truth import add_clocks, true_parameters
from jointwire import MessageType, encode_frame


class Timeline:
    """Events of lockstep and serial links in the order of their times; `now_us` is the true time [µs]."""

    def __init__(self, lockstep: Lockstep, links: Sequence[SerialLink]) -> None:
        """Stand at time 0."""
        self._lockstep = lockstep
        self._links = tuple(links)
        self._wired = tuple(link for link in links if link.wired)
        self._lines = {node: link for link in links for node in link.nodes}
        self.now_us = 0

    def advance(self, until_us: int) -> bool:
        """Go to the next event, at most to `until_us`, and say whether bytes have reached the client there."""
        next_us = min(self._lockstep.next_us, *[link.next_us for link in self._links])
        if next_us > until_us:
            self.now_us = until_us
            return False
        self.now_us = next_us
        if next_us == self._lockstep.next_us:
            self._lockstep.step(self._lines)
            if next_us % self._lockstep.tick_us == 0:
                for link in self._wired:
                    link.collect(next_us)
        arrived = False
        for link in self._links:
            if link.next_us <= next_us or link.port.waiting:
                arrived = link.deliver(next_us) or arrived
        return arrived

    def run_on(self, longest_us: int) -> None:
        """Let time pass without a client until no board drives its motor; forget the client's bytes."""
        nobody, end_us = dict.fromkeys(self._lines, NoLine()), self.now_us + longest_us
        while self._lockstep.driving and self._lockstep.next_us <= end_us:
            self.now_us = self._lockstep.next_us
            self._lockstep.step(nobody)
        for link in self._links:
            link.restart()


CORE_NAME = "JOINTBENCH_CORE"  # environment variable: number of the core that a bench in lockstep and its boards share
BEHIND = "fell behind real time"  # begins what a bench says when boards were kept waiting
_LATE = 0.05  # [s]
_LOOK_EVERY = 16  # events, for whether the client is still there
_RUN_ON_US = 3_000_000  # how long boards may take to notice that their client has gone
_START_US = 7_000_000  # chips have started by then: to hash and load their image takes 4 s, with two motors 5 s
_ASK_EVERY_US = 200_000
_LAST_ANSWERS_US = 50_000  # what was asked while it started is answered by then
_BYTES_LATE = 5.0  # [s] of the wall clock that announced bytes may be under way between two processes


class Bench:
    """All that runs: `boards` by the nodes of their motors, and `links` by their key, the lowest node on each port."""

    def __init__(
        self, description: BenchFile, kind: PlantKind, seed: int, noise_seed: int | None, folder: Path
    ) -> None:
        """Start the boards; their folders ("flash") lie in `folder`/boards.

        Raises:
            BenchError: the interpreter is missing or wrong, or a board cannot be started.
        """
        truth = plant_of_seed(description.plant, description.robot, seed)
        if truth.unmodelled is not None:
            truth = replace(truth, unmodelled=seed)
        description = replace(description, plant=truth)
        emulators = Emulators(description.plant.power)
        robot = true_robot(description.plant, description.robot)
        ratios = np.rint(1e3 * Transmission(description.robot).ratio).astype(int).tolist()  # as the boards were told
        self.description = description
        sensors = Sensors(robot, description.plant, kind, seed, noise_seed)
        self._truth = true_parameters(robot, description.plant, kind, sensors)
        add_clocks(self._truth, description.boards)
        self._chips = [entry for entry in description.boards if entry.url == RP2040]
        by_voltage = np.zeros(robot.n_joints, dtype=bool)
        by_voltage[[entry.joint_index for entry in self._chips]] = True
        plant = (
            StandingPlant(robot, description.plant, kind)
            if robot.base_link or robot.feet
            else Plant(robot, description.plant, kind, by_voltage if self._chips else None)
        )
        self.boards: dict[int, Board] = {}
        self.links: dict[str, SerialLink] = {}
        self._told_dead: set[int] = set()
        board_facts: dict[int, dict[str, int]] = {}
        brakes: dict[int, tuple[int, int]] = {}
        try:
            for entry in description.boards:
                uid = f"{seed & 0xFFFFFFFF:08x}{entry.node:08x}"
                configs: list[dict[str, Any]] = []
                for motor in entry.motors:
                    facts = {"board.node": motor.node, "board.shared_line": int(entry.shares_line)}
                    board_facts[motor.node] = facts | (
                        sensors.feet.facts(motor.joint_index)
                        if entry.on_foot and sensors.feet
                        else sensors.facts(motor.joint_index) | {"drive.ratio": ratios[motor.joint_index]}
                    )
                    if entry.url == RP2040:
                        wiring = read_wiring(entry.wiring, len(entry.motors))
                        own = wiring if motor.node == entry.node else wiring["partner"]
                        board_facts[motor.node]["board.channels"] &= ~channels_missing(own)
                        if "brake" in own:
                            brakes[motor.joint_index] = own["brake"]["engage_ms"], own["brake"]["release_ms"]
                    elif entry.brake_ms:
                        brakes[motor.joint_index] = engage, release = entry.brake_ms
                        board_facts[motor.node] |= {"brake.engage_time": engage, "brake.release_time": release}
                    configs.append({"node": motor.node, "facts": board_facts[motor.node]})
                config: dict[str, Any] = {"node": entry.node, "uid": uid, **configs[0]}
                if entry.module:
                    config["module"] = dict(entry.module)
                if configs[1:]:
                    config["partner"] = configs[1]
                board = emulators.start(entry, folder / "boards" / entry.joint, config)
                self.boards |= dict.fromkeys([motor.node for motor in entry.motors], board)
            for line in description.lines:
                link = SerialLink(line, description.link, seed)
                self.links[link.key] = link
        except BenchError:
            self.close()
            raise
        seats = [
            Seat(
                tuple(motor.node for motor in entry.motors),
                self.boards[entry.node],
                () if entry.on_foot else tuple(motor.joint_index for motor in entry.motors),
                entry.clock,
                entry.joint_index if entry.on_foot else None,
                description.hears_sync(entry),
            )
            for entry in description.boards
        ]
        model = description.link
        joints = {
            motor.node: robot.feet[motor.joint_index].joint if entry.on_foot else motor.joint_index
            for entry in description.boards
            for motor in entry.motors
        }
        feet = {entry.node for entry in description.boards if entry.on_foot}
        self._channels = {node: of["board.channels"] for node, of in board_facts.items() if node not in feet}
        chips = [entry.node for entry in self._chips]
        pairs, is_arm = [seat.nodes for seat in seats], not (robot.base_link or robot.feet)
        self._faults = HardwareFaults(board_facts, joints, robot.n_joints, pairs, chips, is_arm)
        self._lockstep = Lockstep(
            plant, sensors, seats, self._faults, robot.n_joints, model.service_us, model.sync_us, description.tick_us,
            HoldingBrakes(brakes, description.tick_us),
        )  # fmt: skip
        self._timeline = Timeline(self._lockstep, list(self.links.values()))
        self._consoles = Consoles(self.boards, self.links.values())

    @property
    def dead(self) -> dict[str, str]:
        """Why each dead board died, by node."""
        return {str(node): board.death for node, board in self.boards.items() if board.death is not None}

    @property
    def paths(self) -> dict[int, str]:
        """Where a client finds each board, by node."""
        return {node: link.port.path for link in self.links.values() for node in link.nodes}

    def features(self, has_control: bool) -> set[str]:
        """What the boards have and can be asked, in the words of jointbench.testing."""
        boards = self.description.boards
        has_sync = self.description.link.sync_us > 0 and all(map(self.description.hears_sync, boards))
        return features_of(self._channels.values(), has_control, has_sync)

    def serve_control(self, control: ControlSocket, stop: Stop) -> None:
        """Serve control clients, one after the other, until told to stop."""
        ports, nodes = frozenset(self.links), frozenset(self.boards)
        while not stop.requested:
            # Ports are emptied while a client writes, so that no client can block on a full one.
            had_client, consoles = control.connected, self._consoles
            sources = [*stop.sources, *control.sources(), *(self._ports if had_client else consoles.sources())]
            ready, _, _ = select.select(sources, [], [], None if had_client else consoles.timeout)
            if stop.told_by(ready):
                return
            if had_client:
                self._take_from(ready)
            else:
                consoles.carry(ready)
            for line in control.serve(ready):
                try:
                    control.answer(self._carry_out(parse_request(line, ports, nodes), control, stop))
                except ControlError as error:
                    control.answer({"error": str(error)})
            if control.connected and not had_client:
                consoles.forget()
            if had_client and not control.connected:
                self._timeline.run_on(_RUN_ON_US)
                self._faults.heal_all()
                self._lockstep.trace.forget()

    def await_boards(self) -> None:
        """Let the first tick pass, which boards answer once they have started."""
        self._pass_time(self.description.tick_us)

    def await_chips(self) -> None:
        """Let time pass until every chip has answered once; one with another program than the firmware may be silent.

        Raises:
            BoardStartError: one has not answered, or has died.
        """
        silent = self._chips
        end_us = self._timeline.now_us + _START_US
        while silent and self._timeline.now_us < end_us:
            for entry in silent:
                link = self.links[str(entry.node)]
                link.client_sends(encode_frame(MessageType.PING, entry.node, 0, nonce=0), self._timeline.now_us)
            until_us = self._timeline.now_us + _ASK_EVERY_US
            self._pass_time(until_us)
            silent = [entry for entry in silent if not self.links[str(entry.node)].port.sent]
            for entry in silent:
                death, late = self.boards[entry.node].death, until_us >= end_us and entry.program is None
                if death or late:
                    why = death or f"no answer within {1e-6 * _START_US:g} s of its time"
                    raise BoardStartError(f"board of node {entry.node} does not start: {why}")
        if self._chips:
            self._pass_time(self._timeline.now_us + _LAST_ANSWERS_US)
        for entry in self._chips:
            self.links[str(entry.node)].restart()

    def _pass_time(self, until_us: int) -> None:
        while self._timeline.now_us < until_us:
            self._timeline.advance(until_us)

    def serve_wall_clock(self, stop: Stop) -> None:
        """Run in real time until told to stop; a bench that falls too far behind says so and goes on from there."""
        tick_us = self.description.tick_us
        due = time.monotonic()
        while True:
            due += 1e-6 * tick_us
            late = time.monotonic() - due
            if late > _LATE:
                now = self._timeline.now_us * 1e-6
                print(f"{BEHIND} by {late:.2f} s at {now:.3f} s: too much for this machine", flush=True)
                due += late
            ready, _, _ = select.select([*stop.sources, *self._ports], [], [], 0.0)
            if stop.told_by(ready):
                return
            self._take_from(ready)
            for link in self.links.values():
                link.client_sends(link.port.release(link.port.taken), self._timeline.now_us)
            end_us = self._timeline.now_us + tick_us
            while self._timeline.now_us < end_us:
                self._timeline.advance(end_us)
            self._report_deaths()
            time.sleep(max(0.0, due - time.monotonic()))

    def close(self) -> None:
        """End the boards and close their ports."""
        for board in dict.fromkeys(self.boards.values()):
            board.close()
        for port in self._ports:
            port.close()

    @property
    def _ports(self) -> list[Port]:
        return [link.port for link in self.links.values()]

    def _carry_out(self, request: dict[str, Any], control: ControlSocket, stop: Stop) -> dict[str, Any]:
        if "truth" in request:
            return {"truth": self._truth}
        if "restart" in request:
            return self._restart(request["restart"])
        if "inject" in request:
            self._faults.inject(request["inject"])
            return {"tick": self._lockstep.next_tick(request["inject"].node)}
        if "heal" in request:
            altered = self._faults.heal(request["heal"])
            return {"tick": self._lockstep.next_tick(request["heal"]), "altered": altered}
        if "outputs" in request:
            return {"outputs": self._lockstep.trace.take(request["outputs"])}
        self._await_bytes(request["written"])
        timeline, end_us = self._timeline, self._timeline.now_us + request["wait_us"]
        for event in itertools.count():
            if timeline.now_us >= end_us or stop.requested or (event % _LOOK_EVERY == 0 and not control.client_waits()):
                break
            if timeline.advance(end_us) or self._report_deaths():
                break
        sent_totals = {key: link.port.sent for key, link in self.links.items()}
        return {"time_us": timeline.now_us, "sent": sent_totals, "dead": self.dead}

    def _restart(self, node: int) -> dict[str, Any]:
        try:
            self.boards[node].restart()
        except BenchError as error:
            raise ControlError(f"board of node {node} does not start again: {error}") from error
        self._told_dead -= {other for other, board in self.boards.items() if board is self.boards[node]}
        return {"restarted": node}

    def _await_bytes(self, written: dict[str, int]) -> None:
        """Wait for the bytes a client has announced, by port, and send them on their way."""
        deadline = time.monotonic() + _BYTES_LATE
        for key, total in written.items():
            link = self.links[key]
            port = link.port
            while port.taken < total:
                if not select.select([port], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise ControlError(
                        f"port of node {key}: the client says it wrote {total} bytes since it connected, but only "
                        f"{port.taken} came; count what the port's write() returned"
                    )
                port.take()
            link.client_sends(port.release(total), self._timeline.now_us)

    def _take_from(self, ready: list[Any]) -> None:
        for port in self._ports:
            if port in ready:
                port.take()

    def _report_deaths(self) -> bool:
        """Print deaths that are news, and say whether there are any."""
        news = {node: board.death for node, board in self.boards.items() if board.death and node not in self._told_dead}
        for node, death in news.items():
            print(f"board of node {node} died: {death}", flush=True)
            self._told_dead.add(node)
        return bool(news)


def _share_core() -> None:
    """Keep this process and the boards that it starts on the core that `JOINTBENCH_CORE` names, if it names one.

    In lockstep bench and boards wait for each other most of the time. On one core waking takes no interrupt and caches
    stay warm: 8 to 25 % less CPU time for the bench, 20 to 30 % for its boards, where two benches share two cores.
    """
    core, cores = os.environ.get(CORE_NAME, ""), sorted(os.sched_getaffinity(0))
    if core.isdecimal() and len(cores) > 1:
        os.sched_setaffinity(0, {cores[int(core) % len(cores)]})


@contextlib.contextmanager
def running_bench(
    description: BenchFile, kind: PlantKind, seed: int, realtime: bool, folder: Path, noise_seed: int | None = None
) -> Generator[tuple[Path, Bench, ControlSocket | None]]:
    """Start a bench in `folder` and write its live file; on leaving, take the file away and end the boards.

    It runs by the wall clock with `realtime`, or where its file says so.
    """
    folder = folder.resolve()
    clock = "wall" if realtime else description.terms.clock
    lock = claim_folder(folder)
    live = folder / "bench.toml"
    live.unlink(missing_ok=True)
    if clock != "wall" and not any(entry.url in (QEMU, RP2040) for entry in description.boards):
        _share_core()
    bench = Bench(description, kind, seed, noise_seed, folder)
    control = None
    settings: dict[str, str | int] = {"clock": clock, "plant": kind, "seed": seed}
    if noise_seed is not None:
        settings["noise_seed"] = noise_seed
    settings["started_from"] = description.started_from
    try:
        bench.await_chips()
        if clock != "wall":
            control = ControlSocket(folder / "control")
            settings["control"] = str(control.path)
        else:
            bench.await_boards()  # a client by the wall clock expects boards that are there
        pids = {node: board.pid for node, board in bench.boards.items()}
        write_live_file(live, description, settings, bench.features(control is not None), bench.paths, pids)
        yield live, bench, control
    finally:
        live.unlink(missing_ok=True)
        if control:
            control.close()
        bench.close()
        lock.close()
