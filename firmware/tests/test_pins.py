"""Pins that keep the motor off, and encoders that disagree: trips of their own, in the tick, latched."""

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip

M, S, R = MessageType, State, Refusal
STOP, FAULT, LOW, HIGH = 1, 2, 4, 8
LINK = {"encoder.link_counts": 16384, "drive.ratio": 50000, "encoder.motor_counts": 4096}  # 12.5 motor counts a count


@pytest.mark.parametrize(
    ("pins", "trip"),
    [(STOP, Trip.STOP_PIN), (FAULT, Trip.FAULT_PIN), (STOP | FAULT, Trip.STOP_PIN), (LOW, Trip.LIMIT_PIN),
     (HIGH, Trip.LIMIT_PIN), (HIGH | FAULT, Trip.FAULT_PIN)],
)  # fmt: skip
@pytest.mark.parametrize("running", [False, True])
def test_a_low_pin_takes_the_power_in_its_tick(board: BoardProcess, pins: int, trip: Trip, running: bool) -> None:
    prepare(board)
    play(board) if running else board.arm()
    assert board.run(20).enable == 1
    board.pins = pins
    board.supply = 0  # an emergency stop takes the motor's supply, too: the pin is what is named
    out = board.step()
    assert (out.enable, out.command_mA) == (0, 0)
    board.pins = 0  # for a moment is enough
    assert board.run(50).enable == 0
    fault = board.of(M.FAULT)[0].body
    assert (fault.trip, fault.tick, fault.value, fault.limit) == (trip, out.tick, pins, 0)
    assert board.state is S.FAULT


@pytest.mark.parametrize("pins", [STOP, FAULT, STOP | FAULT])
def test_a_motor_is_not_armed_while_they_are_low(board: BoardProcess, pins: int) -> None:
    prepare(board)
    board.pins = pins
    board.run(1)
    answer = board.request(M.ARM, **board.arming())
    assert (R(answer.body.refusal), answer.body.value) == (R.PINS, pins)
    board.pins = 0
    board.run(1)
    board.arm()
    assert board.run(5).enable == 1


@pytest.mark.parametrize(("pin", "way"), [(LOW, 2000), (HIGH, -2000)])
def test_a_motor_leaves_the_switch_that_it_stood_at_when_it_was_armed(board: BoardProcess, pin: int, way: int) -> None:
    prepare(board, swing(amplitude=way), 2)
    board.pins = pin
    board.run(1)
    play(board)
    board.run(20)
    board.pins = 0  # it is left
    assert board.run(20).enable == 1
    board.pins = pin  # and reached again
    assert board.step().enable == 0
    board.run(2)
    assert board.of(M.FAULT)[0].body.trip == Trip.LIMIT_PIN


@pytest.mark.parametrize(("pin", "way"), [(LOW, -2000), (HIGH, 2000)])
def test_a_plan_that_goes_on_into_the_switch_is_not_driven(board: BoardProcess, pin: int, way: int) -> None:
    prepare(board, swing(amplitude=way))
    board.pins = pin
    board.run(1)
    board.arm()
    assert board.run(5).enable == 1  # to hold there is allowed
    assert board.refusal(M.START, at_tick=0) is R.OK
    board.run(3)
    assert board.last.enable == 0
    assert board.of(M.FAULT)[0].body.trip == Trip.LIMIT_PIN


def test_encoders_that_disagree_by_more_than_the_joint_twists_trip(start_board: StartBoard) -> None:
    board = start_board(facts=LINK)
    prepare(board, swing(9, 6000))
    assert board.write("limit.twist", 300) is R.OK
    plant = board.plant
    assert plant
    lag = 0

    def geared(outputs: object) -> int:
        count = plant(outputs)  # pyright: ignore[reportArgumentType]
        board.link_count = round((count - lag) / 12.5) % 16384
        return count

    board.plant = geared
    play(board)
    board.run(300)  # 6 000 counts there and back, of which each encoder tells its own
    assert board.state is S.DONE
    lag = 250
    board.arm()
    assert board.run(10).enable == 1
    lag = 320
    board.run(2)
    assert board.last.enable == 0
    board.run(2)
    fault = board.of(M.FAULT)[0].body
    assert (fault.trip, fault.limit) == (Trip.TWIST, 300)
    assert 306 <= fault.value <= 334  # a count of the link encoder is 12.5 of the motor's


def test_a_board_without_a_link_encoder_has_no_twist(start_board: StartBoard) -> None:
    board = start_board(facts={"board.channels": 0x87B})
    answer = board.request(M.WRITE, register=63, value=300)
    assert (R(answer.body.refusal), answer.body.value) == (R.OUT_OF_RANGE, 0)
    prepare(board, swing(9, 6000))
    play(board)
    assert board.run(200).enable == 1
