"""Motors stay off, or go off, whatever becomes of the board's program: at boot, at its end, when it fails or hangs."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil_tests.link_helpers import variation
from hil_tests.raw_client import RawClient
from hil_tests.safety_rig import SafetyRig, ticks_until_off
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.testing.requirements import Measured
from jointwire import BY_NAME, MessageType, Refusal, State, Trip

pytestmark = pytest.mark.both_boards
WATCHDOG_TICKS = 1000  # as ARM sets it, of 1 ms
RAISE, INTERRUPT, HANG, FAIL = 1, 2, 3, 4  # bytes of an ECHO to programs/misbehave.py


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    with virtual_bench(write_bench_file(tmp_path, None), seed=4, out=tmp_path / "sim") as live:
        yield live


@pytest.fixture
def misbehaving(tmp_path: Path) -> Iterator[SafetyRig]:
    bench = write_bench_file(tmp_path, "misbehave.py")
    with virtual_bench(bench, seed=4, out=tmp_path / "sim") as live, SafetyRig(live) as rig:
        rig.prepare(repeats=4)
        rig.play()
        yield rig


def mailbox_words(live: Path) -> tuple[int, ...]:
    """Of a QEMU board: watchdog [ms]; tick, enable and command, as its hardware would have them."""
    memory = (live.parent / "boards" / "j1" / "psram.bin").read_bytes()
    return (*struct.unpack_from("<i", memory, 24), *struct.unpack_from("<3i", memory, 0x100))


def test_from_power_on_to_arm_nothing_is_driven(live: Path, emulator: str, measured: Measured) -> None:
    with RawClient(live) as client:
        client.ask({"outputs": 1})
        client.pass_time(300_000)
        outputs = client.ask({"outputs": 1})["outputs"]
    assert [tick for tick, _, _ in outputs] == list(range(1, 301))
    measured("safety.driven_before_arm", sum(bool(enable or command) for _, enable, command in outputs))
    with SafetyRig(live) as rig:
        rig.prepare()
        rig.run(100)
        measured("safety.driven_before_arm", sum(pair != (0, 0) for pair in rig.outputs().values()))
        if emulator != "unix:":
            assert mailbox_words(live)[0] == 0
        rig.arm()
        assert list(rig.outputs().values())[-1][0] == 1
        if emulator != "unix:":
            assert mailbox_words(live)[0] == WATCHDOG_TICKS


def test_power_lost_while_it_plays_is_not_made_up_for(live: Path, measured: Measured) -> None:
    with SafetyRig(live) as rig:
        rig.prepare(repeats=4)
        rig.play()
        rig.outputs()
        rig.power_cycle()
        rig.run(1000)
        measured("safety.driven_after_reset", sum(pair != (0, 0) for pair in rig.outputs().values()))
        assert rig.board.state is State.DISARMED
        assert rig.refusal(MessageType.ARM, **rig.arming()) is Refusal.WRONG_STATE
        assert rig.refusal(MessageType.START, at_tick=0) is Refusal.WRONG_STATE
        rig.prepare()
        rig.play(700)
        assert rig.board.state is State.DONE


def test_the_interpreter_is_not_given_an_armed_board(live: Path, emulator: str) -> None:
    with SafetyRig(live) as rig:
        rig.prepare(repeats=4)
        rig.arm()
        assert rig.refusal(MessageType.REPL) is Refusal.WRONG_STATE
        rig.board.start()
        rig.run(50)
        assert rig.refusal(MessageType.REPL) is Refusal.WRONG_STATE
        rig.outputs()
        rig.run(50)
        assert all(enable for enable, _ in rig.outputs().values())
        rig.board.stop()
        rig.outputs()
        assert rig.refusal(MessageType.REPL) is Refusal.OK
        rig.run(50)
        if emulator == "unix:":  # a process that has ended is a board without power
            assert "exit status 0" in rig.board.why_lost
        else:
            for typed in (b"\x03", b"\x03\x03", b"\x04"):  # Ctrl-C, twice, Ctrl-D: a soft reset
                assert mailbox_words(live)[2:] == (0, 0)
                rig.board.port.write(typed)
                rig.run(100)
            rig.board.greet()
            assert rig.board.state is State.DISARMED
        assert all(pair == (0, 0) for pair in rig.outputs().values())


def test_a_ctrl_c_on_the_line_is_data(live: Path) -> None:
    """On a line that is also the interpreter's console it must not end a program that drives a motor."""
    with SafetyRig(live) as rig:
        rig.prepare(repeats=4)
        rig.play()
        rig.outputs()
        rig.board.port.write(b"\x03\x03\x03\0")
        rig.run(200)
        assert all(enable for enable, _ in rig.outputs().values())
        rig.board.greet()
        assert rig.board.state is State.RUNNING
        rig.board.stop()


@pytest.mark.parametrize(("error", "trip"), [(RAISE, Trip.INTERNAL), (FAIL, Trip.HARDWARE)])
def test_an_error_in_the_program(misbehaving: SafetyRig, measured: Measured, error: int, trip: Trip) -> None:
    rig = misbehaving
    shown = 1 + max(rig.outputs())
    rig.board.tell(MessageType.ECHO, count=error, data=bytes(error))
    rig.run(50)
    measured("safety.internal", ticks_until_off(rig.outputs(), shown))
    assert Trip(rig.board.fault.trip) is trip
    rig.assert_latched(trip)


def test_a_ctrl_c_that_ends_the_program(misbehaving: SafetyRig, measured: Measured) -> None:
    """The program ends; what comes after it finds the motor off, though it does not switch it off itself."""
    rig = misbehaving
    shown = 1 + max(rig.outputs())
    rig.board.tell(MessageType.ECHO, count=INTERRUPT, data=bytes(INTERRUPT))
    rig.run(500)
    measured("safety.program_ends", ticks_until_off(rig.outputs(), shown))
    assert not rig.board.why_lost


@pytest.mark.slow
def test_a_program_that_hangs(misbehaving: SafetyRig, emulator: str, measured: Measured) -> None:
    """The drive keeps what it was told last until the watchdog resets the board; it starts anew and drives nothing."""
    rig = misbehaving
    outputs = rig.outputs()
    shown = 1 + max(outputs)
    rig.board.tell(MessageType.ECHO, count=HANG, data=bytes(HANG))
    rig.run(WATCHDOG_TICKS + 200)
    outputs |= rig.outputs()
    off = ticks_until_off(outputs, shown)
    if emulator == "unix:":  # it has no watchdog: the bench ends a process that does not answer
        assert "hangs" in rig.board.why_lost
        assert off == 0
        return
    measured("safety.watchdog", off)
    assert {outputs[tick] for tick in range(shown, shown + off)} <= {outputs[shown - 1]}
    assert rig.board.greet().reset_cause == "WATCHDOG"
    assert rig.board.state is State.DISARMED


HARD = 'board.facts.update({"hard.current": 1500, "hard.velocity": 8000, "hard.missed_ticks": 5})'
BEYOND = {
    "limit.current": 1500, "limit.continuous_current": 1500, "limit.stuck_current": 1500, "servo.friction": 1500,
    "limit.velocity": 8000, "limit.missed_ticks": 5,
}  # fmt: skip


def test_no_register_reaches_beyond_a_hard_bound(tmp_path: Path) -> None:
    """Neither by its value at start nor by a WRITE; and the drive is asked for no more."""
    (tmp_path / "program.py").write_text(variation(board=HARD), encoding="utf-8")
    bench = write_bench_file(tmp_path, str(tmp_path / "program.py"))
    with virtual_bench(bench, seed=4, out=tmp_path / "sim") as live, SafetyRig(live) as rig:
        for name, most in BEYOND.items():
            assert rig.facts.registers[name] <= most
            id = BY_NAME[name].id
            assert rig.refusal(MessageType.WRITE, register=id, value=most + 1) is Refusal.OUT_OF_RANGE
            assert rig.refusal(MessageType.WRITE, register=id, value=most) is Refusal.OK
        limits = {name.removeprefix("limit."): most for name, most in BEYOND.items() if name.startswith("limit.")}
        rig.prepare({**limits, "following": 65535})
        rig.arm()
        rig.inject("push", torque_Nm=40)  # more than 1.5 A can hold
        rig.run(300)
        commands = [command for _, command in rig.outputs().values()]
        assert min(commands) == -1500
        # Both stand at hard.velocity, 31 counts a tick; the counter shows it a little sooner than the estimate.
        fault = rig.board.fault
        assert (Trip(fault.trip), fault.limit) in ((Trip.VELOCITY, 8000), (Trip.ENCODER_JUMP, 8000 // 256))
