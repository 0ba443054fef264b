"""From a loaded trajectory to a motor that is off again, as it was told to."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from hil_tests.link_helpers import record, small_wave
from hil_tests.suite.driven_joint import KNOTS, DrivenJoint
from jointbench.bench import Bench
from jointbench.testing import deterministic, functional, needs
from jointbench.testing.roles import Role, run_roles
from jointwire import MessageType, Refusal, State


@functional
@needs("motor")
def test_it_is_armed_by_the_right_checksum_only(joint: DrivenJoint) -> None:
    joint.board.upload(joint.swing(), 1)
    arming = joint.arming()
    assert joint.refusal(MessageType.ARM, **{**arming, "config_crc": arming["config_crc"] ^ 1}) is not Refusal.OK
    joint.board.greet()
    assert joint.board.state is State.LOADED
    assert joint.refusal(MessageType.ARM, **joint.arming()) is Refusal.OK
    joint.board.greet()
    assert joint.board.state is State.ARMED


@functional
@needs("motor")
def test_the_joint_follows(bench: Bench, test_folder: Path, measured: Callable[..., None]) -> None:
    motion = small_wave(bench)
    run = record(bench, motion, test_folder / "run")
    playing = run.samples.valid.all(axis=1) & (run.samples.play_tick >= 0)
    time = run.samples.play_tick[playing] * np.float64(run.samples.sample_period)
    q, _, _ = motion.evaluate(time)
    assert np.ptp(run.samples.motor_position[playing], axis=0).min() > 0.8 * np.ptp(q, axis=0).min()
    measured("play.follow_error", np.abs(run.samples.motor_position[playing] - q).max(axis=0))
    for board in bench.boards:
        board.hello()
        assert board.state is State.DONE


@functional
@needs("motor", "link_encoder")
def test_both_encoders_tell_of_the_same_motion(bench: Bench, test_folder: Path, measured: Callable[..., None]) -> None:
    samples = record(bench, small_wave(bench), test_folder / "run").samples
    assert samples.link_position is not None
    known = samples.valid.all(axis=1) & (samples.play_tick >= 0)
    apart = samples.link_position[known] - samples.motor_position[known]
    measured("play.gear_sides_apart", np.ptp(apart, axis=0))  # their zeros may differ by what was calibrated


@functional
@needs("motor")
def test_a_stop_in_motion_ends_it(joint: DrivenJoint) -> None:
    joint.play(100)
    assert joint.board.state is State.RUNNING
    joint.board.stop()
    joint.board.greet()
    assert joint.board.state in (State.LOADED, State.DISARMED)
    joint.arm()  # and it is armed and plays as before
    joint.board.start()
    joint.run_until(State.DONE, within=KNOTS * joint.facts.knot_ticks + 500)


@deterministic
@needs("motor", "outputs")
def test_stop_takes_the_power(bench: Bench, measured: Callable[..., None]) -> None:
    """From the tick at which the STOP is on its way to the board, by the ticks that the drive sees."""
    took: list[int] = []
    for board in bench.boards:
        joint = DrivenJoint(bench, board)
        joint.arm()
        joint.board.start()
        joint.outputs()
        joint.run(60)
        before = joint.outputs()
        assert all(enable for enable, _ in list(before.values())[-20:])
        board.stop()
        joint.be_silent(20)
        after = joint.outputs()
        on = [tick for tick, (enable, command) in after.items() if enable or command]
        off = [tick for tick, (enable, command) in after.items() if not enable and not command]
        assert len(off) >= 20
        assert not on or max(on) < min(off)
        took.append(min(off) - max(before))
    measured("safety.stop", took)


def play_once(me: Role) -> None:
    """Nothing is driven before ARM, and nothing after DONE."""
    joint = DrivenJoint(me.bench, me.board)
    joint.outputs()  # from now on they are noted
    joint.board.upload(joint.swing(), 1)
    joint.run(50)
    joint.assert_off()
    joint.board.arm()
    joint.board.start()
    joint.run_until(State.DONE, within=KNOTS * joint.facts.knot_ticks + 500)
    joint.outputs()
    joint.run(50)
    joint.assert_off()


@deterministic
@needs("motor", "outputs")
def test_nothing_is_driven_but_while_armed(bench: Bench) -> None:
    run_roles(bench, *[play_once] * len(bench.boards))
