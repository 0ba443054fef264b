"""Contact: what a foot's sensors say of how a robot stands on it."""

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FootOffGround, RobotFell, StuckFootSensor
from jointbench.identification.zero_moment_point.contact import judge_contact
from jointbench.tests.identification.zero_moment_point.simulated_stance import PERIOD_S, biped

FOOT = biped().foot("r_foot")
WEIGHT = 250.0
TIME = PERIOD_S * np.arange(500, dtype=np.float64)


def standing(x: float = 0.0, y: float = 0.0, noise: float = 0.5) -> Array:
    """Corner forces with the pressure at x, y from the sole's middle [m]."""
    shares = 0.25 + (np.array([x, y]) * FOOT.points / (FOOT.points**2).sum(axis=0)).sum(axis=1)
    return WEIGHT * shares + noise * np.random.default_rng(0).standard_normal((len(TIME), 4))


def test_a_standing_foot_carries_all_of_it_well_inside() -> None:
    contact = judge_contact(FOOT, TIME, standing(0.05, 0.0), WEIGHT)
    assert contact.faults == ()
    assert contact.good.all()
    assert contact.pressed.all()
    np.testing.assert_allclose(contact.share, 1.0, atol=0.02)  # 0.4 % of noise
    np.testing.assert_allclose(contact.to_edge, 0.06, atol=2e-3)  # 0.5 N on arms of 0.11 m: 0.4 mm


def test_a_corner_may_hang_free() -> None:
    """Three corners carry a flat foot as well as four: it is said, and no fault."""
    forces = standing(noise=0.1)
    forces[100:200] = WEIGHT * np.array([0.3, 0.4, 0.3, 0.0]) + 0.1 * np.sin(np.arange(100))[:, None]
    contact = judge_contact(FOOT, TIME, forces, WEIGHT)
    assert contact.faults == ()
    assert contact.good.all()
    assert "corners unloaded: rear left 20.0%" in str(contact)


@pytest.mark.parametrize("gravity_free", [0.0, 0.2])
def test_nothing_under_the_foot(gravity_free: float) -> None:
    forces = gravity_free * np.random.default_rng(1).standard_normal((len(TIME), 4))
    contact = judge_contact(FOOT, TIME, forces, WEIGHT)
    assert not contact.good.any()
    assert [fault.kind for fault in contact.faults] == ["off the ground"]
    with pytest.raises(FootOffGround, match="stand the robot on this foot alone"):
        contact.check()


def test_faults_tell_when_and_how_much() -> None:
    forces = standing()
    forces[250:, 1] = 33.0
    (fault,) = judge_contact(FOOT, TIME, forces, WEIGHT).faults
    assert (fault.kind, fault.value) == ("stuck", 33.0)
    assert fault.time == pytest.approx(2.0, abs=PERIOD_S)
    assert isinstance(fault.error(), StuckFootSensor)


def test_an_exact_sensor_at_rest_is_not_stuck() -> None:
    """Without noise nothing changes while nothing moves; only joints that move would tell."""
    still = standing(noise=0.0)
    assert judge_contact(FOOT, TIME, still, WEIGHT, position=np.zeros((len(TIME), 2))).faults == ()
    moving = np.sin(TIME)[:, None]
    faults = judge_contact(FOOT, TIME, still, WEIGHT, position=moving).faults
    assert [fault.kind for fault in faults] == ["stuck"] * 4


def test_a_fall_is_told_from_a_lift() -> None:
    lifted = standing()
    lifted[300:] = 0.3 * np.random.default_rng(2).standard_normal((200, 4))
    assert [fault.kind for fault in judge_contact(FOOT, TIME, lifted, WEIGHT).faults] == ["off the ground"]
    tipped = lifted.copy()
    tipped[292:300] = standing(0.108, 0.0)[292:300]
    (fault,) = judge_contact(FOOT, TIME, tipped, WEIGHT).faults
    assert isinstance(fault.error(), RobotFell)
    assert fault.time == pytest.approx(292 * PERIOD_S, abs=0.05)
    assert fault.value < 0.006  # a twentieth of the sole's width


def test_the_first_of_several_comes_first() -> None:
    forces = standing()
    forces[200:260] = 0.3 * np.random.default_rng(3).standard_normal((60, 4))
    other = np.zeros((len(TIME), 4))
    other[50:100] = 10.0
    contact = judge_contact(FOOT, TIME, forces, WEIGHT, others={"l_foot": other})
    assert [(fault.kind, round(fault.time, 2)) for fault in contact.faults] == [
        ("off the ground", 0.4),
        ("off the ground", 1.6),
    ]
    with pytest.raises(FootOffGround, match=r"from 0\.40 s on l_foot carries up to 40\.0 N, more than 5%"):
        contact.check()
