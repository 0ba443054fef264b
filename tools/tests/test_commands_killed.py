"""Commands whose disk takes no more, and commands that are killed: both in the small, and whether they can fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jointbench import files
from jointbench.recording import record_file
from jointbench.testing.requirements import load
from tools.faults import disk, kills, undisturbed
from tools.faults.__main__ import cells_of, parser
from tools.faults.cell import UnknownCell
from tools.faults.commands import COMMANDS, Store, make_store
from tools.faults.disk import TROUBLES, disk_cells, run_disk_cell
from tools.faults.kills import WAYS, WORKS, Kill, kill_checks, run_kill
from tools.requirements import FOLDER

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("killed") / "store")


@pytest.mark.parametrize("cell", ["disk.full@model", "disk.full@configuration", "disk.read_only@result"])
def test_a_disk_that_takes_no_more(store: Store, tmp_path: Path, cell: str) -> None:
    verdict = run_disk_cell(cell, store, tmp_path)
    assert load(FOLDER)["campaign.disk"].check(bool(verdict.problem)).ok, verdict.problem


def test_where_nothing_can_be_mounted_the_process_is_limited(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_mount", lambda *words: False)
    verdict = run_disk_cell("disk.full@export", store, tmp_path)
    assert (verdict.real, verdict.problem) == (False, "")
    assert "File too large" in verdict.words


def test_a_file_that_is_written_in_place_is_seen(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointbench.identification.model_file.write_file", lambda path, text: path.write_text(text))
    assert "is not as it was" in run_disk_cell("disk.full@model", store, tmp_path).problem


def test_every_trouble_meets_every_command() -> None:
    assert len(disk_cells()) == len(TROUBLES) * len(COMMANDS)
    with pytest.raises(UnknownCell, match=r"no cell 'disk.wet@model'; a cell of the disk is"):
        disk_cells(["disk.wet@model"])


def test_some_kills_of_each_kind(store: Store, tmp_path: Path) -> None:
    verdicts = [run_kill(Kill(number, 1), store, tmp_path) for number in range(len(WORKS) * len(WAYS))]
    assert {(verdict.kill.work, verdict.kill.way) for verdict in verdicts} == {(a, b) for a in WORKS for b in WAYS}
    checks = kill_checks(verdicts)
    assert all(check.ok for check in checks), [verdict.to_dict() for verdict in verdicts]
    assert {check.name for check in checks} == {name for name in load(FOLDER) if name.startswith("kills.")}


def cuts(store: Store, tmp_path: Path, work: str) -> Iterator[kills.KillVerdict]:
    numbers = range(12 + WORKS.index(work), 400, 16)
    return (run_kill(Kill(number, 1), store, tmp_path) for number in numbers)


def test_a_file_that_is_not_synced_is_half_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed.disk_log.cache_clear()
    monkeypatch.setattr(files, "sync", lambda path: None)
    assert any("is neither the earlier one" in verdict.half_written for verdict in cuts(store, tmp_path, "export"))
    undisturbed.disk_log.cache_clear()


def test_a_recording_that_is_seldom_synced_loses_more(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed.disk_log.cache_clear()
    monkeypatch.setattr(record_file, "_FSYNC_S", 0.2)
    verdicts = [replace(verdict, missed="") for verdict in cuts(store, tmp_path, "record")]
    undisturbed.disk_log.cache_clear()
    assert not next(check for check in kill_checks(verdicts) if check.name == "kills.lost").ok


def test_the_same_kill_is_the_same_again() -> None:
    assert Kill(5, 2).rng.random() == Kill(5, 2).rng.random() != random.Random("2 6").random()
    assert [Kill(number, 0).work for number in range(5)] == [*WORKS, "record"]


def test_cells_of_the_disk_are_no_boards() -> None:
    options = parser().parse_args(["--cell", "rx.drop@RUNNING"])
    assert [cell.id for cell in cells_of(options)] == ["rx.drop@RUNNING"]
