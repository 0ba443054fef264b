"""The fault campaign: its matrix is whole and strict, its judge can fail, and a few cells of each kind pass."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil_tests.virtual_bench.bench_file import EMULATED, UNIX
from hil_tests.virtual_bench.rp2040.flash import PAGE as FLASH_PAGE
from hil_tests.virtual_bench.rp2040.flash import FlashWrite
from jointbench import errors, files
from jointbench.bench import BoardLedger, Ledger
from jointbench.bench.fault.faults import DIRECTIONS
from jointbench.bench.fault.kinds import KINDS
from jointbench.bench.gate import Gate
from jointbench.files import keep_earlier, write_file
from jointbench.recording import FRAMES, create_run_directory
from jointbench.recording import recorder as recorder_module
from jointbench.stopping import SafeInterrupt
from jointbench.testing.requirements import load
from jointwire import State, Trip
from tools.faults import disk, kills, undisturbed
from tools.faults import verdict as evidence
from tools.faults.__main__ import PAGE, cells_of, main, parser, rendered, sample
from tools.faults.campaign import run_campaign, run_cell
from tools.faults.cell import (
    GROUPS,
    MOMENTS_US,
    Cell,
    CellNotRun,
    MatrixError,
    UnknownCell,
    all_cells,
    chosen_cells,
    read_matrix,
)
from tools.faults.chip_cuts import BootTree, Cut, CutVerdict, Update, read_verdicts
from tools.faults.commands import COMMANDS, Store, forked_bench, make_store
from tools.faults.disk import TROUBLES, WriteLog, contents, disk_cells, run_disk_cell
from tools.faults.kills import WAYS, WORKS, Kill, kill_checks, run_kill
from tools.faults.mutations import MUTATIONS, control_cell, mutated_cells
from tools.faults.session import Session
from tools.faults.subject import CountedRecorder, bench_of, with_faulty_line
from tools.faults.verdict import Evidence, Recorded, judge, read_recorded
from tools.requirements import FOLDER

MATRIX = read_matrix()
CELLS = all_cells(MATRIX, UNIX, 0)
WORDS = {
    "NONE", "FRAMES_LOST", "DUPLICATES", "SAMPLES_DROPPED", "TICKS_MISSED", "CLOCK_DRIFT", "RECORDER_KILLED", "SIGHUP",
}  # fmt: skip


def cell(id: str) -> Cell:
    return chosen_cells(CELLS, [id])[0]


def damage_of(run: Path) -> str:
    recorded = read_recorded(run, "j1", 1)
    assert recorded is not None
    return recorded.damage


def test_the_matrix_has_every_fault_in_every_state() -> None:
    floating = [fault for fault in MATRIX.values() if fault.floats]
    assert len(CELLS) == (len(MATRIX) - len(floating)) * len(MOMENTS_US) + len(floating)
    assert {each.state for each in CELLS if each.fault.floats} == {State.RUNNING}
    assert load(FOLDER)["campaign.cells"].check(len(CELLS)).ok
    assert set(MOMENTS_US) == set(State)
    assert {f"{way}.{kind}" for way in DIRECTIONS for kind in KINDS} <= MATRIX.keys()
    assert {fault.group for fault in MATRIX.values()} == set(GROUPS)
    assert all(fault.why.endswith(".") for fault in MATRIX.values())


@pytest.mark.parametrize("name", sorted({name for fault in MATRIX.values() for name in fault.named.values()}))
def test_each_name_is_one_that_somebody_says(name: str) -> None:
    assert name in WORDS or name in Trip.__members__ or issubclass(getattr(errors, name), errors.JointbenchError)


def test_the_page_has_the_matrix_as_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert rendered(MATRIX, text) == text, "run ./run faults --page"


GOOD = 'name = "x"\ngroup = "host"\nhost = "killed"\nnamed = { all = "NONE" }\nwhy = "So."\n'


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("group", "grup"), "x: group is missing"),
        (("host = ", 'line = "rx.drop=1"\nhost = '), "x: must be made in one way of .*; it has line, host"),
        (("host = ", 'hots = "a"\nhost = '), "x: hots is unknown"),
        (('"host"', '"weather"'), "x: group 'weather' is none of wire, board"),
        (("all", "at_rest"), "x: says no name for BOOT, ARMED, RUNNING"),
        (("all", "ASLEEP"), "x: 'ASLEEP' is no state; there are BOOT"),
        (("So.", f'So."\n[[fault]]\n{GOOD[: GOOD.rindex("So.")]}So.'), "x is there twice"),
    ],
)
def test_a_matrix_that_is_wrong_is_refused(tmp_path: Path, changed: tuple[str, str], words: str) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(f"[[fault]]\n{GOOD}", encoding="utf-8")
    assert list(read_matrix(path)) == ["x"]
    path.write_text(f"[[fault]]\n{GOOD.replace(*changed)}", encoding="utf-8")
    with pytest.raises(MatrixError, match=words):
        read_matrix(path)


def test_cells_are_asked_for_by_name() -> None:
    assert [each.id for each in chosen_cells(CELLS, ["rx.drop@RUNNING"])] == ["rx.drop@RUNNING"]
    assert {each.state for each in chosen_cells(CELLS, [], "ARMED")} == {State.ARMED}
    assert {each.fault.group for each in chosen_cells(CELLS, [], "drive")} == {"drive"}
    with pytest.raises(UnknownCell, match=r"no cell 'rx.drop'; a cell is FAULT@STATE"):
        chosen_cells(CELLS, ["rx.drop"])
    with pytest.raises(UnknownCell, match="--only weather: is no group"):
        chosen_cells(CELLS, [], "weather")
    with pytest.raises(UnknownCell, match="no mutation 'none'; there are link_loss"):
        mutated_cells(MATRIX, "none", 0)


def test_the_sample_is_of_all_states_and_groups() -> None:
    chosen = sample(CELLS)
    assert {each.state for each in chosen} == set(State)
    assert {each.fault.group for each in chosen} == set(GROUPS)


# What judges

LEDGER = BoardLedger(1, "j1", 10, 10, 0, 0, 64, 64, 0, 0, 0, 0)
RECORDED = Recorded(Ledger((LEDGER,)), 12, "", False, 0.0)
TRIPPED = Evidence(
    outputs=((9, 1, 500), (10, 0, 0), (11, 0, 0)), shown=10, armed=5, started=0, off_after=None, error="BoardFault",
    trip=Trip.SUPPLY, second_error="", latched=0, taken=12, recorded=RECORDED,
    recovery="", text="", strikes=1, done=False,
)  # fmt: skip


SAID = replace(TRIPPED, error="SIGHUP", text="stopped by SIGHUP; motors are off")


def test_a_cell_in_which_all_is_well_passes() -> None:
    verdict = judge(cell("supply.sags@ARMED"), TRIPPED)
    assert verdict.ok, verdict.problems
    assert (verdict.named, verdict.ticks) == ("SUPPLY", 0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"outputs": ((9, 1, 5), (10, 1, 5), (11, 0, 0))}, "the motor was off after 1 ticks, allowed are 0"),
        ({"outputs": ((9, 1, 5), (10, 1, 5))}, "the motor was not off at the end"),
        ({"outputs": ((9, 1, 5), (10, 0, 0), (11, 1, 5), (12, 0, 0))}, "off after 2 ticks"),
        ({"outputs": ((9, 0, 0), (10, 0, 5), (11, 0, 0))}, "off after 1 ticks"),
        ({"outputs": ()}, "the motor was not off at the end"),
        ({"outputs": ((9, 1, -10_001), (10, 0, 0))}, "a command of 10001 mA is beyond limit.current"),
        ({"trip": Trip.POSITION}, "named POSITION, expected SUPPLY"),
        ({"error": "BoardSilent"}, "named BoardSilent, expected SUPPLY"),
        ({"error": ""}, "named NONE, expected SUPPLY"),
        ({"taken": 13}, "1 of 13 records are lost"),
        ({"recorded": None}, "nothing is left of 12 records"),
        ({"recorded": replace(RECORDED, damage="frames.bin: torn")}, "frames.bin: torn"),
        (
            {"recorded": replace(RECORDED, ledger=Ledger((replace(LEDGER, fault="2 too many"),)))},
            "not close: 2",
        ),
        ({"recovery": "does not play again"}, "does not play again"),
        ({"strikes": 0}, "the fault did not strike"),
        ({"recorded": None, "taken": 0}, "nothing is left of 0 records"),
        ({"recorded": replace(RECORDED, kept=0), "taken": 0}, "nothing was recorded"),
        # Held for 20 ticks with the fault there, and off only after START: as long as it is on it counts.
        ({"started": 25, "outputs": (*((tick, 1, 5) for tick in range(5, 30)), (30, 0, 0))}, "off after 20 ticks"),
    ],
)
def test_the_judge_can_fail(changes, problem: str) -> None:
    verdict = judge(cell("supply.sags@ARMED"), replace(TRIPPED, **changes))
    assert not verdict.ok
    assert any(problem in each for each in verdict.problems), verdict.problems


def test_words_that_are_missing_are_a_wrong_name() -> None:
    stopped = cell("program.hangup@RUNNING")
    assert judge(stopped, SAID).ok
    quiet = judge(stopped, replace(SAID, text="stopped by SIGHUP"))
    assert quiet.problems == ("says 'stopped by SIGHUP', and not 'motors are off'",)


def test_what_only_a_motion_shows_is_counted_from_start() -> None:
    held = replace(TRIPPED, started=25, outputs=(*((tick, 1, 5) for tick in range(5, 30)), (30, 0, 0)))
    assert judge(cell("encoder.stuck@ARMED"), held).ticks == 30 - (25 + 1)
    assert judge(cell("encoder.noisy@ARMED"), held).ticks == 30 - 10


PLAYED = replace(
    TRIPPED, error="", trip=0, started=20, done=True, outputs=(*((tick, 1, 5) for tick in range(5, 900)), (900, 0, 0))
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"done": False}, "not played to its end"),
        ({"started": 300}, "on for 600 ticks of 691"),
        ({"outputs": (*((tick, 1, 5) for tick in range(5, 100)), (100, 0, 0))}, "on for 80 ticks of 691"),
        ({"strikes": 0}, "did not strike"),
    ],
)
def test_what_must_stop_nothing_is_played_to_its_end(changes, problem: str) -> None:
    problems = judge(cell("torque.stuck@ARMED"), replace(PLAYED, **changes)).problems
    assert len(problems) == bool(problem)
    assert all(problem in each for each in problems)


def test_only_a_host_that_failed_at_boot_need_not_have_recorded() -> None:
    nothing = replace(TRIPPED, error="BoardSilent", taken=0, recorded=None)
    assert not judge(cell("tx.lose@BOOT"), nothing).lost
    assert judge(cell("tx.lose@LOADED"), nothing).lost
    assert judge(cell("tx.lose@BOOT"), replace(nothing, error="")).lost


def test_a_recording_that_the_doctor_does_not_look_at_is_damaged(tmp_path: Path, monkeypatch) -> None:
    run = tmp_path / "run"
    CountedRecorder(run, {"robot": "modular7", "board": [{"node": 1, "joint": "j1"}]}).close("finished")
    assert "frames" not in damage_of(run)
    monkeypatch.setattr(evidence, "_WHOLE", ("frames", "weather"))
    assert "the doctor says nothing of weather" in damage_of(run)


def test_a_line_has_its_fault_or_the_cell_is_not_run(tmp_path: Path) -> None:
    live, wired = tmp_path / "bench.toml", cell("rx.drop@ARMED")
    live.write_text('url = "/dev/pts/7"\n', encoding="utf-8")
    assert 'url = "fault://seed=' in with_faulty_line(live, wired, 0).read_text(encoding="utf-8")
    for text in ('path = "/dev/pts/7"\n', 'url = "a"\nurl = "b"\n'):
        live.write_text(text, encoding="utf-8")
        with pytest.raises(CellNotRun, match="needs exactly one"):
            with_faulty_line(live, wired, 0)


def test_cells_of_one_name_are_kept_apart() -> None:
    (mutated,) = mutated_cells(MATRIX, "internal", 0, (State.ARMED,))
    alike = [mutated, replace(mutated, mutation=""), replace(mutated, mutation="", board=EMULATED["qemu:"])]
    assert len({each.id for each in alike}) == 1
    assert len({each.folder for each in alike}) == len({each.command for each in alike}) == 3


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_command_of_a_mutated_cell_means_that_cell(name: str) -> None:
    for each in (*mutated_cells(MATRIX, name, 5), control_cell(MATRIX, name, 5)):
        options = parser().parse_args(each.command.split()[2:])
        assert list(cells_of(options)) == [each]


def test_a_motor_on_without_an_arm_is_unsafe() -> None:
    held = replace(TRIPPED, error="", armed=30, outputs=((9, 0, 0), (20, 1, 5), (21, 0, 0)))
    assert "on at tick 20, without an ARM" in judge(cell("torque.stuck@LOADED"), held).unsafe


def test_a_ledger_that_should_be_open_must_say_so() -> None:
    assert "closes, though" in judge(cell("host.killed@ARMED"), TRIPPED).unaccounted


# On a bench


@pytest.mark.parametrize(
    "id",
    [
        "supply.sags@ARMED",
        "rx.lose@RUNNING",
        "board.brown-out@LOADED",
        "model.of_another_robot@LOADED",
        "feedforward.stops@LOADED",
        "feedforward.knots_stop@RUNNING",
    ],
)
def test_a_cell_of_each_kind(tmp_path: Path, id: str) -> None:
    verdict = run_cell(cell(id), tmp_path)
    assert verdict.ok, verdict.problems


@pytest.mark.slow
@pytest.mark.parametrize("id", ["plan.other_robot@RUNNING", "program.terminal_closed@RUNNING"])
def test_a_cell_of_the_program(tmp_path: Path, id: str) -> None:
    verdict = run_cell(cell(id), tmp_path)
    assert verdict.ok, verdict.problems


@pytest.mark.slow
def test_without_the_gate_the_program_moves_what_it_must_refuse(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Gate, "check", lambda self, motion: None)
    for name in ("plan.other_robot", "plan.forged", "limits.bench_lowered", "robot.kinematics"):
        verdict = run_cell(cell(f"{name}@DISARMED"), tmp_path)
        assert verdict.unsafe, name
        assert verdict.misnamed, name


@pytest.mark.slow
def test_a_stop_that_nobody_obeys_is_seen(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(SafeInterrupt, "check", lambda self: None)
    verdict = run_cell(cell("program.hangup@RUNNING"), tmp_path)
    assert "allowed are 100" in verdict.unsafe


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "setting"),
    [
        ("rx.delay@LOADED", "rx.delay=1,for:20ms,from:1000s"),
        ("torque.offset@LOADED", {"fault": "torque_offset", "samples": 0}),
    ],
)
def test_a_fault_that_does_not_strike_is_not_passed(tmp_path: Path, id: str, setting: object) -> None:
    unstruck = cell(id)
    verdict = run_cell(replace(unstruck, fault=replace(unstruck.fault, setting=setting)), tmp_path)
    assert verdict.problems == ("the fault did not strike",)
    assert (tmp_path / unstruck.folder).exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_without_a_rule_cells_turn_red(tmp_path: Path, name: str) -> None:
    cells = mutated_cells(MATRIX, name, 0)
    assert all(MUTATIONS[name].is_seen(verdict) for verdict in run_campaign(cells, tmp_path, workers=1).verdicts)
    others = [*(replace(each, mutation="") for each in cells), control_cell(MATRIX, name, 0)]
    green = run_campaign(others, tmp_path, workers=1)
    assert all(verdict.ok for verdict in green.verdicts), [verdict.problems for verdict in green.verdicts]


def test_three_safety_rules_are_missed_by_an_unsafe_motor() -> None:
    assert {name for name, mutation in MUTATIONS.items() if not mutation.safe} >= {
        "link_loss",
        "over_current",
        "internal",
    }


@pytest.mark.slow
def test_a_sample_of_all_cells_passes(tmp_path: Path) -> None:
    campaign = run_campaign(sample(CELLS), tmp_path, workers=2)
    assert all(verdict.ok for verdict in campaign.verdicts), [each.problems for each in campaign.verdicts]


@pytest.mark.slow
def test_faults_that_strike_a_floating_motor_leave_it_off(tmp_path: Path) -> None:
    campaign = run_campaign([each for each in CELLS if each.fault.floats], tmp_path, workers=2)
    assert len(campaign.verdicts) >= 6
    assert all(verdict.ok for verdict in campaign.verdicts), [each.problems for each in campaign.verdicts]


@pytest.mark.slow
def test_the_same_cell_is_the_same_again(tmp_path: Path) -> None:
    one, other = (frames_of(cell("rx.flip@RUNNING"), tmp_path / name) for name in ("one", "other"))
    assert len(one) > 10_000
    assert one == other


def frames_of(struck: Cell, folder: Path) -> bytes:
    """What a cell records."""
    folder.mkdir()
    with forked_bench(bench_of(struck, folder), struck.own_seed, folder / "bench") as live:
        session = Session(struck, live, folder)
        session.run()
        session.close()
    return (folder / "run" / FRAMES).read_bytes()


# Power cuts of a chip


def test_cuts_that_were_interrupted_go_on_with_the_same_update(tmp_path: Path) -> None:
    writes = (FlashWrite(4096, None), FlashWrite(4096, b"\x0f" * 256))
    update = Update(b"\xff" * 8192, writes, "aa", "bb", {"node": 1})
    update.save(tmp_path)
    assert Update.load(tmp_path) == update
    verdicts = [CutVerdict(Cut(1, "bits"), "aa", True, "", (7, 3)), CutVerdict(Cut(2, "before"), "bb", False, "no")]
    assert all(verdict.cut in update.cuts for verdict in verdicts)
    noted = tmp_path / "verdicts.jsonl"
    assert read_verdicts(noted) == []
    lines = [json.dumps(verdict.to_dict()) + "\n" for verdict in verdicts]
    noted.write_text("".join(lines) + lines[0][:20], encoding="utf-8")  # the end came amid a line
    assert read_verdicts(noted) == verdicts
    assert noted.read_text(encoding="utf-8") == "".join(lines)


def read_pages(memory: bytes) -> tuple[tuple[int, ...], str]:
    """What a program reads that goes from page to page by their first bytes, and a word of all it has read."""
    reads, place = [0], memory[0] % 8
    while place not in reads and len(reads) < 5:
        reads.append(place)
        place = memory[FLASH_PAGE * place] % 8
    return tuple(reads), hashlib.sha256(
        b"".join(memory[FLASH_PAGE * k : FLASH_PAGE * (k + 1)] for k in reads)
    ).hexdigest()


def test_a_boot_is_shared_by_memories_of_which_a_chip_reads_the_same_and_by_no_others() -> None:
    rng, tree, shared = random.Random(1), BootTree(), 0
    for number in range(2000):
        memory = b"".join(bytes([rng.randrange(4)]) * FLASH_PAGE for _ in range(8))
        reads, image = read_pages(memory)
        same = tree.find(memory)
        if same is None:
            tree.add(memory, CutVerdict(Cut(number, "before"), image, True, "", reads))
        else:
            shared += 1
            assert same.image == image
    assert 1000 < shared < 2000  # many do, and not all
    assert all(tree.find(bytes([k]) + bytes(8 * FLASH_PAGE - 1)) is None for k in range(4, 9))


def test_a_chip_that_does_not_the_same_on_the_same_is_an_error() -> None:
    tree, memory = BootTree(), bytes(8 * FLASH_PAGE)
    tree.add(memory, CutVerdict(Cut(0, "before"), "aa", True, "", (3, 5)))
    tree.add(memory, CutVerdict(Cut(0, "half"), "aa", True, "", (3, 5)))
    for image, reads in (("aa", (3, 6)), ("aa", (3,)), ("aa", (3, 5, 6)), ("bb", (3, 5))):
        with pytest.raises(CellNotRun, match="has read the same"):
            tree.add(memory, CutVerdict(Cut(1, "before"), image, True, "", reads))


def test_nothing_to_go_on_with_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cuts", "rp2040", "--resume", "--out", str(tmp_path)]) == 2
    assert "holds no update to go on with" in capsys.readouterr().err


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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("killed") / "store")


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["disk.full@model", "disk.full@configuration", "disk.read_only@result"])
def test_a_disk_that_takes_no_more(store: Store, tmp_path: Path, cell: str) -> None:
    verdict = run_disk_cell(cell, store, tmp_path)
    assert load(FOLDER)["campaign.disk"].check(bool(verdict.problem)).ok, verdict.problem


@pytest.mark.slow
def test_where_nothing_can_be_mounted_the_process_is_limited(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_mount", lambda *words: False)
    verdict = run_disk_cell("disk.full@export", store, tmp_path)
    assert (verdict.real, verdict.problem) == (False, "")
    assert "File too large" in verdict.words


@pytest.mark.slow
def test_a_file_that_is_written_in_place_is_seen(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointbench.identification.model_file.write_file", lambda path, text: path.write_text(text))
    assert "is not as it was" in run_disk_cell("disk.full@model", store, tmp_path).problem


@pytest.mark.slow
def test_every_trouble_meets_every_command() -> None:
    assert len(disk_cells()) == len(TROUBLES) * len(COMMANDS)
    with pytest.raises(UnknownCell, match=r"no cell 'disk.wet@model'; a cell of the disk is"):
        disk_cells(["disk.wet@model"])


@pytest.mark.slow
def test_some_kills_of_each_kind(store: Store, tmp_path: Path) -> None:
    verdicts = [run_kill(Kill(number, 1), store, tmp_path) for number in range(len(WORKS) * len(WAYS))]
    assert {(verdict.kill.work, verdict.kill.way) for verdict in verdicts} == {(a, b) for a in WORKS for b in WAYS}
    checks = kill_checks(verdicts)
    assert all(check.ok for check in checks), [verdict.to_dict() for verdict in verdicts]
    assert {check.name for check in checks} == {name for name in load(FOLDER) if name.startswith("kills.")}


def cuts(store: Store, tmp_path: Path, work: str) -> Iterator[kills.KillVerdict]:
    numbers = range(12 + WORKS.index(work), 400, 16)
    return (run_kill(Kill(number, 1), store, tmp_path) for number in numbers)


@pytest.mark.slow
def test_a_file_that_is_not_synced_is_half_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed.disk_log.cache_clear()
    monkeypatch.setattr(files, "sync", lambda path: None)
    assert any("is neither the earlier one" in verdict.half_written for verdict in cuts(store, tmp_path, "export"))
    undisturbed.disk_log.cache_clear()


@pytest.mark.slow
def test_a_recording_that_is_seldom_synced_loses_more(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed.disk_log.cache_clear()
    monkeypatch.setattr(recorder_module, "_FSYNC_S", 0.2)
    verdicts = [replace(verdict, missed="") for verdict in cuts(store, tmp_path, "record")]
    undisturbed.disk_log.cache_clear()
    assert not next(check for check in kill_checks(verdicts) if check.name == "kills.lost").ok


@pytest.mark.slow
def test_the_same_kill_is_the_same_again() -> None:
    assert Kill(5, 2).rng.random() == Kill(5, 2).rng.random() != random.Random("2 6").random()
    assert [Kill(number, 0).work for number in range(5)] == [*WORKS, "record"]


@pytest.mark.slow
def test_cells_of_the_disk_are_no_boards() -> None:
    options = parser().parse_args(["--cell", "rx.drop@RUNNING"])
    assert [cell.id for cell in cells_of(options)] == ["rx.drop@RUNNING"]
