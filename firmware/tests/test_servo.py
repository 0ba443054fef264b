"""What the servo does, on its twin: the same bit for bit as the board (test_tick.py)."""

import pytest

from firmware.tests.twin import Bounds, Inputs, Twin, defaults
from jointwire import State

MIDDLE = [2048] * 16


def armed(**registers: int) -> Twin:
    """A board that holds position 0; register names with "_" for their first "."."""
    named = {name.replace("_", ".", 1): value for name, value in registers.items()}
    return Twin(defaults() | named, state=State.ARMED, bounds=Bounds(clamp=1000, timeout=10**6))


def at(twin: Twin, position: int, ticks: int = 1) -> int:
    """Command after the joint stood there for some ticks [mA]."""
    for _ in range(ticks):
        twin.tick(Inputs(0, position % 2**16, 0, MIDDLE, MIDDLE))
    assert twin.state in (State.ARMED, State.RUNNING)
    return twin.outputs[1]


def test_the_integral_takes_a_standing_load_and_leaves_no_error() -> None:
    load = 300  # mA, as of gravity
    found = {}
    for ki in (0, 600):
        twin, position, velocity = armed(servo_kp=512, servo_kd=640, servo_ki=ki), 0.0, 0.0
        for _ in range(5000):
            velocity = 0.98 * (velocity + 0.01 * (twin.outputs[1] - load))
            position += velocity
            at(twin, round(position))
        found[ki] = round(position)
    assert found == {0: -150, 600: 0}  # 300 mA at 2 mA a count


def test_the_integral_does_not_wind_up_against_the_clamp() -> None:
    """Held off for seconds, with the output at its clamp: it is back as soon as the error is."""
    twin = armed(servo_kp=512, servo_ki=600)
    assert at(twin, -400, 5000) == 1000
    assert twin.integral / 2**14 == pytest.approx(1000 - 2 * 400, abs=600 * 400 / 2**16)  # within a tick's step
    assert at(twin, 0) < 210
    assert at(twin, 400, 5000) == -1000
    assert at(twin, 0) > -210


def test_friction_is_fed_forward_by_the_sign_of_the_planned_velocity() -> None:
    """Linear within the band, all of it beyond; 30 knots of a slow swing pass both."""
    twin = armed(servo_friction=700, servo_friction_band=256)
    twin.knots = [(0, 0), (20, 250), (120, 1000), (150, -500), (150, 0), (100, -600), (100, 0)]
    twin.state = State.RUNNING
    seen = set[int]()
    for _ in range(6 * 32):
        command = at(twin, twin.position)
        planned = twin.reference_velocity
        exact = 700 * max(-1.0, min(1.0, planned / 256))
        assert abs(command - exact) < 2  # a slope of Q12 times up to 256, then cut to whole mA
        seen.add(command)
    assert {-700, 700} <= seen
    assert len(seen) > 50


@pytest.mark.parametrize("velocity", [8, 400, 25_600])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_friction_sweep_is_a_trajectory(velocity: int, sign: int) -> None:
    """Ramp, steady velocity, ramp, and the same way back: knots hold the steady part to a unit of 1/256 count/tick."""
    speeds = [0, 1, 1, 1, 1, 0, -1, -1, -1, -1, 0]  # of the velocity, at each knot
    place, knots = 0, list[tuple[int, int]]()
    for before, after in zip([0, *speeds], speeds, strict=False):
        place += sign * (before + after) * velocity * 32 // 2 // 256 if knots else 0
        knots.append((place, sign * after * velocity))
    twin = armed(limit_following=65535)
    twin.knots, twin.state = knots, State.RUNNING
    planned = list[int]()
    for _ in range(32 * (len(knots) - 1)):
        at(twin, twin.position)
        planned.append(twin.reference_velocity)
    for steady, part in ((sign * velocity, planned[32 : 4 * 32]), (-sign * velocity, planned[6 * 32 : 9 * 32])):
        assert {steady} <= set(part) <= {steady, steady - 1}  # cut off, not rounded
