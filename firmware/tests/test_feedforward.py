"""Feed-forward current of a motion: uploaded, checked, given between knots, and gone whenever something is in doubt."""

import struct
import zlib

import numpy as np
import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip

M, S, R = MessageType, State, Refusal
STILL = [(0, 0)] * 5
CURRENTS = [100, -250, 3000, -3000, 7]
WHOLE = 256  # ticks from ARM on until all of it is given
WATCHED_FROM = 1024  # tick of the motion from which on the servo's part is watched


def allow(board: BoardProcess, currents: list[int], knots: list[tuple[int, int]] | None = None) -> None:
    """Prepare a board whose servo gives nothing of its own: what it commands is the feed-forward."""
    prepare(board)
    for name, value in {"servo.kp": 0, "servo.kd": 0, "limit.feedforward": 3000}.items():
        assert board.write(name, value) is R.OK
    board.plant = None
    board.upload(knots or STILL, feedforward_mA=currents)


def commands(board: BoardProcess, ticks: int) -> list[int]:
    return [board.run(1).command_mA for _ in range(ticks)]


def arm_for(board: BoardProcess, ticks: int) -> list[int]:
    """Commands from ARM on; the host is heard of meanwhile."""
    board.arm()
    return go_on(board, ticks)


def test_it_is_a_straight_line_between_knots_and_comes_in_from_arm_on(board: BoardProcess) -> None:
    allow(board, CURRENTS)
    held = arm_for(board, WHOLE + 50)
    assert held == sorted(held)
    assert max(np.diff(held)) <= 1
    assert held[-40:] == [CURRENTS[0]] * 40
    at = board.tick + 10
    assert board.refusal(M.START, at_tick=at) is R.OK
    commands(board, at - board.tick)
    exact = np.interp(np.arange(4 * 32) / 32, range(5), CURRENTS)
    played = commands(board, 4 * 32)
    assert np.abs(np.array(played) - np.floor(exact)).max() == 0
    assert commands(board, 1) == [0]
    assert board.state is S.DONE


def test_it_is_given_in_part_where_the_motion_begins_before_all_of_it_has_come_in(board: BoardProcess) -> None:
    allow(board, [1000] * 5)
    play(board)
    played = commands(board, 4 * 32)
    assert 0 < played[0] < 100
    assert np.diff(played).min() >= 3  # 1000 / 256 a tick
    assert played[-1] < 1000 * (4 * 32 + 20) / WHOLE


def test_a_repeat_begins_with_its_first_knot(board: BoardProcess) -> None:
    allow(board, CURRENTS)
    board.upload(STILL, repeats=2, feedforward_mA=CURRENTS)
    arm_for(board, WHOLE)
    at = board.tick + 10
    assert board.refusal(M.START, at_tick=at) is R.OK
    commands(board, at - board.tick)
    first = commands(board, 4 * 32)
    board.send(M.PING, nonce=1)
    second = commands(board, 4 * 32)
    assert first == second
    assert max(first) > 2900


def test_a_motion_without_it_is_the_same_to_the_last_bit(start_board: StartBoard) -> None:
    """Nothing uploaded, and zeros uploaded, give the same commands, whatever its limit is."""
    seen = list[list[int]]()
    for limit, currents in ((0, []), (3000, []), (0, [0] * 5)):
        board = start_board()
        prepare(board)
        assert board.write("limit.feedforward", limit) is R.OK
        board.upload(swing(), feedforward_mA=currents)
        board.run(60)
        play(board, at_tick=board.tick + 40)
        seen.append(commands(board, 180)[:150])
    assert seen[0] == seen[1] == seen[2]
    assert max(seen[0]) > 100


def test_none_is_allowed_by_default(board: BoardProcess) -> None:
    assert board.read("limit.feedforward") == 0
    answer = load(board, STILL, [0, 0, 0, 1, 0])
    assert answer == (R.FEEDFORWARD, 3)
    assert board.state is S.DISARMED


@pytest.mark.parametrize("sign", [1, -1])
def test_a_current_beyond_the_limit_is_refused_by_name(board: BoardProcess, sign: int) -> None:
    assert board.write("limit.feedforward", 700) is R.OK
    assert load(board, STILL, [0, 700 * sign, 701 * sign, 0, 0]) == (R.FEEDFORWARD, 2)
    assert load(board, STILL, [0, 700 * sign, -700 * sign, 0, 0]) == (R.OK, 5)


def test_a_limit_lowered_after_load_keeps_it_from_being_armed(board: BoardProcess) -> None:
    allow(board, CURRENTS)
    assert board.write("limit.feedforward", 2999) is R.OK
    answer = board.request(M.ARM, **board.arming()).body
    assert (R(answer.refusal), answer.value) == (R.INCOMPLETE, 2)
    assert board.state is S.DISARMED


def test_it_must_be_whole_and_undamaged(board: BoardProcess) -> None:
    assert board.write("limit.feedforward", 700) is R.OK
    assert load(board, STILL, [1, 2, 3, 4]) == (R.INCOMPLETE, 4)
    data = knot_bytes(STILL) + struct.pack("<5h", 1, 2, 3, 4, 5)
    assert load(board, STILL, [1, 2, 3, 4, 6], crc=zlib.crc32(data)) == (R.BAD_CRC, 5)
    assert board.refusal(M.FEEDFORWARD, offset=0, count=6, currents=[0] * 6) is R.INCOMPLETE  # of five knots
    assert board.refusal(M.FEEDFORWARD, offset=5, count=1, currents=[0]) is R.INCOMPLETE
    assert load(board, STILL, []) == (R.OK, 5)  # KNOTS drops what was there


def test_the_longest_motion_with_it_is_four_fifths_of_the_longest(board: BoardProcess) -> None:
    most = board.hello().body.max_knots
    held = most * 8 // 10
    assert board.write("limit.feedforward", 9) is R.OK
    board.upload([(0, 0)] * held, feedforward_mA=[9] * held)
    assert board.state is S.LOADED
    board.upload([(0, 0)] * most)
    answer = board.request(M.FEEDFORWARD, offset=0, count=1, currents=[0]).body
    assert (R(answer.refusal), answer.value) == (R.TOO_LONG, held)


def test_the_sum_stays_within_the_clamp_and_goes_down_when_the_host_is_gone(board: BoardProcess) -> None:
    knots = [(0, 0)] * 40
    allow(board, [3000] * 40, knots)
    assert board.write("limit.current", 1000) is R.OK
    arm_for(board, WHOLE)
    assert board.refusal(M.START, at_tick=0) is R.OK
    seen = commands(board, 520)
    assert max(seen) == 1000
    letting_go = seen[260:]
    assert np.diff(letting_go).max() <= 0  # from half the time-out on, to zero at its end
    assert seen[-1] == 0
    assert board.state is S.FAULT


def test_stop_a_trip_and_halt_end_it(board: BoardProcess) -> None:
    allow(board, [3000] * 5)
    arm_for(board, WHOLE)
    assert board.last.command_mA == 3000
    assert board.refusal(M.STOP) is R.OK
    assert (board.last.enable, board.last.command_mA) == (0, 0)
    begun = arm_for(board, 5)  # ARM begins anew at none of it
    assert max(begun) < 3000 * 30 / WHOLE
    board.current = 32752
    assert board.run(1).command_mA == 0
    board.current = 0
    assert board.state is S.FAULT
    assert board.refusal(M.CLEAR) is R.OK
    board.upload(STILL, feedforward_mA=[3000] * 5)
    arm_for(board, WHOLE)
    assert board.refusal(M.HALT) is R.OK
    assert (board.last.enable, board.last.command_mA) == (0, 0)


def test_a_motor_with_a_brake_is_let_go_of_slowly_at_a_halt(start_board: StartBoard) -> None:
    board = start_board(facts={"brake.engage_time": 300, "brake.release_time": 5})
    allow(board, [1000] * 5)
    arm_for(board, WHOLE + 40)
    assert board.last.command_mA == 1000
    assert board.refusal(M.HALT) is R.OK
    seen = commands(board, 290)
    assert max(seen) <= 1000
    assert -5 <= np.diff(seen).min() <= np.diff(seen).max() <= 0
    assert seen[-1] == 0


def watched(board: BoardProcess, limit: int, begun: int = 0, knots: int = 50) -> int:
    """Play a motion with feed-forward at rest, whose servo asks for a mA a count, and so many ticks of it.

    Returns:
        The board's tick at which the motion begins.
    """
    allow(board, [500] * knots, [(0, 0)] * knots)
    assert board.write("servo.kp", 256) is R.OK
    assert board.write("limit.unexpected", limit) is R.OK
    arm_for(board, WHOLE)
    return started(board, begun)


def started(board: BoardProcess, begun: int) -> int:
    """Start what is armed, and play so many ticks of it; when it begins."""
    at = board.tick + 10
    assert board.refusal(M.START, at_tick=at) is R.OK
    go_on(board, at + begun - board.tick)
    return at


def go_on(board: BoardProcess, ticks: int) -> list[int]:
    """Commands of the next ticks; the host is heard of meanwhile."""
    seen = list[int]()
    while len(seen) < ticks:
        board.send(M.PING, nonce=1)
        seen += commands(board, min(100, ticks - len(seen)))
    return seen


@pytest.mark.parametrize("sign", [1, -1])
def test_a_servo_that_adds_more_than_the_band_trips_in_the_tick_its_low_pass_passes_it(
    board: BoardProcess, sign: int
) -> None:
    watched(board, 100, WATCHED_FROM)
    assert go_on(board, 20) == [500] * 20
    board.motor_count = -200 * sign % 65536
    # 200 (1 - (7/8)^n) passes 100 with n = 6, as the command is followed by the low-pass in the same tick.
    seen = commands(board, 6)
    assert seen == [500 + 200 * sign] * 5 + [0]
    tripped = board.last.tick
    assert board.last.enable == 0
    board.run(2)
    fault = board.of(M.FAULT)[-1].body
    assert (fault.trip, fault.tick, fault.limit) == (Trip.UNEXPECTED, tripped, 100)
    assert 100 < fault.value * sign <= 112
    assert board.refusal(M.ARM, **board.arming()) is R.WRONG_STATE  # latched
    assert board.refusal(M.CLEAR) is R.OK
    board.upload([(0, 0)] * 50, feedforward_mA=[500] * 50)
    board.motor_count = 0
    arm_for(board, WHOLE)
    started(board, WATCHED_FROM)
    assert go_on(board, 20)[-1] == 500  # the low-pass begins at none again


def test_what_a_servo_asks_for_at_start_is_not_watched(board: BoardProcess) -> None:
    """A joint that stands away from the reference from START on trips as one that leaves it at the 1024th tick."""
    at = watched(board, 100)
    board.motor_count = -200 % 65536
    assert set(go_on(board, WATCHED_FROM)) == {700}
    assert go_on(board, 6) == [700] * 5 + [0]
    assert board.last.tick == at + WATCHED_FROM + 5


def test_a_joint_that_has_come_to_its_reference_by_the_1024th_tick_does_not_trip(board: BoardProcess) -> None:
    watched(board, 1)
    board.motor_count = -200 % 65536
    assert set(go_on(board, WATCHED_FROM - 1)) == {700}
    board.motor_count = 0
    assert set(go_on(board, 100)) == {500}
    assert board.state is S.RUNNING


def test_the_ticks_are_of_the_whole_motion_not_of_a_repeat(board: BoardProcess) -> None:
    allow(board, [500] * 5)
    board.upload(STILL, repeats=9, feedforward_mA=[500] * 5)
    assert board.write("servo.kp", 256) is R.OK
    assert board.write("limit.unexpected", 100) is R.OK
    arm_for(board, WHOLE)
    started(board, 0)
    board.motor_count = -200 % 65536
    assert set(go_on(board, WATCHED_FROM)) == {700}
    assert go_on(board, 6)[-1] == 0


@pytest.mark.parametrize("limit", [0, 201])
def test_nothing_is_unexpected_within_the_band_or_without_one(board: BoardProcess, limit: int) -> None:
    watched(board, limit, WATCHED_FROM)
    board.motor_count = -200 % 65536
    assert min(go_on(board, 3 * 32)) > 0
    assert board.state is S.RUNNING


def test_a_band_watches_no_motion_without_feedforward_and_no_motor_that_only_holds(board: BoardProcess) -> None:
    prepare(board)
    assert board.write("limit.unexpected", 1) is R.OK
    board.plant = None
    board.upload(STILL, feedforward_mA=[0] * 5)
    board.arm()
    board.motor_count = -200 % 65536
    board.send(M.PING, nonce=1)
    assert commands(board, 300)[-1] > 1  # all of it is given, and the motor holds
    assert board.state is S.ARMED
    assert board.refusal(M.STOP) is R.OK
    board.upload([(-200, 0)] * 50)
    board.arm()
    started(board, WATCHED_FROM)
    board.motor_count = 0
    assert go_on(board, 60)[-1] < -1
    assert board.state is S.RUNNING


def load(
    board: BoardProcess, knots: list[tuple[int, int]], currents: list[int], crc: int | None = None
) -> tuple[Refusal, int]:
    """Upload both and ask for LOAD: what it answers, and the value."""
    parts = [{"position": p, "velocity": v} for p, v in knots]
    assert board.refusal(M.KNOTS, offset=0, count=len(parts), knots=parts) is R.OK
    if currents:
        assert board.refusal(M.FEEDFORWARD, offset=0, count=len(currents), currents=currents) is R.OK
    data = knot_bytes(knots) + struct.pack(f"<{len(currents)}h", *currents)
    answer = board.request(M.LOAD, count=len(knots), repeats=1, crc32=zlib.crc32(data) if crc is None else crc).body
    return R(answer.refusal), answer.value


def knot_bytes(knots: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack("<ii", *knot) for knot in knots)
