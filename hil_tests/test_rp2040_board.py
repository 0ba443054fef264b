"""One chip at its pins: what programs for MicroPython's real RP2 port meet there, on its line and on USB."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.tests.driver import BoardProcess, Outputs
from hil_tests.virtual_bench.board import FULL_DUTY, Answer
from hil_tests.virtual_bench.errors import BoardDied, Rp2040Missing
from hil_tests.virtual_bench.plant_file import PowerTruth
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.flash import read_flash
from hil_tests.virtual_bench.rp2040.wiring import board_config, read_wiring
from jointbench.bench.conversation import LINE_NAME
from jointbench.bench.flash import FIRMWARE, build_image, factory_files
from jointwire import BY_NAME, FrameReader, MessageType, Refusal, State, Trip, encode_frame

DRIVERS = {f"drivers/{path.name}": path.read_bytes() for path in (FIRMWARE / "boards" / "drivers").glob("*.py")}
TICK_NS = 1_000_000
MIDDLE = 2048
FACTS = {
    "encoder.capture_clock": 16_000_000, "encoder.link_counts": 524288, "encoder.link_zero": 262144,
    "voltage.scale": 2000, "temperature.scale": 10000, "temperature.zero": -27315,
}  # fmt: skip
POWER = PowerTruth(
    supply=48.0, source_resistance=0.1, winding_resistance=0.5, winding_thermal_resistance=2.0,
    winding_time_constant=60.0, ambient=22.0, winding_inductance=1e-3,
)  # fmt: skip
# What every program begins with: its line, and a wait that leaves nothing to the interpreter's own timers.
LINE = """
import machine, time, sys
from machine import Pin, UART
line = UART(0, 921600, tx=Pin(0), rx=Pin(1), txbuf=1024, rxbuf=1024)
def say(*words):
    line.write(" ".join([str(word) for word in words]) + "\\n")
"""


def need_rp2040() -> None:
    """Skip a test where the parts of a chip are missing, and fail it where CI is set."""
    try:
        find_rp2040()
    except Rp2040Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(f"{missing}; in CI it must be there", pytrace=False)
        pytest.skip(str(missing))


class Chip:
    """A board and the stretches of time that it has been given."""

    def __init__(self, board: Rp2040Board) -> None:
        self.board = board
        self.time_ns = 0
        self.said = b""
        self.changes: list[tuple[int, bool]] = []
        self.brake_changes: list[tuple[int, bool]] = []

    def run(self, ticks: int = 1, **pins: Any) -> Answer:
        """Let it run for some ticks, in the first of which `pins` happen; inputs of before stay."""
        for _ in range(ticks):
            self.time_ns += TICK_NS
            message = {"chip": 0, "to": self.time_ns, **self.inputs, **pins}
            self.inputs |= {key: value for key, value in pins.items() if key in self.inputs}
            pins = {}
            self.board.send_tick(json.dumps(message).encode() + b"\n")
            answer = self.board.receive_tick(0)
            self.said += answer.sent
            self.changes += self.board.enable_changes
            self.brake_changes += self.board.brake_changes
        return answer  # pyright: ignore[reportPossiblyUnboundVariable]

    inputs: dict[str, Any] = {"analog": {"current": [MIDDLE] * 16}, "count": 0.0, "link": 0}  # noqa: RUF012

    def until(self, *words: str, ticks: int = 3000) -> list[str]:
        """Let it run until its line has said all this; return its lines."""
        for _ in range(ticks):
            self.run()
            if all(word.encode() in self.said for word in words) and self.said.endswith(b"\n"):
                return self.said.decode().splitlines()
        raise AssertionError(f"it said {self.said!r} in {ticks} ms")


StartChip = Callable[..., Chip]


@pytest.fixture
def start_chip(tmp_path: Path) -> Iterator[StartChip]:
    """A chip with a program as its main.py and the drivers beside, at a wiring."""
    need_rp2040()
    boards: list[Rp2040Board] = []

    def start(
        program: str,
        wiring: dict[str, Any] | None = None,
        drivers: Sequence[str] = (),
        more: dict[str, Any] | None = None,
    ) -> Chip:
        path = tmp_path / "wiring.json"
        path.write_text(json.dumps(wiring or {}))
        config = board_config({"node": 1, "uid": "0123456789abcdef", "facts": FACTS}, read_wiring(path), POWER, 921600)
        config |= more or {}
        files = {name: DRIVERS[name] for name in (f"drivers/{driver}.py" for driver in ("__init__", *drivers))}
        files |= {"main.py": (LINE + program).encode(), "config.json": json.dumps(config).encode()}
        chip = Chip(Rp2040Board(find_rp2040(), tmp_path / "board", files, config))
        chip.inputs = dict(Chip.inputs)
        boards.append(chip.board)
        return chip

    yield start
    for board in boards:
        board.close()


@pytest.mark.slow
def test_a_program_boots_says_who_it_is_and_hears_the_line(start_chip: StartChip) -> None:
    """MicroPython itself, its file system, and 300 bytes both ways at the line's speed: 10.85 µs a byte."""
    chip = start_chip("""
say(sys.platform, machine.freq(), machine.unique_id().hex())
while True:
    if line.any():
        data = line.read(line.any())
        line.write(bytes(900) if data == b"!" else data)
""")
    assert chip.until("rp2") == ["rp2 125000000 0123456789abcdef"]
    chip.said, sent = b"", bytes(k % 256 for k in range(300))
    at = chip.time_ns + 250_000
    chip.run(line=[[at, sent.hex()]])
    first = len(chip.said)
    assert first <= 67  # 750 µs are 69 byte times, of which the first byte takes two to be back
    chip.run(3)
    assert chip.said == sent[: len(chip.said)]
    assert len(chip.said) - first <= 277  # 3 ms of the line
    chip.run(2)
    assert chip.said == sent
    chip.run(line=[[chip.time_ns, b"!".hex()]])
    chip.said = b""
    chip.run(5)
    assert len(chip.said) == pytest.approx(5 * 92.16, abs=2)  # a full buffer; its divider is 0.1 % off


@pytest.mark.slow
def test_converters_tell_the_sample_of_each_instant(start_chip: StartChip) -> None:
    """The firmware's own ring of 16 samples a tick: it shows a ramp within a tick, in its order and of its size."""
    chip = start_chip(
        """
from drivers.rp2_adc import RoundRobinAdc
inputs = bytearray(116)
adc = RoundRobinAdc([{"current": 26, "torque": 27, "supply": 28, "temperature": 29}], 1000)
line.write("ready\\n")
while not line.any():
    pass
adc.measure(inputs)
import struct
say(*struct.unpack_from("<2i32H", inputs, 24))
""",
        drivers=("rp2_adc", "rp2_ring", "rp2_chip", "analog", "errors"),
    )
    chip.until("ready")
    chip.said = b""
    ramp = [100 * k for k in range(16)]
    analog = {"current": ramp, "torque": [4095 - k for k in ramp], "supply": [3000], "temperature": [275]}
    chip.run(3, analog=analog)
    chip.run(line=[[chip.time_ns, "00"]])
    supply, temperature, *samples = map(int, chip.until("\n")[0].split())
    assert (supply, temperature) == (3000, 275)
    current, torque = np.array(samples[:16]), np.array(samples[16:])
    # Its window of 16 begins anywhere in the tick: a ramp that starts anew once.
    steps = np.diff(current) % 1600
    assert set(steps.tolist()) <= {0, 100, 200}  # two clocks of one speed, neither begins with the other
    assert steps.sum() == pytest.approx(1500, abs=100)
    lags = (4095 - torque - current) % 1600  # the torque is converted a quarter of a step later
    assert set(lags.tolist()) <= {0, 100}


@pytest.mark.slow
def test_the_motor_encoder_counts_every_edge_and_tells_the_newest_ones_time(start_chip: StartChip) -> None:
    """50 000 edges a second forward and back: the PIO's count is right, and its time to a turn of 160 ns."""
    chip = start_chip(
        """
from drivers.rp2_quadrature import Quadrature
inputs = bytearray(116)
encoder = Quadrature(6, 0, inputs)
import struct
say("ready", encoder.clock_Hz)
while True:
    if line.any():
        line.read(1)
        count = encoder.read()
        say(count, struct.unpack_from("<I", inputs, 112)[0])
""",
        drivers=("rp2_quadrature", "rp2_quadrature_program", "rp2_ring", "rp2_chip", "errors"),
    )
    chip.run(count=0.25)
    assert chip.until("ready")[-1] == "ready 6250000"
    position, told, edges = 0.25, [], []
    for velocity in (50.0, 50.5, 1.2, 0.0, -50.0, -0.3):
        chip.run(count=position + velocity)
        before, position = position + velocity, position + 2 * velocity
        begin_ns = chip.time_ns
        chip.run(count=position)
        if math.floor(before) != math.floor(position):
            edge = math.floor(position) if velocity > 0 else math.floor(position) + 1
            edges.append(begin_ns + TICK_NS * (edge - before) / velocity)
        else:
            edges.append(math.nan)
        chip.said = b""
        chip.run(line=[[chip.time_ns, "00"]])
        told.append(tuple(map(int, chip.until("\n")[0].split())))
        assert told[-1][0] == math.floor(position) % 65536
    times = np.array([clocks * 160.0 for _, clocks in told])
    known = ~np.isnan(edges)
    late = times[known] - np.array(edges)[known]
    assert np.ptp(late) <= 160.0 + 8.0  # the two clocks have a begin of their own


@pytest.mark.slow
def test_the_absolute_encoder_on_spi_tells_its_angle(start_chip: StartChip) -> None:
    chip = start_chip(
        """
from drivers.as5047p import As5047p
from machine import SPI
spi = SPI(0, 8000000, polarity=0, phase=1, sck=Pin(18), mosi=Pin(19), miso=Pin(20))
encoder = As5047p(spi, Pin(21, Pin.OUT, value=1))
say("ready")
while True:
    if line.any():
        line.read(1)
        say(encoder.read())
""",
        drivers=("as5047p", "failures", "errors"),
    )
    chip.until("ready")
    assert angles(chip, (0, 1, 5461, 8191, 16383)) == [0, 1, 5461, 8191, 16383]


@pytest.mark.slow
def test_the_absolute_encoder_on_i2c_tells_its_angle(start_chip: StartChip) -> None:
    chip = start_chip(
        """
from drivers.as5600 import As5600
from machine import I2C
bus = I2C(1, scl=Pin(19), sda=Pin(18), freq=400000)
encoder = As5600(bus)
start = time.ticks_us()
encoder.read()
encoder.read()
say("ready", time.ticks_diff(time.ticks_us(), start))
while True:
    if line.any():
        line.read(1)
        say(encoder.read())
""",
        {"link_encoder": {"kind": "as5600", "i2c": 1, "scl": 19, "sda": 18}},
        drivers=("as5600", "failures", "errors"),
    )
    ready = chip.until("ready")[0]
    # 2 + 3 + 3 bytes of 9 bits at 400 kHz are 180 µs; the rest is starts, stops and the interpreter.
    assert 180 < int(ready.split()[1]) < 1000
    assert angles(chip, (0, 1, 1365, 4095)) == [0, 1, 1365, 4095]


def angles(chip: Chip, asked: Sequence[int]) -> list[int]:
    """What the program reads while its link encoder stands at these counts."""
    read: list[int] = []
    for count in asked:
        chip.said = b""
        chip.run(link=count, line=[[chip.time_ns, "00"]])
        read.append(int(chip.until("\n")[0]))
    return read


@pytest.mark.slow
def test_the_power_stage_is_told_by_its_pins(start_chip: StartChip) -> None:
    """ENABLE with its times, and the duty of PWM and direction."""
    chip = start_chip("""
from machine import PWM
enable = Pin(22, Pin.OUT, value=0)
direction = Pin(17, Pin.OUT, value=0)
pwm = PWM(Pin(16), freq=20000, duty_u16=0)
say("ready")
while True:
    if line.any():
        letter = line.read(1)
        if letter == b"e": enable.value(1)
        if letter == b"d": enable.value(0)
        if letter == b"+": direction.value(1)
        if letter == b"-": direction.value(0)
        if letter == b"q": pwm.duty_u16(16384)
        if letter == b"f": pwm.duty_u16(65535)
        if letter == b"0": pwm.duty_u16(0)
""")
    chip.until("ready")
    seen: list[tuple[int, float]] = []
    for letter in "+eq-f0d":
        begun = chip.time_ns
        chip.run(line=[[begun, letter.encode().hex()]])
        answer = chip.run()
        seen.append((answer.enable[0], round(answer.command[0] / FULL_DUTY, 3)))
        assert all(begun < at < begun + 2 * TICK_NS for at, _ in chip.board.enable_changes)
    assert seen == [(0, 0.0), (1, 0.0), (1, 0.25), (1, -0.25), (1, -1.0), (1, 0.0), (0, 0.0)]
    assert [level for _, level in chip.changes] == [True, False]


@pytest.mark.slow
def test_pio_runs_by_its_divider_and_when_it_is_given_words(start_chip: StartChip) -> None:
    """A slow machine drives ENABLE in periods of 200 µs; a fast one waits for words and drives it at once."""
    chip = start_chip("""
import rp2
@rp2.asm_pio(set_init=rp2.PIO.OUT_LOW)
def square():
    set(pins, 1) [9]
    set(pins, 0) [9]
@rp2.asm_pio(out_init=rp2.PIO.OUT_LOW, out_shiftdir=rp2.PIO.SHIFT_RIGHT)
def copy():
    pull(block)
    out(pins, 1)
machine_of = rp2.StateMachine(4, square, freq=100000, set_base=Pin(22))
machine_of.active(1)
time.sleep_us(1010)
machine_of.active(0)
other = rp2.StateMachine(0, copy, out_base=Pin(22))
other.active(1)
say("ready")
for level in (1, 0):
    while not line.any():
        pass
    line.read(1)
    other.put(level)
""")
    chip.until("ready")
    times = np.array([at for at, _ in chip.changes])
    assert 10 <= len(times) <= 12
    np.testing.assert_allclose(np.diff(times)[:9], 100_000)
    levels: list[int] = []
    for _ in range(2):
        begun = chip.time_ns
        chip.run(line=[[begun, "00"]])
        levels += [level for at, level in chip.board.enable_changes if at < begun + 200_000]
    assert levels[-2:] == [True, False]


@pytest.mark.slow
def test_a_process_runs_several_chips_each_to_its_own_time(start_chip: StartChip, tmp_path: Path) -> None:
    first = start_chip("say('one')\n")
    flash = first.board.flash.read_bytes()
    first.board.close()
    requests: list[dict[str, Any]] = []
    for number in range(2):
        (tmp_path / f"flash{number}.bin").write_bytes(flash)
        config = {**first.board.config, "uid": f"{number:016x}"}
        requests.append({"flash": str(tmp_path / f"flash{number}.bin"), "config": config, "at": number * 10**9})
    requests += [{"chip": 0, "to": 10**9}, {"chip": 1, "to": 2 * 10**9}, {"chip": 0, "to": 10**9 + 8}]
    said = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(find_rp2040().command, input=said, capture_output=True, text=True, timeout=60, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[:2] == [{"chip": 0}, {"chip": 1}]
    assert [bytes.fromhex(answer["sent"]) for answer in answers[2:]] == [b"one\n", b"one\n", b""]
    assert [answer["time"] for answer in answers[2:]] == pytest.approx([10**9, 2 * 10**9, 10**9 + 8], abs=500)


@pytest.mark.slow
def test_half_bridges_give_the_difference_of_their_legs(start_chip: StartChip) -> None:
    chip = start_chip(
        """
from drivers.rp2_half_bridges import HalfBridges
class Loop:
    def __call__(self, command): return command
    def reset(self): pass
enable = Pin(22, Pin.OUT, value=1)
drive = HalfBridges([10, 12], 20000, 500, Loop())
say("ready")
for duty in (0, 8192, -16384, 30000):
    drive.command(duty)
    while not line.any():
        pass
    line.read(1)
drive.off()
""",
        {"drive": {"kind": "half_bridges", "high": [10, 12], "frequency_Hz": 20000, "dead_time_ns": 500}},
        drivers=("rp2_half_bridges", "rp2_chip", "errors"),
    )
    chip.until("ready")
    seen: list[float] = []
    for _ in range(4):
        answer = chip.run()
        seen.append(answer.command[0] / FULL_DUTY)
        chip.run(2, line=[[chip.time_ns, "00"]])
    assert seen == pytest.approx([0.0, 0.25, -0.5, 30000 / 32768], abs=2e-3)  # 3125 counts of a half period
    assert chip.run().enable == (0,)  # all switches are open


@pytest.mark.slow
def test_pulses_on_the_sync_line_come_at_their_times(start_chip: StartChip) -> None:
    chip = start_chip("""
times = []
pin = Pin(14, Pin.IN, Pin.PULL_DOWN)
pin.irq(lambda _: times.append(time.ticks_us()), Pin.IRQ_RISING, hard=False)
say("ready", time.ticks_us())
while len(times) < 3:
    pass
say(*times)
""")
    chip.until("ready")
    pulses = [chip.time_ns + 300_000 + k * 5_000_000 for k in range(3)]
    for pulse in pulses:
        chip.run(5, sync=[pulse])
    times = np.array([int(word) for word in chip.until("\n", ticks=20)[-1].split()])
    late = times - np.array(pulses) / 1000
    assert late.min() > 0.0  # the chip's microseconds count from its start
    assert late.max() < 60.0  # some bytecode of the interpreter's


@pytest.mark.slow
def test_what_is_written_to_the_flash_outlives_resets_and_power_cuts(start_chip: StartChip) -> None:
    """A sector takes 45 ms to erase, and the processor stands meanwhile."""
    chip = start_chip("""
import os
starts = 0
if "starts" in os.listdir():
    with open("starts") as file:
        starts = int(file.read())
before = time.ticks_us()
with open("starts", "w") as file:
    file.write(str(starts + 1))
say("start", starts, machine.reset_cause(), time.ticks_diff(time.ticks_us(), before) // 45000)
while not line.any():
    pass
line.flush()
if line.read(1) == b"r":
    machine.reset()
machine.WDT(timeout=100)
while True:
    pass
""")
    assert chip.until("start") == ["start 0 1 1"]
    for number, letter in enumerate("rw", start=1):
        chip.said = b""
        chip.run(line=[[chip.time_ns, letter.encode().hex()]])
        assert chip.until("start") == [f"start {number} 3 0"]  # it fits the sector that was erased
        assert chip.board.resets == number
    chip.said = b""
    chip.board.restart()
    assert chip.until("start") == ["start 3 1 0"]
    assert read_flash(chip.board.flash)["starts"] == b"4"


FAULT = """
@micropython.viper
def crash():
    ptr32(0x20000001)[0] = 1
"""


@pytest.mark.slow
def test_a_hard_fault_is_the_end_but_for_a_watchdog(start_chip: StartChip) -> None:
    chip = start_chip(f"{FAULT}\nsay('start')\nline.flush()\ncrash()\n")
    with pytest.raises(
        BoardDied, match=r"its core stands: HardFault, a word is written at 0x20000001; the program is at 0x20"
    ):
        chip.until("never")
    assert chip.board.death
    guards = "machine.WDT(timeout=50)\nsay('start', machine.reset_cause())\nline.flush()\n"
    guarded = start_chip(f"{FAULT}\n{guards}crash()\n")
    assert guarded.until("start 1", "start 3")[:2] == ["start 1", "start 3"]


BAUD = 921600
RP2040_LINE_DRIVER_LINE = {"kind": "uart", "uart": 0, "tx": 0, "rx": 1, "de": 2}
HELD_NS = 10_000  # a byte takes 10.9 us: another node's first one is not cut
LEAD_NS = 1_000  # transceivers take up to this to turn on
STARTS_IN = 8000  # ticks


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    """The firmware on a chip that streams by its kernels."""
    need_rp2040()
    wiring = tmp_path / "wiring.json"
    wiring.write_text(json.dumps({"line": RP2040_LINE_DRIVER_LINE, "link_encoder": None}))
    config = board_config({"node": 1, "uid": "0123456789abcdef", "facts": FACTS}, read_wiring(wiring), POWER, BAUD)
    files = factory_files(build_image("rp2", architecture="armv6m"), config)
    board = Rp2040Board(find_rp2040(), tmp_path / "board", files, config)
    chip = Chip(board)
    chip.inputs = {**Chip.inputs, "analog": {"current": [MIDDLE] * 16}}
    yield chip
    board.close()


@pytest.mark.slow
def test_every_bit_is_driven_and_the_line_is_free_soon_after_the_last(chip: Chip) -> None:
    for nonce in range(STARTS_IN // 100):
        chip.run(100, line=[[chip.time_ns, encode_frame(MessageType.PING, 1, nonce, nonce=nonce).hex()]])
        if chip.said:
            break
    assert chip.said
    board = chip.board
    assert not board.violations
    said = len(chip.said)
    stream = encode_frame(MessageType.WRITE, 1, 500, register=BY_NAME["stream.always"].id, value=1)
    chip.run(400, line=[[chip.time_ns, stream.hex()]])
    assert len(chip.said) > said + 4000  # bytes of DATA
    assert board.violations == []
    assert len(board.driver_held) > 10
    assert max(board.driver_held) < HELD_NS
    assert min(board.driver_leads) > LEAD_NS


@pytest.mark.slow
def test_drivers_in_python_drive_every_bit_too(start_chip: StartChip) -> None:
    chip = start_chip(
        """
from drivers.rp2_driver_enable import DriverEnable
from drivers.uart_line import UartLine
out = UartLine(line, 921600, 1000, driver=DriverEnable(2, 1, 0, 0, 921600))
time.sleep_ms(20)
for _ in range(3):
    for count in (1, 60, 200):
        out.send(bytes(count), count)
    time.sleep_ms(10)
out.send(b"end\\n", 4)
time.sleep_ms(100)
""",
        {"line": RP2040_LINE_DRIVER_LINE},
        drivers=("rp2_heartbeat", "rp2_chip", "errors", "rp2_driver_enable", "uart_line"),
    )
    chip.until("end")
    chip.run(20)
    board = chip.board
    assert board.violations == []
    assert len(board.driver_held) >= 4
    assert max(board.driver_held) < 200_000  # 0.1 ms as measured: the interpreter


STARTS_MS = 4000
COOL = 300  # counts of the temperature: 24 degC
TIMEOUT = 200  # ticks of silence until the power is taken
SILENT_MS = 800  # in which the host does not read: 16 kB of samples, of which the board's rings hold 10
PING_EVERY = 50  # ticks


class UsbBoard(BoardProcess):
    """A chip at its USB port, asked as the boards on pipes are; its joint stands still."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.node, self.tick, self.trajectory = 1, 0, 0
        self.plant = None
        self.frames, self.noise = [], []
        self._reader, self._queue, self._sequence = FrameReader(), b"", 0

    @property
    def errors(self) -> str:
        """What its console said: it has no reader."""
        return ""

    def step(self, received: bytes = b"", **orders: Any) -> Outputs:
        before = len(self.chip.said)
        if received:
            orders["line"] = [[self.chip.time_ns, received.hex()]]
        answer = self.chip.run(1, **orders)
        self.last = Outputs(self.tick, answer.enable[0], answer.command[0], self.chip.said[before:])
        self._take(self.last.sent)
        self.tick += 1
        return self.last

    def host(self, order: str) -> None:
        """Let a millisecond pass, with an order to the host."""
        self.step(usb=order)

    def greet(self) -> State:
        """Say HELLO until the port is open and the board answers: its state."""
        known = len(self.of(MessageType.HELLO_ACK))
        for _ in range(STARTS_MS // 100):
            self.send(MessageType.HELLO, major=1, minor=1)
            self.run(100)
            if len(self.of(MessageType.HELLO_ACK)) > known:
                self.run(200)  # the answers to those that the port kept until it was open
                return State(self.of(MessageType.HELLO_ACK)[-1].body.state)
        raise AssertionError("no answer to HELLO")

    def is_enabled_all(self, ticks: int) -> bool:
        """Ask it for a while; whether ENABLE was high all the time."""
        high = True
        for k in range(ticks):
            if k % PING_EVERY == 0:
                self.send(MessageType.PING, nonce=k)
            high = bool(self.run(1).enable) and high
        return high

    def next_status(self) -> Any:
        """Ask it until its next STATUS, its motor under power all the time."""
        known = len(self.of(MessageType.STATUS))
        for _ in range(1200 // PING_EVERY):
            assert self.is_enabled_all(PING_EVERY)
            if len(self.of(MessageType.STATUS)) > known:
                break
        return self.of(MessageType.STATUS)[-1].body


@pytest.fixture
def usb_board(tmp_path: Path) -> Iterator[UsbBoard]:
    need_rp2040()
    wiring = tmp_path / "wiring.json"
    wiring.write_text(json.dumps({"line": {"kind": "usb"}, "link_encoder": None}))
    facts = {"node": 1, "uid": "0123456789abcdef", "facts": FACTS}
    config = board_config(facts, read_wiring(wiring), POWER, 921600)
    files = factory_files(build_image("rp2", architecture="armv6m"), config)
    board = Rp2040Board(find_rp2040(), tmp_path / "board", files, config)
    chip = Chip(board)
    chip.inputs = {**Chip.inputs, "analog": {"current": [MIDDLE] * 16, "temperature": [COOL] * 16}}
    yield UsbBoard(chip)
    board.close()


@pytest.mark.slow
def test_a_motor_runs_over_usb_whether_or_not_the_host_reads_and_stops_when_unplugged(usb_board: UsbBoard) -> None:
    board = usb_board
    board.greet()
    assert board.chip.board.ports == ["Board CDC", LINE_NAME]
    assert board.write("limit.link_timeout", TIMEOUT) is Refusal.OK
    board.upload([(0, 0)] * 128)
    board.arm()
    assert board.refusal(MessageType.START, at_tick=0) is Refusal.OK

    board.run(20)
    before = board.next_status()
    assert before.frames_dropped == 0

    # The host's program hangs, but still asks: its port holds what it has not read, and the board goes on.
    board.host("ignore")
    said = len(board.chip.said)
    assert board.is_enabled_all(SILENT_MS)
    assert len(board.chip.said) == said
    board.host("read")
    after = board.next_status()
    assert after.frames_dropped > 0
    assert SILENT_MS / 8 < after.samples_dropped < SILENT_MS / 2
    assert after.ticks_missed == before.ticks_missed
    assert not board.noise  # whole frames, those of before included

    begun = board.tick
    board.host("unplug")
    while board.run(1).enable:
        assert board.tick < begun + TIMEOUT + 5
    assert board.tick - begun > TIMEOUT - 2 * PING_EVERY
    board.host("plug")
    assert board.greet() is State.FAULT
    assert Trip(board.of(MessageType.STATUS)[-1].body.trip) is Trip.LINK_LOSS

    # The line becomes a console as well, so that a board is flashed over it.
    assert board.refusal(MessageType.REPL) is Refusal.OK
    board.run(100)
    board.chip.said = b""
    board.step(b"\x03\x01print(6 * 7)\x04")
    board.run(100)
    assert b"raw REPL; CTRL-B to exit\r\n>OK42\r\n\x04\x04>" in board.chip.said
