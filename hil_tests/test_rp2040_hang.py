"""ENABLE on the chip: a STOP lets it go at once, and a program that stops turning long before its watchdog bites."""

import json
from pathlib import Path

import pytest

from hil_tests.suite.driven_joint import DrivenJoint
from hil_tests.test_rp2040_bench import bench_file
from hil_tests.test_rp2040_board import StartChip, need_rp2040
from hil_tests.test_rp2040_board import start_chip as start_chip  # a fixture
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench
from jointwire import MessageType, State, encode_frame

LETS_GO_MS = 4.0  # after the last kick, by rp2_heartbeat.py
# The firmware, but for an ECHO: it is served by a loop without an end.
HANGING = """
from board import Board
board = Board()
board.disable()
from jointboard import app, requests, wire
def hang(_, count):
    while True:
        pass
requests.HANDLERS[wire.MESSAGE_ECHO] = hang
app.run(board)
"""


@pytest.mark.slow
def test_enable_falls_after_the_last_kick_whatever_the_processor_does(start_chip: StartChip) -> None:
    chip = start_chip(
        """
from drivers.rp2_heartbeat import Heartbeat
enable = Heartbeat(22, 1, 1000)
say("begin")
time.sleep_ms(20)
enable.value(1)
time.sleep_us(3000)
enable.value(1)
machine.disable_irq()
while True:
    pass
""",
        drivers=("rp2_heartbeat", "rp2_chip"),
    )
    chip.until("begin")
    chip.run(40)
    (begun, high), (ended, low) = chip.changes[-2:]
    assert (high, low) == (True, False)
    assert ended - begun == pytest.approx((3.0 + LETS_GO_MS) * 1e6, abs=0.1e6)  # to call the driver takes some 10 us
    chip.run(50)
    assert chip.changes[-1] == (ended, False)


@pytest.mark.slow
def test_a_stop_takes_the_power_as_it_is_heard(tmp_path: Path) -> None:
    need_rp2040()
    with virtual_bench(bench_file(tmp_path), seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        joint, board = DrivenJoint(bench, bench.boards[0]), bench.boards[0]
        joint.play(100)
        joint.outputs()
        board.line.send(board.node, encode_frame(MessageType.STOP, board.node, 77))
        joint.be_silent(20)
        on = [enable for enable, _ in joint.outputs().values()]
        assert sum(on) <= 2  # its bytes are on the line for 0.2 ms, and are looked at once a tick
        assert not any(on[2:])
        board.hello()
        assert board.state is State.LOADED


@pytest.mark.slow
def test_a_firmware_that_hangs_in_motion_lets_the_motor_go_and_comes_back_by_its_watchdog(tmp_path: Path) -> None:
    need_rp2040()
    (tmp_path / "hanging.py").write_text(HANGING)
    path = bench_file(tmp_path, f"program = {json.dumps('hanging.py')}")
    with virtual_bench(path, seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        joint = DrivenJoint(bench, bench.boards[0])
        joint.arm()
        joint.outputs()
        joint.run(20)
        assert all(enable for enable, _ in list(joint.outputs().values())[-10:])
        board = bench.boards[0]
        board.line.send(board.node, encode_frame(MessageType.ECHO, board.node, 77, count=0, data=b""))
        joint.be_silent(20)
        on = [enable for enable, _ in joint.outputs().values()]
        last = max(k for k, enable in enumerate(on) if enable)
        assert last <= LETS_GO_MS + 2  # a tick until the ECHO is there, one that is begun
        assert not any(on[last + 1 :])
        joint.be_silent(4000)  # the watchdog bites after 1 s; the chip takes 2 s to start
        board.hello()
        assert board.state is State.DISARMED
        assert board.identity is not None
        assert board.identity.reset_cause.lower() == "watchdog"
