"""What `./run commission ROBOT --plant-seed K` draws, and what it holds commissioning to."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.plant_variants import plant_of_seed, true_robot
from jointbench.identification.commission_readings import ADVICE
from jointbench.model import load_robot
from tools.commission import (
    BROUGHT_UP,
    WRONG,
    Judged,
    bring_up_checks,
    checks_of,
    friction_torque,
    judge_fields,
    main,
    static_load,
    true_values,
    write_bench,
)


def test_each_seed_is_an_arm_that_no_file_knows(tmp_path: Path) -> None:
    arms = [read_bench_file(write_bench("cobot6", seed, tmp_path / str(seed))) for seed in (1, 2)]
    ratios = [[drive.ratio for drive in true_robot(arm.plant, arm.robot).drives] for arm in arms]
    assert ratios[0] != ratios[1]
    assert any(ratio < 0.0 for ratio in ratios[0])
    assert all(drive.ratio == 101.0 for arm in arms for drive in arm.robot.drives)
    again = tomllib.loads(write_bench("cobot6", 1, tmp_path / "again").with_name("plant.toml").read_text())
    assert [joint["ratio"] for joint in again["joints"]] == ratios[0]


def test_friction_over_the_strokes_is_that_of_the_plant_where_it_is_of_that_form() -> None:
    law = {"coulomb": 4.0, "viscous": 6.0, "stribeck": 0.0, "stribeck_velocity": 0.06, "transition": 1e-3}
    truth = {"friction": law, "ratio": -81.0, "torque_constant": 0.1, "current_gain": 1.01, "stiffness": 2e4}
    known = true_values(truth)
    assert known["coulomb"] == pytest.approx(4.0)
    assert known["viscous"] == pytest.approx(6.0)
    slow = float(friction_torque(law, np.radians(np.array([2.0])))[0])
    assert known["break-away current"] == pytest.approx(1.01 * slow / 8.1)


def test_a_value_off_and_a_fault_misnamed_are_seen() -> None:
    good = Judged("j1", "ratio", 81.1, 0.1, 81.0)
    named = {"1: jammed joint": {"fault": "jammed joint", "wanted": "jammed joint", "moved_deg": 0.1, "driving": 0}}
    assert all(check.ok for check in checks_of([good], named))
    assert not all(check.ok for check in checks_of([Judged("j1", "ratio", 81.4, 0.1, 81.0)], named))
    assert not all(check.ok for check in checks_of([Judged("j1", "ratio", 81.25, 0.1, 81.0)] * 40, named))
    for wrong in ({"fault": None}, {"moved_deg": 5.1}, {"driving": 1}):
        other = {"1: jammed joint": {**named["1: jammed joint"], **wrong}}
        assert [check.ok for check in checks_of([good], other)].count(False) == 1


@pytest.mark.parametrize("robot", BROUGHT_UP)
def test_ratios_are_drawn_of_joints_with_a_gear_of_their_own(robot: str, tmp_path: Path) -> None:
    arm = read_bench_file(write_bench(robot, 0, tmp_path))
    drawn = true_robot(arm.plant, arm.robot).drives
    for own, drive in zip(drawn, arm.robot.drives, strict=True):
        assert (own.ratio != drive.ratio) <= (drive.kind == "harmonic")
    assert (drawn != arm.robot.drives) is (robot != "nursing_arm")  # whose motors are coupled


def test_nothing_falls_where_an_arm_with_springs_is_put(tmp_path: Path) -> None:
    for seed in range(3):
        arm = read_bench_file(write_bench("rehab_arm", seed, tmp_path / str(seed)))
        plant = plant_of_seed(arm.plant, arm.robot, seed)
        load = static_load(arm.robot, plant, np.array(arm.robot.home))
        friction = np.array([part.coulomb for part in plant.joints])
        # Where its limits leave no place without any load, a tenth of its friction; the fifth joint is in torque mode.
        assert np.all(np.abs(load[:4]) < 0.1 * friction[:4])
        away = static_load(arm.robot, plant, np.array(load_robot("rehab_arm").home))
        assert np.any(np.abs(away[:4]) > friction[:4])


def test_a_value_off_a_trip_a_limit_passed_and_a_refusal_are_seen() -> None:
    good = [Judged("j1", "ratio", 81.1, 0.1, 81.0)]
    assert all(check.ok for check in bring_up_checks(good, 2, [], 0.98))
    off = [Judged("j1", "ratio", 81.4, 0.1, 81.0)]
    for wrong in ((off, 1, [], 0.9), (good, 3, [], 0.9), (good, 1, ["proof: stopped"], 0.9), (good, 1, [], 1.01)):
        assert [check.ok for check in bring_up_checks(*wrong)].count(False) == 1


def test_values_of_a_product_stand_beside_the_plants_and_joints_without_any_are_left_out() -> None:
    law = {"coulomb": 4.0, "viscous": 6.0, "stribeck": 0.0, "stribeck_velocity": 0.06, "transition": 1e-3}
    truth = {
        "j1": {"friction": law, "ratio": -81.0, "torque_constant": 0.1, "current_gain": 1.01, "stiffness": 2e4},
        "j2": {},
    }
    values = {"ratio": {"value": -81.2, "sigma": 0.1}, "coulomb": {"value": None, "sigma": 0.0}}
    (judged,) = judge_fields({"j1": {"values": values}, "j2": {"values": {}}}, truth)
    assert judged == Judged("j1", "ratio", -81.2, 0.1, -81.0)
    assert judged.deviation == pytest.approx(-2.0)


def test_every_fault_that_can_be_named_is_played() -> None:
    assert set(WRONG) == set(ADVICE)


@pytest.mark.slow
def test_a_drawn_joint_is_commissioned_to_its_truth(tmp_path: Path) -> None:
    options = ["cobot6", "--plant-seed", "3", "--modules", "1", "--no-faults", "--out", str(tmp_path / "out")]
    assert main(options) == 0
