"""Faults strike a chip in motion: ENABLE is low in time, and the host is told rightly why."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from hil_tests.suite.driven_joint import KEEP_ALIVE_US, DrivenJoint
from hil_tests.test_rp2040_bench import bench_file
from hil_tests.test_rp2040_board import need_rp2040
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import LockstepClock, open_bench
from jointwire import MessageType, Refusal, State, Trip, stack_samples

pytestmark = pytest.mark.slow
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


def test_a_cut_encoder_wire_is_an_encoder_that_stands(moving: DrivenJoint) -> None:
    moving.inject("encoder_wire_cut")
    moving.run(300)
    assert ticks_with_power(moving) <= STUCK_TIME + 20  # the error has to grow first until the current is that large
    assert Trip(moving.fault(300).trip) is Trip.ENCODER_STUCK


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


def test_a_link_encoder_that_does_not_answer_is_a_fault_of_hardware(moving: DrivenJoint) -> None:
    shown = moving.inject("link_wire_cut")
    moving.run(20)
    off = min(tick for tick, (enable, _) in moving.outputs().items() if not enable)
    # Three bad readings in a row are a fault (drivers/failures.py); it is told in the tick after the third.
    assert off - shown <= 5
    assert Trip(moving.fault(300).trip) is Trip.HARDWARE


def test_a_supply_that_sags_takes_the_power_at_once(moving: DrivenJoint) -> None:
    moving.inject("supply", voltage_mV=20_000)
    moving.run(20)
    assert ticks_with_power(moving) <= 2  # the converter's value of a tick is looked at in the next
    assert Trip(moving.fault(300).trip) is Trip.SUPPLY


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
