"""One joint of any bench, armed, moved and left alone by hand: a test sees each step and what the board says of it."""

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hil_tests.link_helpers import Wave, ask_bench, widest_way
from jointbench.bench import Bench, Board, Facts, RegisterName, trajectory_knots
from jointbench.bench.gate import Gate
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR, Frame, MessageType, Refusal, State, config_crc, stack_samples

KEEP_ALIVE_US = 50_000
KNOTS = 17  # of a swing
_SWING = 0.05  # [rad], of the joint
_ANSWER_US = 500_000  # of the target's time, within which a board that has something to say has said it


class DrivenJoint:
    """A configured board of a bench in the test's hands.

    Attributes:
        bench, board: which.
        data: DATA frames since it was made, or since a test cleared it.
    """

    def __init__(self, bench: Bench, board: Board) -> None:
        """Take the board; nothing is sent."""
        self.bench, self.board = bench, board
        self.data: list[Frame] = []
        self._pinged_us = -KEEP_ALIVE_US
        board.on_data = self.data.append

    @property
    def facts(self) -> Facts:
        """The board's registers as last read or written."""
        assert self.board.facts
        return self.board.facts

    @property
    def tick_us(self) -> int:
        """Of the board."""
        return self.facts.registers["board.tick_period"]

    def position(self) -> int:
        """Where the motor is now [counts], by the board's stream."""
        was = self.facts.registers["stream.always"]
        self.write(stream__always=1)
        self.data.clear()
        end_us = self.bench.clock.now_us() + _ANSWER_US
        while not self.data and self.bench.clock.now_us() < end_us:
            self.bench.clock.wait(end_us - self.bench.clock.now_us())
        self.write(stream__always=was)
        return int(stack_samples(self.data)["motor_position"][-1])

    def write(self, **registers: int) -> None:
        """Write raw registers: `limit__current` for limit.current."""
        for name, value in registers.items():
            self.board.write_register(cast(RegisterName, name.replace("__", ".")), value)

    def swing(self, amplitude: float = _SWING) -> NDArray[np.int32]:
        """Knots of a wave of this motor alone, by so many rad of its joint from where it is and back.

        It is as wide as acceleration and bench file allow, and passes the bench's gate, for which the other joints
        stand at home: their boards may be in another test's hands.

        Raises:
            ExcitationError: what it would break even so.
        """
        bench, motors = self.bench, self.bench.robot.transmission_matrix
        amplitude = min(amplitude, 0.9 * bench.file.terms.limits.get("position_rad", amplitude / 0.9))
        index = bench.boards.index(self.board)
        start = motors @ np.array(bench.robot.home)
        start[index] = 2.0 * math.pi * self.position() / self.facts.motor_counts
        period = self.facts.tick_period * self.facts.knot_ticks * (KNOTS - 1)
        way = np.asarray(
            np.linalg.solve(motors, np.eye(len(start))[index]), np.float64
        )  # of the joints, by 1 rad of the motor
        moved = way != 0.0
        widest = float(np.min(widest_way(bench, period)[moved] / np.abs(way[moved])))
        stands = np.asarray(np.linalg.solve(motors, start), np.float64)
        wave = Wave(stands, min(amplitude * abs(self.facts.ratio), widest) * way, period)
        Gate.of_boards(bench.robot, bench.boards, bench.settings, bench.file.terms.limits, stands).check(wave)
        return trajectory_knots(wave, bench.robot, bench.facts)[index]

    def arm(self, knots: NDArray[np.int32] | None = None, repeats: int = 1) -> None:
        """Load a swing, or knots that are made to be refused or given up by the board, and let the motor hold."""
        self.board.upload(self.swing() if knots is None else knots, repeats)
        self.board.arm()
        self.run(20)

    def play(self, ticks: int, repeats: int = 1) -> None:
        """Begin a swing and let it go on for so many ticks."""
        self.arm(repeats=repeats)
        self.board.start()
        self.run(ticks)

    def run(self, ticks: int) -> None:
        """Let time pass, as a host that is alive."""
        clock = self.bench.clock
        end_us = clock.now_us() + self.tick_us * ticks
        while (left_us := end_us - clock.now_us()) > 0:
            if clock.now_us() >= self._pinged_us + KEEP_ALIVE_US:
                self._pinged_us = clock.now_us()
                self.board.keep_alive()
            clock.wait(min(left_us, self._pinged_us + KEEP_ALIVE_US - clock.now_us()))

    def assert_off(self) -> None:
        """The motor was given nothing since the outputs were last asked for, tick by tick."""
        seen = self.outputs()
        assert seen, f"{self.board.joint}: no output was noted"
        assert not any(enable or command for enable, command in seen.values()), f"{self.board.joint}: {seen}"

    @property
    def patience(self) -> int:
        """How long its board bears silence [ticks]."""
        return math.ceil(1000 * self.facts.registers["limit.link_timeout"] / self.tick_us)

    def be_silent(self, ticks: int) -> None:
        """Let time pass without a word to the board."""
        end_us = self.bench.clock.now_us() + self.tick_us * ticks
        while (left_us := end_us - self.bench.clock.now_us()) > 0:
            self.bench.clock.wait(left_us)

    def run_until(self, state: State, within: int) -> None:
        """Let time pass until the board says that it is in this state, for so many ticks at most."""
        end_us = self.bench.clock.now_us() + self.tick_us * within
        while self.board.state is not state and self.bench.clock.now_us() < end_us:
            self.run(10)
        assert self.board.state is state, f"{self.board.joint} is {self.board.state} after {within} ticks, not {state}"

    def fault(self, within: int) -> Any:
        """Wait for a trip, so many ticks at most; the body of its FAULT frame."""
        self.run_until(State.FAULT, within)
        if self.board.fault is None:
            self.run(100)
        assert self.board.fault is not None, f"{self.board.joint} is in FAULT and does not say why"
        return self.board.fault

    def refusal(self, kind: MessageType, **fields: Any) -> Refusal:
        """Send a request; what its ACK says."""
        _, frame = self.board._talk.ask(kind, MessageType.ACK, lambda _: True, **fields)
        return Refusal(frame.body.refusal)

    def arming(self) -> dict[str, int]:
        """Fields with which ARM could not be refused but for the board's state: a fresh token, the right CRC."""
        token = self.board.client.hello(PROTOCOL_MAJOR, PROTOCOL_MINOR).body.token
        return {"token": token, "config_crc": config_crc(self.board.read_registers().registers, self.board.trajectory)}

    def assert_latched(self) -> None:
        """The fault keeps the motor off whatever is asked; CLEAR, a new trajectory and ARM play again."""
        assert self.refusal(MessageType.ARM, **self.arming()) is Refusal.WRONG_STATE
        assert self.refusal(MessageType.START, at_tick=0) is Refusal.WRONG_STATE
        assert self.refusal(MessageType.CLEAR) is Refusal.OK
        assert self.refusal(MessageType.ARM, **self.arming()) is Refusal.WRONG_STATE  # nothing is loaded any more
        self.board.greet()
        assert self.board.state is State.DISARMED
        self.bench.configure()
        self.play(100)
        self.run_until(State.DONE, within=KNOTS * self.facts.knot_ticks + 500)

    def inject(self, fault: str, **value: float) -> int:
        """Let a fault of the hardware begin; the tick at which the board first meets it."""
        return ask_bench(self.bench, {"inject": {"node": self.board.node, "fault": fault, **value}})["tick"]

    def heal(self) -> None:
        """End all faults of the hardware."""
        ask_bench(self.bench, {"heal": self.board.node})

    def outputs(self) -> dict[int, tuple[int, int]]:
        """Enable and command [mA] of the drive by tick, since this was last asked."""
        told = ask_bench(self.bench, {"outputs": self.board.node})["outputs"]
        return {tick: (enable, command) for tick, enable, command in told}
