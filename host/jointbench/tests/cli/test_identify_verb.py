"""`jointbench identify`: what it takes, and a short one on an emulated bench.

`sweep` as its user meets it: a plan that `run` can play, and joints that cannot do it.

`jointbench prove`: a model of an emulated bench proves itself there, and not on the motion it was fitted to.

`jointbench demo`: from nothing to a judged model, without boards.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from hil_tests.link_helpers import COBOT
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench
from jointbench.cli.demo import simulate
from jointbench.cli.main import main
from jointbench.excitation import SpeedStairs, load_excitation, random_excitation
from jointbench.identification import fit
from jointbench.recording import record


@pytest.mark.parametrize("text", ["0", "100%", "-5%", "ten", "1.5"])
def test_a_precision_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["identify", "bench.toml", f"--until={text}"])
    assert f"{text!r} is no share above 0 and below 1, such as 10% or 0.1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_bench_is_identified_piece_by_piece_and_the_model_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live:
        options = ["--until", "30%", "--most", "20", "--piece", "3.2", "--plan-time", "1", "--out", "out"]
        assert main(["identify", str(live), *options, "--json", "result.json"]) == 0
        assert main(["identify", str(live), "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "out exists; name another directory with --out" in said.err
    result = json.loads(Path("result.json").read_text())
    runs = [Path(run) for run in result["runs"]]
    assert len(runs) >= 2
    assert all((run / "result.json").is_file() for run in (*runs, Path(result["verification"])))
    assert result["motion_s"] == pytest.approx(3.2 * len(runs))
    assert "parameters are known to 30 %" in said.out
    assert Path("out/model.json").is_file()


def test_a_sweep_is_a_plan_to_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, result = tmp_path / "pitch.json", tmp_path / "result.json"
    arguments = ["sweep", "nursing_arm", "j2", "j4", "--speeds", "20", "--hold", "0.16", "--hang"]
    assert main([*arguments, "--out", str(out), "--json", str(result)]) == 0

    said, told = capsys.readouterr().out, json.loads(result.read_text())
    assert "20 steady speeds" in said
    assert f"jointbench run BENCH --plan {out} --repeats 1" in said
    assert "no capsules: self-collision and table NOT checked" in said
    plan = load_excitation(str(out))
    assert isinstance(plan.basis, SpeedStairs)
    assert plan.weights[:, 0].tolist() == [0, 1, 0, 1, 0, 0]
    assert told["duration_s"] == pytest.approx(plan.duration)
    assert told["speeds_rad_s"] == pytest.approx(plan.basis.speeds.tolist())
    assert [check["name"] for check in told["checks"] if check["ok"]] == ["smallest_joint_margin"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["j9"], "no joint 'j9'"),
        (["j1", "--speeds", "90"], "joint 'j1' velocity"),
        (["j1", "--hold", "0.1"], "no whole multiple of change"),
    ],
)
def test_what_cannot_be_swept_is_named(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "nursing_arm", *arguments, "--out", str(tmp_path / "sweep.json")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "sweep.json").exists()


def test_a_sweep_keeps_out_of_the_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", "cobot6", "j2", "--out", str(tmp_path / "sweep.json")]
    assert main(sweep) == 0
    assert "NOT checked" not in capsys.readouterr().out
    (tmp_path / "cell.toml").write_text("version = 1\ntable_mm = 60\n", encoding="utf-8")
    assert main([*sweep, "--force", "--workspace", str(tmp_path / "cell.toml")]) == 2
    assert "table under " in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_proves_itself_on_its_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live:
        with open_bench(live) as bench:
            bench.connect()
            bench.configure()
            limits = np.array([1e-3 * facts.registers["limit.current"] for facts in bench.facts])
            motion = random_excitation(bench.robot, period=10.016, seed=3)
            run = record(bench, motion, tmp_path / "fitted", 2)
        model = fit(run).save(tmp_path / "model.json")
        Path("fitted.json").write_text(json.dumps(motion.to_dict()))
        assert main(["prove", str(model), str(live), "--plan", "fitted.json", "--out", "again"]) == 2
        assert "which the model was fitted to; give another with --plan" in capsys.readouterr().err
        assert not Path("again").exists()
        stiffness = ["--stiffness", str(tmp_path / "fitted")]
        stiffness += ["--report", "proof.html"]
        options = ["--period", "8", "--controls", "--out", "out", "--json", "result.json", *stiffness]
        code = main(["prove", str(model), str(live), *options])
    said = capsys.readouterr().out
    result = json.loads(Path("result.json").read_text())
    assert result["proven"], said
    assert code == 0
    figures = said[said.index("tracking error without") : said.index("runs: out")]
    assert max(map(len, figures.splitlines())) <= 80
    for joint in result["joints"].values():
        assert joint["ratio"] > 5.0  # a perfect model is limited by encoder counts alone, at 20 and more
        assert abs(joint["half_ratio"] - 0.5) <= 0.1
        assert joint["stiffness"] == pytest.approx(24000.0, rel=0.02)  # the plant's; torque sensors are off by 1 %
        assert joint["link_ratio"] > 10.0  # without the lead 4.6 at j2
    page = Path("proof.html").read_text(encoding="utf-8")
    assert f"jointbench prove {model} {live} --seed 1 --period 8.0 --stiffness" in page
    assert page.count("<tr>") == 2 + 2 + 4  # heads, joints, controls
    assert "motors led by the wind-up of j1, j2" in said
    assert len(result["controls"]) == 4
    assert all(control["fails"] for control in result["controls"].values())
    # Boards watched in both runs with feed-forward, by bands far below the motors' limits, and tripped in neither.
    band = np.array(result["unexpected_limit_A"])
    assert np.all((band > 0.0) & (band < 0.2 * limits))
    for name in ("half", "with-1", "with-2"):
        events = [json.loads(line) for line in Path("out", name, "events.jsonl").read_text().splitlines()]
        (words,) = [event["text"] for event in events if event["event"] == "watch"]
        assert ("boards trip UNEXPECTED" in words) is (name != "half")
    assert {path.name for path in Path("out").iterdir()} >= {"without-1", "half", "with-1", "without-2", "with-2"}


def test_it_goes_the_whole_way_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jointbench.cli.demo.find_spec", lambda _: None)  # its report has tests of its own

    assert main(["demo", "cobot6:2", "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["model"] == "demo/model.json"
    assert "The model predicts the torques of a motion it was not fitted to with an error of" in said.err
    assert "pip install 'jointbench[report]'" in said.err
    assert "next: jointbench export demo/model.json --out arm.urdf" in said.err
    assert jb.validate("demo/model.json", "demo/second").verdict.word == "identified"
    assert main(["demo", "cobot6:2"]) == 2
    assert "demo exists" in capsys.readouterr().err


def test_links_are_other_than_the_file_says_and_the_same_for_all_seeds() -> None:
    robot = jb.load_robot("cobot6:2")
    motion = jb.random_excitation(robot, period=10.016, seed=1)
    first, again = (simulate(robot, motion, seed).motor_torque for seed in (1, 2))
    assert first is not None
    assert again is not None

    noise = 0.002 * robot.torque_limits
    assert np.std(first - again, axis=0) == pytest.approx(np.sqrt(2.0) * noise, rel=0.05)  # of 10016 samples: 0.7 %
    assert robot.standard_parameters is not None
    by_file = jb.inverse_dynamics(robot, *motion.evaluate([1.0]), robot.standard_parameters)
    assert abs(by_file[0, 1] - first[500, 1]) > 10.0 * noise[1]


def test_a_robot_without_inertias_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "gorobot2", "--out", str(tmp_path / "demo")]) == 2
    assert "its file needs a fixed base and inertias" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
