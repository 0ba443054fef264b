"""Boards and plant in lockstep: the plant gives each board its tick and waits for its outputs."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.board import FULL_DUTY, BoardClock
from hil_tests.virtual_bench.cohort import Cohort, PinCohort, Seat
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.hardware_faults import HardwareFaults
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion
from hil_tests.virtual_bench.rp2040.board import Rp2040Board
from hil_tests.virtual_bench.sensors import Sensors
from jointbench.arrays import Array


def motion_between(before: Motion, after: Motion, part: float) -> Motion:
    """What sensors see of the tick's length of time that ends between two ticks.

    Positions run linearly, which at an acceleration a is wrong by up to a h²/8: 1 µrad at 10 rad/s². The converters'
    instants keep their distances and lie between those of the two ticks; temperature and voltage are the later ones.

    Args:
        before, after: motion of two ticks in a row.
        part: of the way from the first tick's end to the second's, above 0 and at most 1.
    """
    if part == 1.0:
        return after
    return Motion(
        motor_position=before.motor_position + part * (after.motor_position - before.motor_position),
        link_position=before.link_position + part * (after.link_position - before.link_position),
        current=_window(before.current, after.current, part),
        torque=_window(before.torque, after.torque, part),
        temperature=after.temperature,
        bus_voltage=after.bus_voltage,
        foot_force=before.foot_force + part * (after.foot_force - before.foot_force),
    )


def _window(before: Array, after: Array, part: float) -> Array:
    """OVERSAMPLES values at equal distances, the last `part` of the way through those of `after`."""
    both = np.concatenate((before, after))
    first = int(part * OVERSAMPLES)
    rest = part * OVERSAMPLES - first
    left = both[first : first + OVERSAMPLES]
    return left + rest * (both[first + 1 : first + 1 + OVERSAMPLES] - left)


_LONGEST = 20_000  # ticks that are kept; the oldest go first


class OutputTrace:
    """The outputs of boards as their drives have them; of a board that misses a tick or dies, too."""

    def __init__(self) -> None:
        """Note nothing until somebody asks."""
        self._noted: dict[int, deque[tuple[int, int, int]]] = {}

    @property
    def asked(self) -> bool:
        """Whether anybody asked for any board's."""
        return bool(self._noted)

    def note(self, node: int, tick: int, enable: int, command_mA: int) -> None:
        """Take a drive's outputs after a board's tick; of a chip the duty of its bridge in units of 1 / FULL_DUTY."""
        if node in self._noted:
            self._noted[node].append((tick, enable, command_mA))

    def take(self, node: int) -> list[tuple[int, int, int]]:
        """Tick, enable and command [mA] of the ticks since this was last asked of the board; at first none."""
        noted = list(self._noted.get(node, ()))
        self._noted[node] = deque(maxlen=_LONGEST)
        return noted

    def forget(self) -> None:
        """Note nothing more, until somebody asks again."""
        self._noted.clear()


OPENED = 2  # bit of a board's outputs, beside 1 for power


class HoldingBrakes:
    """The brakes of all joints, from tick to tick.

    One that a board has a pin for is open when the pin has said so for its release time, and holds again its engage
    time after the pin said otherwise. Every other joint's holds while its drive is off.

    Args:
        times: of the brakes with a pin, by joint: engage and release time [ms].
        tick_us: how long a tick is.
    """

    def __init__(self, times: Mapping[int, tuple[int, int]], tick_us: int) -> None:
        """Begin with all of them engaged."""
        self._ticks = {
            joint: tuple(-(-1000 * each // tick_us) for each in engage_release)
            for joint, engage_release in times.items()
        }
        self._still = dict.fromkeys(times, 0)  # ticks until the brake is as the pin says
        self._opened = dict.fromkeys(times, False)  # as the pin says
        self._holds = dict.fromkeys(times, True)

    def held(self, outputs: Sequence[int]) -> NDArray[np.bool_] | None:
        """Let a tick begin under the boards' outputs; which joints' brakes hold in it, None for those without power."""
        if not self._ticks:
            return None
        held = np.array([not output & 1 for output in outputs], dtype=bool)
        for joint, (engage, release) in self._ticks.items():
            opened = bool(outputs[joint] & OPENED)
            if opened is not self._opened[joint]:
                self._opened[joint] = opened
                self._still[joint] = release if opened else engage
            if self._still[joint]:
                self._still[joint] -= 1
            else:
                self._holds[joint] = not opened
            held[joint] = self._holds[joint]
        return held


class SerialLine(Protocol):
    """Where a board's bytes come from and go to, by node and true time [µs]."""

    def hears(self, node: int, time_us: int) -> bytes:
        """Bytes for a board at its tick."""
        ...

    def arrivals(self, time_us: int) -> list[tuple[int, bytes]]:
        """Bytes for a chip, which has a line of its own, that set out until `time_us`, and when."""
        ...

    def sends(self, node: int, data: bytes, time_us: int) -> None:
        """Take bytes that a board sends from then on."""
        ...


class Physics(Protocol):
    """The robot that the boards are on."""

    def advance(
        self,
        enabled: NDArray[np.bool_],
        command: Array,
        torque: Array | None,
        force: Array | None,
        held: NDArray[np.bool_] | None,
        pull: Any,
    ) -> Motion:
        """Let one tick pass under the boards' outputs and what acts from outside."""
        ...

    def standing(self) -> Motion:
        """Motion of a tick in which nothing moves."""
        ...


class NoLine:
    """A line with nobody at the other end."""

    def hears(self, node: int, time_us: int) -> bytes:
        """Return nothing."""
        return b""

    def arrivals(self, time_us: int) -> list[tuple[int, bytes]]:
        """Return nothing."""
        return []

    def sends(self, node: int, data: bytes, time_us: int) -> None:
        """Lose the bytes."""


class Lockstep:
    """True time of a bench, from event to event: ticks of boards and, as often in true time, of the plant.

    A board's outputs act from the plant's next tick on: at once where the two tick together. A joint without a living
    board has its drive off and its brake closed. Chips run with the plant, a tick of it at a time.

    Attributes:
        trace: the outputs of boards, tick by tick.
        tick_us: of the plant.
    """

    def __init__(
        self,
        plant: Physics,
        sensors: Sensors,
        seats: Sequence[Seat],
        faults: HardwareFaults,
        n_joints: int,
        service_us: int,
        sync_us: int,
        tick_us: int,
        brakes: HoldingBrakes,
    ) -> None:
        """Stand at time 0, when boards have just started.

        Args:
            plant, sensors, seats: what runs.
            faults: what is wrong with the hardware around the boards.
            n_joints: of the robot; not every joint needs a board.
            service_us: from a tick until the board serves what it has received.
            sync_us: period of SYNC pulses, 0 for none.
            tick_us: from tick to tick.
            brakes: of the joints.
        """
        self._plant = plant
        self._brakes = brakes
        self._sensors = sensors
        self._faults = faults
        self.trace = OutputTrace()
        self._service_us = service_us
        self.tick_us = tick_us
        alike: dict[BoardClock, list[Seat]] = {}
        chips = [seat for seat in seats if isinstance(seat.board, Rp2040Board)]
        for seat in seats:
            if seat not in chips:
                alike.setdefault(seat.clock, []).append(seat)
        self._cohorts = [Cohort(members, faults, service_us, sync_us, tick_us) for members in alike.values()]
        self._chips = PinCohort(chips, faults, sensors.facts(0)["encoder.link_counts"], sync_us) if chips else None
        self._enabled = [0] * n_joints  # as the boards say it; lists, which take single numbers quicker than arrays
        self._command_mA = [0] * n_joints
        self._before = self._after = plant.standing()
        self._plant_us = 0
        self.next_us = min([tick_us, *[cohort.due_us for cohort in self._cohorts]])

    @property
    def driving(self) -> bool:
        """Whether any board drives its motor."""
        return any(output & 1 for output in self._enabled)

    def next_tick(self, node: int) -> int:
        """Number of a board's next tick; of a chip, which counts its own, of the plant's."""
        if self._chips and any(node in seat.nodes for seat in self._chips.seats):
            return self._plant_us // self.tick_us + 1
        return next(cohort.tick for cohort in self._cohorts for seat in cohort.seats if node in seat.nodes)

    def step(self, lines: Mapping[int, SerialLine]) -> None:
        """Go to the event at `next_us`: all boards whose clocks tick then get their tick and answer it.

        Args:
            lines: of each board, by node.
        """
        time_us = self.next_us
        if time_us > self._plant_us:
            enabled, command = np.array(self._enabled) & 1 > 0, 1e-3 * np.array(self._command_mA)
            self._faults.misdrive(enabled, command)
            if self._chips:
                command[self._chips.joints] *= 1e3 / FULL_DUTY
            faults = self._faults
            held = faults.jam(self._brakes.held(self._enabled), enabled)
            pushed = self._plant.advance(enabled, command, faults.torque, faults.force, held, faults.pull)
            self._before, self._after = self._after, pushed
            self._plant_us += self.tick_us
            if self._chips:
                self._run(self._chips, lines)
        for cohort in self._cohorts:
            if cohort.due_us == time_us:
                missing = self._faults.missing(cohort.boards)
                self._give(cohort, lines, missing)
                for seat in cohort.seats:
                    if seat.node not in missing:
                        self._take(seat, cohort.tick, time_us + self._service_us, lines[seat.node])
                self._note(cohort)
                cohort.next_tick()
        self.next_us = min([(time_us // self.tick_us + 1) * self.tick_us, *[cohort.due_us for cohort in self._cohorts]])

    def _run(self, chips: PinCohort, lines: Mapping[int, SerialLine]) -> None:
        """Let chips live through the tick that the plant has just made; they answer side by side."""
        time_us = self._plant_us
        arrivals = [
            [(at, self._faults.passes(seat.node, data)) for at, data in lines[seat.node].arrivals(time_us)]
            for seat in chips.seats
        ]
        messages = chips.messages(self._sensors.read(self._after), arrivals, time_us)
        living = [(seat, message) for seat, message in zip(chips.seats, messages, strict=True) if not seat.board.death]
        for seat, message in living:
            try:
                seat.board.send_tick(message)
            except BoardDied:
                self._switch_off(seat)
        for seat, _ in living:
            self._take(seat, time_us // self.tick_us, time_us, lines[seat.node])
            for node, joint in zip(seat.nodes, seat.joints, strict=True) if self.trace.asked else ():
                self.trace.note(node, time_us // self.tick_us, self._enabled[joint], self._command_mA[joint])

    def _give(self, cohort: Cohort, lines: Mapping[int, SerialLine], missing: set[int]) -> None:
        part = 1.0 - (self._plant_us - cohort.due_us) / self.tick_us
        readings = self._sensors.read(motion_between(self._before, self._after, part))
        received = [self._hears(seat.node, cohort.due_us, lines, missing) for seat in cohort.seats]
        for seat, message in zip(cohort.seats, cohort.messages(readings, received), strict=True):
            if seat.board.death is None and seat.node not in missing:
                try:
                    seat.board.send_tick(message)
                except BoardDied:
                    self._switch_off(seat)

    def _hears(self, node: int, time_us: int, lines: Mapping[int, SerialLine], missing: set[int]) -> bytes:
        """Bytes for a board at its tick; they wait for one that misses it."""
        return b"" if node in missing else self._faults.passes(node, lines[node].hears(node, time_us))

    def _take(self, seat: Seat, tick: int, sends_us: int, line: SerialLine) -> None:
        if seat.board.death is not None:
            return
        try:
            answer = seat.board.receive_tick(tick)
        except BoardDied:
            self._switch_off(seat)
            return
        for joint, enable, command_mA in zip(seat.joints, answer.enable, answer.command, strict=False):
            self._enabled[joint] = enable
            self._command_mA[joint] = command_mA
        if answer.sent and (sent := self._faults.says(seat.node, answer.sent)):
            line.sends(seat.node, sent, sends_us)

    def _note(self, cohort: Cohort) -> None:
        for seat in cohort.seats if self.trace.asked else ():
            for node, joint in zip(seat.nodes, seat.joints, strict=False):  # a foot's board drives nothing
                self.trace.note(node, cohort.tick, self._enabled[joint], self._command_mA[joint])

    def _switch_off(self, seat: Seat) -> None:
        for joint in seat.joints:
            self._enabled[joint] = self._command_mA[joint] = 0
