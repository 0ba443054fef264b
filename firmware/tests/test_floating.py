"""Zero force on a board: the table it floats by, what the host says besides, walls, caps, and who lets go of it."""

import itertools
import struct
import zlib

import numpy as np
import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip

M, S, R = MessageType, State, Refusal
STEP = 4096  # counts between two currents
FIRST = -8 * STEP
TABLE = [round(900 * np.sin(0.4 * k)) for k in range(17)]
FREE = {
    "servo.kp": 256, "servo.kd": 320, "limit.current": 8000, "limit.following": 4000, "limit.float": 5000,
    "limit.position_min": -7 * STEP, "limit.position_max": 7 * STEP, "float.velocity": 25600,
    "limit.link_timeout": 2000, "limit.velocity": 2**20,
}  # fmt: skip


def load(board: BoardProcess, currents: list[int], step: int = STEP, first: int = FIRST) -> tuple[Refusal, int]:
    """Upload a table and ask for LOAD: what it answers, and the value."""
    knots = [(first + step * k, 0) for k in range(len(currents))]
    parts = [{"position": p, "velocity": v} for p, v in knots]
    assert board.refusal(M.KNOTS, offset=0, count=len(parts), knots=parts) is R.OK
    assert board.refusal(M.FEEDFORWARD, offset=0, count=len(currents), currents=currents) is R.OK
    data = b"".join(struct.pack("<ii", *knot) for knot in knots) + struct.pack(f"<{len(currents)}h", *currents)
    answer = board.request(M.LOAD, count=len(knots), repeats=0, crc32=zlib.crc32(data)).body
    return R(answer.refusal), answer.value


def begin(board: BoardProcess, current: int = 0, **registers: int) -> None:
    """Let a board float whose motor is turned by hand: `motor_count`."""
    for name, value in (FREE | {name.replace("_", ".", 1): value for name, value in registers.items()}).items():
        assert board.write(name, value) is R.OK
    board.plant = None
    board.upload([(FIRST + STEP * k, 0) for k in range(len(TABLE))], repeats=0, feedforward_mA=TABLE)
    board.arm()
    board.request(M.COMPENSATE, nonce=1, current=current)
    assert board.refusal(M.START, at_tick=0) is R.OK


def float_on(board: BoardProcess, ticks: int, current: int = 0, speed: float = 0.0) -> list[int]:
    """Commands of ticks in which the host is heard of and the hand turns the motor."""
    seen, start = list[int](), board.motor_count
    for k in range(ticks):
        if k % 40 == 0:
            board.send(M.COMPENSATE, nonce=k, current=current)
        board.motor_count = start + round(speed * (k + 1))
        seen.append(board.run(1).command_mA)
    return seen


def go_to(board: BoardProcess, position: int, **options: int) -> None:
    """Turn the motor by hand, 20 counts a tick, and wait until it is at rest."""
    way = position - board.motor_count
    float_on(board, abs(way) // 20, speed=20.0 if way > 0 else -20.0, **options)
    board.motor_count = position
    float_on(board, 120, **options)


def test_a_motor_floats_by_its_table_and_what_the_host_says(board: BoardProcess) -> None:
    begin(board, current=30)
    go_to(board, 3 * STEP // 2, current=30)
    expected = round(30 + (TABLE[9] + TABLE[10]) / 2)
    assert abs(float_on(board, 100, 30)[-1] - expected) <= 1
    later = float_on(board, 120, -500)
    assert abs(later[-1] - (expected - 530)) <= 2  # it is followed by a low-pass that is left a part of a mA short
    assert 20 < np.abs(np.diff(later)).max() <= 35  # 530 / 16 a tick
    assert board.state is S.RUNNING


def test_the_currents_between_those_of_the_table_are_a_straight_line(board: BoardProcess) -> None:
    begin(board)
    seen = float_on(board, 256, speed=STEP / 64)
    exact = np.interp(STEP / 64 * np.arange(1, 257), STEP * np.arange(-8, 9), TABLE)
    # Cut to whole mA, and a weight of 1/256: no step of the table is above 360 mA.
    assert np.abs(np.array(seen) - exact).max() <= 2.5


def test_a_pong_answers_each_and_none_takes_memory(board: BoardProcess) -> None:
    begin(board)
    heap = board.of(M.STATUS)[-1].body.heap_free if board.of(M.STATUS) else None
    before = len(board.of(M.PONG))
    float_on(board, 30_000 // 10, 5)
    assert len(board.of(M.PONG)) - before == 3000 // 40
    assert board.state is S.RUNNING
    for nonce in range(1000):  # beyond the errands that are served while a motor is driven
        board.send(M.COMPENSATE, nonce=nonce, current=0)
        board.run(1)
    assert board.last.enable == 1
    assert heap is None or board.of(M.STATUS)[-1].body.heap_free == heap


def test_it_comes_to_rest_and_is_off_when_nobody_holds_it(board: BoardProcess) -> None:
    begin(board, float_timeout=50)
    float_on(board, 41, speed=20.0)
    start, seen = board.motor_count, list[tuple[int, int]]()
    for k in range(200):
        board.send(M.PING, nonce=k)  # the link is there, the hand at the switch is not
        board.motor_count = start + 20 * (k + 1)
        out = board.run(1)
        seen.append((out.enable, out.command_mA))
    off = [enable for enable, _ in seen].index(0)
    assert 49 <= off <= 50 + 20 * 256 // 64 + 2  # then it slows by limit.deceleration, 1/4 count/tick a tick
    slowing = [command for _, command in seen[60 : off - 1]]
    assert min(slowing) < -500  # the servo brakes the hand
    assert all(output == (0, 0) for output in seen[off:])
    assert board.state is S.LOADED


def test_a_link_that_drops_takes_the_power_within_its_timeout(board: BoardProcess) -> None:
    begin(board, float_timeout=2000, limit_link_timeout=200)
    go_to(board, STEP)
    seen = [board.run(1) for _ in range(220)]
    assert board.state is S.FAULT
    board.run(2)
    assert board.of(M.FAULT)[-1].body.trip == Trip.LINK_LOSS
    assert (seen[-1].enable, seen[-1].command_mA) == (0, 0)
    assert abs(seen[50].command_mA - TABLE[9]) <= 1
    letting_go = np.abs([out.command_mA for out in seen[110:]])
    assert np.diff(letting_go).max() <= 0


def test_walls_push_back_and_trips_still_hold(board: BoardProcess) -> None:
    begin(board, float_wall=1000)
    go_to(board, 7 * STEP - 400)
    push = float_on(board, 60)[-1]
    table = TABLE[14] + (TABLE[15] - TABLE[14]) * (STEP - 400) // STEP
    assert push == pytest.approx(table - 600, abs=3)  # 1 mA a count, 600 counts inside
    board.motor_count = 7 * STEP + 1
    board.run(1)
    assert (board.last.enable, board.state) == (0, S.FAULT)


def test_a_motor_that_goes_too_fast_is_held_back(board: BoardProcess) -> None:
    seen = list[int]()
    for cap in (25600, 10 * 256):
        begin(board, float_velocity=cap)
        seen.append(float_on(board, 150, speed=30.0)[-1])
        assert board.refusal(M.STOP) is R.OK
        board.motor_count = 0
        board.run(60)
    assert seen[1] - seen[0] == pytest.approx(-(30 - 10) * 320 / 16, abs=5)  # servo.kd of what is beyond it


def test_friction_is_compensated_beyond_the_dead_band_only(board: BoardProcess) -> None:
    seen = dict[float, int]()
    for speed in (0.5, 4.0, -4.0):
        begin(board, servo_friction=300, servo_friction_band=256, float_dead_band=256)
        moved = float_on(board, 160, speed=speed)[-1]
        at = np.interp(board.motor_count, STEP * np.arange(-8, 9), TABLE)
        seen[speed] = round(moved - at)
        assert board.refusal(M.STOP) is R.OK
        board.motor_count = 0
        board.run(60)
    assert abs(seen[0.5]) <= 3
    assert seen[4.0] == pytest.approx(300, abs=3)
    assert seen[-4.0] == pytest.approx(-300, abs=3)


def test_at_rest_it_is_held_and_yields_to_a_hand(board: BoardProcess) -> None:
    begin(board, float_hold=40, float_dead_band=256)
    free = float_on(board, 100)[-1]
    assert free == TABLE[8]
    float_on(board, 60, speed=0.5)
    held = float_on(board, 400)[-1]
    assert held == pytest.approx(TABLE[8] - 30 + (TABLE[9] - TABLE[8]) * 30 / STEP, abs=3)
    moved = float_on(board, 300, speed=5.0)[-1]
    assert moved == pytest.approx(np.interp(board.motor_count, STEP * np.arange(-8, 9), TABLE), abs=3)


def test_an_acceleration_is_helped(board: BoardProcess) -> None:
    begin(board, float_inertia=320)
    start, command = board.motor_count, 0
    for k in range(60):
        if k % 40 == 0:
            board.send(M.COMPENSATE, nonce=k, current=0)
        board.motor_count = start + round(0.05 * k * k)
        command = board.run(1).command_mA
    at = np.interp(board.motor_count, STEP * np.arange(-8, 9), TABLE)
    # 0.1 counts/tick² times a lag of 15 ticks or so, times 320 / 16 mA per count/tick.
    assert command - at == pytest.approx(0.1 * 15.5 * 320 / 16, abs=6)


def test_no_board_floats_by_default(board: BoardProcess) -> None:
    assert board.read("limit.float") == 0
    assert load(board, TABLE) == (R.TABLE, 0)
    assert board.state is S.DISARMED


def test_what_is_no_table_is_refused_by_the_knot(board: BoardProcess) -> None:
    for name, value in FREE.items():
        assert board.write(name, value) is R.OK
    assert load(board, TABLE, step=STEP + 1) == (R.TABLE, 1)
    assert load(board, TABLE, step=128) == (R.TABLE, 1)
    assert load(board, TABLE, step=-STEP, first=-FIRST) == (R.TABLE, 1)
    assert load(board, TABLE[:10]) == (R.OUTSIDE_LIMITS, 9)  # it must go on beyond the window
    assert load(board, TABLE, first=-6 * STEP) == (R.OUTSIDE_LIMITS, 0)
    assert load(board, [*TABLE[:3], 5001, *TABLE[4:]]) == (R.FEEDFORWARD, 3)
    assert load(board, TABLE) == (R.OK, 17)
    assert board.write("limit.position_max", 8 * STEP) is R.OK  # wider than the table since LOAD
    uneven = [{"position": FIRST + STEP * k + (k == 5), "velocity": 0} for k in range(17)]
    assert board.refusal(M.KNOTS, offset=0, count=17, knots=uneven) is R.OK
    assert board.refusal(M.FEEDFORWARD, offset=0, count=17, currents=TABLE) is R.OK
    data = b"".join(struct.pack("<ii", k["position"], 0) for k in uneven) + struct.pack("<17h", *TABLE)
    answer = board.request(M.LOAD, count=17, repeats=0, crc32=zlib.crc32(data)).body
    assert (R(answer.refusal), answer.value) == (R.TABLE, 5)


def test_a_window_that_grew_beyond_the_table_keeps_it_from_being_armed(board: BoardProcess) -> None:
    begin(board)
    assert board.refusal(M.STOP) is R.OK
    board.run(60)
    assert board.write("limit.position_max", 8 * STEP) is R.OK
    answer = board.request(M.ARM, **board.arming()).body
    assert (R(answer.refusal), answer.value) == (R.INCOMPLETE, 16)
    assert board.state is S.DISARMED


def test_a_motion_after_it_is_played_as_ever(start_board: StartBoard) -> None:
    seen = list[list[int]]()
    for floats in (False, True):
        board = start_board()
        if floats:
            begin(board, current=100)
            float_on(board, 50)
            assert board.refusal(M.STOP) is R.OK
            board.run(60)
        prepare(board)
        for name, value in {name: FREE[name] for name in itertools.islice(FREE, 4)}.items():
            assert board.write(name, value) is R.OK
        board.upload(swing())
        play(board, at_tick=board.tick + 40)
        seen.append([board.run(1).command_mA for _ in range(150)])
    assert seen[0] == seen[1]
