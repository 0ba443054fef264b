"""Power fails at any moment of a flash: the board starts a whole image and says which."""

import json
import shutil
from pathlib import Path

import pytest

from hil_tests.flash_helpers import CONFIG, FailingFiles, PowerCut, boot, changed_firmware, fresh_board
from jointbench.bench.flash import Image, build_image
from jointbench.bench.flash.board_files import FolderFiles
from jointbench.bench.flash.plan import carry_out, plan_flash
from jointbench.bench.flash.slots import read_slots
from jointbench.errors import FlashFailed


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """Three images, oldest first."""
    folder = tmp_path_factory.mktemp("firmware")
    return [
        build_image("unix", firmware=changed_firmware(folder / "oldest", "oldest = 1")),
        build_image("unix"),
        build_image("unix", firmware=changed_firmware(folder / "new", "new = 1")),
    ]


def flash(files: FolderFiles, image: Image) -> None:
    carry_out(plan_flash(files, image, {"version": 1, **CONFIG}).steps, files)


@pytest.fixture(scope="module")
def used_board(tmp_path_factory: pytest.TempPathFactory, images: list[Image]) -> Path:
    """A board that was flashed before: the current image in slot b, confirmed, an older one in slot a."""
    folder = tmp_path_factory.mktemp("used") / "board"
    files = fresh_board(folder, images[0])
    flash(files, images[1])
    files.write("slot.json", json.dumps({"slot": "b"}).encode())
    return folder


def kept_slot(folder: Path) -> str:
    """The slot that the host takes for the one to be left alone, empty for none."""
    kept = read_slots(FolderFiles(folder)).kept
    return kept.name if kept else ""


def changes_of(used_board: Path, image: Image, folder: Path) -> list[str]:
    """The changes of a flash that nothing disturbs."""
    shutil.copytree(used_board, folder)
    files = FailingFiles(folder, 0, "")
    flash(files, image)
    return files.changes


@pytest.mark.slow
@pytest.mark.parametrize("how", ["before", "half", "empty", "after"])
def test_power_cut_at_every_change(used_board: Path, images: list[Image], tmp_path: Path, how: str) -> None:
    _, current, new = images
    changes = changes_of(used_board, new, tmp_path / "whole")
    assert len(changes) > 40  # a slot emptied and filled
    trials = 0
    for number, change in enumerate(changes, start=1):
        if how in ("half", "empty") and not change.startswith("write") and "slot.json" not in change:
            continue  # nothing is between before and after
        folder = tmp_path / f"{number}"
        shutil.copytree(used_board, folder)
        with pytest.raises(PowerCut):
            flash(FailingFiles(folder, number, how), new)
        first, second = boot(folder), boot(folder)
        assert (first.status, second.status) == (0, 0), (change, first.console)
        if first.on_trial:  # the last rename has happened: the new image is tried once
            assert (first.slot, first.image) == ("a", new.sha256)
            trials += 1
        else:
            assert (first.slot, first.image) == ("b", current.sha256), (change, first.console)
        assert (second.slot, second.image, second.on_trial) == ("b", current.sha256, False), (change, second.console)
        assert kept_slot(folder) == "b"
        shutil.rmtree(folder)
    assert trials == {"before": 0, "half": 1, "empty": 0, "after": 1}[how]


def test_after_a_cut_the_next_flash_goes_through(used_board: Path, images: list[Image], tmp_path: Path) -> None:
    new = images[2]
    shutil.copytree(used_board, tmp_path / "board")
    with pytest.raises(PowerCut):
        flash(FailingFiles(tmp_path / "board", 30, "half"), new)
    flash(FolderFiles(tmp_path / "board"), new)
    said = boot(tmp_path / "board")
    assert (said.slot, said.image, said.on_trial) == ("a", new.sha256, True)


@pytest.mark.parametrize(
    ("pointer", "draft", "slot", "on_trial"),
    [
        ('{"slot": "b", "trial": "a"}', None, "a", True),
        ('{"slot": "b", "trial": "a"}', '{"slot": "b', "a", True),  # cut while the loader struck the trial out
        (None, '{"slot": "b"}', "b", False),  # cut within the loader's rename, on FAT
        (None, '{"slot": "b", "trial": "a"}', "a", True),  # cut within the host's rename, on FAT
        ('{"slot": "b"}', '{"slot": "a', "b", False),  # cut while the board confirmed
        ('{"slot": "b"}', '{"slot": "b", "trial": "a"}', "b", False),  # cut before the host's rename
        (None, None, "a", False),
        ("", None, "a", False),
        ("[1]", None, "a", False),
        ('{"slot": 7, "trial": {}}', None, "a", False),
        ('{"slot": "/", "trial": ".."}', None, "a", False),
    ],
)
def test_pointers_of_every_kind(
    used_board: Path, tmp_path: Path, pointer: str | None, draft: str | None, slot: str, on_trial: bool
) -> None:
    folder = tmp_path / "board"
    shutil.copytree(used_board, folder)
    for name, text in (("slot.json", pointer), ("slot.new", draft)):
        (folder / name).unlink(missing_ok=True)
        if text is not None:
            (folder / name).write_text(text)
    slots = read_slots(FolderFiles(folder))
    said = boot(folder)
    assert (said.status, said.slot, said.on_trial) == (0, slot, on_trial), said.console
    assert slot == (slots.trial or (slots.kept and slots.kept.name))  # the host reads it as the board does
    assert boot(folder).on_trial is False


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "manifest", "empty manifest", "image", "firmware"])
def test_a_damaged_slot_is_not_started(used_board: Path, images: list[Image], tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "board"
    shutil.copytree(used_board, folder)
    for slot in ("b", "a"):
        _damage(folder / slot, damage)
        said = boot(folder)
        assert said.status == 0
        assert f"slot {slot} is not used: " in said.console
        if slot == "b":
            assert (said.slot, said.image) == ("a", images[0].sha256)
            assert kept_slot(folder) == "a"
        else:
            assert said.slot == ""
            assert "neither slot holds a whole image; put one there with `jointbench flash`" in said.console
            assert kept_slot(folder) == ""


def _damage(slot: Path, damage: str) -> None:
    victim, manifest = slot / "jointboard" / "tick.py", slot / "manifest.json"
    content = bytearray(victim.read_bytes())
    values = json.loads(manifest.read_text())
    match damage:
        case "flip":
            content[len(content) // 2] ^= 1
            victim.write_bytes(content)
        case "cut":
            victim.write_bytes(content[:-1])
        case "remove":
            victim.unlink()
        case "manifest":
            manifest.write_text(manifest.read_text()[:-9])
        case "empty manifest":
            manifest.write_text("{}")
        case "image":
            manifest.write_text(json.dumps(values | {"image": values["image"][::-1]}))
        case _:
            manifest.write_text(json.dumps({key: value for key, value in values.items() if key != damage}))


def test_a_slot_that_ends_on_its_trial_asks_for_a_restart(
    used_board: Path, images: list[Image], tmp_path: Path
) -> None:
    folder = tmp_path / "board"
    shutil.copytree(used_board, folder)
    broken = build_image("unix", firmware=changed_firmware(tmp_path / "broken", "raise ValueError('no good')"))
    flash(FolderFiles(folder), broken)
    said = boot(folder)
    assert (said.status, said.image, said.on_trial) == (75, broken.sha256, True)
    assert "ValueError: no good" in said.console
    assert "slot a ended on its trial; the board starts again from the slot before" in said.console
    said = boot(folder)
    assert (said.status, said.image, said.on_trial) == (0, images[1].sha256, False)


def test_a_confirmed_slot_that_fails_leaves_the_prompt(used_board: Path, tmp_path: Path) -> None:
    folder = tmp_path / "board"
    shutil.copytree(used_board, folder)
    (folder / "config.json").write_text('{"node": 1, "uid": "00", "facts": {"no.such.fact": 1}}')
    said = boot(folder)
    assert (said.slot, said.status) == ("b", 1)  # no reset: it would only fail again, and again
    assert "fact 'no.such.fact' is none of" in said.console


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "its file system is full; remove what does not belong"),
        (OSError(5, "device disconnected"), "device disconnected"),  # its port was unplugged
    ],
)
def test_a_full_file_system_and_an_unplugged_port(
    used_board: Path, images: list[Image], tmp_path: Path, error: OSError, words: str
) -> None:
    changes = changes_of(used_board, images[2], tmp_path / "whole")
    for number in (1, 25, len(changes) - 1):
        folder = tmp_path / f"{number}"
        shutil.copytree(used_board, folder)
        files = FailingFiles(folder, number, "half", lambda: error)
        with pytest.raises(FlashFailed, match=rf"^step {number} of \d+, \w+ .*: .*{words}"):
            flash(files, images[2])
        assert boot(folder).image == images[1].sha256


def test_no_room_is_seen_before_anything_is_written(
    used_board: Path, images: list[Image], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(used_board, tmp_path / "board")
    files = FailingFiles(tmp_path / "board", 0, "")
    monkeypatch.setattr(FolderFiles, "free", lambda self: 16_384)
    with pytest.raises(FlashFailed, match=r"its file system is full: the image needs \d+ bytes, \d+ are free"):
        flash(files, build_image("unix", firmware=changed_firmware(tmp_path / "large", "'" + 60_000 * "x" + "'")))
    assert files.changes == []


def test_what_was_not_written_is_seen(used_board: Path, images: list[Image], tmp_path: Path) -> None:
    class Forgetful(FolderFiles):
        def write(self, path: str, content: bytes) -> None:
            super().write(path, content[:-1] + b"?" if path.endswith("app.py") else content)

    shutil.copytree(used_board, tmp_path / "board")
    with pytest.raises(FlashFailed, match=r"a/jointboard/app.py was written \(\w+\), but the board holds one"):
        flash(Forgetful(tmp_path / "board"), images[2])
    assert boot(tmp_path / "board").image == images[1].sha256
