"""Motors float on a bench: gravity from a table, led by a hand, and at rest when nobody holds the switch."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, ask_bench, inject
from hil_tests.test_rp2040_bench import PAIR
from hil_tests.test_rp2040_board import need_rp2040
from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.bench import Bench, RegisterName, open_bench
from jointbench.bench.conversation import ChunkListener
from jointbench.model import inverse_dynamics
from jointwire import Chunk, Frame, MessageType, State

STEP = 1 << 13  # motor counts between two currents of a table: 7 degrees of a joint with a gear of 101
HELD_US = 40_000  # from one COMPENSATE to the next
TIMEOUT_TICKS = 250  # float.timeout: to ask a chip for its positions takes 80 ms
LEAD_TICKS = 200  # from asking for START to it
PUSHED, PUSH_Nm = 1, 25.0  # node of j1, which turns about a vertical axis; its friction is below 10 N·m
SETTINGS: dict[RegisterName, int] = {
    "limit.float": 5000, "float.velocity": 50 * 256, "float.wall": 2000, "float.hold": 200, "stream.block": 16,
    "float.timeout": TIMEOUT_TICKS,
}  # fmt: skip


def tables(bench: Bench) -> list[tuple[Array, Array]]:
    """Positions and currents of each motor's table: what the robot's file says gravity needs, others at home."""
    robot, found = bench.robot, list[tuple[Array, Array]]()
    assert robot.standard_parameters is not None
    for index, facts in enumerate(bench.facts):
        first = facts.registers["limit.position_min"] // STEP * STEP
        count = (facts.registers["limit.position_max"] - first) // STEP + 2
        positions = first + STEP * np.arange(float(count))
        motor = 2.0 * np.pi * positions / facts.motor_counts
        q = np.tile(np.array(robot.home), (count, 1))
        q[:, index] = motor / robot.drives[index].ratio
        zero = np.zeros_like(q)
        torque = inverse_dynamics(robot, q, zero, zero, robot.standard_parameters)
        current = robot.drive_train.motor_torque(torque)[:, index] / robot.drives[index].torque_constant
        found.append((positions, np.round(1000.0 * current)))
    return found


def begin(bench: Bench) -> None:
    """Let both motors float, in the same tick."""
    for board, (positions, currents) in zip(bench.boards, tables(bench), strict=True):
        for name, raw in SETTINGS.items():
            board.write_register(name, raw)
        knots = np.stack([positions, np.zeros_like(positions)], axis=1).astype(np.int32)
        board.upload(knots, 0, currents.astype(np.int16))
    for board in bench.boards:
        board.arm()
    hold(bench)
    ticks = [board.ping().tick + LEAD_TICKS for board in bench.boards]
    for board in bench.boards:  # nodes of a chip count the same ticks
        board.start(max(ticks))


def hold(bench: Bench) -> None:
    for board in bench.boards:
        board.client.compensate(1, 0)


def float_for(bench: Bench, seconds: float) -> None:
    """Hold the switch for so long."""
    end_us = bench.clock.now_us() + round(1e6 * seconds)
    while bench.clock.now_us() < end_us:
        hold(bench)
        bench.clock.wait(HELD_US)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, plant="ideal", seed=3, modules=2, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


def play_with_a_hand(bench: Bench) -> list[Frame]:
    """Float at rest, be pushed, float again, be let go of; the STATUS frames of floating."""
    bench.connect()
    bench.configure()
    bench.move_to(bench.robot.home)
    begin(bench)
    float_for(bench, 0.5)
    before, statuses = bench.positions(), list[Frame]()
    for board in bench.boards:
        board.listen(take_statuses(statuses))
    float_for(bench, 1.0)
    # Nothing pushes: half a degree would be far more than encoder and friction let it creep in a second.
    np.testing.assert_allclose(bench.positions(), before, atol=np.radians(0.05))
    inject(bench, "push", PUSHED, torque_Nm=PUSH_Nm)
    float_for(bench, 0.3)
    ask_bench(bench, {"heal": PUSHED})
    float_for(bench, 1.5)
    moved = bench.positions() - before
    assert moved[0] > np.radians(3.0)  # a hand leads it: no servo brings it back
    assert abs(moved[1]) < np.radians(1.0)
    assert {board.state for board in bench.boards} == {State.RUNNING}
    for node in (1, 2):
        ask_bench(bench, {"outputs": node})
    end_us = bench.clock.now_us() + 700_000
    while bench.clock.now_us() < end_us:  # nobody holds the switch; the link is there
        bench.clock.wait(HELD_US)
        for board in bench.boards:
            board.keep_alive()
    for board in bench.boards:
        board.hello()
    assert {board.state for board in bench.boards} == {State.LOADED}
    for node in (1, 2):
        noted = ask_bench(bench, {"outputs": node})["outputs"]
        assert noted[-1][1:] == [0, 0]
        assert sum(enable for _, enable, _ in noted) <= TIMEOUT_TICKS + 250  # and slowing down
    return statuses


def take_statuses(into: list[Frame]) -> ChunkListener:
    def take(_time_us: int, _node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.STATUS:
            into.append(chunk.content)

    return take


def test_two_joints_float_follow_a_hand_and_rest_when_nobody_holds_them(live: Path) -> None:
    with open_bench(live) as bench:
        play_with_a_hand(bench)
        assert bench.facts[0].registers["limit.float"] == SETTINGS["limit.float"]
        bench.configure()
        assert {facts.registers["limit.float"] for facts in bench.facts} == {0}


@pytest.mark.slow
def test_two_motors_of_a_chip_float_within_the_time_of_a_tick(tmp_path: Path) -> None:
    """Limits as of `./run bench chip` for two joints."""
    need_rp2040()
    path = tmp_path / "pair.toml"
    path.write_text(PAIR, encoding="utf-8")
    with virtual_bench(path, plant="ideal", seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        statuses = play_with_a_hand(bench)
    bodies = [frame.body for frame in statuses if frame.body.state == State.RUNNING]
    assert len(bodies) >= 4
    assert max(body.longest_tick_us for body in bodies) <= 500
    assert max(body.mean_tick_us for body in bodies) <= 250
    assert len({body.ticks_missed for body in bodies}) == 1
    assert len({body.heap_free for body in bodies}) == 1
