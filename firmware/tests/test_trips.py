"""Trips: motor off in the same tick, told at once, latched until CLEAR; and what a board does about its own errors."""

from collections.abc import Callable

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess
from firmware.tests.joint import Joint, play, prepare
from jointwire import MessageType, Refusal, State, Trip

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


# What happens, the trip, its value if known, the limit it tells (register units).
TRIPS: list[tuple[Callable[[BoardProcess], None], Trip, dict[str, int], int | None, int]] = [
    (over_current, Trip.OVER_CURRENT, {}, 32751 * 305176 // 10**6, 32736 * 305176 // 10**6),
    (over_current, Trip.OVER_CURRENT, {"limit.current": 4000}, 32751 * 305176 // 10**6, 4999),
    (position, Trip.POSITION, {"limit.position_min": -3000}, None, -3000),
    (velocity, Trip.VELOCITY, {"limit.following": 4096}, None, 25600),
    (following, Trip.FOLLOWING, {"limit.velocity": 2**20}, None, 500),
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
from jointboard import app, link
class NotingBoard(Board):
    def apply(self):
        log.write("%d %d\\n" % (self.outputs[4], link.frames_sent))
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
    board.current = 0
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
def broken(nonce):
    raise ValueError("broken on purpose")
requests._HANDLERS[wire.MESSAGE_PING] = broken
app.run(board)
"""


def test_an_error_in_the_program_takes_the_power_and_the_board_keeps_talking(start_board: StartBoard) -> None:
    board = start_board(program=BROKEN)
    prepare(board)
    board.arm()
    assert board.run(5).enable == 1
    board.send(M.PING, nonce=1)
    assert board.run(1).enable == 0
    board.run(3)
    assert [frame.body.trip for frame in board.of(M.FAULT)] == [Trip.INTERNAL]
    assert "broken on purpose" in board.errors
    for _ in range(3):  # again and again: it stays, and is told on the console once
        board.send(M.PING, nonce=1)
        board.run(3)
    assert board.state is S.FAULT
    assert board.errors.count("broken on purpose") == 1
    assert board.refusal(M.CLEAR) is R.OK
    prepare(board)
    board.arm()
    assert board.run(1).enable == 1
