"""A DATA block: its channels, dividers and length, the SYNC edges beside it, and the four forces of a foot."""

import random
import struct
from itertools import pairwise

import numpy as np
import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, Outputs, swing
from firmware.tests.twin import Inputs, Twin, defaults
from jointwire import (
    ALL_CHANNELS,
    BY_NAME,
    CHANNELS,
    MAX_BODY,
    ChannelKind,
    Feature,
    Frame,
    MessageType,
    Refusal,
    State,
    decode_samples,
    divider,
)

M, R, S = MessageType, Refusal, State
SEED = 11
HEAD = 20
SIZE = {channel.name: struct.calcsize(channel.format) for channel in CHANNELS}
EVERY = {kind: f"stream.every_{kind.name.lower()}" for kind in ChannelKind}


@pytest.fixture
def board(start_board: StartBoard) -> BoardProcess:
    """A board with every channel there is, streaming always."""
    board = start_board(facts={"board.channels": ALL_CHANNELS})
    board.plant = Ramp()
    assert board.write("stream.always", 1) is R.OK
    return board


class Ramp:
    """A motor that turns by a count a tick, and the velocity that a board makes of it at each."""

    def __init__(self) -> None:
        self.twin, self.velocity = Twin(defaults()), dict[int, int]()
        self.count = 0

    def __call__(self, last: Outputs) -> int:
        self.twin.tick(Inputs(last.tick, self.count, 0, [2048] * 16, [2048] * 16))
        self.velocity[last.tick] = self.twin.velocity_q12 // 16
        self.count = (last.tick + 1) % 65536
        return self.count


def move(board: BoardProcess) -> dict[int, dict[str, int]]:
    """A tick with a value in each sensor that tells the tick; what the channels must say of it."""
    t = board.tick
    board.current, board.torque = 1000 + t % 997, -2000 - t % 991
    board.link_count, board.motor_count = 100_000 + t, t % 65536
    board.supply, board.temperature, board.forces = 20_000 + t % 983, 3000 - t % 977, (t % 971, -t % 967, 7, -32768)
    expected = (board.current, t, board.link_count, board.torque, 0, board.supply, board.temperature, *board.forces)
    slow = (board.forces[0], board.forces[1], board.temperature)  # of converters with clocks of their own
    board.run(1)
    assert isinstance(board.plant, Ramp)
    return {t: dict(zip(SIZE, (*expected, board.plant.velocity[t], *slow), strict=True))}


def stream(board: BoardProcess, ticks: int) -> tuple[dict[int, dict[str, int]], list[Frame]]:
    """Run with sensors that move; their values by tick, and the blocks that came."""
    seen, expected = len(board.frames), dict[int, dict[str, int]]()
    for _ in range(ticks):
        expected |= move(board)
    return expected, [frame for frame in board.frames[seen:] if frame.type is M.DATA]


def check(frame: Frame, expected: dict[int, dict[str, int]], mask: int, exponents: dict[ChannelKind, int]) -> None:
    """A block holds each channel of the mask at exactly the ticks its divider divides, with what its sensor had."""
    block = decode_samples(frame)
    assert frame.body.channels == mask
    assert all(divider(frame.body.dividers, kind) == 1 << e for kind, e in exponents.items())
    assert set(block.columns) == {channel.name for channel in CHANNELS if mask >> channel.bit & 1}
    for channel in CHANNELS:
        if mask >> channel.bit & 1:
            every = 1 << exponents[channel.kind]
            due = [t for t in range(block.first_tick, block.first_tick + block.count) if t % every == 0]
            assert list(block.ticks(channel.name)) == due
            assert list(block.columns[channel.name]) == [expected[t][channel.name] for t in due], channel.name
    assert len(frame.payload) <= MAX_BODY


@pytest.mark.parametrize("cases", [36, pytest.param(60, marks=pytest.mark.slow)])
def test_each_channel_at_the_ticks_of_its_divider(board: BoardProcess, cases: int) -> None:
    rng = random.Random(SEED)
    exponents = {kind: BY_NAME[EVERY[kind]].default for kind in ChannelKind}
    board.motor_count = board.tick % 65536
    for case in range(cases):
        for kind in rng.sample(list(ChannelKind), 2):
            exponents[kind] = rng.randint(0, 6)
            assert board.write(EVERY[kind], exponents[kind]) is R.OK
        mask = 1 << case if case < len(CHANNELS) else rng.randint(1, ALL_CHANNELS)
        assert board.write("stream.channels", mask) is R.OK
        expected, frames = stream(board, 150)
        whole = [frame for frame in frames if frame.body.first_tick in expected]
        assert sum(frame.body.count for frame in whole) >= 70
        for frame in whole:
            check(frame, expected, mask, exponents)
    assert board.noise == []


# Ticks that fit 1084 bytes when motor encoder and feet (18 bytes) come at each 2^e-th tick, the others (18) at each.
@pytest.mark.parametrize(("exponent", "longest"), [(0, 30), (1, 40), (2, 48), (3, 53), (6, 59)])
@pytest.mark.parametrize("first", [0, 1, 37])
def test_a_block_is_as_long_as_asked_or_as_fits_wherever_it_begins(
    board: BoardProcess, exponent: int, longest: int, first: int
) -> None:
    exponents = dict.fromkeys(ChannelKind, 0) | {ChannelKind.MOTOR_ENCODER: exponent, ChannelKind.FOOT_FORCE: exponent}
    for kind, e in exponents.items():
        assert board.write(EVERY[kind], e) is R.OK
    assert board.write("stream.channels", ALL_CHANNELS) is R.OK
    for asked in {1, longest - 1, longest, min(64, longest + 1), 64}:
        board.run(-board.tick % 64 + first)
        assert board.write("stream.block", asked) is R.OK
        expected, frames = stream(board, 300)
        whole = [frame for frame in frames if frame.body.first_tick in expected][1:]
        cut = {before.seq for before, frame in pairwise(board.frames) if frame.type is M.STATUS}  # it closes a block
        assert {frame.body.count for frame in whole if frame.seq not in cut} == {min(asked, longest)}
        for frame in whole:
            check(frame, expected, ALL_CHANNELS, exponents)


def test_the_default_block_of_a_joint_is_whole(board: BoardProcess) -> None:
    _, frames = stream(board, 300)
    assert [frame.body.count for frame in frames[1:]] == [64] * (len(frames) - 1)
    sizes = [len(frame.payload) - HEAD for frame in frames[1:]]
    assert set(sizes) == {64 * 14 + 4}  # fast channels each tick, supply and temperature once


def test_ticks_without_any_sample_are_accounted_all_the_same(board: BoardProcess) -> None:
    assert board.write("stream.channels", 1 << 6) is R.OK  # temperature, at each 64th tick
    assert board.write("stream.block", 5) is R.OK
    _, frames = stream(board, 400)
    blocks = [decode_samples(frame) for frame in frames if frame.body.channels == 1 << 6]
    ticks = np.concatenate([np.arange(b.first_tick, b.first_tick + b.count) for b in blocks])
    assert np.all(np.diff(ticks) == 1)
    assert len(ticks) > 400 - 5  # the last block may be open
    assert sum(len(b.columns["temperature"]) for b in blocks) == sum(ticks % 64 == 0)
    assert any(len(b.columns["temperature"]) == 0 for b in blocks)


def test_blocks_never_mix_two_settings(board: BoardProcess) -> None:
    """A write closes the block: what stands in one was all sampled as its head says."""
    rng = random.Random(SEED)
    exponents = {kind: BY_NAME[EVERY[kind]].default for kind in ChannelKind}
    expected: dict[int, dict[str, int]] = {}
    told: list[tuple[int, dict[ChannelKind, int]]] = []  # first tick of each setting
    for _ in range(40):
        kind = rng.choice(list(ChannelKind))
        exponents = exponents | {kind: rng.randint(0, 6)}
        board.send(M.WRITE, register=BY_NAME[EVERY[kind]].id, value=exponents[kind])
        for _ in range(rng.randint(1, 90)):
            expected |= move(board)
            if not told or told[-1][1] != exponents:
                told.append((board.tick, exponents))
    mask = board.read("stream.channels")
    for frame in board.of(M.DATA):
        first = frame.body.first_tick
        if first in expected and first >= told[0][0]:
            setting = [e for start, e in told if start <= first][-1]
            check(frame, expected, mask, setting)


def test_a_board_streams_no_channel_it_has_not(start_board: StartBoard) -> None:
    foot = 0x780 | 1 << 5 | 1 << 6
    board = start_board(facts={"board.channels": foot})
    assert board.read("stream.channels") == foot  # a foot streams all it has
    answer = board.request(M.WRITE, register=BY_NAME["stream.channels"].id, value=0x7FF).body
    assert (R(answer.refusal), answer.value) == (R.OUT_OF_RANGE, foot)
    assert board.write("stream.channels", foot) is R.OK


@pytest.mark.parametrize("channels", [0, -1, ALL_CHANNELS + 1])
def test_a_board_with_impossible_channels_says_so(start_board: StartBoard, channels: int) -> None:
    with pytest.raises(AssertionError, match=f"fact 'board.channels' is {channels}, a mask from 1 to {ALL_CHANNELS}"):
        start_board(facts={"board.channels": channels})


def test_sync_edges_are_told_with_their_time(board: BoardProcess) -> None:
    board.run(10)
    for edge, edge_us in ((1, 5_123), (2, 2**32 - 1), (5, 7), (2**32 - 1, 1), (0, 2)):  # edges 3 and 4 within a tick
        board.edges, board.edge_us = edge, edge_us
        board.run(3)
        sync = board.of(M.SYNC)[-1].body
        assert (sync.edge, sync.edge_us) == (edge, edge_us)
    assert len(board.of(M.SYNC)) == 5


def test_sync_is_told_when_ticks_were_missed_or_a_block_ends_with_it(board: BoardProcess) -> None:
    assert board.write("stream.block", 1) is R.OK
    board.tick += 3
    board.edges, board.edge_us = 1, 99
    board.run(2)
    assert board.of(M.SYNC)[-1].body.edge == 1
    assert board.of(M.DATA)[-1].body.missed == 0
    assert max(frame.body.missed for frame in board.of(M.DATA)) == 3


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
