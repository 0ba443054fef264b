"""What makes a board trip on any bench, by its limits alone; and what a bench that breaks hardware can show."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from hil_tests.safety_rig import ticks_until_off
from hil_tests.suite.driven_joint import DrivenJoint
from jointbench.bench import Bench
from jointbench.testing import deterministic, functional, needs
from jointwire import MessageType, Refusal, State, Trip

# By the limits alone


@functional
@needs("motor")
def test_a_silent_host_is_noticed(joint: DrivenJoint, measured: Callable[..., None]) -> None:
    joint.arm()
    heard = joint.board.ping().tick
    joint.be_silent(round(1.2 * joint.patience))
    fault = joint.fault(within=100)
    assert Trip(fault.trip) is Trip.LINK_LOSS
    measured("safety.link_loss", (fault.tick - heard) & 0xFFFFFFFF)
    joint.assert_latched()


@functional
@needs("motor")
def test_a_joint_that_does_not_follow_is_given_up(joint: DrivenJoint) -> None:
    joint.write(limit__following=1)
    joint.arm(joint.swing(0.1))
    if joint.board.state is State.ARMED:  # it may be given up for what holding leaves
        joint.board.start()
    fault = joint.fault(within=300)
    assert (Trip(fault.trip), fault.limit) == (Trip.FOLLOWING, 1)
    assert abs(fault.value) > 1
    joint.assert_latched()


@functional
@needs("motor")
def test_a_trajectory_out_of_the_window_is_not_loaded(joint: DrivenJoint) -> None:
    knots = joint.swing()
    window = int(knots[:, 0].min()) - 500, int(knots[:, 0].max()) - 1
    joint.write(limit__position_min=window[0], limit__position_max=window[1])
    data = np.ascontiguousarray(knots, dtype="<i4")
    part = [{"position": int(position), "velocity": int(velocity)} for position, velocity in data]
    assert joint.refusal(MessageType.KNOTS, offset=0, count=len(part), knots=part) is Refusal.OK
    load = {"count": len(part), "repeats": 1, "crc32": zlib.crc32(data.tobytes())}
    assert joint.refusal(MessageType.LOAD, **load) is Refusal.OUTSIDE_LIMITS


@functional
@needs("motor")
def test_a_reference_that_leaves_the_window_between_knots_trips(joint: DrivenJoint) -> None:
    """Every knot is inside, which LOAD checks; the curve between two of them is not, which the tick does."""
    start = joint.position()
    rates = (0, 2560, -2560, 0)
    knots = np.array([(start + way, rate) for way, rate in zip((0, 90, 90, 0), rates, strict=True)], dtype=np.int32)
    joint.write(limit__position_min=start - 500, limit__position_max=start + 100)
    joint.arm(knots)
    joint.board.start()
    fault = joint.fault(within=300)
    assert (Trip(fault.trip), fault.limit) == (Trip.COMMAND, start + 100)
    assert start + 100 < fault.value <= start + 110  # the first tick beyond, by less than the curve moves in one
    joint.assert_latched()


# By hardware that breaks


@dataclass(frozen=True)
class Hazard:
    """A fault of the hardware around a board, and what must come of it.

    Attributes:
        fault, value: as the bench injects it.
        trip: that latches.
        requirement: that limits the ticks from the first that shows the fault to the first with all outputs zero.
        limits: raw registers, where not the default.
    """

    fault: str
    value: dict[str, float]
    trip: Trip
    requirement: str
    limits: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def within(self) -> int:
        """Ticks in which it has come to that."""
        return 700 if self.trip is Trip.LINK_LOSS else 100


QUICK = ("encoder jumps", "line falls silent")  # hil_tests/test_safety.py shows them all, and quickly
HAZARDS = {
    "encoder jumps": Hazard(
        "encoder_jump", {"counts": 900}, Trip.ENCODER_JUMP, "safety.encoder_jump", {"limit__jump": 200}
    ),
    "current beyond the converter": Hazard("current_stuck", {"sample": 4095}, Trip.OVER_CURRENT, "safety.over_current"),
    "supply sags": Hazard(
        "supply", {"voltage_mV": 20_000}, Trip.SUPPLY, "safety.supply", {"limit__supply_min": 40_000}
    ),
    "motor too hot": Hazard("temperature", {"temperature_degC": 101}, Trip.TEMPERATURE, "safety.temperature"),
    "ticks are missed": Hazard("ticks_missed", {"ticks": 21}, Trip.OVERRUN, "safety.overrun"),
    "line falls silent": Hazard("line_silent", {}, Trip.LINK_LOSS, "safety.link_loss"),
}


@deterministic
@needs("motor", "faults", "outputs", "supply", "temperature")
@pytest.mark.parametrize(
    "name", [*QUICK, *[pytest.param(name, marks=pytest.mark.slow) for name in HAZARDS if name not in QUICK]]
)
def test_a_playing_motor_is_off_in_time(bench: Bench, name: str, measured: Callable[..., None]) -> None:
    """On the last board of the bench; the tests of the limits take the first."""
    hazard, joint = HAZARDS[name], DrivenJoint(bench, bench.boards[-1])
    joint.write(**hazard.limits)
    joint.outputs()  # from now on they are noted
    joint.play(130, repeats=2)
    shown = joint.inject(hazard.fault, **hazard.value)
    joint.run(hazard.within)
    measured(hazard.requirement, ticks_until_off(joint.outputs(), shown))
    fault = joint.fault(within=1200)  # behind a line that was silent it is told again
    assert Trip(fault.trip) is hazard.trip
    joint.heal()
    joint.assert_latched()
