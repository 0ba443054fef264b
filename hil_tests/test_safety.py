"""Trips, shown: hardware breaks around a moving board, and its outputs are zero within the ticks docs/safety.md states.

Ticks are counted in the bench, from the tick at which the hardware shows the fault to the first with neither enable nor
command; how many there may be stands in requirements/safety.toml. All tests of one kind of board share a bench; each
ends with a board that plays again after CLEAR and ARM. Some run on both kinds of boards by default, all of them on
either with --board.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from hil_tests.safety_rig import REST_TICKS, SafetyRig, stream, swing, ticks_until_off
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.errors import BoardRefused
from jointbench.testing.requirements import Measured
from jointwire import BY_NAME, MessageType, Refusal, State, Trip

LINK_TIMEOUT = BY_NAME["limit.link_timeout"].default  # ticks of 1 ms
KEEP_ALIVE = 50  # ticks between the frames that the rig lets a board hear
HEAT_TICKS = 64  # from one look at the current's mean square to the next


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """A bench with one board, for each kind of board."""
    with ExitStack() as stack:

        @functools.cache
        def start(emulator: str) -> Path:
            folder = tmp_path_factory.mktemp("safety")
            return stack.enter_context(
                virtual_bench(write_bench_file(folder, None), seed=4, out=folder / "sim", board=emulator)
            )

        yield start


@pytest.fixture
def rig(benches: Callable[[str], Path], emulator: str) -> Iterator[SafetyRig]:
    with SafetyRig(benches(emulator)) as rig:
        assert rig.board.identity
        assert rig.board.identity.board == ("unix" if emulator == "unix:" else "mps2")
        yield rig


@dataclass(frozen=True)
class Hazard:
    """A fault of the hardware and what must come of it.

    Attributes:
        fault, value: as the bench injects it.
        trip: that latches.
        required: id of the requirement that says within how many ticks all outputs are zero.
        limits: raw registers, where not the default.
        earliest: tick before which the outputs must not be zero.
        shows: what the FAULT frame's value must be.
    """

    fault: str
    value: dict[str, float]
    trip: Trip
    required: str
    limits: dict[str, int] = field(default_factory=dict[str, int])
    earliest: int = 0
    shows: Callable[[int, int], bool] = lambda value, limit: abs(value) > limit


HAZARDS = {
    "encoder jumps": Hazard("encoder_jump", {"counts": 900}, Trip.ENCODER_JUMP, "safety.encoder_jump", {"jump": 200}),
    "encoder jumps back": Hazard(
        "encoder_jump", {"counts": -900}, Trip.ENCODER_JUMP, "safety.encoder_jump", {"jump": 200}
    ),
    "encoder jumps by less": Hazard(
        "encoder_jump", {"counts": 250}, Trip.FOLLOWING, "safety.following", {"following": 100}
    ),
    "current beyond the converter": Hazard("current_stuck", {"sample": 4095}, Trip.OVER_CURRENT, "safety.over_current"),
    "current beyond the converter, negative": Hazard(
        "current_stuck", {"sample": 0}, Trip.OVER_CURRENT, "safety.over_current"
    ),
    "supply sags": Hazard(
        "supply", {"voltage_mV": 20_000}, Trip.SUPPLY, "safety.supply", {"supply_min": 40_000},
        shows=lambda value, limit: value < limit,
    ),
    "supply rises": Hazard("supply", {"voltage_mV": 60_000}, Trip.SUPPLY, "safety.supply", {"supply_max": 55_000}),
    "stop is open": Hazard("pins_low", {"pins": 1}, Trip.STOP_PIN, "safety.pins", shows=lambda value, _: value == 1),
    "power stage fails": Hazard(
        "pins_low", {"pins": 2}, Trip.FAULT_PIN, "safety.pins", shows=lambda value, _: value == 2
    ),
    "limit switch reached": Hazard(
        "pins_low", {"pins": 4}, Trip.LIMIT_PIN, "safety.pins", shows=lambda value, _: value == 4
    ),
    # The jumps above leave 500 counts between the encoders: what a motor encoder missed it never learns.
    "encoders disagree": Hazard("link_offset", {"counts": 4000}, Trip.TWIST, "safety.twist", {"twist": 1000}),
    "motor too hot": Hazard("temperature", {"temperature_degC": 101}, Trip.TEMPERATURE, "safety.temperature"),
    # 21 ticks without a board: it sees them at the first that it gets, and no sooner.
    "ticks are missed": Hazard("ticks_missed", {"ticks": 21}, Trip.OVERRUN, "safety.overrun", earliest=21),
    # The last frame may have come up to KEEP_ALIVE before the line fell silent.
    "line falls silent": Hazard(
        "line_silent", {}, Trip.LINK_LOSS, "safety.link_loss", earliest=LINK_TIMEOUT - KEEP_ALIVE - 2,
        shows=lambda value, limit: value == limit,
    ),
}  # fmt: skip


def assert_trips(rig: SafetyRig, hazard: Hazard, measured: Measured, rest: int = 200) -> None:
    """Inject it into a driven board: motor off in time, told once with tick and numbers, and latched."""
    shown = rig.inject(hazard.fault, **hazard.value)
    rig.run(hazard.earliest + 100)
    off = ticks_until_off(rig.outputs(), shown)
    assert off >= hazard.earliest
    measured(hazard.required, off)
    fault = rig.board.fault
    assert (Trip(fault.trip), fault.state, fault.tick) == (hazard.trip, State.FAULT, shown + off)
    assert hazard.shows(fault.value, fault.limit), fault
    rig.assert_latched(hazard.trip, rest)


@pytest.mark.both_boards
@pytest.mark.parametrize("name", HAZARDS)
def test_while_it_plays(rig: SafetyRig, name: str, measured: Measured) -> None:
    rig.prepare(HAZARDS[name].limits, repeats=2)
    rig.play()
    assert_trips(rig, HAZARDS[name], measured)


HELD = {"encoder jumps", "ticks are missed", "line falls silent"}  # shown quickly; a board trips alike in either state


@pytest.mark.parametrize(
    "name", [name if name in HELD else pytest.param(name, marks=pytest.mark.slow) for name in HAZARDS]
)
def test_while_it_holds(rig: SafetyRig, name: str, measured: Measured) -> None:
    rig.prepare(HAZARDS[name].limits)
    rig.arm()
    assert_trips(rig, HAZARDS[name], measured, rest=REST_TICKS)


# Encoders that lie


@pytest.mark.both_boards
def test_a_driven_motor_whose_encoder_stands(rig: SafetyRig, measured: Measured) -> None:
    """A fifth of an ampere moves this joint; asked for 20 ms without an edge of the encoder, the encoder is dead."""
    rig.prepare({"stuck_current": 200, "stuck_time": 20})
    rig.play()
    shown = rig.inject("encoder_stuck")
    rig.run(100)
    outputs = rig.outputs()
    assert all(command >= 200 for tick, (_, command) in outputs.items() if shown - 1 <= tick < shown + 19)
    measured("safety.encoder_stuck", ticks_until_off(outputs, shown) - 19)  # twenty without an edge, `shown` the first
    assert (rig.board.fault.trip, rig.board.fault.value) == (Trip.ENCODER_STUCK, 20)
    rig.assert_latched(Trip.ENCODER_STUCK)


@pytest.mark.both_boards
def test_a_motor_whose_encoder_counts_backwards(rig: SafetyRig, measured: Measured) -> None:
    """The servo drives the joint away from its reference; the error it sees grows until it passes limit.following."""
    rig.prepare({"following": 400})
    rig.play()
    rig.data.clear()
    shown = rig.inject("encoder_reversed")
    rig.run(200)
    outputs = rig.outputs()
    measured("safety.encoder_reversed", ticks_until_off(outputs, shown))
    fault = rig.board.fault
    assert Trip(fault.trip) is Trip.FOLLOWING
    assert 400 < abs(fault.value) < 400 + 100  # in the first tick beyond: none moves by more
    rig.assert_latched(Trip.FOLLOWING)


def test_a_holding_motor_whose_encoder_counts_backwards(rig: SafetyRig, measured: Measured) -> None:
    """At rest it shows nothing for a while; a touch, and the servo pushes the way the hand does."""
    rig.prepare({"following": 400})
    rig.arm()
    rig.outputs()
    rig.inject("encoder_reversed")
    rig.run(50)  # a servo that pushes away from rest falls from there, if by less than a count at first
    assert all(enable for enable, _ in rig.outputs().values())
    shown = rig.inject("push", torque_Nm=10)
    rig.run(400)
    measured("safety.encoder_reversed_at_rest", ticks_until_off(rig.outputs(), shown))
    assert Trip(rig.board.fault.trip) is Trip.FOLLOWING
    rig.assert_latched(Trip.FOLLOWING)


# What is done to the joint


def ticks_after_the_first(rig: SafetyRig, channel: str, beyond: Callable[[int], bool], trip: Trip) -> int:
    """Ticks from the one whose sample is the first that is beyond to the first with outputs that are zero."""
    fault, data = rig.board.fault, [frame.body for frame in rig.data]
    assert fault is not None
    assert Trip(fault.trip) is trip
    ticks = [tick for body in data for tick in range(body.first_tick, body.first_tick + body.count)]
    first = next(tick for tick, value in zip(ticks, stream(rig.data, channel), strict=True) if beyond(value))
    outputs = rig.outputs()
    assert outputs[first - 1][0] == 1
    off = ticks_until_off(outputs, first)
    assert fault.tick == first + off
    rig.assert_latched(trip)
    return off


@pytest.mark.parametrize("torque", [120.0, -120.0])
@pytest.mark.parametrize("state", ["ARMED", "RUNNING"])
def test_a_joint_pushed_out_of_its_window(
    rig: SafetyRig, state: Literal["ARMED", "RUNNING"], torque: float, measured: Measured
) -> None:
    start = rig.position
    low, high = start - 200, start + 3200
    rig.prepare(
        {"position_min": low, "position_max": high, "velocity": BY_NAME["limit.velocity"].maximum, "current": 3000}
    )
    rig.play() if state == "RUNNING" else rig.arm()
    rig.data.clear()
    rig.inject("push", torque_Nm=torque)
    rig.run(600)
    off = ticks_after_the_first(rig, "motor_position", lambda count: not low <= count <= high, Trip.POSITION)
    measured("safety.window", off)


def test_a_joint_pushed_off_its_reference(rig: SafetyRig, measured: Measured) -> None:
    start = rig.position
    rig.prepare({"following": 200})
    rig.arm()
    held = start_of_hold(rig)
    rig.data.clear()
    rig.inject("push", torque_Nm=60)
    rig.run(300)
    assert abs(held - start) < 20
    off = ticks_after_the_first(rig, "motor_position", lambda count: abs(count - held) > 200, Trip.FOLLOWING)
    measured("safety.following", off)


def start_of_hold(rig: SafetyRig) -> int:
    """Position at which the board was armed: what it holds."""
    rig.run(130)
    return stream(rig.data, "motor_position")[-1]


@pytest.mark.parametrize("source", [0, 1])
def test_a_joint_torn_away_too_fast(rig: SafetyRig, source: int, measured: Measured) -> None:
    """The velocity that trips is the board's own estimate, by either of its two ways, which it streams."""
    limit = 20 * 256
    rig.prepare({"velocity": limit})
    rig.board.write_register("velocity.source", source)
    rig.arm()
    rig.data.clear()
    rig.inject("push", torque_Nm=200)
    rig.run(300)
    assert rig.board.fault.limit == limit
    assert abs(rig.board.fault.value) > limit
    off = ticks_after_the_first(rig, "motor_velocity", lambda velocity: abs(velocity) > limit, Trip.VELOCITY)
    measured("safety.velocity", off)


def test_a_motor_that_holds_against_a_load_for_too_long(rig: SafetyRig, measured: Measured) -> None:
    """The mean square of the current, from cold, passes its limit when the commands it was given say so."""
    rig.prepare({"continuous_current": 300, "thermal_time": 100, "current": 3000})
    rig.run(1000)  # ten time constants: cold
    rig.arm()
    shown = rig.inject("push", torque_Nm=25)
    rig.run(600)
    outputs = rig.outputs()
    off = ticks_until_off(outputs, shown)
    heat, passed = 0.0, None
    for tick in range(shown, shown + off):
        heat += (outputs[tick][1] ** 2 - heat) / 100
        passed = tick - shown if passed is None and heat > 300**2 else passed
    assert passed is not None
    assert passed - HEAT_TICKS <= off
    measured("safety.i2t", off - passed)
    fault = rig.board.fault
    assert Trip(fault.trip) is Trip.I2T
    step = 32736 * rig.facts.registers["current.scale"] / 1e6 / 4096  # mA: the mean square is kept in these, cut off
    assert fault.value > fault.limit >= 300 - 2 * step
    rig.run(1000)
    rig.assert_latched(Trip.I2T)


# The host


def test_the_current_is_let_go_of_before_the_power(rig: SafetyRig, measured: Measured) -> None:
    """From half the time-out on no command exceeds the line from limit.current to zero at its end."""
    clamp = 600
    rig.prepare({"current": clamp, "following": 65535, "velocity": BY_NAME["limit.velocity"].maximum})
    rig.arm()
    rig.inject("push", torque_Nm=-18)
    rig.run(400)
    held = list(rig.outputs().values())[-100:]
    assert all(enable and command > 200 for enable, command in held)
    shown = rig.inject("line_silent")
    rig.run(LINK_TIMEOUT + 100)
    outputs = rig.outputs()
    off = ticks_until_off(outputs, shown)
    last_heard = shown + off - LINK_TIMEOUT
    assert shown - KEEP_ALIVE - 2 <= last_heard < shown
    measured("safety.link_loss", off)
    for tick in range(shown, shown + off):
        silence = tick - last_heard
        left = min(LINK_TIMEOUT - silence, LINK_TIMEOUT // 2)  # of the second half
        assert 0 <= outputs[tick][1] <= clamp * left // (LINK_TIMEOUT // 2), silence
        assert outputs[tick][1] >= 200 * left // (LINK_TIMEOUT // 2), silence  # it is let go of, not dropped
    rig.assert_latched(Trip.LINK_LOSS)


def test_a_host_that_goes_without_a_word(benches: Callable[[str], Path], emulator: str) -> None:
    live = benches(emulator)
    with SafetyRig(live) as rig:
        rig.prepare(repeats=4)
        rig.play()
        assert list(rig.outputs().values())[-1][0] == 1
    with SafetyRig(live, clear=False) as rig:  # in between time went on until no motor was driven
        assert rig.board.state is State.FAULT
        rig.run(1100)
        assert Trip(rig.board.fault.trip) is Trip.LINK_LOSS
        rig.assert_latched(Trip.LINK_LOSS)


def test_a_reference_between_knots_that_leaves_the_window(rig: SafetyRig, measured: Measured) -> None:
    """Every knot is inside, which LOAD checks; the curve between two of them is not, which the tick does."""
    start = rig.position
    rates = (0, 2560, -2560, 0)
    knots = np.array([(start + way, rate) for way, rate in zip((0, 90, 90, 0), rates, strict=True)], dtype=np.int32)
    rig.prepare({"position_min": start - 500, "position_max": start + 100}, knots)
    rig.board.arm()
    rig.board.start()
    rig.run(120)
    fault = rig.board.fault
    assert (Trip(fault.trip), fault.limit) == (Trip.COMMAND, start + 100)
    # The first tick whose reference is outside: by less than what the curve moves in a tick, 10 counts.
    assert start + 100 < fault.value <= start + 110
    measured("safety.command", ticks_until_off(rig.outputs(), fault.tick))
    rig.assert_latched(Trip.COMMAND)


def test_a_trajectory_outside_the_window_is_not_loaded(rig: SafetyRig) -> None:
    start = rig.position
    rig.prepare({"position_min": start - 100, "position_max": start + 4000})
    assert rig.refusal(MessageType.LOAD, count=0, repeats=1, crc32=0) is Refusal.OUT_OF_RANGE
    with pytest.raises(BoardRefused, match="outside"):
        rig.board.upload(swing(start, 5000), 1)


def test_limits_stay_as_they_are_while_the_motor_can_move(rig: SafetyRig) -> None:
    rig.prepare()
    rig.arm()
    for name in (name for name in BY_NAME if name.startswith(("limit.", "servo.", "filter."))):
        register = BY_NAME[name]
        assert rig.refusal(MessageType.WRITE, register=register.id, value=register.maximum) is Refusal.WRONG_STATE
    assert all(enable for enable, _ in list(rig.outputs().values())[-20:])
    rig.board.stop()


# What is no fault


def test_as_many_missed_ticks_as_are_allowed(rig: SafetyRig) -> None:
    """The drive keeps what it was told last; the board goes on and counts them."""
    rig.prepare()
    rig.play()
    shown = rig.inject("ticks_missed", ticks=20)
    rig.run(60)
    outputs = {tick: pair for tick, pair in rig.outputs().items() if tick >= shown - 1}
    assert {outputs[tick] for tick in range(shown, shown + 20)} == {outputs[shown - 1]}
    assert all(enable for enable, _ in outputs.values())
    rig.board.stop()


def test_a_current_sensor_that_stands_within_its_range(rig: SafetyRig) -> None:
    """Not seen by the board, as docs/safety.md says: what protects is that the command has a clamp of its own."""
    rig.prepare()
    rig.play(50)
    rig.inject("current_stuck", sample=2048)
    rig.run(600)
    assert rig.board.state is State.DONE
    assert max(abs(command) for _, command in rig.outputs().values()) <= BY_NAME["limit.current"].maximum


# What judges


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ({8: (1, 5), 9: (1, 5), 10: (1, 5), 11: (1, 5)}, "never switched off"),
        ({8: (1, 5), 9: (1, 5), 10: (0, 0), 11: (1, 0)}, "came on again"),
        ({8: (1, 5), 9: (1, 5), 10: (0, 7), 11: (0, 7)}, "never switched off"),
        ({8: (1, 5), 9: (0, 0), 10: (0, 0), 11: (0, 0)}, "was off already"),
    ],
)
def test_the_judge_of_outputs_can_fail(outputs: dict[int, tuple[int, int]], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        ticks_until_off(outputs, 10)
