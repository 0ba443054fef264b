"""`jointbench stance`: masses of a biped from the forces under its foot, told, drawn, and refused by name."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench import errors
from jointbench.arrays import Array
from jointbench.cli import stance
from jointbench.cli.main import main
from jointbench.cli.parser import build_parser
from jointbench.excitation import plan_single_support
from jointbench.identification import Verdict
from jointbench.identification.zero_moment_point import (
    ReducedParameters,
    ZmpEstimate,
    fit_stance,
    load_stance_estimate,
    stance_of_run,
)
from jointbench.model import FreeBaseMotion, floating_inverse_dynamics
from jointbench.recording import Run, open_run, save_samples
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    PERIOD_S,
    Sway,
    biped,
    drawn_nuisance,
    ground_forces,
    readings,
    simulated_run,
    sway,
)

ROBOT = biped()
FOOT = ROBOT.foot("r_foot")
REDUCED = ReducedParameters(ROBOT)
TRUE = REDUCED.nominal * [1.2, 1.1, 0.8, 0.9, 0.92, 1.1, 1.05, 1.1]
MASS = float(REDUCED.mass_row @ TRUE + REDUCED.held_mass)
SENSORS = drawn_nuisance(ROBOT, FOOT, 3)


def recorded(seed: int) -> Run:
    """A motion of the true robot, its motors with friction that the fit knows the form of."""
    motion = sway(ROBOT, seed, 20.0)
    forces = ground_forces(ROBOT, FOOT, motion, REDUCED.standard(TRUE), SENSORS[8:-2].reshape(-1, 3))
    run = simulated_run(ROBOT, motion, readings(forces, SENSORS, seed))
    torque = np.full_like(run.samples.motor_position, np.nan)
    torque[::8] = joint_torques(motion, seed)
    return replace(run, samples=replace(run.samples, motor_torque=torque))


def joint_torques(motion: Sway, seed: int) -> Array:
    still = np.zeros((len(motion.q), 3))
    base = FreeBaseMotion(still, still, still - np.array(ROBOT.gravity))
    torque = floating_inverse_dynamics(ROBOT, base, motion.q, motion.dq, motion.ddq, REDUCED.standard(TRUE))[:, 6:]
    noise = 0.2 * np.random.default_rng(seed).standard_normal(torque.shape)
    return torque + 2.0 * np.tanh(motion.dq / 0.01) + 3.0 * motion.dq + noise


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to fit, a fresh one, and one with a stuck sensor."""
    folder = tmp_path_factory.mktemp("runs")
    for seed, name in ((1, "one"), (3, "fresh")):
        save_samples(folder / name, recorded(seed).samples, {"robot": "gorobot2"})
    broken = recorded(4).samples
    assert broken.foot_force is not None
    broken.foot_force[8000::8, 0, 2] = broken.foot_force[8000, 0, 2]
    save_samples(folder / "stuck", broken, {"robot": "gorobot2"})
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any], str]:
    code = main(["stance", *map(str, arguments), "--json", "-"])
    said = capsys.readouterr()
    found = json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")) if said.out else {}
    return code, found, said.err


def test_the_estimate_is_told_judged_drawn_and_saved(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, said = told(capsys, folder / "one", "--verify", folder / "fresh", "--total-mass", MASS, "-o", tmp_path)

    assert code == 0
    assert found["foot"] == "r_foot"
    assert found["verified_on_fresh_run"]
    assert found["balance_m"] is None  # the fresh run has no plan
    assert found["mean_distance_m"]["ours"] < 0.2 * found["mean_distance_m"]["nominal"]
    ours = found["methods"]["ours"]
    assert list(ours["parameters"]) == list(REDUCED.names)
    loaded = load_stance_estimate(ours["file"])
    assert [each["value"] for each in ours["parameters"].values()] == loaded.values.tolist()
    assert Path(found["picture"]).read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"estimate.json", "stance.png"}
    assert "corners unloaded: none" in found["contact"][str(folder / "fresh")]
    assert found["contact"][str(folder / "fresh")] in said
    assert "flatter" not in said


def test_distances_count_from_points_without_the_sensors_errors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same sensors felt the fresh run, and what they are wrong by is more than what the estimate is."""
    _, found, said = told(capsys, folder / "one", "--verify", folder / "one", "--total-mass", MASS)

    assert found["mean_distance_m"]["ours"] < 0.3 * found["mean_distance_as_calibrated_m"]["ours"]
    assert not found["verified_on_fresh_run"]
    assert "flatter" in said
    assert (folder / "one" / "estimate.json").is_file()


def test_a_refused_estimate_ends_with_exit_code_1(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: Any) -> ZmpEstimate:
        return replace(fit_stance(*arguments), verdict=Verdict("stance", "refused", "made up"))

    monkeypatch.setattr(stance, "fit_stance", refused)

    code, found, said = told(capsys, folder / "one", "--total-mass", MASS)

    assert code == 1
    assert (found["verdict"], found["verdict_reason"]) == ("refused", "made up")
    assert "ours: refused (made up)" in said


@pytest.mark.slow  # plans of a biped
def test_a_run_that_an_estimate_planned_keeps_its_zero_moment_point(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = fit_stance(stance_of_run(open_run(folder / "one"), MASS), REDUCED, MASS).standard_parameters
    error: dict[str, float] = {}
    for name, given in (("file", None), ("estimate", parameters)):
        plan = plan_single_support(ROBOT, 12.8, 5, parameters=given)
        time = PERIOD_S * np.arange(round(12.8 / PERIOD_S), dtype=np.float64)
        motion = Sway(time, *plan.evaluate(time))
        forces = ground_forces(ROBOT, FOOT, motion, REDUCED.standard(TRUE), SENSORS[8:-2].reshape(-1, 3))
        samples = simulated_run(ROBOT, motion, readings(forces, SENSORS, 6)).samples
        save_samples(tmp_path / name, samples, {"robot": "gorobot2", "excitation": plan.to_dict()})
        run = (folder / "one", "--verify", tmp_path / name, "--total-mass", MASS, "-o", tmp_path / f"{name}-out")
        _, found, said = told(capsys, *run)
        error[name] = found["balance_m"]["corrected"]["error"]
        assert "balance: the measured zero-moment point is" in said
    # What is left is what one run of 20 s does not tell; the file is off by the choice of TRUE.
    assert error["estimate"] < 0.2 * error["file"]


@pytest.mark.slow
def test_all_methods_stand_beside_each_other(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_samples(folder / "two", recorded(2).samples, {"robot": "gorobot2"})
    runs = (folder / "one", folder / "two", "--verify", folder / "fresh", "--total-mass", MASS, "-o", tmp_path)

    code, found, said = told(capsys, *runs, "--method", "all", "--full", "--each")

    assert code == 0
    assert list(found["mean_distance_m"]) == ["nominal", "torque", "paper", "ours", "full"]
    assert list(found["spread_over_runs"]) == ["torque", "paper", "ours", "ours_held"]
    assert min(found["spread_over_runs"]["ours"].values()) > 0.0
    assert found["full"]["verdict"] in ("identified", "poor fit")
    names = {"estimate.json", "estimate_paper.json", "estimate_torque.json", "stance.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "spread over runs" in said


@pytest.mark.parametrize(
    ("run", "mass", "message"),
    [("stuck", MASS, "stuck: r_foot: its sensor rear right stays at"), ("one", 1.1 * MASS, "total_mass = ")],
)
def test_what_is_no_stance_is_refused_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str], run: str, mass: float, message: str
) -> None:
    code, found, said = told(capsys, folder / run, "--total-mass", mass)

    assert code == 2
    assert not found
    assert message in said
    assert not (folder / "stuck" / "estimate.json").exists()


PAGE = (Path(__file__).parents[4] / "docs" / "biped.md").read_text(encoding="utf-8")


def test_every_error_of_the_page_is_one() -> None:
    named = re.findall(r"`((?:[A-Z][a-z]+){2,}|FitError)`", PAGE[PAGE.index("## Refusals") :])

    assert {"StuckFootSensor", "FootOffGround", "RobotFell", "WrongTotalMass", "FitError"} <= set(named)
    assert all(issubclass(getattr(errors, name), errors.FitError) for name in named)


@pytest.mark.parametrize("line", [line for line in PAGE.splitlines() if line.startswith("jointbench ")])
def test_every_command_of_the_page_parses(line: str) -> None:
    assert build_parser().parse_args(shlex.split(line, comments=True)[1:]).verb == line.split()[1]


def test_the_program_of_the_page_names_what_there_is() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    imports = [line for line in program.splitlines() if line.startswith(("import", "from"))]

    exec("\n".join(imports), {})
