"""What a board answers, in which state: the table of states × requests, and each refusal for each of its reasons."""

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, play, prepare, raw_frame, swing
from jointwire import ALL_CHANNELS, BY_NAME, REGISTERS, MessageType, Refusal, State, config_crc

M, S, R = MessageType, State, Refusal
AT_REST = {S.DISARMED, S.LOADED, S.DONE}
ARMING: dict[str, Any] = {}  # stands for what BoardProcess.arming() gives
KNOTS = swing()
KNOT_BYTES = b"".join(struct.pack("<ii", *knot) for knot in KNOTS)

# The contract: in which states a request is carried out, and where it leads (None: it stays).
ALLOWED: dict[M, tuple[set[S], S | None]] = {
    M.READ: (set(S), None),
    M.WRITE: (AT_REST, None),
    M.KNOTS: (AT_REST, S.DISARMED),
    M.FEEDFORWARD: (AT_REST, S.DISARMED),
    M.COMPENSATE: (set(S), None),
    M.LOAD: (AT_REST, S.LOADED),
    M.ARM: ({S.LOADED, S.DONE}, S.ARMED),
    M.START: ({S.ARMED}, S.RUNNING),
    M.CLEAR: ({S.FAULT}, S.DISARMED),
    M.PING: (set(S), None),
    M.DICT: (set(S), None),
    M.ECHO: (set(S), None),
    M.SAVE: (AT_REST, None),
}


def body(kind: M, arming: dict[str, int]) -> dict[str, Any]:
    """A request that is right in itself."""
    return {
        M.READ: {"first": 32, "count": 3},
        M.WRITE: {"register": BY_NAME["servo.kp"].id, "value": 256},
        M.KNOTS: {"offset": 0, "count": 1, "knots": [{"position": 0, "velocity": 0}]},
        M.FEEDFORWARD: {"offset": 0, "count": 0, "currents": []},
        M.LOAD: {"count": len(KNOTS), "repeats": 1, "crc32": zlib.crc32(KNOT_BYTES)},
        M.ARM: arming,
        M.START: {"at_tick": 0},
        M.PING: {"nonce": 9},
        M.COMPENSATE: {"nonce": 9, "current": 0},
        M.DICT: {"offset": 0},
        M.ECHO: {"count": 2, "data": b"\3\0"},
    }.get(kind, {})


def bring(board: BoardProcess, state: State) -> None:
    """Lead a board to a state, from wherever it is."""
    board.request(M.STOP)
    if board.state is S.FAULT:
        assert board.refusal(M.CLEAR) is R.OK
    prepare(board, KNOTS)
    board.motor_count = 0
    board.run(60)
    if state is S.DISARMED:
        board.refusal(M.KNOTS, offset=0, count=0, knots=[])
        prepare(board, KNOTS)
        board.refusal(M.KNOTS, offset=len(KNOTS), count=0, knots=[])  # all is uploaded, nothing loaded
    elif state is S.ARMED:
        board.arm()
    elif state is not S.LOADED:
        play(board)
        if state is S.DONE:
            board.run(4 * 32 + 2)
        if state is S.FAULT:
            board.current = 32752
            board.run(1)
            board.current = 0
    assert board.state is state


@pytest.mark.parametrize("state", sorted(set(S) - {S.BOOT}))
def test_states_and_requests(board: BoardProcess, state: State) -> None:
    for kind, (states, leads_to) in ALLOWED.items():
        bring(board, state)
        answer = board.request(kind, **body(kind, board.arming()))
        refusal = R(answer.body.refusal) if answer.type is M.ACK else R.OK
        if state in states:
            assert refusal is R.OK, kind
            assert board.state is (leads_to or state), kind
        else:
            assert refusal is R.WRONG_STATE, kind
            assert answer.body.value == state
            assert board.state is state, kind


@pytest.mark.parametrize("state", sorted(set(S) - {S.BOOT}))
def test_stop_in_every_state(board: BoardProcess, state: State) -> None:
    bring(board, state)
    assert board.refusal(M.STOP) is R.OK
    assert board.last.enable == 0
    assert board.state is {S.DISARMED: S.DISARMED, S.FAULT: S.FAULT}.get(state, S.LOADED)


def test_stream_always_may_change_while_running(board: BoardProcess) -> None:
    bring(board, S.RUNNING)
    assert board.write("stream.always", 1) is R.OK
    assert board.write("limit.current", 500) is R.WRONG_STATE
    assert board.state is S.RUNNING


def _armed_elsewhere(board: BoardProcess) -> None:
    bring(board, S.LOADED)
    board.upload(swing(5, 2000, start=501))  # limit.following is 500
    board.run(60)
    board.arm()


def _outside_the_window(board: BoardProcess) -> None:
    bring(board, S.LOADED)
    board.write("limit.position_min", 1)


def _narrowed_after_load(board: BoardProcess) -> None:
    bring(board, S.LOADED)
    board.write("limit.position_max", 1000)


def _loaded(board: BoardProcess) -> None:
    bring(board, S.LOADED)


def _armed(board: BoardProcess) -> None:
    bring(board, S.ARMED)


def _fresh(board: BoardProcess) -> None:
    del board


def _knots(*positions: int, offset: int = 0, velocity: int = 0) -> dict[str, Any]:
    knots = [{"position": p, "velocity": velocity} for p in positions]
    return {"offset": offset, "count": len(knots), "knots": knots}


REFUSALS: list[tuple[R, Callable[[BoardProcess], None], M, dict[str, Any], int]] = [
    (R.BAD_LENGTH, _fresh, M.PING, {"payload": b"123"}, 3),
    (R.BAD_LENGTH, _fresh, M.CLEAR, {"payload": b"1"}, 1),
    (R.BAD_LENGTH, _fresh, M.KNOTS, {"payload": struct.pack("<HHii", 0, 2, 0, 0)}, 12),
    (R.WRONG_STATE, _fresh, M.START, {"at_tick": 0}, S.DISARMED),
    (R.UNKNOWN_REGISTER, _fresh, M.READ, {"first": 73, "count": 14}, 86),
    (R.UNKNOWN_REGISTER, _fresh, M.READ, {"first": 42, "count": 65535}, 86),
    (R.UNKNOWN_REGISTER, _fresh, M.WRITE, {"register": 86, "value": 0}, 86),
    (R.UNKNOWN_REGISTER, _fresh, M.WRITE, {"register": 65535, "value": 0}, 65535),
    (R.READ_ONLY, _fresh, M.WRITE, {"register": 11, "value": 1}, 101000),
    (R.OUT_OF_RANGE, _fresh, M.WRITE, {"register": 32, "value": 32001}, 32000),
    (R.OUT_OF_RANGE, _fresh, M.WRITE, {"register": 32, "value": -(2**31)}, 0),
    (R.OUT_OF_RANGE, _loaded, M.LOAD, {"count": 1, "repeats": 1, "crc32": 0}, 1),
    (R.BAD_CRC, _loaded, M.LOAD, {"count": 5, "repeats": 0, "crc32": 0}, 5),
    (R.TABLE, _loaded, M.LOAD, {"count": 5, "repeats": 0, "crc32": zlib.crc32(KNOT_BYTES)}, 0),
    (R.OUT_OF_RANGE, _armed, M.START, {"at_tick": 2**31}, 2**30 - 1),
    (R.OUT_OF_RANGE, _fresh, M.WRITE, {"register": 40, "value": 0x481}, 1),
    (R.OUT_OF_RANGE, _fresh, M.WRITE, {"register": 40, "value": 0x400}, 0x87F),
    (R.OUT_OF_RANGE, _fresh, M.WRITE, {"register": 43, "value": 7}, 6),
    (R.BAD_TOKEN, _loaded, M.ARM, {"token": 1, "config_crc": 0}, 0),
    (R.BAD_CRC, _loaded, M.LOAD, {"count": 5, "repeats": 1, "crc32": 1}, 5),
    (R.INCOMPLETE, _loaded, M.LOAD, {"count": 6, "repeats": 1, "crc32": 0}, 5),
    (R.INCOMPLETE, _loaded, M.KNOTS, _knots(0, offset=6), 5),
    (R.INCOMPLETE, _narrowed_after_load, M.ARM, ARMING, 2),
    (R.TOO_LONG, _fresh, M.KNOTS, _knots(0, 0, offset=3071), 3072),
    (R.TOO_LONG, _fresh, M.KNOTS, _knots(0, offset=65535), 3072),
    (R.OUTSIDE_LIMITS, _outside_the_window, M.ARM, ARMING, 0),
    (R.NOT_AT_START, _armed_elsewhere, M.START, {"at_tick": 0}, 501),
    (R.TOO_LATE, _armed, M.START, {"at_tick": 1}, -1),
]


@pytest.mark.parametrize(("refusal", "situation", "kind", "fields", "value"), REFUSALS)
def test_each_refusal_and_the_value_it_names(
    board: BoardProcess,
    refusal: R,
    situation: Callable[[BoardProcess], None],
    kind: M,
    fields: dict[str, Any],
    value: int,
) -> None:
    situation(board)
    if fields is ARMING:
        fields = board.arming()
    answer = board.request(kind, **fields)
    assert R(answer.body.refusal) is refusal
    assert answer.body.request == kind
    expected = board.last.tick if refusal is R.TOO_LATE else value
    assert answer.body.value == expected


def test_the_list_of_refusals_is_whole() -> None:
    elsewhere = {
        R.OK,
        R.UNKNOWN_MESSAGE,
        R.BAD_CONFIG,
        R.NOT_SAVED,
        R.NO_MOTOR,
        R.PINS,
        R.BRAKE,
        R.FEEDFORWARD,
        R.NO_MEMORY,
    }  # a test of their own
    assert {case[0] for case in REFUSALS} == set(R) - elsewhere


def test_a_request_of_a_later_version_is_refused_by_name(board: BoardProcess) -> None:
    board.send_bytes(raw_frame(0x1F, b"later"))
    board.run(3)
    answer = board.frames[-1].body
    assert (answer.request, R(answer.refusal), answer.value) == (0x1F, R.UNKNOWN_MESSAGE, 0x1F)


@pytest.mark.parametrize(
    ("knots", "repeats", "bad"),
    [
        ([(0, 0), (65537, 0)], 1, 1),  # beyond limit.position_max
        ([(0, 0), (0, 0), (-65537, 0)], 1, 2),
        ([(0, 25601), (0, 0)], 1, 0),  # beyond limit.velocity
        ([(0, 0), (0, -25601)], 1, 1),
        ([(0, 0), (3201, 0)], 1, 1),  # 3200 counts in 32 ticks are the velocity limit
        ([(0, 0), (-3201, 0)], 1, 1),
        ([(0, 0), (101, 0)], 2, 1),  # a jump of more than 100 counts from one repeat to the next
    ],
)
def test_a_trajectory_outside_the_limits_is_not_loaded(
    board: BoardProcess, knots: list[tuple[int, int]], repeats: int, bad: int
) -> None:
    parts = [{"position": p, "velocity": v} for p, v in knots]
    assert board.refusal(M.KNOTS, offset=0, count=len(parts), knots=parts) is R.OK
    crc = zlib.crc32(b"".join(struct.pack("<ii", *knot) for knot in knots))
    answer = board.request(M.LOAD, count=len(parts), repeats=repeats, crc32=crc)
    assert (R(answer.body.refusal), answer.body.value) == (R.OUTSIDE_LIMITS, bad)
    assert board.state is S.DISARMED


def test_a_trajectory_at_the_limits_is_loaded(board: BoardProcess) -> None:
    board.upload([(62336, 25600), (65536, -25600), (62336, 0), (62436, 0)], repeats=2)
    assert board.state is S.LOADED


def test_as_many_repeats_as_a_board_says_it_takes(board: BoardProcess) -> None:
    """1024 intervals of 32 ticks: 32768 repeats would be 2^30 ticks, one tick too many."""
    knots = [(0, 0)] * 1025
    board.upload(knots)
    fields = {"count": len(knots), "crc32": zlib.crc32(bytes(8 * len(knots)))}
    answer = board.request(M.LOAD, repeats=65535, **fields).body
    assert (R(answer.refusal), answer.value) == (R.TOO_LONG, 32767)
    assert board.refusal(M.LOAD, repeats=answer.value + 1, **fields) is R.TOO_LONG
    assert board.refusal(M.LOAD, repeats=answer.value, **fields) is R.OK


def test_every_register_has_its_default_and_keeps_its_bounds(start_board: StartBoard) -> None:
    facts = {"board.channels": ALL_CHANNELS, "encoder.capture_clock": 16_000_000}
    board = start_board(facts=facts)
    for register in REGISTERS:
        fact = ({"board.node": 7} | facts).get(register.name, register.default)
        assert board.read(register.name) == fact
        if register.access == "ro":
            assert board.write(register.name, 1) is R.READ_ONLY
            continue
        for value in (register.minimum, register.maximum, register.default):
            assert board.write(register.name, value) is R.OK
            assert board.read(register.name) == value
        for value in (register.minimum - 1, register.maximum + 1):
            assert board.write(register.name, value) is R.OUT_OF_RANGE
            assert board.read(register.name) == register.default


def test_facts_come_from_the_configuration(start_board: StartBoard) -> None:
    board = start_board(facts={"current.scale": 2**31 - 1, "torque.zero": -(2**31), "drive.ratio": 120500})
    assert board.read("current.scale") == 2**31 - 1
    assert board.read("torque.zero") == -(2**31)
    assert board.read("drive.ratio") == 120500


def test_a_range_of_registers_is_read_at_once(board: BoardProcess) -> None:
    values = board.request(M.READ, first=0, count=13).body.values
    assert list(values) == [7, *(r.default for r in REGISTERS[1:13])]


def test_a_token_arms_once_and_the_newest_only(board: BoardProcess) -> None:
    prepare(board)
    first = board.arming()
    second = board.arming()
    assert first["token"] != second["token"]
    assert board.refusal(M.ARM, **first) is R.BAD_TOKEN
    assert board.refusal(M.ARM, **second) is R.OK
    assert board.refusal(M.STOP) is R.OK
    assert board.refusal(M.ARM, **second) is R.BAD_TOKEN


def test_a_host_that_does_not_know_the_registers_cannot_arm(board: BoardProcess) -> None:
    """Each register counts, the facts too, and what another program changed in between."""
    prepare(board)
    known = board.registers()
    for name in BY_NAME:
        token = board.hello().body.token
        mistaken = config_crc(known | {name: known[name] ^ 1}, board.trajectory)
        answer = board.request(M.ARM, token=token, config_crc=mistaken).body
        assert R(answer.refusal) is R.BAD_CONFIG, name
        assert answer.value & 0xFFFFFFFF == config_crc(known, board.trajectory)
    assert board.write("servo.kd", 321) is R.OK
    assert board.refusal(M.ARM, token=token, config_crc=config_crc(known, board.trajectory)) is R.BAD_CONFIG
    assert board.refusal(M.ARM, token=token, config_crc=config_crc(known | {"servo.kd": 321}, board.trajectory)) is R.OK


def test_a_host_does_not_arm_what_another_program_loaded(board: BoardProcess) -> None:
    """Between its LOAD and its ARM a second program loads another trajectory, or the same one oftener."""
    prepare(board)
    own = board.trajectory
    for knots, repeats in ((KNOTS[:-1], 1), (KNOTS, 2)):
        board.upload(knots, repeats)
        token = board.hello().body.token
        ours = config_crc(board.registers(), own)
        assert board.refusal(M.ARM, token=token, config_crc=ours) is R.BAD_CONFIG, repeats


def test_a_repeated_request_is_answered_but_not_carried_out_again(board: BoardProcess) -> None:
    prepare(board)
    crc = config_crc(board.registers(), board.trajectory)
    token = board.request(M.HELLO, major=1, minor=0, seq=900).body.token
    assert board.request(M.HELLO, major=1, minor=0, seq=900).body.token == token  # the answer under way stays true
    for _ in range(3):
        answer = board.refusal(M.ARM, token=token, config_crc=crc, seq=901)
        assert answer is R.OK  # a second ARM would be WRONG_STATE
        board.request(M.PING, nonce=1)  # keep-alives come between a request and its repetition
    for _ in range(3):
        answer = board.request(M.START, at_tick=0, seq=902)
        assert R(answer.body.refusal) is R.OK
    assert answer.body.value < board.tick - 1  # the tick it really started at
    board.run(4 * 32)
    assert board.state is S.DONE


def test_a_request_with_the_last_ones_number_but_another_body_is_carried_out(board: BoardProcess) -> None:
    """As of a second program that counts from the same number: no answer says OK to what was not done."""
    for name, value in (("servo.kp", 11), ("servo.kd", 22), ("servo.kd", 33)):
        answer = board.request(M.WRITE, seq=50, register=BY_NAME[name].id, value=value).body
        assert (R(answer.refusal), answer.value) == (R.OK, value)
    assert (board.read("servo.kp"), board.read("servo.kd")) == (11, 33)


def test_a_request_to_all_is_no_repetition_of_one_to_this_board(board: BoardProcess) -> None:
    for node, name in ((0xFF, "servo.kp"), (7, "servo.kd")):
        board.send(M.WRITE, node=node, seq=50, register=BY_NAME[name].id, value=9)
        board.run(3)
    assert (board.read("servo.kp"), board.read("servo.kd")) == (9, 9)


def test_stop_is_carried_out_though_an_earlier_one_had_its_number(board: BoardProcess) -> None:
    bring(board, S.RUNNING)
    for _ in range(2):
        assert board.request(M.STOP, seq=77).body.refusal == R.OK
        assert board.last.enable == 0
        board.arm()
        assert board.run(1).enable == 1


def test_what_another_board_says_is_heard_and_left(board: BoardProcess) -> None:
    """Even under this board's own number: it is no request."""
    board.send(M.PONG, nonce=1, tick=2)
    board.send(M.PONG, node=8, nonce=1, tick=2)
    board.send(M.DATA, payload=bytes(20))
    board.run(1000)
    assert [frame.type for frame in board.frames] == [M.STATUS]
    status = board.frames[0].body
    assert (status.frames_received, status.bad_frames) == (0, 0)


def test_only_frames_for_this_node_or_for_all_count(board: BoardProcess) -> None:
    board.send(M.PING, node=8, nonce=1)
    board.run(5)
    assert board.frames == []
    board.send(M.PING, node=0xFF, nonce=1)
    board.run(5)
    assert [frame.type for frame in board.frames] == [M.PONG]
