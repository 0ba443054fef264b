"""A robot on its feet: the plant's forces and falls, its boards' sensors, and what a stance makes of them."""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.model import TICK, PlantKind, cable_of
from hil_tests.virtual_bench.plant import Motion
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.standing_plant import StandingPlant
from hil_tests.virtual_bench.truth import true_parameters
from jointbench.arrays import Array
from jointbench.excitation import plan_single_support
from jointbench.identification.zero_moment_point import stance_of_run
from jointbench.model import Robot, floating_standard_parameters, load_robot
from jointbench.model.floating_base import FreeBaseMotion, floating_inverse_dynamics
from jointbench.recording import Run
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    EVERY,
    PERIOD_S,
    Sway,
    readings,
    simulated_run,
)
from jointwire import BY_NAME

PLANT = Path(__file__).resolve().parent / "virtual_bench" / "plants" / "gorobot2.toml"
ROBOT = load_robot("gorobot2")
TRUTH = read_plant_file(PLANT, ROBOT)
assert TRUTH.base_link is not None
LINKS = (TRUTH.base_link, *(joint.link for joint in TRUTH.joints))
TOTAL_MASS = sum(link.mass or 0.0 for link in LINKS)
HOME = np.array(ROBOT.home)
OFF, ON = np.zeros(12, dtype=bool), np.ones(12, dtype=bool)
STIFFNESS, DAMPING = 10_000.0, 250.0  # of a servo [N·m/rad], [N·m·s/rad], as benches/gorobot2.toml has it
KINDS: tuple[PlantKind, ...] = ("harmonic", "ideal")


class Playing:
    """A plant with plain servos that follow a motion; forces [N] and link positions [rad] of each tick."""

    def __init__(self, plant: StandingPlant, q: Array) -> None:
        n_ticks = len(q)
        self.force, self.position = np.empty((n_ticks, 2, 4)), np.empty((n_ticks, 12))
        gear = np.array([drive.torque_constant * drive.ratio for drive in ROBOT.drives])
        planned, before = np.gradient(q, TICK, axis=0), plant.motor_position
        for k in range(n_ticks):
            position = plant.motor_position
            torque = STIFFNESS * (q[k] - position) + DAMPING * (planned[k] - (position - before) / TICK)
            before = position
            motion = plant.advance(ON, torque / gear)
            self.force[k], self.position[k] = motion.foot_force, motion.link_position


def bow(seconds: float, times: float = 1.0) -> Array:
    """Positions tick by tick of a bow: trunk forward, swing leg back and out, and home again; smooth at both ends."""
    turn = 2.0 * np.pi * times / seconds
    part = (1.0 - np.cos(turn * TICK * np.arange(round(seconds / TICK)))) / 2.0
    reach = np.zeros(12)
    reach[[3, 6, 7, 8, 9]] = (0.08, 0.1, 0.06, -0.25, 0.2)
    return HOME + part[:, None] * reach


def smooth(values: Array, ticks: int) -> Array:
    """Means over so many ticks, twice: what is left of a stiff floor's and gears' ringing is far below a newton."""
    kernel = np.convolve(np.ones(ticks), np.ones(ticks)) / ticks**2
    flat = values.reshape(len(values), -1)
    return np.stack([np.convolve(column, kernel, "valid") for column in flat.T], axis=1).reshape(-1, *values.shape[1:])


def true_pressure_point(q: Array) -> tuple[Array, Array]:
    """Where the ground's pressure acts [m, from the base frame's origin], and its force [N], by the dynamics room.

    The cables pull at the feet's frames: the standing foot's at the base's origin, the other one's a leg away.
    """
    dq = np.gradient(q, TICK, axis=0)
    ddq = np.gradient(dq, TICK, axis=0)
    nothing = np.zeros((len(q), 3))
    base = FreeBaseMotion(nothing, nothing, np.tile(-np.array(ROBOT.gravity), (len(q), 1)))
    known = [link.standard_parameters for link in LINKS]
    parameters = np.concatenate([each for each in known if each is not None])
    wrench = floating_inverse_dynamics(ROBOT, base, q, dq, ddq, parameters)[:, :6]
    pulls = [np.array(foot.cable_pull) for foot in TRUTH.feet]
    places = [np.zeros((len(q), 3)), _origins_of_swing_foot(q)]
    for pull, place in zip(pulls, places, strict=True):
        wrench[:, :3] -= pull
        wrench[:, 3:] -= np.cross(place, pull)
    fx, fy, fz, nx, ny, _ = wrench.T
    height = ROBOT.feet[0].origin[2]
    return np.stack([(height * fx - ny) / fz, (height * fy + nx) / fz], axis=1), fz


def _origins_of_swing_foot(q: Array) -> Array:
    """Origins of the last link's frame by multiplying out the transforms."""
    places = np.empty((len(q), 3))
    for k, row in enumerate(q):
        pose = np.eye(4)
        for joint, position in zip(ROBOT.joints, row, strict=True):
            ct, st = np.cos(position), np.sin(position)
            placed = np.eye(4)
            placed[:3, :3], placed[:3, 3] = joint.placement
            pose = pose @ placed @ [[ct, -st, 0, 0], [st, ct, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
        places[k] = pose[:3, 3]
    return places


def distance_mm(plant: StandingPlant, q: Array) -> Array:
    """Between the pressure point of the forces that the plant gives on a motion, and that of the mechanics [mm]."""
    played = Playing(plant, q)
    window = 100  # [ticks]; the motion's own changes within them are the same in both, as both are smoothed
    rows = slice(500, -500, 20)  # servos take hold, and ends of differences
    force = smooth(played.force[:, 0], window)[rows]
    point, vertical = true_pressure_point(smooth(played.position, window))
    measured = ROBOT.feet[0].pressure_point(force) + ROBOT.feet[0].origin[:2]
    np.testing.assert_allclose(force.sum(axis=1), vertical[rows], rtol=0, atol=0.5)  # of 275 N
    return 1e3 * np.linalg.norm(measured - point[rows], axis=1)


def advanced(plant: StandingPlant, ticks: int, force: Array | None = None) -> Motion:
    """Let ticks pass on closed brakes."""
    for _ in range(ticks - 1):
        plant.advance(OFF, np.zeros(12), force=force)
    return plant.advance(OFF, np.zeros(12), force=force)


@pytest.mark.parametrize("kind", KINDS)
def test_it_stands_on_its_brakes(kind: PlantKind) -> None:
    plant = StandingPlant(ROBOT, TRUTH, kind)
    joints, base = plant.link_position, plant.base_pose
    motion = advanced(plant, 5000)
    weight = 9.81 * TOTAL_MASS - sum(foot.cable_pull[2] for foot in TRUTH.feet)
    assert motion.foot_force[0].sum() == pytest.approx(weight, abs=1e-3)
    assert (motion.foot_force[0] > 20.0).all()
    assert (motion.foot_force[1] == 0.0).all()  # it is in the air
    assert not motion.current.any()
    assert np.abs(plant.link_position - joints).max() < 1e-5  # [rad]
    # A regularised floor creeps under the cables' steady pull: by less than 2 µm/s, a tenth of a millimetre in a run.
    assert np.abs(plant.base_pose - base)[:3].max() < 1e-5
    assert 0.0 < -ROBOT.feet[0].origin[2] - plant.base_pose[2] < 1e-4  # [m], what the soles give way


@pytest.mark.parametrize("kind", KINDS)
def test_pressure_point_is_that_of_the_mechanics(kind: PlantKind) -> None:
    # 0.3 mm: soles give way by 20 µm, and lean the robot by as much over 0.1 m: 0.1 mm at the mass.
    assert distance_mm(StandingPlant(ROBOT, TRUTH, kind), bow(4.0)).max() < 0.3


def test_wrong_masses_move_the_pressure_point() -> None:
    """That the comparison can fail: the mass of the swing leg's shank 20 mm farther forward."""
    plant = StandingPlant(ROBOT, TRUTH, "ideal")
    plant.model.body("l_knee").ipos[1] -= 0.02
    assert distance_mm(plant, bow(2.0)).max() > 1.0


@pytest.mark.slow
def test_steps_are_short_enough() -> None:
    """Against steps ten times as short, on a motion faster than any in use."""
    q = bow(3.0, times=3.0)
    coarse, fine = (
        Playing(StandingPlant(ROBOT, truth, "harmonic"), q) for truth in (TRUTH, replace(TRUTH, steps_per_tick=20))
    )
    foot = ROBOT.feet[0]
    points = [foot.pressure_point(smooth(played.force[500:, 0], 24)) for played in (coarse, fine)]  # servos have hold
    # 0.5 mm: the noise of the corners' sensors leaves 0.1 mm of 24 ticks' mean, and the motion goes through 40 mm.
    assert 1e3 * np.linalg.norm(points[0] - points[1], axis=1).max() < 0.5
    assert np.abs(coarse.position - fine.position).max() < 2e-4  # [rad]


def test_a_shove_makes_it_fall() -> None:
    plant = StandingPlant(ROBOT, TRUTH, "harmonic")
    force = np.zeros((13, 3))
    force[1 + ROBOT.joint_index("r_hip_yaw"), 1] = 150.0  # on the trunk, to the left
    motion = advanced(plant, 1500, force)
    assert plant.base_pose[3] < 0.9  # cosine of half the angle by which the foot has turned: by 50 degrees and more
    assert np.isfinite(motion.link_position).all()
    assert -0.2 < plant.base_pose[2] < 1.0  # it lies on the floor


def test_a_gentle_push_does_not() -> None:
    plant = StandingPlant(ROBOT, TRUTH, "harmonic")
    force = np.zeros((13, 3))
    force[1 + ROBOT.joint_index("r_hip_yaw"), 1] = 10.0
    before = plant.standing().foot_force[0]
    motion = advanced(plant, 1000, force)
    moved = ROBOT.feet[0].pressure_point(motion.foot_force[0]) - ROBOT.feet[0].pressure_point(before)
    assert 0.015 < moved[1] < 0.04  # 10 N times the trunk's height over the weight: 10 · 0.8 / 274 = 29 mm
    assert plant.base_pose[3] > 0.9999


@pytest.mark.parametrize("kind", KINDS)
def test_a_push_at_a_link_takes_load_off_its_gear(kind: PlantKind) -> None:
    plant = StandingPlant(ROBOT, TRUTH, kind)
    before = plant.standing().torque[0].copy()
    push = np.zeros(12)
    push[ROBOT.joint_index("l_hip_pitch")] = 5.0
    for _ in range(999):
        plant.advance(OFF, np.zeros(12), push)
    after = plant.advance(OFF, np.zeros(12), push).torque[0]
    np.testing.assert_allclose(after - before, -push, atol=0.05)  # the robot gives way by a hair under it


def test_cables_pull_at_the_feet() -> None:
    model = StandingPlant(ROBOT, TRUTH, "ideal").model
    assert model.body(cable_of("l_foot")).mass == 0.0
    assert model.body_mass.sum() == pytest.approx(TOTAL_MASS, rel=1e-12)


def test_mean_torque_of_a_tick_is_that_of_its_instants() -> None:
    """A motor that has just been told 2 A, with a lag of 0.3 ms: over 1 ms and over the second half of it."""
    drives = StandingPlant(ROBOT, TRUTH, "ideal").drives
    drives.begin_tick(0.0, ON, np.full(12, 2.0), HOME)
    for start, duration in ((0.0, TICK), (0.5 * TICK, 0.5 * TICK)):
        instants = start + duration * (np.arange(1000) + 0.5) / 1000
        expected = np.mean([drives.torque_at(instant).copy() for instant in instants], axis=0)
        # 1e-6: the midpoint rule's error, (duration / 1000 / lag)² / 24.
        np.testing.assert_allclose(drives.mean_torque(start, duration), expected, rtol=1e-6)
        assert 0.0 < expected[0] < 2.0 * 0.045 * 120


@pytest.mark.parametrize(
    ("robot", "truth", "words"),
    [
        (replace(ROBOT, gravity=(0.0, -9.81, 0.0)), TRUTH, "its base's z is not up"),
        (replace(ROBOT, feet=()), TRUTH, "it has no feet"),
        (replace(ROBOT, base_link=None), TRUTH, "its base does not move"),
        (ROBOT, replace(TRUTH, mesh_ripple=0.1, mesh_teeth=100), "joints have springs or teeth"),
    ],
)
def test_what_cannot_stand_is_refused(robot: Robot, truth: PlantFile, words: str) -> None:
    with pytest.raises(BenchFileError, match=words):
        StandingPlant(robot, truth, "ideal")


BENCH = Path(__file__).resolve().parent / "benches" / "gorobot2.toml"
STANDING = StandingPlant(ROBOT, TRUTH, "ideal").standing()
assert TRUTH.sensors.force is not None
FORCE = replace(TRUTH.sensors.force, hysteresis_width=0.0, drift=0.0)
STEADY = replace(TRUTH, sensors=replace(TRUTH.sensors, force=FORCE))
"""Without what moves a cell's zero: loops and warmth."""


def counts(sensors: Sensors, ticks: int) -> np.ndarray:
    return np.array([sensors.read(STANDING).foot_force for _ in range(ticks)])


def test_counts_are_gain_times_force_and_zero() -> None:
    sensors = Sensors(ROBOT, STEADY, "harmonic", seed=1)
    assert sensors.feet is not None
    told = true_parameters(ROBOT, STEADY, "harmonic", sensors)
    ticks = 4000
    read = counts(sensors, ticks)
    for k, foot in enumerate(ROBOT.feet):
        facts, truth = sensors.feet.facts(k), told[foot.name]
        scale = facts["force.scale"] * BY_NAME["force.scale"].scale
        zeros = [facts[f"force.zero_{corner}"] for corner in range(1, 5)]
        force = (read[:, k] - zeros) * scale
        expected = np.array(truth["gain"]) * STANDING.foot_force[k] + truth["zero_error"]
        sigma = FORCE.noise / np.sqrt(ticks)
        np.testing.assert_allclose(force.mean(axis=0), expected, rtol=0, atol=4 * sigma)
        # 4 sigma of a standard deviation out of so many samples.
        np.testing.assert_allclose(force.std(axis=0), FORCE.noise, rtol=4 / np.sqrt(2 * ticks))
        assert np.abs(np.array(truth["gain"]) - 1.0).max() <= FORCE.gain_spread
        assert np.abs(truth["zero_error"]).max() < 4 * FORCE.zero_calibration


def test_a_cell_saturates() -> None:
    sensors = Sensors(ROBOT, TRUTH, "harmonic", seed=1)
    assert sensors.feet is not None
    top = sensors.feet.read(np.array([[1e4] * 4, [-1e4] * 4]))
    assert set(top[0]) == {round(FORCE.range / FORCE.step)}
    assert set(top[1]) == {-round(FORCE.range / FORCE.step)}


def test_noise_has_a_seed_of_its_own() -> None:
    """Benches of one seed have the same boards; with another noise seed they are the same on another day."""
    same, again, other = (Sensors(ROBOT, TRUTH, "harmonic", 7, noise) for noise in (None, 7, 8))
    assert same.feet is not None
    assert other.feet is not None
    np.testing.assert_array_equal(same.feet.gain, other.feet.gain)
    assert same.facts(3) == other.facts(3)
    for sensors in (same, again, other):
        sensors.read(STANDING)
    first, second, third = (sensors.read(STANDING) for sensors in (same, again, other))
    np.testing.assert_array_equal(first.foot_force, second.foot_force)
    np.testing.assert_array_equal(first.adc, second.adc)
    assert (first.foot_force != third.foot_force).any()
    assert (first.adc != third.adc).any()


def test_truth_tells_the_whole_robot() -> None:
    told = true_parameters(ROBOT, TRUTH, "ideal", Sensors(ROBOT, TRUTH, "ideal", seed=0))
    masses = [each["standard_parameters"][0] for each in told.values() if "standard_parameters" in each]
    assert sum(masses) == pytest.approx(TOTAL_MASS, rel=1e-12)
    assert told["base"]["total_mass"] == pytest.approx(TOTAL_MASS, rel=1e-12)
    assert told["l_foot"]["cable_pull"] == list(TRUTH.feet[1].cable_pull)


def test_the_truth_is_a_biped_that_eight_parameters_describe() -> None:
    """Left = right, centres of mass on the axes of the robot's link kinds, and small links as drawn."""
    assert TRUTH.base_link is not None
    true = {joint.link.name: truth.link for joint, truth in zip(ROBOT.joints, TRUTH.joints, strict=True)}
    true["r_foot"] = TRUTH.base_link
    for kind in ROBOT.link_kinds:
        along = []
        for axis in kind.links:
            link = true.pop(axis.link)
            from_start = np.array(link.center_of_mass) - axis.start
            along.append((float(from_start @ np.array(axis.direction)), link.mass))
            assert np.linalg.norm(np.cross(from_start, axis.direction)) < 1e-6  # [m]
        assert np.ptp(np.array(along, dtype=float), axis=0).max() < 1e-6
    for joint in ROBOT.joints:
        if joint.link.name in true:
            assert true[joint.link.name].mass == joint.link.mass
            assert true[joint.link.name].center_of_mass == joint.link.center_of_mass


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ('foot = "r_foot"', 'foot = "paw"', "foot = 'paw': robot 'gorobot2' has r_foot, l_foot"),
        ("sample_every = 8", "sample_every = 0", "sample_every = 0 must be a whole number of at least 1"),
        ("sample_every = 8", "sample_every = 3", "sample_every = 3 must be one of 1, 2, 4, 8, 16, 32, 64 ticks"),
        ("node = 14", "node = 13", "node 13 has two boards"),
    ],
)
def test_a_wrong_bench_file_is_refused(tmp_path: Path, wrong: str, right: str, words: str) -> None:
    text = BENCH.read_text(encoding="utf-8")
    assert wrong in text
    file = tmp_path / "bench.toml"
    file.write_text(text.replace(wrong, right).replace("../virtual_bench/plants", str(PLANT.parent)), encoding="utf-8")
    with pytest.raises(BenchFileError, match=words):
        read_bench_file(file)


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ("[[feet]]", "[[paws]]", "describes the feet none, but robot 'gorobot2' has r_foot, l_foot"),
        ("[floor]", "[ceiling]", "'floor' is missing"),
        ("force_step_N", "force_stop_N", "'force_step_N' is missing"),
        ("cable_pull_N = [-0.5, -0.6, 0.6]", "cable_pull_N = [1.0]", "cable_pull_N"),
    ],
)
def test_a_wrong_plant_file_is_refused(tmp_path: Path, wrong: str, right: str, words: str) -> None:
    text = PLANT.read_text(encoding="utf-8")
    assert wrong in text
    file = tmp_path / "plant.toml"
    file.write_text(text.replace(wrong, right), encoding="utf-8")
    with pytest.raises(BenchFileError, match=re.escape(words)):
        read_plant_file(file, ROBOT)


def test_the_bench_has_a_line_for_each_leg() -> None:
    bench = read_bench_file(BENCH)
    assert [[board.joint[0] for board in line] for line in bench.lines] == [["r"] * 7, ["l"] * 7]
    assert [board.joint for board in bench.boards if board.on_foot] == [foot.name for foot in ROBOT.feet]
    assert tuple(board.joint for board in bench.boards if not board.on_foot) == ROBOT.joint_names


SECONDS = 20.0
WEIGHT_N = 9.81 * TOTAL_MASS


@lru_cache(maxsize=1)
def played() -> Playing:
    """A planned motion on gears that bend and a floor that gives, sensors without errors."""
    motion = plan_single_support(ROBOT, duration=SECONDS, seed=3)
    q, _, _ = motion.evaluate(TICK * np.arange(round(SECONDS / TICK), dtype=np.float64))
    return Playing(StandingPlant(ROBOT, TRUTH, "harmonic"), q)


def recorded(noise: float) -> Run:
    """What boards send of each eighth tick."""
    sent = slice(EVERY - 1, None, EVERY)
    position, force = played().position[sent], played().force[sent]
    time = PERIOD_S * np.arange(len(position), dtype=np.float64)
    support, swing = (readings(force[:, foot], np.zeros(8), foot, noise) for foot in (0, 1))
    motion = Sway(time, position, np.zeros_like(position), np.zeros_like(position))
    return simulated_run(ROBOT, motion, support, swing, counts=TRUTH.sensors.link_encoder_counts)


@pytest.mark.slow
def test_the_true_parameters_explain_the_plant_but_for_give_and_delay() -> None:
    known = [link.standard_parameters for link in LINKS]
    true = np.concatenate([each for each in known if each is not None])
    stance = stance_of_run(recorded(noise=0.5), TOTAL_MASS)
    values = stance.columns @ true
    pulls = np.concatenate([np.zeros(8), *(foot.cable_pull for foot in TRUTH.feet), np.zeros(2)])
    error = stance.measured - values[:, :2] / values[:, 2:] - stance.nuisance_columns @ pulls
    # The base rocks, and forces are means over the tick that positions end: some tenths of a millimetre.
    assert 1e3 * np.hypot(*error.T).mean() < 0.4
    moving = stance.nuisance_columns[:, :, -2:].reshape(-1, 2)
    (give, delay), *_ = np.linalg.lstsq(moving * [1e-6, 1e-3], error.ravel())
    left = error - (moving @ [1e-6 * give, 1e-3 * delay]).reshape(error.shape)
    # Of the sensors' noise of 0.5 N, 2 of 62 Hz pass, 0.07 mm of it; a third more for encoders and an uneven give.
    assert 1e3 * np.hypot(*left.T).mean() < 0.1
    # A corner sinks by 20 µm under a quarter of the weight. Contacts here are springs between accelerations, so what
    # they give to a motion depends on the mass that they meet.
    assert 0.5 < give / (20.0 / (WEIGHT_N / 4.0)) < 2.0
    # Half a tick of the forces' mean, a step of the plant's integration at most; noise makes 0.1 ms of doubt.
    assert 0.3 < delay < 1.2
    assert stance.vertical_force.mean() == pytest.approx(WEIGHT_N, rel=0.01)  # the cables lift 1.3 N


@pytest.mark.slow
def test_the_robot_file_does_not_explain_it() -> None:
    """Its centres of mass are off by centimetres."""
    nominal = floating_standard_parameters(ROBOT)
    assert nominal is not None
    stance = stance_of_run(recorded(noise=0.5), TOTAL_MASS)
    values = stance.columns @ nominal
    assert 1e3 * np.hypot(*(stance.measured - values[:, :2] / values[:, 2:]).T).mean() > 20.0
