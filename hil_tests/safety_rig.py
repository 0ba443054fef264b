"""One joint's board on a virtual bench, for tests of its safety: arm it, move it, break what is around it, watch it."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.bench import Connections, LockstepClock, RegisterName, default_settings, motor_settings, read_bench_file
from jointbench.model import load_robot
from jointwire import (
    BY_NAME,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    Frame,
    MessageType,
    Refusal,
    State,
    Trip,
    config_crc,
    stack_samples,
)

TICK_US = 1000
KEEP_ALIVE_US = 50_000
KNOT_TICKS = 32  # from knot to knot
KNOTS = 17  # of a swing
SWING = 3000  # counts, 0.05 rad at the joint
SHORT_KNOTS, SHORT_SWING = 9, 1500  # of one that is as fast
REST_TICKS = 1050  # longer than the second after which a board in FAULT tells it again


class SafetyRig:
    """A board with the servo and limits it has by default, a swing to play, and the bench's faults and outputs.

    Attributes:
        board, clock: of the one board on the bench.
        data: DATA frames since it was last prepared.
    """

    def __init__(self, live: Path, clear: bool = True) -> None:
        """Connect; a fault that an earlier client left is cleared, unless it is asked for."""
        file = read_bench_file(live)
        self._connections = Connections(file)
        (self.board,) = self._connections.boards.values()
        clock = self._connections.clock
        assert isinstance(clock, LockstepClock)
        self.clock = clock
        self.data: list[Frame] = []
        robot = load_robot(file.robot)
        index = robot.joint_names.index(self.board.joint)
        self._settings = motor_settings(default_settings(robot), robot.drive_train)[index]
        self._pinged_us = -KEEP_ALIVE_US
        self.board.on_data = self.data.append
        self._begin(clear)

    def _begin(self, clear: bool) -> None:
        self.board.greet()
        if self.board.is_driving:
            self.board.stop()
        if self.board.state is State.FAULT and clear:
            self.board.clear()
        self.facts = self.board.read_registers()
        self._ask({"outputs": self.board.node})  # from now on they are noted

    def prepare(
        self, limits: Mapping[str, int] | None = None, knots: NDArray[np.int32] | None = None, repeats: int = 1
    ) -> None:
        """Write servo and limits, stream all there is, and load a trajectory: a swing from where the joint stands.

        Args:
            limits: raw registers other than the default, `position_max` for limit.position_max.
            knots: another trajectory.
            repeats: how often it will be played.
        """
        registers = self._settings.registers(self.board.joint, self.board.node, self.facts)
        usual: dict[str, int] = {name: r.default for name, r in BY_NAME.items() if name.startswith("limit.")}
        usual |= registers | {"stream.always": 1, "stream.channels": self.facts.registers["board.channels"]}
        usual["velocity.source"] = 0
        changed = {f"limit.{name}": value for name, value in (limits or {}).items()}
        for name, value in (usual | changed).items():
            self.board.write_register(cast(RegisterName, name), value)
        self.board.upload(swing(self.position) if knots is None else knots, repeats)

    @property
    def position(self) -> int:
        """Where the board says the motor is [counts], its stream being on or turned on here."""
        self.board.write_register("stream.always", 1)
        self.data.clear()
        self.run(130)  # two blocks of 64
        return stream(self.data, "motor_position")[-1]

    def arm(self) -> None:
        """Let the motor hold, for a while."""
        self.board.arm()
        self.run(20)

    def play(self, ticks: int = 130) -> None:
        """Play the trajectory, at first for so many ticks: a swing is fast then."""
        self.board.arm()
        self.board.start()
        self.run(ticks)

    def run(self, ticks: int) -> None:
        """Let time pass, as a host that is alive."""
        end_us = self.clock.now_us() + TICK_US * ticks
        while (left_us := end_us - self.clock.now_us()) > 0:
            if self.clock.now_us() >= self._pinged_us + KEEP_ALIVE_US:
                self._pinged_us = self.clock.now_us()
                self.board.keep_alive()
            self.clock.wait(min(left_us, self._pinged_us + KEEP_ALIVE_US - self.clock.now_us()))

    def inject(self, fault: str, **value: float) -> int:
        """Let a fault of the hardware begin; the tick at which the board first meets it."""
        return self._ask({"inject": {"node": self.board.node, "fault": fault, **value}})["tick"]

    def heal(self) -> None:
        """End all faults."""
        self._ask({"heal": self.board.node})

    def outputs(self) -> dict[int, tuple[int, int]]:
        """Enable and command [mA] of the drive by tick, since this was last asked."""
        return {tick: (enable, command) for tick, enable, command in self._ask({"outputs": self.board.node})["outputs"]}

    def power_cycle(self) -> None:
        """Take the board's power and give it back; returns when it has answered again."""
        self._connections.restart(self.board.node)
        self.run(10)
        self._begin(clear=False)

    def assert_latched(self, trip: Trip, rest: int = 200) -> None:
        """The fault stays, with its motor off, whatever is asked; CLEAR, a new trajectory and ARM play again.

        What caused it is healed here: that alone changes nothing, nor do so many ticks of `rest`.
        """
        self.heal()
        assert self.refusal(MessageType.ARM, **self.arming()) is Refusal.WRONG_STATE
        assert self.refusal(MessageType.START, at_tick=0) is Refusal.WRONG_STATE
        assert self.refusal(MessageType.LOAD, count=2, repeats=1, crc32=0) is Refusal.WRONG_STATE
        assert self.refusal(MessageType.STOP) is Refusal.OK
        self.run(rest)
        self.board.greet()
        assert (self.board.state, self.board.fault.trip) == (State.FAULT, trip)
        assert self.refusal(MessageType.CLEAR) is Refusal.OK
        assert self.refusal(MessageType.ARM, **self.arming()) is Refusal.WRONG_STATE  # nothing is loaded any more
        assert self.refusal(MessageType.START, at_tick=0) is Refusal.WRONG_STATE
        self.board.greet()
        assert self.board.state is State.DISARMED
        self.run(100)
        assert not any(enable or command for enable, command in self.outputs().values())
        self.prepare(knots=swing(self.position, SHORT_SWING, SHORT_KNOTS))
        self.play(KNOT_TICKS * SHORT_KNOTS + 50)
        assert self.board.state is State.DONE
        driven = [command for enable, command in self.outputs().values() if enable]
        assert len(driven) >= KNOT_TICKS * (SHORT_KNOTS - 1)
        assert max(map(abs, driven)) > 0

    def refusal(self, kind: MessageType, **fields: Any) -> Refusal:
        """Send a request; what its ACK says."""
        _, frame = self.board._talk.ask(kind, MessageType.ACK, lambda _: True, **fields)
        return Refusal(frame.body.refusal)

    def arming(self) -> dict[str, int]:
        """Fields with which ARM could not be refused but for the board's state: a fresh token, the right CRC."""
        token = self.board.client.hello(PROTOCOL_MAJOR, PROTOCOL_MINOR).body.token
        registers = self.board.read_registers().registers
        return {"token": token, "config_crc": config_crc(registers, self.board.trajectory)}

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.clock.ask(request)

    def close(self) -> None:
        """Leave the bench, which then lets its boards run until their motors are off, and heals them."""
        self._connections.close()

    def __enter__(self) -> "SafetyRig":
        """Return the rig itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the bench."""
        self.close()


def swing(start: int, amplitude: int = SWING, knots: int = KNOTS) -> NDArray[np.int32]:
    """Knots of one cosine swing from `start` to `start + amplitude` counts and back, at rest at both ends."""
    phases = 2.0 * np.pi * np.arange(knots) / (knots - 1)
    rate = 2.0 * math.pi / (KNOT_TICKS * (knots - 1))  # per tick
    positions = start + amplitude * (1.0 - np.cos(phases)) / 2.0
    velocities = 256.0 * amplitude / 2.0 * rate * np.sin(phases)
    return np.rint(np.column_stack((positions, velocities))).astype(np.int32)


def ticks_until_off(outputs: dict[int, tuple[int, int]], shown: int) -> int:
    """Ticks from the one at which the hardware showed a fault to the first with no enable and no command.

    Raises:
        AssertionError: the motor was off already when the fault came, was never switched off, or came on again.
    """
    before = [pair for tick, pair in outputs.items() if tick < shown]
    assert not before or before[-1][0] == 1, "the motor was off already"
    after = {tick - shown: pair for tick, pair in outputs.items() if tick >= shown}
    on = [ticks for ticks, pair in after.items() if pair != (0, 0)]
    off = [ticks for ticks, pair in after.items() if pair == (0, 0)]
    assert off, "the motor was never switched off"
    assert not on or max(on) < min(off), "the motor came on again"
    return min(off)


def stream(frames: list[Frame], channel: str) -> list[int]:
    """Raw values of a channel in DATA frames, which has one in each tick."""
    return [int(value) for value in stack_samples(frames)[channel]]
