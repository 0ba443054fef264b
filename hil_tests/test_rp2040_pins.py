"""Pins of the chip that keep its motor off: ENABLE falls at once, and the trip is rightly named afterwards."""

import json
from pathlib import Path

import pytest

from hil_tests.safety_rig import stream
from hil_tests.suite.driven_joint import DrivenJoint
from hil_tests.test_brake import BRAKE, ENGAGE, HELD, LOAD, OPEN, give, sag_of
from hil_tests.test_rp2040_bench import bench_file
from hil_tests.test_rp2040_board import StartChip, need_rp2040
from hil_tests.test_rp2040_board import start_chip as start_chip  # a fixture
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench
from jointbench.testing.measured import Measured
from jointwire import MessageType, Refusal, State, Trip

GUARD_NS = 30e3  # 16 us of looking, and some instructions at 1 MHz
PINS = {"stop": 10, "fault": 11, "limit_low": 12, "limit_high": 13}


@pytest.mark.slow
def test_the_guard_takes_enable_whatever_the_processor_does(start_chip: StartChip) -> None:
    """Stop and fault each, also for a moment only; noise of 10 us does nothing."""
    chip = start_chip(
        """
from drivers.rp2_heartbeat import Heartbeat
from drivers.rp2_guard import Guard
enable = Heartbeat(22, 1, 1000)
for number in (10, 11):
    Pin(number, Pin.IN)
guard = Guard([10, 11, None, None], {"pins": {"enable": 22}}, 1)
say("begin")
while True:
    enable.value(1)
    if line.any():
        letter = line.read(1)
        if letter == b"?":
            say(guard.take())
        if letter == b"0":
            enable.value(0)
            time.sleep_ms(1)
""",
        {"pins": {"enable": 22, "sync": 14, **PINS}},
        drivers=("rp2_heartbeat", "rp2_guard", "rp2_chip", "safety_pins", "errors"),
    )
    chip.until("begin")
    chip.run(5)
    assert chip.changes[-1][1]
    count = len(chip.changes)
    noise = chip.time_ns + 100_000
    chip.run(2, levels=[[noise, PINS["stop"], False], [noise + 10_000, PINS["stop"], True]])
    assert len(chip.changes) == count
    taken = []
    for name, bit in (("stop", 1), ("fault", 2)):
        at = chip.time_ns + 300_000
        chip.run(3, levels=[[at, PINS[name], False], [at + 30_000, PINS[name], True]])
        fallen, level = chip.changes[-1]
        taken.append(fallen - at)
        assert not level  # though it is kicked on and on
        chip.said = b""
        chip.run(line=[[chip.time_ns, b"?0".hex()]])
        assert chip.until("\n")[0] == str(bit)
        chip.run(5)
        assert chip.changes[-1][1]
    assert max(taken) < GUARD_NS


def hold_a_load_until_the_brake_does(joint: DrivenJoint, measured: Measured) -> None:
    """HALT a loaded motor that holds: power stays until the brake has engaged, and the joint where it is."""
    joint.write(limit__following=60000, stream__always=1)
    joint.arm()
    joint.run(30)
    joint.inject("push", torque_Nm=LOAD / 3)
    joint.data.clear()
    joint.run(400)  # its integral carries the load by then
    joint.outputs()
    before = stream(joint.data, "motor_position")[-130:]
    joint.board.halt()
    joint.data.clear()
    joint.run(170)
    told = [enable for enable, _ in joint.outputs().values()]
    assert sorted(told, reverse=True) == told
    assert set(told) == {OPEN, HELD, 0}
    assert told.count(HELD) > ENGAGE
    measured("safety.brake_sag", sag_of(before, stream(joint.data, "motor_position")) - give(LOAD / 3))
    joint.heal()
    joint.write(stream__always=0)
    joint.bench.configure()


@pytest.mark.slow
def test_stop_and_fault_of_a_moving_motor_take_enable_and_are_named(tmp_path: Path, measured: Measured) -> None:
    """The firmware in its kernels. A pin changes 0.3 ms into a tick, so off at its end is off within 0.7 ms."""
    need_rp2040()
    (tmp_path / "wiring.json").write_text(
        json.dumps({"pins": {"enable": 22, "sync": 14, "brake": 9, **PINS}, "link_encoder": None, "brake": BRAKE})
    )
    path = bench_file(tmp_path, 'wiring = "wiring.json"')
    with virtual_bench(path, seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        joint, board = DrivenJoint(bench, bench.boards[0]), bench.boards[0]
        hold_a_load_until_the_brake_does(joint, measured)
        for pins, trip in ((1, Trip.STOP_PIN), (2, Trip.FAULT_PIN)):
            joint.play(100)
            joint.outputs()
            joint.run(5)
            assert all(enable for enable, _ in joint.outputs().values())
            shown = joint.inject("pins_low", pins=pins)
            joint.be_silent(20)
            on = [tick for tick, (enable, _) in joint.outputs().items() if enable & 1 and tick >= shown]
            measured("safety.pins_of_a_chip", 0.7 if not on else max(on) - shown + 1.7)
            fault = joint.fault(within=1100)
            assert (Trip(fault.trip), fault.value, board.state) == (trip, pins, State.FAULT)
            assert joint.refusal(MessageType.CLEAR) is Refusal.OK
            board.upload(joint.swing(), 1)
            assert joint.refusal(MessageType.ARM, **joint.arming()) is Refusal.PINS
            joint.heal()
            joint.be_silent(2)
