"""Damaged frames and damaged files through what reads them."""

import contextlib
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hil_tests.virtual_bench.emulated_board import find_interpreter
from jointbench.recording import run
from jointbench.tests.recording.simulated_run import record
from jointbench.tests.recording.test_seal import imported
from jointwire import MessageType, State, decode_frame
from jointwire.errors import FrameError
from tools.fuzz import edits
from tools.fuzz.__main__ import HEAP, PROGRAMS, main
from tools.fuzz.corpus import displaced, make_corpus, mutated, read, read_corpus
from tools.fuzz.decoders import DecoderProcess, HostAnswer, judge_board, judge_host
from tools.fuzz.files import Findings, Watch
from tools.fuzz.frame_mutations import ALONE, PAIRS
from tools.fuzz.frames import CaseError, DecoderFailed, SimulatedBoard, Unit, make_batch, read_case

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    assert make_batch(3, 2, 50) == make_batch(3, 2, 50)
    assert make_batch(3, 2, 50).stream != make_batch(3, 3, 50).stream
    assert make_batch(3, 2, 50).stream != make_batch(4, 2, 50).stream


def test_every_type_is_sent_and_what_is_left_whole_is_a_frame() -> None:
    batch = make_batch(0, 0, 400)
    whole = [decode_frame(unit.arrived[:-1]) for unit in batch.units if not unit.mutation]
    assert {frame.type for frame in whole} == set(MessageType)
    for frame in whole:
        _ = frame.body  # a body of the right form


def test_no_mutant_is_a_frame() -> None:
    for unit in make_batch(0, 1, 400).units:
        for piece in unit.arrived.split(b"\0") if unit.mutation else ():
            with pytest.raises(FrameError):
                decode_frame(piece)


@pytest.fixture(scope="module", params=[2000, pytest.param(20_000, marks=pytest.mark.slow)])
def fuzzed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """A small round of so many mutants: its exit code and its result."""
    folder = tmp_path_factory.mktemp("round")
    said = folder / "result.json"
    code = main(["wire", "--frames", str(request.param), "--seed", "1", "--out", str(folder), "--json", str(said)])
    return code, json.loads(said.read_text())


def test_a_small_round(fuzzed: tuple[int, dict[str, Any]]) -> None:
    code, result = fuzzed
    assert {check["name"]: check["ok"] for check in result["checks"]} == {
        name: True
        for name in (
            "mutants", "crashes", "hangs", "mutants_accepted", "frames_refused", "frames_altered", "bytes_lost",
            "ledgers_wrong", "disagreements",
        )
    }  # fmt: skip
    assert code == 0
    assert set(result["mutations"]) == {mutation.__name__ for mutation in (*ALONE, *PAIRS)}
    assert result["frames"] > result["mutants"] // 2


def test_a_board_that_does_not_check_its_crc_is_found_out(tmp_path: Path) -> None:
    shutil.copytree(FIRMWARE / "jointboard", tmp_path / "jointboard")
    framing = tmp_path / "jointboard" / "framing.py"
    text, check = framing.read_text(), "if crc == -558161693:"
    assert text.count(check) == 1
    framing.write_text(text.replace(check, "if crc != 0:"))
    command = [find_interpreter(), "-X", f"heapsize={HEAP}", PROGRAMS / "board_program.py", tmp_path]
    batch = make_batch(0, 0, 100)
    with contextlib.closing(DecoderProcess("board", command, tmp_path)) as board:
        board.give(batch)
        found = list(judge_board(batch, board.answer()))
    assert {(finding.decoder, finding.kind) for finding in found} == {("board", "mutant accepted")}


@pytest.fixture(scope="module")
def answered() -> tuple:
    """A batch, and what both decoders answer."""
    batch = make_batch(5, 0, 60)
    host = HostAnswer([chunk for unit in batch.units for chunk in unit.chunks], 0, True, {})
    ledger = {**vars(batch.truth), "bad_frames": sum(not checksum for _, checksum in host.chunks), "fault": ""}
    board = b"".join(checksum.to_bytes(4, "little") for _, checksum in host.chunks)
    return batch, replace(host, ledger=ledger), board


def test_right_answers_are_found_right(answered: tuple) -> None:
    batch, host, board = answered
    assert not [*judge_host(batch, host), *judge_board(batch, board)]


def test_wrong_answers_are_found_wrong(answered: tuple) -> None:
    batch, host, board = answered
    mutant = next(k for k, (_, checksum) in enumerate(host.chunks) if not checksum)
    whole = next(k for k, (_, checksum) in enumerate(host.chunks) if checksum)

    def changed(at: int, checksum: int) -> HostAnswer:
        return replace(host, chunks=[(n, checksum if k == at else c) for k, (n, c) in enumerate(host.chunks)])

    def kinds(answer: HostAnswer) -> set[str]:
        return {finding.kind for finding in judge_host(batch, answer)}

    assert "mutant accepted" in kinds(changed(mutant, 1))
    assert "frame refused" in kinds(changed(whole, 0))
    assert "frame altered" in kinds(changed(whole, 1))
    assert kinds(replace(host, chunks=host.chunks[1:])) == {"bytes lost"}
    assert kinds(replace(host, pending=3)) == {"bytes lost"}
    assert kinds(replace(host, closes=False)) == {"ledger"}
    for name in vars(batch.truth):
        assert kinds(replace(host, ledger={**host.ledger, name: host.ledger[name] + 1})) == {"ledger"}
    assert {finding.kind for finding in judge_board(batch, board[4:])} == {"bytes lost"}
    at = 4 * mutant
    accepted = board[:at] + b"\1\0\0\0" + board[at + 4 :]
    assert {finding.kind for finding in judge_board(batch, accepted)} == {"mutant accepted"}


def test_what_is_too_long_for_a_frame_may_come_in_parts(answered: tuple) -> None:
    batch, host, _ = answered
    at = next(k for k, (n, checksum) in enumerate(host.chunks) if not checksum and n > 1)
    length = host.chunks[at][0]
    parts = [*host.chunks[:at], (1, 0), (length - 1, 0), *host.chunks[at + 1 :]]
    counted = {**host.ledger, "bad_frames": host.ledger["bad_frames"] + 1}
    assert not list(judge_host(batch, replace(host, chunks=parts, ledger=counted)))


@pytest.mark.parametrize(
    ("program", "hangs", "said"),
    [
        ("import sys; sys.exit('it hurts')", False, "host crashed: it ended with status 1 and said: it hurts"),
        ("import time; time.sleep(60)", True, "host hangs: no progress for 0.5 s of the wall clock"),
    ],
)
def test_a_decoder_that_crashes_or_hangs_is_named(program: str, hangs: bool, said: str, tmp_path: Path) -> None:
    decoder = DecoderProcess("host", [sys.executable, "-c", program], tmp_path, patience_s=0.5)

    def ask() -> None:
        decoder.give(make_batch(0, 0, 5))
        decoder.answer()

    with contextlib.closing(decoder), pytest.raises(DecoderFailed) as failed:
        ask()
    assert failed.value.hangs is hangs
    assert str(failed.value) == said


def test_a_case_is_read_as_it_was_saved(tmp_path: Path) -> None:
    batch = make_batch(1, 7, 20)
    batch.save(tmp_path / "case.json")
    assert read_case(tmp_path / "case.json") == batch


def test_a_file_that_is_no_case(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text("{}")
    with pytest.raises(CaseError, match=r"is not a case that `./run fuzz wire` saved"):
        read_case(path)


@pytest.mark.slow
def test_a_saved_case_runs_again_and_fails_where_it_did(tmp_path: Path) -> None:
    case, said = tmp_path / "case.json", tmp_path / "result.json"
    batch = make_batch(1, 0, 60)
    batch.save(case)
    assert main(["wire", "--case", str(case)]) == 0
    # The same where both must find a mutant that the case calls a frame as it was sent.
    units = list(batch.units)
    at = next(k for k, unit in enumerate(units) if unit.mutation == "use_other_schema")
    units[at] = Unit(units[at].arrived)
    replace(batch, units=tuple(units)).save(case)
    assert main(["wire", "--case", str(case), "--json", str(said)]) == 1
    result = json.loads(said.read_text())
    assert result["wrong"] == {"host frame refused": 1, "board frame refused": 1}
    assert [check["name"] for check in result["checks"] if not check["ok"]] == ["frames_refused"]


def test_the_simulated_board_counts_what_it_does() -> None:
    board = SimulatedBoard(Random(0))
    opening = decode_frame(board.status(State.DISARMED)).body
    ticks = [decode_frame(board.frame(MessageType.DATA)).body for _ in range(50)]
    board.drop_block()
    board.miss_ticks()
    last = decode_frame(board.frame(MessageType.DATA)).body
    closing = decode_frame(board.status(State.DISARMED)).body
    assert (closing.frames_sent - opening.frames_sent) % 2**32 == 52
    assert (closing.samples_taken - opening.samples_taken) % 2**32 == board.samples_taken
    assert (closing.samples_dropped - opening.samples_dropped) % 2**32 == board.samples_dropped > 0
    assert last.missed == board.ticks_missed > 0
    received = sum(body.count for body in ticks) + last.count
    assert board.samples_taken == received + board.samples_dropped
    span = (last.first_tick + last.count - ticks[0].first_tick) % 2**32
    assert span == board.samples_taken + board.ticks_missed


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
def test_file_fuzz_a_small_round(tmp_path: Path) -> None:
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
