"""The twin's arithmetic and servo against what they stand for; the board does the same bit for bit (test_tick.py)."""

import random

import numpy as np
import pytest

from firmware.tests.twin import Bounds, Inputs, Signal, Twin, defaults, hermite
from jointwire import State

SEED = 20


def test_playback_is_the_cubic_hermite() -> None:
    """Within a count and 1/64 count/tick of the exact cubic: results are rounded, v0 and v1 cut to 1/32 count/tick."""
    rng = random.Random(SEED)
    for _ in range(300):
        fastest = rng.choice((2**20, 25600, 300))
        start = (rng.randint(-(2**29), 2**29), rng.randint(-fastest, fastest))
        end = (start[0] + rng.randint(-fastest // 8, fastest // 8), rng.randint(-fastest, fastest))
        u = np.arange(32) / 32
        span, v0, v1 = end[0] - start[0], start[1] / 256 * 32, end[1] / 256 * 32
        moved = span * (3 * u**2 - 2 * u**3) + v0 * (u - 2 * u**2 + u**3) + v1 * (u**3 - u**2)
        speed = (span * (6 * u - 6 * u**2) + v0 * (1 - 4 * u + 3 * u**2) + v1 * (3 * u**2 - 2 * u)) / 32
        board = np.array([hermite(start, end, i) for i in range(32)])
        assert np.abs(board[:, 0] - start[0] - moved).max() < 1
        clipped = np.clip(speed, -4096, 4096)
        assert np.abs(board[:, 1] / 256 - clipped).max() <= 1 / 64


def test_velocity_settles_on_a_constant_speed() -> None:
    twin = Twin(defaults())
    middle = [2048] * 16
    for k in range(400):
        twin.tick(Inputs(k, 37 * k % 2**16, 0, middle, middle))
    assert twin.velocity_q12 / 4096 == pytest.approx(37, abs=1 / 256)  # one unit of the velocity the servo uses


def test_rounding_in_the_filter_leaves_no_bias() -> None:
    """Two low-passes of a small constant come out as that constant on average: no rounding is lost."""
    low_pass = {"b0": 329 << 13, "b1": 658 << 13, "b2": 329 << 13, "a1": -25576 << 13, "a2": 10508 << 13}
    register = defaults() | {f"filter.{s}.{name}": value for s in (1, 2) for name, value in low_pass.items()}
    twin = Twin(register)
    total = 0
    for k in range(6000):
        twin.tick(Inputs(k, 0, 0, [2048] * 13 + [2049] * 3, [2048] * 16))
        total += twin.current.nodes[2][0] if k >= 1000 else 0
    gain = ((329 + 658 + 329) / (2**14 - 25576 + 10508)) ** 2
    assert total / 5000 == pytest.approx(3 * gain, abs=0.01)  # 5000 samples of an output that is off by < 1 at each


def test_the_triangle_over_two_blocks_weighs_each_sample_as_it_says() -> None:
    channel = Signal()
    rng = random.Random(SEED)
    samples = [rng.randrange(4096) for _ in range(16 * 50)]
    found = [channel.decimate(samples[16 * k : 16 * k + 16], 2) for k in range(50)]
    weights = np.array([*range(1, 17), *range(15, -1, -1)]) / 256
    exact = [16 * (np.array(samples[16 * k - 16 : 16 * k + 16]) @ weights - 2048) for k in range(1, 50)]
    assert np.abs(np.array(found[1:]) - exact).max() <= 1.0  # cut to whole counts, the rest carried on
    assert abs(sum(found[1:]) - sum(exact)) <= 1.0  # so that nothing is lost over many


def test_mt_counting_is_exact_on_a_steady_motor() -> None:
    """Counts over the time between two edges: no error but the clock's resolution, at any speed that has edges."""
    clocks, middle = 16_000, [2048] * 16
    for speed in (0.3, 1.7, 37.03, 900.5):  # counts a tick
        twin = Twin(defaults() | {"velocity.source": 1}, edge_clocks=clocks)
        for k in range(200):
            count = int(speed * k)
            twin.tick(Inputs(k, count % 2**16, 0, middle, middle, motor_edge=round(count / speed * clocks)))
        # The last two edges are at least a tick apart, so a clock's count is 1/16000 of it; Q8 cuts off the rest.
        assert twin.velocity_q12 / 4096 == pytest.approx(speed, abs=1 / 256 + speed * 2 / clocks)
        for _ in range(300):
            twin.tick(Inputs(0, count % 2**16, 0, middle, middle))
        assert twin.velocity_q12 == 0


def test_heat_settles_at_the_mean_square() -> None:
    """Of the current relative to the hard one; HEAT is 64 x 4096^2 where the two are the same."""
    twin = Twin(defaults(), bounds=Bounds(hard_counts=16384, heat_rate=2**12))
    for k in range(64 * 200):
        count = 8192 if k % 2 else 0
        twin.tick(Inputs(k, 0, 0, [2048 + count // 16] * 16, [2048] * 16))
    # 2^-15 of the largest is what a step leaves off.
    assert twin.heat / (64 * 4096**2) == pytest.approx(0.25 / 2, abs=2**-15)


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
