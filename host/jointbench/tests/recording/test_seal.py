"""No file of a run changes unnoticed: which one it was is said, and which value where that can be told."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import FileNotWritten, RunError
from jointbench.recording import Samples, accept, examine, open_run, save_samples, seal
from jointbench.tests.recording.simulated_run import record, without_seal

MAPPING = b'version = 1\nrobot = "cobot6"\n[torque]\ncolumns = ["t1"]\nunit = "Nm"\n'


def imported(path: Path) -> Path:
    rng, shape = np.random.default_rng(0), (50, 6)
    samples = Samples(
        time=np.linspace(0.0, 0.098, 50), joint_names=tuple(f"j{k}" for k in range(1, 7)),
        motor_position=rng.normal(size=shape), link_position=None, motor_current=None,
        motor_torque=rng.normal(size=shape), joint_torque=None, play_tick=np.full(50, -1),
        valid=np.ones(shape, dtype=bool), board_filters=None, sample_period=0.002,
    )  # fmt: skip
    return save_samples(path, samples, {"robot": "cobot6"}, {"mapping.toml": MAPPING})


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def refused(path: Path) -> str:
    """The sentence with which a changed run is refused; the doctor says the same of it, and calls it damaged."""
    with pytest.raises(RunError) as error:
        open_run(path)
    wrong = " ".join(finding.what for finding in examine(path).findings if not finding.ok)
    sentence = str(error.value).removeprefix(f"run {path}: ").partition("; take ")[0]
    assert sentence in wrong
    return str(error.value)


RECORDED = [
    ("robot.toml", "ratio = 101", "ratio = 110", "joints.j1.drive.ratio = 110, was 101"),
    ("robot.toml", "alpha_deg = 90", "alpha_deg = -90", "joints.j2.alpha_deg = -90, was 90"),
    ("robot.toml", "mass_kg = 8.4\n", "", "joints.j2.link.mass_kg is gone, was 8.4"),
    ("robot.toml", 'name = "j2"', 'name = "elbow"', r"joints.j2 is gone, was \d+ values; joints.elbow = \d+ values"),
    ("robot.toml", "mass_kg = 8.4", "mass_kg = nan", "joints.j2.link.mass_kg = NaN, was 8.4"),
    ("robot.toml", "ratio = 101", "ratio = ", r"can no longer be read \(Invalid value"),
    ("robot.toml", "# A 6-axis", "# A seven-axis", "though none of its values"),
    ("robot.toml", "Assumed: everything", "Assumed:  everything", "though none of its values"),
    ("run.toml", '"adc.window" = 1000', '"adc.window" = 2000', "board.j1.registers.adc.window = 2000, was 1000"),
    ("run.toml", 'clock = "virtual"', 'clock = "wall"', "clock = wall, was virtual"),
    ("run.toml", "version = 1", "version = 9", "version = 9, was 1"),
    ("schema.json", '"DONE":', '"DONT":', r"State.DONE is gone, was \d+; State.DONT = \d+ is new"),
    ("schema.json", "{", "", r"can no longer be read"),
    ("events.jsonl", "armed", "alarm", "events.jsonl was changed after it was recorded;"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "before", "after", "told"), RECORDED)
def test_an_edit_of_a_recorded_run_is_refused_by_file_and_value(
    tmp_path: Path, file: str, before: str, after: str, told: str
) -> None:
    path = record(tmp_path / "run")
    edit(path / file, before, after)
    said = refused(path)
    assert f"{file} was changed after it was recorded" in said
    assert re.search(told, said), said
    assert f"jointbench accept {path}" in said


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("mapping.toml", '"Nm"', '"mNm"', "torque.unit = mNm, was Nm"),
        ("mapping.toml", '["t1"]', '["t2"]', 'torque.columns = ["t2"], was ["t1"]'),
        ("run.toml", "sealed = true\n", "", "sealed is gone, was True"),
        ("robot.toml", "ratio = 101", "ratio = 110", "joints.j1.drive.ratio = 110, was 101"),
    ],
)
def test_an_edit_of_an_imported_run_is_refused_by_file_and_value(
    tmp_path: Path, file: str, before: str, after: str, told: str
) -> None:
    path = imported(tmp_path / "run")
    assert examine(path).is_sound
    edit(path / file, before, after)
    said = refused(path)
    assert f"{file} was changed after it was imported: {told}" in said


def test_the_order_of_tables_is_a_value(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    head, one, two = (path / "run.toml").read_text().split("[[board]]")
    (path / "run.toml").write_text("[[board]]".join((head, two, one)))
    assert 'run.toml was changed after it was recorded: board = ["j2", "j1"], was ["j1", "j2"];' in refused(path)


@pytest.mark.parametrize("name", ["run.toml", "robot.toml", "schema.json", "frames.bin", "events.jsonl"])
def test_a_file_that_is_gone_is_a_change(tmp_path: Path, name: str) -> None:
    path = record(tmp_path / "run")
    (path / name).unlink()
    assert f"{name} is gone, which was there when it was recorded" in refused(path)


@pytest.mark.parametrize("name", ["robot.urdf", "samples.npz", "mapping.toml"])
def test_a_file_that_takes_anothers_place_is_a_change(tmp_path: Path, name: str) -> None:
    path = record(tmp_path / "run")
    (path / name).write_bytes(b"<robot/>")
    assert f"{name} was added after it was recorded" in refused(path)


def test_what_other_verbs_put_there_is_none_of_the_run(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    for name in ("model.json", "report.html", "picture.png", "notes.toml"):
        (path / name).write_text("anything")
    assert open_run(path).warnings == ()
    assert examine(path).is_sound


def test_frames_are_never_edited(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    data = bytearray((path / "frames.bin").read_bytes())
    data[2000] ^= 1
    (path / "frames.bin").write_bytes(data)
    said = refused(path)
    assert "take frames.bin from a copy: what was measured is never edited" in said
    assert "accept" not in said


def test_the_result_vouches_for_itself(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    edit(path / "result.json", '"samples_received": 657', '"samples_received": 656')
    assert "result.json was changed after it was written, in ledger; take it from a copy" in refused(path)


def test_a_result_without_its_seal_is_no_older_one(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    result = json.loads((path / "result.json").read_text())
    del result["digest"]
    (path / "result.json").write_text(json.dumps(result))
    refused(path)


def test_an_import_whose_result_is_gone_is_refused(tmp_path: Path) -> None:
    path = imported(tmp_path / "run")
    (path / "result.json").unlink()
    with pytest.raises(RunError, match=r"the result\.json that vouches for its files is gone; take it from a copy"):
        open_run(path)
    assert examine(path).verdict.startswith("damaged: result.json (1 of ")


@pytest.mark.parametrize("make", [record, imported])
def test_older_runs_open_and_only_the_doctor_says_that_nothing_vouches(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = without_seal(make(tmp_path / "run"))
    edit(path / "robot.toml", "mass_kg = 8.4", "mass_kg = 9.4")
    assert open_run(path).warnings == ()
    diagnosis = examine(path)
    assert diagnosis.is_sound
    assert "nothing vouches for the other files: the run was made before runs had a seal" in diagnosis.text()


def test_a_run_that_was_cut_off_opens_as_it_is(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    (path / "result.json").unlink()
    assert open_run(path).samples.valid.all()


@pytest.mark.parametrize("act", [open_run, examine])
def test_frames_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], object]) -> None:
    path = record(tmp_path / "run")
    hashed: list[str] = []
    whole = seal.file_sha256
    monkeypatch.setattr(seal, "file_sha256", lambda path: hashed.append(path.name) or whole(path))
    act(path)
    assert hashed.count("frames.bin") == (1 if act is open_run else 0)  # the doctor has it from reading them


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path / "run")

    def denied(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(seal, "file_sha256", denied)
    with pytest.raises(RunError, match=r"run\.toml cannot be read: Permission denied"):
        open_run(path)


def test_a_disk_that_is_too_full_for_values_takes_the_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nearly_full(path: Path, content: str) -> Path:
        if len(content) > 5000:
            raise FileNotWritten(f"{path} cannot be written: No space left on device")
        return write_file(path, content)

    write_file = seal.write_file
    monkeypatch.setattr(seal, "write_file", nearly_full)
    path = record(tmp_path / "run")
    assert open_run(path).warnings == ()
    edit(path / "robot.toml", "ratio = 101", "ratio = 110")
    assert "robot.toml was changed after it was recorded; take it from a copy" in refused(path)


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
    with pytest.raises(RunError, match=r"mapping\.toml was changed after .*: torque\.unit = mNm, was Nm"):
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
    with pytest.raises(RunError, match=f"nothing is accepted: take {name} from a copy: what was measured is never"):
        accept(path)
    assert (path / "result.json").read_bytes() == result


def test_what_cannot_be_opened_is_not_accepted(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    edit(path / "run.toml", "[board.registers]", "[board.words]")
    with pytest.raises(RunError, match="lacks 'registers'"):
        accept(path)
    with pytest.raises(RunError):
        open_run(path)


def test_a_result_that_was_edited_is_not_accepted(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    edit(path / "result.json", '"finished"', '"excellent"')
    with pytest.raises(RunError, match="in outcome; take it from a copy"):
        accept(path)


def test_nothing_tells_what_was_changed_in_older_and_unfinished_runs(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="made before runs had a seal, so that nothing tells what was changed"):
        accept(without_seal(record(tmp_path / "old")))
    cut = record(tmp_path / "cut")
    (cut / "result.json").unlink()
    with pytest.raises(RunError, match=r"it has no result\.json"):
        accept(cut)
