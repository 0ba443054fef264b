"""What was recorded must be readable, whole and true, whatever happened while it was recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.bench import Ledger
from jointbench.errors import RunError, ShapeError
from jointbench.model import load_robot
from jointbench.recording import Recorder, examine, new_run_path, open_run, save_samples
from jointbench.recording.decode import Record, RecordKind, encode_record, read_records
from jointbench.recording.samples import Samples
from jointbench.signals import BoardFilter
from jointbench.tests.recording import simulated_run
from jointbench.tests.recording.board_stream import BLOCK, DEFAULTS, data, motion, provenance, record, sample, status
from jointbench.tests.recording.simulated_run import without_seal
from jointwire import FrameReader, State

TURN = 2.0 * np.pi


def test_every_sample_comes_back_scaled_once(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "run", [motion(1), motion(2)], (1, 2)))
    samples, drive = run.samples, load_robot("cobot6").drives[1]
    assert run.warnings == ()
    assert run.ledger is not None
    assert run.ledger.is_valid
    assert samples.joint_names == ("j1", "j2")
    assert samples.valid.all()
    ticks = 5000 + np.arange(samples.n_samples)
    raw = {name: np.array([sample(int(tick), 2)[name] for tick in ticks], dtype=float) for name in sample(0, 0)}
    np.testing.assert_allclose(samples.time, 1e-3 * (ticks - 5000), rtol=1e-12)
    motor = raw["motor_position"] * TURN / 4096 / drive.ratio
    np.testing.assert_allclose(samples.motor_position[:, 1], motor, rtol=1e-12)
    assert samples.link_position is not None
    np.testing.assert_allclose(samples.link_position[:, 1], raw["link_position"] * TURN / 524288, rtol=1e-12)
    assert samples.motor_current is not None
    np.testing.assert_allclose(samples.motor_current[:, 1], raw["motor_current"] * 305176e-9, rtol=1e-12)
    assert samples.motor_torque is not None
    np.testing.assert_allclose(
        samples.motor_torque[:, 1], samples.motor_current[:, 1] * drive.torque_per_current, rtol=1e-12
    )
    assert samples.joint_torque is not None
    np.testing.assert_allclose(samples.joint_torque[:, 1], raw["joint_torque"] * 1e-3, rtol=1e-12)
    np.testing.assert_array_equal(samples.play_tick, np.arange(samples.n_samples))
    nothing = ((1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    passed = BoardFilter(sections=(nothing, nothing), cic_order=1, window=1e-3, sample_period=1e-3)
    assert samples.board_filters == (passed,) * 2
    assert samples.sample_period == 1e-3


def test_zero_calibration_comes_off_before_scaling(tmp_path: Path) -> None:
    facts = provenance()
    facts["board"][0]["registers"] = DEFAULTS | {"current.zero": 40, "torque.zero": -7}
    stream, reader = motion(1), FrameReader()
    with Recorder(tmp_path / "run", facts) as recorder:
        for sent in stream:
            for chunk in reader.feed(sent.data):
                recorder.chunk(sent.time_us, 1, chunk)
    samples = open_run(tmp_path / "run").samples
    assert samples.motor_current is not None
    assert samples.joint_torque is not None
    assert samples.motor_current[0, 0] == pytest.approx((sample(5000, 1)["motor_current"] - 40) * 305176e-9)
    assert samples.joint_torque[0, 0] == pytest.approx((sample(5000, 1)["joint_torque"] + 7) * 1e-3)


def test_a_lost_block_is_missing_for_its_joint_only(tmp_path: Path) -> None:
    stream = motion(2)
    del stream[3]
    run = open_run(record(tmp_path / "run", [motion(1), stream], (1, 2)))
    gap = slice(2 * BLOCK, 3 * BLOCK)
    assert run.samples.valid[:, 0].all()
    assert not run.samples.valid[gap, 1].any()
    assert run.samples.valid[:, 1].sum() == run.samples.n_samples - BLOCK
    assert np.isnan(run.samples.motor_position[gap, 1]).all()
    assert np.isfinite(run.samples.motor_position[gap, 0]).all()
    assert run.ledger is not None
    assert run.ledger.samples_lost == BLOCK
    assert not run.ledger.is_valid


def bent(tick: float, _node: int) -> dict[str, int]:
    """A position that bends by 2 counts in each tick², and a current that rises."""
    return {"motor_position": round((tick - 5000.0) ** 2), "motor_current": round(40.0 * (tick - 5000.0))}


def test_a_late_sample_is_put_where_it_was_taken(tmp_path: Path) -> None:
    """The line from its neighbour is off by the bend, d counts here; taken for the tick's own it is off by 2 v d."""
    start, at, late_us = 5000, 5000 + BLOCK, 813
    place = at + 1e-3 * late_us
    stream = [
        status(1, 0, start - 20, State.LOADED, 0),
        data(1, 1, start, BLOCK, 0, raw=bent),
        data(1, 2, at, 1, BLOCK, raw=lambda _tick, node: bent(place, node), late_us=late_us),
        data(1, 3, at + 1, BLOCK, BLOCK + 1, raw=bent),
        status(1, 4, at + 1 + BLOCK, State.DONE, 2 * BLOCK + 1, sent=4),
    ]
    run = open_run(record(tmp_path / "run", [stream]))
    samples, row = run.samples, BLOCK
    assert samples.valid[:, 0].all()
    np.testing.assert_array_equal(samples.play_tick[: 2 * BLOCK + 1], np.arange(2 * BLOCK + 1))
    assert samples.motor_current is not None
    per_count = TURN / 4096 / load_robot("cobot6").drives[0].ratio
    counts, current = samples.motor_position[:, 0] / per_count, samples.motor_current[:, 0] / 305176e-9
    assert counts[row] == pytest.approx(BLOCK**2, abs=1.4)  # 0.813 of bend, and half a count of rounding
    assert counts[row - 1] == pytest.approx((BLOCK - 1) ** 2)
    assert counts[row + 1] == pytest.approx((BLOCK + 1) ** 2)
    assert current[row] == pytest.approx(40.0 * BLOCK, abs=0.6)
    assert [words for words in run.warnings if "1 samples were taken late, by up to 813 µs" in words]


def test_late_samples_in_a_row_after_a_missed_tick_are_joined_to_each_other(tmp_path: Path) -> None:
    start, at = 5000, 5000 + BLOCK
    stream = [
        status(1, 0, start - 20, State.LOADED, 0),
        data(1, 1, start, BLOCK, 0, raw=bent),
        data(1, 2, at + 1, 1, BLOCK + 1, missed=1, raw=lambda _tick, node: bent(at + 1.7, node), late_us=700),
        data(1, 3, at + 2, 1, BLOCK + 2, raw=lambda _tick, node: bent(at + 2.3, node), late_us=300),
        data(1, 4, at + 3, BLOCK, BLOCK + 3, raw=bent),
        status(1, 5, at + 3 + BLOCK, State.DONE, 2 * BLOCK + 2, sent=5),
    ]
    run = open_run(record(tmp_path / "run", [stream]))
    assert np.flatnonzero(~run.samples.valid[:, 0]).tolist() == [BLOCK]  # of the missed tick nothing is known
    counts = run.samples.motor_position[:, 0] / (TURN / 4096 / load_robot("cobot6").drives[0].ratio)
    assert counts[BLOCK + 1] == pytest.approx((BLOCK + 1) ** 2, abs=1.4 + 0.5)  # 2 * 0.7 of bend
    assert counts[BLOCK + 2] == pytest.approx((BLOCK + 2) ** 2, abs=0.3 * 0.3 + 0.5)


def test_a_late_block_of_several_samples_is_left_out_and_named(tmp_path: Path) -> None:
    start = 5000
    stream = [
        status(1, 0, start - 20, State.LOADED, 0),
        data(1, 1, start, BLOCK, 0),
        data(1, 2, start + BLOCK, 2, BLOCK, late_us=500),
        data(1, 3, start + BLOCK + 2, BLOCK, BLOCK + 2),
        status(1, 4, start + 2 * BLOCK + 2, State.DONE, 2 * BLOCK + 2, sent=4),
    ]
    run = open_run(record(tmp_path / "run", [stream]))
    assert np.flatnonzero(~run.samples.valid[:, 0]).tolist() == [BLOCK, BLOCK + 1]
    assert [words for words in run.warnings if "a block of 2 samples" in words]


def test_a_late_sample_after_a_gap_is_left_out(tmp_path: Path) -> None:
    start, at = 5000, 5000 + BLOCK
    stream = [
        status(1, 0, start - 20, State.LOADED, 0),
        data(1, 1, start, BLOCK, 0),
        data(1, 2, at + 2, 1, BLOCK + 2, missed=2, late_us=500),
        data(1, 3, at + 3, BLOCK, BLOCK + 3),
        status(1, 4, at + 3 + BLOCK, State.DONE, 2 * BLOCK + 1, sent=4),
    ]
    run = open_run(record(tmp_path / "run", [stream]))
    assert np.flatnonzero(~run.samples.valid[:, 0]).tolist() == [BLOCK, BLOCK + 1, BLOCK + 2]
    assert np.isnan(run.samples.motor_position[BLOCK + 2, 0])


def test_play_ticks_hold_where_the_first_joint_lost_its_samples(tmp_path: Path) -> None:
    stream = motion(1)
    del stream[1:4]
    run = open_run(record(tmp_path / "run", [stream, motion(2)], (1, 2)))
    np.testing.assert_array_equal(run.samples.play_tick, np.arange(run.samples.n_samples))


def test_duplicate_and_late_frames_change_nothing(tmp_path: Path) -> None:
    plain = open_run(record(tmp_path / "plain", [motion(1)]))
    stream = motion(1)
    shuffled = [*stream[:3], *stream[4:7], stream[3], *stream[2:]]
    shuffled = [replace(sent, time_us=index) for index, sent in enumerate(shuffled)]
    mixed = open_run(record(tmp_path / "mixed", [shuffled]))
    np.testing.assert_array_equal(mixed.samples.motor_position, plain.samples.motor_position)
    assert mixed.ledger is not None
    assert mixed.ledger.samples_lost == 0


def test_a_tail_torn_at_any_byte_keeps_everything_before_it(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1, blocks=2)])
    frames = path / "frames.bin"
    whole = frames.read_bytes()
    (path / "result.json").unlink()
    sent = motion(1, blocks=2)[-1]
    (chunk,) = FrameReader().feed(sent.data)
    start = len(whole) - len(encode_record(Record(sent.time_us, 1, RecordKind.FRAME, chunk.encoded)))
    for length in range(start, len(whole) + 1):
        frames.write_bytes(whole[:length])
        run = open_run(path)
        assert run.samples.n_samples == 2 * BLOCK + 17
        assert run.samples.valid.all()
        torn = [warning for warning in run.warnings if "ends in the middle of a record" in warning]
        assert len(torn) == (start < length < len(whole)), length
        assert any("unfinished run" in warning for warning in run.warnings)


def test_a_damaged_record_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1)])
    frames = bytearray((path / "frames.bin").read_bytes())
    frames[2000] ^= 0x10
    (path / "frames.bin").write_bytes(frames)
    run = open_run(without_seal(path))
    assert any("are damaged and are left out" in warning for warning in run.warnings)
    assert any("frames.bin has changed since it was recorded" in warning for warning in run.warnings)
    assert run.samples.valid[:, 0].sum() == run.samples.n_samples - BLOCK
    assert run.ledger is not None
    assert (run.ledger.closes, run.ledger.samples_lost) == (True, BLOCK)


def test_a_damaged_length_costs_no_more_than_its_record(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1)])
    whole = (path / "frames.bin").read_bytes()
    records = list(read_records(whole, []))
    start = sum(len(encode_record(each)) for each in records[:4])
    for bit in range(32):
        frames = bytearray(whole)
        frames[start + bit // 8] ^= 1 << bit % 8
        warnings: list[str] = []
        assert list(read_records(bytes(frames), warnings)) == records[:4] + records[5:]
        assert warnings == [
            f"frames.bin: bytes {start} to {start + len(encode_record(records[4])) - 1} are damaged and are left out"
        ]


def test_a_tail_of_zeros_as_a_power_cut_leaves_it_is_one_warning(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1)])
    whole = (path / "frames.bin").read_bytes()
    warnings: list[str] = []
    assert list(read_records(whole + bytes(100_000), warnings)) == list(read_records(whole, []))
    assert len(warnings) == 1


def test_a_run_that_lost_too_much_says_so_itself(tmp_path: Path) -> None:
    stream = motion(1)
    run = open_run(record(tmp_path / "run", [[*stream[:3], *stream[4:]]]))
    assert not run.is_valid
    assert run.warnings[0].startswith("invalid: ")


def test_the_same_bytes_make_the_same_file(tmp_path: Path) -> None:
    first = open_run(record(tmp_path / "first", [motion(1)]))
    second = open_run(record(tmp_path / "second", [motion(1)]))
    other = open_run(record(tmp_path / "other", [motion(1, blocks=9)]))
    assert first.sha256 == second.sha256 != other.sha256


def test_noise_is_kept_and_counted(tmp_path: Path) -> None:
    stream = motion(1)
    stream.insert(4, replace(stream[4], data=b"Traceback (most recent call last):\r\n\x00", samples=0))
    path = record(tmp_path / "run", [stream])
    run = open_run(path)
    assert b"Traceback" in (path / "frames.bin").read_bytes()
    assert run.ledger is not None
    assert (run.ledger.boards[0].bad_frames, run.ledger.samples_lost) == (1, 0)


def test_a_board_that_starts_again_does_not_stretch_the_timeline(tmp_path: Path) -> None:
    stream = motion(1, start=100_000, first_seq=20_000)
    again = [data(1, 9000, 3, 64), status(1, 9001, 70, State.DONE, 64)]
    stream += [replace(sent, time_us=stream[-1].time_us + 1) for sent in again]
    run = open_run(record(tmp_path / "run", [stream]))
    assert run.samples.n_samples == 10 * BLOCK + 17
    assert any("started again" in warning for warning in run.warnings)
    assert run.ledger is not None
    assert "started again" in run.ledger.verdict


def test_an_error_while_recording_leaves_a_readable_run_that_says_so(tmp_path: Path) -> None:
    def record_and_fail() -> None:
        reader = FrameReader()
        with Recorder(tmp_path / "run", provenance()) as recorder:
            for sent in motion(1)[:5]:
                for chunk in reader.feed(sent.data):
                    recorder.chunk(sent.time_us, 1, chunk)
            recorder.event(5000, "arm", node=1)
            raise ZeroDivisionError("of somebody's callback")

    with pytest.raises(ZeroDivisionError):
        record_and_fail()
    run = open_run(tmp_path / "run")
    assert run.samples.n_samples == 4 * BLOCK
    assert "the run was stopped by ZeroDivisionError: of somebody's callback" in run.warnings
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert events == [{"time_us": 5000, "event": "arm", "node": 1}]


def test_the_result_file_holds_the_ledger(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1)])
    result = json.loads((path / "result.json").read_text())
    assert Ledger.from_dict(result["ledger"]) == open_run(path).ledger
    assert result["outcome"] == "finished"


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    record(tmp_path / "run", [motion(1)])
    with pytest.raises(RunError, match="exists; a run is never overwritten"):
        Recorder(tmp_path / "run", provenance())


def test_new_names_do_not_collide(tmp_path: Path) -> None:
    first = new_run_path(tmp_path, "cobot6", "excitation")
    first.mkdir()
    assert new_run_path(tmp_path, "cobot6", "excitation") != first
    assert new_run_path(tmp_path, "x/../../ESCAPED", "excitation").parent == tmp_path
    assert first.name.endswith("Z-cobot6-excitation")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: (path / "run.toml").unlink(), "it holds no run.toml"),
        (lambda path: (path / "run.toml").write_text("version = 9"), "version = 9; this release reads 1"),
        (lambda path: (path / "run.toml").write_text("version ="), "cannot be read"),
        (lambda path: (path / "run.toml").write_text("version = 1"), "boards and clock are needed"),
        (lambda path: _edit(path / "run.toml", "[board.registers]", "[board.words]"), "lacks 'registers': boards and"),
        (lambda path: _edit(path / "run.toml", '"adc.window" = 1', '"adc.w" = 1'), "board lack 'adc.window'; without"),
        (lambda path: _edit(path / "run.toml", '"adc.window" = 1000', '"adc.window" = nan'), "be used .*: boards"),
        (lambda path: _set_register(path / "run.toml", "current.scale", 0), "current.scale of j1 is 0, so that"),
        (lambda path: _set_register(path / "run.toml", "drive.ratio", 0), "drive.ratio of j1 is 0, so that nothing"),
        (lambda path: _set_register(path / "run.toml", "encoder.link_counts", 0), "link_counts of j1 is 0, so that"),
        (
            lambda path: _edit(path / "run.toml", "[[board]]", '[excitation]\nfamily = "chirp"\n\n[[board]]'),
            "run.toml: the stored excitation is damaged: family is 'chirp'",
        ),
        (lambda path: (path / "frames.bin").unlink(), "holds neither frames.bin nor samples.npz"),
        (lambda path: (path / "frames.bin").write_bytes(b""), "holds no samples"),
    ],
)
def test_what_is_no_run_is_refused_by_name(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    path = without_seal(record(tmp_path / "run", [motion(1)]))  # of a sealed one, the seal is refused before
    spoil(path)
    with pytest.raises(RunError, match=message):
        open_run(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting property name"),
        ("null", "it holds no table of entries"),
        ("{}", "it lacks outcome, records, first_us, last_us, frames_sha256, ledger"),
        ('{"outcome": 3, "records": "many", "first_us": null, "last_us": 1, "frames_sha256": "0", "ledger": {}}',
         "outcome = 3, records = 'many'"),
        ('{"outcome": "", "records": 3, "first_us": null, "last_us": 1, "frames_sha256": "", "ledger": {"boards": []}}',
         "its ledger is none ('limit')"),
    ],
)  # fmt: skip
def test_a_damaged_result_is_refused_and_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    path = record(tmp_path / "run", [motion(1)])
    (path / "result.json").write_text(text)
    with pytest.raises(RunError) as error:
        open_run(path)
    assert f"{path / 'result.json'} cannot be read" in str(error.value)
    assert words in str(error.value)
    assert any(words in each.what for each in examine(path).findings if not each.ok)


def _edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def _set_register(path: Path, name: str, value: int) -> None:
    text, count = re.subn(rf'"{name}" = \d+', f'"{name}" = {value}', path.read_text(), count=1)
    assert count == 1
    path.write_text(text)


def test_there_is_no_such_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no such directory"):
        open_run(tmp_path / "nowhere")


def _imported() -> Samples:
    rng = np.random.default_rng(0)
    position = rng.normal(size=(50, 2))
    return Samples(
        time=np.linspace(0.0, 0.098, 50),
        joint_names=("j1", "j2"),
        motor_position=position,
        link_position=None,
        motor_current=None,
        motor_torque=rng.normal(size=(50, 2)),
        joint_torque=None,
        play_tick=np.full(50, -1),
        valid=np.ones((50, 2), dtype=bool),
        board_filters=None,
        sample_period=0.002,
    )


def test_samples_from_elsewhere_come_back_bit_for_bit(tmp_path: Path) -> None:
    samples = _imported()
    path = save_samples(tmp_path / "run", samples, {"robot": "cobot6", "source": {"file": "log.csv"}})
    run = open_run(path)
    for name in ("time", "motor_position", "motor_torque", "valid", "play_tick"):
        np.testing.assert_array_equal(getattr(run.samples, name), getattr(samples, name))
    assert run.samples.link_position is None
    assert run.samples.board_filters is None
    assert run.samples.joint_names == ("j1", "j2")
    assert (run.ledger, run.excitation, run.repeats) == (None, None, 0)
    assert run.provenance["source"] == {"file": "log.csv"}


def test_filters_of_samples_come_back(tmp_path: Path) -> None:
    one, other = ((0.1, 0.2, 0.1), (1.0, -0.5, 0.1)), ((0.3, 0.1, 0.0), (1.0, -0.7, 0.1))
    filters = (
        BoardFilter(sections=(one, other), cic_order=2, window=0.002, sample_period=0.002),
        BoardFilter(sections=(), cic_order=1, window=0.0, sample_period=0.002),
    )
    path = save_samples(tmp_path / "run", replace(_imported(), board_filters=filters), {"robot": "cobot6"})
    assert open_run(path).samples.board_filters == filters


def test_shapes_that_disagree_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"samples\.motor_torque has shape \(49, 2\), must be \(50, 2\)"):
        replace(_imported(), motor_torque=np.zeros((49, 2)))


DOCUMENT = Path(__file__).parents[4] / "docs" / "recording.md"


def _printed(tmp_path: Path, run: Path) -> list[tuple[str, int, int]]:
    program = tmp_path / "reader.py"
    program.write_text(DOCUMENT.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", program, run], capture_output=True, text=True, check=True)
    return [(joint, int(tick), int(value)) for joint, tick, value in map(str.split, done.stdout.splitlines())]


def test_it_reads_every_sample(tmp_path: Path) -> None:
    path = simulated_run.record(tmp_path / "run")
    samples = open_run(path).samples
    printed = _printed(tmp_path, path)
    assert len(printed) == samples.valid.sum()
    for joint, name in enumerate(samples.joint_names):
        mine = sorted((tick, value) for said, tick, value in printed if said == name)
        assert [tick for tick, _ in mine] == list(range(5000, 5000 + samples.n_samples))
        counts = np.array([value for _, value in mine])
        scale = samples.motor_position[:, joint] / counts
        np.testing.assert_allclose(scale, scale[0], rtol=1e-12)  # one factor: counts to radians of the joint


def test_it_reads_up_to_a_torn_end(tmp_path: Path) -> None:
    path = simulated_run.record(tmp_path / "run")
    whole = _printed(tmp_path, path)
    frames = path / "frames.bin"
    frames.write_bytes(frames.read_bytes()[:-300])
    torn = _printed(tmp_path, path)
    assert torn == whole[: len(torn)]
    assert len(whole) // 2 < len(torn) < len(whole)
