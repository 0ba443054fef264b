"""Plants of another make: what they do to a joint, against closed forms."""

import dataclasses

import numpy as np
import pytest

from hil_tests.pendulum import (
    COBOT6_PLANT,
    RATIO,
    TORQUE_CONSTANT,
    drive_open,
    pendulum_robot,
    pendulum_truth,
)
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.friction import RANGES, Unmodelled
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file
from hil_tests.virtual_bench.plant_variants import in_variant
from jointbench.robot import load_robot

COBOT6 = load_robot("cobot6")
TRUTH = read_plant_file(COBOT6_PLANT, COBOT6)


def speed_after(truth: PlantFile, current: float, ticks: int = 20) -> float:
    """Of a joint without gravity that is driven by a constant current [rad/s]."""
    plant = Plant(pendulum_robot(gravity=False), truth, "harmonic")
    motions = drive_open(plant, np.full((ticks, 1), current))
    return float((motions[-1].link_position - motions[-2].link_position)[0] / 1e-3)


def test_of_a_lost_torque_the_rest_arrives() -> None:
    """Without friction speed goes by the torque that arrives."""
    lossy = pendulum_truth(joint={"lost_torque": 0.8})
    assert speed_after(lossy, 5.0) == pytest.approx(speed_after(pendulum_truth(), 1.0), rel=0.02)
    assert RATIO * TORQUE_CONSTANT == 10.0


def test_the_published_plant_has_the_papers_numbers_and_light_links() -> None:
    published = in_variant(TRUTH, COBOT6, "published")
    for part, of_file, drive in zip(published.joints, TRUTH.joints, COBOT6.drives, strict=True):
        assert of_file.published is not None
        a1, a2, a3, a4 = of_file.published
        assert (part.lost_torque, part.coulomb, part.viscous, part.stribeck, part.load_friction) == (a1, a2, a3, 0, 0)
        assert part.rotor_inertia * drive.ratio**2 == pytest.approx(a4)
        assert part.link.physical_fault is None
    Plant(COBOT6, published, "harmonic")  # its friction is not too steep for the step


def test_a_plant_without_published_parameters_says_so() -> None:
    joints = tuple(dataclasses.replace(joint, published=None) for joint in TRUTH.joints)
    with pytest.raises(BenchFileError, match="no published parameters"):
        in_variant(dataclasses.replace(TRUTH, joints=joints), COBOT6, "published")


def test_a_frictionless_plant_loses_nothing() -> None:
    bare = in_variant(TRUTH, COBOT6, "frictionless")
    plant = Plant(COBOT6, bare, "harmonic")
    assert not plant._friction.torque(np.full(6, 0.3), np.full(6, 1e-3)).any()  # pyright: ignore[reportPrivateUsage]


def effects(seed: int = 1) -> Unmodelled:
    """Of two joints with Coulomb friction of 1 and 4 N·m."""
    return Unmodelled(np.array([1.0, 4.0]), np.array([100.0, 50.0]), seed)


def test_effects_are_drawn_within_their_ranges_and_otherwise_for_another_seed() -> None:
    for name, (low, high) in RANGES.items():
        drawn = np.array([effects(seed).drawn[name] for seed in range(20)])
        assert ((drawn >= low) & (drawn <= high)).all()
        assert len(np.unique(drawn)) == drawn.size
    assert np.array_equal(effects().drawn["swell"], effects().drawn["swell"])


def test_friction_swells_once_and_twice_a_turn_and_falls_as_it_warms() -> None:
    some = effects()
    turn = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    rub = np.array([some.rub(np.ones(2), np.full(2, q), 0.0) for q in turn])
    swell = some.drawn["swell"]
    spectrum = 2.0 * np.abs(np.fft.rfft(rub, axis=0)) / len(turn)
    np.testing.assert_allclose(spectrum[1], swell, rtol=1e-9)
    np.testing.assert_allclose(spectrum[2], swell / 2.0, rtol=1e-9)
    assert rub.max() <= some.largest_swell
    warm = some.rub(np.ones(2), np.zeros(2), 1e6) / some.rub(np.ones(2), np.zeros(2), 0.0)
    np.testing.assert_allclose(warm, 1.0 - some.drawn["drop"], rtol=1e-9)


def test_gears_ripple_twice_and_four_times_a_turn_of_the_motor_and_motors_thirty_times() -> None:
    """The first joint's motor turns 100 times as far; its turn is 2π / 100 of the joint."""
    some = effects()
    turn = np.linspace(0.0, 2.0 * np.pi / 100.0, 400, endpoint=False)
    driven = np.array([some.drive(np.full(2, 10.0), np.full(2, q)) for q in turn])[:, 0]
    spectrum = 2.0 * np.abs(np.fft.rfft(driven)) / len(turn)
    np.testing.assert_allclose(spectrum[2], some.drawn["gear_ripple"][0], rtol=1e-9)
    np.testing.assert_allclose(spectrum[4], some.drawn["gear_ripple"][0] / 2.0, rtol=1e-9)
    np.testing.assert_allclose(spectrum[30], 10.0 * some.drawn["motor_ripple"][0], rtol=1e-9)


def test_a_plant_with_effects_moves_otherwise() -> None:
    rubbing = {"coulomb": 2.0, "stribeck_velocity": 0.05}
    plain = pendulum_truth(joint=rubbing)
    rippled = dataclasses.replace(plain, unmodelled=3)
    assert speed_after(plain, 5.0) != speed_after(rippled, 5.0)
    assert speed_after(rippled, 5.0) != speed_after(dataclasses.replace(plain, unmodelled=4), 5.0)
