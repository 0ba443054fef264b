"""`sweep` as its user meets it: a plan that `run` can play, and joints that cannot do it."""

import json
from pathlib import Path

import pytest

from jointbench.cli.main import main
from jointbench.excitation import SpeedStairs, load_excitation


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
