"""`jointbench` alone: what lies in a folder, and the step that follows from the newest of it."""

import json
import os
from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from jointbench.cli.main import main

BENCH = 'version = 1\nname = "lab"\nrobot = "cobot6"\n[[board]]\nnode = 1\njoint = "j1"\nurl = "{url}"\n'
PLAN = '{"robot": "cobot6", "family": "fourier"}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place on a machine without ports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(list_ports, "comports", list)
    return tmp_path


def put(path: Path, text: str, age: float) -> None:
    """A file that was written so many seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1e9 - age, 1e9 - age))


def told(capsys: pytest.CaptureFixture[str]) -> dict:
    assert main(["--json", "-"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert f"next: {found['next']}" in said.err
    assert len(said.err.splitlines()) <= 10
    return found


def test_an_empty_place(capsys):
    assert told(capsys)["next"] == "jointbench plan cobot6"


def test_a_board_on_usb_may_be_flashed(capsys, monkeypatch):
    port, built_in = ListPortInfo("/dev/ttyACM7"), ListPortInfo("/dev/ttyS0")
    port.vid, port.description = 0x2E8A, "Board in FS mode"
    monkeypatch.setattr(list_ports, "comports", lambda: [built_in, port])
    found = told(capsys)
    assert found["ports"] == {"/dev/ttyACM7": "Board in FS mode"}
    assert found["next"] == "jointbench flash /dev/ttyACM7 --dry-run"


def test_each_step_leads_to_the_next(folder, capsys):
    (folder / "port").touch()
    put(folder / "bench.toml", BENCH.format(url=folder / "port"), age=90)
    assert told(capsys)["next"] == "jointbench check bench.toml"
    put(folder / "excitation.json", PLAN, age=80)
    assert told(capsys)["next"] == "jointbench check bench.toml --plan excitation.json"
    put(folder / "runs" / "a" / "run.toml", BENCH, age=70)
    assert told(capsys)["next"] == "jointbench fit runs/a"
    put(folder / "runs" / "a" / "model.json", "{}", age=60)
    assert told(capsys)["next"] == "jointbench export runs/a/model.json --out arm.urdf"
    put(folder / "runs" / "b" / "run.toml", BENCH, age=75)
    assert told(capsys)["next"] == "jointbench validate runs/a/model.json runs/b"


def test_a_bench_whose_ports_are_gone_is_named_as_such(folder, capsys):
    put(folder / "runs" / "sim" / "bench.toml", BENCH.format(url=folder / "gone"), age=10)
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "runs/sim/bench.toml: its ports are not there" in said
    assert "jointbench plan cobot6" in said


def test_other_files_are_none_of_ours(folder, capsys):
    put(folder / "pyproject.toml", "[project]\n", age=1)
    put(folder / "broken.toml", "[[", age=1)
    put(folder / "package.json", '{"name": "x"}', age=1)
    found = told(capsys)
    assert not any(found[kind] for kind in ("benches", "absent_benches", "plans", "runs", "models"))
