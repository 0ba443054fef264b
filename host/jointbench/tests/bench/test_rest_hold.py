"""The host's hold of motors at rest: it keeps what creeps, and lets a hand go."""

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.floating import UPDATE_US, RestHold

RANGE = 0.5  # [rad of the motor]
HOLD = 0.06  # [A]
STEP = 1e-6 * UPDATE_US


def creep(hold: RestHold, bias: float, seconds: float, mobility: float = 0.5) -> Array:
    """Positions of a motor whose friction is viscous at low speed [rad]: velocity = mobility · current."""
    position, places = np.zeros(1), list[float]()
    for k in range(round(seconds / STEP)):
        position = position + STEP * mobility / HOLD * (bias + hold(STEP * k, position))
        places.append(float(position[0]))
    return np.array(places)


def weak(hold: float = HOLD) -> RestHold:
    return RestHold(np.array([hold]), np.array([RANGE]))


def test_a_motor_that_creeps_under_what_the_model_lacks_stays_where_it_began() -> None:
    places = creep(weak(), bias=0.05, seconds=60.0)
    assert abs(places[-1]) <= RANGE
    # At rest the hold gives what is lacking: 0.05 of 0.06 A at 5/6 of its range.
    np.testing.assert_allclose(places[-500:], 0.05 / HOLD * RANGE, rtol=1e-3)
    assert creep(weak(0.0), bias=0.05, seconds=60.0)[-1] > 10.0 * RANGE


def test_more_than_the_hold_moves_it_and_it_is_then_held_elsewhere() -> None:
    hold = weak()
    pushed = creep(hold, bias=2.0 * HOLD, seconds=3.0)[-1]
    assert pushed > hold.RELEASE * RANGE
    assert hold.anchor is not None
    assert np.isnan(hold.anchor).all()
    currents = [hold(10.0 + STEP * k, np.array([pushed])) for k in range(30)]  # at rest there
    assert currents[-1] == 0.0
    assert hold.anchor == pushed
    assert hold(11.0, np.array([pushed + 0.1 * RANGE])) < 0.0


def test_a_hand_that_turns_round_does_not_feel_it() -> None:
    hold = weak()
    period, way = 8.0, 30.0  # 0.3 rad of a joint behind a gear of 100
    currents = np.array([
        hold(t, np.array([way * (1.0 - np.cos(2.0 * np.pi * t / period))]))[0] for t in np.arange(0.0, 20.0, STEP)
    ])  # fmt: skip
    begun = round(0.5 / STEP)
    assert np.abs(currents[:begun]).max() > 0.5 * HOLD  # the hand first pulls it out of the hold
    assert np.abs(currents[begun:]).max() == 0.0
