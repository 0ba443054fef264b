"""`jointbench drives`: what it tells of harmonic joints, and what it says of a run without torque sensors.

The dead-man's key of `jointbench float`; hil_tests/test_floating_hand.py lets arms float.

`jointbench friction`: a CSV's friction in tables and JSON, a run's, and errors in one sentence.

`jointbench payload` and `jointbench gains`: what they print and tell in JSON, and what they refuse.
"""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.cli.float_ import RELEASED_S, held_key
from jointbench.cli.main import main
from jointbench.errors import FileError
from jointbench.identification.friction import SpeedSweep, read_friction_csv
from jointbench.model import inverse_dynamics, load_robot, with_payload
from jointbench.recording import Run, save_samples
from jointbench.tests.identification.drives.simulated_joints import STIFF, recording
from jointbench.tests.identification.friction.test_fit import LAWS, measured
from jointbench.tests.identification.synthetic import PERIOD_S, run_of, synthetic_run, truth


def saved(run: Run, path) -> str:
    return str(save_samples(path, run.samples, {"robot": "cobot6:3"}))


@pytest.fixture(scope="module")
def recorded() -> Run:
    return recording(seed=1)


def test_gears_are_told_and_judged_on_another_motion(recorded, tmp_path, capsys):
    fitted, other = saved(recorded, tmp_path / "first"), saved(recording(seed=2, motion_seed=4), tmp_path / "other")
    assert main(["drives", fitted, "--verify", other, "--json", "-"]) == 0

    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["load"] == "motor"
    assert told["parameters"]["j2.load_friction"]["word"] == "identified"
    assert told["parameters"]["j2.load_friction"]["reason"] in said.err
    assert set(told["rms"]) == {"first", "other"}
    for ways in told["rms"].values():
        for rows in ("all", "moving"):
            assert ways["exact"][rows]["j2"] < ways["simplified"][rows]["j2"]
            assert ways["memory"][rows]["j2"] < ways["simplified"][rows]["j2"]
    assert "friction of j2 turns its sign by" in said.err
    assert told["friction_with_memory"]["j2"]["weights"]
    left_out = [each for each in told["parameters"].values() if each["word"] == "refused" and each["value"] == 0.0]
    assert left_out
    assert {each["sigma"] for each in left_out} == {None}  # not 0: nothing is known to be that well
    value = float(told["parameters"]["j2.coulomb"]["reason"].split()[0])
    assert value == pytest.approx(STIFF[1, 1], rel=0.05)


def test_a_run_without_torque_sensors_is_refused_in_one_sentence(recorded, tmp_path, capsys):
    blind = dataclasses.replace(recorded, samples=dataclasses.replace(recorded.samples, joint_torque=None))
    assert main(["drives", saved(blind, tmp_path / "blind")]) == 2
    assert "torque sensor" in capsys.readouterr().err


pty = pytest.importorskip("pty", reason="no terminals of Unix here")
termios = pytest.importorskip("termios", reason="no terminals of Unix here")


def test_a_key_is_held_while_it_repeats_and_let_go_of_when_it_does_not() -> None:
    keyboard, terminal = pty.openpty()
    try:
        before = termios.tcgetattr(terminal)
        os.write(keyboard, b"early")
        time.sleep(0.05)  # until it has come through the terminal
        with held_key(terminal) as is_held:
            assert not is_held()  # pressed before it was asked for
            os.write(keyboard, b" ")
            assert is_held()
            time.sleep(0.5 * RELEASED_S)
            assert is_held()  # between two repetitions
            os.write(keyboard, b"  ")
            time.sleep(0.05)
            assert is_held()
            time.sleep(1.1 * RELEASED_S)
            assert not is_held()
        assert termios.tcgetattr(terminal) == before
    finally:
        os.close(keyboard)
        os.close(terminal)


def test_where_no_key_is_asked_for_the_switch_is_held() -> None:
    with held_key(None) as is_held:
        assert is_held()


def write(path, head, *columns):
    rows = "\n".join(",".join(f"{value:.6f}" for value in row) for row in zip(*columns, strict=True))
    path.write_text(f"{head}\n{rows}\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def pitch(tmp_path):
    data = measured("makkar", LAWS["makkar"], noise=0.3)
    return write(tmp_path / "pitch.csv", "velocity_deg_s,torque_Nm", np.degrees(data.velocity), data.torque)


def test_a_csv_is_fitted_and_judged(pitch, capsys):
    assert main(["friction", pitch, "--json", "-"]) == 0

    said = capsys.readouterr()
    joint = json.loads(said.out)["joints"]["pitch"]
    assert joint["best"] == "makkar"
    assert "* makkar" in said.err
    assert joint["why"] in said.err
    best = joint["laws"]["makkar"]
    assert best["r_squared"] > 0.999
    assert best["verdict"] == "identified"
    assert best["rms"] == pytest.approx(0.3, rel=0.2)
    for (name, parameter), true in zip(best["parameters"].items(), LAWS["makkar"], strict=True):
        assert parameter["value"] == pytest.approx(true, abs=4.0 * parameter["sigma"]), name
        assert parameter["unit"] in said.err
    assert best["parameters"]["gamma6"]["unit"] == "N·m·s/rad"
    assert {law["method"] for law in joint["laws"].values()} == {"variable_projection"}


def test_one_law_by_the_swarm(pitch, capsys):
    assert main(["friction", pitch, "--law", "makkar", "--method", "particle_swarm", "--json", "-"]) == 0
    laws = json.loads(capsys.readouterr().out)["joints"]["pitch"]["laws"]
    assert {name: law["method"] for name, law in laws.items()} == {"makkar": "particle_swarm"}


def test_noise_is_refused(tmp_path, capsys):
    data = measured("coulomb_viscous", [0.0, 0.0], noise=1.0)
    path = write(tmp_path / "j1.csv", "velocity_rad_s,torque_Nm", data.velocity, data.torque)
    assert main(["friction", path]) == 1
    assert capsys.readouterr().out.count("j1: refused (torque error") == 1  # the verdict, once


def test_a_recorded_sweep_is_told_by_its_directions(tmp_path, capsys):
    robot = load_robot("cobot6")
    sweep = SpeedSweep(lower=-0.3, upper=0.3, first=0.1, step=0.1, n_speeds=6, pause=0.2, acceleration=6.0)
    time = PERIOD_S * np.arange(round(sweep.duration / PERIOD_S), dtype=np.float64)
    q = np.zeros((len(time), robot.n_joints))
    q[:, 1] = sweep.position(time)
    dq = np.asarray(np.gradient(q, PERIOD_S, axis=0))
    torque = 6.0 * np.sign(np.round(dq, 9)) + 9.0 * dq + 20.0 * np.cos(q)
    samples = run_of(robot, q, torque, plan=None, repeats=0).samples
    run = save_samples(tmp_path / "run", samples, {"robot": "cobot6"})

    assert main(["friction", str(run), "--law", "coulomb_viscous"]) == 0

    said = capsys.readouterr().out
    assert "friction told by sweep" in said
    assert "j2: 6 rows, 0.1 to 0.6 rad/s" in said
    assert said.count("j2: identified (") == 1  # the verdict, once
    assert "j1 left out: 0 speeds steady in both directions, 5 are needed" in said


def test_columns_say_their_units(tmp_path):
    path = write(
        tmp_path / "slide.csv", "time_s,velocity_mm_s,force_N,load_N,temperature_C,remark",
        [0.0, 0.1], [100.0, -200.0], [5.0, -6.0], [1.0, 2.0], [20.0, 25.0], [0.0, 0.0],
    )  # fmt: skip
    data, slides = read_friction_csv(path)
    assert slides
    assert data.in_time
    assert data.velocity.tolist() == [0.1, -0.2]
    assert data.load is not None
    assert data.temperature is not None
    assert data.load.tolist() == [1.0, 2.0]
    assert data.temperature == pytest.approx([293.15, 298.15])


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("velocity_rad_s,torque", "has no torque; its columns are velocity_rad_s, torque; name one of them torque_Nm"),
        ("speed,torque_Nm", "has no velocity"),
        ("velocity_rad_s,velocity_deg_s", "has velocity more than once"),
    ],
)
def test_a_csv_without_what_is_needed(tmp_path, head, words):
    path = write(tmp_path / "log.csv", head, [1.0, 2.0], [3.0, 4.0])
    with pytest.raises(FileError, match=words):
        read_friction_csv(path)


def test_a_csv_that_cannot_be_read(tmp_path, capsys):
    assert main(["friction", str(tmp_path / "nothing.csv")]) == 2
    assert "give a CSV file, or a run" in capsys.readouterr().err
    path = write(tmp_path / "log.csv", "velocity_rad_s,torque_Nm", [1.0, np.nan], [3.0, 4.0])
    assert main(["friction", path]) == 2
    assert "nan is not a measurement" in capsys.readouterr().err


def test_a_law_nobody_knows(pitch, capsys):
    assert main(["friction", pitch, "--law", "lugre"]) == 2
    assert "friction law 'lugre' is not known" in capsys.readouterr().err


ROBOT = load_robot("cobot6:3")
ON, MASS, CENTER = ROBOT.joints[-1].link.name, 2.0, (0.03, -0.02, 0.12)


def saved_payload_runs(path: Path, seed: int, mass: float) -> str:
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
    return saved_payload_runs(folder / "empty", 1, 0.0), saved_payload_runs(folder / "loaded", 2, MASS)


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
