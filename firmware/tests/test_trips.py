"""Trips: motor off in the same tick, told at once, latched until CLEAR; and what a board does about its own errors."""

from collections.abc import Callable

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, Joint, play, prepare, swing
from jointwire import BY_NAME, MessageType, Refusal, State, Trip

M, S, R = MessageType, State, Refusal


def over_current(board: BoardProcess) -> None:
    board.current = 32767 - 16


def position(board: BoardProcess) -> None:
    board.plant = None
    board.motor_count = (board.motor_count - 4000) % 65536


def velocity(board: BoardProcess) -> None:
    board.plant = None
    board.motor_count = (board.motor_count + 900) % 65536  # the observer believes an eighth of it in the first tick


def following(board: BoardProcess) -> None:
    board.plant = None
    board.motor_count = (board.motor_count - 501) % 65536


def jump(board: BoardProcess) -> None:
    board.plant = None
    board.motor_count = (board.motor_count - 300) % 65536


def supply(board: BoardProcess) -> None:
    board.supply = 20_000


def temperature(board: BoardProcess) -> None:
    board.temperature = 10_001


def overrun(board: BoardProcess) -> None:
    board.tick += 21


# What happens, the trip, its value if known, the limit it tells (register units).
TRIPS: list[tuple[Callable[[BoardProcess], None], Trip, dict[str, int], int | None, int]] = [
    (over_current, Trip.OVER_CURRENT, {}, 32751 * 305176 // 10**6, 32736 * 305176 // 10**6),
    (over_current, Trip.OVER_CURRENT, {"limit.current": 4000}, 32751 * 305176 // 10**6, 4999),
    (position, Trip.POSITION, {"limit.position_min": -3000}, None, -3000),
    (velocity, Trip.VELOCITY, {"limit.following": 4096}, None, 25600),
    (following, Trip.FOLLOWING, {"limit.velocity": 2**20}, None, 500),
    (jump, Trip.ENCODER_JUMP, {"limit.jump": 200}, None, 200),
    (supply, Trip.SUPPLY, {"limit.supply_min": 20_001}, 20_000, 20_001),
    (supply, Trip.SUPPLY, {"limit.supply_max": 19_999}, 20_000, 19_999),
    (temperature, Trip.TEMPERATURE, {}, 37_316, 37_315),
    (overrun, Trip.OVERRUN, {}, 21, 20),
]


@pytest.mark.parametrize(("happens", "trip", "registers", "value", "limit"), TRIPS)
@pytest.mark.parametrize("running", [False, True])
def test_a_trip_is_the_same_tick_and_latched(
    board: BoardProcess,
    happens: Callable[[BoardProcess], None],
    trip: Trip,
    registers: dict[str, int],
    value: int | None,
    limit: int,
    running: bool,
) -> None:
    prepare(board)
    board.supply = 19_999 if "limit.supply_max" in registers else 24_000
    for name, number in registers.items():
        assert board.write(name, number) is R.OK
    board.run(5)
    play(board) if running else board.arm()
    assert board.run(20).enable == 1
    happens(board)
    out = board.step()
    assert (out.enable, out.command_mA) == (0, 0)
    board.run(2)
    fault = board.of(M.FAULT)[0].body
    assert (fault.trip, fault.state, fault.tick, fault.limit) == (trip, S.FAULT, out.tick, limit)
    assert value is None or fault.value == value
    status = board.of(M.STATUS)[-1].body
    assert (status.state, status.trip) == (S.FAULT, trip)
    assert sum(f.body.count for f in board.of(M.DATA)) + status.samples_dropped == status.samples_taken
    _assert_latched(board, trip)


# Notes, whenever the drive is given its outputs, whether it is enabled and how many frames have been built.
NOTING = """
from unix import Board
from jointboard import app, framing
class NotingBoard(Board):
    def apply(self):
        log.write("%d %d\\n" % (self.outputs[4], app._links[0].line[framing.SENT] if app._links else 0))
log = open("applied.log", "w")
app.run(NotingBoard())
log.close()
"""


@pytest.mark.parametrize("missed", [0, 3])
def test_the_power_is_taken_before_the_trip_is_told(start_board: StartBoard, missed: int) -> None:
    """Building frames takes a processor a while, and may have memory collected."""
    board = start_board(program=NOTING)
    prepare(board)
    board.arm()
    assert board.run(20).enable == 1
    board.tick += missed
    over_current(board)
    board.run(2)
    assert board.of(M.FAULT)
    assert board.close() == 0
    applied = [tuple(map(int, line.split())) for line in (board.folder / "applied.log").read_text().splitlines()]
    off = max(k for k, (enabled, _) in enumerate(applied) if enabled) + 1
    (_, frames_on), (_, frames_off), (_, frames_told) = applied[off - 1 : off + 2]
    assert frames_off == frames_on + (missed > 0)  # the block that a gap ends goes before
    assert frames_told >= frames_off + 2  # FAULT and STATUS


def _assert_latched(board: BoardProcess, trip: Trip) -> None:
    board.current, board.supply, board.temperature = 0, 24_000, 2_500
    board.plant = Joint(board.motor_count - 65536 if board.motor_count > 32767 else board.motor_count)
    seen = len(board.of(M.FAULT))
    assert board.run(1001).enable == 0
    assert len(board.of(M.FAULT)) == seen + 1  # with each STATUS again
    arming = board.arming()
    assert board.refusal(M.ARM, **arming) is R.WRONG_STATE
    assert board.refusal(M.STOP) is R.OK
    assert board.state is S.FAULT
    assert board.refusal(M.CLEAR) is R.OK
    assert board.refusal(M.ARM, **arming) is R.WRONG_STATE  # nothing is loaded any more
    assert board.state is S.DISARMED
    board.run(1001)
    assert board.of(M.STATUS)[-1].body.trip == Trip.NONE
    assert len(board.of(M.FAULT)) == seen + 1


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("timeout", [50, 120])
def test_link_loss_takes_the_power_after_the_timeout_and_not_before(
    board: BoardProcess, timeout: int, running: bool
) -> None:
    prepare(board)
    assert board.write("limit.link_timeout", timeout) is R.OK
    play(board) if running else board.arm()
    last_frame = board.last.tick
    while board.step().enable:
        assert board.last.tick < last_frame + timeout
    assert board.last.tick == last_frame + timeout
    board.run(2)
    fault = board.of(M.FAULT)[0].body
    assert (fault.trip, fault.value, fault.limit) == (Trip.LINK_LOSS, timeout, timeout)


def test_noise_and_other_boards_frames_do_not_keep_the_motor_on(board: BoardProcess) -> None:
    prepare(board)
    assert board.write("limit.link_timeout", 100) is R.OK
    board.arm()
    for _ in range(100):
        board.send(M.PING, node=8, nonce=1)
        board.send_bytes(b"noise\0")
        board.run(1)
    assert board.last.enable == 0
    board.run(2)
    assert board.of(M.FAULT)[0].body.trip == Trip.LINK_LOSS


def test_any_valid_frame_keeps_the_motor_on(board: BoardProcess) -> None:
    prepare(board)
    assert board.write("limit.link_timeout", 50) is R.OK
    board.arm()
    for _ in range(20):
        board.send(M.PING, node=0xFF, nonce=1)
        assert board.run(40).enable == 1


def test_no_trip_while_the_motor_is_off(board: BoardProcess) -> None:
    prepare(board)
    board.plant = None
    board.current = 32752
    for count in (40_000, 0, 65535, 20_000):
        board.motor_count = count
        board.run(300)
    assert board.state is S.LOADED
    assert board.of(M.FAULT) == []


BROKEN = """
from unix import Board
board = Board()
board.disable()
from jointboard import app, requests, wire
def broken(_, count):
    raise ValueError("broken on purpose")
requests.HANDLERS[wire.MESSAGE_ECHO] = broken
app.run(board)
"""


def test_a_tripped_board_goes_on_streaming(board: BoardProcess) -> None:
    """Whoever looks for what is wrong asks for samples; a block that nobody closes would outgrow its buffer."""
    prepare(board)
    board.arm()
    over_current(board)
    board.run(5)
    assert board.state is S.FAULT
    board.current = 0
    assert board.write("stream.always", 1) is R.OK
    seen = len(board.frames)
    board.run(2000)
    data = [frame for frame in board.frames[seen:] if frame.type is M.DATA]
    assert sum(frame.body.count for frame in data) >= 1900
    assert max(frame.body.count for frame in data) <= 64
    assert board.noise == []


def test_an_error_in_the_program_takes_the_power_and_the_board_keeps_talking(start_board: StartBoard) -> None:
    board = start_board(program=BROKEN)
    prepare(board)
    board.arm()
    assert board.run(5).enable == 1
    board.send(M.ECHO, count=0, data=b"")
    assert board.run(1).enable == 0
    board.run(3)
    assert [frame.body.trip for frame in board.of(M.FAULT)] == [Trip.INTERNAL]
    assert "broken on purpose" in board.errors
    for _ in range(3):  # again and again: it stays, and is told on the console once
        board.send(M.ECHO, count=0, data=b"")
        board.run(3)
    assert board.state is S.FAULT
    assert board.errors.count("broken on purpose") == 1
    assert board.refusal(M.CLEAR) is R.OK
    prepare(board)
    board.arm()
    assert board.run(1).enable == 1


def hold_off(board: BoardProcess, counts: int = 50, registers: dict[str, int] | None = None) -> None:
    """Have the board pull, by a mA a count, at a joint that stands this far from its reference."""
    prepare(board)
    for name, value in {"servo.kd": 0, **(registers or {})}.items():
        assert board.write(name, value) is R.OK
    board.plant = None
    board.run(30)
    board.arm()
    board.motor_count = (board.motor_count - counts) % 65536


def keep_alive(board: BoardProcess, ticks: int) -> int:
    """Run that long, or until the motor is off; the ticks it was on."""
    for k in range(ticks):
        if k % 20 == 0:
            board.send(M.PING, nonce=1)
        if not board.run(1).enable:
            return k
    return ticks


@pytest.mark.parametrize("stuck_ms", [10, 200])
def test_a_driven_motor_whose_encoder_stands_still_is_switched_off(board: BoardProcess, stuck_ms: int) -> None:
    hold_off(board, 50, {"limit.stuck_current": 50, "limit.stuck_time": stuck_ms})
    board.run(1)  # the move itself
    assert keep_alive(board, 300) == stuck_ms - 1
    board.run(2)
    fault = board.of(M.FAULT)[0].body
    assert (fault.trip, fault.value, fault.limit) == (Trip.ENCODER_STUCK, stuck_ms, stuck_ms)


def test_an_encoder_with_a_cut_wire_stands_still(board: BoardProcess) -> None:
    """Of a quadrature encoder that turns on one wire alone is left: it counts one up and one down."""
    hold_off(board, 50, {"limit.stuck_current": 40, "limit.stuck_time": 20})
    board.run(1)
    on = 0
    while board.run(1).enable:
        board.motor_count ^= 1
        on += 1
    assert on in (18, 19)
    board.run(2)
    assert board.of(M.FAULT)[0].body.trip == Trip.ENCODER_STUCK


def test_a_motor_at_its_clamp_must_move_whatever_the_register_says(board: BoardProcess) -> None:
    hold_off(board, 50, {"limit.stuck_current": 32000, "limit.current": 40})
    board.run(1)
    assert keep_alive(board, 300) == 199
    board.run(2)
    assert board.of(M.FAULT)[0].body.trip == Trip.ENCODER_STUCK


def test_a_motor_that_holds_with_less_may_stand_still(board: BoardProcess) -> None:
    hold_off(board)
    assert keep_alive(board, 1000) == 1000


def test_current_that_heats_for_long_trips_when_its_mean_square_says_so(board: BoardProcess) -> None:
    """2.5 A from cold, 1.25 A allowed for ever, 2 s: the mean square passes a quarter after 2 s ln(4/3)."""
    prepare(board)
    for name, value in {"limit.continuous_current": 1250, "limit.thermal_time": 2000}.items():
        assert board.write(name, value) is R.OK
    board.arm()
    board.current = 8192
    # It is looked at each 64 ticks.
    assert keep_alive(board, 1000) == pytest.approx(2000 * 0.28768, abs=64)
    board.run(2)
    fault = board.of(M.FAULT)[0].body
    assert fault.trip == Trip.I2T
    assert fault.limit == pytest.approx(1250, abs=5)  # squares of 1/4096 of 10 A, cut off twice
    assert fault.limit <= fault.value < 1400  # one look beyond
    board.current = 0
    assert board.refusal(M.CLEAR) is R.OK
    prepare(board)
    board.arm()
    assert keep_alive(board, 200) < 2  # it is as hot as before: nothing is forgotten by CLEAR
    board.run(2000)
    assert board.refusal(M.CLEAR) is R.OK
    prepare(board)
    board.arm()
    assert keep_alive(board, 200) == 200


def test_a_reference_outside_the_window_is_a_bad_command(board: BoardProcess) -> None:
    """Each knot is inside, but the cubic between two of them is not."""
    board.plant = Joint()
    prepare(board, [(0, 0), (90, 2560), (90, -2560), (0, 0)])
    assert board.write("limit.position_max", 100) is R.OK
    board.run(30)
    play(board)
    assert keep_alive(board, 100) < 64
    board.run(2)
    fault = board.of(M.FAULT)[0].body
    assert (fault.trip, fault.limit) == (Trip.COMMAND, 100)
    assert fault.value > 100


@pytest.mark.parametrize("counts", [50, -50])
def test_a_silent_host_first_loses_the_current_and_then_the_motor(board: BoardProcess, counts: int) -> None:
    """From half the time-out on the command goes down on a straight line; at its end the fault latches."""
    hold_off(board, counts)
    board.step()
    heard = board.last.tick - 1  # the tick in which ARM came
    commands = {out.tick - heard: out for out in (board.step() for _ in range(600))}
    for silence, out in commands.items():
        part = min(1.0, (500 - silence) / 250)
        if silence < 500:
            assert (out.enable, abs(out.command_mA - counts * part) < 1.0) == (1, True), silence
        else:
            assert (out.enable, out.command_mA) == (0, 0)
    assert board.of(M.FAULT)[0].body.trip == Trip.LINK_LOSS


def test_a_joint_that_sags_while_it_is_let_go_of_is_a_lost_link(board: BoardProcess) -> None:
    hold_off(board, 50, {"limit.velocity": 2**20})
    board.run(300)
    board.motor_count = (board.motor_count - 600) % 65536  # beyond limit.following
    assert board.run(150).enable == 1
    board.run(100)
    assert board.of(M.FAULT)[0].body.trip == Trip.LINK_LOSS


HARD = {"hard.current": 2000, "hard.velocity": 20_000, "hard.missed_ticks": 5}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("limit.current", 2000),
        ("limit.continuous_current", 2000),
        ("servo.friction", 2000),
        ("limit.velocity", 20_000),
        ("limit.missed_ticks", 5),
    ],
)
def test_no_register_is_set_beyond_a_hard_bound(start_board: StartBoard, name: str, most: int) -> None:
    board = start_board(facts=HARD)
    assert board.read(name) <= most
    answer = board.request(M.WRITE, register=BY_NAME[name].id, value=most + 1).body
    assert (R(answer.refusal), answer.value) == (R.OUT_OF_RANGE, most)
    assert board.write(name, most) is R.OK


# A register gone astray in memory, as no WRITE could leave it; the limits are derived anew, as after any write.
ASTRAY = """
from unix import Board
from jointboard import app, registers, wire
class AstrayBoard(Board):
    def watchdog(self, timeout_ms):
        for name in ("LIMIT_CURRENT", "LIMIT_VELOCITY", "LIMIT_JUMP"):
            app._motors[0].cells[getattr(wire, "REGISTER_" + name)] = 0x3FFFFFFF
        registers.derive(app._motors[0].cells)
app.run(AstrayBoard())
"""


@pytest.mark.parametrize(("jumps", "trip"), [(79, Trip.ENCODER_JUMP), (0, Trip.OVER_CURRENT)])
def test_trips_do_not_need_sane_registers(start_board: StartBoard, jumps: int, trip: Trip) -> None:
    board = start_board(facts=HARD, program=ASTRAY)
    board.upload(swing())
    board.arm()
    board.motor_count -= jumps  # 20 000 / 256 = 78 counts a tick
    board.current = 0 if jumps else 8193  # 1.25 x 2 A = 8192 counts
    assert board.step().enable == 0
    board.run(2)
    assert board.of(M.FAULT)[0].body.trip == trip
