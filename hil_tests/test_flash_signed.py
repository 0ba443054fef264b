"""Signed images: what a board with a key starts, how it gets one and another, and what never shows."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import read_bench_file
from jointbench.bench.flash import Image, ask_boards, build_image
from jointbench.bench.flash.board_files import FolderFiles
from jointbench.bench.flash.image import Key, Keys, read_key
from jointbench.bench.flash.plan import Write, carry_out, plan_flash
from jointbench.bench.flash.slots import read_json
from jointbench.cli.main import main
from jointbench.errors import FlashError

KINDS = {"unix:": "unix", "qemu:": "mps2"}
FIRST, SECOND = Key(bytes(range(32))), Key(bytes(range(100, 132)))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Image, Image]:
    """The current one and a newer."""
    folder = tmp_path_factory.mktemp("firmware")
    return build_image("unix"), build_image("unix", firmware=changed_firmware(folder / "new", "new = 1"))


def flash(files: FolderFiles, image: Image, keys: Keys) -> None:
    carry_out(plan_flash(files, image, {"version": 1, **CONFIG}, keys=keys).steps, files)


@pytest.fixture
def board(tmp_path: Path, images: tuple[Image, Image]) -> Path:
    """A board with the first key: the current image in slot a, confirmed, a newer one in slot b; both signed by it."""
    folder = tmp_path / "board"
    flash(fresh_board(folder, images[0]), images[1], Keys(new=FIRST))
    (folder / "slot.json").write_text('{"slot": "a"}')
    return folder


def test_a_signed_slot_is_started_and_an_image_by_another_key_is_not(board: Path, images: tuple[Image, Image]) -> None:
    """HMAC-SHA-256 as Python's own library computes it, and the loader's on MicroPython."""
    assert boot(board).image == images[0].sha256
    (board / "slot.json").write_text('{"slot": "a", "trial": "b"}')
    (board / "b" / "manifest.hmac").write_bytes(Keys(new=SECOND).signatures(images[1].manifest))
    said = boot(board)
    assert (said.slot, said.image, said.status) == ("a", images[0].sha256, 0)
    assert "slot b is not used: its signature is not of this board's key" in said.console


def spoil(board: Path, how: str) -> str:
    """Spoil slot a, or the key; what the loader then says."""
    slot, signatures = board / "a", board / "a" / "manifest.hmac"
    match how:
        case "unsigned":
            signatures.unlink()
            return "it is not signed"
        case "another manifest":  # whole by itself: every hash fits
            values = json.loads((slot / "manifest.json").read_text())
            (slot / "manifest.json").write_text(json.dumps(values | {"firmware": "9.9.9"}))
            return "its signature is not of this board's key"
        case "half a signature":
            signatures.write_bytes(signatures.read_bytes()[:40])
            return "its signature is not of this board's key"
        case "no signature":
            signatures.write_bytes(b"")
            return "it is not signed"
        case "a module more":
            (slot / "jointboard" / "more.mpy").write_bytes(b"M")
            return "it holds modules its manifest does not name"
        case _:
            name = slot / "jointboard" / "app.py"
            name.write_bytes(name.read_bytes() + b"#")
            return "jointboard/app.py is not what its manifest says"


@pytest.mark.parametrize(
    "how", ["unsigned", "another manifest", "half a signature", "no signature", "a module more", "another module"]
)
def test_a_slot_whose_signature_does_not_fit_gives_way_to_the_other(
    board: Path, images: tuple[Image, Image], how: str
) -> None:
    words = spoil(board, how)
    said = boot(board)
    assert (said.slot, said.image, said.status) == ("b", images[1].sha256, 0), said.console
    assert f"slot a is not used: {words}" in said.console
    (board / "b" / "manifest.hmac").unlink()
    said = boot(board)
    assert said.slot == ""
    assert "neither slot holds a whole image" in said.console


@pytest.mark.parametrize("content", [b"", b"00" * 32, FIRST.file[:40], FIRST.file[:71] + b"0\n", b"\xff" * 72])
def test_a_damaged_key_starts_nothing(board: Path, content: bytes) -> None:
    (board / "image.key").write_bytes(content)
    said = boot(board)
    assert said.slot == ""
    assert "this board's image.key is damaged, and nothing is started without it" in said.console


def test_without_a_key_signatures_are_not_looked_at(board: Path, images: tuple[Image, Image]) -> None:
    (board / "image.key").unlink()
    spoil(board, "no signature")
    assert boot(board).image == images[0].sha256


@pytest.mark.slow
@pytest.mark.parametrize("change", ["a first key", "another key"])
def test_power_cut_while_a_board_gets_a_key(
    board: Path, images: tuple[Image, Image], tmp_path: Path, change: str
) -> None:
    """From the slot's manifest on, within and after every change: the slot that was kept starts, or the trial."""
    keys = Keys(new=FIRST) if change == "a first key" else Keys(FIRST, SECOND)
    start = tmp_path / "start"
    if change == "a first key":
        fresh_board(start, images[0])
    else:
        shutil.copytree(board, start)
        shutil.rmtree(start / "b")
    trace = FailingFiles(shutil.copytree(start, tmp_path / "whole"), 0, "")
    flash(trace, images[1], keys)
    first = trace.changes.index("write b/manifest.json") + 1
    assert [name for name in trace.changes[first:] if "image" in name] == [
        "write image.new", "rename image.new image.key",
    ]  # fmt: skip
    for number in range(first, len(trace.changes) + 1):
        for how in ("half", "after"):
            folder = shutil.copytree(start, tmp_path / f"{number}{how}")
            with pytest.raises(PowerCut):
                flash(FailingFiles(folder, number, how), images[1], keys)
            said = boot(folder)
            whole = {("a", images[0].sha256), ("b", images[1].sha256)} if said.on_trial else {("a", images[0].sha256)}
            assert (said.slot, said.image) in whole, (trace.changes[number - 1], how, said.console)
            shutil.rmtree(folder)


def test_the_host_keeps_the_slot_that_the_board_starts(board: Path, images: tuple[Image, Image]) -> None:
    """By the key: a slot that is whole, confirmed and not signed is none."""
    spoil(board, "no signature")
    plan = plan_flash(FolderFiles(board), images[0], {"version": 1, **CONFIG}, keys=Keys(FIRST))
    assert (plan.slot.name, plan.slots.kept and plan.slots.kept.name) == ("a", "b")
    for keys, words in (
        (Keys(), "it starts signed images only; give its key"),
        (Keys(SECOND), "is not the key of this"),
    ):
        with pytest.raises(FlashError, match=words):
            plan_flash(FolderFiles(board), images[0], {"version": 1, **CONFIG}, keys=keys)


def test_a_loader_that_knows_no_signatures_is_given_no_key(tmp_path: Path, images: tuple[Image, Image]) -> None:
    files = fresh_board(tmp_path / "board", images[0])
    (tmp_path / "board" / "main.py").write_text("# an old one: slot.json\n")
    with pytest.raises(FlashError, match=r"its main.py is another release's and knows no signatures"):
        plan_flash(files, images[1], {"version": 1, **CONFIG}, keys=Keys(new=FIRST))


# On boards of both kinds, flashed as real ones are


@pytest.fixture
def bench(tmp_path: Path, emulator: str) -> Iterator[Path]:
    with virtual_bench(write_bench_file(tmp_path, None), plant="ideal", out=tmp_path / "sim") as live:
        yield live


def key_file(path: Path, digit: str) -> Path:
    path.write_text(digit * 64 + "\n")
    path.chmod(0o600)
    return path


def features(live: Path) -> tuple[str, tuple[str, ...]]:
    """Image and features of the board, as its HELLO says."""
    said = ask_boards(read_bench_file(live), ["j1"])["j1"]
    assert said
    return said.image_sha256, tuple(name for name in said.features if "SIGNED" in name or "REFUSED" in name)


@pytest.fixture
def command(bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """`jointbench flash`: the exit code, and all that it says."""

    def flash_bench(*words: object) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["flash", str(bench), "--backup", str(tmp_path / "backup"), *map(str, words)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return flash_bench


@pytest.mark.slow
@pytest.mark.both_boards
def test_the_loader_refuses_what_another_key_signed_and_hello_says_so(
    bench: Path, emulator: str, tmp_path: Path, command: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The key by the command; then a whole image for which a tool that does not ask has another key."""
    key = key_file(tmp_path / "first.key", "a")
    assert command("--new-key", key)[0] == 0
    fresh, marks = features(bench)
    assert marks == ("SIGNED_ONLY",)
    assert flash_of(bench, "j1")["image.key"].startswith(b"a" * 64)
    changed = build_image(KINDS[emulator], firmware=changed_firmware(tmp_path / "changed", "changed = 1"))
    with files_at_rest(bench, "j1") as files:
        config = read_json(files, "config.json") or {}
        plan = plan_flash(files, changed, config, keys=Keys(read_key(key)))
        forged = {f"{plan.slot.name}/manifest.hmac": Keys(SECOND).signatures(changed.manifest)}
        steps = [
            Write(step.path, forged[step.path]) if isinstance(step, Write) and step.path in forged else step
            for step in plan.steps
        ]
        assert steps != plan.steps
        carry_out(steps, files)
    assert features(bench) == (fresh, ("SIGNED_ONLY", "IMAGE_REFUSED"))
    assert main(["list", str(bench)]) == 1
    assert "its loader refused an image for its signature and runs the one before" in capsys.readouterr().out


@pytest.mark.slow
def test_a_board_with_a_key_takes_images_by_it_and_another_key(
    bench: Path, emulator: str, tmp_path: Path, command: Callable[..., tuple[int, str]]
) -> None:
    first, second = key_file(tmp_path / "first.key", "a"), key_file(tmp_path / "second.key", "b")
    changed = changed_firmware(tmp_path / "changed", "changed = 1")
    image = build_image(KINDS[emulator], firmware=changed).sha256
    steps: list[tuple[tuple[object, ...], int, str]] = [
        (("--new-key", first), 0, "runs the new image, confirmed"),
        # Without a key, and by another: refused before anything is written.
        (("--firmware", changed), 2, "it starts signed images only; give its key with --key FILE"),
        (("--firmware", changed, "--key", second), 2, "--key is not the key of this board"),
        (("--firmware", changed, "--key", first), 0, "runs the new image, confirmed"),
        # The key changes. What stays is signed by both, so it is the loader that refuses the old one.
        (("--firmware", changed, "--key", first, "--new-key", second), 0, "runs the new image, confirmed"),
        (("--key", first), 1, "its loader refused the new image for its signature"),
        (("--firmware", changed, "--key", second), 0, "runs this image already"),
    ]
    told = ""
    for words, code, expected in steps:
        found, said = command(*words)
        assert (found, expected in said) == (code, True), (words, said)
        told += said
    for _ in range(2):
        with connected(read_bench_file(bench)) as connections:
            connections.restart(1)
        assert features(bench) == (image, ("SIGNED_ONLY",))
    # The keys are on the board, in no word of the command and in no backup.
    assert flash_of(bench, "j1")["image.key"].startswith(b"b" * 64)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file())
    for digit in "ab":
        assert digit * 64 not in told
        assert digit.encode() * 64 not in kept


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "cannot be read: No such file or directory; make one: python -c"),
        ("a" * 63, 0o600, "has 63 characters; it must be 64 hexadecimal digits"),
        ("x" * 64, 0o600, "has 64 characters; it must be 64 hexadecimal digits"),
        ("é", 0o600, "has 0 characters; it must be"),
        ("a" * 64, 0o644, "can be read by others (mode 644); chmod 600"),
    ],
)
def test_a_key_that_is_none(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, mode: int, words: str
) -> None:
    path = tmp_path / "bad.key"
    if content is not None:
        path.write_text(content, encoding="utf-8")
        path.chmod(mode)
    assert main(["flash", str(bench), "--key", str(path)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert content is None or content not in said


def test_a_key_shows_itself_nowhere() -> None:
    assert "0001020304" not in repr(Keys(FIRST, SECOND)) + str(FIRST) + repr(FIRST)
