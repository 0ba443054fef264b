"""`info ROBOT --base-parameters`: on the terminal and as JSON."""

import json
from pathlib import Path

import pytest

from jointbench.cli.main import main
from jointbench.model import base_parameters, load_robot
from jointbench.recording import Recorder
from jointbench.tests.recording.simulated_run import boards, feed, provenance


def test_it_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "cobot6", "--base-parameters"]) == 0

    assert f"robot cobot6: {base_parameters(load_robot('cobot6')).table()}" in capsys.readouterr().out


def test_the_whole_grouping_is_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "nursing_arm", "--base-parameters", "--json", "-"]) == 0

    said = json.loads(capsys.readouterr().out)
    base = base_parameters(load_robot("nursing_arm"))
    assert (said["rank"], said["gap"]) == (base.rank, base.gap)
    assert said["lengths_m"] == pytest.approx({"d2": 0.242, "a3": 0.11, "d3": 0.3, "d4": 0.028, "d5": 0.25})
    for each, row in zip(said["base_parameters"], base.grouping, strict=True):
        assert each["coefficients"] == {base.full_names[k]: row[k] for k in row.nonzero()[0]}


def test_a_free_base_has_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "gorobot2", "--base-parameters"]) == 0

    said = capsys.readouterr().out
    assert "robot gorobot2 on its free base: 94 base parameters" in said
    assert "mass of r_foot, plus the mass of everything from r_ankle_pitch on" in said


def test_of_a_run_they_are_its_robots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    streams = boards()
    with Recorder(tmp_path / "run", provenance(streams)) as recorder:
        feed(recorder, streams)

    assert main(["info", str(tmp_path / "run"), "--base-parameters", "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["robot"] == "cobot6"


def test_a_link_that_is_assumed_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "rehab_arm"]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["j4", "forearm", "1.75", "kg,", "assumed"] in rows
    assert ["j5", "j5", "neglected"] in rows
    assert any(row[:3] == ["j5", "revolute,", "passive"] for row in rows)
