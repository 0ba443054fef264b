"""What a disk may have after a power cut: all that it was asked to keep, and of the rest any part."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jointbench import files
from jointbench.files import keep_earlier, write_file
from jointbench.recording.run_directory import create_run_directory
from tools.faults.disk import WriteLog, contents

OLD, NEW = b"old" * 400, b"new" * 500


def logged(root: Path, act: Callable[[], object]) -> WriteLog:
    log = WriteLog(root)
    with log.noting():
        act()
    return log


def after_cuts(log: WriteLog, place: Path, tries: int = 20) -> list[dict[str, bytes]]:
    """What may be there after a cut before each event is over, some of the possibilities."""
    found: list[dict[str, bytes]] = []
    for at in range(len(log.events)):
        for seed in range(tries):
            cut = place / f"{at}-{seed}"
            log.cut(at, random.Random(seed), cut)
            found.append({name: content for name, content in contents(cut).items() if not name.startswith(".")})
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "model.json").write_bytes(OLD)
    return folder


def test_a_file_that_is_kept_is_the_old_or_the_new_one(root: Path, tmp_path: Path) -> None:
    found = after_cuts(logged(root, lambda: write_file(root / "model.json", NEW)), tmp_path / "cuts")
    assert {content for each in found for content in each.values()} == {OLD, NEW}
    assert all(set(each) == {"model.json"} for each in found)


@pytest.mark.parametrize("missing", ["sync", "rename"])
def test_a_file_that_is_not_synced_or_not_renamed_is_torn(
    root: Path, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "sync":
        monkeypatch.setattr(files, "sync", lambda path: None)
        log = logged(root, lambda: write_file(root / "model.json", NEW))
    else:
        log = logged(root, lambda: (root / "model.json").write_bytes(NEW))
    found = after_cuts(log, tmp_path / "cuts")
    assert any(each.get("model.json") not in (OLD, NEW) for each in found)


def test_a_file_that_is_appended_to_keeps_what_was_synced(root: Path, tmp_path: Path) -> None:
    def append() -> None:
        with (root / "model.json").open("ab") as file:
            for _ in range(3):
                file.write(NEW)
                file.flush()
                os.fsync(file.fileno())

    found = after_cuts(logged(root, append), tmp_path / "cuts")
    assert all(each["model.json"].startswith(OLD) for each in found)
    assert len({each["model.json"] for each in found}) > 10


def test_an_earlier_file_is_never_lost(root: Path, tmp_path: Path) -> None:
    """By its own name or by the one beside it."""

    def keep_and_write() -> None:
        keep_earlier(root / "model.json")
        write_file(root / "model.json", NEW)

    found = after_cuts(logged(root, keep_and_write), tmp_path / "cuts", tries=60)
    assert all(OLD in each.values() for each in found)
    assert all(content in (OLD, NEW) for each in found for content in each.values())


def test_a_run_in_a_folder_that_was_not_there_is_there(root: Path, tmp_path: Path) -> None:
    """All of it, as soon as anything may be recorded into it."""

    def create() -> None:
        create_run_directory(root / "runs" / "of today" / "first", {"robot": "cobot6"}, {"frames.bin": b""})
        (root / "frame").mkdir()

    log = logged(root, create)
    (at,) = (at for at, event in enumerate(log.events) if event.place == "frame")
    for seed in range(50):
        log.cut(at, random.Random(seed), tmp_path / f"{seed}")
        run = tmp_path / f"{seed}" / "runs" / "of today" / "first"
        assert {path.name for path in run.iterdir()} == {"frames.bin", "run.toml", "robot.toml"}
