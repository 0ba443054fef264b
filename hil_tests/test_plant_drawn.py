"""The plant of a seed, and the errors of its feet that no calibration knows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_tests.test_plant_feet import ROBOT, TRUTH
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.plant_file import PlantFile, Scatter
from hil_tests.virtual_bench.plant_variants import plant_of_seed
from hil_tests.virtual_bench.sensors import FootSensors
from jointbench.arrays import Array
from jointbench.identification.zero_moment_point import ReducedParameters

BENCHES = Path(__file__).resolve().parent / "benches"
FILE = replace(TRUTH, scatter=Scatter(mass=0.05, inertia=0.1, center=5e-3, rotor=0.05, friction=0.1, cable_pull=0.5))


def phi(plant: PlantFile) -> Array:
    """The eight parameters; refuses links of a kind that differ, or lie off their axis."""
    assert plant.base_link is not None
    blocks = [plant.base_link.standard_parameters, *(joint.link.standard_parameters for joint in plant.joints)]
    return ReducedParameters(ROBOT).of_parameters(np.concatenate([block for block in blocks if block is not None]))


def test_a_seed_draws_a_robot_whose_links_of_a_kind_are_alike() -> None:
    drawn = np.array([phi(plant_of_seed(FILE, ROBOT, seed)) for seed in range(40)])
    off = (drawn - phi(FILE)) / np.concatenate([np.full(4, 5e-3), 0.05 * phi(FILE)[4:]])
    assert (off.std(axis=0) > 0.7).all()
    assert (off.std(axis=0) < 1.3).all()
    assert (np.abs(off.mean(axis=0)) < 0.5).all()
    assert np.array_equal(phi(plant_of_seed(FILE, ROBOT, 7)), drawn[7])


def test_friction_motors_and_cables_are_drawn_too_and_small_links_are_not() -> None:
    one, other = (plant_of_seed(FILE, ROBOT, seed) for seed in (1, 2))
    for name in ("coulomb", "viscous", "stribeck", "rotor_inertia"):
        values = [[getattr(joint, name) for joint in plant.joints] for plant in (FILE, one, other)]
        assert len({tuple(row) for row in values}) == 3
    assert one.joints[0].viscous / FILE.joints[0].viscous == pytest.approx(
        one.joints[0].coulomb / FILE.joints[0].coulomb
    )
    assert one.feet[0].cable_pull != other.feet[0].cable_pull
    assert one.joints[0].link == FILE.joints[0].link  # of no kind


def test_a_file_that_says_nothing_describes_one_robot() -> None:
    assert plant_of_seed(replace(FILE, scatter=Scatter()), ROBOT, 3) is not None
    assert plant_of_seed(replace(FILE, scatter=Scatter()), ROBOT, 3).joints == FILE.joints


def cells(**settings: float) -> FootSensors:
    """Of one foot, without noise and gain errors."""
    assert TRUTH.sensors.force is not None
    exact = replace(TRUTH.sensors.force, noise=1e-9, gain_spread=0.0, offset_spread=0.0, step=4e-3, **settings)
    return FootSensors(exact, 1, np.random.default_rng(0), np.random.default_rng(0))


def test_a_cell_reads_less_on_the_way_up_than_on_the_way_down() -> None:
    sensors = cells(hysteresis_width=0.4, hysteresis_reach=30.0, drift=0.0, warming=1.0, range=1000.0)
    way = np.concatenate([np.linspace(0.0, 100.0, 100), np.linspace(100.0, 0.0, 100)[1:]])
    first, *_ = (sensors.read(np.full((1, 4), force)) for force in way)  # once round, to forget how it began
    read = np.array([4e-3 * sensors.read(np.full((1, 4), force))[0] for force in way])
    width = read[::-1][:100] - read[:100]
    assert first.shape == (1, 4)
    assert (width[50] > 0.0).all()
    assert (width.max(axis=0) <= 0.6 + 8e-3).all()
    assert width[50].std() > 0.01  # each cell has its own


def test_a_cells_zero_goes_with_the_warmth() -> None:
    sensors = cells(hysteresis_width=0.0, drift=0.2, warming=0.5, range=1000.0)
    read = np.array([4e-3 * sensors.read(np.full((1, 4), 10.0))[0] for _ in range(3000)])
    moved = read - read[0]
    assert (np.abs(moved[-1]) > 0.01).any()
    np.testing.assert_allclose(moved[500] / moved[-1], -np.expm1(-1.0), rtol=0.1)


@pytest.mark.parametrize("name", ["cobot6", "gorobot2", "modular7", "nursing_arm", "nursing_dual", "rehab_arm"])
def test_every_demo_has_a_plant_of_each_seed(name: str) -> None:
    bench = read_bench_file(BENCHES / f"{name}.toml")
    plants = [plant_of_seed(bench.plant, bench.robot, seed) for seed in (0, 1, 1)]
    assert plants[1] == plants[2]
    if name in ("gorobot2", "nursing_arm", "nursing_dual"):
        assert plants[0] != plants[1]
    for plant in plants:
        assert all(not joint.link.physical_fault for joint in plant.joints)
