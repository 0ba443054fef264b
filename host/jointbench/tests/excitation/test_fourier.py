import json
import re
from typing import Any

import numpy as np
import pytest

from jointbench.errors import ExcitationError
from jointbench.excitation import FourierExcitation, random_excitation
from jointbench.robot import Robot

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("harmonics", "period"), [(2, 5.0), (3, 10.0), (5, 20.0), (8, 7.3)])
def test_begins_and_ends_at_rest_at_home(cobot: Robot, seed: int, harmonics: int, period: float) -> None:
    excitation = random_excitation(cobot, harmonics, period, seed)

    q, dq, ddq = excitation.evaluate([0.0, period, 3 * period])

    # Sums of a few terms of size 1 to 10, and angles up to 50 rad: rounding stays below 1e-13.
    np.testing.assert_allclose(q, np.tile(cobot.home, (3, 1)), atol=1e-12)
    np.testing.assert_allclose(dq, 0.0, atol=1e-12)
    np.testing.assert_allclose(ddq, 0.0, atol=1e-12)
    np.testing.assert_allclose(excitation.home, cobot.home, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_is_the_papers_series(cobot: Robot, seed: int) -> None:
    excitation = random_excitation(cobot, seed=seed)
    time = np.array([0.7, 3.1])
    omega = 2 * np.pi / excitation.period
    expected = np.zeros((2, 6))
    for joint in range(6):
        expected[:, joint] = excitation.center[joint]
        for order in range(1, 6):
            a, b = excitation.sine[joint, order - 1], excitation.cosine[joint, order - 1]
            angle = omega * order * time
            expected[:, joint] += a / (omega * order) * np.sin(angle) - b / (omega * order) * np.cos(angle)

    np.testing.assert_allclose(excitation.evaluate(time)[0], expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_velocity_and_acceleration_are_derivatives(cobot: Robot, seed: int) -> None:
    excitation = random_excitation(cobot, seed=seed)
    time = np.linspace(0.0, excitation.period, 50)
    h = 1e-4  # difference error h² |q'''| / 6 is about 1e-8

    before, after = excitation.evaluate(time - h), excitation.evaluate(time + h)
    _, dq, ddq = excitation.evaluate(time)

    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), dq, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), ddq, atol=1e-7)


def test_survives_json(cobot: Robot) -> None:
    excitation = random_excitation(cobot, seed=3)

    read = FourierExcitation.from_dict(json.loads(json.dumps(excitation.to_dict())))

    time = np.linspace(0.0, 20.0, 30)
    np.testing.assert_array_equal(read.evaluate(time), excitation.evaluate(time))
    assert read.to_dict() == excitation.to_dict()
    assert read.margins == excitation.margins


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("family", "chirp", "family is 'chirp'; only 'fourier' is known"),
        ("period_s", "long", "the stored excitation is damaged: could not convert string to float"),
        ("sine", [[1.0, 2.0]], "center (6,), sine (1, 2) and cosine (6, 5) should be"),
        ("margins", [{"joint": "j1", "jerk": 0.1}], "the stored excitation is damaged"),
        ("center", None, "the stored excitation has no 'center'; it was not written by to_dict"),
    ],
)
def test_a_damaged_excitation_is_refused(cobot: Robot, key: str, value: Any, message: str) -> None:
    values = random_excitation(cobot).to_dict()
    if value is None:
        del values[key]
    else:
        values[key] = value

    with pytest.raises(ExcitationError, match=re.escape(message)):
        FourierExcitation.from_dict(values)


def test_times_must_be_one_row(cobot: Robot) -> None:
    with pytest.raises(ExcitationError, match=r"time has shape \(2, 2\); give the times as one row"):
        random_excitation(cobot).evaluate(np.zeros((2, 2)))
