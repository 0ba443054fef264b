"""The joint inside a board in plain Python: what jointboard/sim_joint.py must compute, bit for bit."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, flash, micropython, play, swing
from firmware.tests.twin import wrap
from jointwire import JOINT_CHANNELS, EncoderSource, MessageType, Refusal, State, Trip, decode_samples

FASTEST = 4096 * 2**16


@dataclass(frozen=True)
class Gains:
    """Numbers of the model, as sim_joint.gains() makes them."""

    lag: int
    push: int
    drag: int
    coulomb: int
    measured: int
    link: int
    turn: int = 524_288
    clocks: int = 16_000


@dataclass
class SimTwin:
    """State of the model between ticks, in unbounded integers; Q16 is 1/65536 of a count."""

    gains: Gains
    current: int = 0  # 1/16 mA
    velocity: int = 0  # Q16
    count: int = 0
    part: int = 0  # Q16
    link_count: int = 0
    link_part: int = 0  # Q16
    edge: int = 0

    def step(self, tick: int, enable: int, command: int) -> tuple[int, int, int, int]:
        """A tick under these outputs; motor counter, link encoder, time of the newest edge, sum of 16 ADC samples."""
        g = self.gains
        if enable:
            self.current += (16 * command - self.current) * g.lag // 2**11
            speed = self.velocity + self.current * g.push // 2**8 - self.velocity // 2**8 * g.drag // 2**7
            speed -= max(-g.coulomb, min(g.coulomb, speed))
            self.velocity = max(-FASTEST, min(FASTEST, speed))
        else:
            self.current = self.velocity = 0
        moved, self.part = divmod(self.part + self.velocity, 2**16)
        self.count = wrap(self.count + moved)
        if moved:
            since = self.part if self.velocity > 0 else 2**16 - self.part
            self.edge = wrap(tick * g.clocks - since * g.clocks // abs(self.velocity))
        turned, self.link_part = divmod(self.link_part + moved * g.link, 2**16)
        self.link_count = (self.link_count + turned) % g.turn
        total = max(0, min(65520, 2**15 + self.current * g.measured // 2**12))
        return self.count % 2**16, self.link_count, self.edge, total


SEED, CASES, TICKS = 5, 60, 400
M, R, S = MessageType, Refusal, State
# 8 mA a count on 0.00065 counts/tick^2 a mA: 70 rad/s at 1 kHz, damped by 0.75.
SERVO = {"servo.kp": 2048, "servo.kd": 2640, "limit.current": 8000, "limit.following": 500}

# Steps the model of each case under the outputs of outputs.bin and writes what the sensors have.
PROGRAM = """
import struct
from array import array
from jointboard.sim_joint import CELLS, step
inputs, outputs, head = bytearray(116), bytearray(12), bytearray(40)
source, target = open("cases.bin", "rb"), open("results.bin", "wb")
while source.readinto(head):
    words = struct.unpack("<10i", head)
    cells = array("i", words[2:] + (0,) * (CELLS - 8))
    for _ in range(words[0]):
        source.readinto(outputs)
        inputs[0:4] = outputs[0:4]
        step(cells, inputs, outputs)
        target.write(inputs)
target.close()
"""


def random_case(rng: random.Random) -> tuple[Gains, list[tuple[int, int, int]]]:
    """A model, and the tick, enable and command of each tick."""
    g = Gains(
        lag=rng.choice((0, 1, 800, 2047)),
        push=rng.choice((1, 700, 4000)),
        drag=rng.choice((0, 33, 2047)),
        coulomb=rng.choice((0, 8000, 2**28)),
        measured=rng.choice((1, 839, 4000)),
        link=rng.choice((0, 83_066, 2**18)),
        turn=rng.choice((524_288, 2**30, 16_384)),
        clocks=rng.choice((1, 16_000, 32_767)),
    )
    first = rng.choice((0, 2**31 - 200, -(2**31)))
    outputs, command = list[tuple[int, int, int]](), 0
    for k in range(TICKS):
        if rng.random() < 0.05:
            command = rng.choice((-32_000, 32_000, 0, rng.randint(-32_000, 32_000)))
        outputs.append(((first + k + 2**31) % 2**32 - 2**31, int(rng.random() < 0.98), command))
    return g, outputs


def test_the_model_equals_its_twin_bit_for_bit(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    data, expected = b"", list[tuple[int, int, int, int]]()
    for _ in range(CASES):
        g, outputs = random_case(rng)
        twin = SimTwin(g)
        data += struct.pack("<10i", TICKS, 0, g.lag, g.push, g.drag, g.coulomb, g.measured, g.link, g.turn, g.clocks)
        data += b"".join(struct.pack("<3i", *each) for each in outputs)
        expected += [twin.step(*each) for each in outputs]
    flash(tmp_path, program=PROGRAM)
    (tmp_path / "cases.bin").write_bytes(data)
    subprocess.run([micropython(), "main.py"], cwd=tmp_path, check=True, timeout=60)
    results = (tmp_path / "results.bin").read_bytes()
    assert len(results) == 116 * CASES * TICKS
    for n, (fields, wanted) in enumerate(zip(struct.iter_unpack("<8i32H4ii", results), expected, strict=True)):
        found = (fields[4], fields[5], fields[44], sum(fields[8:24]))
        assert found == wanted, f"tick {n % TICKS} of case {n // TICKS}, seed {SEED}"
        assert max(fields[8:24]) - min(fields[8:24]) <= 1
        assert set(fields[24:40]) == {2048}
    assert len(set(expected)) > CASES * TICKS / 4


@pytest.fixture
def board(start_board: StartBoard) -> BoardProcess:
    """A board with a joint of its own and no other."""
    board = start_board(sim_joint={})
    for name, value in SERVO.items():
        assert board.write(name, value) is R.OK
    return board


def test_a_bare_board_plays_a_trajectory(board: BoardProcess) -> None:
    board.upload(swing(9), repeats=2)
    play(board)
    for _ in range(3):
        board.send(M.PING, nonce=1)
        board.run(175)
    assert board.state is S.DONE
    blocks = [decode_samples(frame) for frame in board.of(M.DATA) if frame.body.play_tick >= 0]
    place = [int(value) for block in blocks for value in block.columns["motor_position"]]
    assert len(place) == 2 * 8 * 32
    assert max(place) == pytest.approx(2000, abs=SERVO["limit.following"])
    assert abs(place[-1]) < SERVO["limit.following"]
    links = [int(value) for block in blocks for value in block.columns["link_position"]]
    ratio = 524_288 / 4096 / 101
    assert max(abs(a * ratio - b) for a, b in zip(place, links, strict=True)) < 1.01  # whole counts


def test_the_boards_own_outputs_stay_off(board: BoardProcess) -> None:
    board.upload(swing())
    board.arm()
    for _ in range(200):
        out = board.step()
        assert (out.enable, out.command_mA) == (0, 0)
    assert board.state is S.ARMED


def test_two_boards_do_the_same(start_board: StartBoard) -> None:
    sent = list[bytes]()
    for _ in range(2):
        board = start_board(sim_joint={"coulomb": 0.03})
        for name, value in SERVO.items():
            assert board.write(name, value) is R.OK
        board.upload(swing())
        play(board)
        sent.append(b"".join(board.step().sent for _ in range(200)))
    assert sent[0] == sent[1]
    assert len(sent[0]) > 1000


def test_it_trips_like_a_joint(board: BoardProcess) -> None:
    assert board.write("limit.velocity", 256) is R.OK
    assert board.write("limit.position_max", 60_000) is R.OK
    board.upload([(0, 0), (30, 250), (60, 250), (90, 0)])
    assert board.write("limit.velocity", 128) is R.OK
    arming = board.arming()
    assert board.refusal(M.ARM, **arming) is R.INCOMPLETE  # too fast for the limit as it is now
    assert board.write("limit.velocity", 256) is R.OK
    assert board.write("limit.link_timeout", 50) is R.OK
    board.upload([(0, 0), (30, 250), (60, 250), (90, 0)])
    board.arm()
    board.run(60)
    assert board.of(M.FAULT)[0].body.trip == Trip.LINK_LOSS


def test_it_says_what_it_is_made_of(board: BoardProcess) -> None:
    assert board.hello().body.encoder_source == EncoderSource.EMULATED
    assert board.read("stream.channels") == 0x17 == JOINT_CHANNELS & board.read("board.channels")


def test_steady_speed_is_where_friction_takes_the_torque(start_board: StartBoard) -> None:
    """Torque = coulomb + viscous x speed, with the servo's constant push through its velocity feed-forward."""
    board = start_board(sim_joint={"viscous": 1e-3, "coulomb": 0.02, "lag": 0.001})
    for name, value in {"servo.velocity_feedforward": 16 * 50, "limit.following": 65535, "limit.current": 8000}.items():
        assert board.write(name, value) is R.OK
    speed = 8 * 256  # counts/tick Q8: 400 mA by the feed-forward
    assert board.write("limit.velocity", 2**20) is R.OK
    board.upload([(32 * 8 * k, speed) for k in range(60)])
    assert board.write("stream.channels", 1 << 11 | 1) is R.OK
    play(board)
    for _ in range(8):
        board.send(M.PING, nonce=1)
        board.run(200)
    block = decode_samples([frame for frame in board.of(M.DATA) if frame.body.play_tick >= 0][-2])
    amperes = [int(value) * 305_176e-9 for value in block.columns["motor_current"]]
    assert amperes == pytest.approx([0.4] * len(amperes), abs=2e-3)  # 1/16 mA and an ADC count
    rad_per_s = (0.1 * 0.4 - 0.02) / 1e-3
    found = int(block.columns["motor_velocity"][-1]) / 256 * 2 * math.pi / 4096 * 1e3
    # The drag is 328/32768 a tick (0.1 %), PUSH 683 and COULOMB 8545 are whole, velocities cut off at 2^-8 of a count.
    assert found == pytest.approx(rad_per_s, rel=5e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mass": 1.0}, r"sim_joint has 'mass'; it may have coulomb, inertia, lag, torque_per_current, viscous"),
        ({"inertia": 1e-6}, r"sim_joint with this torque_per_current / inertia needs a gain of .*, at most 4000"),
    ],
)
def test_parameters_it_cannot_have_are_named(
    start_board: StartBoard, parameters: dict[str, float], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        start_board(sim_joint=parameters)
