"""Friction laws: what they say by hand, their derivatives, their names."""

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.friction import FrictionData, SpeedSweep, friction_law, laws_for
from jointbench.tests.identification.friction.test_fit import LAWS, measured

AT = FrictionData(
    velocity=np.array([-2.0, -0.1, 0.1, 2.0]), torque=np.zeros(4), load=np.array([-3.0, 3.0, -3.0, 3.0]),
    temperature=np.array([300.0, 302.0, 298.0, 300.0]), acceleration=np.array([1.0, 0.0, 0.0, -1.0]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("coulomb_viscous", [6, 9], [-24, -6.9, 6.9, 24]),
        ("asymmetric", [6, 9, 8, 5], [-18, -8.5, 6.9, 24]),
        ("coulomb_viscous+offset", [6, 9, 1], [-23, -5.9, 7.9, 25]),
        ("coulomb_viscous+load", [6, 9, 0.5], [-25.5, -8.4, 8.4, 25.5]),
        # The mean temperature is 300 K: there the term vanishes.
        ("coulomb_viscous+temperature", [6, 9, -1, 2], [-24, -5.3, 8.5, 24]),
        ("coulomb_viscous+inertia", [6, 9, 2], [-22, -6.9, 6.9, 22]),
        # At the Stribeck speed, exp(-1) is left of the rise; twenty times above it, nothing.
        ("stribeck", [6, 4, 9, 0.1], [-24, -6.9 - 4 / np.e, 6.9 + 4 / np.e, 24]),
        ("makkar", [6, 12, 9, 80, 8, 20], 6 * (np.tanh(80 * AT.velocity) - np.tanh(8 * AT.velocity))
         + 12 * np.tanh(20 * AT.velocity) + 9 * AT.velocity),
    ],
)  # fmt: skip
def test_a_law_by_hand(name, parameters, expected):
    torque = friction_law(name, AT).torque(AT, np.array(parameters, dtype=float))
    assert torque == pytest.approx(np.array(expected), rel=1e-14)


@pytest.mark.parametrize("name", LAWS)
def test_derivatives_are_those_of_differences(name):
    data = measured(name, LAWS[name])
    law, parameters = friction_law(name, data), np.array(LAWS[name])

    jacobian = law.jacobian(data, parameters)

    for k, value in enumerate(parameters):
        step = np.zeros(len(parameters))
        step[k] = 1e-6 * abs(value)
        central = (law.torque(data, parameters + step) - law.torque(data, parameters - step)) / (2.0 * step[k])
        # Differences lose half the digits to rounding and truncation.
        assert jacobian[:, k] == pytest.approx(central, rel=1e-6, abs=1e-6 * np.abs(central).max())


@pytest.mark.parametrize("name", LAWS)
def test_many_parameters_at_once_are_each_alone(name):
    data = measured(name, LAWS[name])
    law, one = friction_law(name, data), np.array(LAWS[name])
    several = one * np.array([[1.0], [0.5], [1.5]])

    together = law.torque(data, several)

    assert together.shape == (3, data.n_rows)
    for row, parameters in zip(together, several, strict=True):
        assert row == pytest.approx(law.torque(data, parameters), rel=1e-13)


@pytest.mark.parametrize("name", ["coulomb_viscous", "stribeck", "makkar", "stribeck+load"])
def test_symmetric_laws_are_odd_and_take_power(name):
    data = measured(name, LAWS[name])
    half = data.n_rows // 2
    turned = FrictionData(-data.velocity, data.torque, data.load, data.temperature)
    law, parameters = friction_law(name, data), np.array(LAWS[name])

    assert law.torque(turned, parameters) == pytest.approx(-law.torque(data, parameters), rel=1e-13)
    assert (law.torque(data, parameters)[:half] > 0.0).all()


def test_coefficients_are_what_the_torque_is_linear_in():
    data = measured("makkar+load", LAWS["makkar+load"])
    law, parameters = friction_law("makkar+load", data), np.array(LAWS["makkar+load"])
    coefficients, shapes = law.split(parameters)

    assert law.names == ("gamma1", "gamma4", "gamma6", "load_share", "gamma2", "gamma3", "gamma5")
    assert law.torque(data, np.concatenate([3.0 * coefficients, shapes])) == pytest.approx(
        3.0 * law.torque(data, parameters), rel=1e-13
    )


def test_laws_for_ask_only_what_data_can_tell():
    data = measured("stribeck", LAWS["stribeck"])
    plain = FrictionData(data.velocity, data.torque)
    assert [law.name for law in laws_for(plain)] == [
        "coulomb_viscous", "coulomb_viscous+offset", "asymmetric", "stribeck", "stribeck+offset", "makkar",
        "makkar+offset",
    ]  # fmt: skip
    assert [law.name for law in laws_for(plain.part(plain.velocity > 0.0))] == ["coulomb_viscous", "stribeck", "makkar"]
    steady = FrictionData(data.velocity, data.torque, load=np.full(data.n_rows, 3.0))
    assert not any("load" in law.name for law in laws_for(steady))
    assert all(law.name.endswith("+inertia") for law in laws_for(data))
    assert any("+load+temperature" in law.name for law in laws_for(data))


def test_errors_name_what_is_wrong():
    data = measured("stribeck", LAWS["stribeck"])
    plain = FrictionData(data.velocity, data.torque)
    for name in ("lugre", "stribeck+wind", "stribeck+load+load", ""):
        with pytest.raises(FitError, match="is not known; a law is one of coulomb_viscous, asymmetric, stribeck"):
            friction_law(name, data)
    with pytest.raises(FitError, match=r"has 4 parameters \(coulomb, static_rise, viscous, stribeck_speed\), not 3"):
        friction_law("stribeck", data).torque(data, np.ones(3))
    for extra, needed in (("load", "the load"), ("temperature", "that"), ("inertia", "the acceleration")):
        law = friction_law(f"stribeck+{extra}", plain)
        with pytest.raises(FitError, match=f"with {extra} needs {needed} of each row"):
            law.torque(plain, np.ones(len(law.names)))
    with pytest.raises(FitError, match=r"friction load has shape \(3,\), must be \(4,\)"):
        FrictionData(np.ones(4), np.ones(4), load=np.ones(3))
    with pytest.raises(FitError, match="friction torque of row 2 is nan"):
        FrictionData(np.ones(4), np.array([1.0, 1.0, np.nan, 1.0]))


def test_a_speed_sweep_is_that_of_the_paper():
    sweep = SpeedSweep()
    assert len(sweep.speeds) > 60
    assert np.degrees(sweep.speeds[[0, 1, -1]]) == pytest.approx([1.0, 1.5, 31.0])


def test_a_speed_sweep_moves_as_it_says():
    sweep = SpeedSweep(lower=-0.5, upper=1.0, first=0.2, step=0.3, n_speeds=3, pause=0.5, acceleration=2.0)
    h = 1e-3
    time = h * np.arange(round(sweep.duration / h) + 1, dtype=np.float64)
    q = sweep.position(time)
    speed = np.gradient(q, h)

    assert q[[0, -1]] == pytest.approx([-0.5, -0.5])
    assert (q.min(), q.max()) == pytest.approx((-0.5, 1.0), abs=1e-12)
    assert np.abs(np.diff(q, 2)).max() <= 2.0 * h**2 * (1.0 + 1e-6)
    for each in (0.2, 0.5, 0.8):
        steady = (1.5 - each**2 / 2.0) / each
        for direction in (1.0, -1.0):
            # Each end of a ramp may take one more sample or one less.
            assert h * np.sum(np.isclose(speed, direction * each, rtol=1e-6)) == pytest.approx(steady, abs=4 * h)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"first": 0.0}, "is impossible"), ({"n_speeds": 0}, "is impossible"), ({"upper": -1.5}, "no room")],
)
def test_a_speed_sweep_that_cannot_be(wrong, words):
    with pytest.raises(FitError, match=words):
        SpeedSweep(**wrong)
