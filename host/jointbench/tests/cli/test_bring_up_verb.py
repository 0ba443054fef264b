"""`jointbench bring-up`: what is kept of an earlier call, the one verdict and its page. Boards are in `hil_tests`."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from jointbench.cli.bring_up import PAGE, BringUp
from jointbench.cli.commission import reachable_limits, write_robot
from jointbench.cli.console import Console
from jointbench.cli.main import main
from jointbench.cli.parser import build_parser
from jointbench.model import load_robot
from jointbench.results.bring_up_page import bring_up_content

BENCH = """
version = 1
name = "arm"
robot = "cobot6:1"

[[board]]
node = 1
joint = "j1"
url = "/dev/none"
"""


def products(folder: Path) -> dict[str, dict[str, Any]]:
    """Products of a bring-up that went well, as its files have them."""
    model = folder / "model.json"
    model.write_text("the model")
    about = {"rank": 1, "bench_s": 10.0, "model_sha256": hashlib.sha256(model.read_bytes()).hexdigest()}
    ratio = {"value": 81.02, "sigma": 0.01, "unit": "", "file": 101.0, "verdict": "differs by 1998 σ"}
    joints = {
        "j1": {
            "fault": None,
            "evidence": "",
            "values": {"ratio": ratio},
            "runs": [str(folder / f"commission/j1/{name}-1") for name in ("push-up", "wave")],
        }
    }
    proof = {
        "ratio_pooled": 31.0,
        "joints": {
            "j1": {
                "judged": True, "ratio": 31.0, "link_ratio": None, "share": 0.021, "predicted": 0.02,
                "predicted_interval": [0.01, 0.03], "allowed": 0.06,
            }
        },
    }  # fmt: skip
    by_joint = {"j1": 0.05}
    return {
        "commission": {
            **about, "word": "sound", "reason": "1 value measured", "bench": "arm", "boards": {"j1": "01"},
            "robot": None, "joints": joints,
        },
        "gears": {**about, "word": "measured", "reason": "of j1", "robot": None, "run": str(folder / "gears"),
            "values": {"j1": {"ratio": {"value": 81.0001, "sigma": 0.002, "unit": ""}}}},
        "identify": {
            **about, "word": "identified", "reason": "1 of 1 parameters known to 10 %", "until": 0.1, "most": 60.0,
            "is_reached": True, "motion_s": 20.0, "runs": [str(folder / "identify/piece-01")],
            "precision": {"j1.Izz": {"relative_sigma": 0.02, "at_best": 0.02, "out_of_reach": False}},
            "fit": {"parameters": {"j1.Izz": {"value": 1.25, "sigma": 0.025}}}, "model": str(model),
        },
        "validate": {
            **about, "word": "identified", "reason": "torque error 2 %", "run": str(folder / "verification"),
            "validation": {
                "verification_total_relative_all_rows": 0.02, "verification_rms_all_rows": by_joint,
                "verification_relative_all_rows": by_joint, "verification_relative": by_joint,
                "joint_verdicts": {"j1": {"word": "identified"}},
            },
        },
        "prove": {
            **about, "word": "proven", "reason": "by feedback 2.1 %", "out": str(folder / "proof"), "proof": proof,
        },
    }  # fmt: skip


def write(folder: Path, made: dict[str, dict[str, Any]]) -> None:
    for number, (name, product) in enumerate(made.items()):
        about = {"step": name, "made": f"2026-05-04T10:0{number}:00Z"}
        (folder / f"{name}.json").write_text(json.dumps(about | product))


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench.toml"
    path.write_text(BENCH)
    return path


def test_what_is_there_is_not_repeated_and_no_board_is_asked(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "product"
    folder.mkdir()
    write(folder, products(folder))
    assert main(["bring-up", str(bench), "--out", str(folder), "--json", "-"]) == 0  # its port is none
    output = capsys.readouterr()
    assert output.err.count("resumed: ") == 5
    assert "resumed: commission of 2026-05-04T10:00:00Z kept: sound" in output.err
    assert "verdict: usable (prove: by feedback 2.1 %)" in output.err
    assert json.loads(output.out)["verdict"] == "usable"
    assert f"next: jointbench export {folder / 'model.json'} --out arm.urdf" in output.err
    page = (folder / "report.html").read_text(encoding="utf-8")
    sections = page.split("<section>")
    for number, source in (
        ("81.02", "commission/j1/wave-1"),
        ("1.25", "identify/piece-01"),
        ("81.0001", "gears"),
        ("31.0", "proof"),
    ):
        section = next(part for part in sections if f'<td class="number">{number}</td>' in part)
        assert f'href="{source}"' in section
        row = next(line for line in section.splitlines() if f">{number}<" in line)
        assert "push-up-1" not in row  # a ratio is read from the wave


def kept(bench: Path, folder: Path, *more: str) -> list[str]:
    """Steps that would not be repeated."""
    from jointbench.bench import read_bench_file

    options = build_parser().parse_args(["bring-up", str(bench), "--out", str(folder), *more])
    work = BringUp(read_bench_file(bench), options, Console())
    for name in ("commission", "gears", "identify", "validate", "prove"):
        product = work.kept(name)
        if product is None:
            break
        work.products[name] = product
    return list(work.products)


def test_a_step_is_repeated_when_what_it_was_made_of_has_changed(bench: Path, tmp_path: Path) -> None:
    made = products(tmp_path)
    write(tmp_path, made)
    assert len(kept(bench, tmp_path)) == 5
    assert kept(bench, tmp_path, "--until", "5%") == ["commission", "gears"]  # more precise than it was asked to be
    assert len(kept(bench, tmp_path, "--until", "20%")) == 5
    (tmp_path / "prove.json").write_text('{"step": "prove"')  # cut off
    assert kept(bench, tmp_path) == ["commission", "gears", "identify", "validate"]
    (tmp_path / "model.json").write_text("another model")
    assert kept(bench, tmp_path) == ["commission", "gears"]
    write(tmp_path, {**made, "commission": {**made["commission"], "rank": 3}})
    assert kept(bench, tmp_path) == []
    write(tmp_path, {**made, "commission": {**made["commission"], "bench": "another"}})
    assert kept(bench, tmp_path) == []


def test_a_step_that_cannot_be_done_stops_with_the_reason_and_leaves_the_rest_undone(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bring-up", str(bench), "--out", str(tmp_path / "product")]) == 2
    output = capsys.readouterr()
    assert f"NO  commission stopped, motors are off; what was done is kept in {tmp_path / 'product'}" in output.out
    assert "/dev/none" in output.err  # the port that cannot be opened
    assert list((tmp_path / "product").iterdir()) == []


def test_more_time_goes_on_where_the_time_was_over(bench: Path, tmp_path: Path) -> None:
    made = products(tmp_path)
    write(tmp_path, {**made, "identify": {**made["identify"], "is_reached": False}})
    assert len(kept(bench, tmp_path, "--most", "60")) == 5
    assert kept(bench, tmp_path, "--most", "120") == ["commission", "gears"]


def test_a_robot_whose_motors_reach_less_is_written_with_limits_that_they_reach(tmp_path: Path) -> None:
    robot = load_robot("cobot6:3")
    news = {"j2": {"ratio": -80.9, "link_coulomb_Nm": 4.0}, "j3": {"ratio": 161.0}}
    limits = reachable_limits(robot, news)
    reach = 80.9 * robot.drives[1].torque_constant * robot.drives[1].current_limit
    assert limits == {"j2": pytest.approx(reach, rel=1e-3)}
    written = load_robot(write_robot("cobot6:3", news, tmp_path / "robot.toml", limits))
    assert written.joint_names == robot.joint_names
    assert written.drives[1].link_coulomb == 4.0
    assert written.independent_joints[1].torque_limit == limits["j2"] <= reach


def test_the_verdict_is_that_of_the_worst_step(bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = products(tmp_path)
    assert bring_up_content(tmp_path / PAGE, "arm", "usable", 1, "", {}).tables == ()  # nothing done, nothing shown
    write(tmp_path, {**made, "identify": {**made["identify"], "rank": 2, "reason": "3 of 4 parameters known"}})
    assert main(["bring-up", str(bench), "--out", str(tmp_path)]) == 0
    assert "verdict: usable with care (identify: 3 of 4 parameters known)" in capsys.readouterr().out
    assert 'class="word with-care"' in (tmp_path / "report.html").read_text(encoding="utf-8")
