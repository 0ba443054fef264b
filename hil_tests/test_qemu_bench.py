"""A bench of QEMU boards: the same motion as on unix boards, to the last bit, and mpremote at the prompt."""

import dataclasses
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, record_wave
from hil_tests.need_qemu import need_qemu
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.start import BOARD_NAME
from jointbench.bench import open_bench
from jointbench.recording import Run
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR, Frame, FrameReader, MessageType, encode_frame


@pytest.fixture(autouse=True)
def qemu() -> None:
    need_qemu()


def recorded(folder: Path, board: str) -> Run:
    """A short motion of six boards, on joints whose seed is always the same."""
    with virtual_bench(COBOT, seed=6, out=folder / "sim", board=board) as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        return record_wave(bench, folder / "run")


def ask(client: RawClient, kind: MessageType, **fields: Any) -> Frame:
    """Send the first board a request, and return its answer."""
    client.write(1, encode_frame(kind, 1, 1, **fields))
    return answer(client.pass_time(50_000)[1])


def answer(data: bytes) -> Frame:
    """The first answer among bytes; a console's words may follow it."""
    for chunk in FrameReader().feed(data):
        if isinstance(chunk.content, Frame) and chunk.content.type >= MessageType.ACK:
            return chunk.content
    raise AssertionError(f"no answer in {data!r}")


def hello(client: RawClient) -> Any:
    """What the first board says of itself."""
    return ask(client, MessageType.HELLO, major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR).body


def mpremote(port: str, *words: str) -> str:
    """What mpremote prints, at a board's port."""
    command = [sys.executable, "-m", "mpremote", "connect", port, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_six_boards_record_the_motion_that_unix_boards_record(tmp_path: Path) -> None:
    """A closed loop of two kinds of processors: a single bit that they compute differently would grow."""
    ours, theirs = (recorded(tmp_path / name, f"{name}:") for name in ("qemu", "unix"))
    for run in (ours, theirs):
        assert run.ledger is not None
        assert run.ledger.samples_lost == 0, run.ledger.text()
    for field in dataclasses.fields(ours.samples):
        one, other = (getattr(run.samples, field.name) for run in (ours, theirs))
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, field.name)
        else:
            assert one == other, field.name
    playing = ours.samples.play_tick >= 0
    assert playing.sum() == 1024
    assert np.ptp(ours.samples.motor_position[playing], axis=0).min() > 0.09


@pytest.mark.parametrize("lines", [120, pytest.param(2000, marks=pytest.mark.slow)])
def test_mpremote_finds_the_raw_repl_where_the_boards_line_was(tmp_path: Path, lines: int) -> None:
    """It copies a file of some lines, and of 70 kB: more than a terminal holds at once."""
    source = tmp_path / "module.py"
    source.write_text("ANSWER = 42\n" + lines * "# a line of thirty-five letters ...\n")
    with virtual_bench(write_bench_file(tmp_path, None), out=tmp_path / "sim", board="qemu:") as live:
        with RawClient(live) as client:
            port = client.bench["board"][0]["url"]
            assert hello(client).reset_cause == 1  # power on
            assert ask(client, MessageType.REPL).type is MessageType.ACK
            assert client.dead == {}
        assert mpremote(port, "eval", "6*7").strip() == "42"
        mpremote(port, "fs", "cp", str(source), ":module.py")
        assert mpremote(port, "fs", "cat", ":module.py") == source.read_text()
        assert mpremote(port, "exec", "import module; print(module.ANSWER)").strip() == "42"


def test_mpremote_resets_the_board_at_the_prompt(tmp_path: Path) -> None:
    with virtual_bench(write_bench_file(tmp_path, None), out=tmp_path / "sim", board="qemu:") as live:
        with RawClient(live) as client:
            port = client.bench["board"][0]["url"]
            assert ask(client, MessageType.REPL).type is MessageType.ACK
        mpremote(port, "reset")
        with RawClient(live) as client:  # what it finds is a board that has started again, at its first tick
            body = hello(client)
            assert body.reset_cause == 2
            assert client.dead == {}
            assert ask(client, MessageType.REPL).type is MessageType.ACK
        mpremote(port, "soft-reset")  # into the raw REPL, as on any board: no program runs
        assert mpremote(port, "eval", "1+1").strip() == "2"


def test_by_the_wall_clock_mpremote_needs_no_client_either(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("print('the program ends')\n")
    bench = write_bench_file(tmp_path, str(tmp_path / "ends.py"))
    with virtual_bench(bench, realtime=True, out=tmp_path / "sim", board="qemu:") as live:
        port = tomllib.loads(live.read_text(encoding="utf-8"))["board"][0]["url"]
        assert mpremote(port, "eval", "6*7").strip() == "42"


def test_an_emulator_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    message = "board = 'qmu:' is no emulator of boards; there are 'unix:', 'qemu:mps2-an385', 'qemu:'"
    with pytest.raises(BenchError, match=message), virtual_bench(COBOT, out=tmp_path, board="qmu:"):
        pass


def test_a_bench_without_qemu_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOINTBENCH_QEMU_FIRMWARE", str(tmp_path / "nowhere"))
    message = r"no image of MicroPython for it at .*nowhere; ./run setup fetches .* or set JOINTBENCH_QEMU_FIRMWARE"
    with pytest.raises(BenchError, match=message), virtual_bench(COBOT, out=tmp_path / "sim", board="qemu:"):
        pass


def test_boards_of_both_kinds_sit_on_one_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BOARD_NAME, raising=False)  # --board would put all boards on one kind
    bench = write_bench_file(tmp_path, None, None)
    bench.write_text(bench.read_text().replace('joint = "j2"\nurl = "unix:"', 'joint = "j2"\nurl = "qemu:"'))
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        for node in (1, 2):
            client.write(node, encode_frame(MessageType.HELLO, node, 1, major=1, minor=0))
        received = client.pass_time(5_000)
    assert [answer(received[node]).body.board.rstrip(b"\0") for node in (1, 2)] == [b"unix", b"mps2"]
