"""Whole benches behind fault:// lines: what is lost is counted to the sample, commands get through, motors go off.

All is in virtual time and seeded, so each of these runs has the same faults at the same bytes every time.
"""

import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hil_tests.link_helpers import COBOT, COBOT_BUS, record_wave, ripple
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, BoardLedger, open_bench
from jointbench.bench.conversation import RETRANSMISSIONS
from jointbench.errors import BoardFault, BoardSilent
from jointwire import State, Trip

# Within a motion of three seconds: after the recording's first STATUS, before its last.
WHILE_MOVING = "from:1.3s,until:3.5s"
LINK_TIMEOUT_MS = 500  # the boards' default


@contextmanager
def faulty_bench(folder: Path, options: str, file: Path = COBOT, modules: int | None = None) -> Generator[Bench]:
    """A bench, not yet connected, each of whose lines has these faults by a seed of its own."""
    with virtual_bench(file, plant="ideal", seed=3, modules=modules, out=folder / "sim") as live:
        text, ports = live.read_text(), {}

        def damaged(url: re.Match[str]) -> str:
            return f'url = "fault://seed={ports.setdefault(url[1], len(ports) + 1)}&{options};{url[1]}"'

        path = live.with_name("faulty.toml")
        path.write_text(re.sub(r'url = "(.*)"', damaged, text))
        with open_bench(path) as bench:
            yield bench


def get_ready(bench: Bench) -> None:
    bench.connect()
    bench.configure()
    bench.move_to(bench.robot.home)


def nothing_lost(board: BoardLedger, struck: int) -> bool:
    return board.frames_lost == board.samples_lost == board.duplicates == 0


def as_many_vanished(board: BoardLedger, struck: int) -> bool:
    return (board.frames_damaged, board.frames_vanished) == (0, struck)


def as_many_duplicates(board: BoardLedger, struck: int) -> bool:
    return board.frames_lost == board.samples_lost == 0 and board.duplicates == struck


def one_or_two_frames_each(board: BoardLedger, struck: int) -> bool:
    """The frame that lost its end, and the next, which then has no delimiter before it."""
    return struck <= board.frames_lost <= 2 * struck


def at_most_two_frames_each(board: BoardLedger, struck: int) -> bool:
    """One frame, two where a delimiter is hit, none more where a frame is hit twice."""
    return (struck > 0) <= board.frames_lost <= 2 * struck


def at_most_four_frames_each(board: BoardLedger, struck: int) -> bool:
    """A burst of 32 bytes may reach over a frame as short as a PONG into the next, and make delimiters of its own."""
    return (struck > 0) <= board.frames_lost <= 4 * struck


@pytest.mark.parametrize(
    ("fault", "accounted"),
    [
        (f"drop=2e-4,{WHILE_MOVING}", at_most_two_frames_each),
        (f"flip=2e-4,{WHILE_MOVING}", at_most_two_frames_each),
        (f"baud=1e-4,{WHILE_MOVING}", at_most_four_frames_each),
        (f"lose=0.05,{WHILE_MOVING}", as_many_vanished),
        (f"truncate=0.05,{WHILE_MOVING}", one_or_two_frames_each),
        (f"duplicate=0.1,{WHILE_MOVING}", as_many_duplicates),
        (f"reorder=0.1,{WHILE_MOVING}", nothing_lost),
        (f"delay=0.3,for:1ms..30ms,{WHILE_MOVING}", nothing_lost),
        ("stall=every:0.7s,for:0.1s", nothing_lost),
    ],
    ids=lambda value: value.partition("=")[0] if isinstance(value, str) else "",
)
@pytest.mark.slow
def test_each_fault_is_accounted_to_the_frame_and_the_sample(tmp_path: Path, fault: str, accounted) -> None:
    with faulty_bench(tmp_path, fault) as bench:
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run", repeats=3)
        assert run.ledger is not None
        assert run.ledger.closes, run.ledger.text()
        name = fault.partition("=")[0]
        total = Counter[str]()
        for index, (board, ledger) in enumerate(zip(bench.boards, run.ledger.boards, strict=True)):
            total.update(board.port.faults)
            assert accounted(ledger, board.port.faults[f"rx.{name}"]), run.ledger.text()
            assert ledger.samples_taken == ledger.samples_received + ledger.samples_lost
            assert run.samples.valid[:, index].sum() == ledger.samples_received
        assert total[f"rx.{name}"] > 0
        assert run.ledger.is_valid == (run.ledger.samples_lost == 0)


@pytest.mark.slow
def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    def recorded(name: str) -> bytes:
        with faulty_bench(tmp_path / name, "flip=1e-4&lose=0.02&delay=0.2,for:1ms..9ms") as bench:
            get_ready(bench)
            record_wave(bench, tmp_path / name / "run")
        return (tmp_path / name / "run" / "frames.bin").read_bytes()

    assert recorded("one") == recorded("two")


def test_the_run_says_through_what_it_was_recorded(tmp_path: Path) -> None:
    with faulty_bench(tmp_path, "rx.lose=0.01", modules=2) as bench:
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run", motion=ripple(bench))
    for number, board in enumerate(run.provenance["board"], start=1):
        assert board["url"].startswith(f"fault://seed={number}&rx.lose=0.01;/dev/")


@pytest.mark.parametrize("file", [COBOT, COBOT_BUS], ids=["ports", "bus"])
@pytest.mark.slow
def test_commands_get_through_within_their_retransmissions(tmp_path: Path, file: Path) -> None:
    """Frames lost, damaged, doubled and late both ways, from the first HELLO to the last STOP."""
    options = "lose=0.03&flip=1e-4&duplicate=0.03&delay=0.1,for:1ms..20ms"
    with faulty_bench(tmp_path, options, file) as bench:
        sent: Counter[tuple[str, bytes]] = Counter()
        for line in bench.lines:

            def write(data: bytes, port=line.port.key, write=line.port.write) -> None:
                sent[port, data] += 1
                write(data)

            line.port.write = write
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run")
        assert bench.stop() == []
        assert 1 < max(sent.values()) <= 1 + RETRANSMISSIONS
        struck = sum((Counter(line.port.faults) for line in bench.lines), Counter())
        assert set(struck) == set(bench.lines[0].port.faults)  # each fault, both ways
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()


@pytest.mark.parametrize("modules", [2, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", ["stall", "tx.stall", pytest.param("reset", marks=pytest.mark.slow)])
def test_no_motor_stays_on_behind_a_line_that_is_dead(tmp_path: Path, fault: str, modules: int | None) -> None:
    """Boards that hear nothing for their link time-out switch off by themselves, whatever the host can still do."""
    with faulty_bench(tmp_path, f"{fault}=at:1.4s,for:0.7s", modules=modules) as bench:  # in full motion
        get_ready(bench)
        with pytest.raises((BoardFault, BoardSilent)):
            record_wave(bench, tmp_path / "run", repeats=50)
        while (left := 2_200_000 - bench.clock.now_us()) > 0:  # what was held comes now
            bench.clock.wait(left)
        for board in bench.boards:
            board.hello()
            assert board.state is State.FAULT
        status = [board.fault for board in bench.boards if board.fault]
        if fault != "reset":  # which loses what the boards say meanwhile
            assert len(status) == len(bench.boards)
        for body in status:
            assert body.trip == Trip.LINK_LOSS
            # The last valid frame came before 1.4 s; a virtual bench's tick is its millisecond.
            assert body.tick <= 1400 + LINK_TIMEOUT_MS + 1
        bench.clear()
        bench.connect()
        bench.configure()
        run = record_wave(bench, tmp_path / "again", motion=ripple(bench))
        assert run.ledger is not None
        assert run.ledger.is_valid, run.ledger.text()


def test_a_short_break_of_all_lines_is_survived(tmp_path: Path) -> None:
    with faulty_bench(tmp_path, "reset=at:2s,for:0.1s", modules=2) as bench:
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run", repeats=2)
        assert run.ledger is not None
        assert run.ledger.closes, run.ledger.text()
        for board in run.ledger.boards:
            assert board.frames_lost >= 1
            # A tenth of a second, the block that was cut, and one that the cut one's rest has spoilt: 64 ms each.
            assert 0 < board.samples_lost <= 100 + 3 * 64
