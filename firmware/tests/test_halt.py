"""HALT slows the reference down until the motor is off at rest; however the program ends, the motor is off."""

import numpy as np
import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip, stack_samples

M, R, S = MessageType, Refusal, State
DECELERATION = 128  # half a count per tick and tick


@pytest.mark.parametrize("way", [6000, -6000])
def test_a_moving_motor_slows_down_and_is_off_at_rest(board: BoardProcess, way: int) -> None:
    prepare(board, swing(9, way))
    assert board.write("limit.deceleration", DECELERATION) is R.OK
    play(board)
    board.run(64)
    board.send(M.HALT)
    board.run(1)
    asked = board.last.tick
    while board.run(1).enable:
        assert board.last.tick < asked + 200
    ticks = board.last.tick - asked
    assert ticks == pytest.approx(0.707 * 31416 * 0.6 / DECELERATION, abs=45)  # near its fastest
    board.run(70)
    status = board.of(M.STATUS)[-1].body
    assert (status.state, status.trip) == (S.LOADED, Trip.NONE)
    assert not board.of(M.FAULT)
    samples = stack_samples(board.of(M.DATA))
    position = np.asarray(samples["motor_position"], dtype=float)
    speed = np.abs(np.diff(position)[-ticks:])
    assert speed[:5].mean() > 40.0
    assert speed[-5:].mean() < 8.0  # the joint comes a little after its reference
    changes = np.diff(np.convolve(speed, np.ones(16) / 16, "valid"))
    assert np.abs(changes).max() < 2.0 * DECELERATION / 256
    board.arm()  # what was loaded is still there
    assert board.run(5).enable == 1


def test_a_halt_of_a_motor_that_holds_is_its_end(board: BoardProcess) -> None:
    prepare(board)
    board.arm()
    assert board.run(5).enable == 1
    assert board.refusal(M.HALT) is R.OK
    assert board.run(1).enable == 0
    assert board.state is S.LOADED
    assert board.refusal(M.HALT) is R.WRONG_STATE


def test_trips_and_stop_go_on_to_count_while_it_slows_down(board: BoardProcess) -> None:
    prepare(board, swing(9, 6000))
    assert board.write("limit.deceleration", 16) is R.OK
    play(board)
    board.run(64)
    assert board.refusal(M.HALT) is R.OK
    assert board.run(20).enable == 1
    board.pins = 1
    assert board.step().enable == 0
    board.pins = 0
    board.run(2)
    assert board.of(M.FAULT)[0].body.trip == Trip.STOP_PIN


def test_a_stop_in_a_halt_is_the_cut_and_the_next_motion_is_whole(board: BoardProcess) -> None:
    prepare(board, swing())
    assert board.write("limit.deceleration", 16) is R.OK
    play(board)
    board.run(40)
    assert board.refusal(M.HALT) is R.OK
    assert board.refusal(M.STOP) is R.OK
    assert board.run(1).enable == 0
    board.plant = None
    board.motor_count = 0
    board.run(300)
    prepare(board, swing())
    play(board)
    board.run(200)
    assert board.state is S.DONE


# Raises in the middle of a tick while the motor is on, then tells what the pins have and what became of the error.
ENDING = """
import sys
from unix import Board
from jointboard import app
class EndingBoard(Board):
    driven = 0
    def apply(self):
        self.driven += self.outputs[4]
        if self.outputs[4] and self.driven == 10:
            raise {error}
board = EndingBoard()
told = "no error"
try:
    app.run(board)
except BaseException as error:
    told = repr(error)
with open("end.txt", "w") as file:
    file.write("%s, enable %d, command %d" % (told, board.outputs[4], board.outputs[8] | board.outputs[9]))
"""


@pytest.mark.parametrize("error", ["KeyboardInterrupt()", "SystemExit()"])
def test_ctrl_c_and_a_soft_reset_leave_the_motor_off(start_board: StartBoard, error: str) -> None:
    board = start_board(program=ENDING.replace("{error}", error))
    prepare(board)
    board.arm()
    board.motor_count -= 50  # so that there is a command to be taken back
    with pytest.raises(AssertionError, match="the board ended"):
        board.run(20)
    board.process.wait(10)
    assert (board.folder / "end.txt").read_text() == f"{error}, enable 0, command 0"


@pytest.mark.parametrize(("error", "trip"), [("MemoryError()", Trip.INTERNAL), ("OSError(5)", Trip.HARDWARE)])
def test_any_other_error_leaves_it_off_and_latches(start_board: StartBoard, error: str, trip: Trip) -> None:
    board = start_board(program=ENDING.replace("{error}", error))
    prepare(board)
    board.arm()
    last = [board.step().enable for _ in range(20)]
    assert last == sorted(last, reverse=True)  # on, then off for good
    assert sum(last) < 12
    assert [frame.body.trip for frame in board.of(M.FAULT)] == [trip]


WATCHED = """
from unix import Board
from jointboard import app
log = open("watchdog.txt", "w")
class WatchedBoard(Board):
    def watchdog(self, timeout_ms):
        log.write("%d " % timeout_ms)
app.run(WatchedBoard())
log.close()
"""


def test_the_watchdog_is_started_at_arm_and_not_before(start_board: StartBoard) -> None:
    board = start_board(program=WATCHED)
    prepare(board)
    token = board.hello().body.token
    assert board.refusal(M.ARM, token=token, config_crc=0) is R.BAD_CONFIG
    assert board.close() == 0
    assert (board.folder / "watchdog.txt").read_text() == ""
    board = start_board(program=WATCHED)
    prepare(board)
    board.arm()
    assert board.close() == 0
    assert (board.folder / "watchdog.txt").read_text() == "1000 "


# A clock that runs: each look at it costs 5 us, up to 990 of a tick; collecting memory is looked at twice.
CLOCK = """
from unix import Board
from jointboard import app
class ClockBoard(Board):
    looks = 0
    def now_us(self):
        self.looks += 1
        return self.inputs[4] + (self.inputs[5] << 8) + (self.inputs[6] << 16) + min(5 * self.looks, 990)
app.run(ClockBoard())
"""


def test_status_tells_the_longest_tick_and_pause_where_a_clock_runs(start_board: StartBoard) -> None:
    board = start_board(program=CLOCK)
    for _ in range(220):
        board.send(M.READ, first=0, count=1)  # which takes memory, as a PING does not
        board.run(10)
    status = board.of(M.STATUS)[-1].body
    assert 900 < status.longest_tick_us < 1000
    assert status.longest_gc_us == 5


def test_a_clock_that_stands_within_a_tick_measures_nothing(board: BoardProcess) -> None:
    for _ in range(110):
        board.send(M.READ, first=0, count=1)
        board.run(20)
    status = board.of(M.STATUS)[-1].body
    assert (status.longest_tick_us, status.longest_gc_us) == (0, 0)
