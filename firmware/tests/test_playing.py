"""A board that plays: what it does tick by tick, and that what it says adds up."""

from pathlib import Path

import numpy as np
import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import SERVED_US, BoardProcess, Joint, flash, play, prepare, swing
from firmware.tests.twin import hermite
from jointwire import Frame, MessageType, Refusal, State, decode_samples


def samples(board: BoardProcess) -> dict[str, np.ndarray]:
    """The fast channels of all blocks; the slow ones have fewer values."""
    return joined(board.of(MessageType.DATA))


def joined(frames: list[Frame]) -> dict[str, np.ndarray]:
    blocks = [decode_samples(frame) for frame in frames]
    return {name: np.concatenate([block.columns[name] for block in blocks]) for name in blocks[0].columns}


def assert_counts_close(board: BoardProcess) -> None:
    status = board.of(MessageType.STATUS)[-1].body
    sent = sum(frame.body.count for frame in board.of(MessageType.DATA))
    assert sent + status.samples_dropped == status.samples_taken > 0


def test_the_first_answer_after_boot_has_the_motor_off(board: BoardProcess) -> None:
    assert (board.last.tick, board.last.enable, board.last.command_mA, board.last.sent) == (0, 0, 0, b"")


def test_ping_tells_tick_and_time(board: BoardProcess) -> None:
    board.run(40)
    pong = board.request(MessageType.PING, nonce=2**32 - 5)
    assert pong.body.nonce == 2**32 - 5
    assert pong.body.tick == board.tick - 1
    assert pong.time_us == 1000 * pong.body.tick + SERVED_US  # when it was built, not when the tick was


def test_position_at_boot_is_the_absolute_encoders(start_board: StartBoard) -> None:
    board = start_board(facts={"encoder.link_zero": 1000})
    assert board.write("stream.always", 1) is Refusal.OK
    board.run(70)
    ratio = 101 * 4096 / 524288  # motor counts for one link count
    assert samples(board)["motor_position"][0] == round(-1000 * ratio)
    board.motor_count -= 300  # the 16-bit counter goes below zero
    board.run(70)
    assert samples(board)["motor_position"][-1] == round(-1000 * ratio) - 300


def test_a_trajectory_is_played_whole_and_the_counts_close(board: BoardProcess) -> None:
    prepare(board, swing(), repeats=3)
    play(board)
    started = board.tick
    board.run(3 * 4 * 32 + 2)
    data = [frame for frame in board.of(MessageType.DATA) if frame.body.play_tick >= 0]
    assert len(joined(data)["motor_position"]) == 3 * 4 * 32
    expected = 0
    for frame in data:  # no tick is missing, none comes twice
        assert frame.body.play_tick == expected
        assert frame.body.first_tick == started + expected
        expected += frame.body.count
    status = board.of(MessageType.STATUS)[-1].body
    assert status.state == State.DONE
    assert status.tick == started + 3 * 4 * 32
    assert board.last.enable == 0
    assert_counts_close(board)


@pytest.mark.parametrize(("feedforward", "largest_error"), [(0, 80), (32, 30)])
def test_the_joint_follows_the_cubic(board: BoardProcess, feedforward: int, largest_error: int) -> None:
    """The joint's friction asks 2 mA per count/tick (0.02 / 0.01), which at 1 mA per count and 37 counts/tick is an
    error of 74 counts; fed forward, what stays is inertia: 0.9 counts/tick^2 / 0.01 = 90 mA, of which the 4 ticks by
    which the velocity lags give 4 x 0.9 x 20 = 72.
    """
    knots = swing(9, 3000)
    prepare(board, knots)
    assert board.write("servo.velocity_feedforward", feedforward) is Refusal.OK
    play(board)
    board.run(8 * 32 + 2)
    played = joined([frame for frame in board.of(MessageType.DATA) if frame.body.play_tick >= 0])
    reference = np.array([hermite(knots[k], knots[k + 1], i)[0] for k in range(8) for i in range(32)])
    error = np.abs(played["motor_position"] - reference).max()
    assert error < largest_error
    assert np.ptp(played["motor_position"]) > 2800
    assert np.all(np.abs(played["current_command"]) <= 8000)


def test_armed_holds_the_position_it_was_armed_at(board: BoardProcess) -> None:
    prepare(board)
    board.plant = Joint(position=123.0)
    board.motor_count = 123
    board.run(60)  # the tracking observer settles
    board.arm()
    board.run(100)
    assert board.last.enable == 1
    assert abs(samples(board)["motor_position"][-1] - 123) <= 1
    assert board.refusal(MessageType.STOP) is Refusal.OK
    assert board.last.enable == 0
    assert board.state is State.LOADED
    assert_counts_close(board)


def test_start_waits_for_its_tick(board: BoardProcess) -> None:
    prepare(board)
    at = board.tick + 200
    play(board, at_tick=at)
    board.run(400)
    first = next(frame for frame in board.of(MessageType.DATA) if frame.body.play_tick >= 0)
    assert (first.body.play_tick, first.body.first_tick) == (0, at)
    assert_counts_close(board)


def test_stop_in_mid_run_is_immediate_and_closes_the_counts(board: BoardProcess) -> None:
    prepare(board)
    play(board)
    board.run(50)
    assert board.last.enable == 1
    board.send(MessageType.STOP)
    out = board.run(1)
    assert (out.enable, out.command_mA) == (0, 0)
    board.run(1)
    kinds = [frame.type for frame in board.frames[-3:]]
    assert kinds == [MessageType.DATA, MessageType.STATUS, MessageType.ACK]
    assert board.of(MessageType.STATUS)[-1].body.state == State.LOADED
    assert_counts_close(board)


def test_a_second_run_needs_no_second_upload(board: BoardProcess) -> None:
    prepare(board)
    for _ in range(2):
        play(board)
        board.run(4 * 32 + 2)
        assert board.of(MessageType.STATUS)[-1].body.state == State.DONE
    assert_counts_close(board)


def test_missed_ticks_are_counted_and_split_the_block(board: BoardProcess) -> None:
    prepare(board)
    play(board)
    board.run(20)
    board.tick += 3
    board.run(4 * 32)
    data = [frame.body for frame in board.of(MessageType.DATA) if frame.body.play_tick >= 0]
    assert data[0].missed == 0
    assert data[1].missed == 3
    assert data[1].first_tick == data[0].first_tick + data[0].count + 3
    assert data[1].play_tick == data[0].play_tick + data[0].count
    assert board.of(MessageType.STATUS)[-1].body.ticks_missed == 3
    assert_counts_close(board)


@pytest.mark.parametrize("wrap", [2**31, 2**32])
@pytest.mark.parametrize("before", [60, 0])
def test_the_tick_counter_may_wrap(board: BoardProcess, wrap: int, before: int) -> None:
    prepare(board)
    board.tick = wrap - before  # a gap of half the range or more, and then over the edge within the run
    at = wrap + 50
    play(board, at_tick=at % 2**32)
    assert board.of(MessageType.ACK)[-1].body.value == (at + 2**31) % 2**32 - 2**31
    board.run(4 * 32 + 120)
    data = [frame.body for frame in board.of(MessageType.DATA) if frame.body.play_tick >= 0]
    assert data[0].first_tick == at % 2**32
    assert sum(block.count for block in data) == 4 * 32
    assert board.of(MessageType.STATUS)[-1].body.state == State.DONE


@pytest.mark.parametrize("first", [0, 1, 2**31, 2**32 - 1, 2**30])
def test_the_first_tick_may_have_any_number(tmp_path: Path, first: int) -> None:
    flash(tmp_path)
    board = BoardProcess(tmp_path)
    board.tick = first
    board.send(MessageType.PING, nonce=3)
    board.run(1010)
    assert [frame.body.nonce for frame in board.of(MessageType.PONG)] == [3]  # a request in the first tick is heard
    status = board.of(MessageType.STATUS)[0].body
    assert (status.tick, status.ticks_missed) == ((first + 999) % 2**32, 0)
    assert board.close() == 0


def test_memory_is_enough(board: BoardProcess) -> None:
    """30 KiB are free once the largest trajectory is loaded, and playing it leaves no less."""
    limit = board.hello().body.max_knots
    prepare(board, swing(limit, 5000))
    loaded = collected(board)
    play(board)
    for _ in range(20):
        board.send(MessageType.PING, nonce=1)
        board.run(200)
    assert board.of(MessageType.STATUS)[-1].body.state == State.RUNNING
    board.request(MessageType.STOP)
    assert loaded >= 30 * 1024
    assert collected(board) >= loaded - 1024  # what the last requests left, which is not collected yet


def test_what_there_is_no_memory_for_is_refused_and_not_lost(board: BoardProcess) -> None:
    """Armed, a board does not collect memory: it serves as many requests as it has some for, and answers all others."""
    prepare(board, swing(board.hello().body.max_knots, 5000))
    board.arm()
    asked = [board.request(MessageType.READ, first=1, count=30) for _ in range(250)]
    served = [answer for answer in asked if answer.type is MessageType.VALUES]
    refused = [answer.body for answer in asked if answer.type is MessageType.ACK]
    assert len(served) + len(refused) == len(asked)
    assert {Refusal(body.refusal) for body in refused} == {Refusal.NO_MEMORY}
    most = refused[0].value  # a request and its answer take of it one each
    assert len(refused) > 50
    assert most / 2 - 4 <= len(served) <= most / 2
    assert asked[len(served) - 1] is served[-1]  # the first ones
    before = len(board.of(MessageType.PONG))
    board.send(MessageType.PING, nonce=7)
    board.run(5)
    assert len(board.of(MessageType.PONG)) == before + 1
    assert board.last.enable == 1
    assert board.of(MessageType.FAULT) == []
    assert board.refusal(MessageType.STOP) is Refusal.OK
    assert board.last.enable == 0
    assert board.request(MessageType.READ, first=1, count=30).type is MessageType.VALUES


def collected(board: BoardProcess) -> int:
    """Free memory [bytes] as a STATUS tells it after memory was collected."""
    for _ in range(40):
        board.send(MessageType.PING, nonce=1)
        board.run(30)
    return board.of(MessageType.STATUS)[-1].body.heap_free


def test_a_board_ends_when_the_bench_does(board: BoardProcess) -> None:
    board.run(3)
    assert board.close() == 0
    assert board.errors == ""


def test_a_wrong_fact_is_named(start_board: StartBoard) -> None:
    with pytest.raises(AssertionError, match=r"fact 'drive\.ration' is none of .*drive\.ratio"):
        start_board(facts={"drive.ration": 5})


def test_a_board_that_cannot_know_its_position_ends(start_board: StartBoard) -> None:
    with pytest.raises(AssertionError, match=r"link encoder 0: motor position .* is beyond 1073741824 counts"):
        start_board(facts={"encoder.link_zero": 200_000, "drive.ratio": 2**31 - 1})
