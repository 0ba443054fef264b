"""`jointbench flash` on benches of emulated boards: what runs afterwards, seen by HELLO."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.flash_helpers import (
    CONFIG,
    FailingFiles,
    PowerCut,
    boot,
    changed_firmware,
    connected,
    files_at_rest,
    flash_of,
    fresh_board,
)
from hil_tests.link_helpers import COBOT
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.serial_link import Port
from jointbench.bench import open_bench, read_bench_file
from jointbench.bench.flash import FlashOptions, Image, ask_boards, build_image, flash_board
from jointbench.bench.flash.board_files import FolderFiles, ReplFiles
from jointbench.bench.flash.plan import carry_out, plan_flash
from jointbench.bench.flash.slots import read_json, read_slots
from jointbench.bench.port_lock import PortLock
from jointbench.cli.main import main
from jointbench.errors import BoardRefused, FlashError, PortInUse
from jointwire import BY_NAME

KINDS = {"unix:": "unix", "qemu:": "mps2"}


@pytest.fixture
def kind(emulator: str) -> str:
    return KINDS[emulator]


@pytest.fixture
def bench(tmp_path: Path, emulator: str) -> Iterator[Path]:
    """A live bench of two boards."""
    with virtual_bench(write_bench_file(tmp_path, None, None), plant="ideal", out=tmp_path / "sim") as live:
        yield live


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    return changed_firmware(tmp_path / "changed", "changed = 1")


def running(live: Path) -> dict[str, str]:
    """Image of each board, as its HELLO says."""
    file = read_bench_file(live)
    said = ask_boards(file, [board.joint for board in file.boards])
    return {joint: identity.image_sha256 if identity else "" for joint, identity in said.items()}


def flash(live: Path, tmp_path: Path, *options: object) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and the report of each board."""
    out = tmp_path / "flash.json"
    out.unlink(missing_ok=True)
    words = ["flash", str(live), "--backup", str(tmp_path / "backup"), "--json", str(out), *map(str, options)]
    code = main(words)
    return code, json.loads(out.read_text())["boards"] if out.exists() else []


@pytest.mark.both_boards
@pytest.mark.slow
def test_a_board_with_two_motors_is_flashed_once(kind: str, changed: Path, tmp_path: Path) -> None:
    text = f'version = 1\nname = "test"\nrobot = "cobot6"\nplant = {json.dumps(str(COBOT6_PLANT))}\n'
    text += '[[board]]\nnodes = [1, 2]\njoints = ["j1", "j2"]\nurl = "unix:"\n'
    text += '[[board]]\nnode = 3\njoint = "j3"\nurl = "unix:"\n'
    (tmp_path / "pair.toml").write_text(text)
    fresh, image = build_image(kind, compiled=False).sha256, build_image(kind, firmware=changed).sha256
    with virtual_bench(tmp_path / "pair.toml", plant="ideal", out=tmp_path / "sim") as live:
        code, (report,) = flash(live, tmp_path, "--firmware", changed, "--joint", "j2")
        assert (code, report["joint"], report["node"], report["outcome"]) == (0, "j1, j2", 1, "updated")
        kept = json.loads((Path(report["backup"]) / "config.json").read_text())
        assert (kept["facts"]["board.node"], kept["partner"]["facts"]["board.node"]) == (1, 2)
        assert running(live) == {"j1": image, "j2": image, "j3": fresh}
        code, reports = flash(live, tmp_path, "--firmware", changed)
        assert [(each["joint"], each["outcome"]) for each in reports] == [("j1, j2", "already"), ("j3", "updated")]


@pytest.mark.both_boards
def test_a_bench_is_flashed_board_by_board(bench: Path, kind: str, changed: Path, tmp_path: Path) -> None:
    fresh, image = build_image(kind, compiled=False), build_image(kind, firmware=changed)
    assert set(running(bench).values()) == {fresh.sha256}
    code, reports = flash(bench, tmp_path, "--firmware", changed)
    assert code == 0
    for report, joint in zip(reports, ("j1", "j2"), strict=True):
        assert (report["joint"], report["outcome"], report["slot"], report["ok"]) == (joint, "updated", "b", True)
        assert (report["before"], report["image"], report["board"]) == (fresh.sha256, image.sha256, kind)
        assert (report["files"], report["size"]) == (len(image.files), image.size)
        kept = json.loads((Path(report["backup"]) / "config.json").read_text())
        assert kept["facts"]["board.node"] == report["node"]
        assert report["uid"] in report["backup"]
    assert set(running(bench).values()) == {image.sha256}
    again, reports = flash(bench, tmp_path, "--firmware", changed)
    assert (again, [report["outcome"] for report in reports]) == (0, ["already"] * 2)
    # And back: into the slot that was left.
    code, reports = flash(bench, tmp_path, "--joint", "j2")
    assert (code, [(report["joint"], report["slot"]) for report in reports]) == (0, [("j2", "a")])
    assert running(bench) == {"j1": image.sha256, "j2": build_image(kind).sha256}


def test_a_dry_run_writes_nothing(bench: Path, changed: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    before = flash_of(bench, "j1")
    code, (report, _) = flash(bench, tmp_path, "--firmware", changed, "--dry-run")
    assert (code, report["outcome"], report["backup"]) == (0, "planned", None)
    assert report["steps"][-1] == "rename slot.new to slot.json"
    assert "  write b/jointboard/app." in capsys.readouterr().out
    assert flash_of(bench, "j1") == before
    assert not (tmp_path / "backup").exists()


def test_a_dry_run_says_what_the_real_one_then_does(bench: Path, changed: Path, tmp_path: Path) -> None:
    """Of a board that runs the image already, too: nothing is done to it."""
    same = ("joint", "slot", "before", "image", "files", "size", "steps", "notes")
    one = ("--firmware", changed, "--joint", "j1")
    _, (planned,) = flash(bench, tmp_path, *one, "--dry-run")
    _, (done,) = flash(bench, tmp_path, *one)
    assert (planned["outcome"], done["outcome"]) == ("planned", "updated")
    assert [planned[name] for name in same] == [done[name] for name in same]
    _, (planned,) = flash(bench, tmp_path, *one, "--dry-run")
    _, (done,) = flash(bench, tmp_path, *one)
    assert planned == done | {"backup": None}
    assert planned["outcome"] == "already"


@pytest.mark.slow
@pytest.mark.both_boards
@pytest.mark.parametrize(
    "broken", ["raise ValueError('no good')", "while True:\n    pass"], ids=["raises at import", "hangs before HELLO"]
)
def test_an_image_that_does_not_answer_is_not_kept(bench: Path, kind: str, tmp_path: Path, broken: str) -> None:
    before = running(bench)
    code, reports = flash(bench, tmp_path, "--firmware", changed_firmware(tmp_path / "broken", broken))
    assert (code, [report["outcome"] for report in reports]) == (1, ["reverted"])  # and the second is left alone
    why = {"unix": "it ended with ValueError: no good" if "raise" in broken else "it hung"}
    assert why.get(kind, "trial.log on the board says why") in reports[0]["notes"][-1]
    assert running(bench) == before


@pytest.mark.both_boards
def test_another_image_than_the_one_that_runs_is_not_confirmed(bench: Path) -> None:
    with connected(read_bench_file(bench)) as connections:
        connections.boards["j1"].hello()
        with pytest.raises(BoardRefused, match="refused CONFIRM: it runs another image than that"):
            connections.boards["j1"].client.confirm(bytes(32))


def write_slot(live: Path, kind: str, changed: Path) -> str:
    """All that a flash writes, and a reset; return the image that then runs, on trial."""
    image = build_image(kind, firmware=changed)
    with files_at_rest(live, "j1") as files:
        carry_out(plan_flash(files, image, read_json(files, "config.json") or {}).steps, files)
    return image.sha256


def test_an_image_that_nobody_confirms_runs_once(bench: Path, kind: str, changed: Path) -> None:
    """As when the host loses its power between reset and CONFIRM."""
    before = running(bench)
    image = write_slot(bench, kind, changed)
    assert running(bench) == before | {"j1": image} != before
    for _ in range(2):
        with connected(read_bench_file(bench)) as connections:
            connections.restart(1)
        assert running(bench) == before


@pytest.mark.slow
def test_a_trial_that_nobody_confirms_ends_by_itself(bench: Path, kind: str, changed: Path) -> None:
    """No reset and no power cycle is needed: a minute without CONFIRM, and the board starts the image before."""
    before = running(bench)
    image = write_slot(bench, kind, changed)
    with connected(read_bench_file(bench)) as connections:
        clock = connections.clock
        assert connections.boards["j1"].hello().image_sha256 == image
        end_us = clock.now_us() + 62_000_000
        while clock.now_us() < end_us:
            clock.wait(1_000_000)
    assert running(bench) == before


def test_calibration_stays_and_is_nobody_elses(bench: Path, changed: Path, tmp_path: Path) -> None:
    with connected(read_bench_file(bench)) as connections:
        connections.boards["j1"].hello()
        connections.boards["j1"].write_register("torque.zero", 12)
        connections.boards["j1"].save()
        connections.boards["j2"].hello()
        other = connections.boards["j2"].read_registers().registers["torque.zero"]
        assert other != 12
    saved = flash_of(bench, "j1")["settings.json"]
    code, (first, _) = flash(bench, tmp_path, "--firmware", changed)
    assert code == 0
    assert flash_of(bench, "j1")["settings.json"] == saved
    assert (Path(first["backup"]) / "settings.json").read_bytes() == saved
    assert "settings.json" not in flash_of(bench, "j2")
    with connected(read_bench_file(bench)) as connections:
        for joint, zero in (("j1", 12), ("j2", other)):
            connections.boards[joint].hello()
            assert connections.boards[joint].read_registers().registers["torque.zero"] == zero


@pytest.mark.both_boards
def test_a_board_of_another_kind_is_refused(
    bench: Path, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = running(bench)
    code, reports = flash(bench, tmp_path, "--board", "rp2")
    assert (code, reports) == (2, [])
    assert f"j1 (node 1): it is a board of kind '{kind}', not 'rp2'; nothing was written" in capsys.readouterr().err
    assert running(bench) == before


def test_a_full_file_system_leaves_the_board_as_it_was(
    bench: Path, changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for files in (FolderFiles, ReplFiles):
        monkeypatch.setattr(files, "free", lambda self: 4096)
    before = running(bench)
    code, _ = flash(bench, tmp_path, "--firmware", changed)
    said = capsys.readouterr().err
    assert code == 2
    assert "j1 (node 1): its file system is full: the image needs" in said
    assert f"It runs image {before['j1'][:16]} now" in said
    assert running(bench) == before


def change_config(live: Path, joint: str, **changes: Any) -> None:
    with files_at_rest(live, joint) as files:
        config = read_json(files, "config.json") or {}
        facts = config["facts"] | changes.pop("facts", {})
        files.write("config.json", json.dumps(config | {"facts": facts} | changes).encode())


def test_a_fact_that_is_no_register_is_refused(bench: Path, changed: Path, tmp_path: Path) -> None:
    change_config(bench, "j2", facts={"no.such": 1})
    file = read_bench_file(bench)
    said = ask_boards(file, ["j2"])
    options = FlashOptions(firmware=changed, backups=tmp_path / "backup")
    with pytest.raises(FlashError, match=r"^j2 \(node 2\): its config.json: fact 'no.such' is none of this firmware's"):
        flash_board(file, file.boards[1:], said["j2"], options)


def test_what_the_tool_does_not_know_is_kept_and_told(bench: Path, changed: Path, tmp_path: Path) -> None:
    change_config(bench, "j1", note="left hand")
    code, (report,) = flash(bench, tmp_path, "--firmware", changed, "--joint", "j1")
    assert (code, report["notes"]) == (0, ["config.json keeps note, which this firmware does not know"])
    assert json.loads(flash_of(bench, "j1")["config.json"])["note"] == "left hand"


def test_an_armed_board_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with virtual_bench(COBOT, plant="ideal", realtime=True, out=tmp_path / "sim") as live:
        bench = open_bench(live)
        bench.connect()
        bench.configure()
        board = bench.boards[2]
        board.write_register("limit.link_timeout", BY_NAME["limit.link_timeout"].maximum)
        position = round(bench.positions()[2] * bench.facts[2].ratio * bench.facts[2].motor_counts / (2.0 * np.pi))
        board.upload(np.array([[position, 0]] * 3, dtype=np.int32), 1)
        board.arm()
        bench._connections.close()  # its program dies; the board holds its motor until it misses the link
        assert main(["flash", str(live)]) == 2
        assert "j3 (node 3) is ARMED and may move; stop it first. No board was written to" in capsys.readouterr().err


@pytest.mark.unix_only("a QEMU board can be flashed by the wall clock: test_flash_qemu.py")
def test_a_bench_by_the_wall_clock_says_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with virtual_bench(write_bench_file(tmp_path, None), realtime=True, out=tmp_path / "sim") as live:
        assert main(["flash", str(live)]) == 2
        assert "j1 (node 1): it is emulated and its bench runs by the wall clock" in capsys.readouterr().err


def test_a_joint_that_is_not_there(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flash", str(bench), "--joint", "elbow"]) == 2
    assert "has no board for joint 'elbow'; its joints: j1, j2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--config", "none.json", "j1 (node 1): configuration none.json cannot be read"),
        ("--firmware", "nowhere", "j1 (node 1): no firmware at nowhere"),
    ],
)
def test_what_is_named_wrongly_ends_no_program(
    bench: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    value: str,
    words: str,
) -> None:
    ended: list[object] = []
    monkeypatch.setattr("jointbench.bench.flash.update._end_program", lambda *line: ended.append(line))
    assert main(["flash", str(bench), "--joint", "j1", option, value]) == 2
    assert words in capsys.readouterr().err
    assert ended == []


@pytest.mark.parametrize(
    ("option", "words"),
    [("--node=300", "--node is 300; it must be from 1 to 254"), ("--baud=0", "--baud is 0; it must")],
)
def test_no_such_node_or_speed(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, words: str) -> None:
    assert main(["flash", str(tmp_path / "ttyACM9"), option]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_port_at_which_nothing_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither our firmware nor an interpreter: no word on what it runs, or ran."""
    assert main(["flash", "loop://"]) == 2
    said = capsys.readouterr().err
    assert "no board answers as node 1 at 921600 baud; is that its number and speed" in said
    assert "no MicroPython prompt answers at loop://" in said
    assert "image" not in said


def test_a_port_with_nothing_behind_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flash", str(tmp_path / "ttyACM9"), "--board", "rp2"]) == 2
    said = capsys.readouterr().err
    assert "cannot be opened" in said
    assert "Serial ports of this machine: " in said


def test_a_port_that_another_program_has_is_left_to_it() -> None:
    refused = pytest.raises(PortInUse, match=r"in use: .* has it since .*; end that first")
    with contextlib.closing(Port()) as port, contextlib.closing(PortLock(port.path)), refused:
        ReplFiles(port.path, 115200)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """Three images, oldest first."""
    folder = tmp_path_factory.mktemp("firmware")
    return [
        build_image("unix", firmware=changed_firmware(folder / "oldest", "oldest = 1")),
        build_image("unix"),
        build_image("unix", firmware=changed_firmware(folder / "new", "new = 1")),
    ]


def flash_image(files: FolderFiles, image: Image) -> None:
    carry_out(plan_flash(files, image, {"version": 1, **CONFIG}).steps, files)


@pytest.fixture(scope="module")
def used_board(tmp_path_factory: pytest.TempPathFactory, images: list[Image]) -> Path:
    """A board that was flashed before: the current image in slot b, confirmed, an older one in slot a."""
    folder = tmp_path_factory.mktemp("used") / "board"
    files = fresh_board(folder, images[0])
    flash_image(files, images[1])
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
    flash_image(files, image)
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
            flash_image(FailingFiles(folder, number, how), new)
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
        flash_image(FailingFiles(tmp_path / "board", 30, "half"), new)
    flash_image(FolderFiles(tmp_path / "board"), new)
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
    flash_image(FolderFiles(folder), broken)
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
        with pytest.raises(FlashError, match=rf"^step {number} of \d+, \w+ .*: .*{words}"):
            flash_image(files, images[2])
        assert boot(folder).image == images[1].sha256


def test_no_room_is_seen_before_anything_is_written(
    used_board: Path, images: list[Image], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(used_board, tmp_path / "board")
    files = FailingFiles(tmp_path / "board", 0, "")
    monkeypatch.setattr(FolderFiles, "free", lambda self: 16_384)
    with pytest.raises(FlashError, match=r"its file system is full: the image needs \d+ bytes, \d+ are free"):
        flash_image(files, build_image("unix", firmware=changed_firmware(tmp_path / "large", "'" + 60_000 * "x" + "'")))
    assert files.changes == []


def test_what_was_not_written_is_seen(used_board: Path, images: list[Image], tmp_path: Path) -> None:
    class Forgetful(FolderFiles):
        def write(self, path: str, content: bytes) -> None:
            super().write(path, content[:-1] + b"?" if path.endswith("app.py") else content)

    shutil.copytree(used_board, tmp_path / "board")
    with pytest.raises(FlashError, match=r"a/jointboard/app.py was written \(\w+\), but the board holds one"):
        flash_image(Forgetful(tmp_path / "board"), images[2])
    assert boot(tmp_path / "board").image == images[1].sha256
