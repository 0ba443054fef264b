"""Benches with chips: found, armed, moved and flashed by the same host; their pins and power stages tick by tick."""

import dataclasses
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from hil_tests.flash_helpers import changed_firmware
from hil_tests.link_helpers import inject, record_wave, wave
from hil_tests.pendulum import COBOT6_PLANT, RATIO, TORQUE_CONSTANT, pendulum_robot, pendulum_truth, seconds
from hil_tests.raw_client import RawClient
from hil_tests.test_rp2040_board import FACTS, POWER, need_rp2040
from hil_tests.test_safety_pair import last_driven, outputs
from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.bench_file import RP2040, read_bench_file
from hil_tests.virtual_bench.board import BoardClock
from hil_tests.virtual_bench.cohort import PinCohort, Seat
from hil_tests.virtual_bench.drive import Bridges, Drives
from hil_tests.virtual_bench.errors import BenchFileError, ControlError
from hil_tests.virtual_bench.hardware_faults import HardwareFaults, Injection
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion, Plant
from hil_tests.virtual_bench.plant_file import PowerTruth
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.flash import (
    SECTOR,
    FlashWrite,
    flash_after_cut,
    read_flash,
    read_flash_log,
    write_flash,
)
from hil_tests.virtual_bench.rp2040.wiring import board_config, channels_missing, read_wiring
from hil_tests.virtual_bench.sensors import Readings
from jointbench.bench import open_bench
from jointbench.bench.flash import build_image, factory_files
from jointbench.errors import BenchLost, BoardFault
from jointbench.testing.requirements import Measured
from jointwire import BY_NAME, CHANNEL_BY_NAME, Frame, FrameReader, MessageType, Trip, encode_frame
from tools.bench.chip import LEAST_FREE
from tools.bench.chip import run as run_turns
from tools.faults.chip_cuts import Cut, boot_chip, cut_power, take_down_update

LINK_COUNTS = 524288
PAIR = f"""version = 1
name = "pair"
robot = "cobot6:2"
plant = {json.dumps(str(COBOT6_PLANT))}
[[board]]
nodes = [1, 2]
joints = ["j1", "j2"]
url = "{RP2040}"
"""


def bench_file(folder: Path, entries: str = "", robot: str = "cobot6:1", end: str = "") -> Path:
    """A bench of one chip on the first joint of an arm."""
    text = f'version = 1\nname = "chip"\nrobot = "{robot}"\nplant = {json.dumps(str(COBOT6_PLANT))}\n'
    text += f'[[board]]\nnode = 1\njoint = "j1"\nurl = "{RP2040}"\n{entries}\n{end}'
    path = folder / "chip.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_chip_is_listed_reads_its_plant_and_plays_a_motion(tmp_path: Path) -> None:
    """All in one bench: a chip takes 2 s of its time to start, and each of them some seconds of the wall clock."""
    need_rp2040()
    with virtual_bench(bench_file(tmp_path), seed=3, out=tmp_path / "sim") as live:
        listed = subprocess.run(
            [sys.executable, "-m", "jointbench", "list", str(live)], capture_output=True, text=True, timeout=120
        )
        assert listed.returncode == 0, listed.stderr
        assert "rp2" in listed.stdout
        assert "DISARMED" in listed.stdout
        with open_bench(live) as bench:
            bench.connect()
            (identity,), (board,) = bench.identities, bench.boards
            assert (identity.board, identity.clock_Hz, identity.encoder_source) == ("rp2", 125_000_000, "PIO")
            first, second = board.ping(), board.ping()
            assert first.board_us < second.board_us
            assert second.board_us - first.board_us == pytest.approx(second.received_us - first.received_us, abs=2000)
            bench.configure()
            # A count of the link encoder is 0.4 mrad; the zero of its counts is known to half of one.
            assert bench.positions() == pytest.approx(bench.robot.home, abs=1e-3)
            with pytest.raises(BenchLost, match="chip, with its own time and voltage"):
                inject(bench, "ticks_missed", 1, ticks=3)
            motion = wave(bench, way=0.03)
            run = record_wave(bench, tmp_path / "run", motion=motion)
    samples = run.samples
    assert samples.joint_torque is not None
    assert samples.link_position is not None
    assert samples.bus_voltage is not None
    assert samples.temperature is not None
    valid = samples.valid[:, 0]
    resting, playing = valid & (samples.play_tick < 0), valid & (samples.play_tick >= 0)
    assert playing.sum() == 1024
    asked, _, _ = motion.evaluate(np.multiply(samples.play_tick[playing], samples.sample_period, dtype=float))
    followed = samples.motor_position[playing]
    assert np.ptp(followed) == pytest.approx(np.ptp(asked), rel=0.03)
    assert np.abs(followed - asked).max() < 0.01  # a servo with a current loop of 25 Hz, and friction
    # The link encoder is another sensor on another bus, behind a gear that bends by less than 1 mrad.
    np.testing.assert_allclose(samples.link_position[playing], followed, atol=1.2e-3)
    assert np.nanmean(samples.bus_voltage) == pytest.approx(48.0, abs=0.05)
    assert np.nanmean(samples.temperature) - 273.15 == pytest.approx(22.0, abs=0.2)
    current = cast(Any, samples.motor_current)
    assert np.abs(np.nanmean(current[resting])) < 0.03  # the zero was measured at boot
    assert 0.2 < np.abs(current[playing]).max() < 2.0  # friction of some 20 N·m over 10.1 N·m/A
    assert np.abs(np.nanmean(samples.joint_torque[resting])) < 1.0  # an upright axis carries no weight


@pytest.mark.slow
def test_a_chip_whose_turn_is_in_kernels_misses_no_tick_while_it_moves(tmp_path: Path) -> None:
    """Its drive is half bridges. Without a link encoder a joint is known to stand at zero when its board starts."""
    need_rp2040()
    legs = {"kind": "half_bridges", "high": [10, 12], "frequency_Hz": 20000, "dead_time_ns": 500}
    (tmp_path / "wiring.json").write_text(json.dumps({"link_encoder": None, "drive": legs}))
    path = bench_file(tmp_path, 'wiring = "wiring.json"')
    with virtual_bench(path, seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        motion = wave(bench, way=0.03)
        run = record_wave(bench, tmp_path / "run", motion=motion)
    assert run.samples.link_position is None
    playing = run.samples.play_tick >= 0
    assert playing.sum() == 1024
    assert run.samples.valid[playing].all()
    assert run.ledger is not None
    assert run.ledger.samples_lost <= 1  # before the motion: to serve ARM takes a tick or little more
    asked, _, _ = motion.evaluate(np.multiply(run.samples.play_tick[playing], run.samples.sample_period, dtype=float))
    followed = run.samples.motor_position[playing]
    assert np.ptp(followed) == pytest.approx(np.ptp(asked), rel=0.03)
    assert np.abs(followed - asked).max() < 0.01


BRIDGE = {"kind": "ads1220", "spi": 1, "sck": 10, "mosi": 11, "miso": 12, "select": 13, "ready": 9, "rate": 1000}
SLOW_SENSORS: dict[str, tuple[dict[str, Any], int, int]] = {  # and a turn on average, and at most [us]
    "ntc": ({"ntc": {"ohm_25": 10000, "beta_K": 3950, "resistor_ohm": 10000, "side": "low"}}, 200, 350),
    "hx711": ({"torque": {"kind": "hx711", "clock": 2, "data": 3, "rate": 80}}, 300, 550),
    "ads1220": ({"torque": {**BRIDGE, "gain": 128, "inputs": "01", "reference": "external"}}, 400, 550),
}


@pytest.mark.slow
@pytest.mark.parametrize("sensor", SLOW_SENSORS)
def test_a_chip_with_a_bridge_or_a_thermistor_misses_no_tick(tmp_path: Path, sensor: str) -> None:
    """All channels stream. Measured with a tenth less; drivers in Python alone use the memory up within 4 s."""
    need_rp2040()
    wiring, mean_us, longest_us = SLOW_SENSORS[sensor]
    turns = run_turns(tmp_path, 1000, 5.0, 0, wiring=wiring)
    assert turns.seconds > 4.5
    assert (turns.missed, turns.late, turns.lost, turns.collected) == (0, 0, 0, False)
    assert turns.mean_us < mean_us
    assert turns.longest_us < longest_us
    assert turns.heap_free > LEAST_FREE


@pytest.mark.slow
def test_a_chip_with_a_crystal_of_its_own_moves_beside_another_board(tmp_path: Path) -> None:
    """The host finds both clocks by asking, and starts both boards together."""
    need_rp2040()
    other = '[[board]]\nnode = 2\njoint = "j2"\nurl = "unix:"'
    path = bench_file(tmp_path, "clock_ppm = 50", "cobot6:2", other)
    with virtual_bench(path, seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        assert [identity.board for identity in bench.identities] == ["rp2", "unix"]
        assert bench.identities[0].uid.startswith("0000000300000001")
        bench.configure()
        motion = wave(bench, way=0.03)
        run = record_wave(bench, tmp_path / "run", motion=motion)
    assert run.clocks is not None  # of each its own
    playing = run.samples.valid.all(axis=1) & (run.samples.play_tick >= 0)
    asked, _, _ = motion.evaluate(np.multiply(run.samples.play_tick[playing], run.samples.sample_period, dtype=float))
    assert np.abs(run.samples.motor_position[playing] - asked).max() < 0.01


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_a_chip_starts_again_without_its_bench(tmp_path: Path) -> None:
    need_rp2040()
    streams: list[bytes] = []
    for name in ("one", "other"):
        with virtual_bench(bench_file(tmp_path), seed=3, out=tmp_path / name) as live, RawClient(live) as client:
            begun_us = client.time_us
            assert 1_000_000 < begun_us < 5_000_000  # it has started, before there was a client
            client.write(1, encode_frame(MessageType.WRITE, 1, 1, register=BY_NAME["stream.always"].id, value=1))
            streams.append(client.pass_time(300_000)[1])
            assert client.dead == {}
            if name == "one":
                continue
            assert client.ask({"restart": 1}) == {"restarted": 1}
            assert client.pass_time(300_000)[1] == b""
            client.pass_time(begun_us)
            client.write(1, encode_frame(MessageType.PING, 1, 2, nonce=7))
            frames = [chunk.content for chunk in FrameReader().feed(client.pass_time(50_000)[1])]
            pongs = [frame for frame in frames if isinstance(frame, Frame) and frame.type is MessageType.PONG]
            assert len(pongs) == 1
            assert pongs[0].time_us < begun_us + 400_000  # its clock began anew
    assert streams[0] == streams[1]
    assert len(streams[0]) > 3000  # two blocks of samples, of several that are under way


def test_without_its_parts_a_chip_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "JOINTBENCH_RP2", str(tmp_path / "nowhere"))
    with (
        pytest.raises(BenchError, match=r"no part firmware\.bin of an emulated RP2040 at .*nowhere"),
        virtual_bench(bench_file(tmp_path), out=tmp_path / "sim"),
    ):
        pass


@pytest.mark.parametrize(
    ("entries", "robot", "match"),
    [
        ('line = "bus"', "cobot6:1", r"board 1 at 'rp2040:' has a line of its own"),
        ("clock_offset_s = 1.0", "cobot6:1", "takes no clock_offset_s"),
    ],
)
def test_what_a_chip_cannot_be_is_refused(tmp_path: Path, entries: str, robot: str, match: str) -> None:
    with pytest.raises(BenchFileError, match=match):
        read_bench_file(bench_file(tmp_path, entries, robot))


def test_a_wiring_is_for_chips_alone(tmp_path: Path) -> None:
    path = bench_file(tmp_path, 'wiring = "wiring.json"')
    assert read_bench_file(path).boards[0].wiring == tmp_path / "wiring.json"
    path.write_text(path.read_text().replace(RP2040, "unix:"))
    with pytest.raises(BenchFileError, match="board 1 has a wiring"):
        read_bench_file(path)


def test_a_bench_of_chips_has_clocks_of_their_own_and_can_be_put_on_them(tmp_path: Path) -> None:
    bench = read_bench_file(bench_file(tmp_path))
    assert (bench.common_ticks, bench.terms.clock) == (False, "icount")
    other = bench.with_boards_at("unix:")
    assert (other.common_ticks, other.terms.clock) == (True, "virtual")
    assert other.with_boards_at("rp2040:").boards == bench.boards


def test_a_wiring_that_is_not_emulated_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wiring.json"
    for text, match in (
        ('{"line": {"kind": "can"}}', r"line.kind = 'can' is not emulated; there are uart, usb"),
        ('{"valve": 1}', "must be an object with some of pins, line"),
        ("[1", "cannot be read"),
    ):
        path.write_text(text)
        with pytest.raises(BenchFileError, match=match):
            read_wiring(path)


def test_facts_are_in_the_counts_of_the_chips_own_converters() -> None:
    config = board_config({"node": 3, "facts": FACTS}, read_wiring(None), POWER, 460800)
    assert config["line"]["baud"] == 460800
    assert config["drive"]["loop"] == {"resistance_ohm": 0.5, "inductance_mH": 1.0, "supply_V": 48.0}
    facts = config["facts"]
    assert (facts["encoder.link_counts"], facts["encoder.link_zero"]) == (16384, 8192)
    kelvin = [1e-6 * facts["temperature.scale"] * (count - facts["temperature.zero"]) for count in (0, 100)]
    assert kelvin == pytest.approx([273.15, 281.15], abs=0.04)
    assert 1e-6 * facts["voltage.scale"] * 4095 == pytest.approx(2e-3 * 32767, rel=1e-3)


class Pins:
    """A chip that is not there, told what happens at its pins."""

    def __init__(self, *faults: Injection, drift_ppb: int = 0, sync_us: int = 0) -> None:
        board = Rp2040Board.__new__(Rp2040Board)  # no process: only its encoder's counts are asked for
        board.config = {"facts": {"encoder.link_counts": 16384}}
        facts = {7: {"encoder.link_counts": LINK_COUNTS, "voltage.scale": 2000, "temperature.scale": 10000}}
        self.faults = HardwareFaults(facts, {7: 0}, 1, chips=[7])
        self.cohort = PinCohort(
            [Seat((7,), board, (0,), BoardClock(drift_ppb=drift_ppb))], self.faults, LINK_COUNTS, sync_us
        )
        for fault in faults:
            self.faults.inject(fault)

    def tell(self, time_us: int, exact: float, arrivals: list[tuple[int, bytes]] | None = None) -> dict[str, Any]:
        """What it is told of the tick until `time_us`."""
        readings = SimpleNamespace(
            motor_count=np.array([int(exact) % 65536], dtype=np.uint16), motor_exact=np.array([exact]),
            link_count=np.array([LINK_COUNTS // 2]), bus_voltage=np.array([24000]), temperature=np.array([2200]),
            adc=np.arange(32, dtype=np.uint16).reshape(1, 2, 16),
        )  # fmt: skip
        (line,) = self.cohort.messages(cast(Readings, readings), [arrivals or []], time_us)
        return json.loads(line)


def test_pins_see_a_ticks_sensors_in_the_counts_of_their_converters() -> None:
    told = Pins().tell(1000, 70000.25, [(400, b"\x01\xff")])
    assert told == {
        "chip": 0, "to": 1_000_000, "count": 4464.25, "cut": False, "linkCut": False, "link": 8192, "sync": [],
        "bridges": [], "levels": [], "line": [[400_000, "01ff"]],
        "analog": {
            "current": list(range(16)), "torque": list(range(16, 32)), "supply": [3000], "temperature": [275],
        },
    }  # fmt: skip


def test_a_chips_crystal_and_the_sync_line() -> None:
    """A crystal that is 100 ppm fast counts 1 000 100 ns in a millisecond."""
    pins = Pins(drift_ppb=100_000, sync_us=2500)
    told = [pins.tell(1000 * tick, 0.0) for tick in (1, 2, 3, 4, 5)]
    assert [tick["to"] for tick in told] == [1_000_100, 2_000_200, 3_000_300, 4_000_400, 5_000_500]
    assert [tick["sync"] for tick in told] == [[], [], [2_500_250], [], [5_000_500]]


def test_faults_of_encoders_and_converters_reach_the_pins() -> None:
    stuck = Pins(Injection(7, "encoder_stuck", 0.0), Injection(7, "current_stuck", 9.0))
    positions = [stuck.tell(1000 * tick, exact)["count"] for tick, exact in enumerate((0.5, 3.75, 600.25), start=1)]
    assert [int(position) for position in positions] == [0, 0, 0]  # its fraction moves, and makes no edge
    assert stuck.tell(4000, 60001.0)["analog"]["current"] == [9] * 16
    jumping = Pins()
    for tick, exact in enumerate((10.5, 65530.5, 65545.5)):  # it turned backwards through zero, then forwards
        assert jumping.tell(1000 * tick, exact)["count"] == (10.5, -5.5, 9.5)[tick]
    jumping.faults.inject(Injection(7, "encoder_jump", -100.0))
    assert jumping.tell(4000, 65546.5)["count"] == -89.5
    assert jumping.tell(5000, 65547.5)["count"] == -88.5


def test_a_chip_cannot_miss_ticks_that_it_is_not_given() -> None:
    for fault in ("ticks_missed", "pauses", "drive_dead", "drive_runs_away"):
        with pytest.raises(
            ControlError, match=f"node 7 is a chip, with its own time and voltage; it cannot have {fault}"
        ):
            Pins(Injection(7, fault, 1.0))


def test_a_chip_may_have_two_motors_whose_converters_inputs_are_both_currents_and_torques(tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text(PAIR, encoding="utf-8")
    (board,) = read_bench_file(path).boards
    assert [motor.joint for motor in board.motors] == ["j1", "j2"]
    wiring = read_wiring(None, 2)
    unseen = sum(1 << CHANNEL_BY_NAME[name].bit for name in ("bus_voltage", "temperature"))
    assert channels_missing(wiring) == channels_missing(wiring["partner"]) == unseen
    config = {"node": 1, "facts": FACTS, "partner": {"node": 2, "facts": FACTS}}
    made = board_config(config, wiring, POWER, 921600)
    assert made["partner"]["drive"]["loop"] == made["drive"]["loop"]
    assert "line" not in made["partner"]
    one = [*made["analog"].values(), *made["pins"].values()]
    assert not set(one) & {*made["partner"]["analog"].values(), *made["partner"]["pins"].values()}
    own = tmp_path / "wiring.json"
    own.write_text('{"partner": {"line": {}}}')
    with pytest.raises(BenchFileError, match=r"wiring .*: partner must be an object with some of pins, motor_encoder"):
        read_wiring(own, 2)


@pytest.mark.slow
def test_what_strikes_one_motor_of_a_chip_takes_both(tmp_path: Path) -> None:
    need_rp2040()
    path = tmp_path / "pair.toml"
    path.write_text(PAIR, encoding="utf-8")
    with virtual_bench(path, plant="ideal", seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        struck: list[bool] = []

        def progress(_: Any) -> None:
            if not struck:
                struck.append(True)
                for node in (1, 2):
                    outputs(bench, node)
                inject(bench, "encoder_jump", 2, counts=9000)

        with pytest.raises(BoardFault, match=r"^j2 \(node 2\): tripped at tick \d+, motor encoder jumped"):
            record_wave(bench, tmp_path / "run", repeats=5, motion=wave(bench, way=0.03), progress=progress)
        bench.clock.wait(20_000)
        assert last_driven(bench, 1) == last_driven(bench, 2)
        partner = bench.boards[0]
        partner.hello()
        assert partner.fault is not None
        assert (Trip(partner.fault.trip), partner.fault.value) == (Trip.PARTNER, Trip.ENCODER_JUMP)


ON = np.array([True])
RP2040_BRIDGES_POWER = PowerTruth(
    supply=48.0, source_resistance=0.0, winding_resistance=0.5, winding_thermal_resistance=2.0,
    winding_time_constant=60.0, ambient=22.0, winding_inductance=1e-3,
)  # fmt: skip
LAG = 1e-3 / 0.5
INSTANTS = TICK * (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES


def driven(duty: float, ticks: int, **joint: float) -> tuple[Plant, list[Motion]]:
    """A pendulum without gravity after ticks at one duty."""
    truth = dataclasses.replace(pendulum_truth(joint=joint), power=RP2040_BRIDGES_POWER)
    plant = Plant(pendulum_robot(gravity=False), truth, "ideal", ON)
    return plant, [plant.advance(ON, np.array([duty])) for _ in range(ticks)]


def test_the_current_of_a_motor_that_cannot_turn_rises_exactly_with_its_winding() -> None:
    _, motions = driven(0.01, 5, rotor_inertia=1e6)
    currents = np.concatenate([motion.current[:, 0] for motion in motions])
    times = np.concatenate([k * TICK + INSTANTS for k in range(5)])
    np.testing.assert_allclose(currents, 0.48 / 0.5 * -np.expm1(-times / LAG), rtol=1e-9)


def test_a_free_motor_runs_at_the_speed_whose_back_emf_is_its_voltage() -> None:
    plant, motions = driven(0.05, seconds(1.0))
    speed = (plant.motor_position[0] - motions[-101].motor_position[0]) / (100 * TICK)
    assert speed == pytest.approx(0.05 * 48.0 / (RATIO * TORQUE_CONSTANT), rel=1e-3)
    assert abs(motions[-1].current).max() < 0.05


def test_a_motor_starts_as_winding_and_inertia_let_it() -> None:
    """J dw/dt = k i, L di/dt = u - R i - k w: the plant holds w for a tick, so it is late by half of one."""
    inertia, back_emf, voltage = 50.0, RATIO * TORQUE_CONSTANT, 2.4
    plant, motions = driven(0.05, seconds(0.5), rotor_inertia=(inertia - arm_inertia()) / RATIO**2)
    # Far slower than the winding: w goes to u / k with the time constant J R / k².
    constant = inertia * RP2040_BRIDGES_POWER.winding_resistance / back_emf**2
    velocity = (plant.motor_position[0] - motions[-2].motor_position[0]) / TICK
    expected = voltage / back_emf * -math.expm1(-(0.5 - LAG - TICK / 2) / constant)
    assert velocity == pytest.approx(expected, rel=5e-3)


def arm_inertia() -> float:
    """What turns besides the rotor."""
    robot = pendulum_robot()
    link = robot.joints[0].link
    assert link.mass is not None
    assert link.center_of_mass is not None
    assert link.inertia_about_center_of_mass is not None
    return link.inertia_about_center_of_mass[1][1] + link.mass * link.center_of_mass[0] ** 2


def test_a_drive_with_a_current_loop_beside_a_bridge_does_what_it_did_alone() -> None:
    back_emf, limit = np.array([10.0, 10.0]), np.array([8.0, 8.0])
    bridges = Bridges(np.array([False, True]), back_emf, RP2040_BRIDGES_POWER)
    both = Drives(back_emf, limit, np.ones(2), bridges.lags(3e-4), 300.0, bridges.by_voltage)
    alone = Drives(back_emf[:1], limit[:1], np.ones(1), 3e-4, 300.0)
    position = np.zeros(2)
    for tick, command in enumerate((3.0, 20.0, -1.0)):
        steady = bridges.steady_currents(np.array([command, 0.5]), 48.0, np.zeros(2))
        both.begin_tick(tick * TICK, np.array([True, True]), steady, position)
        alone.begin_tick(tick * TICK, ON, np.array([command]), position[:1])
        times = tick * TICK + INSTANTS
        np.testing.assert_allclose(both.currents_at(times)[:, :1], alone.currents_at(times), rtol=1e-14)
        for time in times:
            assert both.torque_at(time)[0] == pytest.approx(alone.torque_at(time)[0], rel=1e-14)
        mean, mean_alone = both.mean_torque(times[0], 4e-4), alone.mean_torque(times[0], 4e-4)
        assert mean[0] == pytest.approx(mean_alone[0], rel=1e-14)
    # The bridge has no limit of its own: 48 A it would be, with a lag of 2 ms after 3 ms.
    assert both.currents_at(np.array([3 * TICK]))[0, 1] == pytest.approx(-48.0 * math.expm1(-3 * TICK / LAG))


def test_a_bridge_that_is_not_enabled_gives_no_current() -> None:
    plant, _ = driven(0.05, 20)
    motion = plant.advance(np.array([False]), np.array([0.05]))
    assert not motion.current.any()


TORN = ("half", "bits")


@pytest.mark.slow
def test_a_chip_is_flashed_and_starts_a_whole_image_after_cuts(tmp_path: Path, measured: Measured) -> None:
    """By mpremote's raw REPL over its UART; `./run faults --cuts rp2040` cuts at every write."""
    need_rp2040()
    update = take_down_update(tmp_path, is_used=False)
    assert update.new != update.old
    erases = sum(write.data is None for write in update.writes)
    assert erases > 53  # a sector at least for each file
    assert len(update.writes) - erases > 400  # 100 kB in pages of 256 bytes
    # Some amid the files; and one of the last erases, which are those of the pointer's renames.
    last = max(number for number, write in enumerate(update.writes) if write.data is None)
    cuts = [Cut(len(update.writes) // 2, "bits"), Cut(last, "half")]
    verdicts = cut_power(cuts, update, tmp_path / "cuts")
    bad = [verdict for verdict in verdicts if verdict.problem]
    measured("flash.chip_cuts", len(bad))
    assert not bad
    assert verdicts[0].image == update.old
    assert verdicts[0].booted


@pytest.mark.slow
def test_a_trial_that_does_not_come_up_ends_by_itself(tmp_path: Path) -> None:
    need_rp2040()
    firmware = changed_firmware(tmp_path / "broken", "raise ValueError('no good')")
    good = build_image("rp2", architecture="armv6m")
    broken = build_image("rp2", architecture="armv6m", firmware=firmware)
    config = board_config({"node": 1, "uid": "0123456789abcdef", "facts": FACTS}, read_wiring(None), POWER, 921600)
    files = factory_files(good, config) | broken.in_slot("b")
    files["slot.json"] = json.dumps({"slot": "a", "trial": "b"}).encode()
    memory = tmp_path / "memory.bin"
    write_flash(memory, find_rp2040().firmware, files)
    boot = boot_chip(memory.read_bytes(), config, tmp_path)
    assert (boot.problem, boot.image, boot.resets) == ("", good.sha256, 1)
    memory.write_bytes(boot.memory)
    files = read_flash(memory)
    assert json.loads(files["slot.json"]) == {"slot": "a"}
    assert b"ValueError: no good" in files["trial.log"]


def test_a_cut_leaves_a_write_done_to_some_of_its_bits(tmp_path: Path) -> None:
    rng = random.Random(1)
    before, page = rng.randbytes(2 * SECTOR), rng.randbytes(256)
    writes = [FlashWrite(SECTOR, None), FlashWrite(SECTOR + 256, page)]
    log = tmp_path / "flash.bin.log"
    log.write_text(f"erase {SECTOR}\nprogram {SECTOR + 256} {page.hex()}\n")
    assert read_flash_log(log) == writes
    erased, done = (flash_after_cut(before, writes, number, "before") for number in (1, 2))
    assert erased == before[:SECTOR] + b"\xff" * SECTOR
    assert done == erased[: SECTOR + 256] + page + erased[SECTOR + 512 :]
    for how in TORN:
        torn = flash_after_cut(before, writes, 0, how)
        assert torn not in (before, erased)
        assert all(old | now == now for old, now in zip(before, torn, strict=True))  # an erase clears no bit
        torn = flash_after_cut(before, writes, 1, how)
        assert torn not in (erased, done)
        assert all(new & now == new for new, now in zip(done, torn, strict=True))  # none is cleared that shall be set
        assert torn == flash_after_cut(before, writes, 1, how)
