"""The fuzzing of files: what it calls wrong, that mutants and edits repeat, and a small round of each."""

import json
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from jointbench.recording import run
from jointbench.tests.recording.simulated_run import record
from jointbench.tests.recording.test_seal import imported
from tools.fuzz import edits
from tools.fuzz.__main__ import main
from tools.fuzz.corpus import displaced, make_corpus, mutated, read, read_corpus
from tools.fuzz.files import Findings, Watch

SOUND = {
    "case": 1, "kind": "plan", "file": "plan.json", "how": "cut", "command": [], "seconds": 0.1, "wall_s": 3.0,
    "size": 1000, "peak_MB": 300.0, "trouble": "", "outside": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        ({"trouble": "KeyError: 3 (reader.py:9)"}, "tracebacks"),
        ({"seconds": 10.5}, "hangs_over_10_s"),
        ({"wall_s": 95.0}, "hangs_over_10_s"),
        ({"peak_MB": 501.0}, "beyond_memory"),
        ({"outside": ["open /etc/passwd"]}, "files_elsewhere"),
    ],
)
def test_what_no_reader_may_do_is_counted(wrong: dict[str, object], check: str) -> None:
    findings = Findings()
    findings.add(SOUND)
    assert all(each.ok for each in findings.checks(1))
    findings.add(SOUND | wrong)
    assert [each.name for each in findings.checks(2) if not each.ok] == [check]


def test_a_large_file_may_take_four_times_its_size() -> None:
    findings = Findings()
    findings.add(SOUND | {"peak_MB": 890.0, "size": 100_000_000})
    assert all(each.ok for each in findings.checks(1))


def test_the_same_seed_is_the_same_mutant_and_all_are_told() -> None:
    data = b'version = 1\nname = "arm"\nratio = 100.5\n' * 10
    assert mutated(data, Random("1 2")) == mutated(data, Random("1 2"))
    mutants = [mutated(data, Random(k)) for k in range(300)]
    assert len({how for _, how in mutants}) > 9
    assert sum(bytes_ != data for bytes_, _ in mutants) > 280
    assert {type(mutated(b"", Random(k))[0]) for k in range(50)} == {bytes}


def test_what_is_no_file_takes_the_place_of_one(tmp_path: Path) -> None:
    kinds = set[str]()
    for seed in range(40):
        path = tmp_path / f"{seed}.toml"
        path.touch()
        kinds.add(displaced(path, Random(seed)))
        assert not path.is_file()
    assert len(kinds) == 5


def test_what_is_written_elsewhere_is_seen_also_beside_the_folder(tmp_path: Path) -> None:
    """A folder for temporary files is no excuse: names such as ../../escaped lead there."""
    inside = tmp_path / "inside"
    inside.mkdir()
    watch = Watch()
    watch.inside = inside
    (inside / "fine").write_text("", encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        os.open(tmp_path / "ttyACM7", os.O_RDWR)
    assert watch.outside == []
    (tmp_path / "escaped").write_text("", encoding="utf-8")
    (inside / "fine").rename(tmp_path / "gone")
    assert watch.outside == [f"open {tmp_path / 'escaped'}", f"os.rename {tmp_path / 'gone'}"]
    watch.inside = None


@pytest.mark.slow
def test_whole_files_of_every_kind_are_read_to_their_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Or their mutants would be refused for something else; only benches of ports that are not there end in 2."""
    kinds = make_corpus(tmp_path)
    assert read_corpus(tmp_path) == kinds
    for kind in kinds:
        for command in dict.fromkeys(kind.commands):
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path / kind.name)
                code = read([word.replace("{out}", "made").replace("{file}", kind.files[0]) for word in command])
            shutil.rmtree(tmp_path / kind.name / "made", ignore_errors=True)
            said = "".join(capsys.readouterr())
            expected = (2,) if kind.name in ("plan", "unfinished run") else (0, 1)
            assert code in expected or (kind.name == "unfinished run" and command[0] != "fit"), f"{kind.name}: {said}"
            assert kind.name != "plan" or "port nowhere1 cannot be opened" in said


@pytest.mark.slow
def test_a_small_round(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    assert main(["files", "--cases", "120", "--seed", "7", "--json", str(result)]) == 0
    told = json.loads(result.read_text(encoding="utf-8"))
    assert sum(told["cases"].values()) == 120
    assert len(told["cases"]) >= 13  # 20 where what conversions take is installed


@pytest.mark.parametrize("name", ["robot.toml", "run.toml", "schema.json"])
def test_an_edit_of_a_run_is_noticed_by_all_who_read_it(tmp_path: Path, name: str) -> None:
    path = record(tmp_path / "recorded") / name
    before = path.read_bytes()
    case = edits.edited(tmp_path, f"recorded/{name}", Random(3))
    assert case.missed == ()
    assert path.read_bytes() == before


def test_an_edit_that_nobody_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(tmp_path / "imported")
    monkeypatch.setattr(run, "refuse_changes", lambda *_: None)
    heavier = {"a digit": lambda text, _: text.replace("mass_kg = 8.4", "mass_kg = 9.4")}
    monkeypatch.setattr(edits, "_EDITS", heavier)
    case = edits.edited(tmp_path, "imported/robot.toml", Random(0))
    assert "open_run opens it" in case.missed
    assert any(each.startswith("fit ") for each in case.missed)


def test_a_value_that_is_not_named_is_told() -> None:
    said = "robot.toml was changed after it was recorded: gravity = 1, was 2; take it from a copy of joints"
    wanted = "robot.toml was changed after it was "
    assert list(edits._missing("fit", (2, 2), said, wanted, frozenset({"gravity"}))) == []
    (missed,) = edits._missing("fit", (2, 2), said, wanted, frozenset({"joints"}))
    assert missed.startswith("fit does not name joints")


def test_every_edit_changes_bytes_and_repeats() -> None:
    text = 'version = 1\nname = "arm"\nratio = -100.5\nlimited = true\n'
    made = [edits.edit(text, Random(k)) for k in range(200)]
    assert made == [edits.edit(text, Random(k)) for k in range(200)]
    assert all(after != text for after, _ in made)
    assert {how for _, how in made} == set(edits._EDITS)


@pytest.mark.slow
def test_a_small_round_of_edits(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    assert main(["edits", "--cases", "48", "--seed", "7", "--json", str(result)]) == 0
    told = json.loads(result.read_text(encoding="utf-8"))
    assert told["files"] == dict.fromkeys(sorted(edits.FILES), 6)
    assert (told["missed"], all(check["ok"] for check in told["checks"])) == ([], True)
    assert told["values_named"] > 20
