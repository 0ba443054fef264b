"""A holding brake: power stands before it opens and goes after it has engaged; a cut takes both at once."""

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip, stack_samples

M, S, R = MessageType, State, Refusal
ENGAGE, RELEASE, TORQUE = 40, 60, 8  # ms, as config.json has them, and what the firmware lets torque stand
HELD, OPEN = 1, 3  # what a Hal is told
TIMES = {"brake.engage_time": ENGAGE, "brake.release_time": RELEASE}


@pytest.fixture
def braked(start_board: StartBoard) -> BoardProcess:
    return start_board(facts=TIMES)


def outputs(board: BoardProcess, ticks: int) -> list[int]:
    """What the Hal is told in each of so many ticks."""
    return [board.run(1).enable for _ in range(ticks)]


def lengths(told: list[int]) -> list[tuple[int, int]]:
    """Runs of equal outputs: which, and for how many ticks."""
    runs: list[tuple[int, int]] = []
    for each in told:
        runs = [*runs[:-1], (each, runs[-1][1] + 1)] if runs and runs[-1][0] == each else [*runs, (each, 1)]
    return runs


def test_it_opens_when_torque_stands_and_no_motion_begins_before_it_is_open(braked: BoardProcess) -> None:
    prepare(braked)
    braked.send(M.ARM, **braked.arming())
    while not braked.run(1).enable:
        pass
    armed = braked.last.tick
    early = braked.request(M.START, at_tick=braked.tick + 5)
    assert R(early.body.refusal) is R.BRAKE
    first = early.body.value
    assert first - armed == pytest.approx(TORQUE + RELEASE, abs=2)
    assert braked.last.enable == HELD
    assert R(braked.request(M.START, at_tick=0).body.refusal) is R.OK
    told = outputs(braked, 100)
    assert braked.of(M.ACK)[-1].body.value == first
    opened = braked.last.tick - 99 + told.index(OPEN)
    assert opened - armed == pytest.approx(TORQUE, abs=2)
    assert first - opened >= RELEASE
    braked.run(300)
    played = next(frame.body for frame in braked.of(M.DATA) if frame.body.play_tick == 0)
    assert played.first_tick == first


def test_the_motor_holds_after_the_last_knot_until_it_has_engaged(braked: BoardProcess) -> None:
    prepare(braked)
    play(braked)
    runs = lengths(outputs(braked, 400))
    assert [level for level, _ in runs] == [HELD, OPEN, HELD, 0]
    assert runs[2][1] > ENGAGE
    assert braked.state is S.DONE
    braked.run(70)
    samples = stack_samples(braked.of(M.DATA))
    told = sum(ticks for _, ticks in runs[:-1])  # and one or two before the first
    assert len(samples["motor_position"]) == pytest.approx(told, abs=2)  # of the holding, too
    braked.arm()
    assert R(braked.request(M.START, at_tick=0).body.refusal) is R.OK
    assert OPEN in outputs(braked, 100)


@pytest.mark.parametrize("playing", [False, True])
def test_a_halt_ends_with_the_brake_before_the_power(braked: BoardProcess, playing: bool) -> None:
    prepare(braked, swing(9, 6000))
    assert braked.write("limit.deceleration", 256) is R.OK
    if playing:
        play(braked)
    else:
        braked.arm()
    braked.run(150)
    assert braked.last.enable == OPEN
    assert braked.refusal(M.HALT) is R.OK
    runs = lengths(outputs(braked, 240))
    assert [level for level, _ in runs][-2:] == [HELD, 0]
    assert runs[-2][1] >= ENGAGE
    assert not braked.of(M.FAULT), braked.of(M.FAULT)
    assert braked.state is S.LOADED


def test_a_halt_before_it_is_open_engages_it_again(braked: BoardProcess) -> None:
    prepare(braked)
    braked.arm()
    braked.run(20)
    assert braked.last.enable == OPEN
    assert braked.refusal(M.HALT) is R.OK
    told = outputs(braked, ENGAGE + 5)
    assert OPEN not in told
    assert told[-1] == 0


@pytest.mark.parametrize("stop", [False, True])
def test_a_cut_takes_both_at_once(braked: BoardProcess, stop: bool) -> None:
    prepare(braked, swing(9, 6000))
    play(braked)
    braked.run(150)
    assert braked.last.enable == OPEN
    if stop:
        assert braked.refusal(M.STOP) is R.OK
        braked.run(1)
    else:
        braked.pins = 1
        braked.step()
    assert braked.last.enable == 0


def test_a_load_is_left_to_the_brake_when_nobody_is_heard(braked: BoardProcess) -> None:
    """The motor slows down, the brake engages, then power goes and the trip is told."""
    prepare(braked, swing(33, 6000))
    play(braked)
    told: list[int] = []
    for _ in range(700):
        told.append(braked.step().enable)
    runs = lengths(told)
    assert [level for level, _ in runs] == [HELD, OPEN, HELD, 0]
    assert runs[2][1] > ENGAGE
    assert 250 < sum(count for level, count in runs if level) < 500  # of the time-out
    braked.run(5)
    assert braked.of(M.FAULT)[-1].body.trip == Trip.LINK_LOSS
    assert braked.state is S.FAULT
    samples = stack_samples(braked.of(M.DATA))
    assert abs(samples["current_command"][-ENGAGE:]).max() < 8000


@pytest.mark.parametrize(
    ("facts", "words"),
    [({"brake.engage_time": 2001}, "'brake.engage_time' is 2001 ms, must be from 0 to 2000"),
     ({"brake.engage_time": 10, "brake.release_time": -1}, "'brake.release_time' is -1 ms"),
     ({"brake.release_time": 10}, "'brake.engage_time' must be above 0")],
)  # fmt: skip
def test_times_beyond_what_a_brake_takes_are_refused(
    start_board: StartBoard, facts: dict[str, int], words: str
) -> None:
    with pytest.raises(AssertionError, match="ended") as ended:
        start_board(facts=facts)
    assert words in str(ended.value)
