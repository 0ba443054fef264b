"""A board with two motors: two nodes that behave as two boards do, and a guard that lets neither drive alone."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.driver import NODE, SERVO, BoardProcess, Joint, flash, swing
from firmware.tests.shared_line import PARTNER, SHARED, PairLine, PairProcess, SharedLine, flash_pair
from jointwire import BY_NAME, Frame, MessageType, Refusal, State, Trip

M, R, S = MessageType, Refusal, State
NODES = (NODE, PARTNER)
ALL = 0xFF
OVER = 32767 - 16  # beyond any limit, ADC counts
StartPair = Callable[..., PairProcess]


@pytest.fixture
def start_pair(tmp_path: Path) -> Iterator[StartPair]:
    """Function that starts a board with two motors: start_pair(program=…)."""
    started: list[PairProcess] = []

    def start(program: str | None = None) -> PairProcess:
        folder = tmp_path / f"pair{len(started)}"
        folder.mkdir()
        flash_pair(folder, program)
        started.append(PairProcess(folder))
        started[-1].run(1)
        return started[-1]

    yield start
    for board in started:
        board.close()


@pytest.fixture
def pair(start_pair: StartPair) -> PairProcess:
    """Two motors with the firmware as it is."""
    return start_pair()


def of(pair: PairProcess, node: int, kind: MessageType) -> list[Frame]:
    """Frames of a type that a node has sent."""
    return [frame for frame in pair.motors[node].frames if frame.type is kind]


def drives(pair: PairProcess) -> tuple[int, int]:
    """Which of the motors have power."""
    return tuple(pair.motors[node].last.enable for node in NODES)  # type: ignore[return-value]


def prepare(pair: PairProcess, repeats: int = 20) -> None:
    """Give both motors a joint each, servos and a trajectory."""
    for node in NODES:
        pair.node = node
        pair.motors[node].plant = Joint()
        for name, value in SERVO.items():
            assert pair.write(name, value) is R.OK
        pair.upload(swing(), repeats)


def arm(pair: PairProcess) -> None:
    for node in NODES:
        pair.node = node
        pair.arm()


def start(pair: PairProcess, nodes: tuple[int, ...] = NODES, ahead: int = 10) -> int:
    """START these at one tick, and go on to the first of which they play; that tick."""
    at_tick = pair.tick + ahead
    for node in nodes:
        pair.node = node
        assert pair.refusal(M.START, at_tick=at_tick) is R.OK
        pair.end_turn()
    while pair.tick < at_tick:
        pair.run(1)
    return at_tick


def playing(pair: PairProcess) -> None:
    """Both motors in motion."""
    prepare(pair)
    arm(pair)
    start(pair)
    pair.run(40)
    assert drives(pair) == (1, 1)


def fault(pair: PairProcess, node: int) -> Any:
    """What a node says of its fault when it is asked."""
    pair.node = node
    pair.request(M.PING, nonce=1)
    return of(pair, node, M.FAULT)[-1].body


def states(pair: PairProcess) -> list[State]:
    """Of both nodes, as HELLO tells them."""
    found: list[State] = []
    for node in NODES:
        pair.node = node
        found.append(pair.state)
    return found


# Two boards in one


def exchange(line: SharedLine | PairLine) -> None:
    """Requests of every kind to both nodes, both loaded, armed and started; then they play to the end."""
    for node in NODES:
        for name, value in {**SERVO, "stream.block": 24 + node}.items():
            line.ask(M.WRITE, node, register=BY_NAME[name].id, value=value)
        knots = [{"position": p, "velocity": v} for p, v in swing(amplitude=100 * node)]
        line.ask(M.KNOTS, node, offset=0, count=len(knots), knots=knots)
        line.ask(M.READ, node, first=0, count=31)
        line.ask(M.ECHO, node, count=300, data=bytes(range(150)) * 2)
        line.ask(M.DICT, node, offset=5)
        line.ask(M.READ, node, first=200, count=1)
    line.run(300)
    for node in NODES:
        line.ask(M.PING, node, nonce=node)
    line.tell(M.CLEAR, ALL)
    line.run(1100)
    for node in NODES:
        line.ask(M.PING, node, nonce=node)


def told(frames: list[Frame]) -> list[tuple[Any, ...]]:
    """Frames without what a heap says of the program around it."""
    return [
        (frame.type, frame.seq, frame.time_us)
        + ((replace(frame.body, heap_free=0),) if frame.type is M.STATUS else (frame.payload,))
        for frame in frames
    ]


def test_each_node_answers_as_a_board_of_its_own(pair: PairProcess, tmp_path: Path) -> None:
    boards: list[BoardProcess] = []
    for node in NODES:
        (tmp_path / f"{node}").mkdir()
        flash(tmp_path / f"{node}", SHARED, node=node)
        boards.append(BoardProcess(tmp_path / f"{node}"))
    apart = SharedLine(boards)
    apart.run(1)
    together = PairLine(pair)
    for motors in (together.boards.values(), boards):
        for motor in motors:
            motor.motor_count, motor.current, motor.torque = 100 * motor.node, 10 * motor.node, -20 * motor.node
    try:
        exchange(apart)
        exchange(together)
        for board in boards:
            assert told(pair.motors[board.node].frames) == told(board.frames)
    finally:
        for board in boards:
            board.close()


def played(frames: list[Frame]) -> list[tuple[int, int, bytes]]:
    """Blocks of samples that belong to a trajectory: their first tick, that of the trajectory, and the samples."""
    return [(f.body.first_tick, f.body.play_tick, f.payload[20:]) for f in frames if f.body.play_tick >= 0]


def test_they_play_the_same_ticks_as_boards_of_their_own(pair: PairProcess, tmp_path: Path) -> None:
    prepare(pair, repeats=1)
    arm(pair)
    first = start(pair)
    pair.run(140)
    assert states(pair) == [S.DONE, S.DONE]
    (tmp_path / "alone").mkdir()
    flash(tmp_path / "alone", SHARED)
    alone = BoardProcess(tmp_path / "alone")
    try:
        alone.plant = Joint()
        for name, value in SERVO.items():
            alone.write(name, value)
        alone.upload(swing())
        alone.arm()
        alone.tick = first - 10  # the gap is over before it plays
        alone.run(1)
        alone.refusal(M.START, at_tick=first)
        alone.run(150)
        alone.request(M.PING, nonce=1)
        for node in NODES:
            assert played(of(pair, node, M.DATA)) == played(alone.of(M.DATA))
    finally:
        alone.close()


def test_settings_of_the_two_are_kept_apart(pair: PairProcess) -> None:
    for node in NODES:
        pair.node = node
        assert pair.write("torque.zero", 10 * node) is R.OK
        assert pair.refusal(M.SAVE) is R.OK
    zeros = {
        name: json.loads((pair.folder / name).read_text())["values"]["torque.zero"]
        for name in ("settings.json", "partner.json")
    }
    assert zeros == {"settings.json": 10 * NODE, "partner.json": 10 * PARTNER}
    again = PairProcess(pair.folder)
    again.run(1)
    for node in NODES:
        again.node = node
        assert again.read("torque.zero") == 10 * node
        again.end_turn()
    again.close()


def test_each_of_the_two_stores_49_seconds(pair: PairProcess) -> None:
    for node in NODES:
        pair.node = node
        assert pair.hello().body.max_knots == 1536
        pair.end_turn()


def test_an_idle_pair_allocates_nothing(start_pair: StartPair) -> None:
    noting = """
import gc
from unix import Board
class NotingBoard(Board):
    def apply(self):
        global last
        if self.inputs[0] > 10:  # the loop has begun
            most[0] = max(most[0], gc.mem_alloc() - last)
        last = gc.mem_alloc()
from jointboard import app
most, last = [0], 1 << 28
board = NotingBoard()
app.run(board)
with open("most.txt", "w") as file:
    print(most[0], file=file)
"""
    board = start_pair(noting)
    board.run(250)
    assert board.close() == 0
    around = 32  # what is noted in each tick itself, at most
    assert int((board.folder / "most.txt").read_text()) <= around


# Neither drives alone


@pytest.mark.parametrize("node", NODES)
def test_a_trip_of_one_takes_the_power_of_both_in_the_same_tick(pair: PairProcess, node: int) -> None:
    playing(pair)
    pair.motors[node].current = OVER
    pair.run(1)
    at = pair.tick - 1
    assert drives(pair) == (0, 0)
    assert [motor.last.command_mA for motor in pair.motors.values()] == [0, 0]
    own, other = fault(pair, node), fault(pair, sum(NODES) - node)
    assert (own.trip, own.tick) == (Trip.OVER_CURRENT, at)
    assert (other.trip, other.tick, other.value) == (Trip.PARTNER, at, Trip.OVER_CURRENT)
    pair.run(100)
    assert drives(pair) == (0, 0)


@pytest.mark.parametrize("node", NODES)
def test_a_trip_of_one_that_holds_ends_the_others_holding(pair: PairProcess, node: int) -> None:
    prepare(pair)
    arm(pair)
    pair.motors[node].motor_count += 3000
    pair.motors[node].plant = None
    pair.run(1)
    assert drives(pair) == (0, 0)
    assert states(pair) == [S.FAULT, S.FAULT]


@pytest.mark.parametrize("node", NODES)
def test_a_stop_of_one_takes_the_power_of_both_in_the_same_tick(pair: PairProcess, node: int) -> None:
    playing(pair)
    pair.node = node
    pair.send(M.STOP)
    pair.run(1)
    assert drives(pair) == (0, 0)
    assert fault(pair, sum(NODES) - node).trip == Trip.PARTNER
    pair.node = node
    assert pair.state is S.LOADED
    pair.run(20)
    assert drives(pair) == (0, 0)


def test_a_stop_of_both_is_no_fault(pair: PairProcess) -> None:
    playing(pair)
    pair.send(M.STOP, node=ALL)
    pair.run(1)
    assert drives(pair) == (0, 0)
    assert states(pair) == [S.LOADED, S.LOADED]
    arm(pair)
    pair.run(1)
    assert drives(pair) == (1, 1)


@pytest.mark.parametrize("node", NODES)
def test_a_halt_of_one_slows_both_down(pair: PairProcess, node: int) -> None:
    playing(pair)
    pair.node = node
    assert pair.refusal(M.HALT) is R.OK
    assert drives(pair) == (1, 1)
    pair.run(300)
    assert drives(pair) == (0, 0)
    assert states(pair) == [S.LOADED, S.LOADED]


@pytest.mark.parametrize("node", NODES)
def test_one_that_plays_without_the_other_is_stopped_at_its_first_tick(pair: PairProcess, node: int) -> None:
    prepare(pair)
    arm(pair)
    at_tick = start(pair, (node,))
    assert drives(pair) == (1, 1)
    pair.run(1)
    assert drives(pair) == (0, 0)
    for each in NODES:
        found = fault(pair, each)
        assert (found.trip, found.tick, found.value) == (Trip.PARTNER, at_tick, Trip.NONE)


def test_one_that_plays_longer_than_the_other_is_stopped_with_it(pair: PairProcess) -> None:
    prepare(pair, repeats=2)
    pair.node = PARTNER
    pair.upload(swing(), 1)
    arm(pair)
    at_tick = start(pair)
    pair.run(140)
    assert fault(pair, NODE).tick == at_tick + 128
    assert states(pair) == [S.FAULT, S.DONE]


def test_one_that_hears_nothing_takes_the_other_with_it(pair: PairProcess) -> None:
    playing(pair)
    pair.node = NODE
    for nonce in range(30):
        pair.request(M.PING, nonce=nonce)
        pair.run(20)
    assert drives(pair) == (0, 0)
    silent, other = fault(pair, PARTNER), fault(pair, NODE)
    assert (silent.trip, other.trip, other.value) == (Trip.LINK_LOSS, Trip.PARTNER, Trip.LINK_LOSS)
    assert silent.tick == other.tick


def test_a_fault_of_one_keeps_the_other_from_driving_until_it_is_cleared(pair: PairProcess) -> None:
    playing(pair)
    pair.motors[NODE].current = OVER
    pair.run(1)
    pair.motors[NODE].current = 0
    pair.node = PARTNER
    assert pair.refusal(M.CLEAR) is R.OK
    pair.motors[PARTNER].plant = None
    pair.upload(swing(start=pair.motors[PARTNER].motor_count))
    pair.arm()  # the state machine lets it; the guard does not
    assert drives(pair) == (0, 0)
    assert fault(pair, PARTNER).value == Trip.OVER_CURRENT


@pytest.mark.parametrize("kind", [M.SAVE, M.REPL])
def test_what_takes_the_processor_away_waits_for_both(pair: PairProcess, kind: MessageType) -> None:
    prepare(pair)
    pair.node = NODE
    pair.arm()
    pair.node = PARTNER
    answer = pair.request(kind).body
    assert (answer.refusal, answer.value) == (R.WRONG_STATE, S.ARMED)
    assert drives(pair) == (1, 0)


def test_an_error_of_the_program_takes_both(start_pair: StartPair) -> None:
    program = """
from unix import Board
class FailingBoard(Board):
    def room(self):
        if self.incoming[self.INCOMING_AT] == 99:
            self.incoming[self.INCOMING_AT] = 0
            raise RuntimeError("told to fail")
        return 512
from jointboard import app
app.run(FailingBoard())
"""
    pair = start_pair(program)
    playing(pair)
    pair.run(100)
    pair.node = PARTNER
    pair.send_bytes(b"c\0")
    pair.send(M.PING, nonce=3)
    pair.run(20)
    assert drives(pair) == (0, 0)
    assert "told to fail" in pair.errors
    assert [fault(pair, node).trip for node in NODES] == [Trip.INTERNAL, Trip.INTERNAL]


def test_an_error_between_the_two_leaves_neither_with_ticks_it_did_not_miss(start_pair: StartPair) -> None:
    program = """
from unix import Board
from jointboard import app
class FailingBoard(Board):
    def wait_tick(self):
        count = super().wait_tick()
        if self.inputs[0] == 50:
            self.publisher = app._motors[1].publisher
            self.note_gap, self.publisher.note_gap = self.publisher.note_gap, self.fail_once
        return count
    def fail_once(self):
        self.publisher.note_gap = self.note_gap
        raise RuntimeError("told to fail")
app.run(FailingBoard())
"""
    pair = start_pair(program)
    pair.run(60)
    pair.tick += 5
    with pytest.raises(AssertionError):  # of this tick the partner has no outputs
        pair.run(1)
    assert drives(pair) == (0, 0)
    pair.tick += 1
    pair.run(1000)
    for node, missed in ((NODE, 5), (PARTNER, 6)):  # the partner's tick of the error is one of them
        assert fault(pair, node).trip == Trip.INTERNAL
        assert of(pair, node, M.STATUS)[-1].body.ticks_missed == missed


@pytest.mark.parametrize("node", NODES)
def test_either_gives_the_board_back(pair: PairProcess, node: int) -> None:
    pair.node = node
    assert pair.refusal(M.REPL) is R.OK
    pair.end_turn()
    assert pair.process.wait(10) == 0


def test_what_comes_after_the_board_was_given_back_arms_no_motor(pair: PairProcess) -> None:
    prepare(pair)
    pair.node = PARTNER
    arming = pair.arming()
    pair.end_turn()
    seen = len(pair.motors[PARTNER].frames)
    pair.send(M.REPL, node=NODE)
    pair.send(M.ARM, **arming)
    pair.run(1)
    assert pair.process.wait(10) == 0
    assert pair.motors[PARTNER].frames[seen:] == []


def test_a_trial_of_an_image_lasts_no_longer_with_two_motors(start_pair: StartPair) -> None:
    program = """
from unix import Board
from jointboard import app
app._trial_s = app.TRIAL_S - 2
app.run(Board(), on_trial=True)
"""
    pair = start_pair(program)
    pair.run(2900)
    with pytest.raises(AssertionError, match="NotConfirmed: no host has confirmed this image for 60 s"):
        pair.run(200)


# Boards that are set up wrong


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"facts": {}}, "ValueError: config.json: node 7 has a partner, its fact board.shared_line must be 1"),
        ({"partner": {"node": 7, "facts": SHARED}}, "ValueError: config.json: both motors are node 7"),
        ({"sim_joint": {}}, "ValueError: config.json: sim_joint stands in for one motor, this board has two"),
    ],
)
def test_a_configuration_that_cannot_be_does_not_start(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    flash_pair(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    pair = PairProcess(tmp_path)
    assert pair.process.wait(10) == 1
    pair.close()
    assert message in pair.errors


def test_a_kind_of_board_with_one_motor_refuses_a_second(tmp_path: Path) -> None:
    one_motor = """
import unix
class OneMotor(unix.Board):
    def __init__(self):
        super().__init__()
        del self.partner
from jointboard import app
app.run(OneMotor())
"""
    flash_pair(tmp_path, one_motor)
    pair = PairProcess(tmp_path)
    assert pair.process.wait(10) == 1
    pair.close()
    assert "ValueError: config.json: partner is a second motor, a board of this kind has one" in pair.errors
