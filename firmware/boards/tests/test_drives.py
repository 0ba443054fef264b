"""Drive outputs on MicroPython: the current loop against unbounded integers and on a motor; frames; levels."""

from __future__ import annotations

import itertools
import math
import random
import struct

import pytest

from firmware.boards.tests.interpreter import run

LOOP = """
import struct
from drivers import current_loop
from drivers.errors import WiringError
inputs = bytearray(116)
def show(total):
    # 16 samples that sum to it
    for k in range(16):
        struct.pack_into("<H", inputs, 32 + 2 * k, (total + k) // 16)
"""


def loop_twin(state: list[int], total: int, command: int) -> int:
    """current_loop.step in integers without bounds; it says when one would not have fitted a board's 32 bits."""

    def fits(value: int) -> int:
        assert -(2**31) <= value < 2**31
        return value

    kp, ki, limit, zero, scale, integral = state
    count = max(-32767, min(32767, total - 32768 - zero))
    error = max(-65535, min(65535, command - (fits(count * scale) >> 12)))
    growth = fits(error * ki)
    duty = fits(fits(error * kp) + integral) >> 8
    if not (duty >= limit and growth >= 0) and not (duty <= -limit and growth <= 0):
        integral = max(-(limit << 8), min(limit << 8, fits(integral + growth)))
        state[5] = integral
        duty = fits(error * kp + integral) >> 8
    return max(-limit, min(limit, duty))


def test_the_loop_computes_what_its_twin_does() -> None:
    """At the extremes of every number, and at random."""
    generator = random.Random(4)
    extreme = itertools.product((0, 16383), (1, 16383), (0, 32767), (-3277, 3277), (1, 65535))
    gains = [list(case) for case in extreme] + [
        [generator.randint(0, 16383), generator.randint(1, 16383), generator.randint(1, 32767), 0, 1250]
        for _ in range(20)
    ]
    totals = [0, 65520, 32768] + [generator.randint(0, 65520) for _ in range(17)]
    commands = [generator.choice((-32000, 32000, generator.randint(-32000, 32000))) for _ in totals]
    program = (
        LOOP
        + """
from array import array
answer = []
for case in gains:
    state = array("i", case + [0])
    for total, command in zip(totals, commands):
        show(total)
        answer.append(current_loop.step(state, inputs, command))
"""
    )
    expected: list[int] = []
    for case in gains:
        state = [*case, 0]
        expected += [loop_twin(state, total, command) for total, command in zip(totals, commands, strict=True)]
    assert run(program, gains=gains, totals=totals, commands=commands) == expected


MOTOR = (
    LOOP
    + """
config = {"drive": {"loop": {"resistance_ohm": 0.8, "inductance_mH": 0.9, "supply_V": 24, "gain": gain}}}
loop = current_loop.CurrentLoop(config, inputs, 1000, 305176, zero)
current, mean, duty, answer = 0.0, 0.0, 0, []
from math import exp
pole = exp(-0.8 / 0.9 / 20)
for tick in range(len(commands)):
    # The ADC's mean over the tick before; the output acts during the tick that follows.
    show(int(32768 + zero + mean / 305176e-9 + 0.5))
    duty = loop(commands[tick])
    mean = 0.0
    for _ in range(20):
        current = current * pole + (duty / 32767 * 24 - back_emf[tick]) / 0.8 * (1 - pole)
        mean += current / 20
    answer.append(current)
"""
)


@pytest.mark.parametrize("gain", [0.15, 0.25])
def test_the_loop_settles_on_a_motor(gain: float) -> None:
    """A step of current into resistance, inductance and a sensor whose zero is off; then a load of back-EMF."""
    ticks = 400
    commands = [0] * 20 + [2000] * (ticks - 20)
    back_emf = [0.0] * 200 + [6.0] * (ticks - 200)
    found = run(MOTOR, gain=gain, zero=-150, commands=commands, back_emf=back_emf)
    count = 305176e-9 * 1.25  # A of an ADC count, and what its rounding to mA adds
    assert max(abs(current) for current in found[:20]) < 0.05
    assert max(found[20:200]) < 2.0 * 1.1  # a double pole at 1/2 where gain is 1/4: no ringing to speak of
    assert found[199] == pytest.approx(2.0, abs=2 * count + 0.003)
    # 6 V against 0.8 ohm would be 7.5 A; the loop has it back within 40 ticks, about six of its time constants.
    assert found[240] == pytest.approx(2.0, abs=0.05)
    first_order = math.exp(-1 * gain * 30)
    assert abs(found[50] - 2.0) < 2.0 * first_order + 0.05


def test_the_loop_does_not_wind_up() -> None:
    """For 100 ticks the supply cannot give the current; afterwards it falls at once."""
    commands = [20000] * 100 + [0] * 60
    back_emf = [20.0] * 160
    found = run(MOTOR, gain=0.15, zero=0, commands=commands, back_emf=back_emf)
    assert found[99] < 5.0
    assert abs(found[150]) < 0.3


@pytest.mark.parametrize(
    ("loop", "what"),
    [
        ({}, "drive.loop.resistance_ohm is None"),
        ({"resistance_ohm": 0, "inductance_mH": 1, "supply_V": 24}, "resistance_ohm is 0"),
        ({"resistance_ohm": 1, "inductance_mH": 1, "supply_V": 24, "gain": 0.5}, "gain is 0.5"),
        ({"resistance_ohm": 900, "inductance_mH": 900, "supply_V": 1}, "gives gains"),
    ],
)
def test_a_motor_that_cannot_be(loop: dict[str, float], what: str) -> None:
    program = (
        LOOP
        + """
try:
    answer = current_loop.gains({"drive": {"loop": loop}}, 1000)
except WiringError as error:
    answer = str(error)
"""
    )
    assert what in run(program, loop=loop)


def crc8(data: bytes) -> int:
    """CRC-8/SMBUS, as its definition has it."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1) ^ (0x107 if crc & 0x80 else 0)
    return crc


def test_frames_on_uart_and_can() -> None:
    assert crc8(b"123456789") == 0xF4  # the catalogue's check value
    currents = [0, 1, -1, 32000, -32000, 255, 256, -256, 12345]
    program = """
from drivers.uart_drive import UartDrive
from drivers.stm32_can_drive import CanDrive
class Bus:
    def __init__(self):
        self.sent = []
    def write(self, data):
        self.sent.append(list(data))
    def send(self, data, id):
        self.sent.append([id] + list(data))
uart, can = Bus(), Bus()
for drive in (UartDrive(uart), CanDrive(can, 7)):
    for current in currents:
        drive.command(current)
    drive.off()
answer = [uart.sent, can.sent]
"""
    uart, can = run(program, currents=currents)
    expected = [(0, 0)] + [(1, current) for current in currents] + [(0, 0)]
    for k, (frame, (flags, current)) in enumerate(zip(uart, expected, strict=True)):
        body = struct.pack("<BBBh", 0xC3, flags, k + 1, current)
        assert bytes(frame) == body + bytes([crc8(body)])
    for k, (frame, (flags, current)) in enumerate(zip(can, expected[1:], strict=True)):
        assert frame[0] == 0x187
        assert bytes(frame[1:]) == struct.pack("<BBh", flags, k + 1, current)


def test_a_can_bus_without_a_drive_is_a_fault() -> None:
    program = """
from drivers.stm32_can_drive import CanDrive
from drivers.errors import SensorFault
class Full:
    def send(self, data, id):
        raise OSError(16)
drive = CanDrive(Full(), 1)
answer = []
for _ in range(4):
    try:
        drive.command(0)
        answer.append("")
    except SensorFault as error:
        answer.append(str(error))
"""
    said = run(program)
    assert [bool(text) for text in said] == [False, False, True, False]
    assert "no room to send (0x0010)" in said[2]


def test_a_board_at_rest_with_an_unpowered_drive_has_no_fault() -> None:
    """Off is what a drive without power is; commands that nobody hears still are a fault, the row unbroken by offs."""
    program = """
from drivers.stm32_can_drive import CanDrive
from drivers.errors import SensorFault
class Full:
    def send(self, data, id):
        raise OSError(16)
drive = CanDrive(Full(), 1)
for _ in range(1000):
    drive.off()
answer = [drive.failures.total]
for command in (0, 0, None, 0):
    try:
        drive.off() if command is None else drive.command(command)
        answer.append("")
    except SensorFault as error:
        answer.append("fault")
"""
    assert run(program) == [1000, "", "", "", "fault"]


@pytest.mark.parametrize(("largest", "full_mA"), [(4095, 10000), (65535, 3000), (255, 32000), (65535, 100)])
def test_a_current_as_a_voltage(largest: int, full_mA: int) -> None:
    currents = [0, 1, -1, full_mA // 2, -full_mA // 2, full_mA, -full_mA, 32000, -32000]
    program = """
from drivers.analog_current import AnalogCurrent
codes = []
drive = AnalogCurrent(codes.append, largest, full_mA)
for current in currents:
    drive.command(current)
drive.off()
answer = codes
"""
    first, *codes, last = run(program, largest=largest, full_mA=full_mA, currents=currents)
    zero = (largest + 1) // 2
    assert first == last == codes[0] == zero
    assert [codes[5], codes[6]] == [largest, 0]
    for current, code in zip(currents, codes, strict=True):
        ideal = min(max(zero + current * zero / full_mA, 0), largest)
        assert code == pytest.approx(ideal, abs=1)


def test_sign_and_magnitude() -> None:
    program = """
from drivers.pwm_direction import PwmDirection
class Pwm:
    def duty_u16(self, duty):
        log.append(duty)
class Pin:
    def value(self, level):
        log.append("+" if level else "-")
class Loop:
    def __call__(self, current):
        return current
    def reset(self):
        log.append("reset")
log = []
drive = PwmDirection(Pwm(), Pin(), Loop())
for duty in (1000, -1000, 32767, -32767):
    drive.command(duty)
drive.off()
answer = log
"""
    off = [0, "reset"]
    assert run(program) == [*off, "+", 2000, "-", 2000, "+", 65535, "-", 65535, *off]
