"""Faults strike a chip in motion, a program hangs, pins are pulled: ENABLE falls in time, and the host is told why."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.safety_rig import stream
from hil_tests.suite.driven_joint import KEEP_ALIVE_US, DrivenJoint
from hil_tests.test_brake import BRAKE, ENGAGE, HELD, LOAD, OPEN, give, sag_of
from hil_tests.test_rp2040_bench import PAIR, bench_file
from hil_tests.test_rp2040_board import StartChip, need_rp2040
from hil_tests.test_rp2040_board import start_chip as start_chip  # a fixture
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import LockstepClock, open_bench
from jointbench.testing.requirements import Measured
from jointwire import MessageType, Refusal, State, Trip, encode_frame, stack_samples

SUPPLY_MIN = 40_000  # mV
STUCK_CURRENT, STUCK_TIME = 300, 50  # mA, ms: what friction alone takes
NOISE = b"\x55" * 80  # for a tick at the line's speed; no frame has such a checksum


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrivenJoint]:
    """One chip for all faults: it takes seconds to start, and after each of them it is well again, or that is found."""
    need_rp2040()
    folder = tmp_path_factory.mktemp("faults")
    sensor = {"kind": "as5600", "i2c": 1, "scl": 19, "sda": 18}
    (folder / "wiring.json").write_text(json.dumps({"link_encoder": sensor}))
    path = bench_file(folder, 'wiring = "wiring.json"')
    with virtual_bench(path, seed=3, out=folder / "sim") as live, open_bench(live) as bench:
        bench.connect()
        yield DrivenJoint(bench, bench.boards[0])


@pytest.fixture
def moving(joint: DrivenJoint) -> Iterator[DrivenJoint]:
    """It plays a swing of 0.5 s, and is healed and at rest afterwards."""
    joint.board.greet()
    joint.bench.configure()
    joint.write(limit__supply_min=SUPPLY_MIN, limit__stuck_current=STUCK_CURRENT, limit__stuck_time=STUCK_TIME)
    joint.play(50, repeats=2)
    assert all(enable for enable, _ in list(joint.outputs().values())[-10:])
    yield joint
    joint.heal()
    joint.board.hello()
    if joint.board.state is State.FAULT:
        assert joint.refusal(MessageType.ARM, **joint.arming()) is Refusal.WRONG_STATE
        assert joint.refusal(MessageType.CLEAR) is Refusal.OK
    else:
        joint.board.stop()


def ticks_with_power(joint: DrivenJoint) -> int:
    """Since its outputs were last asked for; none may follow those."""
    on = [bool(enable) for enable, _ in joint.outputs().values()]
    assert not on[-1]
    assert not any(on[on.index(False) :])
    return on.index(False)


@pytest.mark.slow
@pytest.mark.parametrize("cause", ["cable cut", "host killed", "storm on the line"])
def test_a_line_without_frames_takes_the_power_after_its_timeout(moving: DrivenJoint, cause: str) -> None:
    if cause == "cable cut":
        moving.inject("line_silent")
    for _ in range(moving.patience + 20):
        if cause == "storm on the line":
            moving.board.line.send(moving.board.node, NOISE)
        moving.be_silent(1)
    since_a_frame = KEEP_ALIVE_US // moving.tick_us
    assert moving.patience - since_a_frame - 2 <= ticks_with_power(moving) <= moving.patience + 2
    moving.heal()
    assert Trip(moving.fault(300).trip) is Trip.LINK_LOSS


@pytest.mark.slow
def test_a_cut_encoder_wire_is_an_encoder_that_stands(moving: DrivenJoint) -> None:
    moving.inject("encoder_wire_cut")
    moving.run(300)
    assert ticks_with_power(moving) <= STUCK_TIME + 20  # the error has to grow first until the current is that large
    assert Trip(moving.fault(300).trip) is Trip.ENCODER_STUCK


@pytest.mark.slow
def test_a_link_encoder_on_i2c_is_read_within_the_turn(moving: DrivenJoint) -> None:
    moving.data.clear()
    moving.run_until(State.DONE, within=1000)
    samples, facts = stack_samples(moving.data), moving.facts
    counts = facts.registers["encoder.link_counts"]
    motor, link = (samples[f"{what}_position"].astype(float) for what in ("motor", "link"))
    turned = (motor - motor[0]) / facts.motor_counts / facts.ratio
    assert np.ptp(turned) * counts > 20
    # Both counts are rounded, the gear bends by 1 mrad and the angle is up to 0.1 ms newer.
    np.testing.assert_allclose((link - link[0]) / counts, turned, atol=3 / counts)


@pytest.mark.slow
def test_a_link_encoder_that_does_not_answer_is_a_fault_of_hardware(moving: DrivenJoint) -> None:
    shown = moving.inject("link_wire_cut")
    moving.run(20)
    off = min(tick for tick, (enable, _) in moving.outputs().items() if not enable)
    # Three bad readings in a row are a fault (drivers/failures.py); it is told in the tick after the third.
    assert off - shown <= 5
    assert Trip(moving.fault(300).trip) is Trip.HARDWARE


@pytest.mark.slow
def test_a_supply_that_sags_takes_the_power_at_once(moving: DrivenJoint) -> None:
    moving.inject("supply", voltage_mV=20_000)
    moving.run(20)
    assert ticks_with_power(moving) <= 2  # the converter's value of a tick is looked at in the next
    assert Trip(moving.fault(300).trip) is Trip.SUPPLY


@pytest.mark.slow
def test_flash_is_not_written_in_motion(moving: DrivenJoint) -> None:
    identity = moving.board.identity
    assert identity is not None
    assert moving.refusal(MessageType.SAVE) is Refusal.WRONG_STATE
    image = bytes.fromhex(identity.image_sha256)
    assert moving.refusal(MessageType.CONFIRM, image_sha256=image) is Refusal.WRONG_STATE
    assert moving.refusal(MessageType.REPL) is Refusal.WRONG_STATE
    moving.run_until(State.DONE, within=1000)
    on = [bool(enable) for enable, _ in moving.outputs().values()]
    assert sum(on) > 100


@pytest.mark.slow
def test_a_brown_out_takes_the_power_and_leaves_it_off(moving: DrivenJoint) -> None:
    clock = moving.bench.clock
    assert isinstance(clock, LockstepClock)
    clock.restart(moving.board.node)
    for _ in range(20):  # it starts
        moving.be_silent(250)
    assert ticks_with_power(moving) <= 1
    moving.board.hello()
    assert moving.board.state is State.DISARMED
    assert moving.board.identity is not None
    assert moving.board.identity.reset_cause == "POWER_ON"


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


def run_both(joints: list[DrivenJoint], ticks: int) -> None:
    for _ in range(ticks // 10):
        for joint in joints:
            joint.run(5)


def hold_both(joints: list[DrivenJoint]) -> None:
    """Both motors hold, their brakes open."""
    for joint in joints:
        joint.board.upload(joint.swing(), 1)
    for joint in joints:
        joint.board.arm()
    run_both(joints, 100)
    for joint in joints:
        joint.outputs()
    run_both(joints, 20)
    for joint in joints:
        assert {enable for enable, _ in joint.outputs().values()} == {OPEN}


PAIR_OF_BRAKES = {
    "pins": {"enable": 22, "sync": 14, "brake": 2, "stop": 23},
    "brake": BRAKE,
    "partner": {"pins": {"enable": 3, "brake": 15, "stop": 24, "fault": 25}, "brake": BRAKE},
}


@pytest.mark.slow
def test_two_braked_motors_of_a_chip_are_left_to_their_brakes_together_and_cut_by_the_pins_of_either(
    tmp_path: Path,
) -> None:
    need_rp2040()
    (tmp_path / "wiring.json").write_text(json.dumps(PAIR_OF_BRAKES))
    path = tmp_path / "pair.toml"
    path.write_text(PAIR + 'wiring = "wiring.json"\n', encoding="utf-8")
    with virtual_bench(path, plant="ideal", seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        joints = one, other = [DrivenJoint(bench, board) for board in bench.boards]
        for halted in joints:  # the other one, which has no reason to go on alone, is left to its brake likewise
            hold_both(joints)
            halted.board.halt()
            run_both(joints, 150)
            for joint in joints:
                told = [enable for enable, _ in joint.outputs().values()]
                assert sorted(told, reverse=True) == told
                assert set(told) == {OPEN, HELD, 0}
                assert told.count(HELD) >= ENGAGE
        strikes = ((one, other, 1, Trip.STOP_PIN), (other, one, 1, Trip.STOP_PIN), (other, one, 2, Trip.FAULT_PIN))
        for struck, partner, pins, trip in strikes:
            bench.configure()
            hold_both(joints)
            shown = struck.inject("pins_low", pins=pins)
            struck.be_silent(20)
            for joint in joints:
                on = [tick for tick, (enable, _) in joint.outputs().items() if enable and tick >= shown]
                assert not on or max(on) <= shown + 1  # power and brake; two motors leave the guard no state machine
            assert Trip(struck.fault(within=1100).trip) is trip
            fault = partner.fault(within=1100)
            assert (Trip(fault.trip), Trip(fault.value)) == (Trip.PARTNER, trip)
            struck.heal()
            struck.be_silent(10)
            bench.clear()
