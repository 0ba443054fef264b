"""Edits that are meant have a way: they are noted with the run, and whatever is made of it says so."""

import json
from pathlib import Path

import pytest

from jointbench.errors import RunChanged, RunError
from jointbench.recording import accept, examine, open_run
from jointbench.tests.recording.simulated_run import record, without_seal
from jointbench.tests.recording.test_seal import edit, imported


def test_an_accepted_edit_opens_and_is_told(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    before = json.loads((path / "result.json").read_text())
    edit(path / "robot.toml", "mass_kg = 8.4", "mass_kg = 9.4")
    (change,) = accept(path, "weighed it")
    assert change.values == (("joints.j2.link.mass_kg", 8.4, 9.4),)
    run = open_run(path)
    assert run.robot.joints[1].link.mass == 9.4
    (warning,) = run.warnings
    date = run.edits[0]["date"]
    assert warning == (
        f"edited, and accepted on {date}, weighed it: robot.toml (joints.j2.link.mass_kg = 9.4, was 8.4)"
    )
    noted = run.edits[0]["files"][0]
    assert (noted["before"], noted["after"]) == (before["files"]["robot.toml"]["sha256"], change.after)
    diagnosis = examine(path)
    assert diagnosis.is_sound
    assert warning in diagnosis.text()
    after = json.loads((path / "result.json").read_text())
    assert {name: after[name] for name in ("outcome", "ledger", "frames_sha256")} == {
        name: before[name] for name in ("outcome", "ledger", "frames_sha256")
    }


def test_the_next_edit_is_noticed_and_noted_beside(tmp_path: Path) -> None:
    path = imported(tmp_path / "run")
    edit(path / "robot.toml", "mass_kg = 8.4", "mass_kg = 9.4")
    accept(path)
    edit(path / "mapping.toml", '"Nm"', '"mNm"')
    with pytest.raises(RunChanged, match=r"mapping\.toml was changed after .*: torque\.unit = mNm, was Nm"):
        open_run(path)
    accept(path)
    assert [edit["files"][0]["file"] for edit in open_run(path).edits] == ["robot.toml", "mapping.toml"]


def test_a_file_that_was_removed_or_added_can_be_accepted(tmp_path: Path) -> None:
    path = imported(tmp_path / "run")
    (path / "mapping.toml").unlink()
    (path / "events.jsonl").write_text("")
    added, gone = accept(path)
    assert (added.file, added.before, gone.file, gone.after) == ("events.jsonl", None, "mapping.toml", None)
    assert open_run(path).edits[0]["files"][1]["after"] is None


def test_there_is_nothing_to_accept_where_nothing_was_changed(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    before = (path / "result.json").read_bytes()
    assert accept(path) == ()
    assert (path / "result.json").read_bytes() == before


@pytest.mark.parametrize(("make", "name"), [(record, "frames.bin"), (imported, "samples.npz")])
def test_what_was_measured_is_not_accepted(tmp_path: Path, make, name: str) -> None:
    path = make(tmp_path / "run")
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)
    edit(path / "robot.toml", "mass_kg = 8.4", "mass_kg = 9.4")
    result = (path / "result.json").read_bytes()
    with pytest.raises(RunChanged, match=f"nothing is accepted: take {name} from a copy: what was measured is never"):
        accept(path)
    assert (path / "result.json").read_bytes() == result


def test_what_cannot_be_opened_is_not_accepted(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    edit(path / "run.toml", "[board.registers]", "[board.words]")
    with pytest.raises(RunError, match="lacks 'registers'"):
        accept(path)
    with pytest.raises(RunChanged):
        open_run(path)


def test_a_result_that_was_edited_is_not_accepted(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    edit(path / "result.json", '"finished"', '"excellent"')
    with pytest.raises(RunChanged, match="in outcome; take it from a copy"):
        accept(path)


def test_nothing_tells_what_was_changed_in_older_and_unfinished_runs(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="made before runs had a seal, so that nothing tells what was changed"):
        accept(without_seal(record(tmp_path / "old")))
    cut = record(tmp_path / "cut")
    (cut / "result.json").unlink()
    with pytest.raises(RunError, match=r"it has no result\.json"):
        accept(cut)
