"""`jointbench friction`: a CSV's friction in tables and JSON, a run's, and errors in one sentence."""

import json

import numpy as np
import pytest

from jointbench.cli.main import main
from jointbench.errors import FileError
from jointbench.identification.friction import SpeedSweep, read_friction_csv
from jointbench.model import load_robot
from jointbench.recording import save_samples
from jointbench.tests.identification.friction.test_fit import LAWS, measured
from jointbench.tests.identification.synthetic import PERIOD_S, run_of


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
