"""`jointbench payload` and `jointbench gains`: what they print and tell in JSON, and what they refuse."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.model import inverse_dynamics, load_robot, with_payload
from jointbench.recording import save_samples
from jointbench.tests.identification.synthetic import run_of, synthetic_run, truth

ROBOT = load_robot("cobot6:3")
ON, MASS, CENTER = ROBOT.joints[-1].link.name, 2.0, (0.03, -0.02, 0.12)


def saved(path: Path, seed: int, mass: float) -> str:
    parameters = truth(ROBOT)
    if mass:
        heavier = with_payload(ROBOT, "payload", ON, mass, CENTER)
        assert heavier.standard_parameters is not None
        parameters[: 10 * ROBOT.n_links] = heavier.standard_parameters
    run = synthetic_run(ROBOT, motion_seed=seed, noise_seed=seed, full_parameters=parameters, repeats=1)
    return str(save_samples(path, run.samples, {"robot": "cobot6:3"}))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    return saved(folder / "empty", 1, 0.0), saved(folder / "loaded", 2, MASS)


def played(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = main([*arguments, "--json", "-"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {}, said.err


def test_a_payload_in_words_and_in_json(places: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    code, told, said = played(capsys, "payload", *places)
    assert code == 0
    assert (told["verdict"], told["frame"]) == ("identified", ON)
    mass = told["body"]["mass"]
    assert mass["verdict"] == "identified"
    assert abs(mass["value"] - MASS) < 4.0 * mass["sigma"]
    for axis, place in zip("xyz", CENTER, strict=True):
        center = told["body"][f"center_{axis}"]
        assert abs(center["value"] - place) < 4.0 * center["sigma"]
    assert set(told["relative_error"]["after"]) == set(ROBOT.joint_names)
    assert f"payload on {ON} of cobot6:3" in said
    (row,) = [line for line in said.splitlines() if line.split()[:1] == ["mass"]]
    assert row.split()[1:] == [f"{mass['value']:.4g}", f"{mass['sigma']:.2g}", "kg", "identified"]
    assert "verdict: identified, if the robot's torque constants are right" in said


def test_a_given_mass_is_said_to_be_given(places: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    code, told, said = played(capsys, "payload", *places, "--mass", "2", "--on", ON)
    assert code == 0
    assert told["body"]["mass"] == {"value": 2.0, "sigma": 0.0, "verdict": "given", "reason": "known beforehand"}
    (row,) = [line for line in said.splitlines() if line.split()[:1] == ["mass"]]
    assert row.split() == ["mass", "2", "–", "kg", "given"]


def test_exchanged_runs_end_with_one(places: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    code, told, said = played(capsys, "payload", *reversed(places))
    assert code == 1
    assert told["verdict"] == "refused"
    assert told["body"]["center_z"]["value"] is None
    assert said.count("were the two recordings exchanged?") == 2  # below the table and in the verdict


def test_gains_by_the_mass_alone(places: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    code, told, said = played(capsys, "gains", *places, "--mass", "2")
    assert code == 0
    for drive in ROBOT.drives:
        motor = told["motors"][drive.name]
        assert motor["verdict"] == "identified"
        assert motor["nominal"] == drive.torque_constant  # which is the true one here
        assert abs(motor["torque_constant"] - drive.torque_constant) < 4.0 * motor["sigma"]
    center = told["payload"]["body"]["center_z"]
    assert abs(center["value"] - CENTER[2]) < 4.0 * center["sigma"]
    assert "the payload on forearm, as it came out beside them:" in said
    given = "if what was given of the payload is right"
    assert told["condition"] == f"{given}: 1 % in its mass is 1 % in every torque constant"
    assert f"verdict: 3 of 3 torque constants are known, {told['condition']}\n" in said


def test_gains_name_what_they_take_for_granted_of_friction(places: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    _, told, _ = played(capsys, "gains", *places, "--mass", "2", "--same-friction")
    assert told["condition"].endswith("; and if friction did not change between the recordings")


def test_gains_with_a_known_centre_are_narrower(places: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    _, free, _ = played(capsys, "gains", *places, "--mass", "2")
    _, told, _ = played(capsys, "gains", *places, "--mass", "2", "--center-mm", "30,-20,120")
    assert told["payload"]["body"]["center_z"]["verdict"] == "given"
    sigma = {name: motor["sigma"] for name, motor in told["motors"].items()}
    assert all(sigma[name] < 1.05 * motor["sigma"] for name, motor in free["motors"].items())
    assert sigma["j3"] < free["motors"]["j3"]["sigma"]


def test_an_upright_first_joint_in_slow_motion_is_not_observable(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    places = [slow(tmp_path / "empty", 0.0), slow(tmp_path / "loaded", MASS)]
    code, told, said = played(capsys, "gains", *places, "--mass", "2")
    assert code == 1
    words = {name: motor["verdict"] for name, motor in told["motors"].items()}
    assert words == {"j1": "not observable", "j2": "identified", "j3": "identified"}
    assert told["motors"]["j1"]["torque_constant"] is None
    rows = [line for line in said.splitlines() if line.split()[:1] == ["j1"]]  # of a table that became several
    assert rows[-1].endswith("not observable")
    assert "verdict: 2 of 3 torque constants are known, if what was given" in said
    assert "j1.torque_constant: not observable (the payload changes this motor's torque by " in said


def slow(path: Path, mass: float) -> str:
    """A run of a minute with half-minute swings, in which accelerations ask for a hundredth of a newton metre."""
    rng, step, pace = np.random.default_rng(int(mass)), 0.01, 2.0 * np.pi / 30.0 * np.array([1.0, 1.0, 2.0])
    phases = step * np.arange(6000)[:, None] * pace + np.array([0.3, 1.1, 2.0]) + mass
    q, dq, ddq = (np.sin(phases), pace * np.cos(phases), -(pace**2) * np.sin(phases))
    motion = (np.array(ROBOT.home) + 0.6 * q, 0.6 * dq, 0.6 * ddq)
    robot = with_payload(ROBOT, "payload", ON, mass, CENTER) if mass else ROBOT
    assert robot.standard_parameters is not None
    torque = inverse_dynamics(robot, *motion, robot.standard_parameters) + 3.0 * np.sign(dq) + 2.0 * dq
    torque += 0.3 * rng.standard_normal(torque.shape)
    samples = run_of(ROBOT, motion[0], torque, plan=None, repeats=1).samples
    samples = dataclasses.replace(samples, time=step * np.arange(6000), sample_period=step, board_filters=None)
    return str(save_samples(path, samples, {"robot": "cobot6:3"}))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["payload", "A", "A"], "both recordings are "),
        (["gains", "A", "A", "--mass", "2"], "both recordings are "),
        (["payload", "A", "B", "--on", "hand"], "has no frame 'hand'; there are "),
        (["gains", "A", "B", "--mass", "0"], "a payload of 0 kg is not possible; give the mass it was weighed with"),
        (["gains", "A", "B", "--mass", "2", "--inertia-kg-mm2", "1,1,1"], "inertia is given without its mass and "),
    ],
)
def test_what_cannot_be_done_ends_with_two(
    places: tuple[str, str], arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    names = {"A": places[0], "B": places[1]}
    assert main([names.get(word, word) for word in arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--mass", "2", "--center-mm", "1,2"], "'1,2' must be 3 numbers, such as 0,0,45.5"),
        (["--mass", "2", "--inertia-kg-mm2", "a"], "'a' must be 3 or 6 numbers, such as 5200,5200,3100"),
        ([], "the following arguments are required: --mass"),
    ],
)
def test_a_wrong_word_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["gains", "A", "B", *arguments])
    assert said in capsys.readouterr().err
