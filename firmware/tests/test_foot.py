"""A board of a foot: the same firmware with the four forces and no motor. It streams, and never arms."""

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, swing
from jointwire import CHANNELS, ChannelKind, Feature, MessageType, Refusal, State, decode_samples

M, R, S = MessageType, Refusal, State
FEET = sum(1 << channel.bit for channel in CHANNELS if channel.kind is ChannelKind.FOOT_FORCE)  # and their age


@pytest.fixture
def foot(start_board: StartBoard) -> BoardProcess:
    """A foot's board, one tick after boot."""
    return start_board(facts={"board.channels": FEET})


def test_a_foot_streams_its_forces(foot: BoardProcess) -> None:
    assert foot.read("stream.channels") == FEET
    assert foot.write("stream.always", 1) is R.OK
    foot.forces, foot.temperature = (100, -200, 32767, -32768), 3  # where a motor has its temperature: their age
    foot.run(300)
    block = decode_samples(foot.of(M.DATA)[-1])
    assert {name: set(map(int, values)) for name, values in block.columns.items()} == {
        "foot_force_1": {100}, "foot_force_2": {-200}, "foot_force_3": {32767}, "foot_force_4": {-32768},
        "force_age": {3},
    }  # fmt: skip
    assert block.count == 64


def test_a_foot_never_arms(foot: BoardProcess) -> None:
    knots = [{"position": p, "velocity": v} for p, v in swing()]
    requests = (
        (M.KNOTS, {"offset": 0, "count": len(knots), "knots": knots}),
        (M.LOAD, {"count": len(knots), "repeats": 1, "crc32": 0}),
        (M.ARM, foot.arming()),
        (M.START, {"at_tick": 0}),
    )
    for kind, fields in requests:
        answer = foot.request(kind, **fields).body
        assert (R(answer.refusal), answer.value) == (R.NO_MOTOR, FEET)
    assert foot.state is S.DISARMED
    assert foot.run(100).enable == 0
    assert not foot.hello().body.features & Feature.PLAYBACK


def test_a_joint_board_says_that_it_plays(board: BoardProcess) -> None:
    assert board.hello().body.features & Feature.PLAYBACK


def test_what_a_board_does_not_measure_trips_nothing(start_board: StartBoard) -> None:
    """A joint's board without supply and temperature: their inputs stay 0."""
    board = start_board(facts={"board.channels": 0x1F})
    board.supply, board.temperature = 0, 32767
    assert board.write("limit.supply_min", 20_000) is R.OK
    board.upload(swing())
    board.arm()
    assert board.run(100).enable == 1
