"""Several boards at once: what is done with one is not felt by the others, and what is meant for all reaches all."""

from collections.abc import Callable
from functools import partial

import pytest

from hil_tests.suite.driven_joint import KNOTS, DrivenJoint
from jointbench.bench import Bench
from jointbench.errors import RoleError
from jointbench.testing import deterministic, functional, needs
from jointbench.testing.roles import Role, run_roles, seatings
from jointwire import Frame, State, Trip

LEAD_TICKS = 60  # from the word to the common start: more than all boards' STARTs take


def ask_everything(me: Role) -> tuple[int, bytes]:
    """A conversation of many requests, while every other board has its own."""
    me.meet("begin")
    node = me.board.read_registers().registers["board.node"]
    data = bytes(node ^ k & 0xFF for k in range(200))
    for _ in range(5):
        me.board.ping()
        assert me.board.client.echo(data).body.data == data
    me.meet("end")
    return node, data


@functional
def test_each_board_answers_for_itself_while_all_are_asked(connected: Bench) -> None:
    boards = connected.all_boards
    played = run_roles(connected, *[ask_everything] * len(boards), boards=boards)
    assert [node for node, _ in played.results.values()] == [board.node for board in boards]
    began = [word for word in played.words if word.word == "begin"]
    ended = [word for word in played.words if word.word == "end"]
    assert max(word.time_us for word in began) < min(word.time_us for word in ended)  # side by side, indeed


# One that moves, one that must not


def mover(me: Role) -> None:
    """Plays a swing."""
    joint = DrivenJoint(me.bench, me.board)
    me.meet("ready")
    joint.arm()
    me.board.start()
    me.say("moving")
    me.let_pass(joint.tick_us * (KNOTS * joint.facts.knot_ticks + 100))
    me.board.hello()
    assert me.board.state is State.DONE
    me.meet("over")


def bystander(me: Role) -> None:
    """Is asked the same all the time, and does nothing."""
    me.board.hello()
    before = me.board.state
    me.meet("ready")
    me.hear("moving", of="mover")
    for _ in range(20):
        me.let_pass(20_000)
        me.board.hello()
        assert me.board.state is before
    me.meet("over")


@pytest.mark.slow
@deterministic
@needs("motor", "outputs", "several_boards")
def test_a_motion_of_one_board_leaves_its_neighbours_off(bench: Bench) -> None:
    for seats in seatings(bench.boards, 2):
        neighbour = DrivenJoint(bench, seats[1])
        neighbour.outputs()
        run_roles(bench, mover, bystander, boards=seats)
        neighbour.assert_off()


# One that is left alone, one that is not


def left_alone(me: Role) -> None:
    """Its host says nothing to it any more."""
    joint = DrivenJoint(me.bench, me.board)
    joint.arm()
    me.meet("armed")
    me.bench.clock.wait(0)
    joint.be_silent(joint.patience + 200)
    assert Trip(joint.fault(within=100).trip) is Trip.LINK_LOSS
    me.say("tripped")


def kept_alive(me: Role) -> None:
    """Is armed all the while, and may not notice."""
    DrivenJoint(me.bench, me.board).arm()
    me.meet("armed")
    me.hear("tripped", of="left_alone")
    me.board.hello()
    assert me.board.state is State.ARMED
    me.board.stop()


@deterministic
@needs("motor", "several_boards")
def test_a_host_is_missed_by_the_board_it_left_alone(bench: Bench) -> None:
    """Forwards and backwards: with the first board left alone, and with the last."""
    for seats in (bench.boards[:2], bench.boards[:-3:-1]):
        run_roles(bench, left_alone, kept_alive, boards=seats)
        bench.clear()


# All at the same moment


def conductor(me: Role) -> int:
    """Says when."""
    return started_at(me, lambda: me.board.ping().tick + LEAD_TICKS)


def player(me: Role) -> int:
    """Begins when it is told to."""
    return started_at(me, partial(me.hear, "start", of="conductor"))


def started_at(me: Role, when: Callable[[], int]) -> int:
    """Play from that tick on; the tick at which the board began, by its samples."""
    joint = DrivenJoint(me.bench, me.board)
    me.board.upload(joint.swing(), 1)
    me.board.arm()
    me.meet("armed")
    tick = when()
    me.say("start", tick)
    joint.data.clear()
    me.board.start(tick)
    me.let_pass(joint.tick_us * (KNOTS * joint.facts.knot_ticks + 200))
    return first_played(joint.data)


def first_played(frames: list[Frame]) -> int:
    """The tick of a trajectory's first sample, in DATA frames that begin before it and go on after it."""
    frame = next(frame for frame in frames if frame.body.play_tick >= 0)
    return (frame.body.first_tick - frame.body.play_tick) & 0xFFFFFFFF


@deterministic
@needs("motor", "several_boards")
def test_all_boards_begin_at_the_tick_they_were_told(bench: Bench, measured: Callable[..., None]) -> None:
    """Of boards with clocks of their own the number of a tick says nothing of its time: test_clock looks at those."""
    if not bench.clock.common_ticks:
        pytest.skip("these boards count ticks of their own")
    boards = bench.boards
    played = run_roles(bench, conductor, *[player] * (len(boards) - 1), boards=boards)
    told = {word.value for word in played.words if word.word == "start"}
    assert len(told) == 1
    measured("play.start_apart", [abs(tick - min(told)) for tick in played.results.values()])


# What roles do when one does not come


def says_nothing(me: Role) -> None:
    """Ends at once."""


def waits_for_a_word(me: Role) -> None:
    """In vain."""
    me.hear("word", within_us=200_000)


def never_ends(me: Role) -> None:
    """Lives as long as the others do."""
    while True:
        me.let_pass(10_000)


def fails(me: Role) -> None:
    """As a test does."""
    me.let_pass(30_000)
    assert me.board.node == 0


@deterministic
@needs("several_boards")
def test_a_word_that_nobody_can_say_any_more_is_not_waited_for(connected: Bench) -> None:
    before_us = connected.clock.now_us()
    with pytest.raises(RoleError, match="waits for 'word' of says_nothing, who has ended; said was: nothing"):
        run_roles(connected, says_nothing, waits_for_a_word)
    assert connected.clock.now_us() - before_us < 200_000


@deterministic
@needs("several_boards")
def test_a_word_is_waited_for_by_the_targets_time(connected: Bench) -> None:
    before_us = connected.clock.now_us()
    with pytest.raises(RoleError, match=r"waits for 'word' of never_ends, who did not say it in 0\.2 s"):
        run_roles(connected, never_ends, waits_for_a_word)
    assert 200_000 <= connected.clock.now_us() - before_us < 250_000


@deterministic
@needs("several_boards")
def test_the_role_that_failed_is_named_and_the_others_end(connected: Bench) -> None:
    with pytest.raises(AssertionError) as caught:
        run_roles(connected, never_ends, fails, boards=connected.boards[-2:])
    last = connected.boards[-1]
    assert caught.value.__notes__ == [f"in role fails at {last.joint} (node {last.node})"]
    last.ping()  # the bench is its owner's again


@functional
def test_two_roles_cannot_have_one_board(connected: Bench) -> None:
    board = connected.boards[0]
    with pytest.raises(RoleError, match="give each role a board of its own"):
        run_roles(connected, says_nothing, fails, boards=[board, board])
