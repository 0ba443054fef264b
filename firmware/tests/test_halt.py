"""A controlled stop: HALT slows the reference down within limit.deceleration, and the motor is off at rest."""

import numpy as np
import pytest

from firmware.tests.driver import BoardProcess, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip, stack_samples

M, S, R = MessageType, State, Refusal
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
