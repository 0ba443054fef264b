"""QEMU boards: mailbox, prompt and resets, their stopwatch, and a bench of them beside unix boards."""

import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, record_wave
from hil_tests.need_qemu import need_qemu
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import PROGRAMS, is_running, write_bench_file
from hil_tests.virtual_bench import BenchError, qemu, qemu_board, virtual_bench
from hil_tests.virtual_bench.bench_file import QEMU, BoardEntry
from hil_tests.virtual_bench.board import MAGIC, TICK_IN, BoardClock, Patience
from hil_tests.virtual_bench.emulators import Emulators
from hil_tests.virtual_bench.errors import BoardDied, BoardStartError, ProgramFailed, QemuMissing
from hil_tests.virtual_bench.mailbox import read_flash, write_flash
from hil_tests.virtual_bench.qemu import STDOUT, run_program
from hil_tests.virtual_bench.qemu_board import QemuBoard
from hil_tests.virtual_bench.start import BOARD_NAME
from jointbench.bench import Connections, open_bench, read_bench_file
from jointbench.recording import Run
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR, Chunk, Frame, FrameReader, MessageType, encode_frame

ECHO = (PROGRAMS / "echo.py").read_text(encoding="utf-8")
# A program that sends at each tick how the board was reset.
_CAUSE = ECHO.replace("board.apply()", "board.outgoing[board.OUTGOING_AT] = 48 + board.reset_cause")
CAUSE = _CAUSE.replace("board.send(count)", "board.send(1)")
HANGS = 1.2  # [s] of its processor time after which a board hangs; to start takes it half a second


class Bench:
    """A board and the ticks it has been given."""

    def __init__(self, board: QemuBoard) -> None:
        self.board = board
        self.tick = 0

    def step(self, received: bytes = b"") -> tuple[bool, int, bytes]:
        """One tick."""
        self.tick += 1
        message = np.zeros((), TICK_IN)
        message["tick"], message["received"] = self.tick, len(received)
        self.board.send_tick(message.tobytes() + received)
        (enable,), (command,), sent = self.board.receive_tick(self.tick)
        return enable == 1, command, sent

    def until(self, text: bytes, received: bytes) -> bytes:
        """Give the board bytes, and ticks until its line has said something; a console answers in the host's time."""
        said, end = self.step(received)[2], time.monotonic() + 60.0
        while text not in said:
            assert time.monotonic() < end, said
            said += self.step()[2]
        return said


StartBoard = Callable[[str], Bench]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartBoard]:
    """Function that starts a board with a program of its own."""
    need_qemu()
    started: list[QemuBoard] = []

    def start(program: str) -> Bench:
        path = tmp_path / "program.py"
        path.write_text(program, encoding="utf-8")
        entry = BoardEntry(1, "j1", QEMU, 0, path, None, None, BoardClock())
        board = Emulators().start(entry, tmp_path / "board", {"node": 1, "uid": "00", "facts": {}})
        assert isinstance(board, QemuBoard)
        started.append(board)
        return Bench(board)

    yield start
    for board in started:
        board.close()


# Ticks


def test_bytes_and_outputs_cross_the_mailbox(start: StartBoard) -> None:
    bench = start(ECHO)
    everything = bytes(set(range(256)) - set(b"edx"))  # without the letters that the program obeys
    assert bench.step(everything) == (False, 0, everything)
    assert bench.step(b"e") == (True, 0, b"e")
    longest = (everything * 3)[:512]
    assert bench.step(longest) == (True, 0, longest)
    assert bench.step(b"d") == (False, 0, b"d")
    assert bench.step() == (False, 0, b"")


def test_many_ticks_each_get_their_own_answer(start: StartBoard) -> None:
    bench = start(ECHO)
    for _ in range(600):  # the byte that asks for a tick has gone round twice
        assert bench.step(bytes((bench.tick & 0xFF | 128,)))[2] == bytes((bench.tick - 1 & 0xFF | 128,))


# Boards that misbehave


@pytest.mark.parametrize(
    ("old", "new", "death"),
    [
        ("board.apply()", "outputs[4] = 7", "answered tick 1 with [tick 1, enable 7, command 0, 0 bytes]; enable must"),
        ("board.send(count)", "board.send(513)", "answered tick 1 with [tick 1, enable 0, command 0, 513 bytes]; en"),
        ("board.apply()", "outputs[0] = 9", "answered tick 1 with [tick 9, enable 0, command 0, 0 bytes]"),
        (
            "board.disable()",
            "import machine; machine.mem32[0x21000000] = 0x4A420001",
            f"board speaks mailbox layout 0x4a420001 with {TICK_IN.itemsize} bytes a tick, this bench {MAGIC:#010x} wi",
        ),
    ],
)
def test_a_board_that_answers_nonsense_is_dead(start: StartBoard, old: str, new: str, death: str) -> None:
    assert old in ECHO
    bench = start(ECHO.replace(old, new))
    with pytest.raises(BoardDied) as caught:
        bench.step()
    assert death in str(caught.value)
    assert bench.board.death == str(caught.value)
    assert not is_running(bench.board.pid)


def test_a_board_that_hangs_is_ended(start: StartBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu_board, "Patience", lambda pid: Patience(pid, own=HANGS))
    bench = start('print("about to hang")\nwhile True:\n    pass\n')
    with pytest.raises(BoardDied, match=r"^no answer within 1.2 s of its .*: it hangs: about to hang$"):
        bench.step()
    assert not is_running(bench.board.pid)


def test_a_killed_board_tells_its_last_words_and_starts_again(start: StartBoard) -> None:
    bench = start('print("ready")\n' + ECHO)
    bench.step(b"e")
    os.kill(bench.board.pid, signal.SIGKILL)
    with pytest.raises(BoardDied, match=r"^exit status -9: ready$"):
        bench.step()
    bench.board.restart()
    assert bench.board.death is None
    assert bench.step(b"again") == (False, 0, b"again")


def test_a_watchdog_resets_a_board_that_hangs(start: StartBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outputs stay as they were, as pins do, for as long as the watchdog was set to; then it starts anew."""
    monkeypatch.setattr(qemu_board, "Patience", lambda pid: Patience(pid, own=HANGS))
    program = CAUSE.replace("outputs[4] = 1", "outputs[4] = 1; board.watchdog(20)")
    program = program.replace('raise RuntimeError("told to end by the letter x")', "while True: pass")
    bench = start(program)
    assert bench.step(b"e") == (True, 0, b"1")  # power on
    assert [bench.step(b"x" if k == 0 else b"") for k in range(20)] == [(True, 0, b"")] * 20
    assert bench.step() == (False, 0, b"3")  # watchdog
    assert bench.step() == (False, 0, b"3")


def test_a_board_that_resets_itself_within_a_tick_gets_that_tick_again(start: StartBoard) -> None:
    """As the loader does after a trial that nobody confirmed: the tick that it had taken goes with the program."""
    program = CAUSE.replace('raise RuntimeError("told to end by the letter x")', "import machine; machine.reset()")
    assert program != CAUSE
    bench = start(program)
    assert bench.step(b"e") == (True, 0, b"1")  # power on
    assert bench.step(b"x") == (False, 0, b"2")  # hard reset
    assert bench.step(b"e") == (True, 0, b"2")


# The prompt


def test_a_program_that_ends_leaves_the_motor_off_and_the_line_to_the_console(start: StartBoard) -> None:
    bench = start(ECHO)
    assert bench.step(b"e")[0]
    enable, command, said = bench.step(b"x")
    assert (enable, command) == (False, 0)
    assert b"RuntimeError: told to end by the letter x\r\n" in said
    assert said.endswith(b">>> ")
    assert bench.board.at_prompt
    assert b"\r\n42\r\n>>> " in bench.until(b"\r\n>>> ", received=b"6*7\r\n")
    assert bench.board.death is None


@pytest.mark.parametrize(("typed", "cause"), [(b"\x04", b"5"), (b"import machine; machine.reset()\r", b"2")])
def test_resets_start_the_program_again(start: StartBoard, typed: bytes, cause: bytes) -> None:
    bench = start(CAUSE)
    assert bench.step(b"e") == (True, 0, b"1")
    bench.step(b"x")
    first = bench.until(cause, received=typed)[-1:]
    assert first == cause
    for _ in range(20):  # each tick is answered with its own number, or the board would be dead
        assert bench.step() == (False, 0, cause)


def test_a_loop_without_end_at_the_prompt_stops_no_other_board(
    start: StartBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu_board, "Patience", lambda pid: Patience(pid, own=HANGS))
    bench = start("")
    assert bench.step()[2].endswith(b">>> ")
    bench.until(b"... \r\n", received=b"while True: pass\r\r")
    while not bench.board._endless:  # until the loop has begun, Ctrl-C would be a letter like any other
        bench.step()
    for _ in range(100):
        assert bench.step()[:2] == (False, 0)
    assert b"KeyboardInterrupt" in bench.until(b"KeyboardInterrupt", received=b"\x03")


# The flash


def test_what_a_board_writes_is_in_its_flash_and_outlives_its_power(start: StartBoard) -> None:
    program = """
with open("starts", "a") as file:
    file.write("x")
from board import Board
board = Board()
while True:
    board.wait_tick()
    board.outputs[:4] = board.inputs[:4]
"""
    bench = start(program)
    for count in (1, 2, 3):
        bench.step()
        assert read_flash(bench.board.memory)["starts"] == count * b"x"
        bench.board.restart()


def test_files_come_back_from_a_flash_as_they_were_put_there(tmp_path: Path) -> None:
    files = {"main.py": b"", "a/b/c.bin": bytes(range(256)) * 40, "boot.py": b"pass\n"}
    write_flash(tmp_path / "memory", files)
    assert read_flash(tmp_path / "memory") == files


def test_a_flash_that_is_too_small_is_said_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(BoardStartError, match="1 files of 2000000 bytes do not fit a flash of 1048576 bytes"):
        QemuBoard(need_qemu(), tmp_path, {"main.py": bytes(2_000_000)})


# Programs without a bench


def test_a_program_reads_and_writes_files_and_repeats_its_count() -> None:
    """Instructions are counted on the guest's clock alone: the same on a busy machine and an idle one."""
    need_qemu()
    program = """
import machine, part
with open("in.bin", "rb") as source, open("folder/out.bin", "wb") as target:
    data = source.read()
    target.write(bytes(reversed(data)))
start = machine.mem32[0x40028018]
for _ in range(1000):
    pass
print(part.NAME, machine.mem32[0x40028018] - start, start)
"""
    files = {"in.bin": bytes(range(100)) * 30, "part.py": b"NAME = 'part'", "folder/.keep": b""}
    first, second = (run_program(program, files, icount=True) for _ in range(2))
    assert first == second
    assert first.keys() == {STDOUT, "folder/out.bin"}
    assert first["folder/out.bin"] == files["in.bin"][::-1]
    name, count, _ = first[STDOUT].split()
    assert name == b"part"
    assert 1000 < int(count) < 100_000  # at least 40 instructions a turn, and no more than a bytecode's worth


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("def f():\n    raise ValueError(3)\nf()", "ValueError: 3$"),
        ("open('none.bin')", "OSError: .* ENOENT$"),
        pytest.param("while True:\n    pass", r"hangs; it said b'\\x02'", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_fails_says_how(program: str, message: str) -> None:
    need_qemu()
    with pytest.raises(ProgramFailed, match=message):
        run_program(program, {}, patience=5.0)


def test_a_program_that_does_not_end_is_said_to_hang() -> None:
    console, its_end = socket.socketpair()
    with console, its_end:
        its_end.sendall(b"\x02")
        with pytest.raises(ProgramFailed, match=r"hangs; it said b'\\x02'"):
            qemu._read_until(console, b"\x04\x03", time.monotonic() + 0.01)


def test_a_missing_qemu_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOINTBENCH_QEMU", str(tmp_path / "nowhere"))
    with pytest.raises(QemuMissing, match=r"no qemu-system-arm at .*nowhere; ./run setup .* or set JOINTBENCH_QEMU"):
        run_program("", {})


CLOCKS_A_US = 25  # of the board's core, which is said to do an instruction a clock
TURNS = (0, 0, 10_000, 1_000_000)  # the first time names are still looked up
# In each of its first ticks it works through a loop of two instructions, then it tells how long that took.
WORK = f"""
import struct, micropython
from board import Board
@micropython.asm_thumb
def work(r0):
    label(AGAIN)
    sub(r0, r0, 1)
    bne(AGAIN)
board = Board()
took = []
def answer():
    board.wait_tick()
    board.outputs[:4] = board.inputs[:4]
for turns in {TURNS}:
    answer()
    begun = board.stopwatch_us()
    work(turns + 1)
    took.append(board.stopwatch_us() - begun)
while True:
    answer()
    struct.pack_into("<4I", board.outgoing, board.OUTGOING_AT, *took)
    board.send(4 * len(took))
"""


def told(folder: Path) -> list[int]:
    """What a board with WORK tells."""
    program = folder / "work.py"
    folder.mkdir()
    program.write_text(WORK, encoding="utf-8")
    entry = BoardEntry(1, "j1", QEMU, 0, program, None, None, BoardClock())
    board = Emulators().start(entry, folder / "board", {"node": 1, "uid": "00", "facts": {}})
    data = b""
    try:
        for tick in range(1, len(TURNS) + 2):
            message = np.zeros((), TICK_IN)
            message["tick"] = tick
            board.send_tick(message.tobytes())
            _, _, data = board.receive_tick(tick)
    finally:
        board.close()
    return np.frombuffer(data, "<u4").tolist()


def test_it_counts_instructions(tmp_path: Path) -> None:
    need_qemu()
    first, second = told(tmp_path / "one"), told(tmp_path / "two")
    assert first == second
    _, alone, *worked = first
    # A look at the stopwatch makes objects, and finding room for them takes some hundred instructions more or less.
    for turns, took in zip(TURNS[2:], worked, strict=True):
        assert took - alone == pytest.approx(2 * turns / CLOCKS_A_US, abs=10)


def test_where_instructions_are_not_counted_it_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_qemu()
    monkeypatch.setattr("hil_tests.virtual_bench.qemu_board._INSTRUCTION_TIME", None)
    assert told(tmp_path / "one") == [0] * len(TURNS)


def statuses(folder: Path) -> list[tuple[int, int]]:
    """Longest tick and longest pause to collect memory [us] by each STATUS, over two seconds of ECHOs."""
    folder.mkdir()
    found: list[tuple[int, int]] = []

    def listen(time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.STATUS:
            found.append((chunk.content.body.longest_tick_us, chunk.content.body.longest_gc_us))

    with (
        virtual_bench(write_bench_file(folder, None), out=folder / "sim", board="qemu:") as live,
        contextlib.closing(Connections(read_bench_file(live))) as connections,
    ):
        board, clock = connections.boards["j1"], connections.clock
        board.hello()
        board.listen(listen)
        end_us = clock.now_us() + 2_200_000
        while clock.now_us() < end_us:
            board.client.echo(b"which takes memory")
            clock.wait(10_000)
    return found


def test_status_tells_the_longest_tick_and_pause(tmp_path: Path) -> None:
    """A tick with a pause in it is no shorter than the pause; each STATUS tells the longest since the one before."""
    need_qemu()
    found = statuses(tmp_path / "one")
    assert len(found) >= 2
    pauses = [pause_us for _, pause_us in found]
    assert pauses == sorted(pauses)
    assert max(tick_us for tick_us, _ in found) >= pauses[-1] > 0


@pytest.mark.slow
def test_status_tells_the_same_in_every_run(tmp_path: Path) -> None:
    need_qemu()
    assert statuses(tmp_path / "one") == statuses(tmp_path / "two")


@pytest.fixture
def needs_qemu() -> None:
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


@pytest.mark.usefixtures("needs_qemu")
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


@pytest.mark.usefixtures("needs_qemu")
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


@pytest.mark.usefixtures("needs_qemu")
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


@pytest.mark.usefixtures("needs_qemu")
def test_by_the_wall_clock_mpremote_needs_no_client_either(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("print('the program ends')\n")
    bench = write_bench_file(tmp_path, str(tmp_path / "ends.py"))
    with virtual_bench(bench, realtime=True, out=tmp_path / "sim", board="qemu:") as live:
        port = tomllib.loads(live.read_text(encoding="utf-8"))["board"][0]["url"]
        assert mpremote(port, "eval", "6*7").strip() == "42"


@pytest.mark.usefixtures("needs_qemu")
def test_an_emulator_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    message = "board = 'qmu:' is no emulator of boards; there are 'unix:', 'qemu:mps2-an385', 'qemu:'"
    with pytest.raises(BenchError, match=message), virtual_bench(COBOT, out=tmp_path, board="qmu:"):
        pass


@pytest.mark.usefixtures("needs_qemu")
def test_a_bench_without_qemu_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOINTBENCH_QEMU_FIRMWARE", str(tmp_path / "nowhere"))
    message = r"no image of MicroPython for it at .*nowhere; ./run setup fetches .* or set JOINTBENCH_QEMU_FIRMWARE"
    with pytest.raises(BenchError, match=message), virtual_bench(COBOT, out=tmp_path / "sim", board="qemu:"):
        pass


@pytest.mark.usefixtures("needs_qemu")
def test_boards_of_both_kinds_sit_on_one_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BOARD_NAME, raising=False)  # --board would put all boards on one kind
    bench = write_bench_file(tmp_path, None, None)
    bench.write_text(bench.read_text().replace('joint = "j2"\nurl = "unix:"', 'joint = "j2"\nurl = "qemu:"'))
    with virtual_bench(bench, out=tmp_path / "sim") as live, RawClient(live) as client:
        for node in (1, 2):
            client.write(node, encode_frame(MessageType.HELLO, node, 1, major=1, minor=0))
        received = client.pass_time(5_000)
    assert [answer(received[node]).body.board.rstrip(b"\0") for node in (1, 2)] == [b"unix", b"mps2"]
