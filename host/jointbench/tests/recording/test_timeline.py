"""Boards on one timeline: those that count the same ticks untouched, those with clocks of their own by their clocks."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointbench.arrays import chunks
from jointbench.errors import RunError
from jointbench.model import load_robot
from jointbench.recording import Recorder, Run, decode, examine, open_run, save_samples, timeline
from jointbench.recording.board_record import Packed, Ticks, Track, TrackSpool
from jointbench.recording.run_directory import read_result
from jointbench.recording.samples import Samples
from jointbench.recording.timeline import _interpolated  # pyright: ignore[reportPrivateUsage]
from jointbench.tests.bench.wire import TICK_US, WORD, TrueClock
from jointbench.tests.recording.board_stream import (
    BLOCK,
    DEFAULTS,
    DIVIDERS,
    SLOW,
    Sent,
    data,
    motion,
    provenance,
    record,
    sample,
    status,
)
from jointbench.tests.recording.simulated_run import seal_again
from jointwire import (
    ChannelKind,
    FrameReader,
    MessageType,
    Schema,
    State,
    decode_frame,
    encode_frame,
    own_schema,
    schema_hash,
    schema_text,
)

COUNTS = 4096 / (2 * np.pi) * 101
NODES = (1, 2, 3)
AMPLITUDE, OMEGA = 1e8, 2 * np.pi * 3.0  # counts; so many that rounding to one is nothing


def feed(recorder: Recorder, node: int, stream: list[Sent]) -> None:
    reader = FrameReader()
    for sent in stream:
        for chunk in reader.feed(sent.data):
            recorder.chunk(sent.time_us, node, chunk)


# Boards with clocks of their own


@dataclass(frozen=True)
class Desk:
    """Boards that all measure sin(ωt) of the host's time, each by its own clock."""

    clocks: dict[int, TrueClock]
    seed: int
    seconds: int = 20
    sync: bool = False

    def record(self, directory: Path, lost: Mapping[int, range] = {}) -> Run:
        """Record them; `lost`: blocks of a node that never arrive."""
        rng = np.random.default_rng(self.seed)
        with Recorder(directory, provenance(NODES, clock="wall")) as recorder:
            for node, clock in self.clocks.items():
                feed(recorder, node, self._stream(rng, node, clock, lost.get(node, range(0))))
        return open_run(directory)

    def _stream(self, rng: np.random.Generator, node: int, clock: TrueClock, lost: range) -> list[Sent]:
        def raw(tick: int, node: int) -> dict[str, int]:
            at = float(clock.tick_host_us(tick)) * 1e-6
            return sample(tick, node) | {"motor_position": round(AMPLITUDE * np.sin(OMEGA * at))}

        start, taken, made = clock.tick(1e6), 0, list[tuple[float, Sent]]()
        for index in range(self.seconds * 1000 // BLOCK):
            first = start + index * BLOCK
            at = float(clock.tick_host_us(first + BLOCK))
            if index not in lost:
                made.append((at, data(node, 0, first, BLOCK, index * BLOCK, raw=raw)))
        for tick in range(start - 20, start + self.seconds * 1000, 1000):
            at = float(clock.tick_host_us(tick))
            board_us = (clock.tick_zero_us + TICK_US * tick) % WORD
            made.append((at, status(node, 0, tick, State.LOADED, taken, time_us=board_us)))
        for each in clock.exchanges(rng, self.seconds * 1_000_000, 1_000_000):
            pong = encode_frame(
                MessageType.PONG, node, 0, each.board_us, nonce=each.sent_us & 0xFFFFFFFF, tick=each.tick
            )
            made.append((each.received_us, Sent(0, pong)))
        if self.sync:
            for each in clock.pulses(rng, np.arange(1.2e6, self.seconds * 1e6, 1e6)):
                pulse = encode_frame(MessageType.SYNC, node, 0, edge=each.edge, edge_us=each.board_us)
                made.append((each.received_us, Sent(0, pulse)))
        made.sort(key=lambda item: item[0])
        return [replace(_numbered(sent, index), time_us=int(at)) for index, (at, sent) in enumerate(made)]


def _numbered(sent: Sent, seq: int) -> Sent:
    """The same frame with this sequence number."""
    frame = decode_frame(sent.data[:-1])
    return replace(sent, data=encode_frame(frame.type, frame.node, seq, frame.time_us, payload=frame.payload))


def desk(seed: int, **more) -> Desk:
    rng = np.random.default_rng(1000 + seed)
    return Desk({node: TrueClock.random(rng) for node in NODES}, seed, **more)


def late_us(run: Run, joint: int) -> float:
    """How late a joint's sine is against the first's, by the phase of what is valid."""
    rows = run.samples.valid.all(axis=1)
    at = OMEGA * run.samples.time[rows]
    basis = np.column_stack([np.sin(at), np.cos(at)])
    ratios = [drive.ratio for drive in load_robot("cobot6").drives]
    fits = [np.linalg.lstsq(basis, run.samples.motor_position[rows, k] * ratios[k], rcond=None)[0] for k in (0, joint)]
    phases = [np.arctan2(fit[1], fit[0]) for fit in fits]
    return float((phases[0] - phases[1]) / OMEGA * 1e6)


@pytest.fixture(scope="module")
def gapped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of boards whose clocks a wire tells, the second of which lost three blocks."""
    return desk(7, sync=True).record(tmp_path_factory.mktemp("gapped") / "run", {2: range(100, 103)})


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize(("sync", "limit_us"), [(False, 200.0), (True, 20.0)])
def test_the_same_motion_is_seen_at_the_same_time(tmp_path: Path, seed: int, sync: bool, limit_us: float) -> None:
    bench = desk(seed, sync=sync)
    run = bench.record(tmp_path / "run")
    assert list(run.clocks) == ["j1", "j2", "j3"]
    assert all((clock.pulses > 0) is sync for clock in run.clocks.values())
    assert run.samples.n_samples >= 20_000 // BLOCK * BLOCK
    for joint in (1, 2):
        assert abs(late_us(run, joint)) <= limit_us
    found = [clock.drift_ppm - run.clocks["j1"].drift_ppm for clock in run.clocks.values()]
    true = [clock.drift_ppm - bench.clocks[1].drift_ppm for clock in bench.clocks.values()]
    np.testing.assert_allclose(found, true, atol=2.0 if sync else 30.0)


def test_clocks_place_samples_alike_however_many_rows_are_laid_out_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = desk(3, seconds=4).record(tmp_path / "run", {2: range(20, 22)}).samples
    monkeypatch.setattr(timeline, "chunks", lambda n: chunks(n, 101))
    parts = open_run(tmp_path / "run").samples
    for name in ("motor_position", "motor_current", "temperature", "valid", "play_tick", "time"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)


def test_a_gap_stays_a_gap_and_is_no_longer_than_it_was(gapped: Run) -> None:
    missing = ~gapped.samples.valid
    assert missing[10:-10, 0].sum() == missing[10:-10, 2].sum() == 0
    # A row between two samples needs both: one more is missing than was lost.
    assert 3 * BLOCK <= missing[10:-10, 1].sum() <= 3 * BLOCK + 1
    assert np.isnan(gapped.samples.motor_position[missing]).all()


def test_the_first_board_is_not_interpolated(gapped: Run) -> None:
    samples = gapped.samples
    rows = samples.valid[:, 0]
    counts = samples.motor_position[rows, 0] * COUNTS
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
    assert samples.play_tick[np.flatnonzero(rows)[0]] == 0
    moved = samples.motor_position[samples.valid[:, 1], 1] * COUNTS
    assert np.abs(moved - np.round(moved)).max() > 0.01


def test_a_clock_in_doubt_is_warned_of(tmp_path: Path, gapped: Run) -> None:
    bench = desk(9)
    rng = np.random.default_rng(9)
    with Recorder(tmp_path / "run", provenance(NODES, clock="wall")) as recorder:
        for node, clock in bench.clocks.items():
            stream = bench._stream(rng, node, clock, range(0))
            late = [replace(each, time_us=each.time_us + int(rng.integers(0, 40_000))) for each in stream]
            feed(recorder, node, late)
    run = open_run(tmp_path / "run")
    assert any("µs of doubt" in warning and "SYNC wire" in warning for warning in run.warnings)
    assert not any("of doubt" in warning for warning in gapped.warnings)


def test_the_result_states_the_clocks_as_readers_find_them(gapped: Run) -> None:
    result = read_result(gapped.path)
    assert result is not None
    assert result["clocks"] == {joint: clock.to_dict() for joint, clock in gapped.clocks.items()}
    assert max(clock["residual_us"] for clock in result["clocks"].values()) > 0.0


def test_boards_that_answered_no_ping_are_not_in_the_result(tmp_path: Path) -> None:
    """A board that died is no reason not to close the run."""
    bench = desk(4)
    stream = bench._stream(np.random.default_rng(0), 1, bench.clocks[1], range(0))
    with Recorder(tmp_path / "run", provenance((1, 2), clock="wall")) as recorder:
        feed(recorder, 1, stream)
        feed(recorder, 2, motion(2))
    result = read_result(tmp_path / "run")
    assert result is not None
    assert list(result["clocks"]) == ["j1"]


def test_frames_whose_body_is_too_short_say_nothing_of_a_clock(tmp_path: Path) -> None:
    """Their CRC holds: a faulty board made them so."""
    bench = desk(4)
    stream = bench._stream(np.random.default_rng(0), 1, bench.clocks[1], range(0))
    with Recorder(tmp_path / "run", provenance((1,), clock="wall")) as recorder:
        feed(recorder, 1, stream)
        for index, kind in enumerate((MessageType.PONG, MessageType.SYNC)):
            short = encode_frame(kind, 1, len(stream) + index, payload=b"\1\2")
            feed(recorder, 1, [Sent(stream[-1].time_us, short)])
    assert open_run(tmp_path / "run").clocks["j1"].exchanges == 200  # ten a second


def test_boards_of_unknown_clocks_are_refused(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", provenance((1, 2), clock="wall")) as recorder:
        for node in (1, 2):
            feed(recorder, node, motion(node))
    with pytest.raises(RunError, match="j1: no PING was answered, so its ticks cannot be put"):
        open_run(tmp_path / "run")


@given(
    shift=st.floats(0.0, 0.999),
    coefficients=st.lists(st.floats(-10, 10), min_size=4, max_size=4),
    every=st.sampled_from([1, 4]),
)
def test_interpolation_is_exact_for_cubics(shift: float, coefficients: list[float], every: int) -> None:
    ticks = np.arange(0, 80, every)
    polynomial = np.polynomial.Polynomial(np.array(coefficients) / 40.0 ** np.arange(4))
    at = np.arange(8, 60, dtype=np.float64) + np.float64(shift)
    found = _interpolated(Track(Ticks.of(ticks, every), polynomial(ticks)), at)
    np.testing.assert_allclose(found, polynomial(at), rtol=1e-9, atol=1e-9)


def test_interpolation_at_the_ticks_gives_the_samples_themselves() -> None:
    values = np.random.default_rng(0).integers(-(2**31), 2**31, 50)
    track = Track(Ticks.of(np.delete(np.arange(50), [20, 21])), np.delete(values, [20, 21]))
    found = _interpolated(track, np.arange(-3.0, 53.0))
    expected = np.full(56, np.nan)
    expected[3:53] = values
    expected[23:25] = np.nan
    np.testing.assert_array_equal(found, expected)


# Boards that count the same ticks


def test_ticks_go_on_over_their_wrap(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "run", [motion(1, start=WORD - 100), motion(2, start=WORD + 28)], (1, 2)))
    assert run.samples.n_samples == 10 * BLOCK + 17 + 128
    assert run.samples.valid[:128].sum() == 128
    assert run.samples.valid[128 : 10 * BLOCK].all()
    assert (run.clocks, run.ledger is not None and run.ledger.closes) == ({}, True)


def test_common_ticks_need_no_virtual_clock(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", provenance((1, 2), clock="wall", common_ticks=True)) as recorder:
        for node in (1, 2):
            feed(recorder, node, motion(node))
    run = open_run(tmp_path / "run")
    result = read_result(tmp_path / "run")
    assert result is not None
    assert (run.clocks, result["clocks"]) == ({}, {})
    assert run.samples.valid.all()


def test_slow_channels_stand_at_their_ticks(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "run", [motion(1), motion(2)], (1, 2)))
    ticks = 5000 + np.arange(run.samples.n_samples)
    due = ticks % SLOW == 0
    assert run.samples.valid.all()
    for values, scale, zero, name in (
        (run.samples.bus_voltage, 1e-3, 0, "bus_voltage"), (run.samples.temperature, 0.01, -27315, "temperature"),
    ):  # fmt: skip
        assert values is not None
        assert np.array_equal(np.isfinite(values), np.repeat(due[:, None], 2, axis=1))
        expected = [(sample(int(tick), 1)[name] - zero) * scale for tick in ticks[due]]
        np.testing.assert_allclose(values[due, 1], expected, rtol=1e-12)
    assert run.samples.foot_force is None


def test_a_slower_link_encoder_leaves_the_joint_valid(tmp_path: Path) -> None:
    dividers = DIVIDERS | 2 << 4 * ChannelKind.LINK_ENCODER
    stream = [
        status(1, 0, 5000, State.LOADED, 0, sent=0),
        *(data(1, 1 + k, 5002 + 64 * k, 64, dividers=dividers) for k in range(5)),
        status(1, 6, 5322, State.DONE, 320, sent=6),
    ]
    run = open_run(record(tmp_path / "run", [stream]))
    assert run.samples.valid.all()
    assert run.samples.link_position is not None
    ticks = 5002 + np.arange(320)
    assert np.array_equal(np.isfinite(run.samples.link_position[:, 0]), ticks % 4 == 0)


def test_feet_and_joints_share_a_run_and_an_archive(tmp_path: Path) -> None:
    def foot(tick: int, node: int) -> dict[str, int]:
        return {f"foot_force_{corner}": 100 * corner + tick % 7 for corner in (1, 2, 3, 4)}

    facts = provenance((1, 2))
    facts["board"][1] |= {"joint": "r_foot", "on_foot": True, "registers": DEFAULTS | {"force.zero_2": 50}}
    with Recorder(tmp_path / "run", facts) as recorder:
        feed(recorder, 1, motion(1, blocks=1, tail=1))
        feed(recorder, 2, [status(2, 0, 4990, State.LOADED, 0), data(2, 1, 5000, 40, raw=foot),
                           status(2, 2, 5065, State.DONE, 40, sent=2)])  # fmt: skip
    run = open_run(tmp_path / "run")
    assert (run.samples.joint_names, run.samples.foot_names) == (("j1",), ("r_foot",))
    assert run.samples.valid.all()
    forces = run.samples.foot_force
    assert forces is not None
    assert forces.shape == (65, 1, 4)
    assert np.isnan(forces[40:]).all()
    ticks = 5000 + np.arange(40)
    np.testing.assert_allclose(forces[:40, 0, 1], (200 + ticks % 7 - 50) * 0.01, rtol=1e-12)
    np.testing.assert_allclose(forces[:40, 0, 3], (400 + ticks % 7) * 0.01, rtol=1e-12)
    assert run.ledger is not None
    assert [(board.joint, board.samples_received) for board in run.ledger.boards] == [("j1", 65), ("r_foot", 40)]
    again = open_run(save_samples(tmp_path / "copy", run.samples, {"robot": "cobot6"})).samples
    for name in ("foot_force", "temperature", "bus_voltage", "motor_position", "valid", "foot_names"):
        np.testing.assert_array_equal(getattr(again, name), getattr(run.samples, name))


def held(tick: int, node: int) -> dict[str, int]:
    """A torque of a converter with 80 values a second, told at each tick with its age."""
    age = (tick - 5000) % 12
    own = {"bridge_torque": (tick - age) % 1000, "torque_age": age}
    return {name: value for name, value in sample(tick, node).items() if name != "joint_torque"} | own


@pytest.mark.parametrize("exponent", [0, 3])
def test_a_torque_that_was_held_is_told_once(tmp_path: Path, exponent: int) -> None:
    """Rows between two conversions are NaN: 80 values a second are no 1000, however often they are sent."""
    dividers = DIVIDERS | exponent << 4 * ChannelKind.TORQUE_SENSOR
    stream = [status(1, 0, 4990, State.LOADED, 0),
              *(data(1, 1 + k, 5000 + 64 * k, 64, raw=held, dividers=dividers) for k in range(5)),
              status(1, 6, 5330, State.DONE, 320, sent=6)]  # fmt: skip
    torque = open_run(record(tmp_path / "run", [stream])).samples.joint_torque
    assert torque is not None
    rows, every = np.arange(320), 1 << exponent
    fresh = (rows % every == 0) & (rows % 12 < every)
    assert np.array_equal(np.isfinite(torque[:, 0]), fresh)
    np.testing.assert_allclose(torque[fresh, 0], 1e-3 * ((5000 + rows[fresh] - rows[fresh] % 12) % 1000), rtol=1e-12)
    assert fresh.sum() == 27  # one for each conversion, none lost


def test_a_joint_without_a_motor_is_where_its_encoder_says(tmp_path: Path) -> None:
    def measured(tick: int, node: int) -> dict[str, int]:
        return {name: sample(tick, node)[name] for name in ("link_position", "bus_voltage")}

    arm = (resources.files("jointbench.model") / "library" / "rehab_arm.toml").read_text(encoding="utf-8")
    drive = arm.index("[joints.drive]", arm.index('name = "j5"'))
    robot = tmp_path / "rehab_arm.toml"
    robot.write_text(arm[:drive] + arm[arm.index("[[compensations]]") :], encoding="utf-8")
    facts = provenance((1, 2, 3, 4, 5), robot=str(robot))
    facts["board"][4]["registers"] = DEFAULTS | {"board.channels": 1 << 2 | 1 << 5}
    with Recorder(tmp_path / "run", facts) as recorder:
        for node in (1, 2, 3, 4):
            feed(recorder, node, motion(node, blocks=1, tail=1))
        blocks = [data(5, 1, 4995, 64, raw=measured), data(5, 2, 5059, 11, raw=measured)]
        ends = status(5, 0, 4990, State.DISARMED, 0), status(5, 3, 5075, State.DISARMED, 75, sent=3)
        feed(recorder, 5, [ends[0], *blocks, ends[1]])
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert run.warnings == ()
    assert set(run.starts) == {"j1", "j2", "j3", "j4"}
    samples = run.samples
    played = samples.play_tick >= 0
    assert samples.valid[played].all()
    ticks = 5000 + np.arange(65)
    turn = 2.0 * np.pi / DEFAULTS["encoder.link_counts"]
    assert samples.link_position is not None
    for position in (samples.motor_position, samples.link_position):
        np.testing.assert_allclose(position[played, 4], (2000 * ticks + 5) * turn, rtol=1e-12)
    assert samples.motor_torque is not None
    assert samples.motor_current is not None
    assert samples.joint_torque is not None
    assert np.all(samples.motor_torque[played, 4] == 0.0)
    for values in (samples.motor_current, samples.joint_torque):
        assert np.isnan(values[:, 4]).all()
        assert np.isfinite(values[played, :4]).all()
    copy = save_samples(tmp_path / "copy", samples, {"robot": str(robot)})
    np.testing.assert_array_equal(open_run(copy).samples.motor_current, samples.motor_current)
    assert examine(copy).is_sound, examine(copy).text()


def test_a_run_knows_how_far_apart_its_boards_began(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", provenance((1, 2, 3))) as recorder:
        for node, late in ((1, 0), (2, 0), (3, 2)):
            feed(recorder, node, motion(node, blocks=1, tail=1, start=5000 + late))
    run = open_run(tmp_path / "run")
    assert run.starts == {"j1": 0.0, "j2": 0.0, "j3": 2.0}
    assert run.start_skew == 2.0
    assert any("j3 started +2 samples from the others" in warning for warning in run.warnings)


def test_a_block_that_is_not_what_its_head_says_is_left_out(tmp_path: Path) -> None:
    stream = motion(1)
    frame = decode_frame(stream[3].data[:-1])
    wrong = encode_frame(frame.type, 1, frame.seq, frame.time_us, payload=frame.payload[:-2])
    stream[3] = replace(stream[3], data=wrong)
    run = open_run(record(tmp_path / "run", [stream]))
    assert any("j1: DATA frame" in warning and "left out" in warning for warning in run.warnings)
    assert run.samples.valid.sum() == 9 * BLOCK + 17


# Runs of another schema


def _of_schema(path: Path, text: str) -> None:
    """Make a run one that was recorded with another schema: its CRCs, and its schema.json."""
    import zlib

    from cobs import cobs

    from jointbench.recording.decode import RecordKind, encode_record, read_records

    frames = b""
    for each in read_records((path / "frames.bin").read_bytes(), []):
        raw = cobs.decode(each.payload)[:-4]
        payload = cobs.encode(raw + zlib.crc32(raw, zlib.crc32(text.encode())).to_bytes(4, "little"))
        frames += encode_record(each._replace(payload=payload) if each.kind is RecordKind.FRAME else each)
    (path / "frames.bin").write_bytes(frames)
    (path / "schema.json").write_text(text, encoding="utf-8")
    seal_again(path)


def test_a_run_of_a_schema_with_the_same_frames_is_read(tmp_path: Path) -> None:
    plain = open_run(record(tmp_path / "plain", [motion(1)]))
    path = record(tmp_path / "run", [motion(1)])
    other = schema_text().replace('"limit.current"', '"limit.amperes"')
    assert Schema.from_text(other).hash != schema_hash()
    _of_schema(path, other)
    run = open_run(path)
    np.testing.assert_array_equal(run.samples.motor_position, plain.samples.motor_position)
    assert run.ledger == plain.ledger


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('["tick","L"],["samples_taken","L"]', '["samples_taken","L"],["tick","L"]', "message STATUS: order"),
        ('["play_tick","l"]', '["play_tick","h"]', "message DATA: field play_tick is i16 there, i32 here"),
        ('"scale":"current.scale"', '"scale":"current.other"', "channel motor_current: scale"),
    ],
)
def test_a_run_of_a_schema_with_other_frames_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = record(tmp_path / "run", [motion(1)])
    assert old in schema_text()
    other = schema_text().replace(old, new)
    _of_schema(path, other)
    with pytest.raises(RunError, match="would read its frames otherwise") as error:
        open_run(path)
    for part in (f"{Schema.from_text(other).hash:08x}", f"{own_schema().hash:08x}", told, "jointbench of the version"):
        assert part in str(error.value)


def test_a_run_of_another_schema_that_does_not_say_which_is_refused(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1)])
    _of_schema(path, schema_text().replace('"limit.current"', '"limit.amperes"'))
    (path / "schema.json").unlink()
    seal_again(path)
    with pytest.raises(RunError, match=r"none of its \d+ frames can be decoded.*there is no .*schema\.json"):
        open_run(path)


def test_a_broken_schema_file_is_named(tmp_path: Path) -> None:
    path = record(tmp_path / "run", [motion(1)])
    (path / "schema.json").write_text("{")
    seal_again(path)
    with pytest.raises(RunError, match=r"schema\.json cannot be read: not the text of a schema"):
        open_run(path)


RNG = np.random.default_rng(0)


def late_blocks(n: int = 200) -> Ticks:
    """Blocks of up to nine ticks, some of every second tick, some empty, neighbours exchanged here and there."""
    counts, steps = RNG.integers(0, 10, n), RNG.integers(1, 3, n)
    first = 5000 + np.concatenate([[0], np.cumsum(counts * steps + RNG.integers(0, 3, n))[:-1]])
    order = np.arange(n)
    order[50:60] = order[50:60][::-1]
    return Ticks(first[order], counts[order], steps[order])


def test_ticks_between_are_those_of_all():
    ticks = late_blocks()
    every = ticks.all()
    assert len(ticks) == len(every)
    assert ticks.span == (every.min(), every.max())
    for low in RNG.integers(every.min() - 50, every.max() + 50, 50):
        for width in (0, 1, 30, 300):
            found, within, place = ticks.between(int(low), int(low) + width)
            np.testing.assert_array_equal(found, every[place])
            np.testing.assert_array_equal(found[within], every[(every >= low) & (every < low + width)])


def test_a_track_put_away_block_by_block_comes_back():
    ticks = late_blocks()
    values = RNG.integers(-1000, 1000, len(ticks)).astype(np.int32)
    spool, stop = TrackSpool(), np.cumsum(ticks.counts)
    for part in chunks(len(ticks.first), 7):
        some = Ticks(ticks.first[part], ticks.counts[part], ticks.steps[part])
        spool.append(some, values[stop[part.start] - ticks.counts[part.start] : stop[part.stop - 1]])
    track = spool.track()
    assert isinstance(track, Track)
    np.testing.assert_array_equal(track.ticks.all(), ticks.all())
    np.testing.assert_array_equal(track.values, values)


def test_samples_do_not_depend_on_how_much_is_worked_on_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    late = motion(2)
    late[3] = dataclasses.replace(late[3], time_us=late[6].time_us)
    del late[7]
    path = record(tmp_path / "run", [motion(1), late], (1, 2))
    whole = open_run(path).samples
    monkeypatch.setattr(decode, "_TOGETHER", 3)
    monkeypatch.setattr(timeline, "chunks", lambda n: chunks(n, 37))
    parts = open_run(path).samples
    for field in dataclasses.fields(Samples):
        one, other = getattr(whole, field.name), getattr(parts, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
        else:
            assert one == other


def test_packed_items_are_a_sequence():
    packed = Packed(2, lambda a, b: (a, b))
    for k in range(5):
        packed.append(k, -k)
    assert list(packed) == [(k, -k) for k in range(5)]
    assert packed[-1] == (4, -4)
    assert packed[1:3] == [(1, -1), (2, -2)]
    with pytest.raises(IndexError):
        packed[5]
